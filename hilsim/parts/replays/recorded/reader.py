"""Read a capture file as runs of cues: packets in order, each with its deadline, without end if looped for ever.

This code is Python and reads a disk, so it works seconds ahead of the deadlines.
"""

from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.pcap import CaptureFile
from hilsim.capture.sensor_names import SensorNames
from hilsim.emulator.replaying import retiming_of
from hilsim.errors import CaptureError
from hilsim.limits import STAMP_NS
from hilsim.parts.replays.flows import find_rule
from hilsim.parts.replays.limits import LOOP_PASS_S, LOOP_RATE_HZ, REPLAY_FLOWS, REPLAY_SPAN_NS
from hilsim.parts.replays.recorded.continuity import Continuity
from hilsim.parts.replays.recorded.seam import Cut
from hilsim.parts.replays.recorded.timeline import Placed, Recorded, Timeline, Times
from hilsim.parts.replays.recorded.tracks import Track
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.protocols.recognise import PacketKind, recognise

if TYPE_CHECKING:
    from hilsim.emulator.retime import Retiming
    from hilsim.protocols.flow_key import FlowKey

_FIRST_RUN = 512
"""Number of datagrams by which clocks are aligned at the beginning of a pass."""
_RUN = 256
_RUN_NS = 4_000_000_000
"""Capture time after which a run ends, even with few packets."""
_MAX_HELD = 4096
_MAX_UNWANTED = 4096
_ASKED_EVERY = 1024
_FOREVER_NS = 1 << 62


def check_pass(path: Path, duration_ns: int, packets: int) -> None:
    """Raise an error for a pass of a loop that this program cannot read as fast as it should be sent.

    Args:
        path: Path of the capture.
        duration_ns: Duration of the pass on the replay's time line, before ``interval_scale`` stretches it; the limits do not consider that scale.
        packets: Number of packets in the pass.

    Raises:
        CaptureError: the pass is too short, or holds too many packets.
    """
    duration_s = duration_ns / 1e9
    LOOP_PASS_S.enforce(duration_s, str(path), CaptureError, "a pass of a loop")
    LOOP_RATE_HZ.enforce(packets / duration_s, str(path), CaptureError, "packets of a loop a second")


class Cues(NamedTuple):
    """Packets ready to be played, in the order of their deadlines, which also holds from one run of a pass to the next.

    Attributes:
        due_ns: ``int64[n]``, on the replay's time line.
        stamp_ns: ``int64[n]``, instant that each packet's stamp shows.
        track: ``int64[n]``, numbers of tracks.
        position_ns: ``int64[n]``, capture times from the capture's first packet.
        capture_ns: ``int64[n]``, capture times of the stamps' instants, which are free of the capturing host's jitter.
        payloads: ``n`` payloads.
        passes: Passes completed before.
    """

    due_ns: Times
    stamp_ns: Times
    track: Times
    position_ns: Times
    capture_ns: Times
    payloads: list[bytes]
    passes: int

    def rows(self, chosen: npt.NDArray[np.intp]) -> "Cues":
        """Selected cues."""
        payloads = [self.payloads[row] for row in chosen.tolist()]
        return Cues._make([*(column[chosen] for column in self[:5]), payloads, self.passes])

    def followed_by(self, other: "Cues") -> "Cues":
        """These cues followed by others."""
        columns = [np.concatenate(pair) for pair in zip(self[:5], other[:5], strict=True)]
        return Cues._make([*columns, self.payloads + other.payloads, other.passes])


class CutFinder(Protocol):
    """Function that finds the cut of a seamless loop; it returns None if there is none, or, without ``wait``, if it is not known yet."""

    def __call__(self, *, wait: bool) -> Cut | None:
        """Find the cut."""


class _Run:
    """Datagrams of a run, while they are gathered."""

    def __init__(self) -> None:
        self.datagrams: list[CapturedDatagram] = []
        self.tracks: list[int] = []

    def add(self, datagram: CapturedDatagram, track: int) -> None:
        self.datagrams.append(datagram)
        self.tracks.append(track)


