"""What no Cepton sensor sends is noticed, each fault by its own rule; effects of a network are distinguished from faults."""

import struct

import numpy as np
import pytest

from hilsim.read.analysis.conformance.checker import StreamChecker
from hilsim.read.analysis.conformance.findings import Severity
from tests.unit.families.cepton.conformance.streams import EPOCH_US, INFO, datagrams, stream

SECOND, NO_RETURN, PARITY = 0x10, 0x20, 0x04
MIDDLE = 1000  # a packet in the middle of the stream


class Verdict:
    """Rule ids by severity."""

    def __init__(self, sent):
        checker = StreamChecker()
        checker.feed(datagrams(sent))
        self.result = checker.result()
        self.told = [*self.result.findings, *(finding for sensor in self.result.sensors for finding in sensor.findings)]
        self.errors, self.warnings, self.notes = ({finding.rule for finding in self.told if finding.severity is severity} for severity in Severity)
        self.summary = self.result.sensors[0].summary

    def first(self, rule):
        return next(finding for finding in self.told if finding.rule == rule)


@pytest.fixture(scope="session")
def single():
    return stream()


@pytest.fixture(scope="session")
def dual():
    return stream(dual=True)


def point_rows(sent):
    return [row for row, one in enumerate(sent) if one.is_points]


def info_rows(sent):
    return [row for row, one in enumerate(sent) if not one.is_points]


def changed(sent, row, new):
    return [*sent[:row], new, *sent[row + 1 :]]


def with_point(sent, packet, choose, **fields):
    """The stream with fields of the first point of a packet for which ``choose`` holds changed; a function changes what is there."""
    row = point_rows(sent)[packet]
    points = sent[row].points()
    at = int(np.flatnonzero(choose(points))[0])
    for name, value in fields.items():
        points[name][at] = value(points[name][at]) if callable(value) else value
    return changed(sent, row, sent[row].with_points(points))


def with_header(sent, packet, at, form, *values):
    row = point_rows(sent)[packet]
    return changed(sent, row, sent[row].with_bytes(at, struct.pack(form, *values)))


def with_infos(sent, at, form, *values, only=slice(None)):
    """Information packets with bytes changed."""
    sent = list(sent)
    for row in info_rows(sent)[only]:
        sent[row] = sent[row].with_bytes(at, struct.pack(form, *values))
    return sent


def everywhere(sent, change):
    """Every packet's points changed in place by ``change``."""
    made = []
    for one in sent:
        points = one.points() if one.is_points else None
        if points is not None:
            change(points)
        made.append(one if points is None else one.with_points(points))
    return made


def without(sent, *packets):
    rows = point_rows(sent)
    gone = {rows[packet] for packet in packets}
    return [one for row, one in enumerate(sent) if row not in gone]


def numbers_from(sent, packet, shift):
    """Sequence numbers of all packets from one on shifted."""
    sent = list(sent)
    for row in point_rows(sent)[packet:]:
        (number,) = struct.unpack_from("<I", sent[row].payload, 20)
        sent[row] = sent[row].with_bytes(20, struct.pack("<I", number + shift))
    return sent


def stamps_from(sent, packet, shift_us):
    sent = list(sent)
    for row in point_rows(sent)[packet:]:
        (stamp_us,) = struct.unpack_from("<q", sent[row].payload, 8)
        sent[row] = sent[row].with_bytes(8, struct.pack("<q", stamp_us + shift_us))
    return sent


def came_back(points):
    return (points["flags"] & (NO_RETURN | SECOND)) == 0


def missed(points):
    return (points["flags"] & (NO_RETURN | SECOND)) == NO_RETURN


def any_point(points):
    return np.arange(points.size) == 9


@pytest.mark.parametrize("options", [{}, {"dual": True}, {"utc": True}, {"version": 1}, {"version": 1, "dual": True}], ids=str)
def test_a_faultless_stream_passes_without_a_finding(options):
    verdict = Verdict(stream(**options))
    assert verdict.told == []
    assert (verdict.summary.model, verdict.summary.serial, verdict.summary.lasers, verdict.summary.cycle_us) == ("synthetic", 77, 8, 64.0)
    assert verdict.summary.frames == 22
    assert verdict.summary.stamps == ("UTC" if options.get("utc") else "power-up")


