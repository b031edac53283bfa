"""Request to stop the daemon: the first reason counts, and a signal is reported with its sender.

The sender of a signal is in its ``siginfo_t`` (sigaction(2)), which Python's handler ignores. ``signalfd(2)`` and ``sigwaitinfo(2)`` would give it, but only
for signals that every thread blocks: the linear algebra library starts threads before hilsim, and children would inherit the mask. So a few instructions
are put before Python's handler, which store the sender and call the handler. They run on the thread that the kernel chose, and write only four words.
"""

import asyncio
import ctypes
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding, ir

_INT, _LONG = ir.IntType(32), ir.IntType(64)
_CODE_AT, _PID_AT, _UID_AT = 2, 4, 5  # 32-bit words of siginfo_t, on 64-bit machines (include/uapi/asm-generic/siginfo.h)
_SA_SIGINFO, _SA_RESTART = 0x4, 0x10000000
_SI_KERNEL = 0x80


_KEPT: list[Any] = []
"""Instructions and their words, which stay until the process ends: another thread may be executing them when the handler is removed."""


class _SignalAction(ctypes.Structure):
    """``struct sigaction`` of glibc and musl on 64-bit machines."""

    _fields_ = (("handler", ctypes.c_void_p), ("mask", ctypes.c_ulong * 16), ("flags", ctypes.c_int), ("restorer", ctypes.c_void_p))


class Senders:
    """Recorder of the senders of signals."""

    def __init__(self) -> None:
        self._words = np.zeros((signal.NSIG, 4), np.int32)
        self._libc = ctypes.CDLL(None, use_errno=True)

    def attend(self, number: signal.Signals) -> None:
        """Record the senders of a signal for which Python has a handler; on platforms without support do nothing."""
        former = _SignalAction()
        if self._libc.sigaction(number, None, ctypes.byref(former)) != 0 or not former.handler or former.handler == int(signal.SIG_IGN):
            return
        engine = _compile_noting(self._words[number].ctypes.data, former.handler)
        _KEPT.append((engine, self._words))
        action = _SignalAction(handler=engine.get_function_address("note"), mask=former.mask, flags=former.flags | _SA_SIGINFO | _SA_RESTART)
        self._libc.sigaction(number, ctypes.byref(action), None)

    def sender(self, number: signal.Signals) -> str:
        """Last sender of a signal: ``"pid 812 (bash), uid 0"``; ``"the terminal or the kernel"``; empty if unknown."""
        noted, code, pid, uid = (int(word) for word in self._words[number])
        if not noted:
            return ""
        if code == _SI_KERNEL or pid == 0:
            return "the terminal or the kernel" if code == _SI_KERNEL else "another process namespace"
        try:
            name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            name = ""  # the process has ended, or is not visible to this user
        return f"pid {pid}" + (f" ({name})" if name else "") + f", uid {uid}"


def _compile_noting(words: int, then: int) -> Any:
    """Compile ``void note(int number, siginfo_t *info, void *context)``, which stores into ``int32[4]`` at an address and calls the handler at another."""
    module = ir.Module()
    word_pointer = _INT.as_pointer()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_INT, word_pointer, word_pointer]), "note")
    builder = ir.IRBuilder(function.append_basic_block())
    number, info, _ = function.args
    noted = builder.inttoptr(_LONG(words), word_pointer)
    for place, at in enumerate((_CODE_AT, _PID_AT, _UID_AT), start=1):
        builder.store(builder.load(builder.gep(info, [_INT(at)])), builder.gep(noted, [_INT(place)]))
    builder.store(_INT(1), noted)
    builder.call(builder.inttoptr(_LONG(then), ir.FunctionType(ir.VoidType(), [_INT]).as_pointer()), [number])
    builder.ret_void()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(str(module)), binding.Target.from_default_triple().create_target_machine())
    engine.finalize_object()
    return engine


class Stopping:
    """Request to stop, set once with a reason; later reasons are ignored.

    Attributes:
        reason: Reason of the stop; empty before it.
    """

    def __init__(self) -> None:
        self.reason = ""
        self._requested = asyncio.Event()

    def stop(self, reason: str) -> None:
        """Request a stop for a reason."""
        self.reason = self.reason or reason
        self._requested.set()

    @property
    def is_requested(self) -> bool:
        """Whether a stop has been requested."""
        return self._requested.is_set()

    async def wait(self) -> None:
        """Wait for a request to stop."""
        await self._requested.wait()

    @contextmanager
    def naming_exceptions(self) -> Iterator[None]:
        """Take an exception that leaves the block as the reason, unless there is one, and raise it again."""
        try:
            yield
        except BaseException as error:
            self.reason = self.reason or f"exception {type(error).__name__}: {error}".rstrip(": ")
            raise


@contextmanager
def signals_handled(handlers: dict[signal.Signals, Callable[[str], None]]) -> Iterator[None]:
    """Call the handler of each signal in the running loop while the block runs, with ``"signal SIGTERM from pid 812 (bash), uid 0"``."""
    loop, senders = asyncio.get_running_loop(), Senders()

    def handle(number: signal.Signals) -> None:
        sender = senders.sender(number)
        handlers[number](f"signal {number.name}" + (f" from {sender}" if sender else ""))

    with ExitStack() as leaving:
        for number in handlers:
            loop.add_signal_handler(number, _wake)
            leaving.callback(loop.remove_signal_handler, number)
            signal.signal(number, lambda number, _frame: loop.call_soon_threadsafe(handle, signal.Signals(number)))
            senders.attend(number)
        signal.set_wakeup_fd(signal.set_wakeup_fd(-1), warn_on_full_buffer=False)
        yield


def _wake() -> None:
    """Wake the loop, and no more: asyncio passes signals through a socket, which loses them while it is full; Python's own handler loses none."""
