"""Faults of the head, of the clock, and of what comes to the GPS input, as bytes and another parser of sentences show them."""

from datetime import UTC, datetime

import numpy as np
import pynmeagps
import pytest

from tests.unit.faults.rigs import CYCLE_NS, data, positions, records, room, stamps_us

EPOCH = {"transmit": {"epoch_utc": "2026-03-01T11:59:58Z"}}


@pytest.fixture
def both(tmp_path):
    """Payloads of data packets without and with a fault."""

    def made(table, keys="", stop_s=1.5):
        return data(room(tmp_path, keys=keys), stop_s=stop_s), data(room(tmp_path, table, keys=keys), stop_s=stop_s)

    return made


def steps_cdeg(payloads):
    """Steps of the azimuth from block to block."""
    azimuth = records(payloads)[0].reshape(-1)
    return (np.diff(azimuth) + 18_000) % 36_000 - 18_000


def test_a_motor_that_stalls_runs_down_and_stands_while_packets_go_on(both):
    clean, faulty = both({"kind": "motor_stall", "at_s": 0.2, "ramp_s": 0.6})
    assert len(clean) == len(faulty)
    assert np.array_equal(stamps_us(clean), stamps_us(faulty))
    steps = [np.mean(part) for part in np.array_split(steps_cdeg(faulty), 15)]
    assert steps[0] == pytest.approx(39.8, abs=0.2)
    assert np.all(np.diff(steps[2:8]) < 0.0)
    assert steps[5] == pytest.approx(39.8 * 0.42, abs=3.0)  # 0.55 s: 0.35 of 0.6 s
    assert np.abs(steps[9:]).max() < 0.1


def test_a_head_that_stands_sees_one_direction(both):
    _, faulty = both({"kind": "motor_stall", "ramp_s": 0.0}, keys='clock = { sync = "free" }')
    _, distance, _ = records(faulty[200:])
    walls = distance[:, :, :, 15][distance[:, :, :, 15] > 0]
    assert walls.size == 0 or np.ptp(walls) < 0.3
    lower = distance[:, :, :, 0]
    assert np.ptp(lower[lower > 0]) < 0.3


def test_a_head_spins_up(both):
    _, faulty = both({"kind": "spin_up", "for_s": 1.0, "ramp_out_s": 1.0})
    steps = [np.mean(part) for part in np.array_split(steps_cdeg(faulty), 15)]
    assert np.all(np.diff(steps[:9]) > 0.0)
    assert steps[0] < 3.0
    assert steps[12:] == pytest.approx([39.8] * 3, abs=0.3)


@pytest.mark.parametrize(("table", "step"), [({"kind": "wrong_rate", "too_fast": 0.05}, 41.8), ({"kind": "lock_lost", "drift_dps": 36.0}, 40.2)])
def test_a_head_out_of_control_turns_at_another_rate(both, table, step):
    clean, faulty = both(table)
    assert np.mean(steps_cdeg(clean)) == pytest.approx(39.8, abs=0.1)
    assert np.mean(steps_cdeg(faulty)) == pytest.approx(step, abs=0.1)


def test_a_phase_that_slips_is_where_it_is_not_locked(both):
    clean, faulty = (records(payloads)[0] for payloads in both({"kind": "lock_lost", "slip_deg": 90.0, "at_s": 0.5}))
    before, after = slice(0, 370), slice(380, None)
    assert np.array_equal(clean[before], faulty[before])
    off = (faulty[after] - clean[after]) % 36_000
    assert np.abs(off - 9_000).max() <= 1


