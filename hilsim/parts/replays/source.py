"""Replay of one capture: a thread that reads ahead into a packet queue, and the player that empties it.

The reading thread is Python; it stays some seconds ahead, so no packet waits for it at its deadline.
"""

import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hilsim.capture.pcap import CaptureFile
from hilsim.emulator.insertion.insertion import Inserter
from hilsim.emulator.retime import NOTHING, StampClock
from hilsim.errors import CaptureError, HilsimError, TransmitError
from hilsim.parts.replays.actions.timed import Action
from hilsim.parts.replays.player import MAX_TRACKS, Player, Postponement, Word, no_postponement, put_run
from hilsim.parts.replays.recorded.plan import SMALL_FILE_BYTES, Overview, look_over, plan_cut
from hilsim.parts.replays.recorded.reader import CaptureReader, Cues
from hilsim.parts.replays.recorded.seam import Cut, seam_note
from hilsim.parts.replays.recorded.tracks import Track
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.protocols.ethernet import HEADER_SIZE, Framing
from hilsim.protocols.recognise import PacketKind
from hilsim.transmit.brake import brake_reason
from hilsim.transmit.ring import Rings
from hilsim.transmit.scheduling import ThreadSettings

SEEK_NS = 50_000_000
"""Time from reading packets at a new place to the deadline of the first of them."""
_FULL_WAIT_S = 0.02
_FLUSH_POLL_S = 0.001
_ANSWER_S = 5.0
_PREFETCH_S = 5.0
"""Longest wait at the start for the first seconds of packets; reading them takes milliseconds, more on a busy machine."""


class _Place(NamedTuple):
    """A place on the time line, with the capture time, the passes completed and the bytes of the file read by then."""

    due_ns: int
    position_ns: int
    passes: int
    read_bytes: int


@dataclass(kw_only=True, eq=False)
class _TimedSeek:
    """A seek at a time.

    Attributes:
        position_ns: Capture time at which the replay continues.
        at_ns: CLOCK_MONOTONIC time of the seek.
        number: Number of the player's action; -1 until it was added.
        added: Event that is set then.
    """

    position_ns: int
    at_ns: int
    number: int = -1
    added: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, kw_only=True)
class SourceState:
    """Present state of a replay source.

    Attributes:
        position_s: Capture time of the packet played now, from the capture's first packet.
        passes: Number of completed passes.
        played_packets: Number of packets put into rings.
        waiting_packets: Number of packets read ahead.
        underruns: Number of times the player found no packet read ahead.
        late_packets: Number of packets read too late to be sent in time.
        is_paused: Whether the replay is paused.
        has_ended: Whether all packets were played.
        ratio: Progress of this pass, 0 to 1.
        postponed_s: Total postponement, because the host was stalled or reading was too slow.
        fault: Reason why reading ended early, else empty.
    """

    position_s: float
    passes: int
    played_packets: int
    waiting_packets: int
    underruns: int
    late_packets: int
    is_paused: bool
    has_ended: bool
    ratio: float
    postponed_s: float
    fault: str


