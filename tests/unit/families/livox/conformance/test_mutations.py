"""What no Livox sends is noticed, each fault by its own rule; a clean stream has no finding."""

import struct
from dataclasses import replace

import numpy as np
import pytest

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.livox.protocol.commands import Command, ControlFrame, encode_frame
from hilsim.families.livox.setting import LivoxSetting
from hilsim.read.analysis.conformance.checker import StreamChecker
from hilsim.read.analysis.conformance.findings import Severity
from hilsim.read.analysis.conformance.report import render_text
from hilsim.sensor.setup import ClockSetting
from tests.compiled import compiled_only
from tests.livox_sensors import mid360
from tests.livox_units import counted_keys
from tests.unit.families.livox.conformance.streams import EPOCH_NS, S, datagrams, pushes, room

pytestmark = compiled_only
POINTS, IMU, PUSH = 56_300, 56_400, 56_200
MIDDLE = 700
HEADER, POINT = 36, 14


class Verdict:
    """Rule ids by severity."""

    def __init__(self, sent):
        checker = StreamChecker()
        checker.feed(sent if sent and isinstance(sent[0], CapturedDatagram) else datagrams(sent))
        self.result = checker.result()
        told = [*self.result.findings, *(finding for sensor in self.result.sensors for finding in sensor.findings)]
        self.told = [finding for finding in told if finding.severity is not Severity.NOTE]
        self.rules = {finding.rule for finding in self.told}

    @property
    def summary(self):
        return self.result.sensors[0].summary


@pytest.fixture(scope="module")
def clean():
    return tuple(room(0.62))


def rows(sent, port):
    return [row for row, one in enumerate(sent) if one.port == port]


def one_of(sent, change, port=POINTS, packet=MIDDLE):
    """One packet changed."""
    row = rows(sent, port)[packet]
    return [*sent[:row], change(sent[row]), *sent[row + 1 :]]


def with_bytes(at, form, *values, port=POINTS, packet=MIDDLE):
    return lambda sent: one_of(sent, lambda one: one.with_bytes(at, form, *values), port, packet)


def each(change, port=POINTS, since=0):
    """All packets of a port from one on changed by a function of packet and number."""

    def changed(sent):
        places = {row: number for number, row in enumerate(rows(sent, port)) if number >= since}
        return [change(one, places[row]) if row in places else one for row, one in enumerate(sent)]

    return changed


def number_of(one):
    return struct.unpack_from("<H", one.payload, 7)[0]


def stamp_of(one):
    return struct.unpack_from("<Q", one.payload, 28)[0]


def mirrored(one, _number):
    """A head that turns the other way."""
    points = np.frombuffer(one.payload[HEADER:], [("x", "<i4"), ("y", "<i4"), ("rest", "V6")]).copy()
    points["y"] = -points["y"]
    return one.with_bytes(HEADER, f"{len(points) * POINT}s", points.tobytes())


def line_by_line(one, _number):
    """Lines one after the other, as if they did not fire together."""
    points = np.frombuffer(one.payload[HEADER:], f"V{POINT}").reshape(-1, 4).T.copy()
    return one.with_bytes(HEADER, f"{96 * POINT}s", points.tobytes())


def looped(sent):
    """Points of the first 144 ms again and again."""
    places = rows(sent, POINTS)
    changed = list(sent)
    for number, row in enumerate(places):
        changed[row] = sent[row].with_bytes(HEADER, f"{96 * POINT}s", sent[places[number % 300]].payload[HEADER:])
    return changed


def in_metres_a_second_squared(one, _number):
    force = np.frombuffer(one.payload[48:60], "<f4") * 9.80665
    return one.with_bytes(48, "<3f", *force.tolist())


def swapped(sent):
    first, second = rows(sent, POINTS)[MIDDLE : MIDDLE + 2]
    changed = list(sent)
    changed[first], changed[second] = replace(sent[second], host_ns=sent[first].host_ns), replace(sent[first], host_ns=sent[second].host_ns)
    return changed


def without(sent, *packets):
    gone = {rows(sent, POINTS)[packet] for packet in packets}
    return [one for row, one in enumerate(sent) if row not in gone]


