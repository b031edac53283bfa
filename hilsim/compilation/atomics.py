"""Acquiring loads and releasing stores on elements of ``int64`` arrays, for kernels that share memory between threads.

They are required: LLVM hoists a plain load out of a waiting loop, so a kernel spinning on ``flag[0]`` would never see the flag change.
On x86-64 both are plain moves. Under ``NUMBA_DISABLE_JIT=1`` they are plain indexing (ordered by the GIL), so that
coverage can see the kernels that use them.
"""

import platform
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from hilsim.compilation.jit import kernel

_LINE_WORDS = 8
"""Words of a cache line: arrays written by different threads must not share one."""
_WORD_SIZE = 8
_MACHINE = platform.machine()
_INT = ir.IntType(32)
_YIELD_HINT = 1  # operand of Arm's HINT instruction


def shared_words(columns: type[IntEnum], rows: int | None = None) -> npt.NDArray[np.int64]:
    """Allocate zeros for words shared by threads: ``int64[n]`` or ``int64[rows, n]`` with a column for each member, in whole cache lines.

    Kernels index them by the enum without bounds checks, so the size is always derived from the enum.
    """
    width = -(-(max(columns) + 1) // _LINE_WORDS) * _LINE_WORDS
    return np.zeros(width if rows is None else (rows, width), np.int64)


def _is_word_array(array: Any, index: Any) -> bool:
    return isinstance(array, types.Array) and array.dtype == types.int64 and isinstance(index, types.BaseTuple) and len(index) == array.ndim


def _element_pointer(context: Any, builder: Any, array_type: Any, array: Any, index_type: Any, index: Any) -> Any:
    parts = cgutils.unpack_tuple(builder, index, len(index_type))
    parts = [context.cast(builder, part, kind, types.intp) for part, kind in zip(parts, index_type.types, strict=True)]
    words = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, words, parts, wraparound=False, boundscheck=context.enable_boundscheck)


def _load_acquire(_typing: Any, array: Any, index: Any) -> Any:
    if not _is_word_array(array, index):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _element_pointer(context, builder, signature.args[0], arguments[0], signature.args[1], arguments[1])
        return builder.load_atomic(pointer, "acquire", _WORD_SIZE)

    return types.int64(array, index), generate


def _store_release(_typing: Any, array: Any, index: Any, value: Any) -> Any:
    if not _is_word_array(array, index) or not isinstance(value, types.Integer):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _element_pointer(context, builder, signature.args[0], arguments[0], signature.args[1], arguments[1])
        word = context.cast(builder, arguments[2], signature.args[2], types.int64)
        builder.store_atomic(word, pointer, "release", _WORD_SIZE)
        return context.get_dummy_value()

    return types.void(array, index, value), generate


def _fence(ordering: str) -> Callable[[Any], Any]:
    def fence(_typing: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
            builder.fence(ordering)
            return context.get_dummy_value()

        return types.void(), generate

    return fence


def _pause(_typing: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        if _MACHINE == "x86_64":
            builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), []), "llvm.x86.sse2.pause"), [])
        elif _MACHINE == "aarch64":
            hint = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [_INT]), "llvm.aarch64.hint")
            builder.call(hint, [_INT(_YIELD_HINT)])
        return context.get_dummy_value()

    return types.void(), generate


def _plain_load(array: Any, index: tuple[int, ...]) -> int:
    return int(array[index])


def _plain_store(array: Any, index: tuple[int, ...], value: int) -> None:
    array[index] = value


def _nothing() -> None:
    return None


_compiled = not numba.config.DISABLE_JIT

load_acquire: Callable[[Any, tuple[int, ...]], int] = intrinsic(_load_acquire) if _compiled else _plain_load
"""``load_acquire(array i64[…], index tuple) -> int``: all writes before the matching ``store_release`` are visible afterwards."""

store_release: Callable[[Any, tuple[int, ...], int], None] = intrinsic(_store_release) if _compiled else _plain_store
"""``store_release(array i64[…], index tuple, value)``: publishes all earlier writes."""

fence_acquire: Callable[[], None] = intrinsic(_fence("acquire")) if _compiled else _nothing
"""Fence: loads before it are not reordered with later accesses; for a reader that checks, after copying, whether a writer has interfered. On x86-64 it costs nothing."""

fence_release: Callable[[], None] = intrinsic(_fence("release")) if _compiled else _nothing
"""Fence: stores before it are visible before later stores; for a writer that starts to overwrite published data. On x86-64 it costs nothing."""

pause: Callable[[], None] = intrinsic(_pause) if _compiled else _nothing
"""Hint to the CPU that a loop is spinning (x86 ``pause``, arm64 ``yield``), which frees the core for its other hyper-thread."""


@kernel
def publish(words: npt.NDArray[np.int64], index: int, value: int) -> None:
    """``store_release`` into ``int64[n]`` for Python code, which has no atomics of its own."""
    store_release(words, (index,), value)
