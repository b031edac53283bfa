"""What every test may rely on."""

import gc
import os
import sys
from pathlib import Path
from time import monotonic_ns  # by its own name: tests replace the module's

import pytest

from hilsim.testing import plugin
from tests import commands, leftovers, skips
from tests.cables import cable, udp_socket  # noqa: F401 - fixtures
from tests.plugins import plugin_site  # noqa: F401 - a fixture
from tests.runs import depth, failures, quick, standstills
from tests.stand_ins import STAND_INS, record_stand_in

depth.load_profile()

CAPTURES = Path(__file__).resolve().parent.parent.parent / "shared" / "captures"
REFERENCE = CAPTURES.parent / "reference"


_RECORDER = "hilsim-failures"
_GC_THRESHOLD = (50_000, 20, 50)
"""Compiling makes many objects that stay: Python's own thresholds would have each looked at again and again."""


def _is_worker(config):
    """A process of pytest-xdist that runs a share of the tests: what it starts has the mark of the one that started it."""
    return hasattr(config, "workerinput")


def pytest_configure(config):
    """Mark what this run starts; an environment that was installed before hilsim had a plugin has no entry point of it."""
    gc.set_threshold(*_GC_THRESHOLD)
    if not _is_worker(config):
        leftovers.mark()
        if failures.FOLDER in os.environ:  # taken out: runs of pytest that tests start have no second look
            config.pluginmanager.register(failures.Recorder(os.environ.pop(failures.FOLDER)), _RECORDER)
    leftovers.end_as_by_ctrl_c()
    if not config.pluginmanager.is_registered(plugin):
        config.pluginmanager.register(plugin, "hilsim")


def pytest_terminal_summary(terminalreporter):
    """Keep what was left out for the table of all runs; workers tell it to the process that started them."""
    if _is_worker(terminalreporter.config):
        return
    skips.write(terminalreporter.stats.get("skipped", []))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Note when each test begins."""
    failures.note_beginning(item)
    return (yield)


def pytest_runtest_setup():
    """Begin no test after the end of the time that ``make quick`` has."""
    if monotonic_ns() > int(os.environ.get(quick.UNTIL_NS, sys.maxsize)):
        pytest.skip(quick.NO_TIME)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Add to each report what a second look needs."""
    report = yield
    failures.annotate(item, report)
    return report


@pytest.hookimpl(trylast=True)  # after the last fixtures have been taken down
def pytest_sessionfinish(session):
    """Fail a run that leaves a process behind; of workers, the process that started them looks."""
    commands.close()
    if _is_worker(session.config):
        return
    found = leftovers.leftovers()
    for pid, command in found.items():
        session.config.get_terminal_writer().line(f"\nleft behind and killed now: process {pid}: {command}", red=True)
    leftovers.end(found)
    recorder = session.config.pluginmanager.get_plugin(_RECORDER)
    if recorder is not None:
        recorder.close(session.exitstatus, [f"left behind: process {pid}: {command}" for pid, command in found.items()])
    if found:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def wall_time(tmp_path_factory):
    """The machine's standstills, for tests that judge an interval of wall time (``tests.runs.standstills.Machine``)."""
    if standstills.FILE in os.environ:
        yield standstills.Machine(os.environ[standstills.FILE])
        return
    watcher = standstills.Watcher(tmp_path_factory.mktemp("machine") / "standstills")
    yield standstills.Machine(watcher.path)
    watcher.end()


@pytest.fixture
def capture():
    """Path of a real capture by file name; skips where the captures are not at hand (they are not part of the project)."""

    def find(name: str) -> Path:
        path = CAPTURES / name
        if not path.is_file():
            pytest.skip("needs bytes of a real unit: captures are not distributed with hilsim")
        return path

    return find


@pytest.fixture(scope="session")
def _stand_ins(tmp_path_factory):
    return tmp_path_factory.mktemp("stand-ins")


@pytest.fixture
def any_capture(capture, _stand_ins):
    """Path of a real capture by file name, or of one that hilsim records of such a sensor: for tests of what is done with any capture."""

    def find(name: str) -> Path:
        if name in STAND_INS and not (CAPTURES / name).is_file():
            return record_stand_in(name, _stand_ins)
        return capture(name)

    return find


@pytest.fixture
def reference():
    """Path of a file of reference arrays by name; skips where they are not at hand (they are not part of the project)."""

    def find(name: str) -> Path:
        path = REFERENCE / name
        if not path.is_file():
            pytest.skip("needs reference arrays, which are not distributed with hilsim")
        return path

    return find
