"""A run of all tests takes a second look at what failed, and no fault passes by it."""

import os
import sys
from pathlib import Path

import pytest

from tests.runs import __main__ as runs
from tests.runs import failures

ROOT = Path(__file__).resolve().parents[3]
UNSTEADY = (
    "def test_{0}():\n    from pathlib import Path\n    mark = Path(__file__).with_suffix('.{0}')\n"
    "    if not mark.exists():\n        mark.touch()\n        assert False, 'the first time'\n    mark.unlink()\n\n"
)
"""A test that fails every second time."""


@pytest.fixture
def whole_run(tmp_path, monkeypatch, capfd):
    """Runs groups of test files, given by their text, as ``make test`` does; gives the exit code and what was printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # loading all plug-ins of pytest is a third of a short run
    (tmp_path / "conftest.py").write_text("from tests.conftest import *  # noqa: F403\n")

    def run(*texts, more=(), environment=None):
        for name, value in (environment or {}).items():
            monkeypatch.setenv(name, value)
        lanes = []
        for number, text in enumerate(texts):
            path = tmp_path / (text if text.endswith(".py") else f"test_inner_{number}.py")
            if not text.endswith(".py"):
                path.write_text(text)
            command = (
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                *more,
                "--rootdir",
                str(tmp_path),
                str(path.relative_to(tmp_path)),
            )
            lanes.append((runs.Group(f"group {number}", command),))
        code = runs.main(tuple(lanes))
        return code, capfd.readouterr().out

    return run


IN_TWO = ("-p", "xdist.plugin", "--numprocesses=2")
ALONE_AND_IN_TWO = pytest.mark.parametrize("more", [(), IN_TWO], ids=["alone", "in two"])


@ALONE_AND_IN_TWO
def test_a_test_that_passes_alone_is_listed_as_unsteady_and_the_run_passes(whole_run, more):
    code, output = whole_run(UNSTEADY.format("a"), "def test_b():\n    pass\n", more=more)
    assert code == 0, output
    assert "1 unsteady" in output
    assert "test_inner_0.py::test_a" in output.partition("1 unsteady")[2]
    assert "first failure: AssertionError: the first time" in output
    assert "longest standstill of the machine while it ran: " in output


def test_a_test_that_fails_every_second_time_is_listed_in_every_run(whole_run):
    for _ in range(2):
        code, output = whole_run(UNSTEADY.format("a"))
        assert code == 0, output
        assert "test_inner_0.py::test_a" in output.partition("1 unsteady")[2]


def test_three_unsteady_tests_pass_and_a_fourth_fails_the_run(whole_run):
    three = "".join(UNSTEADY.format(name) for name in "abc")
    assert whole_run(three)[0] == 0
    code, output = whole_run("".join(UNSTEADY.format(name) for name in "efgh"))
    assert code == 1
    assert "4 unsteady" in output


@ALONE_AND_IN_TWO
def test_a_test_that_fails_again_fails_the_run(whole_run, more):
    code, output = whole_run(UNSTEADY.format("a") + "def test_b():\n    assert 1 == 2\n", more=more)
    assert code == 1
    assert "FAILED test_inner_0.py::test_b: assert 1 == 2" in output


def test_a_property_has_no_second_look(whole_run):
    text = "from hypothesis import given, strategies\n\n@given(strategies.none())\n" + UNSTEADY.format("a").replace("test_a()", "test_a(_)")
    code, output = whole_run(text, more=("-p", "_hypothesis_pytestplugin"))
    assert code == 1
    assert "unsteady" not in output


def test_kernels_as_python_have_no_second_look(whole_run):
    code, output = whole_run(UNSTEADY.format("a"), environment={"NUMBA_DISABLE_JIT": "1"})
    assert code == 1
    assert "unsteady" not in output


def test_golden_bytes_have_no_second_look(whole_run, tmp_path):
    golden = tmp_path / "tests" / "golden"
    golden.mkdir(parents=True)
    (golden / "test_inner.py").write_text(UNSTEADY.format("a"))
    code, output = whole_run("tests/golden/test_inner.py")
    assert code == 1
    assert "unsteady" not in output


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import os\n\ndef test_a():\n    os._exit(0)\n", "ended with exit code 0, and no failed test explains it"),
        ("import os\n\ndef test_a():\n    os._exit(1)\n", "ended with exit code 1, and no failed test explains it"),
        ("import nothing_of_this_name\n", "could not be collected"),
        ("import subprocess\n\ndef test_a():\n    subprocess.Popen(['sleep', '60']).returncode = 0\n", "left behind: process "),
        ("", "ended with exit code 5"),
    ],
    ids=["ends silently", "dies", "is not collected", "leaves a process", "holds no test"],
)
def test_an_unexplained_failure_fails_the_run(whole_run, text, says):
    code, output = whole_run(text)
    assert code == 1
    assert says in output.rpartition("skipped")[2]


def test_a_worker_that_dies_of_a_test_fails_the_run(whole_run):
    text = (
        "import os, pathlib\n\ndef test_a():\n    mark = pathlib.Path('mark')\n    if not mark.exists():\n        mark.touch()\n        os._exit(3)\n"
    )
    code, output = whole_run(text, more=IN_TWO)
    assert code == 1
    assert "crashed" in output.rpartition("skipped")[2]


def test_a_test_that_only_skips_when_it_is_looked_at_again_has_failed(whole_run):
    text = UNSTEADY.format("a").rstrip("\n") + "\n    import pytest\n    pytest.skip('not now')\n"
    code, output = whole_run(text)
    assert code == 1
    assert "FAILED test_inner_0.py::test_a" in output


def test_runs_that_tests_start_write_nothing_into_the_folder_of_the_run(tmp_path, monkeypatch, whole_run):
    monkeypatch.setenv(failures.FOLDER, str(tmp_path / "outer"))
    code, output = whole_run(f"import os\n\ndef test_a():\n    assert {failures.FOLDER!r} not in os.environ\n")
    assert code == 0, output
    assert not (tmp_path / "outer").exists()
    assert os.environ[failures.FOLDER]


class Still:
    """A machine that stood still in its first ``looks``."""

    def __init__(self, looks):
        self.looks = looks

    def longest_ns(self, _began_ns, _ended_ns):
        self.looks -= 1
        return 200_000_000 if self.looks >= 0 else 0


@pytest.mark.parametrize(("standstills", "passes"), [(2, True), (1, False)])
def test_a_failure_while_the_machine_stood_still_is_not_counted(tmp_path, monkeypatch, standstills, passes):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conftest.py").write_text("from tests.conftest import *  # noqa: F403\n")
    (tmp_path / "test_inner.py").write_text(
        "from pathlib import Path\n\ndef test_a():\n    mark = Path('looks')\n    looks = len(mark.read_text()) if mark.exists() else 0\n"
        "    mark.write_text('x' * (looks + 1))\n    assert looks == 2\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": f"--rootdir={tmp_path}"}
    assert runs._passes_alone("test_inner.py::test_a", tmp_path / "again", environment, Still(standstills)) is passes


def test_a_test_may_replace_the_clock(whole_run):
    text = "import time\n\ndef test_a(monkeypatch):\n    monkeypatch.setattr(time, 'monotonic_ns', iter(()).__next__)\n"
    code, output = whole_run(text)
    assert code == 0, output
