"""Streams of a limited field of view: the part of the turn without firings is neither a loss, nor a step of the clock, nor a leap of the head."""

import numpy as np
import pytest

import hilsim
from hilsim.api.packet import datagrams_of
from hilsim.families.velodyne.stream import SeenTurn
from hilsim.read.analysis.conformance.checker import StreamChecker
from hilsim.read.analysis.inspection.inspector import Inspector

SCENE = {"box": [{"position_m": [5.0, 0.0, 0.0], "size_m": [1.0, 20.0, 4.0]}]}
VIEWS = [
    ("vlp16", "strongest", 600, (170, 190), 3.0),  # pauses of whole cycles between two packets
    ("vlp16", "dual", 1200, (355, 5), 3.0),
    ("vlp16", "strongest", 300, (10, 60), 3.0),
    ("vlp16", "dual", 300, (0, 4), 3.0),  # several turns in a packet
    ("vlp16", "dual", 600, (0, 4), 3.0),
    ("vlp16", "strongest", 1200, (0, 358), 0.9),  # a gap of one degree
    ("vlp16", "dual", 600, (10, 300), 1.5),
    ("hdl32e", "dual", 1200, (10, 300), 0.75),  # stamps name the last firing
    ("hdl32e", "strongest", 1200, (0, 4), 3.0),
    ("vlp32c", "strongest", 600, (10, 40), 3.0),  # lasers that look aside see parts of the wall at different times
    ("vls128", "strongest", 600, (10, 40), 1.5),
    ("vls128", "strongest", 300, (90, 270), 3.0),  # the rate by two steps a packet
    ("vls128", "last", 1200, (0, 358), 0.75),  # two steps a packet, and a gap of two of them
]
"""In 3 s a narrow view has the packets that rules wait for; a wide one has all 600 of them sooner."""
BANKS_VIEWS = [(90, 270), (0, 358), (10, 300)]
BANKS_AT_RATES = [*zip(BANKS_VIEWS, (300, 600, 1200), strict=True), ((10, 300), 300)]


def limited(profile, mode, rate_rpm, view, duration_s=3.0, unit="ideal"):
    sensor = {"name": "a", "unit": unit, "profile": profile, "return_mode": mode, "rotation_rate_rpm": rate_rpm, "field_of_view_deg": list(view)}
    return list(hilsim.Emulator({"name": "view", "scene": SCENE, "sensor": [sensor]}).packets(0.0, duration_s))


def is_data(packet):
    return len(packet.payload) == 1206


def checked(packets):
    checker = StreamChecker()
    checker.feed(datagrams_of(packets))
    return next(iter(checker.result().sensors))


def inspected(packets):
    inspector = Inspector()
    for datagram in datagrams_of(packets):
        inspector.add(datagram)
    return next(flow.details for flow in inspector.summary().sensors[0].flows if hasattr(flow.details, "missing"))


@pytest.mark.extended
@pytest.mark.parametrize(("profile", "mode", "rate_rpm", "view", "duration_s"), VIEWS)
def test_nothing_is_found_wrong_or_missing(profile, mode, rate_rpm, view, duration_s):
    packets = limited(profile, mode, rate_rpm, view, duration_s)
    result = checked(packets)
    assert [finding for finding in result.findings if finding.rule != "returns.dead_laser"] == []  # some views see no wall
    assert result.summary.lost_packets == 0
    seen = inspected(packets)
    assert (seen.missing.packets, seen.clock.jumps, seen.clock.repeated) == (0, 0, 0)


@pytest.mark.parametrize(("rate_rpm", "view"), [(300, (320, 41)), (600, (350, 10))])
def test_long_pauses_by_a_clock_that_is_137_ppm_off_are_whole_cycles(rate_rpm, view):
    sensor = {
        "name": "a",
        "profile": "vlp16",
        "unit": "ideal",
        "clock": {"stamp_ppm": 137.0},
        "rotation_rate_rpm": rate_rpm,
        "field_of_view_deg": list(view),
    }
    result = checked(list(hilsim.Emulator({"name": "view", "scene": SCENE, "sensor": [sensor]}).packets(0.0, 4.0)))
    assert {finding.rule for finding in result.findings} <= {"time.drift"}
    assert result.summary.lost_packets == 0


@pytest.mark.extended
@pytest.mark.parametrize(("view", "rate_rpm"), BANKS_AT_RATES)
def test_nothing_is_found_wrong_or_missing_where_packets_have_one_azimuth(view, rate_rpm):
    packets = limited("vls128", "dual", rate_rpm, view, 210.0 / rate_rpm)  # three turns and a half
    result = checked(packets)
    assert [finding for finding in result.findings if finding.rule != "returns.dead_laser"] == []
    assert result.summary.lost_packets == 0
    seen = inspected(packets)
    assert (seen.missing.packets, seen.missing.runs, seen.clock.jumps, seen.clock.repeated) == (0, 0, 0, 0)


