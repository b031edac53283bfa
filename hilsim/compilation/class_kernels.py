"""Kernels that a class of named tuples has as static methods: ``own.encode(own, …)`` in a kernel calls that of the class, chosen when the kernel is compiled.

Both compilers need it: ``references`` for tuples that are passed by address, this module for tuples that are passed by value.
"""

from typing import Any

from numba import types
from numba.core.dispatcher import Dispatcher
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_getattr


def kernel_type(cls: Any, name: str) -> Any:
    """Numba's type of a kernel that a class has as a static method; None if it has none of that name."""
    found = getattr(cls, name, None)
    return types.Dispatcher(found) if isinstance(found, Dispatcher) else None


@infer_getattr
class _Kernels(AttributeTemplate):
    key = types.NamedTuple

    def generic_resolve(self, tuple_type: Any, name: str) -> Any:
        """Type of a class's kernel; None for a field, which Numba finds itself."""
        return None if name in tuple_type.fields else kernel_type(tuple_type.instance_class, name)


_LOWERED: set[str] = set()


def permit_kernels(*names: str) -> None:
    """Let classes of named tuples have kernels of these names."""
    for name in set(names) - _LOWERED:
        _LOWERED.add(name)
        lower_getattr(types.NamedTuple, name)(_nothing)


def _nothing(context: Any, _builder: Any, _tuple_type: Any, _value: Any) -> Any:
    """Value of a kernel: it has none, because its type names it."""
    return context.get_dummy_value()
