"""How kernels are put together, so that a first start compiles each of them once and nothing for nothing.

Numba makes the code of every kernel that another one calls part of the caller, and optimises it there once more; it makes two wrappers by which Python
could call a kernel, for kernels that only kernels call too; and it passes a tuple by value, some hundred numbers at each call. Together that was
half the time of compiling. Here

- a kernel has no wrapper until Python calls it: then a small kernel of its own stands between;
- a kernel's code is linked and optimised once for each kernel that runs by itself, and not at each level of calls (``_CodeOnDemand``);
- a *stage* is called by its address (``CallTarget``), and not made part of its callers; what it returns stands in its annotation, so that its callers
  can be compiled beside it, by another process;
- a large tuple is passed by its address (``pass_by_reference``): kernels read its fields where they lie.

All of it is Numba's side; nobody but ``hilsim._jit`` needs it.
"""

import hashlib
import importlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import FunctionType
from typing import Any, get_args, get_origin

from hilsim._kernel_cache import KernelCache, claimed, is_claimed, module_directory  # before Numba: it says how to compile

# isort: split

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils, sigutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock, require_global_compiler_lock
from numba.core.datamodel import models, register_default
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.environment import lookup_environment
from numba.core.imputils import fix_returning_optional, impl_ret_borrowed, impl_ret_new_ref
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.runtime import rtsys
from numba.core.typing.templates import AttributeTemplate, make_concrete_template, signature
from numba.core.typing.typeof import _typeof_tuple
from numba.extending import NativeValue, infer_getattr, lower_getattr_generic, typeof_impl, unbox
from numba.np import linalg

# -- kernels -------------------------------------------------------------------------------------------------------------------------------


class _WithoutWrappers(_FunctionCompiler):  # type: ignore[misc]
    """Compiles what kernels call."""

    is_stage = False
    """Its machine code is wanted, and kept in the cache."""

    def compile(self, args: Any, return_type: Any) -> Any:
        """What was compiled."""
        compiled = super().compile(args, return_type)
        if self.is_stage:
            compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
        return compiled

    def _customize_flags(self, flags: Any) -> Any:
        flags.no_cpython_wrapper = True
        flags.no_cfunc_wrapper = True
        return flags


class _WithoutCWrapper(_FunctionCompiler):  # type: ignore[misc]
    """Compiles what Python calls."""

    def _customize_flags(self, flags: Any) -> Any:
        flags.no_cfunc_wrapper = True
        return flags


def _compiler(kind: Any, dispatcher: Any) -> Any:
    return kind(dispatcher.py_func, dispatcher.targetdescr, dispatcher.targetoptions, dispatcher.locals, dispatcher._compiler.pipeline_class)  # noqa: SLF001


def _call_from_python(*arguments: Any) -> Any:
    """Body of what stands between Python and a kernel; its global is set where it is copied."""
    return inner(*arguments)  # type: ignore[name-defined]  # noqa: F821


