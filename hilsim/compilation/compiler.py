"""What ``hilsim.compilation.jit`` asks of its two ways to compile: the modules ``dispatcher`` and ``plain`` have these functions."""

from collections.abc import Callable
from typing import Any, Protocol

OPTIONS = {"nopython": True, "nogil": True, "error_model": "numpy"}
"""Numba's options for each kernel."""


class Compiler(Protocol):
    """A module that makes kernels."""

    def compile_kernel(self, function: Callable[..., Any], /) -> Any:
        """A dispatcher of a function."""

    def compile_stage(self, function: Callable[..., Any], /) -> Any:
        """A dispatcher of a function that takes long to compile and microseconds to run."""

    def compile_inlined(self, function: Callable[..., Any], /) -> Any:
        """A dispatcher that becomes part of each caller before compiling."""

    def compile_types(self, function: Callable[..., Any], arguments: tuple[Any, ...], /) -> None:
        """Compile a kernel for Numba types, or load it."""

    def pass_by_reference(self, cls: type, /) -> None:
        """Have kernels take named tuples of a class by their address, where that is possible."""