FAULTS = {
    "livox.form, version": ("livox.form", with_bytes(0, "<B", 1)),
    "livox.form, length": ("livox.form", with_bytes(1, "<H", 1379)),
    "livox.form, a point short": ("livox.form", lambda s: one_of(s, lambda one: replace(one, payload=one.payload[:-14]))),
    "livox.form, header cut": ("livox.form", lambda s: one_of(s, lambda one: replace(one, payload=one.payload[:20]))),
    "livox.form, no points": ("livox.form", with_bytes(5, "<H", 0)),
    "livox.form, two returns": ("livox.form", with_bytes(10, "<B", 0x11)),
    "livox.form, source of time": ("livox.form", with_bytes(11, "<B", 3)),
    "livox.form, type without its length": ("livox.form", with_bytes(10, "<B", 3)),
    "livox.crc, zero": ("livox.crc", lambda s: one_of(s, lambda one: replace(one, payload=one.payload[:24] + bytes(4) + one.payload[28:]))),
    "livox.crc, a bit of a point": ("livox.crc", lambda s: one_of(s, lambda one: replace(one, payload=one.payload[:-1] + b"\1"))),
    "livox.crc, IMU": ("livox.crc", lambda s: one_of(s, lambda one: replace(one, payload=one.payload[:-1] + b"\1"), IMU, 50)),
    "livox.count": (
        "livox.count",
        lambda s: one_of(s, lambda one: replace(one, payload=one.payload[:-14]).with_bytes(1, "<HHH", 1366, 4750, 95)),
    ),
    "livox.interval, 4800": ("livox.interval", with_bytes(3, "<H", 4800)),
    "livox.interval, none": ("livox.interval", with_bytes(3, "<H", 0)),
    "livox.interval, IMU": ("livox.interval", with_bytes(3, "<H", 50, port=IMU, packet=50)),
    "livox.step, points of 4800": ("livox.step", each(lambda one, _: one.with_bytes(3, "<H", 4800))),
    "livox.frame": ("livox.frame", with_bytes(9, "<B", 1)),
    "livox.reserved": ("livox.reserved", with_bytes(12, "<B", 7)),
    "livox.time_type": ("livox.time_type", each(lambda one, _: one.with_bytes(11, "<B", 1), since=MIDDLE)),
    "livox.number, two at once": ("livox.number", each(lambda one, _: one.with_bytes(7, "<H", number_of(one) + 1), since=MIDDLE)),
    "livox.number, always 0": ("livox.order", each(lambda one, _: one.with_bytes(7, "<H", 0))),
    "livox.number, one for both flows": ("livox.number", each(lambda one, n: one.with_bytes(7, "<H", n * 11 % 60_000), port=IMU)),
    "livox.order, exchanged": ("livox.order", swapped),
    "livox.order, twice": ("livox.order", lambda s: [one for row, one in enumerate(s) for _ in range(1 + (row == rows(s, POINTS)[MIDDLE]))]),
    "livox.lost": ("livox.lost", lambda s: without(s, MIDDLE, MIDDLE + 1, MIDDLE + 40)),
    "livox.step, of the last point": ("livox.step", with_bytes(28, "<Q", MIDDLE * 480_000 + 475_000)),
    "livox.step, milliseconds": ("livox.step", each(lambda one, _: one.with_bytes(28, "<Q", stamp_of(one) // 1_000_000 * 1_000_000 + 500_000))),
    "livox.step, IMU at 100 Hz": ("livox.number", each(lambda one, n: one.with_bytes(28, "<Q", n * 10_000_000), port=IMU)),
    "livox.clock, 1970 without a source": ("livox.clock", each(lambda one, _: one.with_bytes(28, "<Q", EPOCH_NS + stamp_of(one)))),
    "livox.clock, power-up with a source": ("livox.clock", each(lambda one, _: one.with_bytes(11, "<B", 1))),
    "livox.burst": ("livox.burst", lambda s: [replace(one, host_ns=one.host_ns // 4_800_000 * 4_800_000 + row) for row, one in enumerate(s)]),
    "livox.tick": ("livox.tick", each(lambda one, n: replace(one, host_ns=one.host_ns + (n % 2) * 300_000 + 1))),
    "livox.rate": ("livox.rate", lambda s: [replace(one, host_ns=EPOCH_NS + (one.host_ns - EPOCH_NS) * 101 // 100) for one in s]),
    "livox.port": ("livox.port", lambda s: [replace(one, port=50_000) if one.port == POINTS else one for one in s]),
    "livox.port, IMU from that of points": ("livox.port", lambda s: one_of(s, lambda one: replace(one, port=POINTS), IMU, 50)),
    "livox.range": ("livox.range", with_bytes(HEADER, "<i", 900_000)),
    "livox.tag, confidence 3": ("livox.tag", with_bytes(HEADER + 13, "<B", 0b1100)),
    "livox.tag, reserved bits": ("livox.tag", with_bytes(HEADER + 13, "<B", 0x40)),
    "livox.zero": ("livox.zero", with_bytes(HEADER, "<iiiB", 0, 0, 0, 9)),
    "livox.empty": ("livox.empty", each(lambda one, _: one.with_bytes(HEADER, f"{96 * POINT}s", bytes(96 * POINT)))),
    "livox.pattern, the other way round": ("livox.pattern", each(mirrored)),
    "livox.pattern, line by line": ("livox.pattern", each(line_by_line)),
    "livox.repeats": ("livox.repeats", looped),
    "livox.imu_values": ("livox.imu_values", with_bytes(36, "<f", float("nan"), port=IMU, packet=50)),
    "livox.gravity": ("livox.gravity", each(in_metres_a_second_squared, port=IMU)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_by_its_rule(name, clean):
    rule, fault = FAULTS[name]
    assert rule in Verdict(fault(list(clean))).rules


@pytest.mark.parametrize("data_type", [1, 2, 3])
@pytest.mark.parametrize("clock", [{}, {"clock": ClockSetting(sync="pps")}], ids=["alone", "PTP"])
def test_our_own_stream_has_no_finding(data_type, clock):
    verdict = Verdict(sorted([*room(0.62, livox=LivoxSetting(pcl_data_type=data_type), **clock), *pushes(1)], key=lambda one: one.host_ns))
    assert verdict.told == []
    summary = verdict.summary
    assert (summary.point_packets, summary.imu_packets, summary.push_messages, summary.serial) == (1291, 124, 1, "47MDK000000001")
    assert (summary.data_types, summary.time_types, summary.lost_packets) == ((data_type,), (int(bool(clock)),), 0)
    assert summary.return_ratio == 1.0
    assert summary.pattern_rms_deg < (0.05 if data_type != 2 else 0.15)
    assert summary.gravity_g == pytest.approx(1.0, abs=1e-3)
    assert render_text(verdict.result)[1].endswith("packets   1291 points, 124 IMU, 1 push, 0 lost")


@pytest.mark.extended
def test_a_hap_s_stream_has_no_finding():
    sent = room(0.6, (57_000, 58_000), spec=mid360("hap", range_noise_m=0.0))
    verdict = Verdict(sent)
    assert verdict.told == []
    assert (verdict.summary.point_packets, verdict.summary.imu_packets, verdict.summary.lost_packets) == (2824, 120, 0)
    assert verdict.summary.pattern_rms_deg < 0.05
    assert Verdict([mirrored(one, 0) if one.port == 57_000 else one for one in sent[:60]]).rules == {"livox.pattern"}


def test_angles_of_type_3_are_bounded():
    sent = room(0.01, livox=LivoxSetting(pcl_data_type=3))
    for at, value in ((40, 18_001), (42, 36_001)):
        assert "livox.angles" in Verdict(with_bytes(at, "<H", value, packet=5)(sent)).rules


SAID = {
    "livox.control, CRC-16": ("livox.control", lambda one: replace(one, payload=one.payload[:18] + b"\0\0" + one.payload[20:])),
    "livox.control, CRC-32": ("livox.control", lambda one: replace(one, payload=one.payload[:-1] + b"\7")),
    "livox.control, an answer": ("livox.control", lambda one: one.with_frame(10, "<B", 1)),
    "livox.control, from a host": ("livox.control", lambda one: one.with_frame(11, "<B", 0)),
    "livox.push, a key more": ("livox.push", lambda one: one.with_frame(24, "<H", 40)),
    "livox.key": ("livox.key", lambda one: one.with_frame(28, "<H", 0x0012)),
    "livox.push_number": ("livox.push_number", lambda one: one.with_frame(4, "<I", 99)),
}


@pytest.mark.parametrize("name", SAID)
def test_each_fault_of_a_push_message_is_found_by_its_rule(name):
    rule, fault = SAID[name]
    sent = pushes(4)
    assert Verdict(sent).told == []
    assert rule in Verdict([*sent[:2], fault(sent[2]), *sent[3:]]).rules


def test_push_messages_come_once_a_second_from_one_unit():
    sent = pushes(8)
    assert "livox.push_period" in Verdict([replace(one, host_ns=EPOCH_NS + number * S // 10) for number, one in enumerate(sent)]).rules
    at = sent[0].payload.index(b"47MDK000000001")
    assert "livox.serial" in Verdict([sent[0], sent[1].with_frame(at, "<c", b"8")]).rules


def test_data_come_in_the_work_state_that_the_sensor_says(clean):
    def with_push(work):
        return Verdict(sorted([*clean, *pushes(1, work)], key=lambda one: one.host_ns)).rules

    assert with_push(1) == set()
    assert with_push(2) == {"livox.state"}
    assert "livox.state" in Verdict([pushes(1)[0].with_frame(pushes(1)[0].payload.index(b"\x06\x80\x01\x00") + 4, "<B", 7)]).rules


def test_a_host_s_requests_are_no_sensor_s():
    request = encode_frame(ControlFrame(command=Command.QUERY, sequence=1, data=counted_keys([0x8010])))
    host = CapturedDatagram(EPOCH_NS, "192.168.1.5", 56_101, "192.168.1.103", 56_100, request, None, is_ethernet=False, frame=1)
    result = Verdict([host, *datagrams(pushes(2))]).result
    assert ([sensor.source for sensor in result.sensors], result.strangers) == (["192.168.1.103"], 1)
    assert {finding.rule for sensor in result.sensors for finding in sensor.findings} == {"livox.no_points"}


@pytest.mark.extended
def test_our_own_stream_has_no_finding_in_a_minute():
    assert Verdict(sorted([*room(60.0), *pushes(60)], key=lambda one: one.host_ns)).told == []
