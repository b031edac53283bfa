"""The only module that calls Numba's decorators.

Why a module of its own: typing (``mypy --strict`` needs no ignores elsewhere), one place for the flags every kernel must have (``nogil``), and one
for the cache they are kept in (``hilsim._kernel_cache``), which can neither kill nor mislead the daemon: Numba's ``cache=True`` raises
``RuntimeError`` at import when no directory is writable; here kernels are compiled in memory then.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from hilsim._kernel_cache import KernelCache, module_directory  # before Numba: it says how to compile

# isort: split

import numba
import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


def constant(value: int) -> int:
    """An integer constant for kernels that does not multiply them: for each plain Python constant it is passed, Numba compiles a copy of the callee."""
    return cast("int", np.int64(value))


def kernel(function: F) -> F:
    """Compile a kernel for the CPU: ``nopython``, without the GIL, division by zero as in NumPy, kept on disk where that is possible.

    With ``NUMBA_DISABLE_JIT=1`` the plain Python function is returned, so that coverage can see it.
    """
    return _kept(function, numba.njit(nogil=True, error_model="numpy")(function))


def inlined_kernel(function: F) -> F:
    """A kernel that becomes part of each kernel that calls it, before compiling.

    For what only strings other kernels together: each level of calls costs seconds of linking and optimising all that is below it once more.
    """
    return _kept(function, numba.njit(nogil=True, error_model="numpy", inline="always")(function))


def _kept(function: F, compiled: Any) -> F:
    """A dispatcher with its cache on disk; Numba sets the same attribute for ``cache=True``."""
    if compiled is not function and module_directory(function.__module__) is not None:
        compiled._cache = KernelCache(function)  # noqa: SLF001 - as Dispatcher.enable_caching does, with our class
    return cast("F", compiled)


@inlined_kernel
def signed(value: Any) -> Any:
    """A packet's unsigned field as a number to calculate with: Numba makes a float of what mixes unsigned and signed 64 bits."""
    return np.int64(value)