@pytest.mark.parametrize(
    ("table", "error_us"),
    [
        ({"kind": "clock_jump", "jump_s": 0.25, "at_s": 0.5}, lambda since_s: 250_000 * (since_s >= 0)),
        ({"kind": "leap_second", "at_s": 0.5}, lambda since_s: -1_000_000 * (since_s >= 0)),
        ({"kind": "clock_drift", "drift_ppm": 1000.0, "at_s": 0.5}, lambda since_s: 1000.0 * np.maximum(since_s, 0.0)),
        ({"kind": "pps_absent", "drift_ppm": 1000.0, "at_s": 0.5}, lambda since_s: 1000.0 * np.maximum(since_s, 0.0)),
    ],
)
def test_stamps_are_off_by_what_the_fault_says(both, table, error_us):
    clean, faulty = (stamps_us(payloads) for payloads in both(table))
    off = (faulty - clean + 1_800_000_000) % 3_600_000_000 - 1_800_000_000
    since_s = np.arange(off.size) * CYCLE_NS / 1e9 - 0.5
    settled = np.abs(since_s) > 0.003
    assert np.abs(off - error_us(since_s))[settled].max() < 4.0


@pytest.mark.extended
def test_edges_of_a_noisy_pulse_move_stamps_second_by_second(both):
    clean, faulty = (stamps_us(payloads) for payloads in both({"kind": "pps_noisy", "jitter_s": 0.01}, stop_s=20.0))
    second = clean // 1_000_000
    off = (faulty - clean + 1_800_000_000) % 3_600_000_000 - 1_800_000_000
    of_second = [off[second == each] for each in np.unique(second)]
    assert all(np.ptp(each) <= 1 for each in of_second)
    assert np.std([each[0] for each in of_second]) == pytest.approx(10_000, rel=0.5)


def test_a_second_edge_begins_the_second_again(both):
    clean, faulty = (stamps_us(payloads) for payloads in both({"kind": "pps_doubled"}, stop_s=3.0))
    off = clean - faulty
    second = clean // 1_000_000
    for each in np.unique(second)[:-1]:
        edges = np.unique(off[second == each])
        assert edges[0] == 0
        assert len(edges) <= 3  # nothing until the edge, its place from there on
        assert 0 < edges[-1] < 1_000_000


def test_stamps_that_do_not_begin_again_at_the_hour_count_on(tmp_path):
    emulators = [room(tmp_path, *tables) for tables in ((), ({"kind": "hour_overflow"},))]
    for each in emulators:
        each._utc_epoch_ns = 1_772_366_399 * 10**9
    clean, faulty = (stamps_us(data(each, stop_s=2.0)) for each in emulators)
    assert clean.min() < 1_000_000
    assert clean.max() > 3_599_000_000
    passed = clean < 1_800_000_000
    assert np.array_equal(faulty[passed], clean[passed] + 3_600_000_000)
    assert np.array_equal(faulty[~passed], clean[~passed])


def sentence_of(payload):
    return payload[206:].split(b"\r\n")[0]


def received(tmp_path, table, stop_s=3.0):
    payloads = positions(room(tmp_path, table), stop_s=stop_s)
    return [sentence_of(payload) for payload in payloads], [payload[202] for payload in payloads]


@pytest.mark.parametrize(("kind", "state"), [("pps_absent", 0), ("pps_error", 3)])
def test_position_packets_report_the_pulse(tmp_path, kind, state):
    _, states = received(tmp_path, {"kind": kind, "at_s": 1.0, "for_s": 1.0})
    third = len(states) // 3
    assert set(states[5 : third - 5]) == {2}
    assert set(states[third + 5 : 2 * third - 5]) == {state}
    assert set(states[2 * third + 5 :]) == {2}


def test_a_missing_sentence_is_an_empty_field(tmp_path):
    sentences, _ = received(tmp_path, {"kind": "nmea_missing"})
    assert len(sentences) > 100
    assert all(not each.strip(b"\0") for each in sentences)


def test_an_invalid_sentence_has_a_right_checksum_and_no_fix(tmp_path):
    sentences, _ = received(tmp_path, {"kind": "nmea_invalid"})
    parsed = [pynmeagps.NMEAReader.parse(each + b"\r\n") for each in set(sentences)]
    assert {each.status for each in parsed} == {"V"}


