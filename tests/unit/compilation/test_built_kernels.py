"""Kernels that a package was built with: for which processors they are used, whom they are trusted from, and what happens to damaged ones."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest

import hilsim
from hilsim.compilation import cache as kernel_cache
from hilsim.compilation.cache import LEVELS, levels_here

ROOT = Path(__file__).resolve().parents[3]
LEAP_DAY = (
    "from hilsim.protocols.nmea import civil_date; import hilsim.compilation.cache as c; civil_date(19782);"
    " print(dict(civil_date.stats.cache_hits) != {}, c.refusals)"
)
GENERIC = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}


def run(code: str, package: Path, **variables: str) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "CACHE_DIRECTORY", "XDG_CACHE_HOME"))}
    environment |= {"PYTHONPATH": str(package.parent)} | variables
    command = [sys.executable, "-P", "-c", code]
    return subprocess.run(command, env=environment, cwd=package.parent, capture_output=True, text=True, check=True, timeout=240).stdout.strip()


def files(place: Path) -> set[str]:
    return {path.name for path in place.rglob("*.nb?")}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with a kernel for any processor."""
    place = tmp_path_factory.mktemp("generic")
    run(LEAP_DAY, Path(hilsim.__file__).parent, XDG_CACHE_HOME=str(place), **GENERIC)
    return place / "hilsim" / "kernels"


@pytest.fixture
def package(tmp_path: Path, kernels: Path) -> Path:
    """A copy of hilsim that was built with that kernel."""
    package = tmp_path / "installed" / "hilsim"
    shutil.copytree(hilsim.__path__[0], package, ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copyfile)
    shutil.copytree(kernels, package / "_kernels" / "generic")
    return package


def test_they_are_read_where_the_cache_has_none_and_nothing_is_compiled(package: Path, tmp_path: Path) -> None:
    before = files(package)
    assert run(LEAP_DAY, package, XDG_CACHE_HOME=str(tmp_path / "cache")) == "True []"
    assert files(tmp_path / "cache") == set()
    assert files(package) == before


def test_they_are_read_where_no_cache_is_trusted(package: Path, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    assert run(LEAP_DAY, package, XDG_CACHE_HOME=str(tmp_path / "open")).startswith("True ['kernels are not kept in ")
    assert files(tmp_path / "open") == set()


@pytest.mark.parametrize(("chosen", "found"), [(GENERIC, "True []"), ({"NUMBA_CPU_NAME": "x86-64"}, "False []")])
def test_a_processor_that_variables_choose_has_those_of_its_level_alone(package: Path, tmp_path: Path, chosen: dict[str, str], found: str) -> None:
    assert run(LEAP_DAY, package, XDG_CACHE_HOME=str(tmp_path / "cache"), **chosen) == found


def test_those_that_more_users_can_write_than_the_sources_are_refused(package: Path, tmp_path: Path) -> None:
    (package / "_kernels").chmod(0o777)
    said = run(LEAP_DAY, package, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert said.startswith("False")
    assert "it must have the owner of" in said


@pytest.mark.extended
def test_a_damaged_one_is_compiled_again_and_kept_in_the_cache(package: Path, tmp_path: Path) -> None:
    for entry in package.rglob("*civil_date*.nbc"):
        entry.write_bytes(entry.read_bytes()[:-1] + b"?")
    said = [run(LEAP_DAY, package, XDG_CACHE_HOME=str(tmp_path / "cache")) for _ in range(2)]
    assert said[0].startswith("False ['kernels kept in ")
    assert said[1] == "True []"


@pytest.mark.parametrize(
    ("missing", "level"),
    [((), "x86-64-v4"), (("avx512vl",), "x86-64-v3"), (("avx512f", "bmi2"), "generic"), (tuple(LEVELS["x86-64-v4"]), "generic")],
)
def test_the_best_level_whose_features_a_processor_has_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: tuple[str, ...], level: str
) -> None:
    features = {name: name not in missing for needed in LEVELS.values() for name in needed}
    for each in LEVELS:
        (tmp_path / each).mkdir()
    for name in ("CPU_NAME", "CPU_FEATURES"):
        monkeypatch.setattr(kernel_cache.numba.config, name, None)
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: features)
    monkeypatch.setattr(kernel_cache, "_PACKAGE", tmp_path)
    monkeypatch.setattr(kernel_cache, "_BUILT", tmp_path)
    kernel_cache.built_directory.cache_clear()
    assert kernel_cache.built_directory() == tmp_path / level
    kernel_cache.built_directory.cache_clear()


@pytest.mark.extended
@pytest.mark.timeout(1000)  # compiles every kernel of the golden streams
@pytest.mark.parametrize("level", LEVELS)
def test_kernels_of_each_level_give_the_golden_bytes(level: str) -> None:
    """Where numbers were rounded otherwise, an image and a wheel would send other packets than a checkout."""
    if level not in levels_here():
        pytest.skip(f"this processor has no {level}")
    variables = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "tests/golden"]
    ran = subprocess.run(command, env=os.environ | variables, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)
    assert ran.returncode == 0, ran.stdout
