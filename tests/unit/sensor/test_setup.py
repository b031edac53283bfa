"""How a sensor is set up, by the rules of its setup alone; and how wide its beam is."""

import numpy as np
import pytest

from hilsim.sensor.mirror import SegmentSpec
from hilsim.sensor.optics.beam import build_beam
from hilsim.sensor.setup import SensorSetup
from hilsim.sensor.specs import BeamSpec


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"phase_deg": 360.0}, "phase_deg must be 0 to less than 360, got 360.0"),
        ({"phase_deg": -0.1}, "phase_deg must be 0 to less than 360, got -0.1"),
        ({"start_delay_us": -1.0}, "start_delay_us must be 0 to 1000000000, got -1.0"),
        ({"sub_rays": 2}, "sub_rays must be one of 1, 7, 19, got 2"),
        ({"mount_position_m": (0.0, np.nan, 0.0)}, "mount_position_m must be finite, got (0.0, nan, 0.0)"),
    ],
)
def test_a_setting_that_cannot_be_is_named(changed, fault):
    assert [text for holds, text in SensorSetup(**changed).rules() if not holds] == [fault]


@pytest.mark.parametrize(
    "changed", [{}, {"phase_deg": 0.0}, {"phase_deg": 359.9}, {"start_delay_us": 1e9}, {"sub_rays": 19}, {"mount_rotation_deg": (720.0, 0.0, 0.0)}]
)
def test_settings_at_their_limits_are_permitted(changed):
    assert all(holds for holds, _ in SensorSetup(**changed).rules())


@pytest.mark.parametrize("value", [-20.0, 20.0])
def test_a_lasers_middle_may_be_at_the_limit_of_the_image(value):
    assert SegmentSpec(image_x=value, image_z=-value).image_x == value


@pytest.mark.parametrize("sub_rays", [7, 19])
def test_the_rays_of_a_beam_reach_to_half_its_divergence_and_half_its_spot(sub_rays):
    beam = build_beam(BeamSpec(divergence_h_mrad=3.0, divergence_v_mrad=1.5, window_h_mm=12.7, window_v_mm=9.5), sub_rays)
    reach, offset_m = np.abs(beam.tangent).max(axis=0), np.abs(beam.offset_m).max(axis=0)
    assert 0.6 < reach[0] / np.tan(1.5e-3) <= 1.0
    assert 0.6 < offset_m[0] / 6.35e-3 <= 1.0
    np.testing.assert_allclose(reach / reach[0] / (offset_m / offset_m[0]), (1.0, 0.5 * 12.7 / 9.5), rtol=1e-6)
