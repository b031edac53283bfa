"""What no Hesai sends is noticed, each fault by its own rule; clean streams and recordings have no finding."""

import struct
from dataclasses import replace

import numpy as np
import pytest

from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.pcap import CaptureFile
from hilsim.families.hesai.protocol.points import BY_SIZE
from hilsim.families.hesai.setting import HesaiSetting
from hilsim.read.analysis.conformance.checker import StreamChecker
from hilsim.read.analysis.conformance.findings import Severity
from hilsim.read.analysis.conformance.report import render_text
from hilsim.sensor.specs import ClockSetting
from hilsim.world.geometry.poses import Pose
from hilsim.world.scene.materials import Material
from hilsim.world.scene.primitives import box
from hilsim.world.scene.world import SceneObject
from tests.compiled import compiled_only
from tests.hesai_sensors import hesai, in_room

pytestmark = compiled_only
EPOCH_NS, MIDDLE = 1_767_229_200_000_000_000, 300
POST = SceneObject(mesh=box((0.2, 0.2, 3.0), Material(name="post", reflectivity=90)), placement=Pose(position_m=(3.0, 0.5, -0.5)))
US, NUMBER, SECOND, STATUS, MODE = -9, -4, -10, -28, -18
"""Fields of an XT from its end."""


class Verdict:
    """Rule ids of a stream."""

    def __init__(self, sent):
        checker = StreamChecker()
        checker.feed(sent)
        self.result = checker.result()
        told = [*self.result.findings, *(finding for sensor in self.result.sensors for finding in sensor.findings)]
        self.told = [finding for finding in told if finding.severity is not Severity.NOTE]
        self.rules = {finding.rule for finding in self.told}


def stream(model, packets=600, spec=None, **setup):
    lidar = in_room(spec=spec or hesai(model), objects=[POST], is_exact=False, sub_rays=19, **setup)
    batch = lidar.data_packets(0, packets)
    rows = zip(batch.deadline_ns.tolist(), batch.payload[:, : lidar.plan.data_size], strict=True)
    return [
        CapturedDatagram(EPOCH_NS + due, "192.168.1.201", 10_000, "192.168.1.5", 2368, row.tobytes(), None, is_ethernet=False, frame=number)
        for number, (due, row) in enumerate(rows, 1)
    ]


@pytest.fixture(scope="module")
def clean():
    """An XT32 in dual mode, and a Pandar40P."""
    return {"xt": stream("xt32", return_mode="dual"), "40": stream("pandar40p", return_mode="dual")}


def changed(one, at, form, *values):
    data, payload = struct.pack(form, *values), one.payload
    at = at % len(payload)
    return replace(one, payload=payload[:at] + data + payload[at + len(data) :])


def with_bytes(at, form, *values, packet=MIDDLE):
    """One packet changed."""
    return lambda sent: [*sent[:packet], changed(sent[packet], at, form, *values), *sent[packet + 1 :]]


def each(change, since=0):
    return lambda sent: [one if number < since else change(one, number) for number, one in enumerate(sent)]


def of(one, at, form):
    return struct.unpack_from(form, one.payload, at % len(one.payload))[0]


def later(us):
    """Stamps from the middle on later or earlier by some microseconds."""

    def change(one, _number):
        second, at_us = divmod(of(one, US, "<I") + us, 1_000_000)
        return changed(changed(one, US, "<I", at_us), SECOND, "<B", of(one, SECOND, "<B") + second)

    return each(change, since=MIDDLE)


def azimuths(function):
    """Azimuths of all packets by a function of azimuth, block and number of the packet."""

    def change(one, number):
        packet = np.frombuffer(one.payload, BY_SIZE[len(one.payload)][1]).copy()
        blocks = packet["blocks"]["azimuth"]
        blocks[0] = [function(int(azimuth), block, number) % 65_536 for block, azimuth in enumerate(blocks[0])]
        return replace(one, payload=packet.tobytes())

    return each(change)


def apart(sent):
    """Each second return two metres behind the first."""
    packets = [np.frombuffer(one.payload, BY_SIZE[len(one.payload)][1]).copy() for one in sent]
    for packet in packets:
        packet["blocks"]["units"]["distance"][:, 1::2] += 500
    return [replace(one, payload=packet.tobytes()) for one, packet in zip(sent, packets, strict=True)]


def in_turns(sent):
    """Blocks of pairs exchanged for each second channel."""

    def change(one, _number):
        packet = np.frombuffer(one.payload, BY_SIZE[len(one.payload)][1]).copy()
        units = packet["blocks"]["units"]
        units[:, ::2, ::2], units[:, 1::2, ::2] = units[:, 1::2, ::2].copy(), units[:, ::2, ::2].copy()
        return replace(one, payload=packet.tobytes())

    return each(change)(sent)


