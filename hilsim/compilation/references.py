"""Passing of large tuples to kernels by address, with their fields read in place.

Numba passes a tuple by value: some hundred numbers at each call, each with code to compile.
"""

import hashlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models, register_default
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.core.typing.typeof import _typeof_tuple
from numba.extending import NativeValue, infer_getattr, intrinsic, lower_getattr_generic, typeof_impl, unbox

from hilsim.compilation.class_kernels import kernel_type

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


class Given(types.Type):
    """A tuple of a placed class as Python has it: only ``_put`` takes it."""

    def __init__(self, reference: TupleReference) -> None:
        self.reference = reference
        super().__init__(f"given({reference})")


def pass_by_reference(cls: type, *, is_placed: bool = False) -> None:
    """Pass named tuples of a class, and nested ones of such classes, to kernels by address. Kernels can neither make nor unpack them.

    Args:
        cls: The class.
        is_placed: Whether one function unpacks them for all kernels that Python calls, and not each kernel's wrapper.
    """

    def reference(value: Any, context: Any) -> Any:
        found = _typeof_tuple(value, context)
        if found is None:
            return None
        within = [
            reference_of(each).tuple_type if isinstance(each, TupleReference | Given) else each for each in found.types
        ]  # they are stored inside it
        referring = TupleReference(types.BaseTuple.from_types(within, cls))
        return Given(referring) if is_placed else referring

    _REFERRED.add(cls)
    if is_placed:
        _PLACED.add(cls)
    typeof_impl.register(cls, reference)


def reference_of(kind: Any) -> Any:
    """Type by which kernels take what Python has as another."""
    return kind.reference if isinstance(kind, Given) else kind


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


# -- placed by one function for all kernels ------------------------------------------------------------------------------------------------

_HEAD = 2
"""Words before a placed tuple: hash of its type, and its size in bytes."""
_WORD_SIZE = 8
_WORD = ir.IntType(64)
_PLACED_AS = "_placed_as"


class Placed:
    """A tuple that is unpacked into memory, so that a kernel's wrapper takes its address; it stays as long as the tuple.

    Args:
        value: The tuple.
        words: Its memory.
        reference: Its type.
        drop: Dispatcher of ``drop``.
    """

    def __init__(self, value: Any, words: npt.NDArray[np.int64], reference: TupleReference, drop: Any) -> None:
        self.address = int(words.ctypes.data) + _HEAD * _WORD_SIZE
        self._words, self._numba_type_, self._drop = words, reference, drop
        vars(value)[_PLACED_AS] = self

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:  # bound: this module's names are gone at the end
        """Give up the references to the tuple's arrays."""
        if not is_finalizing():
            self._drop(self)


def placed_before(value: Any) -> Placed | None:
    """A tuple's place, if it has one."""
    found: Placed | None = vars(value).get(_PLACED_AS)
    return found


@register_default(Given)
class _GivenModel(models.PrimitiveModel):
    def __init__(self, manager: Any, given: Given) -> None:
        super().__init__(manager, given, manager.lookup(given.reference).get_value_type())


@unbox(Given)
def _unbox_given(given: Given, value: Any, context: Any) -> Any:
    return _unpack(given.reference, value, context)


@unbox(TupleReference)
def _unbox(reference: TupleReference, value: Any, context: Any) -> Any:
    if reference.tuple_type.instance_class not in _PLACED:
        return _unpack(reference, value, context)
    attribute = context.pyapi.object_getattr_string(value, "address")
    address = context.unbox(types.uintp, attribute)
    context.pyapi.decref(attribute)
    return NativeValue(context.builder.inttoptr(address.value, context.context.get_value_type(reference)), is_error=address.is_error)


def _unpack(reference: TupleReference, value: Any, context: Any) -> Any:
    native = context.unbox(reference.tuple_type, value)

    def cleanup() -> None:
        if native.cleanup is not None:
            native.cleanup()
        context.context.nrt.decref(context.builder, reference.tuple_type, native.value)  # Numba does so for the type it sees, and sees an address

    return NativeValue(cgutils.alloca_once_value(context.builder, native.value), is_error=native.is_error, cleanup=cleanup)


def _hash_of(reference: TupleReference) -> int:
    """Number by which machine code names a type, the same in every process."""
    return int.from_bytes(hashlib.sha256(str(reference).encode()).digest()[:_WORD_SIZE], "little", signed=True)


@intrinsic
def _put(_typing: Any, given: Any, words: Any) -> Any:
    tuple_type = given.reference.tuple_type

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        size = context.get_abi_sizeof(context.get_value_type(tuple_type))
        array = context.make_array(signature.args[1])(context, builder, arguments[1])
        builder.store(_WORD(_hash_of(given.reference)), array.data)
        builder.store(_WORD(size), cgutils.gep_inbounds(builder, array.data, 1))
        with builder.if_then(builder.icmp_signed(">=", array.nitems, array.nitems.type(words_for(size)))):
            found = builder.load(arguments[0])
            context.nrt.incref(builder, tuple_type, found)
            builder.store(found, builder.bitcast(cgutils.gep_inbounds(builder, array.data, _HEAD), found.type.as_pointer()))
        return context.get_dummy_value()

    return types.void(given, words), generate


@intrinsic
def _drop(_typing: Any, placed: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        context.nrt.decref(builder, signature.args[0].tuple_type, builder.load(arguments[0]))
        return context.get_dummy_value()

    return types.void(placed), generate


def words_for(size: int) -> int:
    """Number of words for a tuple of some bytes, with its head."""
    return _HEAD - (-size // _WORD_SIZE)


def is_placed(value: Any) -> bool:
    """Whether kernels take a value by ``place``."""
    return type(value) in _PLACED


def put(given: Any, words: Any) -> None:
    """Write the hash of a tuple's type and its size, and the tuple if there is room, with references to its arrays; to be compiled."""
    _put(given, words)


def drop(placed: Any) -> None:
    """Give up the references to the arrays of a placed tuple; to be compiled."""
    _drop(placed)
