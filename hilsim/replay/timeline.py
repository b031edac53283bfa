"""When each recorded packet is due, and which instant its own time stamp names, on one time line of nanoseconds from the replay's beginning.

Two clocks stand in a capture: the capturing host's, with its jitter and pauses, and each sensor's own, regular but unrelated to anything. A sensor's
clock is laid along the host's: its stamps are unwrapped, shifted to where they fit on average, and that shift follows the host's clock slowly (a first-order
loop over blocks of four seconds), so that the line has the sensor's regularity from packet to packet and the host's rate over hours. Several sensors of
a capture keep their relation that way.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.errors import CaptureError
from hilsim.packets.recognise import PacketKind
from hilsim.packets.velodyne_models import MODELS
from hilsim.replay.specs import Pace

NO_STAMP = -1
Times = npt.NDArray[np.int64]

_HOUR_NS = 3_600_000_000_000
_CLOCKED = {PacketKind.VELODYNE_DATA: _HOUR_NS, PacketKind.VELODYNE_POSITION: _HOUR_NS, PacketKind.CEPTON_STDV: 1 << 62}
"""Kinds whose stamps are understood, with what their count runs modulo."""
POINTS = frozenset((PacketKind.VELODYNE_DATA, PacketKind.CEPTON_STDV))

_SENDING_NS = 100_000
"""From a packet's completion to the wire."""
_BACKWARD_NS = 20_000_000
_LEAP_NS = 50_000_000
_ASTRAY_NS = 250_000_000
_HOST_LEAP_NS = 100_000_000
_BLOCK_NS = 4_000_000_000
_SETTLING_NS = 16_000_000_000
_MOST_RATE = 500e-6


class Recorded(NamedTuple):
    """A run of datagrams in file order.

    Attributes:
        capture_ns: ``int64[n]``, the capturing host's stamps.
        flow: ``int64[n]``, numbers of ``Timeline.add_flow``.
        stamp_ns: ``int64[n]``, what their own stamps show; ``NO_STAMP`` where there is none.
    """

    capture_ns: Times
    flow: Times
    stamp_ns: Times


class Placed(NamedTuple):
    """Where they stand on the time line.

    Attributes:
        due_ns: ``int64[n]``, when each leaves; never falling within a flow.
        stamp_ns: ``int64[n]``, the instant its own stamp names; ``due_ns`` where it has none.
    """

    due_ns: Times
    stamp_ns: Times


@dataclass(kw_only=True)
class _Flow:
    source: str
    kind: PacketKind
    latency_ns: int | None = None
    last_due_ns: int = -(1 << 62)
    sent: int = 0

    @property
    def modulus_ns(self) -> int:
        return _CLOCKED.get(self.kind, 0)


@dataclass(kw_only=True)
class SensorClock:
    """One sensor's clock along the host's.

    Attributes:
        source: Its recorded address.
        cycle_ns: Mean time between its point packets, 0 while unknown.
        last_points_ns: Instant named by the latest point packet's stamp, on the time line; None before the first.
        first_points_ns: The same of the first.
    """

    source: str
    cycle_ns: float = 0.0
    first_points_ns: int | None = None
    last_points_ns: int | None = None
    raw_ns: int | None = None
    device_ns: int = 0
    line_ns: int = 0
    points_line_ns: int = 0
    points_due_ns: int = 0
    points_seen: bool = False
    shift_ns: int | None = None
    rate: float = 0.0
    since_ns: int = 0
    residuals: list[float] = field(default_factory=list)
    weights: list[int] = field(default_factory=list)

    @property
    def latency_ns(self) -> int:
        """From the instant a point packet's stamp names, its first firing, to the wire.

        An HDL-32E's manual says that its stamp is the end of assembly; in a public capture its position packets' stamps show that it is the first firing.
        """
        return _SENDING_NS + round(self.cycle_ns)

    def shift_at(self, device_ns: Times) -> Times:
        """Host's time line minus the sensor's clock, ``int64[n]``."""
        base = self.shift_ns or 0
        return np.asarray(base + np.rint(self.rate * (device_ns - self.since_ns)).astype(np.int64), dtype=np.int64)

    def follow(self, device_ns: int, residual_ns: float, count: int) -> None:
        """Take notice of how far the host's clock is ahead of the line, and lean the line towards it once a block is full."""
        self.residuals.append(residual_ns)
        self.weights.append(count)
        if device_ns - self.since_ns < _BLOCK_NS:
            return
        mean_ns = float(np.average(self.residuals, weights=self.weights))
        self.shift_ns = int(self.shift_at(np.array([device_ns]))[0])
        self.since_ns = device_ns
        self.rate = float(np.clip(mean_ns / _SETTLING_NS, -_MOST_RATE, _MOST_RATE))
        self.residuals.clear()
        self.weights.clear()


