"""Find the flows of a capture and the cut of a loop before the first packet is played. Only the capture's beginning and end are read."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.pcap import CaptureFile
from hilsim.capture.sensor_names import SensorNames
from hilsim.emulator.replaying import has_points
from hilsim.errors import CaptureError
from hilsim.parts.replays.flows import find_rule
from hilsim.parts.replays.limits import REPLAY_SPAN_NS
from hilsim.parts.replays.recorded.reader import CaptureReader, check_pass
from hilsim.parts.replays.recorded.seam import MAX_CANDIDATES, Cut, CutCandidates, CutPacket, find_cut
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.protocols.flow_key import FlowKey
from hilsim.protocols.recognise import PacketKind, recognise

_PROBED = 4096
_ENDS_NS = 2_500_000_000
_MAX_FLOWS_NAMED = 8
_SMALL_BYTES = 2048
_NEXT_NS = 1_000_000_000
"""Most time between two parts of one capture."""
_LAST_NS = 1 << 62
SMALL_FILE_BYTES = 128 << 20
"""File size up to which the whole file is read in a short time."""
LARGEST_BYTES = 65_507


@dataclass(frozen=True, kw_only=True)
class Overview:
    """Summary of a capture's beginning.

    Attributes:
        first_ns: Host stamp of its first datagram.
        kinds: Numbers of packets of each kind, by replayed flow.
        firsts: First datagram of each replayed flow.
        rate_hz: Mean packet rate of each replayed flow.
        capacity: Largest permitted payload in bytes.
        duration_s: Capture time from the first datagram to the last; None if reading it would take long.
        names: Names of the sensors.
    """

    first_ns: int
    kinds: dict[FlowKey, Counter[PacketKind]]
    firsts: dict[FlowKey, CapturedDatagram]
    rate_hz: dict[FlowKey, float]
    capacity: int
    duration_s: float | None
    names: SensorNames = field(default_factory=SensorNames)

    @property
    def sources(self) -> tuple[str, ...]:
        """Recorded source addresses, in the order of their appearance."""
        return tuple(dict.fromkeys(flow.source for flow in self.kinds))

    def find_master(self, wanted: str) -> tuple[str, PacketKind | None]:
        """Sensor that decides a seamless cut, and the kind of its point packets; ("", None) if no packets have known stamps."""
        points: Counter[tuple[str, PacketKind]] = Counter()
        for flow, kinds in self.kinds.items():
            for kind, count in kinds.items():
                if has_points(kind):
                    points[self.names.of_flow(flow, kind), kind] += count
        for (source, kind), _ in points.most_common():
            if wanted in {"", source}:
                return source, kind
        return "", None


def look_over(path: Path, spec: ReplaySpec) -> Overview:
    """Read the beginning of a capture until flows to be replayed have been seen.

    Raises:
        CaptureError: the capture cannot be read, contains no datagrams or none that the flow rules match (the message lists its flows), or it is to be
            looped and one pass is too short.
    """
    capture = CaptureFile(path)
    first_ns = -1
    found: dict[FlowKey, Counter[PacketKind]] = {}
    seen: Counter[FlowKey] = Counter()
    last_ns: dict[FlowKey, int] = {}
    firsts: dict[FlowKey, CapturedDatagram] = {}
    largest = 0
    for number, datagram in enumerate(capture.datagrams()):
        first_ns = datagram.host_stamp_ns if first_ns < 0 else first_ns
        flow = datagram.flow
        seen[flow] += 1
        if find_rule(spec.flow, flow) is not None:
            found.setdefault(flow, Counter())[recognise(datagram.payload)] += 1
            firsts.setdefault(flow, datagram)
            last_ns[flow] = datagram.host_stamp_ns
            largest = max(largest, len(datagram.payload))
        if number >= _PROBED and found:
            break
    if not seen:
        raise CaptureError(f"{path}: must hold UDP datagrams, got none; " + ("; ".join(capture.notes.lines()) or "it holds no frames"))
    if not found:
        held = ", ".join(f"{flow} ({count})" for flow, count in seen.most_common(_MAX_FLOWS_NAMED))
        rules = ", ".join(f'"{rule.match}"' for rule in spec.flow)
        raise CaptureError(f"{path}: a flow must match {rules}, got none; the capture holds {held}" + (" …" if len(seen) > _MAX_FLOWS_NAMED else ""))
    rates = {flow: _rate_hz(kinds.total(), last_ns[flow] - firsts[flow].host_stamp_ns) for flow, kinds in found.items()}
    if spec.loop != "none" and spec.loops != 1:
        _check_loop(path, spec, first_ns)
    names = SensorNames(spec.loop_sensor)
    for flow, kinds in found.items():
        for kind in kinds:
            names.of_flow(flow, kind)
    return Overview(
        first_ns=first_ns,
        kinds=found,
        firsts=firsts,
        rate_hz=rates,
        capacity=_SMALL_BYTES if largest <= _SMALL_BYTES else LARGEST_BYTES,
        duration_s=_duration_s(path, first_ns),
        names=names,
    )


def _duration_s(path: Path, first_ns: int) -> float | None:
    if path.stat().st_size > SMALL_FILE_BYTES:
        return None
    capture = CaptureFile(path)
    last_ns = max((datagram.host_stamp_ns for datagram in capture.datagrams(capture.seek_point_before(_LAST_NS))), default=first_ns)
    return max(last_ns - first_ns, 0) / 1e9


def _check_loop(path: Path, spec: ReplaySpec, first_ns: int) -> None:
    """Raise an error for a loop of a short capture that could not be read fast enough; for a long capture the reader checks each pass."""
    reader = CaptureReader(CaptureFile(path), replace(spec, loop="none", loops=0), first_ns, _find_no_cut, "")
    packets, first_due_ns, last_due_ns = 0, _LAST_NS, -_LAST_NS
    for cues in reader.runs():
        packets += cues.due_ns.size
        first_due_ns, last_due_ns = min(first_due_ns, int(cues.due_ns.min())), max(last_due_ns, int(cues.due_ns.max()))
        if packets > _PROBED:
            return
    if packets > 1 and last_due_ns > first_due_ns:
        interval_ns = (last_due_ns - first_due_ns) // (packets - 1)  # interval before the next pass
        check_pass(path, last_due_ns - first_due_ns + interval_ns, packets)


def _find_no_cut(*, wait: bool) -> Cut | None:  # noqa: ARG001 - the whole pass is checked
    return None


def begin_times_ns(replays: Sequence[tuple[ReplaySpec, int]]) -> list[int]:
    """Compute the rig time at which each replay begins.

    Args:
        replays: Settings of each replay, and the host stamp of its capture's first datagram.

    Raises:
        CaptureError: the times between captures with ``align = "capture"`` exceed the limit.
    """
    aligned = [first_ns for spec, first_ns in replays if spec.align == "capture"]
    for spec, first_ns in replays:
        if spec.align == "capture":
            REPLAY_SPAN_NS.enforce(first_ns - min(aligned), f"replay {spec.name}", CaptureError, "distance of a capture's beginning from the first's")
    return [round(spec.offset_s * 1e9) + (first_ns - min(aligned) if spec.align == "capture" else 0) for spec, first_ns in replays]


def parts_notes(replays: Sequence[tuple[ReplaySpec, Overview]]) -> tuple[tuple[str, str], ...]:
    """Sentences on captures that begin together although one goes on where another ends, as ``tcpdump -C`` divides them, each with its replay's name."""
    found = []
    for spec, overview in replays:
        for other, before in replays:
            gap_ns = overview.first_ns - before.first_ns - (before.duration_s or 0.0) * 1e9
            is_next = before.first_ns < overview.first_ns and gap_ns >= -_NEXT_NS and (before.duration_s is None or gap_ns <= _NEXT_NS)
            if is_next and spec.align == other.align == "start" and spec.offset_s == other.offset_s and before.kinds.keys() & overview.kinds.keys():
                found.append(
                    (spec.name, f'it goes on where {other.name} ends, and plays beside it: --align capture (align = "capture") plays them in turn')
                )
    return tuple(found)


