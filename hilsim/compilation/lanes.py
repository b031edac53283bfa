"""Vectors of sixteen numbers, one for each of sixteen rays, for kernels: one instruction of the CPU computes all of them.

LLVM maps them to the CPU's registers: one of AVX-512, two of AVX2, four of SSE or NEON. Results equal scalar float32 arithmetic, number
by number: operations are not contracted or reordered. Under ``NUMBA_DISABLE_JIT=1`` they are NumPy arrays of 16 elements with the same operators.

A float32 scalar combined with lanes is repeated sixteen times. Comparisons give a ``Mask``; masks support ``&`` and ``|``.
"""

import operator
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from hilsim.compilation import plain_lanes

WIDTH = plain_lanes.WIDTH

Lanes = Any
"""Vector of sixteen ``float32``."""
Doubles = Any
"""Vector of sixteen ``float64``."""
Numbers = Any
"""Vector of sixteen ``int32``."""
Words = Any
"""Vector of sixteen ``uint64``."""
Mask = Any
"""Vector of sixteen ``bool``."""

_INT, _LONG, _SHORT = ir.IntType(32), ir.IntType(64), ir.IntType(WIDTH)


class _LanesType(types.Type):
    def __init__(self, name: str, scalar: Any, element: ir.Type) -> None:
        self.scalar, self.vector = scalar, ir.VectorType(element, WIDTH)
        super().__init__(name=name)


_LANES = _LanesType("lanes", types.float32, ir.FloatType())
_DOUBLES = _LanesType("doubles", types.float64, ir.DoubleType())
_NUMBERS = _LanesType("numbers", types.int32, _INT)
_WORDS = _LanesType("words", types.uint64, _LONG)
_MASK = _LanesType("mask", types.boolean, ir.IntType(1))
_BY_SCALAR = {kind.scalar: kind for kind in (_LANES, _DOUBLES, _NUMBERS, _WORDS)}


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: _LanesType) -> None:
        super().__init__(manager, kind, kind.vector)


def _spread(builder: Any, value: Any) -> Any:
    """Repeat a scalar in every lane."""
    if isinstance(value.type, ir.VectorType):
        return value
    vector = ir.VectorType(value.type, WIDTH)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), value, _INT(0))
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(_INT, WIDTH), [0] * WIDTH))


def _common(one: Any, other: Any) -> _LanesType | None:
    """Common type of two operands: equal lanes, or lanes and their scalar; otherwise None."""
    for kind in (_LANES, _DOUBLES, _NUMBERS, _WORDS):
        if kind in (one, other) and {one, other} <= {kind, kind.scalar}:
            return kind
    return None


