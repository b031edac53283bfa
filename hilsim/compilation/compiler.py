"""Interface of the two compilers that ``hilsim.compilation.jit`` uses: the modules ``dispatcher`` and ``plain``."""

from collections.abc import Callable
from typing import Any, Protocol

OPTIONS = {"nopython": True, "nogil": True, "error_model": "numpy"}
"""Numba's options for each kernel."""


class Compiler(Protocol):
    """A module that makes kernels."""

    def compile_kernel(self, function: Callable[..., Any], /) -> Any:
        """Dispatcher of a function."""

    def compile_borrowing(self, function: Callable[..., Any], /) -> Any:
        """Dispatcher of a function that makes no arrays and returns none."""

    def compile_stage(self, function: Callable[..., Any], /) -> Any:
        """Dispatcher of a function that takes long to compile and microseconds to run."""

    def compile_inlined(self, function: Callable[..., Any], /) -> Any:
        """Dispatcher of a function that is inlined into each caller before compiling."""

    def compile_types(self, function: Callable[..., Any], arguments: tuple[Any, ...], /) -> None:
        """Compile a kernel for Numba types, or load it."""

    def pass_by_reference(self, cls: type, /, *, is_placed: bool = False) -> None:
        """Pass named tuples of a class to kernels by address, where that is possible."""