class ReplaySource:
    """Plays one capture into rings.

    Attributes:
        spec: Settings of the replay.
        path: Path of the capture.
        inserter: Inserter of objects into the points; None for no objects.
        overview: Summary of the capture's beginning.
        remarks: Remarks on the capture beside others, for the operator.
    """

    def __init__(self, spec: ReplaySpec, path: Path, inserter: Inserter | None = None) -> None:
        """Scan the capture; ``inserter`` puts objects into the points.

        Raises:
            CaptureError: the capture cannot be replayed; the message gives the reason.
        """
        self.spec = spec
        self.path = path
        self.inserter = inserter
        self.overview: Overview = look_over(path, spec)
        self.remarks: tuple[str, ...] = ()
        self._player: Player | None = None
        self._reader: CaptureReader | None = None
        self._thread: threading.Thread | None = None
        self._planner: threading.Thread | None = None
        self._cut: Cut | None = None
        self._plan_fault = ""
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._stopping = False
        self._seek_ns: int | None = None
        self._timed_seek: _TimedSeek | None = None
        self._sought: _TimedSeek | None = None
        self._had_read_all = False
        self._sought_line_ns = 0
        self._put_ns = -1
        self._is_to_pause = False
        self._positions: deque[_Place] = deque([_Place(0, round(spec.start_s * 1e9), 0, 0)])
        self._known_tracks = 0
        self._largest_bytes = self.overview.capacity
        self._too_large = 0
        self._endings = 0
        self._has_read_all = False
        self._fault = ""
        self._seam_note = ""

    # -- life cycle --------------------------------------------------------------------------------------------------------------------------

    def open(
        self,
        rings: Rings,
        open_track: Callable[[Track], tuple[int, Framing]],
        settings: ThreadSettings,
        postponement: Postponement | None = None,
    ) -> None:
        """Start reading ahead, without playing yet.

        Args:
            rings: Rings of the transmitter.
            open_track: Function that gives a track's row of ``rings`` and its framing; the reading thread calls it when a track is first seen.
            settings: Scheduling of the playing thread.
            postponement: Postponement that this replay shares with others; None: it is never postponed.

        Raises:
            CaptureError: the capture cannot be read.
            TransmitError: a flow cannot be opened.
        """
        self._player = Player(
            name=self.spec.name,
            rings=rings,
            slots=self.spec.lookahead_packets,
            capacity=self.overview.capacity,
            scale=self.spec.interval_scale,
            settings=settings,
            postponement=postponement or no_postponement(),
            inserter=self.inserter,
        )
        self._largest_bytes = min(self.overview.capacity, rings.payload.shape[2] - (HEADER_SIZE if self.spec.mode == "ethernet" else 0))
        master, kind = self.overview.find_master(self.spec.loop_sensor)
        if self.spec.loop == "seamless":
            if kind is None:
                self._seam_note = "its packets' formats are not understood, so it cannot be cut seamlessly: it is looped plainly"
            else:
                self._planner = threading.Thread(target=self._plan, args=(master, kind), name=f"plan-{self.spec.name}", daemon=True)
                self._planner.start()
                if self.path.stat().st_size < SMALL_FILE_BYTES:  # the cut of a larger file is searched for while it plays
                    self._planner.join()
        self._open_track = open_track
        self._reader = CaptureReader(
            CaptureFile(self.path), self.spec, self.overview.first_ns, self._find_cut, master, self._goes_on, self.overview.names
        )
        self._thread = threading.Thread(target=self._read, name=f"read-{self.spec.name}", daemon=True)
        self._thread.start()
        self._await_packets()

    def _plan(self, master: str, kind: PacketKind) -> None:
        try:
            self._cut = plan_cut(self.path, self.spec, self.overview.first_ns, master, kind, self.overview.names)
        except CaptureError as error:
            self._plan_fault = str(error)
            return
        self._seam_note = seam_note(kind, self._cut)

    def _await_packets(self) -> None:
        """Block until a packet can be played, or the reader has ended without one."""
        player = self._open_player()
        until_s = time.monotonic() + _PREFETCH_S
        while not self._has_read_all and not self._fault and player.waiting_packets < self.spec.lookahead_packets // 2:
            if time.monotonic() > until_s and player.waiting_packets:
                break
            self._wake.wait(0.002)
        if self._fault and not player.waiting_packets:
            raise CaptureError(self._fault)

    def start(self, epoch_ns: int, clock: StampClock) -> None:
        """Start playing at CLOCK_MONOTONIC ``epoch_ns``; ``clock`` gives the stamps' time for a CLOCK_MONOTONIC time."""
        self._open_player().start(epoch_ns, clock)

    def stop(self) -> None:
        """End both threads."""
        self._stopping = True
        self._wake.set()
        if self._player is not None:
            self._player.stop()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    # -- at run time -------------------------------------------------------------------------------------------------------------------

    def pause(self, *, paused: bool) -> None:
        """Pause the replay, or resume it."""
        self._is_to_pause = paused
        self._open_player().pause(paused=paused)

    def seek(self, position_s: float) -> None:
        """Continue at a capture time, in seconds from the capture's first packet."""
        with self._lock:
            self._seek_ns = max(round(position_s * 1e9), 0)
        self._wake.set()

    def act(self, at_ns: int, *, paused: bool | None, position_s: float | None) -> int:
        """Pause or resume the replay, or continue at a capture time, at an exact time; returns when the player has taken it.

        Args:
            at_ns: CLOCK_MONOTONIC time.
            paused: Whether to pause (True) or to resume (False); None: neither.
            position_s: Capture time, in seconds from the capture's first packet; None: the replay goes on where it is.

        Returns:
            CLOCK_MONOTONIC time at which it begins: later than ``at_ns`` if packets were ready beyond it.

        Raises:
            ConfigError: too many actions wait.
            TransmitError: the replay's threads do not answer.
        """
        player = self._open_player()
        was_paused = self._is_to_pause
        numbers = [player.act(Action.PAUSE, at_ns)] if paused else []
        if position_s is not None:
            numbers.append(self._seek_at(_TimedSeek(position_ns=max(round(position_s * 1e9), 0), at_ns=at_ns)))
        if paused is False:
            numbers.append(player.act(Action.RESUME, at_ns))
        self._is_to_pause = was_paused if paused is None else paused
        number = numbers[-1] if paused is False and was_paused else numbers[0]
        until_s = time.monotonic() + _ANSWER_S
        while (begun_ns := player.timed.decided_ns(number)) is None:
            if time.monotonic() > until_s or not player.alive:
                raise TransmitError(f"{self.spec.name}: the playing thread must take a change within {_ANSWER_S:.0f} s, got no answer")
            time.sleep(_FLUSH_POLL_S)
        return begun_ns

    @property
    def has_acted(self) -> bool:
        """Whether every action that was requested with ``act`` has begun."""
        return self._open_player().timed.has_ended

    def _seek_at(self, timed: _TimedSeek) -> int:
        """Let the reading thread add a seek behind the packets that are due before it; returns its number."""
        self._timed_seek = timed
        self._wake.set()
        if not timed.added.wait(_ANSWER_S):
            self._timed_seek = None
            raise TransmitError(f"{self.spec.name}: the reading thread must take a seek within {_ANSWER_S:.0f} s, got no answer")
        return timed.number

    @property
    def alive(self) -> bool:
        """Whether the playing thread runs."""
        return self._player is not None and self._player.alive

    @property
    def brake_reason(self) -> str:
        """Reason why the playing thread has left real-time scheduling, else empty."""
        return brake_reason(self._player.brake) if self._player else ""

    @property
    def scheduling_mode(self) -> str:
        """Scheduling that the playing thread obtained."""
        return self._player.scheduling_mode if self._player else ""

    @property
    def tracks(self) -> tuple[Track, ...]:
        """Tracks found so far."""
        return tuple(self._reader.tracks) if self._reader else ()

    def state(self) -> SourceState:
        """Present state; does not block."""
        player = self._open_player()
        words = player.words.tolist()
        place = self._place(words[Word.DUE_NS])
        waiting_packets = player.waiting_packets
        has_ended = self._has_read_all and waiting_packets == 0
        return SourceState(
            position_s=place.position_ns / 1e9,
            passes=place.passes,
            played_packets=words[Word.PLAYED],
            waiting_packets=waiting_packets,
            underruns=max(words[Word.UNDERRUNS] - self._endings - int(has_ended), 0),
            late_packets=words[Word.LATE],
            is_paused=player.is_paused,
            has_ended=has_ended,
            ratio=1.0 if has_ended else self._ratio(place),
            postponed_s=player.postponed_ns / 1e9,
            fault=self._fault,
        )

    def _place(self, due_ns: int) -> _Place:
        """Place that is played at a time of the time line."""
        places = list(self._positions)
        place = places[max(bisect_right(places, due_ns, key=lambda place: place.due_ns) - 1, 0)]
        return place._replace(position_ns=place.position_ns + max(due_ns - place.due_ns, 0))

    def _ratio(self, place: _Place) -> float:
        """Progress of a pass, by time if the capture's end is known, else by bytes."""
        begin_s = self.spec.start_s
        end_s = begin_s + self.spec.duration_s if self.spec.duration_s else self.overview.duration_s
        if end_s is not None:
            return min(max((place.position_ns / 1e9 - begin_s) / max(end_s - begin_s, 1e-9), 0.0), 1.0)
        return min(place.read_bytes / max(self.path.stat().st_size, 1), 1.0)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the capture for the operator, one sentence each."""
        reader = self._reader
        if reader is None:
            return ()
        notes = [*self.remarks, *filter(None, (self._seam_note,))]
        notes += [f"{count} times {what}" for what, count in dict(reader.irregularities).items()]
        verbatim = sorted({str(track.kind) for track in tuple(reader.tracks) if track.retiming == NOTHING})
        if verbatim:
            notes.append(f"replayed verbatim and by capture time, because the format is not understood: {', '.join(verbatim)}")
        postponed_s = self._open_player().postponed_ns / 1e9
        if postponed_s > 0.0:
            notes.append(f"postponed by {postponed_s:.3f} s, because this machine was stalled or reading was too slow; no packet was lost")
        if self._too_large:
            notes.append(f"{self._too_large} datagrams larger than {self._largest_bytes} bytes were left out")
        return (*notes, *reader.capture.notes.lines())

    # -- reading ahead -----------------------------------------------------------------------------------------------------------------

    def _open_player(self) -> Player:
        if self._player is None:
            raise AssertionError("a replay source is opened before it is used")
        return self._player

    def _find_cut(self, *, wait: bool) -> Cut | None:
        planner = self._planner
        while planner is not None and planner.is_alive():
            if not wait or not self._goes_on():
                return None
            planner.join(_FULL_WAIT_S)
        if self._plan_fault:
            raise CaptureError(self._plan_fault)
        return self._cut

    def _goes_on(self) -> bool:
        return not self._stopping and self._seek_ns is None and not self._has_read_until_seek()

    def _has_read_until_seek(self) -> bool:
        """Whether a seek at a time waits, and all packets that are due before it were put onto the packet queue."""
        timed = self._timed_seek
        if timed is None:
            return False
        player = self._open_player()
        return player.is_paused or self._put_ns >= player.line_at(timed.at_ns)

    def _read(self) -> None:
        try:
            self._read_until_stopped()
        except HilsimError as error:
            self._fault = str(error)
        finally:
            if not self._stopping and not self._fault:
                self._fault = f"{self.path}: reading must not end by itself, got an error of this program (see standard error)"
            self._wake.set()

    def _read_until_stopped(self) -> None:
        reader, position_ns, passes = self._reader, None, 0
        at = self._next_free_ns
        while reader is not None and not self._stopping:
            for cues in reader.runs(position_ns, at, passes):
                self._open_new_tracks(reader)
                passes = cues.passes
                if not self._put(cues):
                    break
            else:
                self._has_read_all = self._goes_on()
                self._wait_for_seek()
            self._await_line()
            timed, at = self._timed_seek, self._next_free_ns
            position_ns = self._take_seek()
            if position_ns is not None:
                passes = self._forget_what_was_read()
            elif timed is not None:
                position_ns, at, passes = timed.position_ns, self._await_line, self._begin_seek(timed)

    def _next_free_ns(self) -> int:
        """Place on the time line where packets can begin: its beginning before it is played, else soon after the present place."""
        player = self._open_player()
        if not player.alive:
            return 0
        return max(int(player.words[Word.DUE_NS]), player.line_ns) + round(SEEK_NS / self.spec.interval_scale)

    def _forget_what_was_read(self) -> int:
        """Empty the packet queue; returns the number of completed passes."""
        player = self._open_player()
        self._endings += int(self._has_read_all and player.waiting_packets == 0)
        self._has_read_all, self._put_ns = False, -1
        player.flush()
        while player.alive and player.waiting_packets and not self._stopping:
            time.sleep(_FLUSH_POLL_S)
        due_ns = int(player.words[Word.DUE_NS])
        while len(self._positions) > 1 and self._positions[-1].due_ns > due_ns:
            self._positions.pop()
        return self._place(due_ns).passes

    def _begin_seek(self, timed: _TimedSeek) -> int:
        """Add a seek to the player's actions; returns the number of completed passes. Nothing is put onto the packet queue until ``_await_line``."""
        player = self._open_player()
        self._had_read_all, self._has_read_all = self._has_read_all, False
        self._sought, self._timed_seek = timed, None
        timed.number = player.act(Action.SEEK, timed.at_ns)
        passes = self._place(player.line_ns if player.is_paused else player.line_at(timed.at_ns)).passes
        timed.added.set()
        return passes

    def _await_line(self) -> int:
        """Block until the last seek at a time has begun; returns the place on the time line where its packets begin."""
        player, timed = self._open_player(), self._sought
        if timed is None:
            return self._sought_line_ns
        flushed = int(player.words[Word.FLUSHED])
        while not player.timed.is_done(timed.number) and player.alive and not self._stopping:
            time.sleep(_FLUSH_POLL_S)
        self._sought, self._put_ns = None, -1
        self._endings += int(self._had_read_all and int(player.words[Word.FLUSHED]) == flushed)
        self._sought_line_ns = line_ns = int(player.timed.line_ns[timed.number % player.timed.line_ns.size])
        while len(self._positions) > 1 and self._positions[-1].due_ns > line_ns:
            self._positions.pop()
        return line_ns

    def _wait_for_seek(self) -> None:
        while not self._stopping and self._seek_ns is None and self._timed_seek is None:
            self._wake.wait(_FULL_WAIT_S)
            self._wake.clear()

    def _take_seek(self) -> int | None:
        with self._lock:
            position_ns, self._seek_ns = self._seek_ns, None
        return position_ns

    def _open_new_tracks(self, reader: CaptureReader) -> None:
        for number in range(self._known_tracks, len(reader.tracks)):
            if number >= MAX_TRACKS:
                raise CaptureError(f"{self.path}: must have at most {MAX_TRACKS} flows to be replayed, got more: choose some")
            track = reader.tracks[number]
            row, framing = self._open_track(track)
            retiming = track.retiming if self.spec.retime != "none" else NOTHING
            self._open_player().route(number, row, retiming, framing, is_inserted=self.inserter is not None and track.takes_objects)
        self._known_tracks = len(reader.tracks)

    def _put(self, cues: Cues) -> bool:
        """Put a run onto the packet queue, waiting while it is full; returns False on a stop or a seek."""
        player = self._open_player()
        cues = self._without_too_large(cues)
        data = np.frombuffer(b"".join(cues.payloads), np.uint8)
        stops = np.cumsum([len(payload) for payload in cues.payloads], dtype=np.int64)
        read_bytes = self._reader.capture.read_bytes if self._reader else 0
        if cues.due_ns.size:
            self._positions.append(_Place(int(cues.due_ns[0]), int(cues.position_ns[0]), cues.passes, read_bytes))
        while len(self._positions) > 2 and self._positions[1].due_ns < player.words[Word.DUE_NS]:
            self._positions.popleft()
        done = 0
        while done < stops.size:
            before = done
            done += int(put_run(player.queue, cues.track, cues.due_ns, cues.stamp_ns, cues.capture_ns, data, stops, done, player.capture_ns))
            if done > before:
                self._put_ns = int(cues.due_ns[done - 1])
            if done < stops.size:
                self._wake.wait(_FULL_WAIT_S)
                self._wake.clear()
            if not self._goes_on():
                return False
        return True

    def _without_too_large(self, cues: Cues) -> Cues:
        if max(map(len, cues.payloads), default=0) <= self._largest_bytes:
            return cues
        fits = np.array([len(payload) <= self._largest_bytes for payload in cues.payloads])
        self._too_large += int((~fits).sum())
        return cues.rows(np.flatnonzero(fits))
