"""Numba's cache of a function, at the place that ``hilsim.compilation.cache`` gives it, for several processes at once."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.runtime import rtsys

from hilsim.compilation.cache import cache_directory, locked, make_directory, module_directory, refusals

_DAMAGED = (OSError, EOFError, pickle.UnpicklingError, AttributeError, ImportError, IndexError, ValueError, TypeError)


class _Locator:
    """Tells Numba where a kernel's entries live, and that the directory's name says all about their freshness."""

    def __init__(self, function: Callable[..., Any], path: str, place: Path) -> None:
        self._py_file = path  # Numba's name for it: where a warning points to
        self._line_number = function.__code__.co_firstlineno
        self._place = place

    @classmethod
    def from_function(cls, function: Callable[..., Any], path: str) -> Self | None:
        """For a function of a module that has a directory."""
        place = module_directory(function.__module__)
        return None if place is None else cls(function, path, place)

    def ensure_cache_path(self) -> None:
        """Make the directory; another version's may have to go for it."""
        make_directory(self._place)

    def get_cache_path(self) -> str:
        """The directory."""
        return str(self._place)

    def get_source_stamp(self) -> str:
        """Always the same: other sources have another directory."""
        return self._place.name

    def get_disambiguator(self) -> str:
        """Tells functions of one name in one file apart."""
        return str(self._line_number)


class _Implementation(CompileResultCacheImpl):
    """Numba's entries, at our place."""

    _locator_classes = (_Locator,)


class KernelCache(FunctionCache):
    """Numba's cache of a function, for several processes at once, and without the power to end one: what cannot be read is compiled."""

    _impl_class = _Implementation

    def load_overload(self, sig: object, target_context: object) -> Any:
        """What was kept for a signature; None where there is nothing, or nothing that can be read."""
        try:
            rtsys.initialize(target_context)  # machine code calls it
            with self._guard_against_spurious_io_errors():
                # Numba's own way here first has at hand all that it can compile: 0.1 s of a start, for nothing that is loaded.
                found = self._load_overload(sig, target_context)
        except _DAMAGED as error:
            refusals.append(f"kernels kept in {self.cache_path} cannot be read: {error}; they are compiled again")
            self.flush()
            return None
        if found is not None:
            found.library._reload_init.update(found.reload_init)  # noqa: SLF001 - who makes it part of itself needs the same: Numba forgets it here
        return found

    def save_overload(self, sig: object, data: object) -> None:
        """Keep what was compiled; a full disk costs a compile at the next start and nothing else."""
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
        """Forget what was kept for the function."""
        try:
            super().flush()
        except OSError:
            self.disable()