class _CodeOnDemand(JITCodeLibrary):  # type: ignore[misc]
    """What Numba has compiled, neither linked with what it calls nor optimised until somebody wants its address.

    Most kernels only become part of others and never run by themselves. Numba links all that is below a kernel into it, and optimises all that, at each
    level of calls again; here each kernel's own code is linked and optimised once for each kernel that does run.
    """

    _IN_PARTS, _AS_CODE = "parts", "code"

    _is_unlinked = False
    _kept: Any = ()
    """Environments of what was loaded as part of others: Numba looks them up by their names, as long as somebody has them."""

    def finalize(self) -> None:
        """Numba's: nothing is to be added any more."""
        require_global_compiler_lock()
        self._codegen._check_llvm_bugs()  # noqa: SLF001 - as Numba's own
        self._raise_if_finalized()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)  # noqa: SLF001 - as Numba's own
        self._finalized = self._is_unlinked = True

    def get_pointer_to_function(self, name: str) -> int:
        """Address of a function, 0 where there is none of that name."""
        self._ensure_finalized()
        if self._is_unlinked and self._defines(name):
            self._compile_stages()
            self._link()
            self._optimize_final_module()
            self._final_module.verify()
            self._finalize_final_module()
            for name_of_environment, environment in _environments(self._final_module):
                self._codegen.set_env(name_of_environment, environment)
        return int(super().get_pointer_to_function(name))

    def _defines(self, name: str) -> bool:
        try:
            return not self._final_module.get_function(name).is_declaration
        except NameError:
            return False

    def _link(self) -> None:
        """Add the code of all that is called, directly or not."""
        for library in self._all_below():
            self._final_module.link_in(_module_of(library), preserve=True)
        self._shared_module, self._is_unlinked = None, False

    def _all_below(self) -> list[Any]:
        """The libraries of all that is called, callers first: LLVM links only what has been called for so far."""
        ended: dict[Any, None] = {}

        def visit(library: Any) -> None:
            for below in library._linking_libraries if getattr(library, "_is_unlinked", False) else ():  # noqa: SLF001
                if below not in ended:
                    visit(below)
            ended[library] = None

        visit(self)
        return list(reversed(ended))[1:]

    def own_module(self) -> Any:
        """What others can link in: its own code, and once it is linked all of it."""
        return super()._get_module_for_linking()

    def _whole_module(self) -> Any:
        """What stands by itself: with all that it calls but stages."""
        module = self.own_module()
        if self._is_unlinked:
            module = module.clone()
            for library in self._all_below():
                module.link_in(_module_of(library), preserve=True)
        return module

    def _get_module_for_linking(self) -> Any:
        """Numba's, for libraries that make their machine code at once."""
        self._compile_stages()
        return self._whole_module()

    def _compile_stages(self) -> None:
        _compile_all({each for each in self._reload_init if isinstance(each, CallTarget)})

    def serialize_using_object_code(self) -> tuple[str, str, Any]:
        """What the cache keeps: machine code, for what runs is never part of others; or else what callers compile."""
        self._ensure_finalized()
        if self._is_unlinked:
            whole = self._whole_module()
            return self.name, self._IN_PARTS, (whole.as_bitcode(), [environment for _, environment in _environments(whole)])
        module = self._final_module
        names = [value.name for values in (module.functions, module.global_variables) for value in values if not value.is_declaration]
        return self.name, self._AS_CODE, (self._get_compiled_object(), names)

    @classmethod
    def _unserialize(cls, codegen: Any, state: tuple[str, str, Any]) -> Any:
        name, kind, data = state
        library = codegen.create_library(name)
        if kind == cls._IN_PARTS:
            bitcode, library._kept = data  # noqa: SLF001 - a library of this kind
            library._final_module = library._shared_module = llvm.parse_bitcode(bitcode)  # noqa: SLF001 - as Numba's own kinds
            library._finalized = library._is_unlinked = True  # noqa: SLF001
            return library
        code, names = data
        library.enable_object_caching()
        library._set_compiled_object(code)  # noqa: SLF001
        library._finalize_final_module()  # noqa: SLF001
        codegen._engine._defined_symbols.update(names)  # noqa: SLF001 - Numba reads them out of the bitcode that it keeps beside the code
        return library


def _environments(module: Any) -> Iterator[tuple[str, Any]]:
    """Name and environment of each function in a module: what its errors are made of, as Python objects."""
    for variable in module.global_variables:
        if not variable.is_declaration and (environment := lookup_environment(variable.name)) is not None:
            yield variable.name, environment


def _module_of(library: Any) -> Any:
    return library.own_module() if isinstance(library, _CodeOnDemand) else library._get_module_for_linking()  # noqa: SLF001 - Numba's


