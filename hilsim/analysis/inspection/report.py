"""Report of an inspection as text and as JSON."""

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from hilsim.analysis.inspection.result import (
    CaptureSummary,
    DeviceClock,
    FlowSummary,
    Gaps,
    Missing,
    OusterImu,
    OusterLidar,
    Place,
    SensorSummary,
    StdvPoints,
    VelodyneData,
    VelodynePosition,
)
from hilsim.families.ouster.inspection_lines import PROBLEM, imu_lines, lidar_lines, sensor_name
from hilsim.families.velodyne.protocol.data import ReturnMode
from hilsim.families.velodyne.protocol.models import BY_PRODUCT
from hilsim.protocols.recognise import PacketKind
from hilsim.units import NS_PER_S

_PPS_WORDS = {0: "absent", 1: "synchronizing", 2: "locked", 3: "error"}
_UNKNOWN = frozenset((PacketKind.CEPTON_STDT, PacketKind.CEPTON_INFO))
_VERBATIM = _UNKNOWN | {PacketKind.CEPTON_INFZ}
_MOST_OTHERS = 8
_MOST_OTHERS_OF_SENSOR = 3
_MOST_MODES = 3  # an HDL-64E has other values in those bytes
_TICKING_RATIO = 0.9
_UNEVEN_RATIO = 0.5
_FEWEST_INTERVALS = 50
_CROWDED_RATIO = 0.2
_STANDING_RATIO = 0.5
_TELLING_ERROR_PPM = 100.0
_CLOCKED = (VelodyneData, StdvPoints, OusterLidar)


class Tone(StrEnum):
    """Kind of a line, which decides its colour."""

    FILE = "file"
    SENSOR = "sensor"
    PLAIN = "plain"
    PROBLEM = "problem"
    NEXT = "next"


class Line(NamedTuple):
    """A line of the report."""

    text: str
    tone: Tone = Tone.PLAIN


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
    plain: dict[str, Any] = _plain(asdict(facts) | asdict(summary))
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def render_text(facts: CaptureFacts, summary: CaptureSummary) -> list[Line]:
    """Make the lines of the report: the file, each sensor with its flows, other traffic, and the next step."""
    lines = [Line(_file_line(facts, summary), Tone.FILE), Line("")]
    for sensor in summary.sensors:
        lines += [*_sensor_lines(sensor), Line("")]
    lines += _other_lines(summary)
    return [*lines, Line(_next_line(facts, summary), Tone.NEXT)]


def _file_line(facts: CaptureFacts, summary: CaptureSummary) -> str:
    size = f", {_size(facts.size_bytes)}" if facts.size_bytes else ""
    return f"{facts.file}  {facts.format}{size}, {_counted(facts.frames, 'frame')}, {_seconds(summary.duration_s)} from {_utc(summary.first_ns)}"


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


def _seconds(duration_s: float) -> str:
    return f"{duration_s:.3f} s" if duration_s < 100.0 else f"{duration_s:,.1f} s"


def _at(place: Place) -> str:
    return f"frame {place.frame} ({place.at_s:.3f} s)"


def _sensor_lines(sensor: SensorSummary) -> Iterator[Line]:
    names = dict.fromkeys(_sensor_name(flow) for flow in sensor.flows if isinstance(flow.details, (VelodyneData, OusterLidar)))
    makes = dict.fromkeys("Cepton" for flow in sensor.flows if flow.kind.startswith("Cepton"))
    title = "; ".join(name for name in (*names, *makes) if name)
    yield Line(f"{sensor.source}  {title}".rstrip(), Tone.SENSOR)
    for flow in sensor.flows:
        if flow.kind is not PacketKind.OTHER:
            yield Line(_flow_row(flow))
            yield from _detail_lines(flow)
    if sensor.ground is not None:
        yield Line(f"  {sensor.ground}")
    verbatim = dict.fromkeys(flow.kind.split()[1] for flow in sensor.flows if flow.kind in _UNKNOWN)
    if any(flow.kind is PacketKind.CEPTON_INFZ for flow in sensor.flows):
        yield _detail(
            "format", "of INFZ is not public, only measured: of its bytes a replay changes none but what is to be added to points' times for UTC"
        )
    if verbatim:
        yield _detail("format", f"of {' and '.join(verbatim)} is not public: replayed byte for byte, paced by capture times")
    if "STDT" in verbatim and "INFO" not in verbatim:
        yield _problem("no INFO packet: Cepton's software passes points over until it has seen one")
    yield from _other_flow_lines([flow for flow in sensor.flows if flow.kind is PacketKind.OTHER], most=_MOST_OTHERS_OF_SENSOR)


