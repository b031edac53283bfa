"""Dirt on the window, and sectors of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilsim.sensor.optics.window import WindowSectorSpec, WindowSpec, build_window, window_transmission
from tests.depth import examples

ELEVATION_DEG = [-15.0, 1.0, -13.0, 3.0, 15.0]


def sector(start, stop, transmission=0.5, **elevation):
    return WindowSectorSpec(azimuth_from_deg=start, azimuth_to_deg=stop, transmission=transmission, **elevation)


def behind(*sectors, dirt=1.0):
    return build_window(WindowSpec(soiling_transmission=dirt, sectors=sectors))


@pytest.mark.parametrize(
    ("start", "stop", "inside", "outside"),
    [
        (90.0, 120.0, (9000, 11_999), (8999, 12_000, 0)),
        (350.0, 10.0, (35_000, 35_999, 0, 999), (34_999, 1000, 18_000)),
        (350.0, 360.0, (35_000, 35_999), (0, 34_999)),
        (0.0, 360.0, (0, 18_000, 35_999), ()),
        (12.5, 12.51, (1250,), (1249, 1251)),
    ],
)
def test_a_sector_begins_at_its_first_angle_ends_before_its_last_and_may_go_through_zero(start, stop, inside, outside):
    dirty = behind(sector(start, stop))
    assert [window_transmission(dirty, azimuth, 0) for azimuth in inside] == [0.5] * len(inside)
    assert [window_transmission(dirty, azimuth, 0) for azimuth in outside] == [1.0] * len(outside)


def test_azimuths_of_any_turn_mean_the_same_direction():
    dirty = behind(sector(350.0, 10.0))
    assert window_transmission(dirty, 36_500, 0) == window_transmission(dirty, -500, 0) == window_transmission(dirty, 500, 0) == 0.5
    assert window_transmission(dirty, -1001.0, 0) == window_transmission(dirty, 37_000.0, 0) == 1.0


def test_a_sector_covers_the_channels_that_look_through_its_elevations():
    dirty = behind(sector(0.0, 360.0, elevation_from_deg=-13.0, elevation_to_deg=3.0))
    assert [window_transmission(dirty, 0, elevation_deg) for elevation_deg in ELEVATION_DEG] == [1.0, 0.5, 0.5, 0.5, 1.0]


def test_a_blocked_sector_lets_nothing_through():
    assert window_transmission(behind(sector(10.0, 20.0, 0.0), dirt=0.9), 1500, 2) == 0.0


def test_dirt_and_overlapping_sectors_multiply():
    dirty = behind(sector(0.0, 90.0, 0.8), sector(45.0, 135.0, 0.5), dirt=0.9)
    assert [window_transmission(dirty, azimuth, 0) for azimuth in (1000, 6000, 12_000, 20_000)] == pytest.approx([0.72, 0.36, 0.45, 0.9])


def test_a_clean_window_takes_nothing():
    assert window_transmission(behind(), 4711, 3) == 1.0


@given(st.floats(0.0, 359.99), st.floats(0.01, 359.9), st.integers(0, 35_999))
@settings(max_examples=examples(200))
def test_a_sector_and_its_complement_cover_every_azimuth_once(start, width, azimuth_cdeg):
    start, stop = round(start, 2), round(start + width, 2) % 360.0
    if start == stop:
        return
    dirty = behind(sector(start, stop, 0.5), sector(stop, start, 0.25))
    edges = np.array([start, stop]) * 100.0
    if np.abs((azimuth_cdeg - edges + 18_000.0) % 36_000.0 - 18_000.0).min() > 1e-6:  # at an edge itself rounding decides
        assert window_transmission(dirty, azimuth_cdeg, 0) in {0.5, 0.25}


def test_a_sector_names_every_broken_rule_at_once():
    with pytest.raises(
        ValueError,
        match=r"transmission must be 0 to 1, got 1.5; azimuth_from_deg must be 0 to less than 360, got 360.*elevation_from_deg and .* got 5 and -5",
    ):
        sector(360.0, 10.0, 1.5, elevation_from_deg=5, elevation_to_deg=-5)
    with pytest.raises(ValueError, match=r"must differ \(0 and 360 for a whole turn\), got 20"):
        sector(20.0, 20.0)


def test_a_window_must_let_something_through():
    with pytest.raises(ValueError, match="soiling_transmission must be above 0 and at most 1, got 0"):
        WindowSpec(soiling_transmission=0.0)
