"""The cache of compiled kernels on disk: trusted directories, freshness of entries, and sharing between processes.

A cache entry is a pickle with machine code, so any user who can write it can run code in this process. A directory is therefore used only if it belongs to this user alone
(mode 0700) and only this user and root can replace it. Rejected directories are always listed in ``refusals``. One that this user cannot write, because it is
root's or on a read-only file system, is used for reading.

Numba's own freshness rules check the one file that contains a kernel, its time stamp and its installation directory. A kernel that
inlines another one from a changed file would be outdated, and each clone or environment would compile anew. Here each module has a directory
named by the hash of its own source, of every ``hilsim`` module that it imports, transitively, of the versions of Python and Numba, of the compiler and of whether it checks bounds:
equal sources use the same kernels in any installation.

A built package may contain kernels (``python -m tools.kernels``), compiled for a level of processors instead of one. They are read where the cache has none.
"""

import fcntl
import hashlib
import inspect
import logging
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType

import llvmlite.binding as llvm
import numba

from hilsim.compilation.internals import unknown_internals

KEEP_DIRECTORIES_PER_MODULE = 3
"""Number of versions of one module's sources to keep: a checkout and an installed release can alternate without compiling."""
KEEP_BYTES = 256_000_000
"""Maximum size of all kernels: some 20 complete versions; the oldest are removed first."""

CLAIM_S = 120.0
"""Timeout for another process's compilation: more than any one kernel takes, on a busy machine too."""

LEVELS = MappingProxyType(
    {
        "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
        "x86-64-v3": ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
        "generic": (),
    }
)
"""Levels of processors for which a package may contain kernels, best first: LLVM's names, and the features that each requires beyond those of every x86-64
(System V psABI for x86-64, table 3.1; SSE is implied)."""

_CLAIM_POLL_S = 0.01
_PACKAGE = Path(__file__).resolve().parents[1]
_BUILT = _PACKAGE / "_kernels"
_IMPORT = re.compile(r"^\s*from (hilsim[\w.]*) import (\([^)]*\)|[^\n#]*)", re.MULTILINE)
_PRIVATE = 0o700

_LOGGER = logging.getLogger(__name__)

refusals: list[str] = []
"""Reasons that a directory is not used or an entry could not be written, one sentence each, appended as they occur."""


def candidates() -> list[Path]:
    """Candidate directories for compiled kernels, best first: the operator's setting, systemd's CacheDirectory=, the user's cache."""
    places = []
    if os.environ.get("NUMBA_CACHE_DIR"):
        places.append(Path(os.environ["NUMBA_CACHE_DIR"]))
    if os.environ.get("CACHE_DIRECTORY"):
        places.append(Path(os.environ["CACHE_DIRECTORY"].split(":")[0]))
    base = os.environ.get("XDG_CACHE_HOME")
    if base or os.environ.get("HOME"):
        places.append((Path(base) if base else Path(os.environ["HOME"]) / ".cache") / "hilsim")
    return places


@cache
def cache_directory() -> Path | None:
    """Directory for compiled kernels, or None when none is trusted (kernels are then compiled at each start, which is logged)."""
    places = candidates()
    if not places:
        refusals.append("kernels are kept nowhere: XDG_CACHE_HOME must name a directory for them, got none, and no HOME")
    for place in places:
        directory = place / "kernels"
        reason = refusal(directory)
        if not reason:
            return directory.resolve()
        if reason not in refusals:
            refusals.append(reason)
    if (built := built_directory()) is not None:
        return built
    _LOGGER.warning("%s; so all are compiled now, and at each start, which takes minutes", "; ".join(refusals))
    return None


@cache
def built_directory() -> Path | None:
    """Directory of the kernels that this package was built with, for the best level that this processor has, or the one that Numba's variables choose.

    Its name is the level. It is trusted as the sources beside it are: its owner is theirs, and no more users can write it. None where there is none.
    """
    if not _BUILT.is_dir() or unknown_internals():
        return None
    package, found = _PACKAGE.stat(), _BUILT.stat()
    if found.st_uid != package.st_uid or found.st_mode & ~package.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        refusals.append(f"kernels in {_BUILT} are not used: it must have the owner of {_PACKAGE}, and no more users that can write it")
        return None
    chosen = (numba.config.CPU_NAME, numba.config.CPU_FEATURES)
    levels = levels_here() if chosen == (None, None) else [level for level in LEVELS if (level, "") == chosen]
    return next((place for level in levels if (place := _BUILT / level).is_dir()), None)


