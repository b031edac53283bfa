"""Thread that plays a packet queue: it gives each packet its deadline and its new stamp, and puts it into its flow's ring, without the GIL.

It works some milliseconds ahead of the deadlines, and on the packets of some milliseconds at a time. All packets are played relative to one epoch. A pause
moves the epoch (``hilsim.parts.replays.actions.timed`` has pauses and leaps at exact times), and so does a postponement, if requested: when the host was stalled for longer than the player works ahead (or the reader was too slow),
all following deadlines move by that time. No packet is lost then, and none is sent in a burst; players that share a ``Postponement`` stay together.
"""

import threading
import time
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import load_acquire, publish, shared_words, store_release
from hilsim.compilation.jit import constant, kernel, signed
from hilsim.emulator.insertion.insertion import Inserter, Insertion, insert_recorded
from hilsim.emulator.retime import Retiming, StampClock, retime
from hilsim.parts.replays.actions.timed import HELD, MOVED, Action, TimedActions, act, allocate_actions, scaled
from hilsim.protocols.ethernet import HEADER_SIZE, Framing, write_headers
from hilsim.transmit.brake import allocate_brake, doze_until
from hilsim.transmit.libc import monotonic_ns
from hilsim.transmit.packet_queue import AHEAD_NS, PacketQueue, allocate_packet_queue, put, release, waiting
from hilsim.transmit.ring import Rings, push
from hilsim.transmit.scheduling import ThreadSettings, enter

MAX_TRACKS = 256
MAX_PLAYERS = 64

_NAP_NS = 8_000_000
"""Length of one sleep: 120 wake-ups a second at any rate, and every packet is still put 12 ms ahead."""

_POLL_NS = 1_000_000
_REGAINED_NS = 10_000_000
"""Time by which a player is ahead of the deadlines after a postponement."""
_LONG_AGO_NS = np.int64(-(2**62))
_BEFORE_ALL_NS = constant(-(2**62))
_FRAME_HEADER = constant(HEADER_SIZE)
_NOTHING = constant(0)


class Postponement(NamedTuple):
    """Shared postponement of all players that stay together.

    Attributes:
        by_ns: ``int64[P]``; each player writes only its own element, and all deadlines are later by the sum.
        own: Index of this player's element; -1: it never postpones.
    """

    by_ns: npt.NDArray[np.int64]
    own: int


def no_postponement() -> Postponement:
    """Create the postponement of a player that puts packets into rings late instead of postponing."""
    return Postponement(by_ns=np.zeros(1, np.int64), own=-1)


class Routes(NamedTuple):
    """Destinations of the packets of T tracks, and what is rewritten in them.

    Attributes:
        row: ``int64[T]``, row of ``Rings``.
        retiming: ``int64[T, n]``, a ``Retiming`` each.
        header_size: ``int64[T]``, 42 if whole frames are sent, else 0.
        template: ``uint8[T, 42]``, template of the headers.
        counts: ``int64[T]``, 1 if the IP identification increments.
        checksum: ``int64[T]``, 1 if the UDP checksum is valid.
        played: ``int64[T]``, number of packets played.
        is_inserted: ``int64[T]``, 1 if objects are put into the packets.
    """

    row: npt.NDArray[np.int64]
    retiming: npt.NDArray[np.int64]
    header_size: npt.NDArray[np.int64]
    template: npt.NDArray[np.uint8]
    counts: npt.NDArray[np.int64]
    checksum: npt.NDArray[np.int64]
    played: npt.NDArray[np.int64]
    is_inserted: npt.NDArray[np.int64]


class Word(IntEnum):
    """Elements of the words that a player shares with the rest of the daemon."""

    STOP = 0
    """1 ends the loop; written by Python."""
    PAUSED_AT_NS = 1
    """CLOCK_MONOTONIC time since which the replay is paused, else 0; written by Python."""
    FLUSH_TO = 2
    """Count of packets put onto the packet queue, before which all are discarded; written by Python."""
    EPOCH_NS = 3
    """CLOCK_MONOTONIC time at which the time line begins; moved by pauses; written by Python."""
    PLAYED = 4
    """Number of packets put into rings."""
    DUE_NS = 5
    """Deadline of the packet played last, on the time line."""
    UNDERRUNS = 6
    """Number of times the player found the packet queue empty: the capture has ended, or the reader was too slow."""
    WAITED_FOR_RING = 7
    FLUSHED = 8
    """Number of packets discarded by seeking."""
    IS_EMPTY = 9
    LATE = 10
    """Number of packets put into their ring after their deadline."""
    POSTPONED = 11
    """Number of postponements."""


