"""The only module that calls Numba's decorators.

Why a module of its own: typing (``mypy --strict`` needs no ignores elsewhere), one place for the flags every kernel must have (``nogil``),
one for how kernels are put together (``hilsim.compilation.dispatcher``, or ``plain`` where Numba is not known), and one for the cache they are kept
in (``hilsim.compilation.cache``).
Numba's ``cache=True`` raises ``RuntimeError`` at import when no directory is writable; here kernels are compiled in memory then.
"""

import logging
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from hilsim.compilation.compiler import Compiler
from hilsim.compilation.internals import unknown_internals

F = TypeVar("F", bound=Callable[..., Any])
TupleT = TypeVar("TupleT", bound=type)


def _compiler() -> Compiler:
    """The way that fits the installed Numba."""
    if reason := unknown_internals():
        from hilsim.compilation import plain  # noqa: PLC0415 - the other way imports what this Numba may not have

        logging.getLogger(__name__).warning(reason)
        return plain
    from hilsim.compilation import dispatcher  # noqa: PLC0415

    return dispatcher


_COMPILER = _compiler()


def constant(value: int) -> int:
    """An integer constant for kernels that does not multiply them: for each plain Python constant it is passed, Numba compiles a copy of the callee."""
    return cast("int", np.int64(value))


def kernel(function: F) -> F:
    """Compile a kernel for the CPU: ``nopython``, without the GIL, division by zero as in NumPy, kept on disk where that is possible.

    With ``NUMBA_DISABLE_JIT=1`` the plain Python function is returned, so that coverage can see it.
    """
    return function if numba.config.DISABLE_JIT else cast("F", _COMPILER.compile_kernel(function))


def stage_kernel(function: F) -> F:
    """A kernel that its callers call, and do not make part of themselves: for what takes a second to compile, and microseconds to run.

    It must be found by its name in its module, and its annotation must say what it returns.
    """
    return function if numba.config.DISABLE_JIT else cast("F", _COMPILER.compile_stage(function))


def inlined_kernel(function: F) -> F:
    """A kernel that becomes part of each kernel that calls it, before compiling.

    For what only strings other kernels together: each level of calls costs seconds of linking and optimising all that is below it once more.
    """
    return function if numba.config.DISABLE_JIT else cast("F", _COMPILER.compile_inlined(function))


def by_reference(cls: TupleT) -> TupleT:
    """Pass a class of named tuples to kernels by address: for large ones that Python makes and kernels read. Kernels can neither make nor unpack one."""
    _COMPILER.pass_by_reference(cls)
    return cls


def compile_for(function: Callable[..., Any], *arguments: Any) -> None:
    """Compile a kernel for arguments of these types, or load it, without calling it."""
    if not numba.config.DISABLE_JIT:
        _COMPILER.compile_types(function, tuple(map(numba.typeof, arguments)))


@inlined_kernel
def signed(value: Any) -> Any:
    """A packet's unsigned field as a number to calculate with: Numba makes a float of what mixes unsigned and signed 64 bits."""
    return np.int64(value)
