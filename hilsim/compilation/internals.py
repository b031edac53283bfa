"""Check that the private parts of the installed Numba are known: a tested series of versions, with every private name that is used here.

``docs/reference/numba.md`` lists the names, their use and the tested versions. With any other Numba, kernels are compiled by its public
decorators (``hilsim.compilation.plain``).
"""

import inspect
import os
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

import numba

TRIED_SERIES = ("0.68",)
"""Tested series of versions (first two numbers), oldest first: a patch release is assumed to be compatible if every name below exists."""
PLAIN_VARIABLE = "HILSIM_PLAIN_NUMBA"
"""Environment variable: any non-empty value makes plain Numba compile the kernels."""
_CONSEQUENCE = "kernels are compiled by plain Numba: starts take longer, packets are the same"


class Internal(NamedTuple):
    """A private class or function of Numba.

    Attributes:
        module: Module of the object.
        name: Name in the module.
        parameters: Names of the parameters of a function, or of methods by their names; empty if they do not matter.
        attributes: Required attributes of a class or its instances.
    """

    module: str
    name: str
    parameters: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    attributes: tuple[str, ...] = ()


INTERNALS = (
    Internal("numba.core.base", "BaseContext", {}, ("_defns",)),
    Internal(
        "numba.core.caching",
        "FunctionCache",
        {
            "load_overload": ("self", "sig", "target_context"),
            "_load_overload": ("self", "sig", "target_context"),
            "_index_key": ("self", "sig", "codegen"),
            "save_overload": ("self", "sig", "data"),
        },
        ("_cache_file", "_guard_against_spurious_io_errors", "_impl", "_impl_class", "cache_path", "disable", "flush"),
    ),
    Internal(
        "numba.core.caching",
        "IndexDataCacheFile",
        {"__init__": ("self", "cache_path", "filename_base", "source_stamp"), "load": ("self", "key"), "save": ("self", "key", "data")},
        ("_data_name", "_data_path", "_dump", "_load_data", "_load_index", "_open_for_write", "_save_data", "_save_index"),
    ),
    Internal("numba.core.caching", "CompileResultCacheImpl", {}, ("_locator_classes",)),
    Internal("numba.core.codegen", "CPUCodegen", {"magic_tuple": ("self",)}),
    Internal("numba.core.codegen", "JITCPUCodegen", {"set_env": ("self", "env_name", "env")}, ("_check_llvm_bugs", "_engine", "_library_class")),
    Internal("numba.core.codegen", "JitEngine", {"is_symbol_defined": ("self", "name")}, ("_defined_symbols",)),
    Internal(
        "numba.core.codegen",
        "JITCodeLibrary",
        {
            "finalize": ("self",),
            "get_pointer_to_function": ("self", "name"),
            "serialize_using_object_code": ("self",),
            "_get_module_for_linking": ("self",),
            "_optimize_final_module": ("self",),
            "_finalize_final_module": ("self",),
            "_set_compiled_object": ("self", "value"),
            "_unserialize": ("codegen", "state"),
        },
        (
            *("_codegen", "_ensure_finalized", "_final_module", "_finalized", "_get_compiled_object", "_linking_libraries"),
            *("_raise_if_finalized", "_reload_init", "_shared_module", "enable_object_caching"),
        ),
    ),
    Internal("numba.core.compiler_lock", "global_compiler_lock"),
    Internal("numba.core.compiler_lock", "require_global_compiler_lock", {"": ()}),
    Internal("numba.core.datamodel", "register_default"),
    Internal("numba.core.datamodel.models", "DataModel", {"contains_nrt_meminfo": ("self",)}),
    Internal("numba.core.dispatcher", "_FunctionCompiler", {"compile": ("self", "args", "return_type"), "_customize_flags": ("self", "flags")}),
    Internal("numba.core.event", "install_timer", {"": ("kind", "callback")}),
    Internal("numba.core.ir", "Inst", {"_rec_list_vars": ("self", "val")}),
    Internal("numba.core.ir", "Loc"),
    Internal("numba.core.ir", "Var"),
    Internal("numba.core.types.functions", "Function", {"get_call_type": ("self", "context", "args", "kws")}),
    Internal("numba.core.environment", "lookup_environment", {"": ("env_name",)}),
    Internal("numba.core.imputils", "fix_returning_optional", {"": ("context", "builder", "sig", "status", "retval")}),
    Internal("numba.core.imputils", "impl_ret_borrowed", {"": ("ctx", "builder", "retty", "ret")}),
    Internal("numba.core.imputils", "impl_ret_new_ref", {"": ("ctx", "builder", "retty", "ret")}),
    Internal(
        "numba.core.registry",
        "CPUDispatcher",
        {
            "__init__": ("self", "py_func", "locals", "targetoptions", "pipeline_class"),
            "compile": ("self", "sig"),
            "get_call_template": ("self", "args", "kws"),
            "get_overload": ("self", "sig"),
        },
        ("_cache", "_compiler", "overloads", "targetctx", "targetoptions"),
    ),
    Internal("numba.core.options", "DefaultOptions", {}, ("_nrt",)),
    Internal("numba.core.registry", "cpu_target", {}, ("target_context",)),
    Internal("numba.core.runtime", "rtsys", {"initialize": ("ctx",)}),
    Internal("numba.core.sigutils", "normalize_signature", {"": ("sig",)}),
    Internal("numba.core.typing.templates", "AttributeTemplate"),
    Internal("numba.core.typing.templates", "make_concrete_template", {"": ("name", "key", "signatures")}),
    Internal("numba.core.typing.typeof", "_typeof_tuple", {"": ("val", "c")}),
    Internal("numba.np.linalg", "ensure_blas", {"": ()}),
)
"""Objects of Numba that are replaced or called and are not part of its documented interface."""


def unknown_internals() -> str:
    """Reason that the private parts of the installed Numba are not used, one sentence; empty if they are."""
    return _found(numba.__version__, os.environ.get(PLAIN_VARIABLE, ""))


@cache
def _found(version: str, wanted: str) -> str:
    if wanted:
        return f"{PLAIN_VARIABLE} is set, so {_CONSEQUENCE}"
    if ".".join(version.split(".")[:2]) not in TRIED_SERIES:
        return f"hilsim was not tried with Numba {version} (tried: {', '.join(TRIED_SERIES)}), so {_CONSEQUENCE}"
    missing = next(differences(INTERNALS), "")
    return f"Numba {version} has no {missing} as hilsim knows it, so {_CONSEQUENCE}" if missing else ""


def differences(internals: tuple[Internal, ...]) -> Iterator[str]:
    """Full names of objects that are missing or have other parameters."""
    for internal in internals:
        name = f"{internal.module}.{internal.name}"
        try:
            found = getattr(import_module(internal.module), internal.name)
        except (ImportError, AttributeError):
            yield name
            continue
        for function, parameters in internal.parameters.items():
            if _parameters(getattr(found, function, None) if function else found) != parameters:
                yield f"{name}.{function}".rstrip(".")
        known = _attributes(found)
        yield from (f"{name}.{attribute}" for attribute in internal.attributes if attribute not in known)


def _parameters(function: Any) -> tuple[str, ...] | None:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # not a function
        return None


def _attributes(found: Any) -> set[str]:
    """Names of an object's attributes; for a class also of those that its methods use, which are those of its instances."""
    names = set(dir(found))
    for cls in found.__mro__ if isinstance(found, type) else ():
        for method in vars(cls).values():
            names.update(getattr(getattr(method, "__code__", None), "co_names", ()))
    return names