def allocate_routes() -> Routes:
    """Allocate routes without any row."""
    row, header_size, *others = (np.zeros(MAX_TRACKS, np.int64) for _ in range(6))
    retiming, template = np.zeros((MAX_TRACKS, len(Retiming._fields)), np.int64), np.zeros((MAX_TRACKS, HEADER_SIZE), np.uint8)
    return Routes._make([row, retiming, header_size, template, *others])


@kernel
def _play_slot(
    queue: PacketQueue,
    slot: int,
    rings: Rings,
    routes: Routes,
    clock: StampClock,
    epoch_ns: int,
    scale: float,
    last_deadline_ns: npt.NDArray[np.int64],
    frame: npt.NDArray[np.uint8],
) -> bool:
    """Put the packet in a slot of the packet queue into its ring; returns False if the ring is full."""
    track = queue.flow[slot]
    row = routes.row[track]
    deadline_ns = max(epoch_ns + scaled(queue.time_ns[slot], scale), last_deadline_ns[row])
    payload = queue.payload[slot]
    size = queue.size[slot]
    retime(routes.retiming[track], clock, epoch_ns + scaled(queue.stamp_ns[slot], scale), payload)
    if routes.header_size[track] == 0:
        is_put = push(rings, row, deadline_ns, _NOTHING, payload, size)
    else:
        for at in range(size):
            frame[_FRAME_HEADER + at] = payload[at]
        identification = routes.played[track] + 1 if routes.counts[track] != 0 else 0
        frame_size = write_headers(routes.template[track], identification, routes.checksum[track] != 0, frame, size)
        is_put = push(rings, row, deadline_ns, _NOTHING, frame, frame_size)
    if is_put:
        routes.played[track] += 1
        last_deadline_ns[row] = deadline_ns
    return is_put


@kernel
def postponed_ns(postponement: Postponement) -> int:
    """Total postponement so far."""
    total_ns = _NOTHING
    for player in range(postponement.by_ns.size):
        total_ns += load_acquire(postponement.by_ns, (player,))
    return total_ns


@kernel
def _flush(queue: PacketQueue, words: npt.NDArray[np.int64]) -> None:
    surplus = load_acquire(words, (Word.FLUSH_TO,)) - queue.head[0]
    if surplus > 0:
        words[Word.FLUSHED] += surplus
        words[Word.IS_EMPTY] = 1
        release(queue, surplus)


@kernel
def play(
    queue: PacketQueue,
    rings: Rings,
    routes: Routes,
    clock: StampClock,
    scale: float,
    words: npt.NDArray[np.int64],
    postponement: Postponement,
    brake: npt.NDArray[np.int64],
    last_deadline_ns: npt.NDArray[np.int64],
    frame: npt.NDArray[np.uint8],
    capture_ns: npt.NDArray[np.int64],
    timed: TimedActions,
    insertion: Insertion | None,
) -> None:
    """Play the packet queue until ``words`` ask to stop.

    Args:
        queue: Packet queue to play; this function is its only consumer.
        rings: Rings to fill; this function is the only producer of the tracks' rows.
        routes: Routes of the tracks.
        clock: Clock that gives the stamp for a CLOCK_MONOTONIC time.
        scale: Real time for each unit of the time line.
        words: ``int64[n]``, columns by ``Word``.
        postponement: Postponement that late packets cause.
        brake: ``int64[8]``, brake of this thread.
        last_deadline_ns: ``int64[flows]``, working array: last deadline of each row.
        frame: ``uint8[>= frame]``, working array.
        capture_ns: ``int64[slots]``, capture time of each packet's stamp, by its slot in the packet queue.
        timed: Pauses and leaps at exact times.
        insertion: Objects for the points of the replay; None: it has none, and the kernel is compiled without what they need.
    """
    slots = queue.time_ns.size
    inserted = _NOTHING - 1  # number of the packet that objects were put into last: one that waits for its ring keeps them
    last_due_ns = _BEFORE_ALL_NS  # latest deadline of all packets put into rings
    latest_ns = _NOTHING  # on the time line: packets of other tracks may be due before the one put last, which does not make them late
    while load_acquire(words, (Word.STOP,)) == 0:
        _flush(queue, words)
        now_ns = monotonic_ns()
        paused_ns = load_acquire(words, (Word.PAUSED_AT_NS,))
        epoch_ns = load_acquire(words, (Word.EPOCH_NS,)) + postponed_ns(postponement)
        flushed = act(queue, timed, paused_ns, epoch_ns, scale, now_ns, last_due_ns)
        words[Word.FLUSHED] += flushed
        is_empty = waiting(queue) == 0
        words[Word.IS_EMPTY] |= is_empty and flushed > 0
        if is_empty or paused_ns != 0 or timed.words[HELD] != 0:
            words[Word.UNDERRUNS] += is_empty and words[Word.IS_EMPTY] == 0
            words[Word.IS_EMPTY] = is_empty
            doze_until(now_ns + _POLL_NS, brake)
            continue
        words[Word.IS_EMPTY] = 0
        slot = queue.head[0] % slots
        epoch_ns += timed.words[MOVED]
        due_ns = epoch_ns + scaled(queue.time_ns[slot], scale)
        latest_ns = max(latest_ns, queue.time_ns[slot])
        behind_ns = now_ns - (epoch_ns + scaled(latest_ns, scale))
        if behind_ns > 0 and postponement.own >= 0:
            store_release(postponement.by_ns, (postponement.own,), postponement.by_ns[postponement.own] + behind_ns + _REGAINED_NS)
            words[Word.POSTPONED] += 1
            continue
        if due_ns - AHEAD_NS > now_ns:
            doze_until(now_ns + _NAP_NS, brake)
            continue
        if insertion is not None:
            if inserted != queue.head[0] and routes.is_inserted[queue.flow[slot]] != 0:
                at_ns, key = epoch_ns + scaled(queue.stamp_ns[slot], scale), queue.stamp_ns[slot]
                insert_recorded(insertion, queue.payload[slot], signed(queue.size[slot]), capture_ns[slot], at_ns, key, _NOTHING, None)
            inserted = queue.head[0]
        if not _play_slot(queue, slot, rings, routes, clock, epoch_ns, scale, last_deadline_ns, frame):
            words[Word.WAITED_FOR_RING] += 1
            doze_until(now_ns + _POLL_NS, brake)
            continue
        last_due_ns = max(last_due_ns, due_ns)
        words[Word.LATE] += due_ns < now_ns
        words[Word.DUE_NS] = queue.time_ns[slot]
        words[Word.PLAYED] += 1
        release(queue, 1)


