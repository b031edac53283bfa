"""Tuples that stay at one address: Python pins one, publishes the address in an ``int64`` array, and a kernel that runs already reads the tuple from there.

A kernel takes its tuples when it is called. One that runs for hours without the GIL gets new ones only this way.
A pinned tuple holds references to its arrays until it is released; the kernel that read the address must have stopped using it by then.
Only documented names of Numba are used, so plain Numba (``hilsim.compilation.plain``) compiles it too.
"""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

from hilsim.compilation.layout import write_tuple

_INT_BITS = 64


def _tuple_type(kind: Any) -> Any:
    """Type of the tuple that a kernel gets by its address (``compilation.references``) or by value."""
    return getattr(kind, "tuple_type", kind)


def _pointer(context: Any, builder: Any, kind: Any, address: Any) -> Any:
    return builder.inttoptr(address, context.get_value_type(_tuple_type(kind)).as_pointer())


def _tuple_at(_typing: Any, address: Any, like: Any) -> Any:
    if not isinstance(address, types.Integer):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[1], arguments[0])
        if _tuple_type(signature.args[1]) is not signature.args[1]:
            return pointer
        found = builder.load(pointer)
        context.nrt.incref(builder, signature.return_type, found)
        return found

    return like(types.int64, like), generate


_compiled = not numba.config.DISABLE_JIT
_python_tuples: dict[int, Any] = {}


def _python_tuple_at(address: int, like: Any) -> Any:
    del like
    return _python_tuples[int(address)]


tuple_at: Any = intrinsic(_tuple_at) if _compiled else _python_tuple_at
"""``tuple_at(address, like)``: the pinned tuple at an address, of the type of ``like``."""


def is_alike(value: Any, like: Any) -> bool:
    """Whether kernels compiled for ``like`` take ``value``; False also where only Numba can find out. ``numba.typeof`` of a plan takes a millisecond."""
    if value is like:
        return True
    if type(value) is not type(like):
        return False
    if isinstance(value, tuple):
        return len(value) == len(like) and all(map(is_alike, value, like))
    if isinstance(value, np.ndarray):
        return bool(value.dtype == like.dtype) and value.ndim == like.ndim and _layout(value) == _layout(like)
    if isinstance(value, int):
        return value.bit_length() < _INT_BITS and int(like).bit_length() < _INT_BITS
    return value is None or isinstance(value, float | np.generic)


def _layout(array: npt.NDArray[Any]) -> tuple[bool, bool, bool, bool]:
    flags = array.flags
    return flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned


class Pin:
    """A tuple at an address that does not change until ``release``.

    Attributes:
        address: Address of the tuple.
    """

    def __init__(self, value: Any) -> None:
        """Pin a tuple of arrays and numbers, as kernels take it."""
        self._value, self._words = value, write_tuple(value)[0] if _compiled else None
        self.address = id(self) if self._words is None else self._words.ctypes.data
        if self._words is None:
            _python_tuples[self.address] = value

    def release(self) -> None:
        """Give up the address; no kernel may use it any more."""
        self._value = None
        _python_tuples.pop(self.address, None)
