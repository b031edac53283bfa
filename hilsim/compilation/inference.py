"""Less work for Numba's own Python while hilsim compiles, which is half of the time of a first start. The machine code is the same.

Numba tries all templates of an operator again for each use of it; it lists the variables of each instruction some ten times, through every attribute
of it; at each level of calls it times each lock of LLVM once more; and garbage collection walks through objects that stay. Together that is a fifth.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from numba.core import event, ir
from numba.core.types.functions import BaseFunction, Function

_NO_VARIABLES = frozenset({str, int, float, bool, type(None), ir.Loc})
_known: dict[tuple[int, int, tuple[Any, ...]], tuple[Any, Any]] = {}
"""Function types with their signatures by their identity, the context's, and types of arguments; each stays, so that its identity is not used again."""
_call_type = BaseFunction.get_call_type


def _known_call_type(function: Any, context: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Signature of a function of Numba's for types of arguments, found once."""
    if keywords:
        return _call_type(function, context, arguments, keywords)
    key = (id(function), id(context), arguments)
    if key not in _known:
        _known[key] = (function, _call_type(function, context, arguments, keywords))
    return _known[key][1]


def _variables(instruction: Any, value: Any) -> list[Any]:
    """Variables in an attribute of an instruction, as ``ir.Inst._rec_list_vars``, which tests each value for each kind."""
    kind = type(value)
    if kind is ir.Var:
        return [value]
    if kind in (dict, list, tuple):
        found: list[Any] = []
        for each in value.values() if kind is dict else value:
            kind = type(each)
            if kind is ir.Var:
                found.append(each)
            elif kind not in _NO_VARIABLES:
                found.extend(_variables(instruction, each))
        return found
    return value.list_vars() if isinstance(value, ir.Inst) else []


_CHANGES = (
    (Function, "get_call_type", _known_call_type),
    (ir.Inst, "_rec_list_vars", _variables),
    (event, "install_timer", lambda *_: nullcontext()),
)


@contextmanager
def less_repetition() -> Iterator[None]:
    """Compile with less work in Python within the block. The caller must hold the compiler's lock; blocks may be nested."""
    former = [(owner, name, vars(owner).get(name)) for owner, name, _ in _CHANGES]
    collects = gc.isenabled()
    gc.disable()
    try:
        for owner, name, change in _CHANGES:
            setattr(owner, name, change)
        yield
    finally:
        for owner, name, before in former:
            if before is None:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        if collects:
            gc.enable()