def _sensor_name(flow: FlowSummary) -> str:
    if isinstance(flow.details, OusterLidar):
        return sensor_name(flow.details)
    if not isinstance(flow.details, VelodyneData):
        return ""
    data = flow.details
    model = data.model or f"Velodyne of unknown model (product byte 0x{data.products[0]:02x})"
    if len(data.return_modes) > _MOST_MODES:
        return model
    known = [ReturnMode.find(byte) for byte in data.return_modes]
    modes = " and ".join(mode.words if mode else f"unknown mode 0x{byte:02x}" for mode, byte in zip(known, data.return_modes, strict=True))
    has_several = len(known) > 1 or any(mode is not None and mode.is_dual for mode in known)
    rate = "" if math.isnan(data.rotation_rate_rpm) else f", {data.rotation_rate_rpm:.1f} rpm"
    return f"{model}, {modes} return{'s' if has_several else ''}{rate}"


def _flow_row(flow: FlowSummary, *, source: str = "") -> str:
    destination = f"[{flow.destination}]" if ":" in flow.destination else flow.destination
    ports = f"{source}:{flow.source_port} > {destination}:{flow.destination_port}"
    rate = "" if math.isnan(flow.rate_hz) else f"{flow.rate_hz:,.1f}/s"
    first_s = flow.first.at_s
    span = f"at {first_s:.3f} s" if flow.packets == 1 else f"{first_s:.3f} to {first_s + flow.duration_s:.3f} s"
    return f"  {flow.kind:19} {ports:32} {_counted(flow.packets, 'packet'):>18} {rate:>11}  {span}"