@pytest.mark.parametrize(
    ("table", "seconds"), [({"kind": "nmea_wrong_second", "seconds_by": -1.0}, -1), ({"kind": "nmea_wrong_second", "seconds_by": 5.0}, 5)]
)
def test_a_wrong_sentence_names_another_second(tmp_path, table, seconds):
    clean, faulty = (received(tmp_path, each)[0] for each in ({"kind": "pps_error"}, table))
    assert {named(two) - named(one) for one, two in zip(clean, faulty, strict=True)} == {seconds}


def named(sentence):
    """Second that a sentence names, by pynmeagps."""
    parsed = pynmeagps.NMEAReader.parse(sentence + b"\r\n")
    return datetime.combine(parsed.date, parsed.time, UTC).timestamp()


def test_a_late_sentence_names_the_second_before_for_longer(tmp_path):
    clean, faulty = (received(tmp_path, each)[0] for each in ({"kind": "pps_error"}, {"kind": "nmea_late", "delay_s": 0.5}))
    behind = [named(one) - named(two) for one, two in zip(clean, faulty, strict=True)]
    assert set(behind) == {0, 1}
    assert np.mean(behind) == pytest.approx(0.5, abs=0.05)


def test_a_garbled_sentence_has_a_wrong_checksum(tmp_path):
    sentences, _ = received(tmp_path, {"kind": "nmea_garbled", "share": 0.2})
    refused = 0
    for each in set(sentences):
        try:
            pynmeagps.NMEAReader.parse(each + b"\r\n", validate=pynmeagps.VALCKSUM)
        except (pynmeagps.NMEAParseError, pynmeagps.NMEAMessageError, pynmeagps.NMEATypeError):
            refused += 1
    assert refused == len(set(sentences)) >= 3


def test_position_packets_report_a_thermal_shutdown(tmp_path):
    payloads = positions(room(tmp_path, {"kind": "overheated", "temperature_c": 91, "at_s": 0.5}), stop_s=1.0)
    states = [(payload[203], payload[204]) for payload in payloads]
    assert set(states[:60]) == {(0, 0)}
    assert set(states[80:]) == {(1, 91)}


def test_an_overheated_sensor_sends_no_data_until_the_fault_ends(tmp_path):
    fault = {"kind": "overheated", "at_s": 0.5, "for_s": 0.3}
    clean, faulty = (list(room(tmp_path, *tables).packets(0.0, 1.0)) for tables in ((), (fault,)))
    kept = [packet for packet in clean if packet.stream == "position" or not 0.5 <= packet.time_ns / 1e9 < 0.8]
    assert [packet.time_ns / 1e9 for packet in faulty] == [packet.time_ns / 1e9 for packet in kept]
    assert [packet.payload for packet in faulty if packet.stream == "data"] == [packet.payload for packet in kept if packet.stream == "data"]


def test_after_a_brown_out_the_clock_counts_from_power_up_without_the_pulse(tmp_path):
    fault = {"kind": "brown_out", "at_s": 0.5, "off_ms": 200.0, "down_ms": 300.0, "for_s": 1.0, "drift_ppm": 1000.0}
    clean, faulty = (list(room(tmp_path, *tables, keys="").packets(0.0, 2.0)) for tables in ((), (fault,)))
    assert [packet.time_ns / 1e9 for packet in faulty] == [packet.time_ns / 1e9 for packet in clean if not 0.5 <= packet.time_ns / 1e9 < 0.8]
    assert {packet.payload for packet in faulty if not 0.499 < packet.time_ns / 1e9 < 1.504} == {
        packet.payload for packet in clean if not 0.499 < packet.time_ns / 1e9 < 1.504
    }
    broken = [packet for packet in faulty if packet.stream == "data" and 0.81 < packet.time_ns / 1e9 < 1.49]
    counted, since = stamps_us([packet.payload for packet in broken]), np.array([packet.time_ns / 1e3 - 700_000 for packet in broken])
    assert counted[0] == pytest.approx(since[0], abs=3000)
    assert np.polyfit(since, counted, 1)[0] == pytest.approx(1.001, abs=1e-4)
    states = {packet.payload[202] for packet in faulty if packet.stream == "position" and 0.81 < packet.time_ns / 1e9 < 1.49}
    assert states == {1}