@kernel
def put_run(
    queue: PacketQueue,
    track: npt.NDArray[np.int64],
    due_ns: npt.NDArray[np.int64],
    stamp_ns: npt.NDArray[np.int64],
    capture_ns: npt.NDArray[np.int64],
    payloads: npt.NDArray[np.uint8],
    stops: npt.NDArray[np.int64],
    first: int,
    slot_capture_ns: npt.NDArray[np.int64],
) -> int:
    """Put packets of a run, from ``first`` on, onto the packet queue until it is full; returns the number of packets put.

    Args:
        queue: Packet queue to fill.
        track: ``int64[n]``, track of each packet.
        due_ns: ``int64[n]``, deadlines on the time line.
        stamp_ns: ``int64[n]``, instants of the stamps.
        capture_ns: ``int64[n]``, capture times of the stamps.
        payloads: ``uint8[m]``, payloads one after another.
        stops: ``int64[n]``, end of each payload in ``payloads``.
        first: Index of the first packet to put.
        slot_capture_ns: ``int64[slots]``, written: ``capture_ns`` by the packets' slots.
    """
    count = 0
    for index in range(first, track.size):
        start = stops[index - 1] if index > 0 else 0
        if waiting(queue) < slot_capture_ns.size:
            slot_capture_ns[queue.tail[0] % slot_capture_ns.size] = capture_ns[index]
        if not put(queue, track[index], due_ns[index], stamp_ns[index], payloads[start:], stops[index] - start):
            break
        count += 1
    return count