class CaptureReader:
    """Reads one capture for one replay.

    Attributes:
        capture: Capture file, with the reader's notes.
        tracks: Tracks found so far; a track's number is its index.
        skipped_datagrams: Number of datagrams of flows that are not replayed.
        irregularities: Numbers of irregularities for which the times of packets were adapted, by their description.
    """

    def __init__(
        self,
        capture: CaptureFile,
        spec: ReplaySpec,
        first_ns: int,
        find_cut: CutFinder,
        master: str,
        goes_on: Callable[[], bool] = lambda: True,
        names: SensorNames | None = None,
    ) -> None:
        """Read ``capture``, whose first datagram has the host stamp ``first_ns``.

        ``find_cut`` finds the cut of a seamless loop for the sensor ``master``; ``goes_on`` is called now and then and returns whether to continue reading;
        ``names`` are those of the capture's overview.
        """
        self.capture = capture
        self.tracks: list[Track] = []
        self.skipped_datagrams = 0
        self.irregularities: dict[str, int] = {}
        self._spec = spec
        self._first_ns = first_ns
        self._find_cut = find_cut
        self._goes_on = goes_on
        self._numbers: dict[tuple[FlowKey, PacketKind, Retiming], int] = {}
        self._unwanted: set[FlowKey] = set()
        self._names = names or SensorNames()
        self._continuity = Continuity(tracks=self.tracks, master=master, names=self._names)
        self._timeline = Timeline(spec.pace, spec.rate_hz, self._names)
        self._held: Cues | None = None
        self._capture_offset_ns: int | None = None
        self._pass_packets = 0

    def runs(self, position_ns: int | None = None, at: Callable[[], int] = lambda: 0, passes: int = 0) -> Iterator[Cues]:
        """Yield cues from a position of the capture on, without end if looped for ever.

        Args:
            position_ns: Capture time from the capture's first packet; None: the replay's beginning.
            at: Function that gives the position's place on the replay's time line, called once the first packets were read.
            passes: Number of passes completed before.

        Raises:
            CaptureError: the file cannot be read, has no packets where the replay begins, its stamps or a loop's rate exceed the limits, or the
                pace needs a rate that is not given.
        """
        begin_ns = round(self._spec.start_s * 1e9)
        self._continuity.begin(at)
        played = yield from self._one_pass(begin_ns if position_ns is None else position_ns, 0, passes)
        if not played and position_ns is None and self._goes_on():
            until = f" for {self._spec.duration_s:g} s" if self._spec.duration_s else ""
            raise CaptureError(f"{self.capture.path}: must hold packets to be replayed from {self._spec.start_s:g} s on{until}, got none there")
        while self._loops_on(passes):
            passes += 1
            cut = self._find_cut(wait=True)
            before_ns = self._continuity.due_ns
            played = yield from self._one_pass(begin_ns, cut.start_frame if cut else 0, passes)
            if not played or self._continuity.due_ns <= before_ns:
                return  # the pass has no packets, or no duration
            check_pass(self.capture.path, self._continuity.due_ns - before_ns, self._pass_packets)

    def _loops_on(self, passes: int) -> bool:
        return self._spec.loop != "none" and not (self._spec.loops and passes + 1 >= self._spec.loops)

    def _one_pass(self, begin_ns: int, start_frame: int, passes: int) -> Generator[Cues, None, bool]:
        """Yield the cues of one pass; returns whether there were any."""
        self._timeline = Timeline(self._spec.pace, self._spec.rate_hz, self._names)
        for known in self.tracks:
            self._timeline.add_flow(known.recorded, known.kind, known.retiming)
        self._held = None
        self._capture_offset_ns = None
        self._pass_packets = 0
        run = _Run()
        length = _FIRST_RUN
        cut = self._find_cut(wait=False)
        for datagram in self._datagrams(begin_ns, start_frame):
            track = self._track(datagram)
            if track is None:
                self.skipped_datagrams += 1
                if self.skipped_datagrams % _ASKED_EVERY == 0 and not self._goes_on():
                    return False
                continue
            if len(run.tracks) >= length or (run.tracks and datagram.host_stamp_ns > run.datagrams[0].host_stamp_ns + _RUN_NS):
                yield from self._cues(run, passes)
                run, length = _Run(), _RUN
                cut = self._find_cut(wait=False)
            if cut is not None and datagram.frame >= cut.stop_frame and self._loops_on(passes):
                yield from self._cues(run, passes, is_last=True)
                seam_ns = self._seam_ns(datagram, track)
                return self._continuity.join(seam_ns)
            run.add(datagram, track)
        yield from self._cues(run, passes, is_last=True)
        return self._continuity.join(None)

    def _datagrams(self, begin_ns: int, start_frame: int) -> Iterator[CapturedDatagram]:
        """Yield the datagrams of a pass: from ``start_frame`` or from a capture time to the replay's end."""
        host_begin_ns = self._first_ns + begin_ns
        host_stop_ns = self._first_ns + round((self._spec.start_s + self._spec.duration_s) * 1e9) if self._spec.duration_s else None
        begun = False
        for datagram in self.capture.datagrams(self.capture.seek_point_before(host_begin_ns)):
            begun = begun or (datagram.frame >= start_frame if start_frame else datagram.host_stamp_ns >= host_begin_ns)
            if host_stop_ns is not None and datagram.host_stamp_ns >= host_stop_ns:
                return
            if begun:
                yield datagram

    def _track(self, datagram: CapturedDatagram) -> int | None:
        """Number of a datagram's track; None if its flow is not replayed."""
        recorded = datagram.flow
        kind = recognise(datagram.payload)
        retiming = retiming_of(kind, datagram.payload)
        number = self._numbers.get((recorded, kind, retiming))
        if number is not None or recorded in self._unwanted:
            return number
        if find_rule(self._spec.flow, recorded) is None:
            if len(self._unwanted) >= _MAX_UNWANTED:  # the capture of a busy network has any number of flows
                self._unwanted.clear()
            self._unwanted.add(recorded)
            return None
        if len(self.tracks) >= REPLAY_FLOWS.bound:
            raise CaptureError(f"{self.capture.path}: must have at most {REPLAY_FLOWS.bound} flows to be replayed, got more: choose some")
        self.tracks.append(Track(recorded=recorded, kind=kind, retiming=retiming, first=datagram))
        self._numbers[recorded, kind, retiming] = len(self.tracks) - 1
        return self._timeline.add_flow(recorded, kind, retiming)

    def _cues(self, run: _Run, passes: int, *, is_last: bool = False) -> Iterator[Cues]:
        """Yield the cues that can be played after a run, if any; after the pass's last run, all remaining ones."""
        cues, horizon_ns = self._held, -_FOREVER_NS
        if run.tracks:
            placed = self._placed(run, passes)
            horizon_ns = min((int(placed.due_ns[placed.track == track].max()) for track in np.unique(placed.track)), default=horizon_ns)
            cues = placed if cues is None else cues.followed_by(placed)
        if cues is None:
            return
        if self._held is None and cues.due_ns.size and int(cues.due_ns[-1]) <= horizon_ns and (np.diff(cues.due_ns) >= 0).all():
            yield cues  # as for one flow
            return
        order = np.argsort(cues.due_ns, kind="stable")
        is_all = is_last or order.size > _MAX_HELD
        count = order.size if is_all else int(np.searchsorted(cues.due_ns[order], horizon_ns, side="right"))
        self._held = cues.rows(order[count:]) if count < order.size else None
        if count:
            yield cues.rows(order[:count])

    def _placed(self, run: _Run, passes: int) -> Cues:
        """Cues of a run in file order, without the packets that must be left out at a seam."""
        recorded = self._recorded(run)
        placed = self._place(recorded)
        payloads = [datagram.payload for datagram in run.datagrams]
        is_surplus = self._continuity.find_surplus(placed, recorded, self._timeline)
        if is_surplus.any():
            kept = np.flatnonzero(~is_surplus)
            recorded, placed = Recorded(*(column[kept] for column in recorded)), Placed(*(column[kept] for column in placed))
            payloads = [payloads[row] for row in kept.tolist()]
        placed = self._shifted(placed, recorded)
        self._continuity.remember(placed, recorded)
        self._pass_packets += placed.due_ns.size
        self._note_irregularities()
        if self._spec.retime != "none":
            payloads = [self._continuity.continued(payload, track) for payload, track in zip(payloads, recorded.flow.tolist(), strict=True)]
        position_ns = recorded.capture_ns - self._first_ns
        if self._capture_offset_ns is None and placed.stamp_ns.size:
            self._capture_offset_ns = int(np.median(position_ns - placed.stamp_ns))
        capture_ns = placed.stamp_ns + (self._capture_offset_ns or 0)
        return Cues(placed.due_ns, placed.stamp_ns, recorded.flow, position_ns, capture_ns, payloads, passes)

    def _recorded(self, run: _Run) -> Recorded:
        stamps = [self.tracks[track].read_stamp_ns(datagram.payload) for datagram, track in zip(run.datagrams, run.tracks, strict=True)]
        capture = [datagram.host_stamp_ns for datagram in run.datagrams]
        farthest = max(run.datagrams, key=lambda datagram: abs(datagram.host_stamp_ns))
        STAMP_NS.enforce(abs(farthest.host_stamp_ns), f"{self.capture.path}: frame {farthest.frame}", CaptureError)
        return Recorded(np.array(capture, np.int64), np.array(run.tracks, np.int64), np.array(stamps, np.int64))

    def _seam_ns(self, datagram: CapturedDatagram, track: int) -> int:
        """Instant of the packet that the next pass's first packet replaces, and which is not played."""
        run = _Run()
        run.add(datagram, track)
        recorded = self._recorded(run)
        return int(self._shifted(self._place(recorded), recorded).stamp_ns[0])

    def _place(self, recorded: Recorded) -> Placed:
        """Place packets on the pass's own time line; raises an error for clocks whose leaps, each within the limit, exceed it in all."""
        try:
            return self._timeline.place(recorded)
        except OverflowError:
            raise CaptureError(
                f"{self.capture.path}: time stamps leap back and forth by more than {STAMP_NS.text} in all, which no clock does"
            ) from None

    def _shifted(self, placed: Placed, recorded: Recorded) -> Placed:
        """Shift packets to the replay's time line."""
        shifted = self._continuity.shifted(placed, recorded, self._timeline)
        stretched = max(self._spec.interval_scale, 1.0)
        for times in (placed.due_ns, placed.stamp_ns, shifted.due_ns, shifted.stamp_ns):
            farthest_ns = max(-int(times.min(initial=0)), int(times.max(initial=0)))
            REPLAY_SPAN_NS.enforce(round(farthest_ns * stretched), str(self.capture.path), CaptureError)
        return shifted

    def _note_irregularities(self) -> None:
        found = {
            "the capture's times go back by more than 0.1 s; they are continued from there": self._timeline.host_leaps,
            "the capture's times go back by less than 0.1 s; such a packet is sent right after the former one": self._timeline.host_steps_back,
            "a sensor's own clock leaps; it is continued from there": self._timeline.clock_leaps,
            "a packet's own stamp does not advance; the packet is sent by capture time": self._timeline.standing_packets,
            "a packet of another sensor than the loop's is left out at a seam, for its stamps to go on by whole cycles": self._continuity.surplus_packets,
        }
        for what, count in found.items():
            if count:
                self.irregularities[what] = max(self.irregularities.get(what, 0), count)
