"""Named tuples in memory, written by Python as kernels read them.

Numba unpacks a tuple by machine code that it compiles for each type of tuple: a third of a second for a plan. The layout is that of LLVM's structures:
each number at a multiple of its size, arrays as seven words and more. The arrays have no owner in there, so kernels count no references to them;
whoever has the memory must have the tuple too.
"""

import struct
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

_WORD_SIZE = 8
_WORDS_OF_ARRAY = 5
_FLAGS = 0x1 | 0x2 | 0x100 | 0x400
"""Flags of an array that are part of Numba's type (ndarraytypes.h): contiguous as in C or Fortran, aligned, writeable."""
_FORMATS: dict[Any, str] = {types.boolean: "?", types.none: "q"} | {
    getattr(types, f"{sign}int{bits}"): code
    for bits, code in ((8, "b"), (16, "h"), (32, "i"), (64, "q"))
    for sign, code in (("", code), ("u", code.upper()))
}
_FORMATS |= {types.float32: "f", types.float64: "d"}


class _Layout(NamedTuple):
    """Layout of a type of tuples: Numba's type, and how its numbers are packed."""

    kind: Any
    pack: struct.Struct


_layouts: dict[tuple[Any, ...], _Layout] = {}
"""By what determines Numba's type, which takes a millisecond to find for a plan."""


def write_tuple(value: Any) -> tuple[npt.NDArray[np.int64], Any]:
    """A tuple of arrays, numbers and such tuples as kernels have it in memory, and Numba's type of it.

    Raises:
        TypeError: a field is of another kind.
    """
    marks: list[Any] = []
    numbers: list[Any] = []
    _read(value, marks, numbers)
    key = tuple(marks)
    if (layout := _layouts.get(key)) is None:
        kind = numba.typeof(value)
        kind = getattr(kind, "tuple_type", kind)
        parts: list[str] = ["="]
        size = _place(kind, 0, parts)
        parts.append(f"{-size % _WORD_SIZE}x")
        layout = _layouts[key] = _Layout(kind, struct.Struct("".join(parts)))
    words = np.empty(layout.pack.size // _WORD_SIZE, np.int64)
    layout.pack.pack_into(words.data, 0, *numbers)
    return words, layout.kind


def _read(value: Any, marks: list[Any], numbers: list[Any]) -> None:
    """Append a value's numbers in their order in memory, and what determines its type."""
    if isinstance(value, np.ndarray):
        marks += (value.dtype, value.ndim, value.flags.num & _FLAGS)
        numbers += (0, 0, value.size, value.itemsize, value.__array_interface__["data"][0], *value.shape, *value.strides)
    elif isinstance(value, tuple):
        marks += (type(value), len(value))
        for each in value:
            _read(each, marks, numbers)
    else:
        marks.append(type(value) if not isinstance(value, int) or value < 1 << 63 else np.uint64)
        numbers.append(0 if value is None else value)


def _alignment(kind: Any) -> int:
    """Bytes of which a value's place is a multiple."""
    if isinstance(kind, types.BaseTuple):
        return max(map(_alignment, kind.types), default=1)
    return struct.calcsize("=" + _format(kind)[:1])


def _format(kind: Any) -> str:
    if isinstance(kind, types.Array):
        return "q" * int(_WORDS_OF_ARRAY + 2 * kind.ndim)
    found: str | None = _FORMATS.get(kind)
    if found is None:
        raise TypeError(f"a tuple for kernels must have arrays, numbers and tuples, got {kind}")
    return found


def _place(kind: Any, at: int, parts: list[str]) -> int:
    """Append the format of a value that follows byte ``at``; returns the byte after it."""
    begin = at + -at % _alignment(kind)
    parts.append(f"{begin - at}x")
    if not isinstance(kind, types.BaseTuple):
        parts.append(_format(kind))
        return begin + struct.calcsize("=" + parts[-1])
    end = begin
    for each in kind.types:
        end = _place(each, end, parts)
    padding = -(end - begin) % _alignment(kind)
    parts.append(f"{padding}x")
    return end + padding
