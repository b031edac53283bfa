"""Place each recorded packet, and the instant its own stamp shows, on one time line in nanoseconds from the replay's beginning.

A capture contains two clocks: the capturing host's, with its jitter and pauses, and each sensor's own, which is regular but has its own zero. A sensor's
clock is aligned with the host's: its stamps are unwrapped and shifted to fit on average, and that shift follows the host's clock slowly (a first-order
loop over blocks of four seconds). So the time line has the sensor's regularity from packet to packet and the host's rate over hours, and several sensors
of a capture keep their relation.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.capture.sensor_names import SensorNames
from hilsim.emulator.replaying import ReplayingPart, has_points, replaying_part
from hilsim.emulator.retime import Retiming
from hilsim.errors import CaptureError
from hilsim.parts.replays.specs import Pace
from hilsim.protocols.flow_key import FlowKey
from hilsim.protocols.recognise import PacketKind

NO_STAMP = -1
Times = npt.NDArray[np.int64]

LEAD_IN_NS = 2_000_000
"""Time from the time line's beginning to the first packet of a pass by the host's clock, because the instant of a stamp is some milliseconds before sending."""

_SENDING_NS = 100_000
"""Time from a packet's completion to the wire."""
_BACKWARD_NS = 20_000_000
_LEAP_NS = 50_000_000
_GAP_NS = 5_000_000
"""Shortest gap of a field of view for which a packet with firings before and after it leaves later: most of 20 degrees at 600 rpm."""
_ASTRAY_NS = 250_000_000
_HOST_LEAP_NS = 100_000_000
_BLOCK_NS = 4_000_000_000
_SETTLING_NS = 16_000_000_000
_SETTLING_BLOCKS = 4
"""Blocks over which a shift settles, if packets are so rare that a block takes longer: a loop that corrects more than it has measured would oscillate."""
_MAX_RATE = 500e-6
_MAX_RESIDUAL = 300e-6
"""Largest residual relative to the settling time; above it the host paused, and its clock is not used."""
_FOREVER_NS = 1 << 62
_EARLY_PERCENTILE = 5
"""Percentile of the residuals that counts, because a host records packets late, never early: during a pause by half a second and more."""
_BEHIND_NS = 100_000_000
_STANDING_PACKETS = 8


class Recorded(NamedTuple):
    """A run of datagrams in file order.

    Attributes:
        capture_ns: ``int64[n]``, stamps of the capturing host.
        flow: ``int64[n]``, flow numbers from ``Timeline.add_flow``.
        stamp_ns: ``int64[n]``, the packets' own stamps; ``NO_STAMP`` where a packet has none.
    """

    capture_ns: Times
    flow: Times
    stamp_ns: Times


class Placed(NamedTuple):
    """Places on the time line.

    Attributes:
        due_ns: ``int64[n]``, deadlines, which never decrease within a recorded flow.
        stamp_ns: ``int64[n]``, instant that each packet's own stamp shows; ``due_ns`` where it has none.
    """

    due_ns: Times
    stamp_ns: Times


@dataclass(kw_only=True)
class _Flow:
    recorded: FlowKey
    kind: PacketKind
    part: ReplayingPart
    modulus_ns: int
    latency_ns: int | None = None
    sent: int = 0
    device_ns: int | None = None

    def __post_init__(self) -> None:
        self.is_points = has_points(self.kind)
        self.leaves_at_once = self.part.at_once is self.kind


