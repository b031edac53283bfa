"""Linking of kernels: a kernel's code is linked and optimised once for each kernel that is run directly, and a stage is called by its address.

Numba instead links and optimises all code below a kernel again at each level of calls.
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
    """A compiled kernel, neither linked with its callees nor optimised until its address is requested.

    Most kernels are only included in others and never run directly. Numba links all code below a kernel into it, and optimises it, at each
    level of calls again; here each kernel's own code is linked and optimised once for each kernel that is run.
    """

    _IN_PARTS, _AS_CODE = "parts", "code"

    _is_unlinked = False
    _kept: Any = ()
    """Environments of kernels loaded as part of others: Numba looks them up by name while they are referenced."""

    def finalize(self) -> None:
        """Numba's hook: no further code is added."""
        require_global_compiler_lock()
        self._codegen._check_llvm_bugs()  # noqa: SLF001 - as Numba's own
        self._raise_if_finalized()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)  # noqa: SLF001 - as Numba's own
        self._finalized = self._is_unlinked = True

    def get_pointer_to_function(self, name: str) -> int:
        """Address of a function, 0 if there is none of that name."""
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
        """Add the code of all direct and indirect callees."""
        for library in self._all_below():
            self._final_module.link_in(_module_of(library), preserve=True)
        self._shared_module, self._is_unlinked = None, False

    def _all_below(self) -> list[Any]:
        """Libraries of all callees, callers first: LLVM links only code that has been referenced so far."""
        ended: dict[Any, None] = {}

        def visit(library: Any) -> None:
            for below in library._linking_libraries if getattr(library, "_is_unlinked", False) else ():  # noqa: SLF001
                if below not in ended:
                    visit(below)
            ended[library] = None

        visit(self)
        return list(reversed(ended))[1:]

    def own_module(self) -> Any:
        """Code for linking into others: its own, and once it is linked all of it."""
        return super()._get_module_for_linking()

    def _whole_module(self) -> Any:
        """Self-contained code: with all callees except stages."""
        module = self.own_module()
        if self._is_unlinked:
            module = module.clone()
            for library in self._all_below():
                module.link_in(_module_of(library), preserve=True)
        return module

    def _get_module_for_linking(self) -> Any:
        """Numba's hook for libraries that generate their machine code at once."""
        self._compile_stages()
        return self._whole_module()

    def _compile_stages(self) -> None:
        _compile_all({each for each in self._reload_init if isinstance(each, CallTarget)})

    def serialize_using_object_code(self) -> tuple[str, str, Any]:
        """Data for the cache: machine code for a kernel that is run directly, otherwise code for its callers to compile."""
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
    """Names and environments of the functions in a module: the environment makes their errors, as Python objects."""
    for variable in module.global_variables:
        if not variable.is_declaration and (environment := lookup_environment(variable.name)) is not None:
            yield variable.name, environment


def _module_of(library: Any) -> Any:
    return library.own_module() if isinstance(library, _CodeOnDemand) else library._get_module_for_linking()  # noqa: SLF001 - Numba's


@contextmanager
def libraries_on_demand() -> Iterator[None]:
    """Link code compiled within the block on request; other uses of Numba in this process are unaffected. The caller must hold the compiler's lock."""
    _prepare_numba()
    codegen = cpu_target.target_context.codegen()
    before, codegen._library_class = codegen._library_class, _CodeOnDemand  # noqa: SLF001 - Numba has no option for it
    try:
        yield
    finally:
        codegen._library_class = before  # noqa: SLF001


@cache
def _prepare_numba() -> None:
    """Changes of Numba's behaviour in this process."""
    codegen = cpu_target.target_context.codegen()
    rtsys.initialize(cpu_target.target_context)  # Numba looks for an address in it while it links a function that calls itself
    set_environment = codegen.set_env

    def set_known_environment(name: str, environment: Any) -> None:
        if codegen._engine.is_symbol_defined(name):  # noqa: SLF001 - else it is set once there is machine code that reads it
            set_environment(name, environment)

    codegen.set_env = set_known_environment
    _skip_search_for_blas()


def _skip_search_for_blas() -> None:
    """Skip Numba's import of ``scipy.linalg``, which checks for matrix multiplication: 0.14 s of every start, and no kernel multiplies matrices.

    A kernel that does triggers the import then.
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
    """A kernel compiled for some types, referenced by its callers' machine code. Numba calls it when such code is loaded, and it ensures that the kernel exists.

    Attributes:
        module: Module of the kernel.
        name: Name of the kernel in the module.
        arguments: Numba types of the arguments.
    """

    module: str
    name: str
    arguments: tuple[Any, ...]

    @property
    def symbol(self) -> str:
        """Symbol of the kernel: the same in every process with the same sources."""
        place = module_directory(self.module)
        what = repr((self.module if place is None else place.name, self.name, self.arguments))
        return f"{self.module}.{self.name}.{hashlib.sha256(what.encode()).hexdigest()[:24]}"

    @property
    def claim(self) -> str:
        """Name of the claim for compiling it."""
        return f"{self.module}.{self.name} {self.arguments}"

    def __call__(self) -> None:
        """Load or compile the kernel: machine code that calls an unbound symbol would crash the process."""
        getattr(importlib.import_module(self.module), self.name).compile(self.arguments)


def _compile_all(targets: set[CallTarget]) -> None:
    """Compile the targets, first those that no other process is compiling."""
    waiting = sorted(targets, key=lambda target: target.symbol)
    while waiting:
        chosen = next((target for target in waiting if not is_claimed(target.claim)), waiting[0])
        waiting.remove(chosen)
        chosen()


def external_call(result: Any, names: tuple[str, ...], target: CallTarget) -> Any:
    """Lower a call of a function in another library; unlike ``numba.core.imputils.user_function``, it does not link that library in.

    Args:
        result: Numba's type of the return value.
        names: Numba's names of the arguments, the first word of each.
        target: Called function.
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
