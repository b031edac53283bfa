"""Rings, sockets, statistics and the sending thread under one roof.

Used as a context manager: entering allocates rings and compiles or loads the loop, ``start`` arms it, leaving stops it and closes everything.
Flows may be added, retargeted and removed at any time; the other flows do not notice.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import publish
from hilsim.errors import TransmitError
from hilsim.transmit.flow_table import FlowTable, allocate_flow_table, pack_address, select_target, set_active
from hilsim.transmit.loop import Following, FollowingState, LatePolicy, LoopEnd, LoopSettings, allocate_following, send_loop
from hilsim.transmit.memory import MemoryLock, lock_memory, unlock_memory
from hilsim.transmit.packet_queue import PacketQueue, queue_of
from hilsim.transmit.pool import SocketPool, shares_socket
from hilsim.transmit.ring import Rings, allocate_rings, clear
from hilsim.transmit.scheduling import ObtainedScheduling, SchedulingMode, ThreadSettings, apply, chosen_spin_us, enter, fifo_refusal
from hilsim.transmit.specs import FlowSpec, FrameSocketSpec, TransmitSpec
from hilsim.transmit.statistics import LoopStatistics, allocate_statistics, clear_flow

P = ParamSpec("P")
R = TypeVar("R")

DEFAULT_SLOTS = 64
"""Default size of a ring in packets."""

_GRACE_TURNS = 3
"""Turns the loop must begin after a change before it has surely let go of what was before: one may be under way, one may have read just before."""

_GRACE_POLL_S = 0.0003


def _one_at_a_time(method: Callable[Concatenate["Transmitter", P], R]) -> Callable[Concatenate["Transmitter", P], R]:
    """Let no two threads change flows at once."""

    @wraps(method)
    def alone(self: "Transmitter", /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._changing:
            return method(self, *args, **kwargs)

    return alone


class Transmitter:
    """Sends what producers put into its rings, each datagram at its deadline.

    Attributes:
        spec: How.
        rings: One ring a flow, from entering on.
        statistics: What was counted, by row of ``rings``.
        scheduling: What the sending thread obtained; None before ``start``.
        memory_lock: Whether memory is locked; None before ``start``.
        end: Why the loop ended; None while it runs or has not run.
    """

    rings: Rings
    statistics: LoopStatistics

    def __init__(self, spec: TransmitSpec, *, flows: int, capacity: int, slots: int = 0, queues: int = 0, queue_slots: int = 1) -> None:
        """For up to ``flows`` flows of datagrams (or frames) of up to ``capacity`` bytes; nothing is made before entering.

        ``slots`` is how many datagrams a ring holds where the spec leaves it open, ``queues`` how many may follow what is sent, and ``queue_slots`` how
        many datagrams each of them may lag behind.
        """
        self.spec = spec
        self.scheduling: ObtainedScheduling | None = None
        self.memory_lock: MemoryLock | None = None
        self.end: LoopEnd | None = None
        self._flow_limit = flows
        self._capacity = capacity
        self._slots = spec.slots or slots or DEFAULT_SLOTS
        self._queues, self._queue_slots = queues, queue_slots
        self._numbers = 0
        self._retired: list[tuple[int, npt.NDArray[np.int64]]] = []
        self._flows: dict[int, FlowSpec] = {}
        self._changing = threading.RLock()  # a reload and a replay's reader may change flows at once
        self._sockets = SocketPool()
        self._stop = np.zeros(8, np.int64)
        self._thread: threading.Thread | None = None
        self._entered = threading.Event()
        self._refusal: TransmitError | None = None

    def __enter__(self) -> Self:
        """Allocate, and run the loop once with the stop flag up: loading a cached kernel may take 100 ms, which no packet shall wait for."""
        self.rings = allocate_rings(self._flow_limit, self._slots, self._capacity)
        self.statistics = allocate_statistics(self._flow_limit)
        self._table: FlowTable = allocate_flow_table(self._flow_limit)
        self._following: Following = allocate_following(self._queues, self._flow_limit, self._queue_slots, self._capacity)
        self._stop[0] = 1
        self._run_loop()
        set_active(self._table, 0, active=False)  # loads its kernel too
        self.end = None
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        """Stop, and close every socket."""
        self.stop()
        self._flows.clear()
        self._sockets.close()

    @property
    def running(self) -> bool:
        """Whether the sending thread runs."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def flows(self) -> dict[int, FlowSpec]:
        """The flows by row of ``rings`` and ``statistics``."""
        return dict(self._flows)

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """What the kernel would not give to the sockets, one sentence each."""
        return self._sockets.shortfalls

    @_one_at_a_time
    def add_flow(self, spec: FlowSpec, *, held: bool = False) -> int:
        """Open (or share) the flow's socket and serve its ring from now on (``held``: from ``release_flow`` on); returns its row, whose statistics are zeroed.

        Raises:
            TransmitError: no row is free, the name is taken, the socket cannot be had, or ``fifo`` is demanded and cannot bear the load.
        """
        if any(other.name == spec.name for other in self._flows.values()):
            raise TransmitError(f'flow names must differ, got "{spec.name}" twice')
        row = next((row for row in range(self._flow_limit) if row not in self._flows), -1)
        if row < 0:
            raise TransmitError(f"there must be at most {self._flow_limit} flows, got one more: {spec.name}")
        self._fit_scheduling(self.packet_rate_hz + spec.packet_rate_hz)
        clear(self.rings, row)
        clear_flow(self.statistics, row)
        self._table.sends_late[row] = spec.sends_late
        self._point(row, spec)
        self._flows[row] = spec
        self._following.number[row, self._table.selected[row]] = self._take_number()
        set_active(self._table, row, active=not held)
        return row

    @_one_at_a_time
    def release_flow(self, row: int) -> None:
        """Serve a flow that was held."""
        set_active(self._table, row, active=True)

    @_one_at_a_time
    def empty_flow(self, row: int) -> None:
        """Forget what the ring of a held flow holds; its producer must have ended."""
        self._wait_for_turns()
        clear(self.rings, row)

    @contextmanager
    def reserved(self, specs: Sequence[FlowSpec], retired: Sequence[FlowSpec]) -> Iterator[None]:
        """Hold the sockets of flows that are about to be opened or retargeted: what cannot be had is known before anything is changed.

        Args:
            specs: Of the flows to come.
            retired: Of those that end or change; the options of a socket that only they use may be changed.

        Raises:
            TransmitError: a socket, or the load with SCHED_FIFO, cannot be had; nothing was changed.
        """
        held: list[FlowSpec] = []
        try:
            with self._changing:
                left_hz = self.packet_rate_hz - sum(spec.packet_rate_hz for spec in retired)
                self._fit_scheduling(left_hz + sum(spec.packet_rate_hz for spec in specs))
                for spec in specs:
                    former = next((other.socket for other in retired if shares_socket(other.socket, spec.socket)), None)
                    self._sockets.acquire(spec.socket, former)
                    held.append(spec)
            yield
        finally:
            with self._changing:
                for spec in held:
                    self._sockets.release(spec.socket)

    @_one_at_a_time
    def retarget_flow(self, row: int, spec: FlowSpec, introduce: Callable[[int], None] = lambda _number: None) -> None:
        """Send the flow's datagrams elsewhere from now on; what its ring holds goes there too.

        Args:
            row: Of the flow.
            spec: Where to.
            introduce: Is given the number under which the flow is on the queues from now on, before anything is.

        Raises:
            TransmitError: the new socket cannot be had; the flow then keeps its target.
        """
        former = self._flows[row]
        self._fit_scheduling(self.packet_rate_hz - former.packet_rate_hz + spec.packet_rate_hz)
        self._table.sends_late[row] = spec.sends_late
        number, former_number = self._take_number(), self.flow_number(row)
        introduce(number)
        self._following.number[row, 1 - self._table.selected[row]] = number
        try:
            self._point(row, spec, former)
        except TransmitError:
            self._retired.append((number, np.zeros(self._queues, np.int64)))
            raise
        self._flows[row] = spec
        self._wait_for_turns()
        self._retired.append((former_number, self._following.queues.tail[:, 0].copy()))
        self._sockets.release(former.socket)

    @_one_at_a_time
    def remove_flow(self, row: int) -> None:
        """Serve the flow no more and free its row; its producer must have ended. What its ring held is lost."""
        set_active(self._table, row, active=False)
        self._wait_for_turns()
        self._retired.append((self.flow_number(row), self._following.queues.tail[:, 0].copy()))
        self._sockets.release(self._flows.pop(row).socket)

    def start(self) -> None:
        """Start the sending thread; returns when its scheduling is in force.

        Raises:
            TransmitError: the scheduling demanded is not permitted.
        """
        if self.running:
            raise TransmitError("the transmitter must be stopped before it is started again")
        self._fit_scheduling(self.packet_rate_hz)
        self.memory_lock = lock_memory() if self.spec.lock_memory else MemoryLock(locked=False, reason="lock_memory is false")
        self._stop[0] = 0
        self.end = None
        self._entered.clear()
        self._thread = threading.Thread(target=self._serve, name="transmit", daemon=True)
        self._thread.start()
        self._entered.wait()
        if self._refusal is not None:
            refusal, self._refusal = self._refusal, None
            self.stop()
            raise refusal

    def stop(self) -> None:
        """End the sending thread; returns when it has ended, within milliseconds. What the rings hold stays there."""
        self._stop[0] = 1  # an aligned word, with nothing to be ordered against: stopping shall not depend on a kernel
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self.memory_lock is not None and self.memory_lock.locked:
            unlock_memory()
            self.memory_lock = None

    def flow_number(self, row: int) -> int:
        """Number on the queues for the flow that has the row now: a row is used again at once, a number only when nothing of its flow is on a queue any more."""
        return int(self._following.number[row, self._table.selected[row]])

    def _take_number(self) -> int:
        """A number that no flow has, and nothing on a queue; so there are no more of them than flows, and what the queues hold."""
        taken = self._following.queues.head[:, 0].copy()
        for place, (number, until) in enumerate(self._retired):
            if (taken >= until).all():
                del self._retired[place]
                return number
        self._numbers += 1
        return self._numbers - 1

    def queue(self, queue: int) -> PacketQueue:
        """Copies of what was sent while the follower was selected, under the numbers of ``flow_number``; one consumer may take them."""
        return queue_of(self._following.queues, queue)

    def missed(self, queue: int) -> int:
        """Datagrams that were sent while the follower was selected, and are not on the queue."""
        return int(self._following.missed[queue, 0])

    def set_following(self, queue: int, state: FollowingState) -> None:
        """Put copies of what is sent from now on onto a queue, or no longer; at any time, and without disturbing the loop.

        After the call nothing is put onto it that was sent under the former state.
        """
        publish(self._following.state[queue], 0, int(state))
        self._wait_for_turns()

    @property
    def packet_rate_hz(self) -> float:
        """Sum of the expected rates of all flows."""
        return sum(flow.packet_rate_hz for flow in self._flows.values())

    def _thread_settings(self, packet_rate_hz: float) -> tuple[ThreadSettings, str]:
        """What the sending thread shall ask for under this load, and why not for more."""
        spin_us = chosen_spin_us(self.spec.spin_us, packet_rate_hz, real_time=True)
        refusal = fifo_refusal(packet_rate_hz, spin_us) if self.spec.scheduling in ("auto", "fifo") else ""
        if refusal and self.spec.scheduling == "fifo":
            raise TransmitError(refusal)
        choice = "slice" if refusal else self.spec.scheduling
        return ThreadSettings(scheduling=choice, priority=self.spec.priority, cpu=self.spec.cpu), refusal

    def _fit_scheduling(self, packet_rate_hz: float) -> None:
        """Refuse a load that SCHED_FIFO, if demanded, cannot bear; a running thread is moved to what it can bear."""
        settings, refusal = self._thread_settings(packet_rate_hz)
        thread = self._thread
        if refusal and thread is not None and thread.native_id is not None and self.running:
            obtained = apply(settings, thread.native_id)
            self.scheduling = ObtainedScheduling(mode=obtained.mode, reason=refusal)

    def _serve(self) -> None:
        try:
            settings, refusal = self._thread_settings(self.packet_rate_hz)
            obtained = enter(settings)
            self.scheduling = ObtainedScheduling(mode=obtained.mode, reason=refusal or obtained.reason)
        except TransmitError as error:
            self._refusal = error
            return
        finally:
            self._entered.set()
        self._run_loop()

    def _run_loop(self) -> None:
        real_time = self.scheduling is not None and self.scheduling.mode is SchedulingMode.FIFO
        settings = LoopSettings(
            spin_ns=round(chosen_spin_us(self.spec.spin_us, self.packet_rate_hz, real_time=real_time) * 1000),
            late_limit_ns=round(self.spec.late_limit_us * 1000),
            late_policy=int(LatePolicy[self.spec.late_policy.upper()]),
        )
        self.end = LoopEnd(send_loop(self.rings, self._table, self.statistics, self._following, self._stop, settings))

    def _point(self, row: int, spec: FlowSpec, former: FlowSpec | None = None) -> None:
        opened = self._sockets.acquire(spec.socket, former.socket if former else None)
        address = b"" if isinstance(spec.socket, FrameSocketSpec) else pack_address(spec.socket.destination, spec.socket.destination_port)
        select_target(self._table, row, opened.fileno(), address)

    def _wait_for_turns(self) -> None:
        """Return when the loop, if it runs, can no longer use what was replaced before the call."""
        begun = int(self.statistics.passes[0])
        while self.running and self.statistics.passes[0] < begun + _GRACE_TURNS:
            time.sleep(_GRACE_POLL_S)
