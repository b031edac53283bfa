"""The only module that calls Numba's decorators, and the keeper of the compiled-kernel cache.

Why a module of its own: typing (``mypy --strict`` needs no ignores elsewhere), one place for the flags every kernel must have (``nogil``), and
a cache that can neither kill nor mislead the daemon:

- Numba raises ``RuntimeError`` at import when ``cache=True`` finds no writable directory, even if the cache is warm. Then kernels are compiled
  in memory instead.
- Numba's cache looks only at the file a kernel stands in. A kernel that inlines another one from a changed file would be served stale, so
  each module gets a directory named by the hash of its own source and of every ``hilsim`` module it imports, transitively.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

os.environ.setdefault("NUMBA_OPT", "1")  # read by Numba when it is imported: a quarter off compiling, 2 % off casting rays (bench_render.py)

import numba
import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

_KEEP_CACHE_DIRECTORIES_PER_MODULE = 3
_PACKAGE = Path(__file__).resolve().parent
_IMPORT = re.compile(r"^\s*from (hilsim[\w.]*) import (\([^)]*\)|[^\n#]*)", re.MULTILINE)


def _candidates() -> list[Path]:
    """Where compiled kernels may live, best first: the operator's word, systemd's CacheDirectory=, the user's cache."""
    places = []
    if os.environ.get("NUMBA_CACHE_DIR"):
        places.append(Path(os.environ["NUMBA_CACHE_DIR"]))
    if os.environ.get("CACHE_DIRECTORY"):
        places.append(Path(os.environ["CACHE_DIRECTORY"].split(":")[0]))
    base = os.environ.get("XDG_CACHE_HOME")
    home = Path(base) if base else Path(os.environ.get("HOME", "/nonexistent")) / ".cache"
    places.append(home / "hilsim")
    return places


def _is_writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


@cache
def cache_directory() -> Path | None:
    """The writable directory for compiled kernels, or None when there is none (kernels are then compiled at each start)."""
    return next((place / "kernels" for place in _candidates() if _is_writable(place / "kernels")), None)


@cache
def _source_closure(module: str) -> frozenset[tuple[str, str]]:
    """(module, source hash) of a hilsim module and of every hilsim module it imports, transitively."""
    seen: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen[name], imported = _source_and_imports(name)
            waiting.extend(imported)
    return frozenset(seen.items())


@cache
def _source_and_imports(module: str) -> tuple[str, tuple[str, ...]]:
    """Hash of a hilsim module's source, and the hilsim modules it imports. A regular expression, because parsing 60 modules takes 0.15 s of a start."""
    place = _PACKAGE.parent.joinpath(*module.split("."))
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    source = path.read_bytes()
    imported = []
    for base, names in _IMPORT.findall(source.decode()):
        imported.append(base)
        parts = (part.split(" as ")[0].strip() for part in names.strip("()").split(","))
        imported.extend(f"{base}.{part}" for part in parts if _PACKAGE.parent.joinpath(*base.split("."), f"{part}.py").is_file())
    return hashlib.sha256(source).hexdigest(), tuple(imported)


@cache
def _module_cache_directory(module: str) -> str | None:
    root = cache_directory()
    if root is None or not module.startswith("hilsim"):
        return None
    digest = hashlib.sha256(repr(sorted(_source_closure(module))).encode()).hexdigest()[:16]
    place = root / f"{module}-{digest}"
    if not place.is_dir():
        _prune(root, module)
    return str(place)


def _prune(root: Path, module: str) -> None:
    """Drop the oldest directories of a module's former sources: kernels are about 1 MB a version."""
    former = sorted((entry for entry in root.glob(f"{module}-????????????????") if entry.is_dir()), key=lambda entry: entry.stat().st_mtime)
    for entry in former[: -_KEEP_CACHE_DIRECTORIES_PER_MODULE or None]:
        shutil.rmtree(entry, ignore_errors=True)


def constant(value: int) -> int:
    """An integer constant for kernels that does not multiply them: for each plain Python constant it is passed, Numba compiles a copy of the callee."""
    return cast("int", np.int64(value))


def kernel(function: F) -> F:
    """Compile a kernel for the CPU: ``nopython``, without the GIL, division by zero as in NumPy, cached on disk where a directory is writable.

    With ``NUMBA_DISABLE_JIT=1`` the plain Python function is returned, so that coverage can see it.
    """
    place = _module_cache_directory(function.__module__)
    if place is not None:
        numba.config.CACHE_DIR = place
    compiled: F = numba.njit(nogil=True, cache=place is not None, error_model="numpy")(function)
    return compiled


def inlined_kernel(function: F) -> F:
    """A kernel that becomes part of each kernel that calls it, before compiling.

    For what only strings other kernels together: each level of calls costs seconds of linking and optimising all that is below it once more.
    """
    place = _module_cache_directory(function.__module__)
    if place is not None:
        numba.config.CACHE_DIR = place
    compiled: F = numba.njit(nogil=True, cache=place is not None, error_model="numpy", inline="always")(function)
    return compiled


@inlined_kernel
def signed(value: Any) -> Any:
    """A packet's unsigned field as a number to calculate with: Numba makes a float of what mixes unsigned and signed 64 bits."""
    return np.int64(value)


def module_is_compiled(module: str) -> bool:
    """Whether a module's kernels are in the cache on disk; also True when there is no cache they could be in."""
    place = _module_cache_directory(module)
    return place is None or any(Path(place).rglob("*.nbi"))