def _define(function: Any, kinds: tuple[_LanesType, ...], result: _LanesType | None, emit: Callable[[Any, Any, Any], Any]) -> None:
    """Define an operator between lanes, or lanes and a scalar; ``result`` None: the operands' type."""

    @type_callable(function)
    def _type(_context: Any) -> Callable[[Any, Any], Any]:
        def result_of(one: Any, other: Any) -> Any:
            kind = _common(one, other)
            return (result or kind) if kind in kinds else None

        return result_of

    def lower(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return emit(builder, _spread(builder, arguments[0]), _spread(builder, arguments[1]))

    for kind in kinds:
        for one, other in ((kind, kind), (kind, kind.scalar), (kind.scalar, kind)):
            lower_builtin(function, one, other)(lower)


def _define_on_masks(function: Any, emit: Callable[[Any, Any, Any], Any]) -> None:
    @type_callable(function)
    def _type(_context: Any) -> Callable[[Any, Any], Any]:
        return lambda one, other: _MASK if one == _MASK and other == _MASK else None

    def lower(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return emit(builder, *arguments)

    lower_builtin(function, _MASK, _MASK)(lower)


def _comparison(sign: str) -> Callable[[Any, Any, Any], Any]:
    def compare(builder: Any, one: Any, other: Any) -> Any:
        return builder.icmp_signed(sign, one, other) if one.type.element == _INT else builder.fcmp_ordered(sign, one, other)

    return compare


_REAL, _WHOLE, _ALL = (_LANES, _DOUBLES), (_NUMBERS, _WORDS), (_LANES, _DOUBLES, _NUMBERS)
_define(operator.add, _REAL, None, lambda builder, one, other: builder.fadd(one, other))
_define(operator.add, _WHOLE, None, lambda builder, one, other: builder.add(one, other))
_define(operator.sub, _WHOLE, None, lambda builder, one, other: builder.sub(one, other))
_define(operator.mul, _WHOLE, None, lambda builder, one, other: builder.mul(one, other))
_define(operator.and_, (_WORDS,), None, lambda builder, one, other: builder.and_(one, other))
_define(operator.or_, (_WORDS,), None, lambda builder, one, other: builder.or_(one, other))
_define(operator.xor, (_WORDS,), None, lambda builder, one, other: builder.xor(one, other))
_define(operator.lshift, (_WORDS,), None, lambda builder, one, other: builder.shl(one, other))
_define(operator.rshift, (_WORDS,), None, lambda builder, one, other: builder.lshr(one, other))
_define(operator.sub, _REAL, None, lambda builder, one, other: builder.fsub(one, other))
_define(operator.mul, _REAL, None, lambda builder, one, other: builder.fmul(one, other))
_define(operator.truediv, _REAL, None, lambda builder, one, other: builder.fdiv(one, other))
_define(operator.lt, _ALL, _MASK, _comparison("<"))
_define(operator.le, _ALL, _MASK, _comparison("<="))
_define(operator.gt, _ALL, _MASK, _comparison(">"))
_define(operator.ge, _ALL, _MASK, _comparison(">="))
_define(operator.eq, _ALL, _MASK, _comparison("=="))
_define_on_masks(operator.and_, lambda builder, one, other: builder.and_(one, other))
_define_on_masks(operator.or_, lambda builder, one, other: builder.or_(one, other))


def _row_pointer(context: Any, builder: Any, kinds: Any, arguments: Any, vector: ir.Type) -> Any:
    array = context.make_array(kinds[0])(context, builder, arguments[0])
    row = context.cast(builder, arguments[1], kinds[1], types.intp)
    pointer = cgutils.get_item_pointer(context, builder, kinds[0], array, [row, row.type(0)], wraparound=False)
    return builder.bitcast(pointer, vector.as_pointer())


def _vector_of(array: Any, dimensions: int = 2) -> Any:
    if isinstance(array, types.Array) and array.ndim == dimensions and (dimensions == 1 or array.layout == "C"):
        return _BY_SCALAR.get(array.dtype)
    return None


def _element_size(kind: _LanesType) -> int:
    return int(kind.scalar.bitwidth) // 8


def _load(_typing: Any, array: Any, row: Any) -> Any:
    kind = _vector_of(array)
    if kind is None or not isinstance(row, types.Integer):
        return None

    def generate(context: Any, builder: Any, signature_: Any, arguments: Any) -> Any:
        return builder.load(_row_pointer(context, builder, signature_.args, arguments, kind.vector), align=_element_size(kind))

    return kind(array, row), generate


def _store(_typing: Any, array: Any, row: Any, values: Any) -> Any:
    kind = _vector_of(array)
    if kind is None or values != kind or not isinstance(row, types.Integer):
        return None

    def generate(context: Any, builder: Any, signature_: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _row_pointer(context, builder, signature_.args, arguments, kind.vector), align=_element_size(kind))
        return context.get_dummy_value()

    return types.void(array, row, values), generate


def _gather(_typing: Any, array: Any, rows: Any, column: Any) -> Any:
    kind = _vector_of(array)
    if kind is None or rows != _NUMBERS or not isinstance(column, types.Integer):
        return None

    def generate(context: Any, builder: Any, signature_: Any, arguments: Any) -> Any:
        found = context.make_array(array)(context, builder, arguments[0])
        column_ = context.cast(builder, arguments[2], signature_.args[2], types.intp)
        gathered = ir.Constant(kind.vector, ir.Undefined)
        for lane in range(WIDTH):  # a CPU's own gather instruction is no faster, if it has one
            row = builder.sext(builder.extract_element(arguments[1], _INT(lane)), column_.type)
            pointer = cgutils.get_item_pointer(context, builder, array, found, [row, column_], wraparound=False)
            gathered = builder.insert_element(gathered, builder.load(pointer), _INT(lane))
        return gathered

    return kind(array, rows, column), generate


def _scatter(_typing: Any, array: Any, rows: Any, column: Any, values: Any) -> Any:
    kind = _vector_of(array)
    if kind is None or values != kind or rows != _NUMBERS or not isinstance(column, types.Integer):
        return None

    def generate(context: Any, builder: Any, signature_: Any, arguments: Any) -> Any:
        found = context.make_array(array)(context, builder, arguments[0])
        column_ = context.cast(builder, arguments[2], signature_.args[2], types.intp)
        for lane in range(WIDTH):
            row = builder.sext(builder.extract_element(arguments[1], _INT(lane)), column_.type)
            pointer = cgutils.get_item_pointer(context, builder, array, found, [row, column_], wraparound=False)
            builder.store(builder.extract_element(arguments[3], _INT(lane)), pointer)
        return context.get_dummy_value()

    return types.void(array, rows, column, values), generate


def _select(_typing: Any, condition: Any, one: Any, other: Any) -> Any:
    kind = _BY_SCALAR.get(one) if one == other and one in _BY_SCALAR else _common(one, other)
    if condition != _MASK or kind is None:
        return None

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.select(arguments[0], _spread(builder, arguments[1]), _spread(builder, arguments[2]))

    return kind(condition, one, other), generate


def _extreme(sign: str) -> Callable[..., Any]:
    def extreme(_typing: Any, one: Any, other: Any) -> Any:
        kind = _common(one, other)
        if kind is None:
            return None

        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            a, b = _spread(builder, arguments[0]), _spread(builder, arguments[1])
            return builder.select(_comparison(sign)(builder, a, b), a, b)

        return kind(one, other), generate

    return extreme


def _spread_out(_typing: Any, value: Any) -> Any:
    kind = _BY_SCALAR.get(value)
    if kind is None:
        return None

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return _spread(builder, arguments[0])

    return kind(value), generate


def _lane_numbers(_typing: Any) -> Any:
    def generate(_context: Any, _builder: Any, _signature: Any, _arguments: Any) -> Any:
        return ir.Constant(_WORDS.vector, list(range(WIDTH)))

    return _WORDS(), generate


def _conversion(taken: _LanesType, given: _LanesType, emit: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    def convert(_typing: Any, values: Any) -> Any:
        if values != taken:
            return None

        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return emit(builder, arguments[0], given.vector)

        return given(values), generate

    return convert


def _by_llvm(name: str) -> Callable[[Any, Any, Any], Any]:
    def call(builder: Any, values: Any, vector: Any) -> Any:
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector]), f"llvm.{name}.v{WIDTH}f64")
        return builder.call(function, [values])

    return call