@dataclass(kw_only=True)
class SensorClock:
    """One sensor's clock aligned with the host's.

    Attributes:
        source: Name of the sensor by ``SensorNames``.
        cycle_ns: Mean time between point packets, 0 while unknown.
        behind_ns: Time by which point packets leave later than the sensor's other packets, by their stamps, beyond what their firings take.
        gap_ns: Time without firings between two firings of one packet, as the packet before showed that has it; 0 while there is none.
    """

    source: str
    cycle_ns: float = 0.0
    behind_ns: int = 0
    raw_ns: int | None = None
    device_ns: int = 0
    line_ns: int = 0
    points_line_ns: int = 0
    points_due_ns: int = 0
    points_seen: bool = False
    gap_ns: int = 0
    shift_ns: int | None = None
    rate: float = 0.0
    since_ns: int = 0
    residuals: list[float] = field(default_factory=list)
    weights: list[int] = field(default_factory=list)

    @property
    def latency_ns(self) -> int:
        """Time from the instant of a point packet's stamp, its first firing, to the wire.

        An HDL-32E's manual states that its stamp is the end of assembly; in a public capture its position packets' stamps show that it is the first firing.
        """
        return _SENDING_NS + round(self.cycle_ns) + self.behind_ns

    @property
    def late_ns(self) -> int:
        """Delay with which the host recorded the last packet."""
        return self.line_ns - self.device_ns - int(self.shift_at(np.array([self.device_ns]))[0]) - self.latency_ns

    def shift_at(self, device_ns: Times) -> Times:
        """The host's time line minus the sensor's clock, ``int64[n]``."""
        base = self.shift_ns or 0
        return np.asarray(base + np.rint(self.rate * (device_ns - self.since_ns)).astype(np.int64), dtype=np.int64)

    def follow(self, device_ns: int, residual_ns: Times) -> None:
        """Add residuals of the host's clock relative to the line, ``int64[n]``, and move the line towards it when a block is full."""
        settling_ns = max(_SETTLING_NS, _SETTLING_BLOCKS * (device_ns - self.since_ns))
        limit_ns = _MAX_RESIDUAL * settling_ns
        self.residuals.append(float(np.mean(np.clip(residual_ns, -limit_ns, limit_ns))))
        self.weights.append(residual_ns.size)
        if device_ns - self.since_ns < _BLOCK_NS:
            return
        mean_ns = float(np.average(self.residuals, weights=self.weights))
        self.shift_ns = int(self.shift_at(np.array([device_ns]))[0])
        self.since_ns = device_ns
        self.rate = float(np.clip(mean_ns / settling_ns, -_MAX_RATE, _MAX_RATE))
        self.residuals.clear()
        self.weights.clear()


