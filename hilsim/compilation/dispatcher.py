"""Compilation and linking of kernels, such that a first start compiles each of them only once.

Numba includes the code of every called kernel in the caller, and optimises it there again; it makes two wrappers by which Python
could call a kernel, also for kernels called only by kernels; and it passes a tuple by value, some hundred numbers at each call. Together that was
half the time of compiling. Here

- a kernel has no wrapper until Python calls it: then a small kernel is compiled between Python and the kernel;
- a kernel's code is linked and optimised once for each kernel that is run directly, and not at each level of calls (``hilsim.compilation.linking``);
- a *stage* is called by its address (``hilsim.compilation.linking.CallTarget``), and not included in its callers; its annotation gives its return type, so
  that its callers can be compiled in parallel with it, by another process;
- a large tuple is passed by its address (``hilsim.compilation.references``): kernels read its fields in place.

It implements ``hilsim.compilation.compiler.Compiler``, and only ``hilsim.compilation.jit`` uses it.
"""

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, get_args, get_origin

import llvmlite.binding as llvm
from numba import types
from numba.core import sigutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.registry import CPUDispatcher
from numba.core.typing.templates import make_concrete_template, signature

from hilsim.compilation.cache import claimed, module_directory
from hilsim.compilation.compiler import OPTIONS
from hilsim.compilation.function_cache import KernelCache
from hilsim.compilation.inference import less_repetition
from hilsim.compilation.linking import CallTarget, external_call, libraries_on_demand
from hilsim.compilation.references import is_placed, pass_by_reference, place

__all__ = ["Kernel", "compile_borrowing", "compile_inlined", "compile_kernel", "compile_stage", "compile_types", "pass_by_reference"]


_COUNTED, _WITHOUT_COUNTS = OPTIONS | {"_nrt": True}, {"_nrt": False}
"""Whether references to arrays are counted: given for each kernel, because a callee would inherit it from the caller that it is compiled for."""


class _WithoutWrappers(_FunctionCompiler):
    """Compiles functions that kernels call."""

    is_stage = False
    """Whether its machine code is required, and stored in the cache."""

    def compile(self, args: Any, return_type: Any) -> Any:
        """Compile, and return the result."""
        compiled = super().compile(args, return_type)
        if self.is_stage:
            compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
        return compiled

    def _customize_flags(self, flags: Any) -> Any:
        flags.no_cpython_wrapper = True
        flags.no_cfunc_wrapper = True
        return flags


class _WithoutCWrapper(_FunctionCompiler):
    """Compiles functions that Python calls."""

    def _customize_flags(self, flags: Any) -> Any:
        flags.no_cfunc_wrapper = True
        return flags


def _call_from_python(*arguments: Any) -> Any:
    """Body of the function between Python and a kernel; ``inner`` is set in each copy."""
    return inner(*arguments)  # type: ignore[name-defined]  # noqa: F821


class _Dispatcher(CPUDispatcher):
    """Numba's dispatcher, for several processes at once: when one compiles, the others wait for it."""

    def compile(self, sig: Any) -> Any:
        """Compile for argument types, or load from the cache on disk."""
        arguments, _ = sigutils.normalize_signature(sig)
        if found := self.overloads.get(tuple(arguments)):
            return found.entry_point
        target = CallTarget(self.py_func.__module__, self.py_func.__qualname__, tuple(arguments))
        with global_compiler_lock, claimed(target.claim), libraries_on_demand(), less_repetition():
            entry = super().compile(sig)
            self._compiled(tuple(arguments))
            return entry

    def _compiled(self, arguments: tuple[Any, ...]) -> None:
        """Hook after compiling or loading for some types."""