@contextmanager
def _libraries_on_demand() -> Iterator[None]:
    """What is compiled within is linked when it is wanted; what else uses Numba in this process is left alone. For who has the compiler's lock."""
    _prepare_numba()
    codegen = cpu_target.target_context.codegen()
    before, codegen._library_class = codegen._library_class, _CodeOnDemand  # noqa: SLF001 - Numba has no option for it
    try:
        yield
    finally:
        codegen._library_class = before  # noqa: SLF001


@cache
def _prepare_numba() -> None:
    """What Numba shall do in other ways in this process."""
    codegen = cpu_target.target_context.codegen()
    rtsys.initialize(cpu_target.target_context)  # Numba looks for an address in it while it links a function that calls itself
    set_environment = codegen.set_env

    def set_known_environment(name: str, environment: Any) -> None:
        if codegen._engine.is_symbol_defined(name):  # noqa: SLF001 - else it is set once there is machine code that reads it
            set_environment(name, environment)

    codegen.set_env = set_known_environment
    _skip_search_for_blas()


def _skip_search_for_blas() -> None:
    """Numba imports ``scipy.linalg`` to know whether matrices can be multiplied: 0.14 s of every start, and no kernel multiplies any.

    One that does finds it then.
    """
    search = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = search


class _Dispatcher(CPUDispatcher):  # type: ignore[misc]
    """Numba's dispatcher, for several processes at once: what one compiles, the others wait for."""

    def compile(self, sig: Any) -> Any:
        """Compile for argument types, or load from the cache on disk."""
        arguments, _ = sigutils.normalize_signature(sig)
        if found := self.overloads.get(tuple(arguments)):
            return found.entry_point
        target = CallTarget(self.py_func.__module__, self.py_func.__qualname__, tuple(arguments))
        with global_compiler_lock, claimed(target.claim), _libraries_on_demand():
            entry = super().compile(sig)
            self._compiled(tuple(arguments))
            return entry

    def _compiled(self, arguments: tuple[Any, ...]) -> None:
        """What else is to be done with what was compiled for some types, or loaded."""


