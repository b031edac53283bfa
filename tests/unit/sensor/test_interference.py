"""Light of another sensor's beam at a point, by hand."""

import pytest

from hilsim.sensor.interference.pulses import beam_frame, distance_m, light_at, spot_widths
from hilsim.sensor.specs import BeamSpec

LEVEL = (1.0, 0.0, 0.0, 0.0)
AHEAD = beam_frame(LEVEL, (1.0, 2.0, 3.0), 0.0, 1.0, 1.0, 0.0)
"""A beam from (1, 2, 3) along +y, the sensor's azimuth 0."""
WIDTHS = (0.005, 0.002, 0.006, 0.001)


def test_a_beams_axes_are_ahead_to_larger_azimuths_and_up():
    assert AHEAD == ((1.0, 2.0, 3.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))


def test_half_widths_are_half_the_window_and_half_the_divergence():
    widths = spot_widths(BeamSpec(divergence_h_mrad=3.0, divergence_v_mrad=1.2, window_h_mm=9.5, window_v_mm=12.7))
    assert widths == pytest.approx((0.00475, 0.0015, 0.00635, 0.0006), rel=1e-6)


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ((1.0, 12.0, 3.0), 1.0 / (0.025 * 0.016)),
        ((1.024, 12.0, 3.0), 1.0 / (0.025 * 0.016)),
        ((1.026, 12.0, 3.0), 0.0),
        ((1.0, 12.0, 3.015), 1.0 / (0.025 * 0.016)),
        ((1.0, 12.0, 3.017), 0.0),
        ((1.02, 12.0, 3.012), 0.0),  # in the corner of both half widths: outside the ellipse
        ((1.0, -8.0, 3.0), 0.0),  # behind
    ],
)
def test_light_is_even_within_an_ellipse_that_grows_with_the_way(point, expected):
    assert light_at(AHEAD, WIDTHS, point) == pytest.approx(expected)


def test_a_beam_without_width_lights_a_spot_of_two_millimetres():
    assert light_at(AHEAD, spot_widths(BeamSpec()), (1.0009, 12.0, 3.0)) == pytest.approx(1e6)
    assert light_at(AHEAD, spot_widths(BeamSpec()), (1.0011, 12.0, 3.0)) == 0.0


def test_the_way_is_measured_from_the_beams_origin():
    assert distance_m(AHEAD, (4.0, 6.0, 3.0)) == 5.0
