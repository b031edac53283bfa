"""Lazy imports: a package provides names without importing their modules."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str], *others: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose names are imported when one is first asked for.

    Args:
        package: Its name.
        homes: The module of each name, as ``module``, or as ``module:name`` where the name differs there.
        others: Names that the package has by itself, for everybody too.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, there = homes[name].partition(":")
        value = getattr(import_module(module), there or name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted([*homes, *others])