def levels_here() -> list[str]:
    """Levels that this processor has, best first."""
    features = llvm.get_host_cpu_features()
    return [level for level, needed in LEVELS.items() if all(features.get(name) for name in needed)]


@cache
def is_writable() -> bool:
    """Whether kernels that are compiled can be kept for the next start."""
    root = cache_directory()
    return root is not None and root != built_directory() and root.stat().st_uid == os.geteuid() and os.access(root, os.W_OK)


def refusal(directory: Path) -> str:
    """Reason that a directory must not contain kernels, empty if it may; a missing directory is created, private to this user."""
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        directory.mkdir(mode=_PRIVATE, exist_ok=True)
        place = directory.resolve(strict=True)
        for ancestor in place.parents:
            reason = _foreign_hands(ancestor, ancestor.stat())
            if reason:
                return f"kernels are not kept in {directory}: {reason}"
        found = place.stat()
        reason = _foreign_hands(place, found)
        if reason:
            return f"kernels are not kept in {directory}: {reason}, and be emptied"
        if found.st_uid != os.geteuid() or not os.access(place, os.W_OK):
            is_readable = os.access(place, os.R_OK | os.X_OK)
            return "" if is_readable else f"kernels are not kept in {directory}: it must be readable by user {os.geteuid()}"
        place.chmod(_PRIVATE)  # older versions created it with the umask
        _lock_file(place).touch(mode=0o600)
    except OSError as error:
        return f"kernels are not kept in {directory}: {error.strerror}"
    return ""


def _foreign_hands(path: Path, found: os.stat_result) -> str:
    """Reason that another user could replace the contents of a directory; empty if only root and this user can."""
    if found.st_uid not in {0, os.geteuid()}:
        return f"{path} must belong to root or to user {os.geteuid()}, got user {found.st_uid}"
    is_open = bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    if is_open and not found.st_mode & stat.S_ISVTX:
        return f"{path} must not be writable by group or others, got mode {stat.S_IMODE(found.st_mode):04o} (chmod go-w {path})"
    return ""