def _rate_hz(count: int, span_ns: int) -> float:
    return min((count - 1) * 1e9 / span_ns, 1e5) if count > 1 and span_ns > 0 else 1.0


def plan_cut(path: Path, spec: ReplaySpec, first_ns: int, master: str, kind: PacketKind, names: SensorNames | None = None) -> Cut | None:
    """Find the cut of a seamless loop in the replayed part of a capture; None if no two places fit.

    Raises:
        CaptureError: the capture cannot be read.
    """
    capture = CaptureFile(path)
    begin_ns = first_ns + round(spec.start_s * 1e9)
    stop_ns = begin_ns + round(spec.duration_s * 1e9) if spec.duration_s else _LAST_NS
    names = names or SensorNames()
    first = _candidates(capture, spec, names, master, kind, begin_ns, min(begin_ns + _ENDS_NS, stop_ns), most=MAX_CANDIDATES)
    tail = capture.seek_point_before(stop_ns)
    tail = capture.seek_point_before(min(tail.host_stamp_ns, stop_ns) - _ENDS_NS)
    last = _candidates(capture, spec, names, master, kind, max(tail.host_stamp_ns, begin_ns), stop_ns)
    return find_cut(kind, first, last)


def _candidates(
    capture: CaptureFile, spec: ReplaySpec, names: SensorNames, master: str, kind: PacketKind, begin_ns: int, stop_ns: int, most: int | None = None
) -> Sequence[CutPacket]:
    """Find the last packets between two times at which the recording may be cut; with ``most``, the first ones of this number."""
    found = CutCandidates(kind)
    for datagram in capture.datagrams(capture.seek_point_before(begin_ns)):
        if datagram.host_stamp_ns >= stop_ns or (most is not None and len(found.packets) >= most):
            break
        if datagram.host_stamp_ns < begin_ns or names.of(datagram) != master or recognise(datagram.payload) is not kind:
            continue
        if find_rule(spec.flow, datagram.flow) is not None:
            found.look(datagram.frame, datagram.payload)
    return found.packets