def _counted(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _detail(label: str, text: str) -> Line:
    return Line(f"      {label:9} {text}")


def _problem(text: str) -> Line:
    return Line(f"    ! {text}", Tone.PROBLEM)


def _detail_lines(flow: FlowSummary) -> Iterator[Line]:
    match flow.details:
        case VelodyneData() as data:
            yield from _velodyne_lines(flow, data)
        case VelodynePosition() as position:
            yield from _position_lines(position)
        case StdvPoints() as points:
            yield from _stdv_lines(flow, points)
        case OusterLidar() as lidar:
            yield from _ouster_lines(flow, lidar)
        case OusterImu() as imu:
            yield from (_detail(label, text) for label, text in imu_lines(imu))
        case None:
            yield from _unknown_lines(flow)
    if flow.backward_capture_times:
        yield _problem(f"capture times go backwards {_times(flow.backward_capture_times)}")
    yield from _gap_lines(flow.gaps)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _gap_lines(gaps: Gaps) -> Iterator[Line]:
    if gaps.longest is None:
        return
    longest = gaps.longest
    where = f"after {_at(longest.after)}"
    if gaps.count == 1:
        yield _problem(f"a gap of {_seconds(longest.duration_s)} {where}")
    else:
        yield _problem(f"{gaps.count:,} gaps, {_seconds(gaps.total_s)} in all, the longest {_seconds(longest.duration_s)} {where}")


def _velodyne_lines(flow: FlowSummary, data: VelodyneData) -> Iterator[Line]:
    if data.azimuth_sectors_deg != ((0.0, 360.0),):
        yield _detail("view", ", ".join(f"{start:.1f} to {end:.1f} deg" for start, end in data.azimuth_sectors_deg) + " of azimuth only")
    clock = data.clock
    past = f"{_past_hour(clock.first_us)} to {_past_hour(clock.last_us)} past the hour"
    yield _detail("stamps", past if data.missing.packets else f"{past}, no packet missing")
    yield from _captured_lines(flow)
    yield from _missing_lines(data.missing)
    yield from _clock_lines(clock, flow.packets)
    if data.is_early_unit:
        product = BY_PRODUCT[data.products[0]].name
        yield _problem(f"it sends the product byte of an {product} (0x{data.products[0]:02x}), as 2014 firmware does: name the model to decoders")


def _past_hour(stamp_us: int) -> str:
    minutes, us = divmod(stamp_us, 60_000_000)
    return f"{minutes:02d}:{us / 1e6:06.3f}"


def _pace_problem(flow: FlowSummary) -> str | None:
    """Reason why capture times are a bad pace for a flow with its own stamps, or None."""
    spacing = flow.spacing
    if not isinstance(flow.details, _CLOCKED) or spacing is None or spacing.intervals < _FEWEST_INTERVALS:
        return None
    if flow.details.clock.repeated > _STANDING_RATIO * flow.packets:
        return None
    if spacing.whole_millisecond_ratio >= _TICKING_RATIO:
        return "capture times are whole milliseconds"
    is_uneven = spacing.p99_us - spacing.p1_us > _UNEVEN_RATIO * spacing.p50_us
    return "capture times are uneven, not those of a network card" if is_uneven else None


def _captured_lines(flow: FlowSummary) -> Iterator[Line]:
    """Yield lines on capture times, and on their relation to the sensor's clock if it is known."""
    spacing = flow.spacing
    if spacing is None or spacing.intervals < _FEWEST_INTERVALS:
        return
    clock = flow.details.clock if isinstance(flow.details, _CLOCKED) else None
    spread = f"every {spacing.mean_us:,.1f} us ({spacing.p1_us:,.0f} to {spacing.p99_us:,.0f} for 98 %)"
    yield _detail("captured", spread + ("" if clock is None else _drift(clock)))
    problem = _pace_problem(flow)
    if problem is not None:
        yield _problem(f"{problem}: pace by the sensor's stamps (--pace device)")


def _drift(clock: DeviceClock) -> str:
    drift_ppm, error_ppm = clock.host_drift_ppm, clock.host_drift_error_ppm
    if not error_ppm < _TELLING_ERROR_PPM:
        return ""
    if abs(drift_ppm) <= 2.0 * error_ppm:
        return f", sensor and host clocks agree within {2.0 * error_ppm:.0f} ppm"
    return f", sensor clock {abs(drift_ppm):,.1f} ± {error_ppm:.1f} ppm {'slower' if drift_ppm > 0 else 'faster'} than host"


def _missing_lines(missing: Missing | None) -> Iterator[Line]:
    if missing is None or missing.longest_after is None:
        return
    where = f"after {_at(missing.longest_after)}"
    if missing.runs == 1:
        yield _problem(f"{_counted(missing.packets, 'packet')} missing {where}")
    else:
        most = f"at most {missing.longest_run:,} together, {where}"
        yield _problem(f"{_counted(missing.packets, 'packet')} missing in {missing.runs:,} places, {most}")


def _clock_lines(clock: DeviceClock, packets: int) -> Iterator[Line]:
    if clock.repeated > _STANDING_RATIO * packets:
        yield _problem("stamps stand still: pace by capture times")
    elif clock.repeated:
        yield _problem(f"{_counted(clock.repeated, 'packet')} with the stamp of the one before")
    if clock.out_of_order:
        yield _problem(f"{_counted(clock.out_of_order, 'packet')} out of order by the stamps")
    if clock.jumps > _CROWDED_RATIO * packets:
        yield _problem(f"stamps jump in {clock.jumps:,} of {packets:,} packets: do several sensors share this address and port?")
    elif clock.first_jump is not None:
        first = "at" if clock.jumps == 1 else "first at"
        yield _problem(f"stamps jump {_times(clock.jumps)}, {first} {_at(clock.first_jump)}: the clock was set, or the capture was joined")


def _position_lines(position: VelodynePosition) -> Iterator[Line]:
    states = ", then ".join(_PPS_WORDS.get(state, f"0x{state:02x}") for state in position.pps_states)
    if position.first_sentence is None:
        yield _detail("GPS", f"PPS {states}, no NMEA sentence")
        return
    kind = position.first_sentence.split(",")[0].lstrip("$")
    first, last = position.first_sentence_utc, position.last_sentence_utc
    span = f"{first}" if first == last else f"{first} to {last}"
    yield _detail("GPS", f"PPS {states}, {kind} {'without a time' if first is None else span}, {_counted(position.sentences, 'sentence')}")


def _stdv_lines(flow: FlowSummary, points: StdvPoints) -> Iterator[Line]:
    each = f"{points.most_points}" if points.fewest_points == points.most_points else f"{points.fewest_points} to {points.most_points}"
    yield _detail("points", f"{points.points:,}, {each} a packet, {_counted(points.frames, 'frame')} by the frame parity")
    clock = points.clock
    span = f"{clock.first_us / 1e6:,.3f} to {clock.last_us / 1e6:,.3f} s"
    if points.missing is None:
        span += ", no sequence numbers to find missing packets by"
    elif not points.missing.packets:
        span += ", no packet missing"
    yield _detail("stamps", span)
    yield from _captured_lines(flow)
    yield from _missing_lines(points.missing)
    if points.sequence_breaks:
        yield _problem(f"sequence numbers start anew {_times(points.sequence_breaks)}")
    yield from _clock_lines(clock, flow.packets)


def _ouster_lines(flow: FlowSummary, lidar: OusterLidar) -> Iterator[Line]:
    for label, text in lidar_lines(lidar):
        yield _problem(text) if label == PROBLEM else _detail(label, text)
    yield from _captured_lines(flow)
    yield from _missing_lines(lidar.missing)
    yield from _clock_lines(lidar.clock, flow.packets)


def _unknown_lines(flow: FlowSummary) -> Iterator[Line]:
    if flow.kind in _VERBATIM:
        yield from _captured_lines(flow)
        return
    sizes = f"{flow.smallest_bytes:,}" if flow.smallest_bytes == flow.largest_bytes else f"{flow.smallest_bytes:,} to {flow.largest_bytes:,}"
    first = bytes.fromhex(flow.first_bytes)
    begins = f'"{first.decode("ascii")}"' if first.isascii() and first.decode("ascii").isprintable() else flow.first_bytes
    yield _detail("payload", f"{sizes} bytes{f', beginning {begins}' if first else ''}")


def _other_flow_lines(flows: Sequence[FlowSummary], *, most: int, with_source: bool = False) -> Iterator[Line]:
    """Yield lines on the largest unrecognised flows."""
    ranked = sorted(flows, key=lambda flow: -flow.packets)
    for flow in ranked[:most]:
        yield Line(_flow_row(flow, source=flow.source if with_source else ""))
        yield from _detail_lines(flow)
    rest = ranked[most:]
    if rest:
        packets = _counted(sum(flow.packets for flow in rest), "packet")
        yield Line(f"  and {packets} of {_counted(len(rest), 'more flow')} that {'was' if len(rest) == 1 else 'were'} not recognised (see --json)")


def _other_lines(summary: CaptureSummary) -> Iterator[Line]:
    if summary.other_flows:
        yield Line("other traffic", Tone.SENSOR)
        yield from _other_flow_lines(summary.other_flows, most=_MOST_OTHERS, with_source=True)
        yield Line("")
    if summary.unlisted_datagrams:
        yield Line(f"{_counted(summary.unlisted_datagrams, 'datagram')} of still more flows were only counted")
        yield Line("")


def _next_line(facts: CaptureFacts, summary: CaptureSummary) -> str:
    """Suggested command to replay the capture."""
    flows = [flow for sensor in summary.sensors for flow in sensor.flows]
    is_seamless = any(_loops_seamlessly(flow) for flow in flows)
    pace = " --pace device" if any(_pace_problem(flow) for flow in flows) else ""
    loop = "seamless" if is_seamless else "plain"
    return f"replay it   hilsim replay {shlex.quote(facts.file)} --to 127.0.0.1{pace} --loop {loop}"


def _loops_seamlessly(flow: FlowSummary) -> bool:
    """Whether two places of a flow may fit each other: any of a Velodyne or Cepton sensor, and those of several frames of an Ouster sensor."""
    return isinstance(flow.details, (VelodyneData, StdvPoints)) or (isinstance(flow.details, OusterLidar) and flow.details.frames > 1)