class Kernel(_Dispatcher):
    """Numba's dispatcher of a function, for other kernels; called by Python, it compiles what stands between.

    Args:
        py_func: The function.
        locals: Types of its variables, as Numba has it.
        targetoptions: Numba's.
        pipeline_class: Numba's.
    """

    def __init__(self, py_func: Callable[..., Any], locals: Any = None, targetoptions: Any = None, **pipeline: Any) -> None:  # noqa: A002 - Numba's name
        super().__init__(py_func, locals, targetoptions, **pipeline)
        self._compiler = _compiler(_WithoutWrappers, self)
        self._outer: _Dispatcher | None = None
        self._parameters: inspect.Signature | None = None
        self._result: Any = None  # of a stage: Numba's type
        keep(self, py_func)

    def make_stage(self) -> None:
        """Have its callers call it by its address.

        Raises:
            TypeError: its annotation does not say what it returns, or kernels cannot return that.
        """
        annotations = self.py_func.__annotations__
        if "return" not in annotations:
            raise TypeError(f"{self.py_func.__qualname__}: a stage must say what it returns, got no annotation")
        self._compiler.is_stage, self._result = True, _result_type(annotations["return"])

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """The kernel's result, with arguments as Python has them."""
        if keywords:
            self._parameters = self._parameters or inspect.signature(self.py_func)
            arguments = self._parameters.bind(*arguments, **keywords).args
        return (self._outer or self.from_python())(*arguments)

    def from_python(self) -> _Dispatcher:
        """What Python calls: a kernel that does nothing else than call this one."""
        if self._outer is None:
            function, code = self.py_func, _call_from_python.__code__
            place = {"co_filename": function.__code__.co_filename, "co_firstlineno": function.__code__.co_firstlineno, "co_name": function.__name__}
            between = FunctionType(code.replace(**place), {"__name__": function.__module__, "inner": self}, function.__name__)
            between.__module__, between.__qualname__ = function.__module__, f"{function.__qualname__}.from_python"
            outer = _Dispatcher(between, None, self.targetoptions)
            outer._compiler = _compiler(_WithoutCWrapper, outer)  # noqa: SLF001 - Numba has no option for it
            keep(outer, between)
            self._outer = outer
        return self._outer

    @property
    def stats(self) -> Any:
        """How often what Python calls was found in the cache on disk, or not."""
        return self.from_python().stats

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Numba's, for a caller's types: it compiles what is called, but not a stage."""
        if self._result is None:
            return super().get_call_template(args, kws)
        parameters, arguments = self._compiler.fold_argument_types(args, kws)
        name = self.py_func.__name__
        template = make_concrete_template(f"CallTemplate({name})", key=name, signatures=[signature(self._result, *arguments)])
        return template, parameters, arguments, {}

    def get_overload(self, sig: Any) -> Any:
        """Numba's, for a caller's code: what its context knows the callee by."""
        if self._result is None:
            return super().get_overload(sig)
        arguments, _ = sigutils.normalize_signature(sig)
        target = CallTarget(self.py_func.__module__, self.py_func.__qualname__, tuple(arguments))
        if target not in self.targetctx._defns:  # noqa: SLF001
            implementation = _external(self._result, self.py_func.__code__.co_varnames, target)
            self.targetctx._defns[target].append(implementation, implementation.signature)  # noqa: SLF001 - as insert_user_function
        return target

    def _compiled(self, arguments: tuple[Any, ...]) -> None:
        """Give a stage the name by which its callers find it."""
        if self._result is None:
            return
        function, compiled = self.py_func, self.overloads[arguments]
        if types.unliteral(compiled.signature.return_type) != self._result:
            raise TypeError(f"{function.__qualname__} must return {self._result}, as its annotation says, got {compiled.signature.return_type}")
        target = CallTarget(function.__module__, function.__qualname__, arguments)
        llvm.add_symbol(target.symbol, compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


_SCALARS = {None: types.none, bool: types.boolean, int: types.int64, float: types.float64}


def _result_type(annotation: Any) -> Any:
    """Numba's type of what an annotation says."""
    if get_origin(annotation) is tuple:
        return types.BaseTuple.from_types([_result_type(each) for each in get_args(annotation)])
    if annotation not in _SCALARS:
        raise TypeError(f"a stage must return None, a bool, an int, a float or a tuple of them, got {annotation}")
    return _SCALARS[annotation]


def keep(dispatcher: Any, function: Callable[..., Any]) -> None:
    """Give a dispatcher its cache on disk; Numba sets the same attribute for ``cache=True``."""
    if dispatcher is not function and module_directory(function.__module__) is not None:
        dispatcher._cache = KernelCache(function)  # noqa: SLF001 - as Dispatcher.enable_caching does, with our class


# -- calls by address ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CallTarget:
    """A kernel compiled for some types; of a stage, as its callers' machine code names it. Called when such code is loaded, it sees that there is one.

    Attributes:
        module: Where the kernel is.
        name: Of the kernel there.
        arguments: Numba types.
    """

    module: str
    name: str
    arguments: tuple[Any, ...]

    @property
    def symbol(self) -> str:
        """The name: the same in every process with the same sources."""
        place = module_directory(self.module)
        what = repr((self.module if place is None else place.name, self.name, self.arguments))
        return f"{self.module}.{self.name}.{hashlib.sha256(what.encode()).hexdigest()[:24]}"

    @property
    def claim(self) -> str:
        """What a process that compiles it claims."""
        return f"{self.module}.{self.name} {self.arguments}"

    def __call__(self) -> None:
        """Load or compile it: machine code that calls a name which nobody has given ends the process."""
        getattr(importlib.import_module(self.module), self.name).compile(self.arguments)


def _compile_all(targets: set[CallTarget]) -> None:
    """Compile those first that no other process compiles."""
    waiting = sorted(targets, key=lambda target: target.symbol)
    while waiting:
        chosen = next((target for target in waiting if not is_claimed(target.claim)), waiting[0])
        waiting.remove(chosen)
        chosen()


