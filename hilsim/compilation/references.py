"""Passing of large tuples to kernels by address, with their fields read in place.

Numba passes a tuple by value: some hundred numbers at each call, each with code to compile.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models, register_default
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.core.typing.typeof import _typeof_tuple
from numba.extending import NativeValue, infer_getattr, lower_getattr_generic, typeof_impl, unbox

from hilsim.compilation.class_kernels import kernel_type
from hilsim.compilation.layout import write_tuple

_REFERRED: set[type] = set()
_PLACED: set[type] = set()


class TupleReference(types.Type):
    """Address of a named tuple, valid while the kernel runs that Python called with it."""

    def __init__(self, tuple_type: Any) -> None:
        self.tuple_type = tuple_type
        super().__init__(f"reference({tuple_type})")

    def index(self, field: str) -> int:
        """Index of a field; -1 if there is none of that name."""
        fields = self.tuple_type.fields
        return fields.index(field) if field in fields else -1


def pass_by_reference(cls: type, *, is_placed: bool = False) -> None:
    """Pass named tuples of a class, and nested ones of such classes, to kernels by address. Kernels can neither make nor unpack them.

    Args:
        cls: The class.
        is_placed: Whether they are written to memory once, and not unpacked by each kernel's wrapper.
    """

    def reference(value: Any, context: Any) -> Any:
        found = _typeof_tuple(value, context)
        if found is None:
            return None
        within = [each.tuple_type if isinstance(each, TupleReference) else each for each in found.types]  # they are stored inside it
        return TupleReference(types.BaseTuple.from_types(within, cls))

    _REFERRED.add(cls)
    if is_placed:
        _PLACED.add(cls)
    typeof_impl.register(cls, reference)


def _is_reference(field_type: Any) -> bool:
    return getattr(field_type, "instance_class", None) in _REFERRED


@register_default(TupleReference)
class _ReferenceModel(models.PrimitiveModel):
    def __init__(self, manager: Any, reference: TupleReference) -> None:
        super().__init__(manager, reference, ir.PointerType(manager.lookup(reference.tuple_type).get_value_type()))


@infer_getattr
class _Fields(AttributeTemplate):
    key = TupleReference

    def generic_resolve(self, reference: TupleReference, field: str) -> Any:
        """Type of a field, or of a kernel of the class; None if there is none of that name."""
        index = reference.index(field)
        found = reference.tuple_type.types[index] if index >= 0 else kernel_type(reference.tuple_type.instance_class, field)
        return TupleReference(found) if _is_reference(found) else found


@lower_getattr_generic(TupleReference)
def _field(context: Any, builder: Any, reference: TupleReference, address: Any, field: str) -> Any:
    index = reference.index(field)
    if index < 0:
        return context.get_dummy_value()
    field_type, pointer = reference.tuple_type.types[index], cgutils.gep_inbounds(builder, address, 0, index)
    if _is_reference(field_type):
        return pointer
    return impl_ret_borrowed(context, builder, field_type, builder.load(pointer))


_PLACED_AS = "_placed_as"


class Placed:
    """A tuple in memory, so that a kernel's wrapper takes its address; it stays as long as the tuple.

    Attributes:
        address: Its address.
    """

    def __init__(self, value: Any) -> None:
        self._words, kind = write_tuple(value)
        self._numba_type_ = TupleReference(kind)
        self.address = self._words.ctypes.data
        vars(value)[_PLACED_AS] = self


def is_placed(value: Any) -> bool:
    """Whether kernels take a value by ``place``."""
    return type(value) in _PLACED


def place(value: Any) -> Placed:
    """A tuple's place, which it gets once."""
    found: Placed | None = vars(value).get(_PLACED_AS)
    return found or Placed(value)


@unbox(TupleReference)
def _unbox(reference: TupleReference, value: Any, context: Any) -> Any:
    if reference.tuple_type.instance_class in _PLACED:
        attribute = context.pyapi.object_getattr_string(value, "address")
        address = context.unbox(types.uintp, attribute)
        context.pyapi.decref(attribute)
        return NativeValue(context.builder.inttoptr(address.value, context.context.get_value_type(reference)), is_error=address.is_error)
    native = context.unbox(reference.tuple_type, value)

    def cleanup() -> None:
        if native.cleanup is not None:
            native.cleanup()
        context.context.nrt.decref(context.builder, reference.tuple_type, native.value)  # Numba does so for the type it sees, and sees an address

    return NativeValue(cgutils.alloca_once_value(context.builder, native.value), is_error=native.is_error, cleanup=cleanup)
