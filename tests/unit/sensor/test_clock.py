"""The device clock: exact, never accumulating, right at the hour."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.sensor.clock import (
    build_device_clock,
    counter_us,
    device_from_rig,
    remainder_of,
    rig_after,
    rig_from_device,
    scaled_down,
    scaled_up,
    stamp_us,
    utc_lead_us,
)
from hilsim.sensor.specs import ClockSetting

PACKET_NS = 24 * 55_296
HOUR_NS = 3_600_000_000_000


def free(offset_s=0.0, oscillator_ppm=0.0, stamp_ppm=0.0, start_ns=0):
    setting = ClockSetting(sync="free", offset_s=offset_s, oscillator_ppm=oscillator_ppm, stamp_ppm=stamp_ppm)
    return build_device_clock(setting, follows_pulse=False, start_ns=start_ns, utc_epoch_ns=0)


def test_a_packet_of_24_firing_sequences_lasts_165888_over_125_microseconds():
    assert Fraction(PACKET_NS, 1000) == Fraction(165_888, 125)


@given(st.integers(0, 3 * 10**18), st.integers(-1_000_000, 1_000_000))
def test_scaling_is_the_exact_floor_for_a_century(duration_ns, gain_ppb):
    assert scaled_down(duration_ns, gain_ppb) == duration_ns * 10**9 // (10**9 + gain_ppb)
    assert scaled_up(duration_ns, gain_ppb) == duration_ns + duration_ns * gain_ppb // 10**9


@given(st.integers(0, 10**16), st.floats(-1000, 1000), st.integers(0, 10**9))
def test_device_and_rig_time_are_each_others_inverse_within_a_nanosecond(device_ns, ppm, start_ns):
    clock = free(oscillator_ppm=ppm, start_ns=start_ns)
    assert abs(device_from_rig(clock, rig_from_device(clock, device_ns)) - device_ns) <= 1


@given(st.integers(0, 3 * 10**18), st.integers(0, 10**9), st.integers(-1000, 1000).map(float) | st.floats(-1000, 1000), st.integers(0, 10**9))
def test_rig_time_of_an_offset_is_that_of_the_device_time_with_it(device_ns, offset_ns, ppm, start_ns):
    clock = free(oscillator_ppm=ppm, start_ns=start_ns)
    remainder = remainder_of(device_ns, clock.oscillator_ppb)
    assert rig_after(clock, rig_from_device(clock, device_ns), remainder, offset_ns) == rig_from_device(clock, device_ns + offset_ns)


def test_stamps_step_by_1327_or_1328_in_the_shares_of_real_units():
    clock = free(offset_s=12.3456789)
    steps = np.diff([stamp_us(clock, packet * PACKET_NS) for packet in range(5000)])
    assert set(steps) == {1327, 1328}
    assert np.mean(steps == 1328) == pytest.approx(0.104, abs=0.002)


def test_stamps_do_not_drift_in_a_million_packets():
    clock = free()
    assert stamp_us(clock, 1_000_000 * PACKET_NS) == 1_000_000 * 165_888 // 125 % 3_600_000_000


@pytest.mark.parametrize("sync", ["free", "pps"])
def test_stamps_wrap_continuously_at_the_top_of_the_hour(sync):
    start_ns = HOUR_NS - 500 * PACKET_NS
    setting = ClockSetting(sync=sync, offset_s=start_ns / 1e9)
    clock = build_device_clock(setting, follows_pulse=sync == "pps", start_ns=0, utc_epoch_ns=start_ns)
    stamps = np.array([stamp_us(clock, packet * PACKET_NS) for packet in range(1000)])
    assert stamps.max() < 3_600_000_000
    assert set(np.diff(stamps) % 3_600_000_000) == {1327, 1328}
    assert (np.diff(stamps) < 0).sum() == 1


def test_a_fast_oscillator_fires_early_and_its_stamps_follow():
    clock = free(oscillator_ppm=100.0)
    assert rig_from_device(clock, 10**12) == pytest.approx(10**12 / 1.0001, abs=1)
    assert stamp_us(clock, 10**12) == 10**9


def test_a_steered_stamp_runs_ahead_of_the_firing_clock():
    assert stamp_us(free(stamp_ppm=137.0), 10**12) == 1_000_137_000


def test_the_pulse_sets_the_stamp_to_utc_every_second_despite_a_wrong_oscillator():
    clock = build_device_clock(ClockSetting(sync="pps", oscillator_ppm=50.0), follows_pulse=True, start_ns=0, utc_epoch_ns=7 * 10**9)
    for second in range(1, 100):
        device_ns = int(device_from_rig(clock, second * 10**9)) + 1
        assert stamp_us(clock, device_ns) == (7 + second) * 1_000_000
        assert stamp_us(clock, device_ns + 999_000_000) == pytest.approx((7 + second) * 1_000_000 + 999_000, abs=2)


@given(
    st.integers(0, 4 * HOUR_NS),
    st.sampled_from([-1000.0, -137.0, 0.0, 50.0, 1000.0]),
    st.sampled_from([-1000.0, 0.0, 138.0]),
    st.integers(0, HOUR_NS - 1),
)
def test_a_stamp_under_the_pulse_is_the_exact_floor_of_what_the_oscillator_counted_since_the_second(device_ns, oscillator_ppm, stamp_ppm, start_ns):
    clock = build_device_clock(
        ClockSetting(sync="pps", oscillator_ppm=oscillator_ppm, stamp_ppm=stamp_ppm),
        start_ns=start_ns,
        utc_epoch_ns=1_767_225_600 * 10**9,
        follows_pulse=True,
    )
    utc_ns = 1_767_225_600 * 10**9 + start_ns + device_ns * 10**6 // (10**6 + Fraction(oscillator_ppm))
    second, since_edge_ns = divmod(utc_ns, 10**9)
    counted_ns = since_edge_ns + since_edge_ns * Fraction(oscillator_ppm) // 10**6
    counted_ns += counted_ns * Fraction(stamp_ppm) // 10**6
    assert stamp_us(clock, device_ns) == (second % 3600 * 10**6 + counted_ns // 1000) % 3_600_000_000


@pytest.mark.parametrize("before_the_hour_us", [1, 100, 900])
def test_a_fast_oscillator_under_the_pulse_wraps_before_the_hour_ends(before_the_hour_us):
    clock = build_device_clock(
        ClockSetting(sync="pps", oscillator_ppm=1000.0), start_ns=HOUR_NS - before_the_hour_us * 1000, utc_epoch_ns=0, follows_pulse=True
    )
    assert stamp_us(clock, 0) == 10**6 - before_the_hour_us + (10**6 - before_the_hour_us) // 1000 - 10**6


def test_a_clock_setting_names_every_broken_rule():
    with pytest.raises(ValueError, match=r"offset_s must be 0 to .*; oscillator_ppm must be -1000 to 1000, got 5000"):
        ClockSetting(offset_s=-1.0, oscillator_ppm=5000.0)


@pytest.mark.parametrize("oscillator_ppm", [0.0, 50.0, -1000.0])
def test_a_synchronised_counter_in_utc_shows_the_instant_of_each_firing_whatever_the_oscillator(oscillator_ppm):
    setting = ClockSetting(stamps="utc", oscillator_ppm=oscillator_ppm, offset_s=77.0)
    epoch_ns = 1_767_225_600_123_456_789
    clock = build_device_clock(setting, follows_pulse=True, start_ns=5_000, utc_epoch_ns=epoch_ns)
    for device_ns in (0, 10**9, 3_600 * 10**9 + 7):
        true_ns = epoch_ns + 5_000 + device_ns * 10**9 // (10**9 + round(oscillator_ppm * 1000))
        assert counter_us(clock, device_ns) == true_ns // 1000
        assert utc_lead_us(clock, device_ns) == 0


def test_a_free_counter_in_utc_begins_at_utc_and_drifts_away():
    setting = ClockSetting(stamps="utc", sync="free", stamp_ppm=100.0)
    clock = build_device_clock(setting, follows_pulse=False, start_ns=0, utc_epoch_ns=2 * 10**18)
    assert counter_us(clock, 0) == 2 * 10**15
    assert counter_us(clock, 10**10) == 2 * 10**15 + 10**7 + 1000
