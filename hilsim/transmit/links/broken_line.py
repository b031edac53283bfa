"""Faults of a serial line, put between a port and the program's end of it while there are any.

A thread takes the port's place behind the very descriptor that its reader and writer use (``dup2``), and gives it back when the last fault has ended:
a line without faults has no thread, and bytes go past this module. Which byte is lost is a function of the seed and the byte's number on the line.
A cable that is out closes the port, so that the other end sees what it sees of a cable; a port that comes back under another name is found by its lasting one.
"""

import fcntl
import os
import select
import socket
import termios
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel
from hilsim.errors import LinkError
from hilsim.faults.catalogue import Effect, Place
from hilsim.faults.specs import FAULT_SPECS, FaultSpec, faults_on
from hilsim.faults.table import FaultTable, build_fault_table, strength
from hilsim.rng import Purpose, uniform
from hilsim.transmit.links.endpoints import Endpoint, OpenLink

_DROP, _FLIP, _HALVE = constant(Effect.DROP_BYTES), constant(Effect.FLIP_BITS), constant(Effect.HALVE)
_BYTE, _BIT, _HALF = constant(Purpose.LINE_BYTE), constant(Purpose.LINE_BIT), constant(Purpose.LINE_HALF)
_OTHER_WAY = constant(2)
_BUFFER_BYTES = 4096
_LARGEST_READ = 512
_POLL_MS = 5
_DRAIN_S = 0.1


@kernel
def damage(faults: FaultTable, rig_ns: int, way: int, first: int, chunk: int, data: npt.NDArray[np.uint8]) -> int:
    """Lose and change bytes in place; returns how many are left, at the beginning.

    Args:
        faults: Faults of the line.
        rig_ns: Rig time.
        way: 0: to the program, 1: to the port.
        first: Number of the first byte on this way.
        chunk: Number of the chunk, which is what was written at once.
        data: ``uint8[n]``, the chunk.
    """
    size = data.size
    for row in range(faults.effect.size):
        acts = strength(faults, row, rig_ns)
        if faults.effect[row] == _HALVE and uniform(np.uint64(faults.seed[row]), way, chunk, _HALF) < acts * faults.value[row, 0]:
            size = min(size, int(data.size * uniform(np.uint64(faults.seed[row]), _OTHER_WAY + way, chunk, _HALF)))
    kept = 0
    for at in range(size):
        byte, is_lost = int(data[at]), False
        for row in range(faults.effect.size):
            share = strength(faults, row, rig_ns) * faults.value[row, 0]
            if faults.effect[row] == _DROP:
                is_lost = is_lost or uniform(np.uint64(faults.seed[row]), way, first + at, _BYTE) < share
            elif faults.effect[row] == _FLIP:
                for bit in range(8):
                    if uniform(np.uint64(faults.seed[row]), way, 8 * (first + at) + bit, _BIT) < share:
                        byte ^= 1 << bit
        if not is_lost:
            data[kept] = byte
            kept += 1
    return kept


@dataclass(kw_only=True, eq=False)
class _Way:
    """One direction of a line.

    Attributes:
        number: 0: to the program, 1: to the port.
        source: Descriptor that is read.
        sink: Descriptor that is written.
        held: Bytes that an adapter holds, since ``since_ns``.
        out: Chunks that the sink has no room for.
    """

    number: int
    source: int
    sink: int
    held: bytearray = field(default_factory=bytearray)
    since_ns: int = 0
    out: list[bytes] = field(default_factory=list)
    _bytes: int = 0
    _chunks: int = 0

    def take(self, faults: FaultTable, rig_ns: int) -> bool:
        """Read a chunk and let faults act upon it; False: the source has ended."""
        try:
            chunk = os.read(self.source, _LARGEST_READ)
        except BlockingIOError:
            return True
        except OSError:
            return False
        data = np.frombuffer(chunk, np.uint8).copy()
        kept = damage(faults, rig_ns, self.number, self._bytes, self._chunks, data)
        self._bytes, self._chunks = self._bytes + data.size, self._chunks + 1
        self.since_ns = self.since_ns if self.held else rig_ns
        self.held += data[:kept].tobytes()
        return bool(chunk)

    def give(self, timer_ns: float, most: int, rig_ns: int) -> bool:
        """Write what the adapter holds no longer: whole transfers of ``most`` bytes, and all when its timer has run out; False: the sink has ended."""
        while timer_ns > 0.0 and len(self.held) >= most:
            self.out.append(bytes(self.held[:most]))
            del self.held[:most]
        if self.held and rig_ns - self.since_ns >= timer_ns:
            self.out.append(bytes(self.held))
            self.held.clear()
        try:
            while self.out:
                written = os.write(self.sink, self.out[0])
                self.out[0] = self.out[0][written:]
                if not self.out[0]:
                    del self.out[0]
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True