SINGLE = {
    "stdv.version, version 3": ("stdv.version", lambda s: with_header(s, MIDDLE, 4, "<B", 3)),
    "stdv.version, size 32": ("stdv.version", lambda s: with_header(s, MIDDLE, 5, "<B", 32)),
    "stdv.size, a point short": ("stdv.size", lambda s: changed(s, 900, s[900].__class__(s[900].host_us, s[900].payload[:-10]))),
    "stdv.size, nothing but a name": ("stdv.size", lambda s: changed(s, 900, s[900].__class__(s[900].host_us, b"STDV\2\30"))),
    "stdv.count, none": ("stdv.count", lambda s: with_header(s, MIDDLE, 18, "<H", 0)),
    "stdv.count, 145": ("stdv.count", lambda s: with_header(s, MIDDLE, 18, "<H", 145)),
    "stdv.point, 17 bytes": ("stdv.point", lambda s: with_header(s, MIDDLE, 16, "<BB", 0, 17)),
    "sequence.time, numbers leap without loss": ("sequence.time", lambda s: numbers_from(s, MIDDLE, 5)),
    "sequence.repeated": ("sequence.repeated", lambda s: numbers_from(s, MIDDLE, -1)),
    "sequence.restart, stamps run on": ("sequence.restart", lambda s: numbers_from(s, MIDDLE, -900)),
    "stamps.chain, a second late": ("stamps.chain", lambda s: with_header(s, MIDDLE, 8, "<q", 2_152_000)),
    "stamps.chain, own first point instead of the last before": (
        "stamps.chain",
        lambda s: [
            one.with_bytes(8, struct.pack("<q", struct.unpack_from("<q", one.payload, 8)[0] + 8 * n % 17)) if one.is_points else one
            for n, one in enumerate(s)
        ],
    ),
    "stamps.chain, a step changed": ("stamps.chain", lambda s: with_point(s, MIDDLE, any_point, step_us=9)),
    "stamps.range": ("stamps.range", lambda s: stamps_from(s, 0, -500_000)),
    "stamps.constant": ("stamps.constant", lambda s: everywhere(s, lambda points: points.__setitem__("step_us", 0))),
    "points.zero": ("points.zero", lambda s: with_point(s, MIDDLE, missed, flags=lambda flags: flags & (0xFF ^ NO_RETURN))),
    "second.step": ("second.step", lambda s: with_point(s, MIDDLE, any_point, flags=lambda flags: flags | SECOND)),
    "lasers.count": ("lasers.count", lambda s: everywhere(s, lambda points: points.__setitem__("channel", points["channel"] * 20))),
    "frames.none": ("frames.none", lambda s: everywhere(s, lambda points: points.__setitem__("flags", points["flags"] & (0xFF ^ PARITY)))),
    "frames.length, one point of another frame": ("frames.length", lambda s: with_point(s, MIDDLE, any_point, flags=lambda flags: flags ^ PARITY)),
    "frames.none, for a second": (
        "frames.none",
        lambda s: [one.with_points(steady(one.points())) if one.is_points and 500 < n < 1500 else one for n, one in enumerate(s)],
    ),
    "points.copied": ("points.copied", lambda s: changed(s, 901, s[901].with_points(with_places_of(s[901].points(), s[900].points())))),
    "lasers.constant": ("lasers.constant", lambda s: everywhere(s, stick)),
    "info.size": ("info.size", lambda s: with_infos(s, 4, "<B", 96)),
    "info.version": ("info.version", lambda s: with_infos(s, 5, "<B", 16)),
    "info.changed, serial number": ("info.changed", lambda s: with_infos(s, 12, "<I", 78, only=slice(2, 3))),
    "info.changed, switched on before": ("info.changed", lambda s: with_infos(s, 64, "<q", EPOCH_US - 9, only=slice(2, 3))),
    "info.name": ("info.name", lambda s: with_infos(s, 20, "<4s", b"\xff\xfe\1\2")),
    "info.returns, three": ("info.returns", lambda s: with_infos(s, 85, "<B", 3)),
    "info.returns, two of one": ("info.returns", lambda s: with_infos(s, 85, "<B", 2)),
}


