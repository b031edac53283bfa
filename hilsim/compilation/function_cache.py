"""Numba's cache of a function, in the directory of ``hilsim.compilation.cache``, for several processes at once."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.runtime import rtsys

from hilsim.compilation.cache import cache_directory, locked, make_directory, module_directory, refusals

_DAMAGED = (OSError, EOFError, pickle.UnpicklingError, AttributeError, ImportError, IndexError, ValueError, TypeError)


class _Locator:
    """Numba's locator of a kernel's entries; the directory's name alone determines their freshness."""

    def __init__(self, function: Callable[..., Any], path: str, place: Path) -> None:
        self._py_file = path  # Numba's name for it: the location in warnings
        self._line_number = function.__code__.co_firstlineno
        self._place = place

    @classmethod
    def from_function(cls, function: Callable[..., Any], path: str) -> Self | None:
        """Locator for a function of a module that has a directory; otherwise None."""
        place = module_directory(function.__module__)
        return None if place is None else cls(function, path, place)

    def ensure_cache_path(self) -> None:
        """Make the directory; another version's may be removed for it."""
        make_directory(self._place)

    def get_cache_path(self) -> str:
        """Directory of the entries."""
        return str(self._place)

    def get_source_stamp(self) -> str:
        """Constant stamp: other sources have another directory."""
        return self._place.name

    def get_disambiguator(self) -> str:
        """Text that distinguishes functions of the same name in one file."""
        return str(self._line_number)


class _Implementation(CompileResultCacheImpl):
    """Numba's cache implementation with this locator."""

    _locator_classes = (_Locator,)


class KernelCache(FunctionCache):
    """Numba's cache of a function, for several processes at once; an unreadable entry is compiled again instead of raising an error."""

    _impl_class = _Implementation

    def load_overload(self, sig: object, target_context: object) -> Any:
        """Load the entry for a signature; None if there is none, or it is unreadable."""
        try:
            rtsys.initialize(target_context)  # machine code calls it
            with self._guard_against_spurious_io_errors():
                # Numba's own method first loads everything for compilation: 0.1 s of a start, not needed to load an entry.
                found = self._load_overload(sig, target_context)
        except _DAMAGED as error:
            refusals.append(f"kernels kept in {self.cache_path} cannot be read: {error}; they are compiled again")
            self.flush()
            return None
        if found is not None:
            found.library._reload_init.update(found.reload_init)  # noqa: SLF001 - who makes it part of itself needs the same: Numba forgets it here
        return found

    def save_overload(self, sig: object, data: object) -> None:
        """Store a compiled function; a full disk only costs a compilation at the next start."""
        root = cache_directory()
        if root is None:
            return
        try:
            with locked(root):
                super().save_overload(sig, data)
        except OSError as error:
            reason = f"kernels cannot be kept in {root}: {error.strerror}"
            if reason not in refusals:
                refusals.append(reason)

    def flush(self) -> None:
        """Remove the function's entries."""
        try:
            super().flush()
        except OSError:
            self.disable()
