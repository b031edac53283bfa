"""Pulses at a sensor's input that come and go: stamps, position packets and a locked head follow at their rig times."""

from dataclasses import replace

import numpy as np
import pytest

from hilsim.compilation.atomics import publish
from hilsim.emulator.plan import HEARD_ROWS, no_sentences
from hilsim.families.velodyne.protocol.data import DATA_PACKET_DTYPE
from hilsim.families.velodyne.protocol.position import decode_position_packets
from hilsim.sensor.specs import ClockSetting, PulseState
from tests.compiled import compiled_only
from tests.unit.emulator.test_segments import blocks, following, lidar

SECOND_NS = 10**9
UTC_NS = 1_767_229_200 * SECOND_NS - 200_000_000
"""0.2 s before an hour."""
ABSENT, LOCKED = PulseState(pps="absent"), PulseState(pps="locked")
ERROR = PulseState(pps="error")


def pulsed(base, pulse):
    return replace(base, setting=replace(base.setting, pulse=pulse))


def stamped(emulated, start_ns, stop_ns):
    """Rig time of the first firing and stamp of each data packet of a stretch of time."""
    batch = emulated.data_span(start_ns, stop_ns)
    first = emulated.first_data_packet(start_ns)
    packets = np.array([batch.payload[row].copy().view(DATA_PACKET_DTYPE)[0]["timestamp"] for row in range(len(batch.payload))], np.int64)
    return (first + np.arange(packets.size)) * 24 * 55_296, packets


def positions(emulated, start_ns, stop_ns):
    batch = emulated.position_span(start_ns, stop_ns)
    return batch.pose_ns, decode_position_packets(np.ascontiguousarray(batch.payload))


@pytest.mark.extended
@compiled_only
def test_stamps_step_to_utc_at_a_lock_and_count_on_from_there_when_it_ends():
    base = replace(pulsed(lidar(clock=ClockSetting(offset_s=1234.0)), ABSENT), utc_epoch_ns=UTC_NS)
    changing = following(base, (SECOND_NS, pulsed(base, LOCKED)), (2 * SECOND_NS, pulsed(base, ERROR)), (3 * SECOND_NS, pulsed(base, ABSENT)))
    rig_ns, stamps = stamped(changing, 0, 4 * SECOND_NS)
    utc_us = (UTC_NS + rig_ns) // 1000 % 3_600_000_000
    free = rig_ns < SECOND_NS
    assert (stamps[free] == 1_234_000_000 + rig_ns[free] // 1000).all()
    assert (np.abs(stamps[~free] - utc_us[~free]) <= 1).all()  # no oscillator error: what counts on stays right
    times_ns, found = positions(changing, 0, 4 * SECOND_NS)
    state = np.select([times_ns < SECOND_NS, times_ns < 2 * SECOND_NS, times_ns < 3 * SECOND_NS], [0, 2, 3], 0)
    assert (found["pps"] == state).all()
    expected = np.where(times_ns < SECOND_NS, 1_234_000_000 + times_ns // 1000, (UTC_NS + times_ns) // 1000 % 3_600_000_000)
    assert (np.abs(found["timestamp"].astype(np.int64) - expected) <= 1).all()


@compiled_only
def test_a_free_clock_drifts_from_where_its_last_pulse_left_it():
    base = replace(pulsed(lidar(clock=ClockSetting(oscillator_ppm=200.0)), LOCKED), utc_epoch_ns=UTC_NS)
    changing = following(base, (3 * SECOND_NS, pulsed(base, ABSENT)))
    times_ns, found = positions(changing, 7 * SECOND_NS, 9 * SECOND_NS)
    ahead_us = found["timestamp"].astype(np.int64) - (UTC_NS + times_ns) // 1000 % 3_600_000_000
    # The change comes 0.8 s after a pulse, when it is 160 us ahead; from then on it gains 200 us a second.
    assert ahead_us == pytest.approx((times_ns - 3 * SECOND_NS) * 200e-9 + 160, abs=3)


@compiled_only
def test_a_pulse_may_say_another_time_than_the_rig():
    base = replace(pulsed(lidar(), ABSENT), utc_epoch_ns=UTC_NS)
    changing = following(base, (SECOND_NS, pulsed(base, PulseState(pps="locked", utc_epoch_ns=55 * SECOND_NS + 7_000))))
    rig_ns, stamps = stamped(changing, SECOND_NS + 10_000_000, 2 * SECOND_NS)
    assert (stamps == 55_000_000 + (rig_ns + 7_000) // 1000).all()


@compiled_only
def test_a_head_locks_with_its_clock_and_keeps_its_angle_at_every_pulse():
    base = replace(pulsed(lidar(phase_lock_deg=120.0, phase_deg=300.0, clock=ClockSetting(oscillator_ppm=70.0)), ABSENT), utc_epoch_ns=UTC_NS)
    changing = following(base, (SECOND_NS, pulsed(base, LOCKED)))
    for second in range(12, 15):
        pulse_ns = second * SECOND_NS - UTC_NS % SECOND_NS
        batch = changing.data_span(pulse_ns - 5_000_000, pulse_ns + 5_000_000)
        first = changing.first_data_packet(pulse_ns - 5_000_000)
        fired_ns = ((first + np.arange(len(batch.payload)))[:, np.newaxis] * 24 + np.arange(12) * 2).reshape(-1) * 55_296 / (1 + 70e-6)
        azimuth = np.concatenate([blocks(payload)["azimuth"].astype(float) for payload in batch.payload])
        at_pulse_cdeg = np.interp(pulse_ns, fired_ns, np.unwrap(azimuth, period=36_000)) % 36_000
        assert at_pulse_cdeg == pytest.approx(12_000, abs=80)


@compiled_only
def test_position_packets_carry_the_newest_sentence_as_it_came():
    heard = no_sentences(HEARD_ROWS)
    emulated = replace(lidar(), heard=heard)
    sentences = [f"$GPRMC,{second:06d},whatever\r\n".encode() for second in range(20)]
    for number, sentence in enumerate(sentences):
        row = number % HEARD_ROWS
        heard.text[row, : len(sentence)] = bytearray(sentence)
        heard.size[row], heard.at_ns[row] = len(sentence), number * SECOND_NS + 70_900_000
        publish(heard.written, 0, number + 1)
    for second in (15, 18, 19):
        times_ns, found = positions(emulated, second * SECOND_NS + 1_000_000, (second + 1) * SECOND_NS)
        shown = [bytes(row).rstrip(b"\0") for row in found["nmea"]]
        assert shown == [sentences[second if time_ns >= second * SECOND_NS + 70_900_000 else second - 1] for time_ns in times_ns]
    assert not positions(replace(lidar(), heard=no_sentences(HEARD_ROWS)), 0, SECOND_NS)[1]["nmea"].any()