def _lock_file(root: Path) -> Path:
    return root / "lock"


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Lock the index for one process: two that assign the same number to different entries would mix up their code."""
    with _lock_file(root).open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


@contextmanager
def claimed(what: str, wait_s: float | None = None) -> Iterator[None]:
    """Compile one object, identified by ``what``, in one process at a time: other processes wait here, and then find it in the cache.

    The compiling process may make further claims meanwhile. Kernels have no circular calls, so processes do not deadlock; the claims of a process end with
    it, and the wait for one that does not continue (it may be stopped) is limited to ``wait_s`` (``CLAIM_S``).
    """
    root = cache_directory()
    if root is None or not is_writable():
        yield
        return
    descriptor, place = _claims(root), _place(what)
    end_s = time.monotonic() + (CLAIM_S if wait_s is None else wait_s)
    while not _taken(descriptor, place) and time.monotonic() < end_s:
        time.sleep(_CLAIM_POLL_S)
    try:
        yield
    finally:
        fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, place)


def is_claimed(what: str) -> bool:
    """Whether another process is compiling it."""
    root = cache_directory()
    if root is None or not is_writable():
        return False
    descriptor, place = _claims(root), _place(what)
    is_free = _taken(descriptor, place)
    if is_free:
        fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, place)
    return not is_free


def _place(what: str) -> int:
    """Offset of the byte that is locked; no byte is written."""
    return int.from_bytes(hashlib.sha256(what.encode()).digest()[:7], "big")


@cache
def _claims(root: Path) -> int:
    """Descriptor of the file with the claimed bytes. It stays open: closing it would release all of the process's claims."""
    return os.open(root / "claims", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _taken(descriptor: int, place: int) -> bool:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except OSError:  # locked by another process
        return False
    return True


# -- what is fresh -------------------------------------------------------------------------------------------------------------------------


@cache
def source_closure(module: str) -> frozenset[tuple[str, str]]:
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
def _sources() -> dict[str, str]:
    """Files of the hilsim modules, by name."""
    root = str(_PACKAGE.parent)
    found = {}
    for directory, folders, files in os.walk(_PACKAGE):
        folders[:] = {*folders} - {_BUILT.name, "__pycache__"}
        package = directory[len(root) + 1 :].replace(os.sep, ".")
        for file in files:
            if file.endswith(".py"):
                found[package if file == "__init__.py" else f"{package}.{file[:-3]}"] = f"{directory}{os.sep}{file}"
    return found


@cache
def _source_and_imports(module: str) -> tuple[str, tuple[str, ...]]:
    """Hash of a hilsim module's source, and the hilsim modules it imports. It uses a regular expression, because parsing 60 modules takes 0.15 s of a start."""
    sources = _sources()
    with open(sources[module], "rb") as file:  # noqa: PTH123 - a path of Path's is three times as slow, for 260 modules
        source = file.read()
    imported = []
    for base, names in _IMPORT.findall(source.decode()):
        imported.append(base)
        parts = (f"{base}.{part.split(' as ')[0].strip()}" for part in names.strip("()").split(","))
        imported.extend(part for part in parts if part in sources)
    return hashlib.sha256(source).hexdigest(), tuple(imported)


def sources_hash(*modules: str) -> str:
    """Hash of the sources that modules' kernels consist of: of hilsim's the modules and all that they import, of others' their whole packages."""
    known = sorted({each for module in modules if module in _sources() for each in source_closure(module)})
    files = {file for module in modules if module not in _sources() for file in _package_files(module)}
    foreign = [hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(files)]
    return hashlib.sha256(repr((known, foreign)).encode()).hexdigest()[:16]


def _package_files(module: str) -> list[Path]:
    """Sources of the package that a module of another distribution is in: a kernel may call any function of it."""
    top = sys.modules[module.partition(".")[0]]
    if hasattr(top, "__path__"):
        return [file for place in top.__path__ for file in Path(place).rglob("*.py")]
    return [Path(inspect.getsourcefile(top) or "")]


@cache
def module_directory(module: str) -> Path | None:
    """Directory of the kernels of a hilsim module's current sources; None for other modules, and without a cache."""
    root = cache_directory()
    if root is None or module not in _sources():
        return None
    versions = (sys.implementation.cache_tag, numba.__version__)
    what = repr((*versions, bool(numba.config.BOUNDSCHECK), bool(unknown_internals()), sorted(source_closure(module))))
    return root / f"{module}-{hashlib.sha256(what.encode()).hexdigest()[:16]}"


def kernel_directories(module: str) -> list[Path]:
    """Directories that may contain kernels of a hilsim module's current sources: in the cache, then in the package."""
    place, built = module_directory(module), built_directory()
    return [] if place is None else [place] if built is None else [place, built / place.name]


def make_directory(place: Path) -> None:
    """Make a module's directory; another version's may be removed for it."""
    if not place.is_dir():
        place.mkdir(mode=_PRIVATE, exist_ok=True)
        prune(place.parent)


def module_directories() -> list[Path]:
    """Directories of the kernels of all hilsim modules' current sources; empty without a cache."""
    return [place for module in _sources() if (place := module_directory(module)) is not None]


def prune(root: Path, *, keep_bytes: int = KEEP_BYTES, keep_per_module: int = KEEP_DIRECTORIES_PER_MODULE) -> None:
    """Remove the oldest directories of former sources: beyond a number per module, and beyond a total size."""
    places = [place for _, place in sorted(_with_times(root), reverse=True)]
    kept: dict[str, int] = {}
    total_bytes = 0
    for place in places:
        module = place.name.rpartition("-")[0]
        kept[module] = kept.get(module, 0) + 1
        total_bytes += stored_bytes(place)
        if kept[module] > keep_per_module or total_bytes > keep_bytes:
            shutil.rmtree(place, ignore_errors=True)


def _with_times(root: Path) -> list[tuple[float, Path]]:
    """Directories below another with their times of change."""
    found = []
    for entry in root.iterdir():
        with suppress(FileNotFoundError):  # removed by another process
            if entry.is_dir():
                found.append((entry.stat().st_mtime, entry))
    return found


def files_below(place: Path) -> Iterator[Path]:
    """All files below a directory; other processes may remove some meanwhile."""
    return (Path(folder, name) for folder, _, names in os.walk(place) for name in names)


def stored_bytes(place: Path) -> int:
    """Size of all files below a directory; other processes may remove some meanwhile."""
    total = 0
    for file in files_below(place):
        with suppress(FileNotFoundError):
            total += file.stat().st_size
    return total


def module_is_compiled(module: str) -> bool:
    """Whether a module's kernels are in the cache on disk or in the package; also True when there is no cache they could be in."""
    places = kernel_directories(module)
    return not places or any(file.suffix == ".nbi" for place in places for file in files_below(place))
