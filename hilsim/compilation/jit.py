"""The only module that calls Numba's decorators.

It is a separate module for typing (``mypy --strict`` needs no ignores elsewhere), and to have one place for the flags of all kernels (``nogil``),
for the choice of the compiler (``hilsim.compilation.dispatcher``, or ``plain`` for an unknown Numba), and for the cache on disk
(``hilsim.compilation.cache``).
Numba's ``cache=True`` raises ``RuntimeError`` at import when no directory is writable; here kernels are then compiled in memory.
"""

import logging
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from hilsim.compilation.cache import sources_hash
from hilsim.compilation.compiler import Compiler
from hilsim.compilation.internals import unknown_internals

F = TypeVar("F", bound=Callable[..., Any])
TupleT = TypeVar("TupleT", bound=type)


def _compiler() -> Compiler:
    """Compiler for the installed Numba."""
    if reason := unknown_internals():
        from hilsim.compilation import plain  # noqa: PLC0415 - the other compiler imports names that this Numba may lack

        logging.getLogger(__name__).warning(reason)
        return plain
    from hilsim.compilation import dispatcher  # noqa: PLC0415

    return dispatcher


_COMPILER = _compiler()


def constant(value: int) -> int:
    """Integer constant for kernels that avoids copies: Numba compiles a copy of the callee for each plain Python constant passed to it."""
    return cast("int", np.int64(value))


def kernel(function: F) -> F:
    """Compile a kernel for the CPU: ``nopython``, without the GIL, division by zero as in NumPy, cached on disk where possible.

    With ``NUMBA_DISABLE_JIT=1`` the plain Python function is returned, so that coverage can see it.
    """
    return function if numba.config.DISABLE_JIT else cast("F", _COMPILER.compile_kernel(function))


def borrowing_kernel(function: F) -> F:
    """Compile a kernel that makes no arrays and returns none: references to the arrays that it is given are not counted.

    Counting takes two atomic instructions for each array at each call, an eighth of a packet's time altogether.
    """
    return function if numba.config.DISABLE_JIT else cast("F", _COMPILER.compile_borrowing(function))


def stage_kernel(function: F) -> F:
    """Compile a kernel that is called by address and not included in its callers: for one that takes a second to compile and microseconds to run.

    It must be found by its name in its module, and its annotation must give its return type.
    """
    return function if numba.config.DISABLE_JIT else cast("F", _COMPILER.compile_stage(function))


def inlined_kernel(function: F) -> F:
    """Compile a kernel that is inlined into each kernel that calls it, before compiling.

    For a kernel that only calls others: each level of calls costs seconds, because all code below it is linked and optimised again.
    """
    return function if numba.config.DISABLE_JIT else cast("F", _COMPILER.compile_inlined(function))


def by_reference(cls: TupleT) -> TupleT:
    """Pass a class of named tuples to kernels by address: for large ones made by Python and read by kernels. Kernels can neither make nor unpack them."""
    _COMPILER.pass_by_reference(cls)
    return cls


def placed(cls: TupleT) -> TupleT:
    """Likewise, for a hundred fields: one function unpacks a tuple for all kernels that Python calls, and only once.

    The class returned has instances with room for what is unpacked, which is neither compared nor pickled.
    """
    named = {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__doc__")}
    roomy = type(cls)(cls.__name__, (cls,), named | {"__getstate__": lambda _self: None})
    _COMPILER.pass_by_reference(roomy, is_placed=True)
    return roomy


def with_kernels(**kernels: Callable[..., Any]) -> Callable[[TupleT], TupleT]:
    """Give a class of named tuples kernels, which other kernels call as ``value.name(…)``: the one of the class that they are compiled for.

    The class is passed by reference. Its name gets a hash of its sources: kernels that are stored for it contain its kernels or call them, and are found by the
    names of their types. Of another distribution's class these are the sources of its package, and of those of the kernels.

    Raises:
        TypeError: a field has the name of a kernel.
    """

    def decorate(cls: TupleT) -> TupleT:
        shared = sorted({*kernels} & {*getattr(cls, "_fields", ())})
        if shared:
            raise TypeError(f"{cls.__name__} must not have a field of a kernel's name, got {', '.join(shared)}")
        for name, function in kernels.items():
            setattr(cls, name, staticmethod(function))
        cls.__name__ = f"{cls.__name__}_{sources_hash(cls.__module__, *(function.__module__ for function in kernels.values()))}"
        if not numba.config.DISABLE_JIT:
            from hilsim.compilation.class_kernels import permit_kernels  # noqa: PLC0415 - Numba's extensions are of no use without compilation

            permit_kernels(*kernels)
        return by_reference(cls)

    return decorate


def compile_for(function: Callable[..., Any], *arguments: Any) -> None:
    """Compile a kernel for arguments of these types, or load it, without calling it."""
    if not numba.config.DISABLE_JIT:
        _COMPILER.compile_types(function, tuple(map(numba.typeof, arguments)))


@inlined_kernel
def signed(value: Any) -> Any:
    """Convert a packet's unsigned field for arithmetic: Numba would convert a mix of unsigned and signed 64-bit integers to a float."""
    return np.int64(value)
