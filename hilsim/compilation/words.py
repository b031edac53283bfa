"""Little-endian words at any byte of an array, read and written at once by kernels."""

import sys
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

if sys.byteorder != "little":
    raise ImportError(f"the byte order must be little, got {sys.byteorder}")


def _pointer(context: Any, builder: Any, kinds: Any, arguments: Any, bits: int) -> Any:
    array = context.make_array(kinds[0])(context, builder, arguments[0])
    at = context.cast(builder, arguments[1], kinds[1], types.intp)
    byte = cgutils.get_item_pointer(context, builder, kinds[0], array, [at], wraparound=False)
    return builder.bitcast(byte, ir.IntType(bits).as_pointer())


def _is_bytes(array: Any) -> bool:
    return isinstance(array, types.Array) and array.ndim == 1 and array.layout == "C" and array.dtype == types.uint8


def _load_word(_typing: Any, array: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(context, builder, signature.args, arguments, 64), align=1)

    return (types.uint64(array, at), generate) if _is_bytes(array) else None


def _store_half(_typing: Any, array: Any, at: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        half = builder.trunc(arguments[2], ir.IntType(32))
        builder.store(half, _pointer(context, builder, signature.args, arguments, 32), align=1)
        return context.get_dummy_value()

    return (types.void(array, at, value), generate) if _is_bytes(array) and value == types.int64 else None


def _plain_store(array: Any, at: int, value: int) -> None:
    array[at : at + 4] = np.array([value]).astype("<u4").view(np.uint8)


_compiled = not numba.config.DISABLE_JIT

load_word: Callable[[Any, int], Any] = intrinsic(_load_word) if _compiled else lambda array, at: array[at : at + 8].view("<u8")[0]
"""``load_word(uint8[n], at)``: uint64 of eight bytes."""

store_half: Callable[[Any, int, int], None] = intrinsic(_store_half) if _compiled else _plain_store
"""``store_half(uint8[n], at, value)``: store the low 32 bits of an int64 to four bytes."""
