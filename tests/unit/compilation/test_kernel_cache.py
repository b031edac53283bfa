"""The cache of compiled kernels: whom it trusts, what is fresh, and several processes at once."""

import importlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

import hilsim
from hilsim.compilation import cache as kernel_cache
from hilsim.compilation.cache import claimed, is_claimed, prune, refusal, sources_hash

_PACKAGE = Path(hilsim.__file__).parent
_LEAP_DAY = "from hilsim.protocols.nmea import civil_date; civil_date(19782); print(dict(civil_date.stats.cache_hits) != {})"
_NOBODY = 65534


def run(code: str, place: Path, cache_home: Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "CACHE_DIRECTORY"))}
    environment |= {"PYTHONPATH": str(place), "XDG_CACHE_HOME": str(cache_home)}
    return subprocess.run([sys.executable, "-P", "-c", code], env=environment, cwd=place, capture_output=True, text=True, check=True, timeout=240)


@pytest.fixture
def two_copies(tmp_path: Path) -> list[Path]:
    places = [tmp_path / "a", tmp_path / "b"]
    for place in places:
        shutil.copytree(_PACKAGE, place / "hilsim", ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copyfile)
    return places


def test_a_second_installation_of_the_same_sources_compiles_nothing(tmp_path: Path, two_copies: list[Path]) -> None:
    first, second = (run(_LEAP_DAY, place, tmp_path / "cache").stdout.strip() for place in two_copies)
    assert (first, second) == ("False", "True")


def test_changed_sources_are_compiled_anew(tmp_path: Path, two_copies: list[Path]) -> None:
    run(_LEAP_DAY, two_copies[0], tmp_path / "cache")
    with (two_copies[1] / "hilsim" / "protocols" / "nmea.py").open("a") as source:
        source.write("\n# another version\n")
    assert run(_LEAP_DAY, two_copies[1], tmp_path / "cache").stdout.strip() == "False"


def cut(content: bytes) -> bytes:
    return content[:100]


def flipped(content: bytes) -> bytes:
    return bytes(byte ^ (place % 997 == 500) for place, byte in enumerate(content))


def damage(entries: Iterable[Path], how: Callable[[bytes], bytes]) -> int:
    return len([entry.write_bytes(how(entry.read_bytes())) for entry in entries])


@pytest.mark.extended
@pytest.mark.parametrize("how", [cut, flipped])
def test_a_damaged_entry_is_compiled_again_and_reported(tmp_path: Path, two_copies: list[Path], how: Callable[[bytes], bytes]) -> None:
    run(_LEAP_DAY, two_copies[0], tmp_path / "cache")
    assert damage((tmp_path / "cache").rglob("*civil_date*.nbc"), how)
    told = _LEAP_DAY + "; import hilsim.compilation.cache as c; print(c.refusals)"
    lines = run(told, two_copies[0], tmp_path / "cache").stdout.splitlines()
    assert lines[0] == "False"
    assert "cannot be read" in lines[1]
    assert run(_LEAP_DAY, two_copies[0], tmp_path / "cache").stdout.strip() == "True"


def test_damaged_entries_are_found_without_loading_them(tmp_path: Path, two_copies: list[Path]) -> None:
    run(_LEAP_DAY, two_copies[0], tmp_path / "cache")
    count = damage((tmp_path / "cache").rglob("*civil_date*.nbc"), flipped)
    find = "from hilsim.compilation.function_cache import remove_damaged; print(remove_damaged())"
    assert [int(run(find, two_copies[0], tmp_path / "cache").stdout) for _ in range(2)] == [count, 0]
    assert [run(_LEAP_DAY, two_copies[0], tmp_path / "cache").stdout.strip() for _ in range(2)] == ["False", "True"]


def test_a_directory_that_cannot_be_written_is_read(tmp_path: Path, two_copies: list[Path]) -> None:
    def files() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*")}

    run(_LEAP_DAY, two_copies[0], tmp_path / "cache")
    before = files()
    read_only = f"import os; access = os.access; os.access = lambda path, mode: mode != os.W_OK and access(path, mode); {_LEAP_DAY}"
    assert run(read_only, two_copies[0], tmp_path / "cache").stdout.strip() == "True"
    with (two_copies[1] / "hilsim" / "protocols" / "nmea.py").open("a") as source:
        source.write("\n# another version\n")
    assert run(read_only, two_copies[1], tmp_path / "cache").stdout.strip() == "False"
    assert files() == before


def test_without_a_place_for_kernels_that_is_said_before_they_are_compiled(tmp_path: Path, two_copies: list[Path]) -> None:
    result = run("import os; del os.environ['XDG_CACHE_HOME'], os.environ['HOME']; " + _LEAP_DAY, two_copies[0], tmp_path / "cache")
    assert result.stderr == (
        "kernels are kept nowhere: XDG_CACHE_HOME must name a directory for them, got none, and no HOME;"
        " so all are compiled now, and at each start, which takes minutes\n"
    )


@pytest.mark.extended
def test_kernels_for_the_types_of_a_plugin_are_kept_and_those_of_others_too_where_the_plugin_is_missing(
    tmp_path: Path, two_copies: list[Path]
) -> None:
    """``_stay`` returns its second argument, whatever the first one is."""
    plugin = two_copies[0] / "stranger.py"
    plugin.write_text("from typing import NamedTuple\nclass Own(NamedTuple):\n    number: int\n")
    stay = "from hilsim.emulator.families.own import _stay; import hilsim.compilation.cache as c; {}; print(dict(_stay.stats.cache_hits) != {{}}, c.refusals)"
    with_plugin, without = stay.format("from stranger import Own; _stay(Own(1), 2.0, 3, 4)"), stay.format("_stay(1, 2.0, 3, 4)")

    def found(code: str) -> str:
        return run(code, two_copies[0], tmp_path / "cache").stdout.strip()

    assert [found(with_plugin), found(without), found(with_plugin)] == ["False []", "False []", "True []"]
    hidden = plugin.rename(tmp_path / "stranger.py")
    assert found(without) == "True []"
    hidden.rename(plugin)
    assert found(with_plugin) == "True []"


