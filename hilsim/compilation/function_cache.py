"""Numba's cache of a function, in the directory of ``hilsim.compilation.cache``, for several processes at once."""

import hashlib
import pickle
import re
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Self

from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.runtime import rtsys

from hilsim.compilation.cache import (
    built_directory,
    cache_directory,
    files_below,
    is_writable,
    locked,
    make_directory,
    module_directories,
    module_directory,
    refusals,
)

_CHECKSUM_SIZE = 16
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


class _Index(IndexDataCacheFile):
    """Numba's index of a kernel's entries, of which only the key that is looked up is unpickled.

    Numba's own is one pickle of all keys. A key with a type of a plug-in would make it unreadable to every process that cannot import the plug-in:
    such a process would compile all entries of the kernel again, and remove those of the plug-in.
    """

    def load(self, key: object) -> Any:
        """Load the entry of a key; None if there is none."""
        name = _name_of(key, self._load_index().get(_text_of(key), ()))
        try:
            return self._load_data(name) if name else None
        except FileNotFoundError:  # removed since
            return None

    def save(self, key: object, data: object) -> None:
        """Store the entry of a key."""
        entries = self._load_index()
        alike = entries.setdefault(_text_of(key), [])
        name = _name_of(key, alike)
        if name is None:
            taken = {each for group in entries.values() for _, each in group}
            name = next(free for free in map(self._data_name, count(1)) if free not in taken)
            alike.append((self._dump(key), name))
        self._save_data(name, data)
        self._save_index(entries)

    def _save_data(self, name: str, data: object) -> None:
        """Numba's hook: write an entry behind a checksum of it."""
        content = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(_checksum(content) + content)

    def _load_data(self, name: str) -> Any:
        """Numba's hook: read an entry.

        Raises:
            ValueError: its checksum is wrong. Unpickling such an entry may succeed, and LLVM then ends the process.
        """
        return pickle.loads(checked(Path(self._data_path(name))))  # noqa: S301 - only this user can write it (hilsim.compilation.cache)


class _IndexWithBuilt(_Index):
    """Index of the cache, and of the kernels that the package was built with: their keys name their level instead of this processor."""

    def __init__(self, place: str, name: str, stamp: str, level: Path) -> None:
        super().__init__(place, name, stamp)
        self._built, self._level = _Index(str(level / stamp), name, stamp), level.name

    def load(self, key: Any) -> Any:
        """Load the entry of a key, from the cache if it is there; None if there is none."""
        found = super().load(key)
        if found is not None:
            return found
        signature, (triple, *_), code = key  # as Cache._index_key and CPUCodegen.magic_tuple make it
        return self._built.load((signature, (triple, self._level, ""), code))


def _checksum(content: bytes | memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=_CHECKSUM_SIZE).digest()


def checked(path: Path) -> memoryview:
    """Content of an entry whose checksum is right."""
    stored = path.read_bytes()
    content = memoryview(stored)[_CHECKSUM_SIZE:]
    if stored[:_CHECKSUM_SIZE] != _checksum(content):
        raise ValueError(f"{path.name} must have the checksum of its content")
    return content


def remove_damaged() -> int:
    """Remove all damaged entries of the current sources from a cache that can be written; returns their number."""
    damaged = 0
    for entry in (file for place in module_directories() for file in files_below(place) if file.suffix == ".nbc") if is_writable() else ():
        with suppress(FileNotFoundError):  # removed since
            try:
                checked(entry)
            except ValueError:
                entry.unlink()
                damaged += 1
    return damaged


def _text_of(key: object) -> str:
    """Digest of what a key looks like: equal keys have the same one, keys of different types hardly ever. An address in memory is no part of it."""
    return hashlib.sha256(re.sub("0x[0-9a-f]+", "", repr(key)).encode()).hexdigest()


def _name_of(key: object, alike: Any) -> str | None:
    """File of the entry of a key, among the pickled keys that look like it."""
    for kept, name in alike:
        with suppress(ImportError, AttributeError):  # a type of the same name, of a module that this process cannot import
            if pickle.loads(kept) == key:  # noqa: S301 - only this user can write it (hilsim.compilation.cache)
                return str(name)
    return None


class KernelCache(FunctionCache):
    """Numba's cache of a function, for several processes at once; an unreadable entry is compiled again instead of raising an error."""

    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        place, level = (self.cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()), built_directory()
        self._cache_file = _Index(*place) if level is None else _IndexWithBuilt(*place, level)

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
        if root is None or not is_writable():
            return
        try:
            with locked(root):
                super().save_overload(sig, data)
        except OSError as error:
            reason = f"kernels cannot be kept in {root}: {error.strerror}"
            if reason not in refusals:
                refusals.append(reason)

    def flush(self) -> None:
        """Remove the function's entries; where they cannot be removed, use none."""
        if not is_writable():
            self.disable()
            return
        try:
            with suppress(FileNotFoundError):  # it has none: the unreadable one is the package's
                super().flush()
        except OSError:
            self.disable()