class Kernel(_Dispatcher):
    """Numba's dispatcher of a function, for other kernels; when Python calls it, it compiles the function between them.

    Args:
        py_func: Python function.
        locals: Types of its variables, as in Numba.
        targetoptions: Numba's target options.
        pipeline_class: Numba's pipeline class.
    """

    def __init__(self, py_func: Callable[..., Any], locals: Any = None, targetoptions: Any = None, **pipeline: Any) -> None:  # noqa: A002 - Numba's name
        super().__init__(py_func, locals or {}, targetoptions, **pipeline)
        self._compiler.__class__ = _WithoutWrappers  # Numba has no option for it, and making another compiler takes time at each import
        self._outer: _Dispatcher | None = None
        self._parameters: inspect.Signature | None = None
        self._result: Any = None  # of a stage: Numba's type
        keep(self, py_func)

    def make_stage(self) -> None:
        """Make it a stage, which its callers call by address.

        Raises:
            TypeError: its annotation does not give its return type, or kernels cannot return that type.
        """
        annotations = self.py_func.__annotations__
        if "return" not in annotations:
            raise TypeError(f"{self.py_func.__qualname__}: a stage must say what it returns, got no annotation")
        self._compiler.is_stage, self._result = True, _result_type(annotations["return"])

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call the kernel with Python's arguments, and return its result."""
        if keywords:
            self._parameters = self._parameters or inspect.signature(self.py_func)
            arguments = self._parameters.bind(*arguments, **keywords).args
        outer = self._outer or self.from_python()
        return outer(*[place(each) if is_placed(each) else each for each in arguments])

    def from_python(self) -> _Dispatcher:
        """Dispatcher for calls from Python: a kernel that only calls this one."""
        if self._outer is None:
            function, code = self.py_func, _call_from_python.__code__
            place = {"co_filename": function.__code__.co_filename, "co_firstlineno": function.__code__.co_firstlineno, "co_name": function.__name__}
            between = FunctionType(code.replace(**place), {"__name__": function.__module__, "inner": self}, function.__name__)
            if self.targetoptions.get("inline") == "always":  # Numba inlines no call with a tuple of arguments
                between = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
            between.__module__, between.__qualname__ = function.__module__, f"{function.__qualname__}.from_python"
            self._outer = _for_python(between)
        return self._outer

    @property
    def stats(self) -> Any:
        """Statistics of the cache on disk for calls from Python."""
        return self.from_python().stats

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Numba's hook for a caller's types: it compiles the callee, but not a stage."""
        if self._result is None:
            return super().get_call_template(args, kws)
        parameters, arguments = self._compiler.fold_argument_types(args, kws)
        name = self.py_func.__name__
        template = make_concrete_template(f"CallTemplate({name})", key=name, signatures=[signature(self._result, *arguments)])
        return template, parameters, arguments, {}

    def get_overload(self, sig: Any) -> Any:
        """Numba's hook for a caller's code: the callee as known in its context."""
        if self._result is None:
            return super().get_overload(sig)
        arguments, _ = sigutils.normalize_signature(sig)
        target = CallTarget(self.py_func.__module__, self.py_func.__qualname__, tuple(arguments))
        if target not in self.targetctx._defns:  # noqa: SLF001
            implementation = external_call(self._result, self.py_func.__code__.co_varnames, target)
            self.targetctx._defns[target].append(implementation, implementation.signature)  # noqa: SLF001 - as insert_user_function
        return target

    def _compiled(self, arguments: tuple[Any, ...]) -> None:
        """Check what is returned, and set the symbol by which callers find a stage."""
        function, compiled = self.py_func, self.overloads[arguments]
        if not self.targetoptions["_nrt"] and self.targetctx.data_model_manager[compiled.signature.return_type].contains_nrt_meminfo():
            raise TypeError(f"{function.__qualname__} must return no arrays, because it counts no references, got {compiled.signature.return_type}")
        if self._result is None:
            return
        if types.unliteral(compiled.signature.return_type) != self._result:
            raise TypeError(f"{function.__qualname__} must return {self._result}, as its annotation says, got {compiled.signature.return_type}")
        target = CallTarget(function.__module__, function.__qualname__, arguments)
        llvm.add_symbol(target.symbol, compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


_SCALARS = {None: types.none, bool: types.boolean, int: types.int64, float: types.float64}


def _result_type(annotation: Any) -> Any:
    """Numba's type of an annotation."""
    if get_origin(annotation) is tuple:
        return types.BaseTuple.from_types([_result_type(each) for each in get_args(annotation)])
    if annotation not in _SCALARS:
        raise TypeError(f"a stage must return None, a bool, an int, a float or a tuple of them, got {annotation}")
    return _SCALARS[annotation]


def keep(dispatcher: Any, function: Callable[..., Any]) -> None:
    """Attach the cache on disk to a dispatcher; Numba sets the same attribute for ``cache=True``."""
    if dispatcher is not function and module_directory(function.__module__) is not None:
        dispatcher._cache = KernelCache(function)  # noqa: SLF001 - as Dispatcher.enable_caching does, with our class


def _for_python(function: Callable[..., Any]) -> _Dispatcher:
    """Dispatcher of a function that Python calls."""
    outer = _Dispatcher(function, {}, _COUNTED)
    outer._compiler.__class__ = _WithoutCWrapper  # noqa: SLF001
    keep(outer, function)
    return outer


# -- as hilsim.compilation.compiler lists it ---------------------------------------------------------------------------------------------


def compile_kernel(function: Callable[..., Any]) -> Any:
    """Dispatcher of a function."""
    return Kernel(function, None, _COUNTED)


def compile_borrowing(function: Callable[..., Any]) -> Any:
    """Dispatcher of a function that makes no arrays and returns none, in which no references are counted."""
    return Kernel(function, None, OPTIONS | _WITHOUT_COUNTS)


def compile_stage(function: Callable[..., Any]) -> Any:
    """Dispatcher of a stage, whose callers call it by its address."""
    stage = Kernel(function, None, _COUNTED)
    stage.make_stage()
    return stage


def compile_inlined(function: Callable[..., Any]) -> Any:
    """Dispatcher of a function that is inlined into each caller before compiling."""
    return Kernel(function, None, _COUNTED | {"inline": "always"})


def compile_types(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Compile a kernel for Numba types, or load it; other functions are ignored."""
    if isinstance(function, Kernel):
        function.compile(arguments)