def steady(points):
    points["flags"] &= 0xFF ^ PARITY
    return points


def with_places_of(points, others):
    for name in ("x", "y", "z", "flags"):
        points[name] = others[name]
    return points


def stick(points):
    """Laser 3 measures one point for ever."""
    mine = (points["channel"] == 3) & came_back(points)
    for name, count in (("x", 10), ("y", 2000), ("z", 5)):
        points[name][mine] = count


def sorted_by_laser(points):
    order = np.argsort(points["channel"], kind="stable")
    points["channel"] = points["channel"][order]
    return points


@pytest.mark.parametrize("name", SINGLE)
def test_values_that_no_sensor_sends_are_errors(single, name):
    rule, mutate = SINGLE[name]
    assert rule in Verdict(mutate(list(single))).errors


DUAL = {
    "second.laser": lambda s: with_point(s, MIDDLE, is_second, channel=lambda channel: (channel + 1) % 8),
    "second.step": lambda s: with_point(s, MIDDLE, is_second, step_us=8),
    "second.first": lambda s: with_point(s, MIDDLE, lambda points: np.arange(points.size) == 10, flags=lambda flags: flags | SECOND),
    "second.parity": lambda s: with_point(s, MIDDLE, is_second, flags=lambda flags: flags ^ PARITY),
    "second.direction": lambda s: with_point(s, MIDDLE, lambda points: is_second(points) & came_second(points), x=lambda x: x + 30),
    "second.same": lambda s: everywhere(s, copied_from_the_first),
    "info.returns": lambda s: with_infos(s, 85, "<B", 1),
}


def is_second(points):
    return (points["flags"] & SECOND) != 0


def came_second(points):
    return (points["flags"] & NO_RETURN) == 0


def first_of_both(points):
    both = (points["flags"] & NO_RETURN) == 0
    return both & ~is_second(points) & np.append(both[1:], False) & np.append(is_second(points)[1:], False)


def copied_from_the_first(points):
    for name in ("x", "y", "z"):
        points[name][1::2] = points[name][::2]
    points["flags"][1::2] = points["flags"][::2] | SECOND


@pytest.mark.parametrize("rule", DUAL)
def test_a_pair_that_no_sensor_sends_is_an_error(dual, rule):
    assert rule in Verdict(DUAL[rule](list(dual))).errors


def nearer(points):
    """Each second return only 10 cm behind its first."""
    for name in ("x", "y", "z"):
        points[name][1::2] = np.where(came_second(points)[1::2], np.round(points[name][::2] * 1.005), 0)


UNUSUAL = {
    "lasers.cycle": lambda s: with_point(s, MIDDLE, any_point, channel=5),
    "stdv.flags": lambda s: with_header(s, MIDDLE, 6, "<H", 1),
    "stdv.point": lambda s: with_header(s, MIDDLE, 16, "<BB", 1, 12),
    "points.no_return": lambda s: with_point(s, MIDDLE, missed, y=4000),
    "points.constant": lambda s: everywhere(s, lambda points: points.__setitem__("reflectivity", np.where(came_second(points), 50, 0))),
    "lasers.step": lambda s: everywhere(s, uneven_once),
    "stamps.rate": lambda s: [one.__class__(EPOCH_US + 1.1 * (one.host_us - EPOCH_US), one.payload) for one in s],
    "info.cadence": lambda s: [again for one in s for again in (one, one.__class__(one.host_us + 250_000, one.payload))[: 1 if one.is_points else 2]],
    "info.missing": lambda s: [one for row, one in enumerate(s) if row != info_rows(s)[2]],
    "info.blocks": lambda s: with_infos(s, 5, "<B", 9),
    "info.version": lambda s: with_infos(s, 5, "<B", 0),
    "info.model": lambda s: with_infos(s, 8, "<H", 999),
    "info.serial": lambda s: with_infos(s, 12, "<I", 0),
    "info.firmware": lambda s: with_infos(s, 52, "<4s", b"\1\2\3\5"),
    "info.power_up": lambda s: with_infos(s, 64, "<q", EPOCH_US + 3_600_000_000),
    "info.sync": lambda s: with_infos(s, 72, "<q", EPOCH_US - 37_000_000),
    "info.sync_leap": lambda s: with_infos(s, 72, "<q", EPOCH_US + 5_000, only=slice(2, 3)),
}


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_a_coordinate_that_is_the_same_for_all_returns_is_a_warning(single, axis):
    verdict = Verdict(everywhere(single, lambda points: points.__setitem__(axis, np.where(came_back(points), 2000, 0))))
    assert verdict.first("points.constant").message.startswith(f"returns must differ in {axis}, got 2000 for all ")


