"""The mirror: where each laser looks, by hand and after years, and where scans end."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.sensor.mirror import SegmentSpec, build_mirror, image_point, no_mirror, scan_number
from tests.cepton_models import MIDDLE, TEN_HZ, mirror_spec

YEAR_NS = 365 * 86_400 * 10**9


def kernel_side(segments=(MIDDLE,), phase_deg=0.0, **swept):
    return build_mirror(dataclasses.replace(TEN_HZ, **swept), segments, phase_deg=phase_deg)


@pytest.mark.parametrize(
    ("device_ns", "x", "z"),
    [
        (0, 0.0, 0.0),
        (25_000_000, 0.5, 0.0),  # a quarter of a sweep across is five up and down
        (75_000_000, -0.5, 0.0),
        (1_250_000, 0.5 * math.sin(2 * math.pi / 80), 0.2),
        (100_000_000, 0.0, 0.0),
    ],
)
def test_a_laser_swings_about_its_middle_on_both_axes(device_ns, x, z):
    assert image_point(kernel_side(), 0, device_ns) == pytest.approx((x, z), abs=1e-12)


def test_each_laser_has_its_own_middle_phase_and_width():
    segments = [MIDDLE, SegmentSpec(image_x=-0.6, image_z=0.15, phase_x_deg=90.0, phase_z_deg=-90.0, scale_x=0.5, scale_z=-2.0)]
    assert image_point(kernel_side(segments), 1, 0) == pytest.approx((-0.6 + 0.25, 0.15 + 0.4), abs=1e-12)
    assert image_point(kernel_side(segments), 0, 0) == pytest.approx((0.0, 0.0), abs=1e-12)


def test_phases_of_the_mirror_and_of_the_rig_add_up_and_the_rigs_is_that_of_the_sweep_across():
    swept = kernel_side(x_phase_deg=60.0, z_phase_deg=90.0, phase_deg=30.0)
    assert image_point(swept, 0, 0) == pytest.approx((0.5, 0.2), abs=1e-12)


@pytest.mark.parametrize(("ratio", "phase_deg"), [(0.15, 0.0), (-1 / 9, 40.0), (0.5, -360.0)])
def test_the_third_harmonic_goes_round_three_times_as_fast(ratio, phase_deg):
    swept = kernel_side(x_third_ratio=ratio, x_third_phase_deg=phase_deg, z_third_ratio=-ratio, z_third_phase_deg=-phase_deg)
    for device_ns in (0, 7_000_000, 31_234_567):
        across, up = 2 * math.pi * 10 * device_ns / 1e9, 2 * math.pi * 200 * device_ns / 1e9
        third = math.radians(phase_deg)
        x = 0.5 * (math.sin(across) + ratio * math.sin(3 * across + third))
        z = 0.2 * (math.sin(up) - ratio * math.sin(3 * up - third))
        assert image_point(swept, 0, device_ns) == pytest.approx((x, z), abs=1e-9)


@pytest.mark.parametrize(("x_hz", "z_hz"), [(9.72, 214.04), (4.71, 155.57), (0.01, 5000.0)])
@given(device_ns=st.integers(9 * YEAR_NS, 10 * YEAR_NS))
def test_directions_are_exact_after_ten_years(x_hz, z_hz, device_ns):
    swept = kernel_side(x_hz=x_hz, z_hz=z_hz)
    wanted = [amplitude * math.sin(2 * math.pi * float(Fraction(str(hz)) * device_ns / 10**9 % 1)) for hz, amplitude in ((x_hz, 0.5), (z_hz, 0.2))]
    assert image_point(swept, 0, device_ns) == pytest.approx(tuple(wanted), abs=1e-12)


@pytest.mark.parametrize("begin_ns", [0, 10 * YEAR_NS])
def test_a_scan_ends_where_the_sweep_across_turns_back(begin_ns):
    swept = kernel_side(x_third_ratio=-1 / 9)
    times = begin_ns + np.arange(0, 400_000_000, 500_000)
    x = np.array([image_point(swept, 0, int(time))[0] for time in times])
    scans = np.array([scan_number(swept, int(time)) for time in times])
    turns = np.flatnonzero(np.diff(np.sign(np.diff(x)))) + 1
    changes = np.flatnonzero(np.diff(scans)) + 1
    assert changes.size == 8
    np.testing.assert_array_equal(np.diff(scans)[changes - 1], 1)
    np.testing.assert_allclose(changes, turns, atol=1)
    assert scans[0] == 20 * begin_ns // 10**9


@pytest.mark.parametrize("passes", [1, 2, 3, 100])
def test_a_scan_has_so_many_passes(passes):
    swept = kernel_side(passes_per_scan=passes)
    step_ns = 50_000_000
    middles = [scan_number(swept, step_ns // 2 + 1 + one * step_ns) for one in range(2 * passes + 1)]
    assert middles == [(one + 1) // passes for one in range(2 * passes + 1)]
    assert mirror_spec(swept=dataclasses.replace(TEN_HZ, passes_per_scan=passes)).scan_s == pytest.approx(passes * 0.05)


def test_a_scan_changes_at_the_very_nanosecond_of_the_turn():
    assert [scan_number(kernel_side(), device_ns) for device_ns in (24_999_999, 25_000_000, 74_999_999, 75_000_000)] == [0, 1, 1, 2]
    assert [scan_number(kernel_side(phase_deg=90.0), device_ns) for device_ns in (0, 49_999_999, 50_000_000)] == [1, 1, 2]


def test_a_sensor_without_a_mirror_has_no_lasers_in_it():
    assert no_mirror().segment.shape == (0, 6)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"x_hz": 0.0}, "x_hz must be 0.01 to 5000, got 0.0"),
        ({"z_hz": 5001.0}, "z_hz must be 0.01 to 5000, got 5001.0"),
        ({"x_hz": math.nan}, "x_hz must be 0.01 to 5000, got nan"),
        ({"x_amplitude": 0.0}, "x_amplitude must be above 0 and at most 10, got 0.0"),
        ({"z_amplitude": 11.0}, "z_amplitude must be above 0 and at most 10, got 11.0"),
        ({"x_third_ratio": 0.6}, "x_third_ratio must be -0.5 to 0.5, got 0.6"),
        ({"z_third_phase_deg": 361.0}, "z_third_phase_deg must be -360 to 360, got 361.0"),
        ({"x_phase_deg": -361.0}, "x_phase_deg must be -360 to 360, got -361.0"),
        ({"passes_per_scan": 0}, "passes_per_scan must be 1 to 100, got 0"),
        ({"x_hz": 0.0, "z_amplitude": 0.0, "passes_per_scan": 0}, r"x_hz must .* passes_per_scan must be 1 to 100, got 0; z_amplitude must"),
    ],
)
def test_rules_of_a_mirror_name_their_key(changes, fault):
    with pytest.raises(ValueError, match=fault):
        dataclasses.replace(TEN_HZ, **changes)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"image_x": 21.0}, "image_x must be -20 to 20, got 21.0"),
        ({"image_z": -21.0}, "image_z must be -20 to 20, got -21.0"),
        ({"phase_x_deg": 400.0}, "phase_x_deg must be -360 to 360, got 400.0"),
        ({"phase_z_deg": -400.0}, "phase_z_deg must be -360 to 360, got -400.0"),
        ({"scale_x": 0.0}, "scale_x must be -10 to 10 and not 0, got 0.0"),
        ({"scale_z": 10.5}, "scale_z must be -10 to 10 and not 0, got 10.5"),
    ],
)
def test_rules_of_a_segment_name_their_key(changes, fault):
    with pytest.raises(ValueError, match=fault):
        dataclasses.replace(MIDDLE, **changes)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"model": ""}, 'model must be 1 to 27 ASCII characters .*, got ""'),
        ({"model": "x" * 28}, "model must be 1 to 27 ASCII characters"),
        ({"model": "Hörsel"}, 'model must be 1 to 27 ASCII characters .*, got "Hörsel"'),
        ({"model_code": 65_536}, "model_code must be 0 to 65535, got 65536"),
        ({"segments": ()}, "segments must be 1 to 72, got 0"),
        ({"segments": (MIDDLE,) * 73, "sequence_ns": 640_000}, "segments must be 1 to 72, got 73"),
        ({"lasers_per_firing": 0}, "lasers_per_firing must be 1 to 72, got 0"),
        ({"firing_ns": 0}, "firing_ns must be above 0, got 0"),
        ({"segments": (MIDDLE,) * 9}, "sequence_ns must be at least the 72000 ns its firings take, got 64000"),
        (
            {"sequence_ns": 254_001},
            r"sequence_ns must leave at most 254000 ns between firings \(a point stores its step in one byte of us\), got 254001",
        ),
        ({"segments": (MIDDLE,) * 2, "firing_ns": 254_001, "sequence_ns": 508_002}, "firing_ns must be at most 254000, got 254001"),
        ({"segments": (MIDDLE,) * 5, "firing_ns": 200_001, "sequence_ns": 1_000_005}, "sequence_ns must be at most 1000000, got 1000005"),
        ({"range_unit_mm": 0.0}, "range_unit_mm must be 0.1 to 100, got 0.0"),
        ({"range_max_m": 327.7}, r"range_min_m and range_max_m must be 0 <= min < max <= 327.675 \(16 bits\), got 1.0 and 327.7"),
    ],
)
def test_rules_of_a_model_name_their_key(changes, fault):
    with pytest.raises(ValueError, match=fault):
        mirror_spec(**changes)


def test_lasers_that_fire_together_need_less_time():
    assert mirror_spec([MIDDLE] * 16, lasers_per_firing=2).last_firing_ns == 7 * 8000
    assert mirror_spec([MIDDLE] * 3, lasers_per_firing=2).last_firing_ns == 8000
