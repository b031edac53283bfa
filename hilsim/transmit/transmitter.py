"""The transmitter: rings, sockets, statistics and the sending thread.

It is a context manager: entering allocates rings and compiles or loads the loop, ``start`` starts it, leaving stops it and closes everything.
Flows may be added, retargeted and removed at any time, without effect on other flows.
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
from hilsim.errors import ConfigError, TransmitError
from hilsim.limits import INJECTED_FAULTS
from hilsim.protocols.ethernet import TAG_SIZE
from hilsim.transmit.faults.arrays import NEVER_NS, BrokenNetwork, NetworkFault, Pool, allocate_network_faults
from hilsim.transmit.flow_table import FlowTable, allocate_flow_table, pack_address, select_target, set_active
from hilsim.transmit.loop import Following, FollowingState, LatePolicy, LoopEnd, LoopSettings, allocate_following, send_loop
from hilsim.transmit.memory import MemoryLock, lock_memory, unlock_memory
from hilsim.transmit.packet_queue import PacketQueue, queue_of
from hilsim.transmit.pool import SocketPool, shares_socket
from hilsim.transmit.ring import Rings, allocate_rings, clear
from hilsim.transmit.scheduling import ObtainedScheduling, SchedulingMode, ThreadSettings, apply, chosen_spin_us, enter, fifo_refusal
from hilsim.transmit.specs import FlowSpec, FrameSocketSpec, TransmitSpec
from hilsim.transmit.statistics import Counter, LoopStatistics, allocate_statistics, clear_flow

P = ParamSpec("P")
R = TypeVar("R")

DEFAULT_SLOTS = 64
"""Default size of a ring in packets."""

_GRACE_TURNS = 3
"""Turns that the loop must begin after a change before it no longer uses the former state: one may be under way, one may have read just before."""

_GRACE_POLL_S = 0.0003


def _one_at_a_time(method: Callable[Concatenate["Transmitter", P], R]) -> Callable[Concatenate["Transmitter", P], R]:
    """Serialise changes of flows by different threads."""

    @wraps(method)
    def alone(self: "Transmitter", /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._changing:
            return method(self, *args, **kwargs)

    return alone


class Transmitter:
    """Sends what producers put into its rings, each datagram at its deadline.

    Attributes:
        spec: Settings of sending.
        rings: One ring per flow, after entering.
        statistics: Counters, by row of ``rings``.
        network: Faults of the network, by row of ``rings``.
        scheduling: Scheduling of the sending thread; None before ``start``.
        memory_lock: Whether memory is locked; None before ``start``.
        end: Reason that the loop ended; None while it runs or before it has run.
    """

    rings: Rings
    statistics: LoopStatistics
    network: BrokenNetwork

    def __init__(
        self, spec: TransmitSpec, *, flows: int, capacity: int, slots: int = 0, queues: int = 0, queue_slots: int = 1, faults: int = 0, seed: int = 0
    ) -> None:
        """Prepare for up to ``flows`` flows of datagrams (or frames) of up to ``capacity`` bytes; resources are allocated on entering.

        ``slots`` is the size of a ring if the spec leaves it open, ``queues`` the number of followers, and ``queue_slots``
        the number of datagrams that each of them may lag behind. ``faults`` is the number of faults of the network that there may be at a time, and ``seed`` the rig's.
        """
        self.spec = spec
        self.scheduling: ObtainedScheduling | None = None
        self.memory_lock: MemoryLock | None = None
        self.end: LoopEnd | None = None
        self._flow_limit = flows
        self._capacity = capacity
        self._slots = spec.slots or slots or DEFAULT_SLOTS
        self._queues, self._queue_slots = queues, queue_slots
        self._fault_limit, self._seed = faults, seed
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
        """Allocate, and run the loop once with the stop flag set: loading a cached kernel may take 100 ms, which must not delay a packet."""
        self.rings = allocate_rings(self._flow_limit, self._slots, self._capacity)
        self.statistics = allocate_statistics(self._flow_limit)
        self._table: FlowTable = allocate_flow_table(self._flow_limit)
        self._following: Following = allocate_following(self._queues, self._flow_limit, self._queue_slots, self._capacity + TAG_SIZE)
        self.network = BrokenNetwork(allocate_network_faults(self._flow_limit, self._capacity, self._fault_limit), self._seed)
        self.network.arrays.held.payload[:] = 0  # a write makes each page exist before the first packet
        self._stop[0] = 1
        self._run_loop()
        set_active(self._table, 0, active=False)  # loads its kernel as well
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
        """Settings that the kernel did not grant to the sockets, one sentence each."""
        return self._sockets.shortfalls

    @_one_at_a_time
    def add_flow(self, spec: FlowSpec, *, held: bool = False) -> int:
        """Open (or share) the flow's socket and serve its ring from now on (``held``: from ``release_flow`` on); returns its row, with statistics reset.

        Raises:
            TransmitError: no row is free, the name is in use, the socket cannot be opened, or ``fifo`` is required and the load is too high for it.
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
        self._table.is_silent[row] = 0
        self._expose(row, spec)
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
    def silence_flow(self, row: int, *, silent: bool) -> None:
        """Count a flow's datagrams in place of sending them, from the next one on, or send them again."""
        publish(self._table.is_silent, row, int(silent))

    def is_silent(self, row: int) -> bool:
        """Whether a flow's datagrams are counted in place of being sent."""
        return bool(self._table.is_silent[row])

    @_one_at_a_time
    def set_faults(self, faults: Sequence[NetworkFault], until_ns: int = NEVER_NS) -> bool:
        """Let other faults of the network be in force, for all datagrams that are due after this call.

        Returns:
            False, and nothing has changed, if that was not done by CLOCK_MONOTONIC ``until_ns``.

        Raises:
            ConfigError: there are more than this transmitter was made for.
        """
        self.check_faults(faults)
        is_done = self.network.set_faults(faults, until_ns)
        self._wait_for_turns()
        self.network.rest()
        return is_done

    def check_faults(self, faults: Sequence[NetworkFault]) -> None:
        """Find out whether so many faults of the network can be in force.

        Raises:
            ConfigError: there are more than this transmitter was made for.
        """
        if len(faults) > self._fault_limit:
            what = "" if self._fault_limit else ": restart the rig, or give it a [control] socket, for them"
            raise ConfigError(f"{INJECTED_FAULTS.subject} must be at most {self._fault_limit} in this run, got {len(faults)}{what}")

    def set_epoch(self, epoch_ns: int) -> None:
        """Set CLOCK_MONOTONIC time of rig time 0; only while all flows are held, or have no faults."""
        self.network.arrays.epoch_ns[0] = epoch_ns

    def last_due_ns(self, row: int) -> int:
        """CLOCK_MONOTONIC time at which the flow's newest datagram left, or was judged by faults of the network; 0 before the first."""
        arrays = self.network.arrays
        judged_ns = int(arrays.last_ns[row]) + int(arrays.epoch_ns[0]) if arrays.last_ns[row] >= 0 else 0
        return max(int(self.statistics.counters[row, Counter.LAST_SEND_NS]), judged_ns)

    @property
    def is_idle(self) -> bool:
        """Whether everything that was put into rings has left them, and nothing is held."""
        return bool((self.rings.head[:, 0] == self.rings.tail[:, 0]).all()) and self.network.arrays.pool[Pool.COUNT] == 0

    @_one_at_a_time
    def empty_flow(self, row: int) -> None:
        """Empty the ring of a held flow; its producer must have ended."""
        self._wait_for_turns()
        clear(self.rings, row)

    @contextmanager
    def reserved(self, specs: Sequence[FlowSpec], retired: Sequence[FlowSpec]) -> Iterator[None]:
        """Hold the sockets of flows that will be opened or retargeted, so that errors occur before anything is changed.

        Args:
            specs: Specifications of the new flows.
            retired: Specifications of flows that end or change; the options of a socket used only by these may be changed.

        Raises:
            TransmitError: a socket cannot be opened, or the load is too high for SCHED_FIFO; nothing was changed.
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
    def retarget_flow(self, row: int, spec: FlowSpec, introduce: Callable[[int], None]) -> None:
        """Send the flow's datagrams, including those in its ring, to another destination from now on.

        Args:
            row: Row of the flow.
            spec: New specification.
            introduce: Called with the flow's new number on the queues, before a datagram has it.

        Raises:
            TransmitError: the new socket cannot be opened; the flow then keeps its target.
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
        if isinstance(former.socket, FrameSocketSpec) != isinstance(spec.socket, FrameSocketSpec):
            self._expose(row, spec)
        self._wait_for_turns()
        self._retired.append((former_number, self._following.queues.tail[:, 0].copy()))
        self._sockets.release(former.socket)

    @_one_at_a_time
    def remove_flow(self, row: int) -> None:
        """Stop serving the flow and free its row; its producer must have ended. The contents of its ring are lost."""
        set_active(self._table, row, active=False)
        self._wait_for_turns()
        self._retired.append((self.flow_number(row), self._following.queues.tail[:, 0].copy()))
        self._sockets.release(self._flows.pop(row).socket)

    def start(self) -> None:
        """Start the sending thread; returns when its scheduling is in force.

        Raises:
            TransmitError: the required scheduling is not permitted.
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
        """Stop the sending thread; returns when it has ended, within milliseconds. The rings keep their contents."""
        self._stop[0] = 1  # an aligned word, with no ordering required: stopping must not depend on a kernel
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self.memory_lock is not None and self.memory_lock.locked:
            unlock_memory()
            self.memory_lock = None

    def flow_number(self, row: int) -> int:
        """Number on the queues of the row's current flow: a row is reused at once, a number only when no datagram of its flow is left on a queue."""
        return int(self._following.number[row, self._table.selected[row]])

    def _take_number(self) -> int:
        """A number used by no flow and on no queue; so there are at most as many numbers as flows and queued datagrams."""
        taken = self._following.queues.head[:, 0].copy()
        for place, (number, until) in enumerate(self._retired):
            if (taken >= until).all():
                del self._retired[place]
                return number
        self._numbers += 1
        return self._numbers - 1

    def queue(self, queue: int) -> PacketQueue:
        """Queue of copies of datagrams sent while the follower was selected, with the numbers of ``flow_number``; one consumer may take them."""
        return queue_of(self._following.queues, queue)

    def missed(self, queue: int) -> int:
        """Number of datagrams sent while the follower was selected that are not on the queue."""
        return int(self._following.missed[queue, 0])

    def set_following(self, queue: int, state: FollowingState) -> None:
        """Start or stop copying sent datagrams onto a queue; at any time, and without disturbing the loop.

        After the call no datagram sent under the former state is put onto the queue.
        """
        publish(self._following.state[queue], 0, int(state))
        self._wait_for_turns()

    @property
    def packet_rate_hz(self) -> float:
        """Sum of the expected rates of all flows."""
        return sum(flow.packet_rate_hz for flow in self._flows.values())

    def _thread_settings(self, packet_rate_hz: float) -> tuple[ThreadSettings, str]:
        """Scheduling to request for the sending thread under this load, and the reason for not requesting more."""
        spin_us = chosen_spin_us(self.spec.spin_us, packet_rate_hz, real_time=True)
        refusal = fifo_refusal(packet_rate_hz, spin_us) if self.spec.scheduling in ("auto", "fifo") else ""
        if refusal and self.spec.scheduling == "fifo":
            raise TransmitError(refusal)
        choice = "slice" if refusal else self.spec.scheduling
        return ThreadSettings(scheduling=choice, priority=self.spec.priority, cpu=self.spec.cpu), refusal

    def _fit_scheduling(self, packet_rate_hz: float) -> None:
        """Reject a load that is too high for required SCHED_FIFO; change a running thread to the scheduling that its load permits."""
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
        self.end = LoopEnd(send_loop(self.rings, self._table, self.statistics, self._following, self.network.arrays, self._stop, settings))

    def _expose(self, row: int, spec: FlowSpec) -> None:
        """Expose a flow to faults of the network; what is held of the row's former one is not sent."""
        is_raw = isinstance(spec.socket, FrameSocketSpec)
        self.network.add_flow(row, spec.path or spec.name, has_headers=is_raw, is_raw=is_raw)

    def _point(self, row: int, spec: FlowSpec, former: FlowSpec | None = None) -> None:
        opened = self._sockets.acquire(spec.socket, former.socket if former else None)
        address = b"" if isinstance(spec.socket, FrameSocketSpec) else pack_address(spec.socket.destination, spec.socket.destination_port)
        select_target(self._table, row, opened.fileno(), address)

    def _wait_for_turns(self) -> None:
        """Return when the loop, if it runs, can no longer use state replaced before the call."""
        begun = int(self.statistics.passes[0])
        while self.running and self.statistics.passes[0] < begun + _GRACE_TURNS:
            time.sleep(_GRACE_POLL_S)