WANDERING_VIEWS = [
    ("strongest", 1200, (170, 190), 0.65),
    ("strongest", 600, (10, 300), 0.4),
    ("dual", 1200, (0, 4), 0.65),  # fewer packets than its rate is taken over
    ("dual", 300, (170, 190), 0.9),  # short stretches between pauses
    ("dual", 600, (90, 270), 0.35),
]


@pytest.mark.extended
@pytest.mark.parametrize(("mode", "rate_rpm", "view", "duration_s"), WANDERING_VIEWS)
def test_nothing_is_found_wrong_or_missing_where_stamps_wander(mode, rate_rpm, view, duration_s):
    packets = limited("vls128", mode, rate_rpm, view, duration_s, unit="drawn")
    result = checked(packets)
    assert [finding for finding in result.findings if finding.rule != "returns.dead_laser"] == []
    assert result.summary.lost_packets == 0
    seen = inspected(packets)
    assert (seen.missing.packets, seen.clock.jumps, seen.clock.repeated) == (0, 0, 0)


def test_packets_that_are_lost_where_stamps_wander_are_counted():
    packets = limited("vls128", "strongest", 600, (0, 359), 0.5, unit="drawn")
    rows = [row for row, packet in enumerate(packets) if is_data(packet)]
    lost = {*rows[300:303], *rows[900:1400]}
    left = [packet for row, packet in enumerate(packets) if row not in lost]
    assert checked(left).summary.lost_packets == len(lost)
    assert inspected(left).missing.packets == len(lost)


@pytest.mark.parametrize("view", [(0, 359), *BANKS_VIEWS])
def test_packets_that_are_lost_in_the_first_turn_are_counted_where_packets_have_one_azimuth(view):
    packets = limited("vls128", "dual", 1200, view, 0.3)
    data = [packet for packet in packets if is_data(packet)]
    lost = {id(packet) for packet in data[40:60]}  # 8 degrees
    left = [packet for packet in packets if id(packet) not in lost]
    assert checked(left).summary.lost_packets == 20
    assert (inspected(left).missing.packets, inspected(left).missing.runs, inspected(left).missing.longest_run) == (20, 1, 20)


def test_packets_missing_before_the_second_turn_count_as_lost():
    packets = limited("vls128", "dual", 600, (90, 270), 0.16)  # it fires from 25 ms on, and ends inside the second turn
    data = sum(is_data(packet) for packet in packets)
    lost = checked(packets).summary.lost_packets
    assert data + lost == pytest.approx(135e3 / 55.296, abs=2)
    assert inspected(packets).missing.packets == lost > 0


def test_packets_that_are_lost_inside_the_view_are_counted():
    packets = limited("vlp16", "strongest", 600, (100, 260))
    rows = [row for row, packet in enumerate(packets) if is_data(packet)]
    azimuth = np.array([[int.from_bytes(packets[row].payload[at : at + 2], "little") for at in range(2, 1202, 100)] for row in rows])
    whole = np.flatnonzero((azimuth[:, 0] < azimuth[:, -1]) & (np.abs(azimuth.mean(axis=1) - 18_000) < 3000))
    lost = {rows[whole[20]], rows[whole[60]], rows[whole[61]]}
    left = [packet for row, packet in enumerate(packets) if row not in lost]
    assert checked(left).summary.lost_packets == len(lost)
    assert inspected(left).missing.packets == len(lost)


def test_a_degree_is_dark_once_the_head_has_passed_it_twice_without_firing():
    seen = SeenTurn()
    turn = np.arange(9000, 27_000, 40)
    from_cdeg, to_cdeg = np.array([26_960, 26_960, 10_000]), np.array([9000, 12_000, 11_000])
    seen.note(turn[None])
    assert seen.is_dark(from_cdeg, to_cdeg).tolist() == [False, False, False]
    seen.note(np.concatenate((turn, turn, turn))[None])
    assert seen.is_dark(from_cdeg, to_cdeg).tolist() == [True, False, False]
    assert seen.is_dark(np.array([9010, 9080]), np.array([9050, 9110])).tolist() == [False, False]


def test_turns_are_counted_packet_by_packet():
    seen, turn = SeenTurn(), np.arange(9000, 27_000, 40)
    for azimuth in np.tile(turn, 3):
        seen.note(np.array([[azimuth]]))
    assert seen.is_dark(np.array([26_960]), np.array([9000])).tolist() == [True]
