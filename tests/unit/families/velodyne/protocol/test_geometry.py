"""Where lasers look: tables against what is known of the models, and against real captures."""

import numpy as np
import pytest

from hilsim.families.velodyne.protocol.geometry import HDL_32E_GEOMETRY, PUCK_HI_RES_GEOMETRY, VLP_32C_GEOMETRY, FiringGeometry
from hilsim.families.velodyne.protocol.models import BY_NAME, MODELS


@pytest.mark.parametrize("model", [model for model in MODELS if model.name != "VLP-32C"], ids=lambda model: model.name)
def test_lasers_of_the_lower_and_the_upper_half_fire_in_turn(model):
    lasers = model.channels
    assert model.geometry.elevation_order == (*range(0, lasers, 2), *range(1, lasers, 2))


@pytest.mark.parametrize(
    ("name", "cycle_us", "firing_ns", "at_once"),
    [
        ("VLP-16", 1327.104, 2304, 1),
        ("Puck Hi-Res", 1327.104, 2304, 1),
        ("VLP-32C", 663.552, 2304, 2),
        ("HDL-32E", 552.96, 1152, 1),
        ("VLS-128", 165.888, 2764, 8),
    ],
)
def test_packets_of_a_model_come_at_the_cycle_its_lasers_make(name, cycle_us, firing_ns, at_once):
    model = BY_NAME[name]
    assert model.cycle_us(is_dual=False) == pytest.approx(cycle_us)
    assert (model.geometry.firing_ns, model.geometry.lasers_per_firing) == (firing_ns, at_once)


def test_the_hdl_32e_spans_41_degrees_in_steps_of_a_degree_and_a_third():
    steps = np.diff(HDL_32E_GEOMETRY.rows_deg)
    np.testing.assert_allclose(steps, 4 / 3, atol=0.011)
    assert (HDL_32E_GEOMETRY.rows_deg[0], HDL_32E_GEOMETRY.rows_deg[-1]) == (-30.67, 10.67)
    assert HDL_32E_GEOMETRY.delay_ns[-1] == 35_712  # 31 slots of 1.152 us


def test_the_vlp_32c_fires_pairs_and_looks_aside_by_four_angles():
    assert sorted(set(VLP_32C_GEOMETRY.azimuth_offset_deg)) == [-4.2, -1.4, 1.4, 4.2]
    assert VLP_32C_GEOMETRY.azimuth_offset_deg[:2] == (1.4, -4.2)  # laser 0 looks clockwise of the block's azimuth, laser 1 anticlockwise
    assert VLP_32C_GEOMETRY.delay_ns[:4] == (0, 0, 2304, 2304)
    assert len(set(VLP_32C_GEOMETRY.elevation_deg)) == 32


def test_the_hi_res_spans_20_degrees():
    np.testing.assert_allclose(np.diff(PUCK_HI_RES_GEOMETRY.rows_deg), 4 / 3, atol=0.001)
    assert PUCK_HI_RES_GEOMETRY.elevation_deg[:4] == (-10.0, 0.667, -8.667, 2.0)


def test_a_geometry_that_makes_no_sense_is_refused():
    fine = {
        "model": "X",
        "elevation_deg": tuple(map(float, range(16))),
        "azimuth_offset_deg": (0.0,) * 16,
        "delay_ns": (0,) * 16,
        "sequence_ns": 55_296,
        "distance_unit_mm": 2.0,
    }
    FiringGeometry(**fine)
    for change, said in (
        ({"elevation_deg": (1.0,) * 16}, "elevation_deg must differ from laser to laser"),
        ({"azimuth_offset_deg": (0.0,)}, "azimuth_offset_deg must name 16 lasers, got 1"),
        ({"delay_ns": (60_000,) * 16}, "delay_ns must be 0 to the firing sequence's 55296"),
        ({"vertical_offset_mm": (1.0,)}, "vertical_offset_mm must name 16 lasers or none, got 1"),
        ({"distance_unit_mm": 0.0}, "distance_unit_mm must be 0.1 to 100, got 0.0"),
    ):
        with pytest.raises(ValueError, match=said):
            FiringGeometry(**fine | change)
