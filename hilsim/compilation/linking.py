"""A kernel's code is linked and optimised once for each kernel that runs by itself, and a stage's is called by its address.

Numba links and optimises the code of all that is below a kernel at each level of calls again.
"""

import hashlib
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import require_global_compiler_lock
from numba.core.environment import lookup_environment
from numba.core.imputils import fix_returning_optional, impl_ret_new_ref
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.np import linalg

from hilsim.compilation.cache import is_claimed, module_directory

# -- machine code on demand ----------------------------------------------------------------------------------------------------------------


class _CodeOnDemand(JITCodeLibrary):
    """What Numba has compiled, neither linked with what it calls nor optimised until its address is requested.

    Most kernels only become part of others and never run by themselves. Numba links all that is below a kernel into it, and optimises all that, at each
    level of calls again; here each kernel's own code is linked and optimised once for each kernel that does run.
    """

    _IN_PARTS, _AS_CODE = "parts", "code"

    _is_unlinked = False
    _kept: Any = ()
    """Environments of what was loaded as part of others: Numba looks them up by their names, as long as they are referenced."""

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
        """Self-contained code: with all that it calls but stages."""
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
def libraries_on_demand() -> Iterator[None]:
    """What is compiled within is linked on request; what else uses Numba in this process is left alone. For who has the compiler's lock."""
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
        """Load or compile it: machine code that calls an unbound name ends the process."""
        getattr(importlib.import_module(self.module), self.name).compile(self.arguments)


def _compile_all(targets: set[CallTarget]) -> None:
    """Compile those first that no other process compiles."""
    waiting = sorted(targets, key=lambda target: target.symbol)
    while waiting:
        chosen = next((target for target in waiting if not is_claimed(target.claim)), waiting[0])
        waiting.remove(chosen)
        chosen()


def external_call(result: Any, names: tuple[str, ...], target: CallTarget) -> Any:
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