def _external(result: Any, names: tuple[str, ...], target: CallTarget) -> Any:
    """Lowers a call of a function that another library has; as ``numba.core.imputils.user_function``, which links the library in.

    Args:
        result: Numba's type of what it returns.
        names: Its arguments' first.
        target: The function.
    """

    def call(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        convention = context.call_conv
        function_type = convention.get_function_type(result, target.arguments)
        function = cgutils.get_or_insert_function(builder.module, function_type, target.symbol)
        convention.decorate_function(function, names[: len(target.arguments)], target.arguments, noalias=False)
        status, value = convention.call_function(builder, function, result, target.arguments, arguments)
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        library = context.active_code_library
        library._reload_init.add(target)  # noqa: SLF001 - kept with the caller, and called when it is loaded
        if not isinstance(library, _CodeOnDemand):
            target()
        return impl_ret_new_ref(context, builder, result, fix_returning_optional(context, builder, sig, status, value))

    call.signature = target.arguments  # type: ignore[attr-defined]
    call.libs = ()  # type: ignore[attr-defined]
    return call


# -- tuples by reference -------------------------------------------------------------------------------------------------------------------


_REFERRED: set[type] = set()


class TupleReference(types.Type):  # type: ignore[misc]
    """Address of a named tuple, valid as long as the kernel runs that Python called with it."""

    def __init__(self, tuple_type: Any) -> None:
        self.tuple_type = tuple_type
        super().__init__(f"reference({tuple_type})")

    def index(self, field: str) -> int:
        """Place of a field; -1 where there is none of that name."""
        fields = self.tuple_type.fields
        return fields.index(field) if field in fields else -1


def pass_by_reference(cls: type) -> None:
    """Have kernels take named tuples of a class, and those of such classes within, by their address. Kernels can neither make nor unpack one."""

    def reference(value: Any, context: Any) -> Any:
        found = _typeof_tuple(value, context)
        if found is None:
            return None
        within = [each.tuple_type if isinstance(each, TupleReference) else each for each in found.types]  # they lie in it, not elsewhere
        return TupleReference(types.BaseTuple.from_types(within, cls))

    _REFERRED.add(cls)
    typeof_impl.register(cls, reference)


def _is_reference(field_type: Any) -> bool:
    return getattr(field_type, "instance_class", None) in _REFERRED


@register_default(TupleReference)
class _ReferenceModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, reference: TupleReference) -> None:
        super().__init__(manager, reference, ir.PointerType(manager.lookup(reference.tuple_type).get_value_type()))


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = TupleReference

    def generic_resolve(self, reference: TupleReference, field: str) -> Any:
        """Type of a field; None where there is none of that name."""
        index = reference.index(field)
        found = reference.tuple_type.types[index] if index >= 0 else None
        return TupleReference(found) if _is_reference(found) else found


@lower_getattr_generic(TupleReference)  # type: ignore[untyped-decorator]
def _field(context: Any, builder: Any, reference: TupleReference, address: Any, field: str) -> Any:
    index = reference.index(field)
    field_type, pointer = reference.tuple_type.types[index], cgutils.gep_inbounds(builder, address, 0, index)
    if _is_reference(field_type):
        return pointer
    return impl_ret_borrowed(context, builder, field_type, builder.load(pointer))


@unbox(TupleReference)  # type: ignore[untyped-decorator]
def _unbox(reference: TupleReference, value: Any, context: Any) -> Any:
    native = context.unbox(reference.tuple_type, value)

    def cleanup() -> None:
        if native.cleanup is not None:
            native.cleanup()
        context.context.nrt.decref(context.builder, reference.tuple_type, native.value)  # Numba does so for the type it sees, and sees an address

    return NativeValue(cgutils.alloca_once_value(context.builder, native.value), is_error=native.is_error, cleanup=cleanup)