def _bits(_typing: Any, mask: Any) -> Any:
    if mask != _MASK:
        return None

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.zext(builder.bitcast(arguments[0], _SHORT), _LONG)

    return types.int64(mask), generate


def _mask(_typing: Any, bits: Any) -> Any:
    if not isinstance(bits, types.Integer):
        return None

    def generate(context: Any, builder: Any, signature_: Any, arguments: Any) -> Any:
        bits_ = context.cast(builder, arguments[0], signature_.args[0], types.int64)
        return builder.bitcast(builder.trunc(bits_, _SHORT), _MASK.vector)

    return _MASK(bits), generate


def _of_integer(emit: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def of_integer(_typing: Any, bits: Any) -> Any:
        if not isinstance(bits, types.Integer):
            return None

        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return emit(builder, arguments[0])

        return bits(bits), generate

    return of_integer


_compiled = not numba.config.DISABLE_JIT
if not _compiled:
    plain_lanes.permit_infinities()

load_lanes: Callable[[Any, int], Any] = intrinsic(_load) if _compiled else plain_lanes.load
"""``load_lanes(array [n, 16], row)``: load a row of float32, float64 or int32."""

store_lanes: Callable[[Any, int, Any], None] = intrinsic(_store) if _compiled else plain_lanes.store
"""``store_lanes(array [n, 16], row, lanes)``: store a row."""

gather: Callable[[Any, Any, int], Any] = intrinsic(_gather) if _compiled else plain_lanes.gather
"""``gather(array [n, m], rows, column)``: load an element of each lane's row."""

spread: Callable[[Any], Any] = intrinsic(_spread_out) if _compiled else plain_lanes.spread
"""Repeat a scalar in every lane."""

select: Callable[[Any, Any, Any], Any] = intrinsic(_select) if _compiled else plain_lanes.select
"""``select(mask, one, other)``: ``one`` where the mask is true, else ``other``; either may be a scalar."""

lesser_lanes: Callable[[Any, Any], Any] = intrinsic(_extreme("<")) if _compiled else plain_lanes.lesser
"""Lesser of two in each lane, as ``world.render.intersect.lesser``."""

greater_lanes: Callable[[Any, Any], Any] = intrinsic(_extreme(">")) if _compiled else plain_lanes.greater
"""Greater of two in each lane, as ``world.render.intersect.greater``."""

singles: Callable[[Any], Any] = (
    intrinsic(_conversion(_DOUBLES, _LANES, lambda builder, values, vector: builder.fptrunc(values, vector)))
    if _compiled
    else lambda values: values.astype(np.float32)
)
"""Convert float64 to float32."""

doubles: Callable[[Any], Any] = (
    intrinsic(_conversion(_LANES, _DOUBLES, lambda builder, values, vector: builder.fpext(values, vector)))
    if _compiled
    else lambda values: values.astype(np.float64)
)
"""Convert float32 to float64."""

numbers: Callable[[Any], Any] = (
    intrinsic(_conversion(_DOUBLES, _NUMBERS, lambda builder, values, vector: builder.fptosi(values, vector)))
    if _compiled
    else lambda values: values.astype(np.int32)
)
"""Convert float64, which must be within the limits of int32, to int32."""

words_of: Callable[[Any], Any] = (
    intrinsic(_conversion(_DOUBLES, _WORDS, lambda builder, values, vector: builder.fptosi(values, vector)))
    if _compiled
    else lambda values: values.astype(np.int64).astype(np.uint64)
)
"""Convert float64, which must be within the limits of int64, to uint64, negative numbers to their two's complement."""

doubles_of: Callable[[Any], Any] = (
    intrinsic(_conversion(_NUMBERS, _DOUBLES, lambda builder, values, vector: builder.sitofp(values, vector)))
    if _compiled
    else lambda values: values.astype(np.float64)
)
"""Convert int32 to float64."""

lane_numbers: Callable[[], Any] = intrinsic(_lane_numbers) if _compiled else plain_lanes.lane_numbers
"""Number of each lane, 0 to 15, as uint64."""

signed_doubles: Callable[[Any], Any] = (
    intrinsic(_conversion(_WORDS, _DOUBLES, lambda builder, values, vector: builder.sitofp(values, vector)))
    if _compiled
    else lambda values: values.astype(np.int64).astype(np.float64)
)
"""Convert uint64, interpreted as signed integers, to float64."""

bit_patterns: Callable[[Any], Any] = (
    intrinsic(_conversion(_DOUBLES, _WORDS, lambda builder, values, vector: builder.bitcast(values, vector)))
    if _compiled
    else lambda values: values.view(np.uint64)
)
"""Bits of float64, as uint64."""

from_bit_patterns: Callable[[Any], Any] = (
    intrinsic(_conversion(_WORDS, _DOUBLES, lambda builder, values, vector: builder.bitcast(values, vector)))
    if _compiled
    else lambda values: values.view(np.float64)
)
"""float64 with the bits of uint64."""

scatter: Callable[[Any, Any, int, Any], None] = intrinsic(_scatter) if _compiled else plain_lanes.scatter
"""``scatter(array [n, m], rows, column, lanes)``: store an element to each lane's row, in order: for lanes with the same row the last one remains."""

floor_lanes: Callable[[Any], Any] = intrinsic(_conversion(_DOUBLES, _DOUBLES, _by_llvm("floor"))) if _compiled else np.floor
"""Floor of float64."""

magnitudes: Callable[[Any], Any] = intrinsic(_conversion(_DOUBLES, _DOUBLES, _by_llvm("fabs"))) if _compiled else np.abs
"""Absolute values of float64."""

roots: Callable[[Any], Any] = intrinsic(_conversion(_DOUBLES, _DOUBLES, _by_llvm("sqrt"))) if _compiled else np.sqrt
"""Square roots of float64."""

bits_of: Callable[[Any], int] = intrinsic(_bits) if _compiled else plain_lanes.bits
"""Integer of a mask: bit k is lane k."""

mask_of: Callable[[Any], Any] = intrinsic(_mask) if _compiled else plain_lanes.mask
"""Mask of an integer."""

count_bits: Callable[[Any], int] = intrinsic(_of_integer(lambda builder, bits: builder.ctpop(bits))) if _compiled else plain_lanes.count
"""Number of bits set in an integer."""

first_bit: Callable[[Any], int] = (
    intrinsic(_of_integer(lambda builder, bits: builder.cttz(bits, ir.IntType(1)(1)))) if _compiled else plain_lanes.first
)
"""Lowest bit set in an integer; there must be one."""