class Timeline:
    """Time line of the packets of one pass through a capture; each pass has its own.

    Attributes:
        pace: Source of the send times.
        sensors: Clocks by the sensors' names.
        host_leaps: Number of times the capture's times went back by more than 0.1 s and were continued from there.
        host_steps_back: Number of times they went back by less; such a packet is sent right after the one before.
        clock_leaps: Number of times a sensor's clock leapt and was continued from there.
        standing_packets: Number of packets of sensors with stopped clocks, which are sent by capture time.
    """

    def __init__(self, pace: Pace, rate_hz: float = 0.0, names: SensorNames | None = None) -> None:
        """Without flows; ``names`` tells sensors apart, in all passes alike."""
        self._names = names or SensorNames()
        self.pace = pace
        self.sensors: dict[str, SensorClock] = {}
        self.host_leaps = 0
        self.host_steps_back = 0
        self.clock_leaps = 0
        self.standing_packets = 0
        self._rate_hz = rate_hz
        self._flows: list[_Flow] = []
        self._host_ns: int | None = None
        self._host_shift_ns = 0
        self._host_leap_ns = 0
        self._even_ns = 0
        self._last_due_ns: dict[FlowKey, int] = {}
        self._origin_ns: int | None = None

    def add_flow(self, recorded: FlowKey, kind: PacketKind, retiming: Retiming) -> int:
        """Add the packets of one kind of a recorded flow, whose stamps are of one form; returns their number."""
        self._names.of_flow(recorded, kind)
        self._flows.append(_Flow(recorded=recorded, kind=kind, part=replaying_part(kind), modulus_ns=retiming.wrap_ns or _FOREVER_NS))
        return len(self._flows) - 1

    def place(self, recorded: Recorded) -> Placed:
        """Place the next run of datagrams. The first run should have a few hundred packets, by which clocks are aligned.

        Raises:
            CaptureError: the pace is nominal and the rate of a flow is not known.
        """
        line = self._straight(recorded.capture_ns)
        stamp = line.copy()
        due = line.copy()
        has_stamp = recorded.stamp_ns != NO_STAMP
        sources = [self._source(flow) for flow in self._flows]
        for source in dict.fromkeys(sources[flow] for flow in np.unique(recorded.flow)):
            of_source = np.isin(recorded.flow, [number for number, each in enumerate(sources) if each == source])
            rows = np.flatnonzero(of_source & has_stamp)
            if rows.size:
                sensor = self.sensors.setdefault(source, SensorClock(source=source))
                self._lay(sensor, recorded, rows, line, stamp, due)
        if self.pace == "capture":
            due = line.copy()
        elif self.pace == "nominal":
            self._space_evenly(recorded, line, stamp, due)
        if self._origin_ns is None:
            self._origin_ns = int(min(due.min(), stamp.min())) if self.pace == "nominal" else int(min(line[0] - LEAD_IN_NS, due.min()))
        due, stamp = due - self._origin_ns, stamp - self._origin_ns
        for flow in dict.fromkeys(self._flows[number].recorded for number in np.unique(recorded.flow)):
            rows = np.flatnonzero(np.isin(recorded.flow, [number for number, other in enumerate(self._flows) if other.recorded == flow]))
            self._keep_order(flow, rows, has_stamp, due)
        return Placed(due, np.where(has_stamp, stamp, due))

    def _source(self, flow: _Flow) -> str:
        return self._names.of_flow(flow.recorded, flow.kind)

    def _keep_order(self, flow: FlowKey, rows: Times, has_stamp: npt.NDArray[np.bool_], due: Times) -> None:
        """Keep the packets of one recorded flow in their order, those without stamps between their neighbours with stamps."""
        next_ns = np.where(has_stamp[rows], due[rows], _FOREVER_NS)
        next_ns = np.minimum.accumulate(next_ns[::-1])[::-1]
        ordered = np.where(has_stamp[rows], due[rows], np.minimum(due[rows], next_ns))
        due[rows] = np.maximum(np.maximum.accumulate(ordered), self._last_due_ns.get(flow, -_FOREVER_NS))
        self._last_due_ns[flow] = int(due[rows[-1]])

    def _straight(self, capture_ns: Times) -> Times:
        """The capture's times without steps back; a leap back that is reversed later was a fault of single stamps."""
        line = capture_ns + self._host_shift_ns
        before_ns = int(line[0]) if self._host_ns is None else self._host_ns
        steps = np.diff(line, prepend=before_ns)
        for row in np.flatnonzero(np.abs(steps) > _HOST_LEAP_NS).tolist():
            step_ns = int(line[row]) - (int(line[row - 1]) if row else before_ns)
            if step_ns < -_HOST_LEAP_NS:
                self._host_leap_ns = -step_ns
                self.host_leaps += 1
                move_ns = -step_ns
            elif self._host_leap_ns and step_ns >= self._host_leap_ns:
                move_ns, self._host_leap_ns = -self._host_leap_ns, 0
            else:
                continue
            line[row:] += move_ns
            self._host_shift_ns += move_ns
        self.host_steps_back += int(((steps < 0) & (steps >= -_HOST_LEAP_NS)).sum())
        if self._host_ns is not None:
            line = np.maximum(line, self._host_ns)
        line = np.maximum.accumulate(line)
        self._host_ns = int(line[-1])
        return line

    def _lay(self, sensor: SensorClock, recorded: Recorded, rows: Times, line: Times, stamp: Times, due: Times) -> None:
        """Align one sensor's clock with the host's: fill in ``stamp`` and ``due`` of its rows."""
        flows = recorded.flow[rows]
        is_points = np.array([self._flows[flow].is_points for flow in flows])
        device = self._unwrapped(sensor, recorded.stamp_ns[rows], line[rows], flows)
        if rows.size >= _STANDING_PACKETS and (device == device[0]).all():
            self.standing_packets += rows.size
            return
        reference = is_points if is_points.any() else np.ones(rows.size, np.bool_)
        if sensor.cycle_ns == 0.0 and is_points.sum() > 1:
            sensor.cycle_ns = _regular_step(np.diff(device[is_points]))
        if sensor.shift_ns is None:
            leaves_at_once = np.array([self._flows[flow].leaves_at_once for flow in flows])
            sensor.behind_ns = _behind_ns(line[rows] - device, is_points, leaves_at_once, sensor.latency_ns)
            sensor.shift_ns = _earliest(line[rows][reference] - device[reference]) - sensor.latency_ns
            sensor.since_ns = int(device[0])
        shift = sensor.shift_at(device)
        late = (line[rows] - device - shift)[reference] - sensor.latency_ns
        is_catching_up = 2 * (line[rows[-1]] - line[rows[0]]) < device[-1] - device[0]
        if late.max() < -_ASTRAY_NS or (late.min() > _ASTRAY_NS and not is_catching_up):
            self.clock_leaps += 1
            astray_ns = int(np.median(late))
            sensor.shift_ns += astray_ns
            shift += astray_ns
        stamp[rows] = device + shift
        for number in np.unique(flows):
            flow = self._flows[number]
            own = flows == number
            if flow.latency_ns is None:
                flow.latency_ns = sensor.latency_ns if flow.is_points else max(_earliest((line[rows] - stamp[rows])[own]), 0)
            due[rows[own]] = stamp[rows[own]] + flow.latency_ns
            if flow.is_points:
                due[rows[own]] += _waits_ns(sensor, line[rows[own]], due[rows[own]])
        points = rows[reference]
        sensor.follow(int(device[-1]), line[points] - due[points])

    def _unwrapped(self, sensor: SensorClock, raw: Times, line: Times, flows: Times) -> Times:
        """Stamps as a count without wraps; where a clock leapt, the host's time gives that step."""
        modulus_ns = self._flows[flows[0]].modulus_ns
        before = raw[0] if sensor.raw_ns is None else sensor.raw_ns
        line_before = line[0] if sensor.raw_ns is None else sensor.line_ns
        step = (np.diff(raw, prepend=before) + modulus_ns // 2) % modulus_ns - modulus_ns // 2
        line_step = np.diff(line, prepend=line_before)
        leapt = np.zeros(step.size, np.bool_)
        while (row := self._first_backward(flows, sensor.device_ns + np.cumsum(step), leapt)) is not None:
            leapt[row], step[row] = True, line_step[row]
        leapt |= _find_leaps(step, line_step, None if sensor.shift_ns is None else sensor.late_ns)
        if leapt.any():
            self.clock_leaps += int(leapt.sum())
            step = np.where(leapt, line_step, step)
        device = np.asarray(sensor.device_ns + np.cumsum(step), dtype=np.int64)
        sensor.raw_ns, sensor.device_ns, sensor.line_ns = int(raw[-1]), int(device[-1]), int(line[-1])
        for number in np.unique(flows):
            self._flows[number].device_ns = int(device[flows == number][-1])
        return device

    def _first_backward(self, flows: Times, device: Times, known: npt.NDArray[np.bool_]) -> int | None:
        """Index of the first packet, other than those known, whose stamp is before that of the last packet of its own flow; None if there is none.

        Packets of another flow may be between them with later stamps: a packet with firings before and after a gap of the field of view leaves after it.
        """
        found = []
        for number in np.unique(flows):
            rows, former_ns = np.flatnonzero(flows == number), self._flows[number].device_ns
            steps = np.diff(device[rows], prepend=device[rows[0]] if former_ns is None else former_ns)
            found.extend(rows[(steps < -_BACKWARD_NS) & ~known[rows]][:1].tolist())
        return min(found, default=None)

    def _space_evenly(self, recorded: Recorded, line: Times, stamp: Times, due: Times) -> None:
        """Apply pace ``nominal``: point packets at their model's cycle (others at ``rate_hz``), position packets at their places between these."""
        for row, number in enumerate(recorded.flow.tolist()):
            flow = self._flows[number]
            sensor = self.sensors.get(self._source(flow))
            if flow.part.cycle_ns is not None and flow.is_points and sensor is not None and sensor.cycle_ns > 0.0:
                cycle_ns = flow.part.cycle_ns(sensor.cycle_ns)
                due[row] = self._next_even_ns(flow, cycle_ns, _SENDING_NS + round(cycle_ns))
                sensor.points_line_ns, sensor.points_due_ns, sensor.points_seen = int(line[row]), int(due[row]), True
            elif self._rate_hz > 0.0:
                due[row] = self._next_even_ns(flow, 1e9 / self._rate_hz, 0)
            elif sensor is not None and sensor.points_seen:
                due[row] = sensor.points_due_ns + min(max(int(line[row]) - sensor.points_line_ns, 0), round(sensor.cycle_ns))
            elif flow.part.cycle_ns is not None and not flow.is_points:
                due[row] = 0
            else:
                raise CaptureError(f'pace "nominal" needs rate_hz: the rate of packets of {self._source(flow)} ({flow.kind}) is not known')
            stamp[row] = due[row] - (flow.latency_ns or 0)

    def _next_even_ns(self, flow: _Flow, cycle_ns: float, first_ns: int) -> int:
        """Deadline of a flow's next packet at a constant rate; a flow that began late or lost packets skips cycles to stay with the others."""
        behind_ns = self._even_ns - first_ns - round(flow.sent * cycle_ns)
        if behind_ns > _BEHIND_NS:
            flow.sent += int(behind_ns // cycle_ns)
        due_ns = first_ns + round(flow.sent * cycle_ns)
        flow.sent += 1
        self._even_ns = max(self._even_ns, due_ns)
        return due_ns


def _earliest(values: Times) -> int:
    return int(np.percentile(values, _EARLY_PERCENTILE, method="lower"))


def _behind_ns(lag: Times, is_points: npt.NDArray[np.bool_], leaves_at_once: npt.NDArray[np.bool_], latency_ns: int) -> int:
    """Time by which a sensor sends its points later than packets that leave at once, beyond the latency of a packet.

    By the public captures of Ousters it is 3 to 15 ms.
    """
    if not (is_points.any() and leaves_at_once.any()):
        return 0
    return max(_earliest(lag[is_points]) - _earliest(lag[leaves_at_once]) - latency_ns, 0)


def _waits_ns(sensor: SensorClock, line: Times, due: Times) -> Times:
    """Time by which each point packet leaves later, because the field of view has a gap between its first and its last firing; 0 for almost all.

    Such a packet comes late by the gap before the next packet, and the one before it does not.

    Args:
        sensor: Clock of the sensor.
        line: ``int64[n]``, times of the host's clock.
        due: ``int64[n]``, deadlines without these waits.
    """
    late, gap = line - due, np.append(np.diff(due) - round(sensor.cycle_ns), sensor.gap_ns)
    late_before = np.concatenate(([0], late[:-1]))
    waits = (gap > _GAP_NS) & (2 * late_before < gap) & (2 * np.abs(late - gap) < gap)
    if waits.any():
        sensor.gap_ns = int(gap[waits][-1])
    return np.where(waits, gap, 0)


def _find_leaps(step: Times, line_step: Times, late_ns: int | None) -> npt.NDArray[np.bool_]:
    """Find the steps of a sensor's clock that are leaps forward.

    A step much longer than the host's is no leap if the host was as late before: then packets were lost while it caught up.

    Args:
        step: ``int64[n]``, steps of the sensor's clock; the host's where it leapt back.
        line_step: ``int64[n]``, steps of the host's clock.
        late_ns: Delay of the host at the packet before the first; None if unknown.
    """
    leapt = np.zeros(step.size, np.bool_)
    late = (late_ns or 0) + np.cumsum(line_step - step)
    for row in np.flatnonzero(step - line_step > _LEAP_NS).tolist():
        punctual_ns = late[:row].min(initial=0) if late_ns is None else 0
        if late[row] < punctual_ns - _LEAP_NS:
            leapt[row] = True
            late[row:] -= line_step[row] - step[row]
    return leapt


def _regular_step(steps: Times) -> float:
    """Mean of the steps that are close to the median."""
    positive = steps[steps > 0]
    if not positive.size:
        return 0.0
    middle = np.percentile(positive, 50, method="lower")  # one of the steps, so that at least one is close to it
    return float(np.mean(positive[np.abs(positive - middle) <= 0.1 * middle + 4000]))


def whole_cycles_ns(step_ns: int, cycle_ns: float) -> int:
    """Whole number of cycles, at least one, nearest to a step."""
    return round(max(1, round(step_ns / cycle_ns)) * cycle_ns)