def empty(sent):
    packets = [np.frombuffer(one.payload, BY_SIZE[len(one.payload)][1]).copy() for one in sent]
    for packet in packets:
        packet["blocks"]["units"]["distance"] = packet["blocks"]["units"]["reflectivity"] = 0
    return [replace(one, payload=packet.tobytes()) for one, packet in zip(sent, packets, strict=True)]


BLOCK = 2 + 4 * 32
FAULTS = {
    "form, start": ("hesai.form", "xt", with_bytes(1, "<B", 0xFE)),
    "form, version": ("hesai.form", "xt", with_bytes(2, "<B", 5)),
    "form, lasers": ("hesai.form", "xt", with_bytes(6, "<B", 31)),
    "form, unit of distance": ("hesai.form", "xt", with_bytes(9, "<B", 2)),
    "form, not numbered": ("hesai.form", "xt", with_bytes(11, "<B", 0)),
    "form, factory": ("hesai.form", "xt", with_bytes(-5, "<B", 0x37)),
    "form, no mode": ("hesai.form", "xt", with_bytes(MODE, "<B", 0)),
    "form, a byte short": ("hesai.form", "xt", lambda s: [*s[:9], replace(s[9], payload=s[9].payload[:-1]), *s[10:]]),
    "form, mark of a block": ("hesai.form", "40", with_bytes(124 * 3, "<B", 0xEE)),
    "header, returns": ("hesai.header", "xt", with_bytes(10, "<B", 1)),
    "header, first return": ("hesai.header", "xt", with_bytes(8, "<B", 0)),
    "header, reserved": ("hesai.header", "xt", with_bytes(4, "<B", 1)),
    "mode, first of a 40P": ("hesai.mode", "40", with_bytes(-8, "<B", 0x33)),
    "header, single mode of pairs": ("hesai.header", "xt", with_bytes(MODE, "<B", 0x38)),
    "unit, zero": ("hesai.unit", "xt", with_bytes(12 + 2 + 3, "<B", 0)),
    "pair": ("hesai.pair", "xt", with_bytes(12 + BLOCK, "<H", 18 * 99)),
    "half": ("hesai.half", "xt", with_bytes(12 + BLOCK + 2, "<HB", 0, 0)),
    "order": ("hesai.order", "xt", in_turns),
    "copies": ("hesai.copies", "xt", apart),
    "zero": ("hesai.zero", "xt", with_bytes(12 + 2, "<HB", 0, 77)),
    "near": ("hesai.near", "40", with_bytes(4, "<H", 74)),
    "empty": ("hesai.empty", "xt", lambda s: empty([*s, *s])),
    "azimuth": ("hesai.azimuth", "40", with_bytes(2, "<H", 36_000)),
    "grid, jitter": ("hesai.grid", "xt", azimuths(lambda azimuth, block, number: azimuth + (block // 2 * 7 + number) % 3 - 1)),
    "grid, off zero": ("hesai.grid", "xt", azimuths(lambda azimuth, _block, _number: (azimuth + 5) % 36_000)),
    "grid, the other way round": ("hesai.grid", "xt", azimuths(lambda azimuth, _block, _number: (36_000 - azimuth) % 36_000)),
    "grid, twice as fast": ("hesai.grid", "40", azimuths(lambda azimuth, _block, _number: azimuth * 2 % 36_000)),
    "motion, a head that stands": ("hesai.motion", "xt", azimuths(lambda _azimuth, block, _number: 18 * (block // 2))),
    "motion, a leap": ("hesai.motion", "xt", azimuths(lambda azimuth, _block, number: (azimuth + 180 * (number >= MIDDLE)) % 36_000)),
    "motion, a leap of a 40P": ("hesai.motion", "40", azimuths(lambda azimuth, _block, number: (azimuth + 100 * (number >= MIDDLE)) % 36_000)),
    "status, constant": ("hesai.status", "xt", with_bytes(STATUS, "<B", 9)),
    "status, unknown identity": ("hesai.status", "40", with_bytes(1240 + 2, "<B", 23)),
    "status, out of turn": ("hesai.status", "40", with_bytes(1240 + 2, "<B", 22, packet=1)),
    "status, reserved": ("hesai.status", "40", with_bytes(1240 + 3, "<B", 0)),
    "tail, shutdown": ("hesai.tail", "xt", with_bytes(-19, "<B", 2)),
    "tail, error": ("hesai.tail", "40", with_bytes(1240 + 6, "<H", 3)),
    "speed": ("hesai.speed", "xt", with_bytes(-17, "<H", 700)),
    "date, month": ("hesai.date", "xt", with_bytes(-14, "<B", 13)),
    "date, second": ("hesai.date", "xt", with_bytes(SECOND, "<B", 60)),
    "date, 1970": ("hesai.date", "xt", each(lambda one, _: changed(one, -15, "<B", 70))),
    "date, microseconds": ("hesai.date", "xt", with_bytes(US, "<I", 1_000_001)),
    "changed": ("hesai.changed", "xt", each(lambda one, _: changed(one, MODE, "<B", 0x3B), since=MIDDLE)),
    "number, twice": ("hesai.number", "xt", lambda s: [*s[: MIDDLE + 1], *s[MIDDLE:]]),
    "number, always one": ("hesai.number", "xt", each(lambda one, _: changed(one, NUMBER, "<I", 1))),
    "number, back": ("hesai.number", "xt", lambda s: [*s[:MIDDLE], s[MIDDLE + 1], s[MIDDLE], *s[MIDDLE + 2 :]]),
    "lost": ("hesai.lost", "xt", lambda s: [*s[:MIDDLE], *s[MIDDLE + 3 :]]),
    "lost, of a 40P": ("hesai.lost", "40", lambda s: [*s[:MIDDLE], *s[MIDDLE + 3 :]]),
    "step, big-endian": ("hesai.step", "xt", with_bytes(US, ">I", 77)),
    "step, late": ("hesai.step", "xt", later(50)),
    "step, early": ("hesai.step", "xt", later(-50)),
    "step, milliseconds": ("hesai.step", "xt", each(lambda one, _: changed(one, US, "<I", of(one, US, "<I") // 1000 * 1000))),
    "step, second without microseconds": ("hesai.step", "xt", each(lambda one, _: changed(one, SECOND, "<B", 5), since=MIDDLE)),
    "burst": (
        "hesai.burst",
        "xt",
        lambda s: [replace(one, host_stamp_ns=one.host_stamp_ns // 2_000_000 * 2_000_000 + number) for number, one in enumerate(s)],
    ),
    "tick": ("hesai.tick", "xt", each(lambda one, number: replace(one, host_stamp_ns=one.host_stamp_ns + number % 2 * 120_000 + 1))),
    "rate": ("hesai.rate", "xt", lambda s: [replace(one, host_stamp_ns=EPOCH_NS + (one.host_stamp_ns - EPOCH_NS) * 101 // 100) for one in s]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_by_its_rule(name, clean):
    rule, kind, fault = FAULTS[name]
    assert rule in Verdict(fault(list(clean[kind]))).rules


@pytest.mark.parametrize(
    ("model", "setup"),
    [
        ("xt32", {"return_mode": "dual"}),
        ("xt32", {"unit": "drawn", "clock": ClockSetting(sync="pps")}),
        ("xt32", {"unit": "drawn", "field_of_view_deg": (350, 20)}),
        ("xt16", {"return_mode": "dual", "rotation_rate_rpm": 300, "hesai": HesaiSetting(pair="first_strongest")}),
        ("xt32m", {"return_mode": "dual", "rotation_rate_rpm": 1200, "unit": "drawn"}),
        ("qt64", {"return_mode": "dual", "unit": "drawn"}),
        ("pandar40p", {"return_mode": "dual", "unit": "drawn"}),
        ("pandar40p", {"rotation_rate_rpm": 1200, "unit": "drawn"}),
        ("pandar64", {"return_mode": "dual", "unit": "drawn"}),
        ("pandar64", {"return_mode": "last", "rotation_rate_rpm": 300}),
    ],
)
def test_our_own_stream_has_no_finding(model, setup):
    verdict = Verdict(stream(model, 1100, **setup))
    assert verdict.told == []
    summary = verdict.result.sensors[0].summary
    assert (summary.point_packets, summary.lost_packets, summary.model) == (1100, 0, hesai(model).model)
    assert render_text(verdict.result)[1].endswith("packets   1100 points, 0 lost")


@pytest.mark.parametrize("name", ["xt32", "xt16", "pandar40p"])
def test_recordings_of_real_units_pass(name, capture):
    verdict = Verdict(list(CaptureFile(capture(f"hesai/hesai_{name}_dual_600rpm.pcap"))))
    assert verdict.result.passed
    assert verdict.rules <= {"hesai.burst", "hesai.tick", "hesai.rate"}  # the recorder's
    assert verdict.result.sensors[0].summary.lost_packets == 0


def test_one_packet_and_gps_packets_are_judged(clean):
    one = clean["xt"][0]
    gps = replace(one, payload=b"\xff\xee" + b"620150030201" + bytes(104) + b"\xdf" * 388 + b"A\1" + bytes(4))
    verdict = Verdict([one, gps])
    assert (verdict.told, verdict.result.sensors[0].summary.point_packets) == ([], 1)