@pytest.mark.extended
def test_processes_that_compile_different_signatures_at_once_keep_both(tmp_path: Path, two_copies: list[Path]) -> None:
    """Numba numbers an index's entries without looking at other processes: each would take the first number for its own."""
    code = (
        "import sys, time, pathlib, numpy as np; from hilsim.rng import uniform; import hilsim.rng as d; from hilsim.compilation.jit import kernel\n"
        "from hilsim.protocols.nmea import civil_date\n"
        "begin = pathlib.Path(sys.argv[1])\n"
        "while not begin.exists(): time.sleep(0.001)\n"
        "print(civil_date(np.dtype(sys.argv[2]).type(19782)))\n"
    )
    kinds = ["int64", "int32", "uint32", "int16"]
    environment = os.environ | {"PYTHONPATH": str(two_copies[0]), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("NUMBA_CACHE_DIR", None)
    begin = tmp_path / "begin"
    command = [sys.executable, "-P", "-c", code, str(begin)]
    children = [subprocess.Popen([*command, kind], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True) for kind in kinds]
    begin.touch()
    assert {child.communicate(timeout=240)[0].strip() for child in children} == {"(2024, 2, 29)"}
    for kind in kinds:
        again = f"import numpy as np; from hilsim.protocols.nmea import civil_date; print(civil_date(np.{kind}(19782)), dict(civil_date.stats.cache_hits) != {{}})"
        assert run(again, two_copies[0], tmp_path / "cache").stdout.strip() == "(2024, 2, 29) True"


def test_a_directory_of_ours_is_made_private(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir(mode=0o755)
    assert not refusal(tmp_path / "kernels")
    assert (tmp_path / "kernels").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["kernels", "."])
def test_a_directory_that_others_can_write_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / name).chmod(0o777)
    assert "must not be writable by group or others, got mode 0777" in refusal(tmp_path / "kernels")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
@pytest.mark.parametrize("name", ["kernels", "."])
def test_a_directory_of_another_user_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "kernels").mkdir()
    os.chown(tmp_path / name, _NOBODY, _NOBODY)
    assert "got user 65534" in refusal(tmp_path / "kernels")
    os.chown(tmp_path / name, 0, 0)


def test_a_place_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "File exists" in refusal(tmp_path / "file" / "kernels")


def test_few_versions_of_a_module_are_kept_and_no_more_than_a_size_in_all(tmp_path: Path) -> None:
    for number, name in enumerate(["m.a-1", "m.b-1", "m.a-2", "m.a-3", "m.a-4"]):
        place = tmp_path / name
        place.mkdir()
        (place / "x.nbc").write_bytes(bytes(1000))
        os.utime(place, (1000 + number, 1000 + number))
    prune(tmp_path, keep_per_module=3)
    assert {place.name for place in tmp_path.iterdir()} == {"m.b-1", "m.a-2", "m.a-3", "m.a-4"}
    prune(tmp_path, keep_bytes=2500)
    assert {place.name for place in tmp_path.iterdir()} == {"m.a-3", "m.a-4"}


@pytest.fixture
def other_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[str]]:
    """One that has claimed "a kernel" until its standard input is closed; it and this one share a cache."""
    for name in ("NUMBA_CACHE_DIR", "CACHE_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernel_cache.cache_directory.cache_clear()
    kernel_cache._claims.cache_clear()
    code = "import sys; from hilsim.compilation.cache import claimed\nwith claimed('a kernel'): print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
    kernel_cache.cache_directory.cache_clear()
    kernel_cache._claims.cache_clear()


def test_a_kernel_compiled_by_another_process_is_claimed_until_that_process_ends(other_process: subprocess.Popen[str]) -> None:
    assert is_claimed("a kernel")
    assert not is_claimed("another kernel")
    other_process.kill()
    other_process.wait()
    assert not is_claimed("a kernel")
    with claimed("a kernel"):
        pass


def test_the_wait_for_a_stalled_process_is_bounded(other_process: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    other_process.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(kernel_cache, "CLAIM_S", 0.1)
    with claimed("a kernel"):
        assert is_claimed("a kernel")  # it has not given it up
    other_process.send_signal(signal.SIGCONT)


def test_kernels_of_another_distribution_change_with_each_source_of_their_package(tmp_path, monkeypatch):
    folder = tmp_path / "stranger_kernels"
    (folder / "inner").mkdir(parents=True)
    for name in ("__init__.py", "family.py", "inner/__init__.py", "inner/protocol.py"):
        (folder / name).write_text("SIZE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("stranger_kernels.family")
    before = sources_hash("stranger_kernels.family")
    assert sources_hash("stranger_kernels.family") == before
    (folder / "inner" / "protocol.py").write_text("SIZE = 2\n")
    assert sources_hash("stranger_kernels.family") != before
    monkeypatch.delitem(sys.modules, "stranger_kernels.family")
    monkeypatch.delitem(sys.modules, "stranger_kernels")


def test_directories_that_another_process_removes_meanwhile_are_left_out(tmp_path):
    for name in ("first", "second", "third"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.nbi").write_bytes(b"12345")
    files = kernel_cache.files_below(tmp_path)
    assert next(files).name == "index.nbi"
    shutil.rmtree(tmp_path)
    assert list(files) == []
    assert kernel_cache.stored_bytes(tmp_path) == 0
