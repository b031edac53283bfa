"""What follows from the steps between packets: the model, and differences past the hour and past the turn."""

import numpy as np
import pytest

from hilsim.families.velodyne.protocol.models import HDL_32E, VLP_16, identify_model
from hilsim.families.velodyne.protocol.steps import wrapped_cdeg, wrapped_us

HALF_HOUR_US = 1_800_000_000
OF_VLP_16, OF_HDL_32E = 0x22, 0x21


@pytest.mark.parametrize(
    ("step_us", "wrapped"),
    [(0, 0), (5, 5), (-5, -5), (HALF_HOUR_US - 1, HALF_HOUR_US - 1), (HALF_HOUR_US, -HALF_HOUR_US), (3_599_999_000, -1000), (-3_599_999_000, 1000)],
)
def test_a_step_past_the_hour_is_the_short_way(step_us, wrapped):
    assert wrapped_us(step_us) == wrapped
    assert wrapped_us(np.array([step_us])).tolist() == [wrapped]


@pytest.mark.parametrize(("angle_cdeg", "wrapped"), [(0, 0), (17_999, 17_999), (18_000, -18_000), (35_999, -1), (-35_999, 1), (72_005, 5)])
def test_a_step_past_the_turn_is_the_short_way(angle_cdeg, wrapped):
    assert wrapped_cdeg(angle_cdeg) == wrapped


def test_the_factory_byte_names_the_model_but_for_an_early_vlp_16():
    own, other = HDL_32E.cycle_us(is_dual=False), VLP_16.cycle_us(is_dual=False)
    for step_us in (None, own, 2 * own, 0.37 * own):
        assert identify_model(OF_HDL_32E, step_us, is_dual=False) is HDL_32E
    assert identify_model(OF_HDL_32E, other, is_dual=False) is VLP_16
    for step_us in (None, own, other, 0.37 * own):
        assert identify_model(OF_VLP_16, step_us, is_dual=False) is VLP_16


def test_the_step_names_the_model_where_the_factory_byte_is_unknown():
    for model in (HDL_32E, VLP_16):
        assert identify_model(0xEE, model.cycle_us(is_dual=False), is_dual=False) is model
    assert identify_model(0xEE, None, is_dual=False) is None
