"""A run of tests leaves no process behind: one that would is red, and one that is stopped takes down what it started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
START = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
HEAD = "import pathlib, subprocess, sys, time\nimport pytest\n"


def run(folder, text, *more):
    """A run of pytest of its own over a file of tests, with the hooks of this folder's ``conftest``."""
    (folder / "test_inner.py").write_text(HEAD + text)
    (folder / "conftest.py").write_text("from tests.conftest import *  # noqa: F403\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *more, "--rootdir", str(folder), str(folder)]
    return subprocess.Popen(
        command, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize("more", [(), ("--numprocesses=2",)], ids=["alone", "in two"])
def test_a_run_that_leaves_a_process_behind_fails_names_it_and_ends_it(tmp_path, more):
    text = f"def test_a():\n    process = {START}\n    process.returncode = 0\n    pathlib.Path('pid').write_text(str(process.pid))\n"
    process = run(tmp_path, text, *more)
    said, _ = process.communicate(timeout=60)
    pid = int((tmp_path / "pid").read_text())
    assert process.returncode == 1, said
    assert f"left behind and killed now: process {pid}: " in said
    assert not is_alive(pid)


def test_a_run_that_leaves_nothing_behind_passes(tmp_path):
    process = run(tmp_path, f"def test_a():\n    process = {START}\n    process.kill()\n    process.wait()\n")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said


def test_a_run_that_gets_sigterm_takes_down_its_fixtures(tmp_path):
    fixture = f"@pytest.fixture\ndef child():\n    process = {START}\n    pathlib.Path('pid').write_text(str(process.pid))\n    yield\n"
    fixture += "    process.kill()\n    process.wait()\n    pathlib.Path('down').write_text('')\n\n"
    process = run(tmp_path, fixture + "def test_a(child):\n    time.sleep(600)\n")
    deadline_s = time.monotonic() + 60
    while not (tmp_path / "pid").is_file() or not (tmp_path / "pid").read_text():
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 2, said  # interrupted
    assert (tmp_path / "down").is_file()
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_processes_of_tests_in_the_background_of_a_shell_can_be_ended_by_ctrl_c(tmp_path):
    (tmp_path / "test_inner.py").write_text(
        HEAD + "def test_a():\n    done = subprocess.run([sys.executable, '-c', 'import signal; print(signal.getsignal(2))'], "
        "capture_output=True, text=True)\n    assert 'default_int_handler' in done.stdout\n"
    )
    (tmp_path / "conftest.py").write_text("from tests.conftest import *  # noqa: F403\n")
    command = f"{sys.executable} -m pytest -q -p no:cacheprovider --rootdir . . > output 2>&1 & wait $!"
    subprocess.run(["sh", "-c", command], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False, timeout=60)
    assert "1 passed" in (tmp_path / "output").read_text()
