"""Let each pass through a capture continue where the former pass ended, so that times, stamps and sequence numbers increase for ever."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hilsim.capture.sensor_names import SensorNames
from hilsim.emulator.replaying import Count, replaying_part
from hilsim.parts.replays.recorded.timeline import Placed, Recorded, Timeline, whole_cycles_ns
from hilsim.parts.replays.recorded.tracks import Track
from hilsim.protocols.flow_key import FlowKey

_FOREVER_NS = 1 << 62
_MAX_SURPLUS = 8


@dataclass(kw_only=True)
class _Span:
    """Part of a pass that one track has played."""

    first_ns: int
    last_ns: int = 0
    packets: int = 0

    @property
    def interval_ns(self) -> int:
        return (self.last_ns - self.first_ns) // max(self.packets - 1, 1)


@dataclass(kw_only=True)
class Continuity:
    """State of the replay at the end of the passes so far.

    Attributes:
        tracks: Tracks of the reader, which adds to them.
        master: Name of the sensor for which the seam was cut.
        names: Names of the sensors.
        due_ns: Deadline of the last packet.
        surplus_packets: Number of packets left out at seams so that stamps advance by whole cycles.
    """

    tracks: list[Track]
    master: str
    names: SensorNames = field(default_factory=SensorNames)
    due_ns: int = 0
    surplus_packets: int = 0
    _begin: Callable[[], int] | None = None
    _spans: dict[int, _Span] = field(default_factory=dict)
    _former_spans: dict[int, _Span] = field(default_factory=dict)
    _next_stamp_ns: int | None = None
    _shift_ns: int | None = None
    _sensor_shift_ns: dict[str, int] = field(default_factory=dict)
    _points_ns: dict[str, int] = field(default_factory=dict)
    _counts: dict[tuple[str | FlowKey, int | None], Count] = field(default_factory=dict)
    """Count of the last packet of a sensor, by name and serial number, or of a flow."""
    _count_shift: dict[tuple[str | FlowKey, int | None], int] = field(default_factory=dict)

    def begin(self, at: Callable[[], int]) -> None:
        """Let the next pass begin at ``at()``, whatever was played before: for the first pass, and after a seek. ``at`` is called once packets are here."""
        self._next()
        self._begin, self._next_stamp_ns = at, None
        self.due_ns = -_FOREVER_NS  # packets that were read ahead and not played are discarded
        self._points_ns.clear()

    def join(self, next_stamp_ns: int | None) -> bool:
        """Let the next pass continue from here; returns whether anything was played in this one (if not, the next begins where this one should have).

        Args:
            next_stamp_ns: Instant that the stamp of the master's first packet shows in the next pass; None if the pass just follows at the mean interval.
        """
        if not self._spans and self._begin is not None:
            self.begin(self._begin)
            return False
        has_played = bool(self._spans)
        self._next()
        self._begin, self._next_stamp_ns = None, next_stamp_ns
        return has_played

    def _next(self) -> None:
        self._former_spans, self._spans = self._spans, {}
        self._shift_ns = None
        self._sensor_shift_ns.clear()
        self._count_shift.clear()

    def find_surplus(self, placed: Placed, recorded: Recorded, timeline: Timeline) -> npt.NDArray[np.bool_]:
        """Find packets of a run that must be left out at a seam, ``bool[n]``.

        The master's part may contain one packet more of another sensor than that sensor's cycles fit into it. If it were played, the sensor's stamps would
        gain on the master's with every pass.
        """
        shift_ns = self._fix_shift(placed, recorded)
        is_surplus = np.zeros(recorded.flow.size, np.bool_)
        for source in self._sources(recorded) if self._next_stamp_ns is not None else ():
            joint = self._joint(source, timeline)
            rows = self._rows(recorded, source, points_only=True)[:_MAX_SURPLUS]
            if joint is None or source in self._sensor_shift_ns:
                continue
            before_ns, cycle_ns = joint
            too_soon = 2 * (placed.stamp_ns[rows] + shift_ns - before_ns) < cycle_ns
            if not too_soon.all():
                is_surplus[rows[: int(np.argmin(too_soon))]] = True
        self.surplus_packets += int(is_surplus.sum())
        return is_surplus

    def shifted(self, placed: Placed, recorded: Recorded, timeline: Timeline) -> Placed:
        """Shift a run to the end of the former passes; a sensor's stamps advance by whole cycles."""
        shift_ns = self._fix_shift(placed, recorded)
        shift = np.full(placed.due_ns.size, shift_ns, np.int64)
        for source in self._sources(recorded):
            points = self._rows(recorded, source, points_only=True)
            if source not in self._sensor_shift_ns and points.size:
                step_ns = int(placed.stamp_ns[points[0]]) + shift_ns
                self._sensor_shift_ns[source] = shift_ns + self._correction_ns(source, step_ns, timeline)
            shift[self._rows(recorded, source, points_only=False)] = self._sensor_shift_ns.get(source, shift_ns)
        return Placed(placed.due_ns + shift, placed.stamp_ns + shift)

    def remember(self, placed: Placed, recorded: Recorded) -> None:
        """Record the end of a run that is played."""
        self.due_ns = int(placed.due_ns.max(initial=self.due_ns))
        for number in np.unique(recorded.flow).tolist():
            own = recorded.flow == number
            span = self._spans.setdefault(number, _Span(first_ns=int(placed.due_ns[own][0])))
            span.last_ns = int(placed.due_ns[own][-1])
            span.packets += int(own.sum())
            if self.tracks[number].is_points:
                self._points_ns[self._source(self.tracks[number])] = int(placed.stamp_ns[own][-1])

    def _fix_shift(self, placed: Placed, recorded: Recorded) -> int:
        if self._shift_ns is None:
            self._shift_ns = self._find_shift_ns(placed, recorded)
        return self._shift_ns

    def _find_shift_ns(self, placed: Placed, recorded: Recorded) -> int:
        if self._begin is not None:
            self.due_ns = self._begin()
            return self.due_ns
        rows = self._rows(recorded, self.master, points_only=True)
        if self._next_stamp_ns is not None and rows.size:
            return self._next_stamp_ns - int(placed.stamp_ns[rows[0]])
        return self._following_ns(placed, recorded)

    def _following_ns(self, placed: Placed, recorded: Recorded) -> int:
        """Shift for a pass that just follows: the busiest track at its mean interval, and no packet before the last one of the former pass."""
        shift_ns = self.due_ns - int(placed.due_ns.min())
        number = max(self._former_spans, key=lambda number: self._former_spans[number].packets, default=-1)
        own = placed.due_ns[recorded.flow == number]
        if own.size:
            span = self._former_spans[number]
            shift_ns = max(shift_ns, span.last_ns + span.interval_ns - int(own[0]))
        return shift_ns

    def _correction_ns(self, source: str, stamp_ns: int, timeline: Timeline) -> int:
        """Correction with which the stamps of a sensor other than the master advance by whole cycles, if its first would be ``stamp_ns``."""
        joint = self._joint(source, timeline)
        if joint is None:
            return 0
        before_ns, cycle_ns = joint
        return before_ns + whole_cycles_ns(stamp_ns - before_ns, cycle_ns) - stamp_ns

    def _joint(self, source: str, timeline: Timeline) -> tuple[int, float] | None:
        """A sensor's last stamp before a seam, and its cycle; None where no stamps must fit."""
        sensor, before_ns = timeline.sensors.get(source), self._points_ns.get(source)
        is_cyclic = any(track.is_points and replaying_part(track.kind).cycle_ns and self._source(track) == source for track in self.tracks)
        if self._next_stamp_ns is None or source == self.master or not is_cyclic or sensor is None or before_ns is None or sensor.cycle_ns <= 0.0:
            return None
        return before_ns, sensor.cycle_ns

    def _source(self, track: Track) -> str:
        return self.names.of_flow(track.recorded, track.kind)

    def _sources(self, recorded: Recorded) -> list[str]:
        return list(dict.fromkeys(self._source(self.tracks[number]) for number in np.unique(recorded.flow).tolist()))

    def _rows(self, recorded: Recorded, source: str, *, points_only: bool) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        numbers = [number for number, track in enumerate(self.tracks) if self._source(track) == source and (track.is_points or not points_only)]
        return np.flatnonzero(np.isin(recorded.flow, numbers))

    def continued(self, payload: bytes, number: int) -> bytes:
        """Packet of a track with a number that continues from the former pass: of the same frame where that goes on, else the next one."""
        track = self.tracks[number]
        part = replaying_part(track.kind)
        count = part.count(payload)
        if count is None:
            return payload
        sensor = (track.recorded if count.serial is None else self._source(track)), count.serial
        if sensor not in self._count_shift:
            before = self._counts.get(sensor)
            following = count.number if before is None else before.number + (count.within <= before.within)
            self._count_shift[sensor] = following - count.number
        shifted = count.number + self._count_shift[sensor]
        if track.is_points or count.serial is None:
            self._counts[sensor] = count._replace(number=shifted)
        return part.counted(payload, shifted) if shifted != count.number else payload