class BrokenLine:
    """A serial line whose faults any thread may set.

    Args:
        name: Name that ``on`` of a fault matches.
        seed: Random seed of the rig.
    """

    def __init__(self, name: str, seed: int) -> None:
        self.name, self._seed = name, seed
        self._epoch_ns = 0
        self._later: list[tuple[int, tuple[FaultSpec, ...], FaultTable]] = []
        self._lock = threading.Lock()
        self._descriptor = -1
        self._thread: threading.Thread | None = None

    def begin(self, epoch_ns: int) -> None:
        """Set the CLOCK_MONOTONIC time of rig time 0."""
        self._epoch_ns = epoch_ns

    @staticmethod
    def warm() -> None:
        """Load or compile the kernels that act upon bytes."""
        table = build_fault_table([FAULT_SPECS["byte_loss"]()], 1, 0)
        damage(table, 0, 0, 0, 0, np.zeros(1, np.uint8))
        strength(table, 0, 0)

    def set_faults(self, from_ns: int, faults: Sequence[FaultSpec]) -> None:
        """Let the line have those of a rig's faults that befall it, from a rig time on."""
        chosen = faults_on(tuple(faults), self.name, Place.LINE)
        with self._lock:
            if chosen or self._later:
                self._later = [*self._later[-8:], (from_ns, chosen, build_fault_table(chosen, 1, self._seed))]
            self._take_place()

    def require_in(self) -> None:
        """Refuse to open the port while its cable is out.

        Raises:
            LinkError: a fault has taken it out.
        """
        faults, _ = self._present(self._now_ns())
        out = [fault.label for fault in faults if self._is_out(fault)]
        if out:
            raise LinkError(f"{self.name}: the cable must be in, got it out by the fault {out[0]}")

    def attach(self, descriptor: int) -> None:
        """Act upon an open port's descriptor from now on."""
        with self._lock:
            self._descriptor = descriptor
            self._take_place()

    def detach(self) -> None:
        """Leave the descriptor, which is closed next."""
        with self._lock:
            self._descriptor, thread = -1, self._thread
        if thread is not None:
            thread.join()

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self._epoch_ns

    def _present(self, now_ns: int) -> tuple[tuple[FaultSpec, ...], FaultTable]:
        found = [(faults, table) for from_ns, faults, table in self._later if from_ns <= now_ns]
        return found[-1] if found else ((), build_fault_table((), 1, self._seed))

    def _is_out(self, fault: FaultSpec) -> bool:
        return fault.row.effect == Effect.UNPLUG and fault.begin_ns <= self._now_ns() < fault.end_ns

    def _is_needed(self) -> bool:
        now_ns = self._now_ns()
        coming = [faults for from_ns, faults, _ in self._later if from_ns > now_ns]
        return any(fault.end_ns > now_ns for faults in (self._present(now_ns)[0], *coming) for fault in faults)

    def _take_place(self) -> None:
        """Start the thread if there is something to do; the lock is held."""
        if self._descriptor < 0 or self._thread is not None or not self._is_needed():
            return
        port, (near, far) = os.dup(self._descriptor), socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (near, far):
            end.settimeout(0)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
        os.dup2(near.fileno(), self._descriptor, inheritable=False)
        near.close()
        self._thread = threading.Thread(target=self._run, args=(port, far), name=f"line-{self.name}", daemon=True)
        self._thread.start()

    def _run(self, port: int, far: socket.socket) -> None:
        """Carry bytes until the port or the descriptor is closed, the cable is out, or there are no faults any more."""
        ways = (_Way(number=0, source=port, sink=far.fileno()), _Way(number=1, source=far.fileno(), sink=port))
        has_left = False
        try:
            while self._descriptor >= 0 and not has_left and self._carry(ways):
                if not self._is_needed():
                    self._leave(port, far, ways)
                    has_left = True
        finally:
            far.close()
            os.close(port)
            with self._lock:
                self._thread = None
                if has_left:
                    self._take_place()  # faults may have come meanwhile

    def _carry(self, ways: tuple[_Way, _Way]) -> bool:
        poller = select.poll()
        for way in ways:
            if not way.out:  # as a port without room, a full one is not read from the other side
                poller.register(way.source, select.POLLIN)
        ready = {descriptor for descriptor, _ in poller.poll(1 if any(way.held or way.out for way in ways) else _POLL_MS)}
        now_ns = self._now_ns()
        faults, table = self._present(now_ns)
        if any(map(self._is_out, faults)):
            return False
        slow = [row for row in range(table.effect.size) if table.effect[row] == Effect.LATENCY and strength(table, row, now_ns) > 0.0]
        timer_ns, most = max(((1e6 * table.value[row, 0], int(table.value[row, 1])) for row in slow), default=(0.0, 1))
        return all((way.source not in ready or way.take(table, now_ns)) and way.give(timer_ns, most, now_ns) for way in ways)

    def _leave(self, port: int, far: socket.socket, ways: tuple[_Way, _Way]) -> None:
        """Give the descriptor back to the port, and carry over what is on its way."""
        until_s, none = time.monotonic() + _DRAIN_S, build_fault_table((), 1, self._seed)
        while time.monotonic() < until_s and all(way.give(0.0, 1, self._now_ns()) for way in ways):
            if not (ways[0].out or ways[1].out or _unread(far)):
                break
            time.sleep(0.001)
        while ways[1].take(none, self._now_ns()) and ways[1].held:  # what is written now is last: the writer needs longer than this thread
            ways[1].give(0.0, 1, self._now_ns())
        with self._lock:
            if self._descriptor >= 0:
                os.dup2(port, self._descriptor, inheritable=False)
        while ways[1].take(none, self._now_ns()) and ways[1].held:
            ways[1].give(0.0, 1, self._now_ns())


def _unread(end: socket.socket) -> bool:
    """Whether the other end has not yet read all that was written to it."""
    return int.from_bytes(fcntl.ioctl(end.fileno(), termios.TIOCOUTQ, bytes(4)), "little") > 0


class BreakableEndpoint:
    """A serial port behind a line that faults may act upon.

    Args:
        endpoint: The port.
        line: Its line.
    """

    def __init__(self, endpoint: Endpoint, line: BrokenLine) -> None:
        self._endpoint, self._line = endpoint, line

    async def open(self) -> OpenLink:
        """Open the port.

        Raises:
            LinkError: it cannot be opened now, or its cable is out.
        """
        self._line.require_in()
        link = await self._endpoint.open()
        self._line.attach(link.descriptor)
        return link

    def close_link(self) -> None:
        """Close the port."""
        self._line.detach()
        self._endpoint.close_link()

    def close(self) -> None:
        """Close the port."""
        self._line.detach()
        self._endpoint.close()
