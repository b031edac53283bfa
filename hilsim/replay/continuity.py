"""Lets each pass through a capture go on where the one before ended: times, stamps and sequence numbers run on for ever."""

from dataclasses import dataclass, field

import numpy as np

from hilsim.packets.cepton_stdv import SEQUENCE_OFFSET, read_stdv_header
from hilsim.packets.recognise import PacketKind
from hilsim.replay.timeline import Placed, Recorded, Timeline, whole_cycles_ns
from hilsim.replay.tracks import Track

_UNSIGNED = 1 << 32


@dataclass(kw_only=True)
class _Span:
    """What one track has played in a pass."""

    first_ns: int
    last_ns: int = 0
    packets: int = 0

    @property
    def interval_ns(self) -> int:
        return (self.last_ns - self.first_ns) // max(self.packets - 1, 1)


@dataclass(kw_only=True)
class Continuity:
    """What the passes so far have played up to.

    Attributes:
        tracks: Of the reader, which adds to them.
        master: Recorded address of the sensor for which the seam was cut.
        due_ns: When the last packet is due.
    """

    tracks: list[Track]
    master: str
    due_ns: int = 0
    _begin_ns: int | None = 0
    _spans: dict[int, _Span] = field(default_factory=dict)
    _former_spans: dict[int, _Span] = field(default_factory=dict)
    _next_stamp_ns: int | None = None
    _shift_ns: int | None = None
    _sensor_shift_ns: dict[str, int] = field(default_factory=dict)
    _points_ns: dict[str, int] = field(default_factory=dict)
    _sequence: dict[int, int] = field(default_factory=dict)
    _sequence_shift: dict[int, int] = field(default_factory=dict)

    def begin(self, at_ns: int) -> None:
        """The next pass begins at ``at_ns`` whatever was before: the first pass, and after a seek."""
        self._next()
        self._begin_ns, self._next_stamp_ns = at_ns, None

    def join(self, next_stamp_ns: int | None) -> bool:
        """The next pass goes on from here; returns whether anything was played in this one (else the next begins where this one should have).

        Args:
            next_stamp_ns: The instant that the stamp of the master's first packet names in it; None where the pass just follows at the mean interval.
        """
        if not self._spans and self._begin_ns is not None:
            self.begin(self._begin_ns)
            return False
        has_played = bool(self._spans)
        self._next()
        self._begin_ns, self._next_stamp_ns = None, next_stamp_ns
        return has_played

    def _next(self) -> None:
        self._former_spans, self._spans = self._spans, {}
        self._shift_ns = None
        self._sensor_shift_ns.clear()
        self._sequence_shift.clear()

    def shifted(self, placed: Placed, recorded: Recorded, timeline: Timeline) -> Placed:
        """Move a run to where the passes before ended; a sensor's stamps go on by whole cycles."""
        if self._shift_ns is None:
            self._shift_ns = self._find_shift_ns(placed, recorded)
        shift = np.full(placed.due_ns.size, self._shift_ns, np.int64)
        for source in dict.fromkeys(self.tracks[number].recorded.source for number in np.unique(recorded.flow).tolist()):
            if source not in self._sensor_shift_ns:
                self._sensor_shift_ns[source] = self._shift_ns + self._correction_ns(source, timeline)
            shift[self._rows(recorded, source, points_only=False)] = self._sensor_shift_ns[source]
        return Placed(placed.due_ns + shift, placed.stamp_ns + shift)

    def remember(self, placed: Placed, recorded: Recorded) -> None:
        """Take notice of a run that is played."""
        self.due_ns = max(self.due_ns, int(placed.due_ns.max()))
        for number in np.unique(recorded.flow).tolist():
            own = recorded.flow == number
            span = self._spans.setdefault(number, _Span(first_ns=int(placed.due_ns[own][0])))
            span.last_ns = int(placed.due_ns[own][-1])
            span.packets += int(own.sum())
            if self.tracks[number].is_points:
                self._points_ns[self.tracks[number].recorded.source] = int(placed.stamp_ns[own][-1])

    def _find_shift_ns(self, placed: Placed, recorded: Recorded) -> int:
        if self._begin_ns is not None:
            return self._begin_ns
        rows = self._rows(recorded, self.master, points_only=True)
        if self._next_stamp_ns is not None and rows.size:
            return self._next_stamp_ns - int(placed.stamp_ns[rows[0]])
        return self._following_ns(placed, recorded)

    def _following_ns(self, placed: Placed, recorded: Recorded) -> int:
        """Shift for a pass that just follows: the busiest track at its mean interval, and nothing before the last packet of the pass before."""
        shift_ns = self.due_ns - int(placed.due_ns.min())
        number = max(self._former_spans, key=lambda number: self._former_spans[number].packets, default=-1)
        own = placed.due_ns[recorded.flow == number]
        if own.size:
            span = self._former_spans[number]
            shift_ns = max(shift_ns, span.last_ns + span.interval_ns - int(own[0]))
        return shift_ns

    def _correction_ns(self, source: str, timeline: Timeline) -> int:
        """What a sensor other than the master needs at a seam for its stamps to go on by whole cycles: half a cycle at most, one where it had none."""
        sensor, before_ns = timeline.sensors.get(source), self._points_ns.get(source)
        is_cyclic = any(track.kind is PacketKind.VELODYNE_DATA and track.recorded.source == source for track in self.tracks)
        if self._next_stamp_ns is None or source == self.master or not is_cyclic or sensor is None or before_ns is None:
            return 0
        if sensor.first_points_ns is None or sensor.cycle_ns <= 0.0:
            return 0
        step_ns = sensor.first_points_ns + (self._shift_ns or 0) - before_ns
        return whole_cycles_ns(step_ns, sensor.cycle_ns) - step_ns

    def _rows(self, recorded: Recorded, source: str, *, points_only: bool) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        numbers = [number for number, track in enumerate(self.tracks) if track.recorded.source == source and (track.is_points or not points_only)]
        return np.flatnonzero(np.isin(recorded.flow, numbers))

    def renumbered(self, payload: bytes, number: int) -> bytes:
        """A Cepton point packet with a sequence number that goes on from the pass before."""
        header = read_stdv_header(payload)
        if header is None or header.sequence is None:
            return payload
        if number not in self._sequence_shift:
            following = self._sequence.get(number)
            self._sequence_shift[number] = 0 if following is None else following - header.sequence
        sequence = (header.sequence + self._sequence_shift[number]) % _UNSIGNED
        self._sequence[number] = sequence + 1
        return payload[:SEQUENCE_OFFSET] + sequence.to_bytes(4, "little") + payload[SEQUENCE_OFFSET + 4 :]
