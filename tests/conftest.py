"""What every test may rely on."""

import gc
import os
from pathlib import Path

import pytest

from hilsim.testing import forks, plugin
from tests import commands, depth, leftovers, network, standstills
from tests.cables import cable, udp_socket  # noqa: F401 - fixtures
from tests.plugins import plugin_site  # noqa: F401 - a fixture
from tests.stand_ins import STAND_INS, record_stand_in

for _name, _count in forks.ONE_THREAD.items():  # waiting threads of BLAS take the cores of other tests
    os.environ.setdefault(_name, _count)
depth.load_profile()

CAPTURES = Path(__file__).resolve().parent.parent.parent / "shared" / "captures"
REFERENCE = CAPTURES.parent / "reference"


_GC_THRESHOLD = (50_000, 20, 50)
"""Compiling makes many objects that stay: Python's own thresholds would have each looked at again and again."""


def pytest_xdist_auto_num_workers():
    """Three workers on two cores: tests of daemons wait for a third of their time."""
    return 3 * len(os.sched_getaffinity(0)) // 2 or 1


def _is_worker(config):
    """A process of pytest-xdist that runs a share of the tests: what it starts has the mark of the one that started it."""
    return hasattr(config, "workerinput")


def pytest_configure(config):
    """Mark what this run starts; an environment that was installed before hilsim had a plugin has no entry point of it."""
    gc.set_threshold(*_GC_THRESHOLD)
    os.environ.pop("PYTEST_ADDOPTS", None)  # for this run, not for those that tests start
    if not _is_worker(config):
        leftovers.mark()
    leftovers.end_as_by_ctrl_c()
    if not config.pluginmanager.is_registered(plugin):
        config.pluginmanager.register(plugin, "hilsim")


def pytest_sessionstart(session):
    """Give a worker its network once its plug-ins have connected to the process that started it."""
    if _is_worker(session.config):
        network.enter()


def pytest_collection_modifyitems(items):
    """Repeat a failed judgement of wall time once: the machine may have stood still."""
    for item in items:
        if item.get_closest_marker("alone"):
            item.add_marker(pytest.mark.flaky(reruns=1))


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
    if found:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def wall_time(tmp_path_factory):
    """The machine's standstills, for tests that judge an interval of wall time (``tests.standstills.Machine``)."""
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
