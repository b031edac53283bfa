"""An exhausted resource is reported in a sentence; all else stays a traceback."""

import errno
import subprocess
import sys

import pytest

from hilsim.cli import scarcity


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), "hilsim must have more memory: see `ulimit -v`"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "hilsim must have more memory"),
        (OSError(errno.EMFILE, "Too many open files"), "hilsim must be allowed more open files: see `ulimit -n`"),
        (RuntimeError("can't start new thread"), "hilsim must be allowed more threads"),
        (ImportError("libblas.so: failed to map segment from shared object"), "hilsim must have more memory"),
        (
            ExceptionGroup("tasks", [ValueError("one"), ExceptionGroup("more", [OSError(errno.ENFILE, "Too many")])]),
            "hilsim must be allowed more open files",
        ),
    ],
    ids=["memory", "no memory", "files", "threads", "loader", "group"],
)
def test_too_little_is_named_with_what_to_look_at(error, told):
    assert scarcity(error).startswith(told)


def test_the_cause_of_an_error_counts():
    error = OSError("could not load a library")
    error.__cause__ = MemoryError()
    assert "more memory" in scarcity(error)


@pytest.mark.parametrize(
    "error", [RuntimeError("dictionary changed size"), OSError(errno.EIO, "I/O error"), ImportError("no module"), ExceptionGroup("a", [KeyError()])]
)
def test_other_errors_are_none_of_it(error):
    assert scarcity(error) == ""


@pytest.mark.system
def test_a_daemon_that_may_open_too_few_files_ends_with_a_sentence():
    program = "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8)); sys.argv[1:] = ['run', 'demo', '--set', 'metrics.port=0']; from hilsim.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "open files" in done.stderr