@dataclass(kw_only=True, eq=False)
class Player:
    """A packet queue and the thread that plays it.

    Attributes:
        name: Name of the replay.
        rings: Rings of the transmitter.
        slots: Number of slots of the packet queue.
        capacity: Bytes of the largest payload.
        scale: Real time for each unit of the time line.
        settings: Scheduling of the thread.
        postponement: Postponement when the player is late; by default it puts packets into rings late.
        inserter: Inserter of objects into the points; None for no objects.
        brake: Brake of the thread.
        capture_ns: ``int64[slots]``, capture time of each packet's stamp, by its slot.
    """

    name: str
    rings: Rings
    slots: int
    capacity: int
    scale: float
    settings: ThreadSettings
    postponement: Postponement = field(default_factory=no_postponement)
    inserter: Inserter | None = None
    brake: npt.NDArray[np.int64] = field(default_factory=allocate_brake)
    routes: Routes = field(default_factory=allocate_routes)
    words: npt.NDArray[np.int64] = field(default_factory=lambda: shared_words(Word))
    scheduling_mode: str = ""
    timed: TimedActions = field(default_factory=allocate_actions)
    _thread: threading.Thread | None = None
    _changing: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.queue = allocate_packet_queue(self.slots, self.capacity)
        self.capture_ns = np.zeros(self.slots, np.int64)
        self._warm()

    def route(self, track: int, row: int, retiming: Retiming, framing: Framing, *, is_inserted: bool = False) -> None:
        """Set the destination of a track's packets and whether they take objects, before the first of them is put onto the packet queue."""
        self.routes.row[track] = row
        self.routes.retiming[track] = retiming
        self.routes.header_size[track] = framing.header_size
        self.routes.template[track] = framing.template
        self.routes.counts[track] = framing.counting_identification
        self.routes.checksum[track] = framing.udp_checksum
        self.routes.is_inserted[track] = is_inserted

    def start(self, epoch_ns: int, clock: StampClock) -> None:
        """Start playing.

        Args:
            epoch_ns: CLOCK_MONOTONIC time at which the time line begins.
            clock: Clock that gives the stamp for a CLOCK_MONOTONIC time.
        """
        self.words[Word.EPOCH_NS] = epoch_ns - self.postponed_ns  # earlier postponements of other players do not apply to this one
        self._thread = threading.Thread(target=self._run, args=(clock,), name=f"play-{self.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; returns within milliseconds, when it has ended."""
        publish(self.words, Word.STOP, 1)
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def pause(self, *, paused: bool) -> None:
        """Pause the replay, or resume it; after a pause all deadlines are later by its length.

        Packets already in the rings are still sent, at most 20 ms of them.
        """
        now_ns = time.monotonic_ns()
        with self._changing:
            since_ns = int(self.words[Word.PAUSED_AT_NS])
            if self.timed.held_ns:
                if not paused:
                    self.timed.add(Action.RESUME, now_ns)
            elif paused and not since_ns:
                publish(self.words, Word.PAUSED_AT_NS, now_ns)
            elif since_ns and not paused:
                publish(self.words, Word.EPOCH_NS, int(self.words[Word.EPOCH_NS]) + now_ns - since_ns)
                publish(self.words, Word.PAUSED_AT_NS, 0)

    def act(self, action: Action, at_ns: int) -> int:
        """Let an action begin at CLOCK_MONOTONIC ``at_ns``, behind all others; returns its number for ``timed``.

        A seek takes the packets from the packet queue when it begins; its producer must put none until then.
        """
        with self._changing:
            since_ns = int(self.words[Word.PAUSED_AT_NS])
            if action is Action.RESUME and since_ns:  # the thread plays nothing now: its epoch can move before that time
                publish(self.words, Word.EPOCH_NS, int(self.words[Word.EPOCH_NS]) + max(at_ns - since_ns, 0))
                publish(self.words, Word.PAUSED_AT_NS, 0)
            return self.timed.add(action, at_ns)

    @property
    def is_paused(self) -> bool:
        """Whether the replay is paused."""
        return bool(self.words[Word.PAUSED_AT_NS]) or bool(self.timed.held_ns)

    @property
    def line_ns(self) -> int:
        """Present place on the time line, constant during a pause."""
        now_ns = time.monotonic_ns()
        with self._changing:
            return self._line_at(int(self.words[Word.PAUSED_AT_NS]) or self.timed.held_ns or now_ns)

    def line_at(self, at_ns: int) -> int:
        """Place on the time line of a CLOCK_MONOTONIC time, if no action begins before."""
        with self._changing:
            return self._line_at(at_ns)

    def _line_at(self, at_ns: int) -> int:
        return round((at_ns - int(self.words[Word.EPOCH_NS]) - self.timed.moved_ns - self.postponed_ns) / self.scale)

    @property
    def postponed_ns(self) -> int:
        """Total postponement of the deadlines."""
        return int(self.postponement.by_ns.sum())

    def flush(self) -> None:
        """Discard the packets on the packet queue; to be called by its producer between two runs."""
        publish(self.words, Word.FLUSH_TO, int(self.queue.tail[0]))

    @property
    def waiting_packets(self) -> int:
        """Number of packets on the packet queue."""
        return int(waiting(self.queue))

    def _warm(self) -> None:
        """Load or compile the kernels, without playing anything."""
        stopped = shared_words(Word)
        stopped[Word.STOP] = 1
        self._play(StampClock(0, 0), stopped)
        nothing = np.zeros(0, np.int64)
        put_run(self.queue, nothing, nothing, nothing, nothing, np.frombuffer(bytes(1), np.uint8), nothing, 0, self.capture_ns)
        publish(stopped, 0, 1)
        waiting(self.queue)

    def _run(self, clock: StampClock) -> None:
        self.scheduling_mode = enter(self.settings).mode.value
        self._play(clock, self.words)

    def _play(self, clock: StampClock, words: npt.NDArray[np.int64]) -> None:
        flows = self.rings.head.shape[0]
        frame = np.zeros(HEADER_SIZE + self.capacity, np.uint8)
        play(
            self.queue,
            self.rings,
            self.routes,
            clock,
            float(self.scale),
            words,
            self.postponement,
            self.brake,
            np.full(flows, _LONG_AGO_NS),
            frame,
            self.capture_ns,
            self.timed,
            self.inserter.insertion if self.inserter else None,
        )