def uneven_once(points):
    """One firing 5 us late and the next as much early: the packet takes as long as before."""
    points["step_us"][20] += 5
    points["step_us"][21] -= 5


@pytest.mark.parametrize("rule", UNUSUAL)
def test_unusual_values_are_warnings(single, rule):
    verdict = Verdict(UNUSUAL[rule](list(single)))
    assert rule in verdict.warnings
    assert verdict.errors <= {"stamps.chain"} if rule == "stdv.point" else not verdict.errors


def test_a_second_return_without_a_first_is_a_warning(dual):
    gone = with_point(list(dual), MIDDLE, first_of_both, flags=lambda flags: flags | NO_RETURN, x=0, y=0, z=0, reflectivity=0)
    verdict = Verdict(gone)
    assert (verdict.errors, verdict.warnings) == (set(), {"second.alone"})


def test_second_returns_close_to_the_first_are_a_warning(dual):
    verdict = Verdict(everywhere(list(dual), nearer))
    assert "second.gap" in verdict.warnings
    assert "second.same" not in verdict.errors


def test_stamps_of_another_day_than_the_hosts_are_a_warning():
    verdict = Verdict([one.__class__(one.host_us + 86_400e6, one.payload) for one in stream(utc=True)])
    assert (verdict.errors, verdict.warnings) == (set(), {"stamps.utc"})


def test_lasers_in_another_order_for_one_packet_are_a_warning(single):
    sent = list(single)
    verdict = Verdict(changed(sent, 900, sent[900].with_points(sorted_by_laser(sent[900].points()))))
    assert (verdict.errors, verdict.warnings) == (set(), {"lasers.cycle"})


def test_lasers_in_no_order_at_all_are_a_warning(single):
    rng = np.random.default_rng(5)
    verdict = Verdict(everywhere(single, lambda points: points.__setitem__("channel", rng.integers(0, 8, points.size))))
    assert (verdict.errors, verdict.warnings) == (set(), {"lasers.cycle"})


def test_lost_packets_are_counted_and_are_no_fault(single):
    verdict = Verdict(without(single, 5, 600, 601, 602, 1500))
    assert (verdict.errors, verdict.warnings) == (set(), {"sequence.lost"})
    assert verdict.summary.lost_packets == 5
    assert verdict.first("sequence.lost").message == "5 packets are missing, in 3 places"


@pytest.mark.parametrize("dual", [False, True])
def test_without_numbers_lost_packets_are_reported_by_time(dual):
    verdict = Verdict(without(stream(version=1, dual=dual), 5, 600, 601, 602))
    assert (verdict.errors, verdict.warnings) == (set(), {"sequence.lost"})
    assert verdict.summary.lost_packets == 4


def test_every_second_packet_missing_is_loss_and_nothing_else(single):
    verdict = Verdict(without(single, *range(1, len(point_rows(single)), 2)))
    assert (verdict.errors, verdict.warnings) == (set(), {"sequence.lost"})


