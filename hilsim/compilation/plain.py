"""Compilation of kernels by plain Numba: for versions whose private parts are not known (``hilsim.compilation.internals``).

Only Numba's documented interface is used, including ``numba.extending`` and its events. A caller's machine code contains that of all its callees, every kernel has
its wrappers, and tuples are passed by value: compiling takes several times as long. The arithmetic and the bytes are the same.

Entries on disk are in the directories of ``hilsim.compilation.cache``, with the same freshness and trust. Numba numbers the entries of an
index without regard to other processes, and has no hook for a lock around that; so only one process at a time compiles or loads.
"""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from typing import Any, cast

import numba
from numba.core import event
from numba.extending import is_jitted

from hilsim.compilation.cache import claimed, make_directory, module_directory, refusals
from hilsim.compilation.compiler import OPTIONS

_WAIT_S = 3_600.0
"""Timeout for another process that compiles: more than all kernels of a rig take."""


class _OneProcess(event.Listener):
    """Claims compiling for this process while any of its threads has, or waits for, Numba's compiler lock."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._threads = 0
        self._claim = ExitStack()

    def on_start(self, event: object) -> None:  # noqa: ARG002 - Numba's signature
        """Handle a thread's request for the lock."""
        with self._guard:
            if self._threads == 0:
                self._claim.enter_context(claimed("plain Numba", _WAIT_S))
            self._threads += 1

    def on_end(self, event: object) -> None:  # noqa: ARG002 - Numba's signature
        """Handle a thread's release of the lock."""
        with self._guard:
            self._threads -= 1
            if self._threads == 0:
                self._claim.close()


@cache
def _one_process_at_a_time() -> None:
    event.register("numba:compiler_lock", _OneProcess())


def _compile(function: Callable[..., Any], **more: Any) -> Any:
    place = module_directory(function.__module__)
    options = OPTIONS | more
    if place is not None:
        _one_process_at_a_time()
        before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(place)
        try:
            make_directory(place)
            return numba.jit(cache=True, **options)(function)
        except (OSError, RuntimeError) as error:  # a full disk, or no directory that Numba accepts
            reason = f"kernels are not kept in {place.parent}: {error}"
            if reason not in refusals:
                refusals.append(reason)
        finally:
            numba.config.CACHE_DIR = before
    return numba.jit(**options)(function)


def compile_kernel(function: Callable[..., Any]) -> Any:
    """Dispatcher of a function."""
    return _compile(function)


compile_borrowing = compile_kernel
"""Dispatcher of a function that makes no arrays and returns none; plain Numba counts references in it, too."""

compile_stage = compile_kernel
"""Dispatcher of a stage, which plain Numba includes in its callers."""


def compile_inlined(function: Callable[..., Any]) -> Any:
    """Dispatcher of a function that is inlined into each caller before compiling."""
    return _compile(function, inline="always")


def compile_types(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Compile a kernel for Numba types, or load it; other functions are ignored."""
    if is_jitted(function):
        cast("Any", function).compile(arguments)


def pass_by_reference(cls: type, *, is_placed: bool = False) -> None:
    """Do nothing: plain Numba passes named tuples by value."""