class Timeline:
    """Places the packets of one pass through a capture; a new pass takes a new one.

    Attributes:
        pace: What decides when packets leave.
        sensors: Clocks by recorded address.
        host_leaps: How often the capture's times went back by more than 0.1 s: they are then taken to go on.
        host_steps_back: How often they went back by less: those packets leave right after the one before.
        clock_leaps: How often a sensor's clock leapt: it is then taken to go on.
    """

    def __init__(self, pace: Pace, rate_hz: float = 0.0) -> None:
        self.pace = pace
        self.sensors: dict[str, SensorClock] = {}
        self.host_leaps = 0
        self.host_steps_back = 0
        self.clock_leaps = 0
        self._rate_hz = rate_hz
        self._flows: list[_Flow] = []
        self._host_ns: int | None = None
        self._host_shift_ns = 0
        self._origin_ns: int | None = None

    def add_flow(self, source: str, kind: PacketKind) -> int:
        """Number of a flow from ``source``."""
        self._flows.append(_Flow(source=source, kind=kind))
        return len(self._flows) - 1

    def place(self, recorded: Recorded) -> Placed:
        """Place the next run of datagrams. The first run should span a few hundred packets: clocks are laid along each other by it.

        Raises:
            CaptureError: the pace is nominal and the rate of a flow is not known.
        """
        line = self._straight(recorded.capture_ns)
        stamp = line.copy()
        due = line.copy()
        has_stamp = recorded.stamp_ns != NO_STAMP
        for source in dict.fromkeys(self._flows[flow].source for flow in np.unique(recorded.flow)):
            of_source = np.isin(recorded.flow, [number for number, flow in enumerate(self._flows) if flow.source == source])
            rows = np.flatnonzero(of_source & has_stamp)
            if rows.size:
                sensor = self.sensors.setdefault(source, SensorClock(source=source))
                self._lay(sensor, recorded, rows, line, stamp, due)
        if self.pace == "capture":
            due = line.copy()
        elif self.pace == "nominal":
            self._space_evenly(recorded, line, stamp, due)
        if self._origin_ns is None:
            self._origin_ns = int(min(due.min(), stamp.min()))
        due, stamp = due - self._origin_ns, stamp - self._origin_ns
        for number in np.unique(recorded.flow):
            rows = np.flatnonzero(recorded.flow == number)
            flow = self._flows[number]
            due[rows] = np.maximum(np.maximum.accumulate(due[rows]), flow.last_due_ns)
            flow.last_due_ns = int(due[rows[-1]])
        self._remember_points(recorded, stamp)
        return Placed(due, np.where(has_stamp, stamp, due))

    def _straight(self, capture_ns: Times) -> Times:
        """The capture's times without steps back."""
        line = capture_ns + self._host_shift_ns
        steps = np.diff(line, prepend=line[:1] if self._host_ns is None else self._host_ns)
        for row in np.flatnonzero(steps < -_HOST_LEAP_NS).tolist():
            back_ns = int(steps[row])
            line[row:] -= back_ns
            self._host_shift_ns -= back_ns
            self.host_leaps += 1
        self.host_steps_back += int(((steps < 0) & (steps >= -_HOST_LEAP_NS)).sum())
        if self._host_ns is not None:
            line = np.maximum(line, self._host_ns)
        line = np.maximum.accumulate(line)
        self._host_ns = int(line[-1])
        return line

    def _lay(self, sensor: SensorClock, recorded: Recorded, rows: Times, line: Times, stamp: Times, due: Times) -> None:
        """Lay one sensor's clock along the host's: fill in ``stamp`` and ``due`` of its rows."""
        flows = recorded.flow[rows]
        is_points = np.array([self._flows[flow].kind in POINTS for flow in flows])
        device = self._unwrapped(sensor, recorded.stamp_ns[rows], line[rows], self._flows[flows[0]].modulus_ns)
        reference = is_points if is_points.any() else np.ones(rows.size, np.bool_)
        if sensor.cycle_ns == 0.0 and is_points.sum() > 1:
            sensor.cycle_ns = _regular_step(np.diff(device[is_points]))
        if sensor.shift_ns is None:
            sensor.shift_ns = int(np.median(line[rows][reference] - device[reference])) - sensor.latency_ns
            sensor.since_ns = int(device[0])
        shift = sensor.shift_at(device)
        astray_ns = int(np.median(line[rows] - device - shift))
        if abs(astray_ns) > _ASTRAY_NS:
            self.clock_leaps += 1
            sensor.shift_ns += astray_ns
            shift += astray_ns
        stamp[rows] = device + shift
        for number in np.unique(flows):
            flow = self._flows[number]
            own = flows == number
            if flow.latency_ns is None:
                flow.latency_ns = sensor.latency_ns if flow.kind in POINTS else max(int(np.median((line[rows] - stamp[rows])[own])), 0)
            due[rows[own]] = stamp[rows[own]] + flow.latency_ns
        points = rows[reference]
        sensor.follow(int(device[-1]), float(np.mean(np.clip(line[points] - due[points], -5_000_000, 5_000_000))), points.size)

    def _unwrapped(self, sensor: SensorClock, raw: Times, line: Times, modulus_ns: int) -> Times:
        """Stamps as a count that runs on; where a clock leapt, the host's time is taken for that step."""
        before = raw[0] if sensor.raw_ns is None else sensor.raw_ns
        line_before = line[0] if sensor.raw_ns is None else sensor.line_ns
        step = (np.diff(raw, prepend=before) + modulus_ns // 2) % modulus_ns - modulus_ns // 2
        line_step = np.diff(line, prepend=line_before)
        leapt = (step < -_BACKWARD_NS) | (step - line_step > _LEAP_NS)
        if leapt.any():
            self.clock_leaps += int(leapt.sum())
            step = np.where(leapt, line_step, step)
        device = np.asarray(sensor.device_ns + np.cumsum(step), dtype=np.int64)
        sensor.raw_ns, sensor.device_ns, sensor.line_ns = int(raw[-1]), int(device[-1]), int(line[-1])
        return device

    def _space_evenly(self, recorded: Recorded, line: Times, stamp: Times, due: Times) -> None:
        """Pace nominal: point packets at their model's cycle (others at ``rate_hz``), position packets at their places between these."""
        for row, number in enumerate(recorded.flow.tolist()):
            flow = self._flows[number]
            sensor = self.sensors.get(flow.source)
            if flow.kind is PacketKind.VELODYNE_DATA and sensor is not None:
                cycle_ns = _nominal_cycle_ns(sensor.cycle_ns)
                due[row] = round(flow.sent * cycle_ns) + _SENDING_NS + round(cycle_ns)
                flow.sent += 1
                sensor.points_line_ns, sensor.points_due_ns, sensor.points_seen = int(line[row]), int(due[row]), True
            elif self._rate_hz > 0.0:
                due[row] = round(flow.sent * 1e9 / self._rate_hz)
                flow.sent += 1
            elif sensor is not None and sensor.points_seen:
                due[row] = sensor.points_due_ns + min(max(int(line[row]) - sensor.points_line_ns, 0), round(sensor.cycle_ns))
            elif flow.kind is PacketKind.VELODYNE_POSITION:
                due[row] = 0
            else:
                raise CaptureError(f'pace "nominal" needs rate_hz: the rate of packets of {flow.source} ({flow.kind}) is not known')
            stamp[row] = due[row] - (flow.latency_ns or 0)

    def _remember_points(self, recorded: Recorded, stamp: Times) -> None:
        for source, sensor in self.sensors.items():
            points = [number for number, flow in enumerate(self._flows) if flow.source == source and flow.kind in POINTS]
            rows = np.flatnonzero(np.isin(recorded.flow, points))
            if rows.size:
                if sensor.first_points_ns is None:
                    sensor.first_points_ns = int(stamp[rows[0]])
                sensor.last_points_ns = int(stamp[rows[-1]])


def _regular_step(steps: Times) -> float:
    """Mean of the steps that are like most."""
    positive = steps[steps > 0]
    if not positive.size:
        return 0.0
    median = np.median(positive)
    return float(np.mean(positive[np.abs(positive - median) <= 0.1 * median + 4000]))


def _nominal_cycle_ns(measured_ns: float) -> float:
    """The cycle of the model that sends at this pace; what was measured where no model does."""
    cycles = [1000.0 * model.cycle_us(is_dual=is_dual) for model in MODELS for is_dual in (False, True)]
    nearest = min(cycles, key=lambda cycle: abs(cycle - measured_ns))
    return nearest if abs(nearest - measured_ns) < 0.01 * nearest else measured_ns


def whole_cycles_ns(step_ns: int, cycle_ns: float) -> int:
    """The whole number of cycles, at least one, nearest to a step."""
    return round(max(1, round(step_ns / cycle_ns)) * cycle_ns)