@pytest.mark.parametrize("version", [1, 2])
def test_packets_that_overtake_each_other_are_a_warning_and_not_lost(version):
    sent = stream(version=version)
    row = point_rows(sent)[MIDDLE]
    assert sent[row + 1].is_points
    verdict = Verdict([*sent[:row], sent[row + 1], sent[row], *sent[row + 2 :]])
    assert (verdict.errors, verdict.warnings, verdict.summary.lost_packets) == (set(), {"sequence.order"}, 0)


def test_a_stream_out_of_order_is_an_error(single):
    sent = list(single)
    rows = point_rows(sent)
    for first, second in zip(rows[1::20], rows[2::20], strict=False):
        sent[first], sent[second] = sent[second], sent[first]
    assert "sequence.order" in Verdict(sent).errors


@pytest.mark.parametrize("version", [1, 2])
def test_a_packet_that_comes_twice_is_a_warning(version):
    sent = stream(version=version)
    row = point_rows(sent)[MIDDLE]
    verdict = Verdict([*sent[: row + 1], sent[row], *sent[row + 1 :]])
    assert (verdict.errors, verdict.warnings) == (set(), {"sequence.duplicate"})


def test_a_sensor_that_is_switched_off_and_on_is_a_warning(single):
    again = [one.__class__(one.host_us + 10e6, one.payload) for one in single]
    again = with_infos(again, 64, "<q", EPOCH_US + 10_000_000)
    again = with_infos(again, 72, "<q", EPOCH_US + 10_000_000)
    verdict = Verdict([*single, *again])
    assert (verdict.errors, verdict.warnings) == (set(), {"sequence.restart", "info.changed", "info.missing"})


def test_a_laser_without_a_return_is_a_note(single):
    def kill(points):
        dead = points["channel"] == 3
        for name in ("x", "y", "z", "reflectivity"):
            points[name][dead] = 0
        points["flags"][dead] |= NO_RETURN

    verdict = Verdict(everywhere(single, kill))
    assert (verdict.errors, verdict.warnings, verdict.notes) == (set(), set(), {"lasers.silent"})
    assert "laser 3 in " in verdict.first("lasers.silent").message


def test_frames_of_few_points_are_a_note(single):
    rows = np.cumsum([0] + [144] * 10_000)

    def quicker(sent):
        made, at = [], 0
        for one in sent:
            points = one.points() if one.is_points else None
            if points is not None:
                points["flags"] = points["flags"] & (0xFF ^ PARITY) | ((rows[at] + np.arange(points.size)) // 5000 % 2 * PARITY).astype(np.uint8)
                at += 1
            made.append(one if points is None else one.with_points(points))
        return made

    verdict = Verdict(quicker(single))
    assert (verdict.errors, verdict.warnings, verdict.notes) == (set(), set(), {"frames.small"})


def test_information_with_unknown_bytes_filled_is_a_note(single):
    verdict = Verdict(with_infos(list(single), 86, "<B", 1))
    assert (verdict.errors, verdict.warnings, verdict.notes) == (set(), set(), {"info.reserved"})


def test_packets_of_no_known_kind_from_the_sensors_address_are_a_note(single):
    fault = single[100].__class__(single[100].host_us, b"PANI" + bytes(60))
    verdict = Verdict([*single[:100], fault, *single[100:]])
    assert (verdict.errors, verdict.warnings, verdict.notes) == (set(), set(), {"cepton.other"})


def test_a_header_version_that_changes_is_an_error(single):
    other = stream(0.1, version=1)
    assert "stdv.changed" in Verdict([*single[:200], *other[1:20], *single[200:]]).errors


def test_a_stream_without_information_is_a_note(single):
    verdict = Verdict([one for one in single if one.is_points])
    assert (verdict.errors, verdict.warnings, verdict.notes) == (set(), set(), {"info.none"})


def test_a_finding_names_packet_frame_and_byte(single):
    place = Verdict(with_point(list(single), MIDDLE, any_point, channel=5)).first("lasers.cycle").place
    assert (place.packet_index, place.frame, place.byte_offset) == (MIDDLE, point_rows(single)[MIDDLE] + 1, 24 + 9 * 10 + 8)


def test_the_stream_says_what_the_information_says(single):
    assert INFO["serial"] == Verdict(single).summary.serial
