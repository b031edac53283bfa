"""A head whose setting changes: its motor ramps, its phase is locked, and it never leaps."""

import numpy as np
import pytest

from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.families.velodyne.family import build_model_head
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.sensor.clock import build_device_clock, device_from_rig
from hilsim.sensor.head import build_head, continued_head, head_turns, passage_ns, turned
from hilsim.sensor.setup import SensorSetup
from hilsim.sensor.specs import ClockSetting
from hilsim.sensor.unit.encoder import RateJitterSpec

SECOND_NS = 10**9
UTC_NS = 1_767_225_600 * SECOND_NS + 123_456_789
SWINGING = RateJitterSpec(per_turn_ratio=0.001, drift_ratio=0.002, drift_period_s=3.0)


VLP16 = parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / "vlp16.toml"), "vlp16")


def head(rate_rpm, phase_deg=0.0, rate_jitter=SWINGING):
    return build_head(
        rate_rpm=rate_rpm,
        phase_deg=phase_deg,
        rate_jitter=rate_jitter,
        seed=3,
        stream=1,
    )


def locked(phase_lock_deg, rate_rpm=600, oscillator_ppm=80.0, start_ns=7_000_000):
    clock = build_device_clock(ClockSetting(oscillator_ppm=oscillator_ppm), follows_pulse=True, start_ns=start_ns, utc_epoch_ns=UTC_NS)
    setup = SensorSetup(rotation_rate_rpm=rate_rpm, phase_lock_deg=phase_lock_deg)
    return clock, build_model_head(VLP16, setup, clock, seed=3, stream=1)


def rpm(of, device_ns, span_ns=1_000_000):
    """Rotation rate about a device time."""
    turned_turns = (head_turns(of, device_ns + span_ns) - head_turns(of, device_ns - span_ns)) % 1.0
    return turned_turns * 60e9 / (2 * span_ns)


def apart_deg(one_turns, other_turns):
    return abs((one_turns - other_turns + 0.5) % 1.0 - 0.5) * 360.0


@pytest.mark.parametrize(("before", "after"), [(600, 1200), (1200, 300), (300, 600)])
def test_a_motor_ramps_evenly_to_its_new_rate_from_where_it_is(before, after):
    at_ns = 41_234_567_890
    former = head(before, 77.0)
    changed = continued_head(former, head(after), at_ns)
    assert apart_deg(head_turns(former, at_ns), head_turns(changed, at_ns)) < 1e-9
    ramp_s = abs(after - before) / 200.0
    times_ns = [at_ns + 2_000_000, at_ns + round(ramp_s * 0.5e9), at_ns + round(ramp_s * 1e9) + 2_000_000]
    assert [rpm(changed, each) for each in times_ns] == pytest.approx([before, (before + after) / 2, after], rel=0.01)
    assert changed.rate_crpm == after * 100


def test_a_second_change_during_a_ramp_goes_on_from_the_speed_reached():
    first = continued_head(head(300), head(1200), 5 * SECOND_NS)
    at_ns = 5 * SECOND_NS + 2 * SECOND_NS
    second = continued_head(first, head(300), at_ns)
    assert apart_deg(head_turns(first, at_ns), head_turns(second, at_ns)) < 1e-9
    assert rpm(second, at_ns + 2_000_000) == pytest.approx(700, rel=0.01)
    assert rpm(second, at_ns + 2_100_000_000) == pytest.approx(300, rel=0.01)


def test_a_head_whose_rotation_does_not_change_goes_on_as_it_is():
    ramping = continued_head(head(300), head(1200), 5 * SECOND_NS)
    assert continued_head(ramping, head(1200, 90.0), 6 * SECOND_NS) == ramping


@pytest.mark.parametrize("phase_lock_deg", [0.0, 90.0, 271.5])
@pytest.mark.parametrize("rate_rpm", [300, 600, 1200])
def test_a_locked_head_passes_its_angle_at_every_pulse_for_days(phase_lock_deg, rate_rpm):
    clock, of = locked(phase_lock_deg, rate_rpm)
    for second in (1, 2, 60, 3600, 200_000):
        pulse_rig_ns = second * SECOND_NS - UTC_NS % SECOND_NS
        turns = head_turns(of, int(device_from_rig(clock, pulse_rig_ns)))
        assert apart_deg(turns, phase_lock_deg / 360.0) < 0.7  # its swings


def test_two_heads_locked_to_one_pulse_keep_their_angle_whatever_their_oscillators():
    (one_clock, one), (other_clock, other) = locked(90.0, oscillator_ppm=120.0, start_ns=0), locked(270.0, oscillator_ppm=-45.0, start_ns=31_000_000)
    for rig_ns in range(10 * SECOND_NS, 40 * SECOND_NS, 777_777_777):
        turns = [head_turns(of, int(device_from_rig(clock, rig_ns))) for clock, of in ((one_clock, one), (other_clock, other))]
        assert apart_deg(turns[0] + 0.5, turns[1]) < 1.2


def test_a_head_that_is_locked_while_it_turns_finds_its_angle_within_ten_seconds():
    clock, of = locked(45.0)
    at_ns = int(device_from_rig(clock, 20 * SECOND_NS))
    former = head(600, 200.0)
    changed = continued_head(former, of, at_ns)
    assert apart_deg(head_turns(former, at_ns), head_turns(changed, at_ns)) < 1e-9
    rates = [rpm(changed, at_ns + each) for each in range(2_000_000, 10 * SECOND_NS, 100_000_000)]
    assert min(rates) > 590
    assert max(rates) < 610
    assert head_turns(changed, at_ns + 10 * SECOND_NS) == head_turns(of, at_ns + 10 * SECOND_NS)


@pytest.mark.parametrize(("before", "after"), [(300, 1200), (1200, 300), (600, 660)])
def test_the_time_at_which_a_settling_head_passes_an_angle_is_found(before, after):
    changed = continued_head(head(before, 10.0), head(after), 50 * SECOND_NS)
    for device_ns in np.linspace(49.9e9, 56e9, 300).astype(np.int64):
        swing_turns = (head_turns(changed, int(device_ns)) - turned(changed, int(device_ns)) + 0.5) % 1.0 - 0.5
        if device_ns >= 50 * SECOND_NS:
            assert passage_ns(changed, turned(changed, int(device_ns)) + swing_turns) == pytest.approx(device_ns, abs=200)
