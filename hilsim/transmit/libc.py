"""The clock, sleeping, sending, reading, writing and waiting for kernels: calls into libc without Python and without the GIL.

Symbols are resolved by name when a kernel is loaded, so kernels that use them can be cached on disk. Under ``NUMBA_DISABLE_JIT=1`` Python and
ctypes replace them. Linux on 64-bit machines only (``struct timespec`` of two 64-bit words).
"""

import ctypes
import socket
import time
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from hilsim.compilation.jit import kernel
from hilsim.units import NS_PER_S

_CLOCK_MONOTONIC = 1
_CLOCK_THREAD_CPUTIME = 3
_TIMER_ABSTIME = 1
_SEND_FLAGS = int(socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

_INT = ir.IntType(32)
_WORD = ir.IntType(64)
_TIMESPEC = ir.ArrayType(_WORD, 2)


def _field(builder: Any, timespec: Any, index: int) -> Any:
    return builder.gep(timespec, [_INT(0), _INT(index)], inbounds=True)


def _clock_ns(clock: int) -> Any:
    def read_clock(_typing: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
            timespec = cgutils.alloca_once(builder, _TIMESPEC)
            read = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_INT, [_INT, _TIMESPEC.as_pointer()]), "clock_gettime")
            builder.call(read, [_INT(clock), timespec])
            seconds = builder.load(_field(builder, timespec, 0))
            return builder.add(builder.mul(seconds, _WORD(NS_PER_S)), builder.load(_field(builder, timespec, 1)))

        return types.int64(), generate

    return intrinsic(read_clock)


def _sleep_until(_typing: Any, deadline_ns: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        deadline = context.cast(builder, arguments[0], signature.args[0], types.int64)
        timespec = cgutils.alloca_once(builder, _TIMESPEC)
        builder.store(builder.sdiv(deadline, _WORD(NS_PER_S)), _field(builder, timespec, 0))
        builder.store(builder.srem(deadline, _WORD(NS_PER_S)), _field(builder, timespec, 1))
        pointer = _TIMESPEC.as_pointer()
        sleep = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_INT, [_INT, _INT, pointer, pointer]), "clock_nanosleep")
        return builder.call(sleep, [_INT(_CLOCK_MONOTONIC), _INT(_TIMER_ABSTIME), timespec, ir.Constant(pointer, None)])

    return types.int32(deadline_ns), generate


def _load_int(_typing: Any, address: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], _INT.as_pointer()))

    return types.int32(address), generate


def _sleep_in_python(deadline_ns: int) -> int:
    time.sleep(max(deadline_ns - time.monotonic_ns(), 0) / NS_PER_S)
    return 0


def _send_in_python(descriptor: int, payload: int, size: int, address: int, address_size: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.sendto.restype = ctypes.c_ssize_t
    sent = libc.sendto(
        ctypes.c_int(int(descriptor)),
        ctypes.c_void_p(int(payload)),
        ctypes.c_size_t(int(size)),
        ctypes.c_int(_SEND_FLAGS),
        ctypes.c_void_p(int(address) if address_size else None),
        ctypes.c_uint(int(address_size)),
    )
    return _errno_or(sent)


def _errno_or(result: int) -> int:
    return int(result) if result >= 0 else -ctypes.get_errno()


def _read_in_python(descriptor: int, place: int, size: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.read.restype = ctypes.c_ssize_t
    return _errno_or(libc.read(ctypes.c_int(int(descriptor)), ctypes.c_void_p(int(place)), ctypes.c_size_t(int(size))))


def _write_in_python(descriptor: int, place: int, size: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.write.restype = ctypes.c_ssize_t
    return _errno_or(libc.write(ctypes.c_int(int(descriptor)), ctypes.c_void_p(int(place)), ctypes.c_size_t(int(size))))


def _poll_in_python(waits: int, count: int, timeout: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    return _errno_or(libc.ppoll(ctypes.c_void_p(int(waits)), ctypes.c_ulong(int(count)), ctypes.c_void_p(int(timeout) or None), None))


_read = types.ExternalFunction("read", types.intp(types.int32, types.uintp, types.uintp))
_write = types.ExternalFunction("write", types.intp(types.int32, types.uintp, types.uintp))
_ppoll = types.ExternalFunction("ppoll", types.int32(types.uintp, types.uintp, types.uintp, types.uintp))
_sendto = types.ExternalFunction("sendto", types.intp(types.int32, types.uintp, types.uintp, types.int32, types.uintp, types.uint32))
_errno_location = types.ExternalFunction("__errno_location", types.uintp())
_load_int_at = intrinsic(_load_int)


@kernel
def _send_datagram(descriptor: int, payload: int, size: int, address: int, address_size: int) -> int:
    sent: int = _sendto(descriptor, payload, size, _SEND_FLAGS, address if address_size > 0 else 0, address_size)
    return sent if sent >= 0 else -_load_int_at(_errno_location())


@kernel
def _read_bytes(descriptor: int, place: int, size: int) -> int:
    got: int = _read(descriptor, place, size)
    return got if got >= 0 else -_load_int_at(_errno_location())


@kernel
def _write_bytes(descriptor: int, place: int, size: int) -> int:
    put: int = _write(descriptor, place, size)
    return put if put >= 0 else -_load_int_at(_errno_location())


@kernel
def _poll(waits: int, count: int, timeout: int) -> int:
    ready: int = _ppoll(waits, count, timeout, 0)
    return ready if ready >= 0 else -_load_int_at(_errno_location())


_compiled = not numba.config.DISABLE_JIT

monotonic_ns: Callable[[], int] = _clock_ns(_CLOCK_MONOTONIC) if _compiled else time.monotonic_ns
"""``monotonic_ns() -> int64``: CLOCK_MONOTONIC; only from kernels."""

thread_cpu_ns: Callable[[], int] = _clock_ns(_CLOCK_THREAD_CPUTIME) if _compiled else time.thread_time_ns
"""``thread_cpu_ns() -> int64``: CPU time of the calling thread; a system call; only from kernels."""

sleep_until: Callable[[int], int] = intrinsic(_sleep_until) if _compiled else _sleep_in_python
"""``sleep_until(deadline_ns) -> int32``: sleeps until CLOCK_MONOTONIC reads ``deadline_ns`` or a signal comes; 0 or an errno; only from kernels."""

send_datagram: Callable[[int, int, int, int, int], int] = _send_datagram if _compiled else _send_in_python
"""``send_datagram(descriptor, payload, size, address, address_size) -> bytes sent or -errno``; never waits, raises no signal.

``payload`` and ``address`` are memory addresses (``array.ctypes.data``); ``address_size`` 0 sends to the address that the socket is bound or connected to.
"""

read_bytes: Callable[[int, int, int], int] = _read_bytes if _compiled else _read_in_python
"""``read_bytes(descriptor, place, size) -> bytes read or -errno``; ``place`` is a memory address; waits where the descriptor is a blocking one."""

write_bytes: Callable[[int, int, int], int] = _write_bytes if _compiled else _write_in_python
"""``write_bytes(descriptor, place, size) -> bytes written or -errno``; as ``read_bytes``. Python ignores SIGPIPE, so a closed socket is -EPIPE."""

poll_descriptors: Callable[[int, int, int], int] = _poll if _compiled else _poll_in_python
"""``poll_descriptors(waits, count, timeout) -> number of ready descriptors or -errno``: ``ppoll`` with the addresses of ``struct pollfd[count]`` and of a
``struct timespec`` (0: no timeout); a signal ends it with -EINTR."""
