"""Report of an inspection as text and as JSON."""

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from hilsim.protocols.recognise import OtherKind
from hilsim.read.analysis.inspection.lines import Line, Tone, at, captured_lines, counted, detail, pace_problem, problem, seconds, times
from hilsim.read.analysis.inspection.part import InspectionPart
from hilsim.read.analysis.inspection.result import CaptureSummary, FlowSummary, Gaps, SensorInspection
from hilsim.read.analysis.plain import plain
from hilsim.registry import family_parts
from hilsim.units import NS_PER_S

_MAX_OTHERS = 8
_MAX_OTHERS_OF_SENSOR = 3


@dataclass(frozen=True, kw_only=True)
class CaptureFacts:
    """Properties of the capture file itself.

    Attributes:
        file: Path as given.
        format: Format: ``"PCAP"``, ``"PCAPNG"``; ``"gzip"`` or ``"zstd"`` if compressed, ``"pipe"`` if it can be read only once.
        size_bytes: Size on the disk; 0 for a pipe.
        frames: Number of frames read, including those without a datagram.
        notes: Remarks on skipped or doubtful parts.
    """

    file: str
    format: str
    size_bytes: int
    frames: int
    notes: tuple[str, ...]


def to_json(facts: CaptureFacts, summary: CaptureSummary) -> dict[str, Any]:
    """Make the report as plain values; None for unknown figures."""
    values: dict[str, Any] = plain(asdict(facts) | asdict(summary))
    return values


def render_text(facts: CaptureFacts, summary: CaptureSummary) -> list[Line]:
    """Make the lines of the report: the file, each sensor with its flows, other traffic, and the next step."""
    lines = [Line(_file_line(facts, summary), Tone.FILE), Line("")]
    for sensor in summary.sensors:
        lines += [*_sensor_lines(sensor), Line("")]
    lines += _other_lines(summary)
    return [*lines, Line(_next_line(facts, summary), Tone.NEXT)]


def _file_line(facts: CaptureFacts, summary: CaptureSummary) -> str:
    size = f", {_size(facts.size_bytes)}" if facts.size_bytes else ""
    return f"{facts.file}  {facts.format}{size}, {counted(facts.frames, 'frame')}, {seconds(summary.duration_s)} from {_utc(summary.first_ns)}"


def _utc(stamp_ns: int) -> str:
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=stamp_ns // 1000)
    except OverflowError:
        return f"{stamp_ns // NS_PER_S} s after 1970"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d} UTC"


def _size(size_bytes: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= scale:
            return f"{size_bytes / scale:.1f} {unit}"
    return f"{size_bytes} bytes"


@cache
def _parts() -> tuple[InspectionPart, ...]:
    return tuple(module.PART for module in family_parts("inspection").values())


def _sensor_lines(sensor: SensorInspection) -> Iterator[Line]:
    titles = [flow.details.title for flow in sensor.flows if flow.details is not None]
    by_part = [(part, [flow for flow in sensor.flows if flow.kind in part.kinds]) for part in _parts()]
    titles += [part.title for part, flows in by_part if flows]
    yield Line(f"{sensor.source}  {'; '.join(title for title in dict.fromkeys(titles) if title)}".rstrip(), Tone.SENSOR)
    for flow in sensor.flows:
        if flow.kind is not OtherKind.OTHER:
            yield Line(_flow_row(flow))
            yield from _detail_lines(flow)
    if sensor.ground is not None:
        yield Line(f"  {sensor.ground}")
    for part, flows in by_part:
        yield from part.lines(flows)
    yield from _other_flow_lines([flow for flow in sensor.flows if flow.kind is OtherKind.OTHER], most=_MAX_OTHERS_OF_SENSOR)


def _flow_row(flow: FlowSummary, *, source: str = "") -> str:
    destination = f"[{flow.destination}]" if ":" in flow.destination else flow.destination
    ports = f"{source}:{flow.source_port} > {destination}:{flow.destination_port}"
    rate = "" if math.isnan(flow.rate_hz) else f"{flow.rate_hz:,.1f}/s"
    first_s = flow.first.at_s
    span = f"at {first_s:.3f} s" if flow.packets == 1 else f"{first_s:.3f} to {first_s + flow.duration_s:.3f} s"
    return f"  {flow.kind:19} {ports:32} {counted(flow.packets, 'packet'):>18} {rate:>11}  {span}"


def _detail_lines(flow: FlowSummary) -> Iterator[Line]:
    yield from _unknown_lines(flow) if flow.details is None else flow.details.lines(flow)
    if flow.backward_capture_times:
        yield problem(f"capture times go backwards {times(flow.backward_capture_times)}")
    yield from _gap_lines(flow.gaps)


def _gap_lines(gaps: Gaps) -> Iterator[Line]:
    if gaps.longest is None:
        return
    longest = gaps.longest
    where = f"after {at(longest.after)}"
    if gaps.count == 1:
        yield problem(f"a gap of {seconds(longest.duration_s)} {where}")
    else:
        yield problem(f"{gaps.count:,} gaps, {seconds(gaps.total_s)} in all, the longest {seconds(longest.duration_s)} {where}")


def _unknown_lines(flow: FlowSummary) -> Iterator[Line]:
    if any(flow.kind in part.kinds for part in _parts()):
        yield from captured_lines(flow)
        return
    sizes = f"{flow.smallest_bytes:,}" if flow.smallest_bytes == flow.largest_bytes else f"{flow.smallest_bytes:,} to {flow.largest_bytes:,}"
    first = bytes.fromhex(flow.first_bytes)
    begins = f'"{first.decode("ascii")}"' if first.isascii() and first.decode("ascii").isprintable() else flow.first_bytes
    yield detail("payload", f"{sizes} bytes{f', beginning {begins}' if first else ''}")


def _other_flow_lines(flows: Sequence[FlowSummary], *, most: int, with_source: bool = False) -> Iterator[Line]:
    """Yield lines on the largest unrecognised flows."""
    ranked = sorted(flows, key=lambda flow: -flow.packets)
    for flow in ranked[:most]:
        yield Line(_flow_row(flow, source=flow.source if with_source else ""))
        yield from _detail_lines(flow)
    rest = ranked[most:]
    if rest:
        packets = counted(sum(flow.packets for flow in rest), "packet")
        yield Line(f"  and {packets} of {counted(len(rest), 'more flow')} that {'was' if len(rest) == 1 else 'were'} not recognised (see --json)")


def _other_lines(summary: CaptureSummary) -> Iterator[Line]:
    if summary.other_flows:
        yield Line("other traffic", Tone.SENSOR)
        yield from _other_flow_lines(summary.other_flows, most=_MAX_OTHERS, with_source=True)
        yield Line("")
    if summary.unlisted_datagrams:
        yield Line(f"{counted(summary.unlisted_datagrams, 'datagram')} of still more flows were only counted")
        yield Line("")


def _next_line(facts: CaptureFacts, summary: CaptureSummary) -> str:
    """Suggested command to replay the capture."""
    flows = [flow for sensor in summary.sensors for flow in sensor.flows]
    is_seamless = any(flow.details is not None and flow.details.loops_seamlessly for flow in flows)
    pace = " --pace device" if any(pace_problem(flow) for flow in flows) else ""
    loop = "seamless" if is_seamless else "plain"
    return f"replay it   hilsim replay {shlex.quote(facts.file)} --to 127.0.0.1{pace} --loop {loop}"
