"""The pytest plugin: the fixture ``hilsim_lidar``. Registered by the entry point ``pytest11``; imports nothing of hilsim before a test wants a sensor."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from hilsim.testing.factory import LidarFactory

_FIXTURE = "hilsim_lidar"
_SENSORS: "pytest.StashKey[LidarFactory]" = pytest.StashKey()


@pytest.fixture
def hilsim_lidar(request: pytest.FixtureRequest, tmp_path: Path) -> "Iterator[LidarFactory]":
    """Makes lidars for this test.

    ``sensor = hilsim_lidar("vlp16")`` streams UDP packets to ``sensor.port`` until the test ends. It takes what ``hilsim.testing.lidar`` takes. When the test fails, its report names a PCAP of what was sent and shows the metrics.
    """
    from hilsim.testing.factory import LidarFactory  # noqa: PLC0415 - for those who use it

    with LidarFactory(tmp_path) as sensors:
        request.node.stash[_SENSORS] = sensors
        yield sensors


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> "Generator[None, pytest.TestReport, pytest.TestReport]":
    """Attach what the sensors of a failed test sent, and how, while they still run."""
    report = yield
    sensors = item.stash.get(_SENSORS, None)
    if report.failed and sensors is not None:
        report.sections.extend(sensors.reports())
    return report


def pytest_collection_finish(session: pytest.Session) -> None:
    """Begin to import where a test will want a sensor: the first one then waits for less."""
    if not session.config.option.collectonly and any(_FIXTURE in getattr(item, "fixturenames", ()) for item in session.items):
        from hilsim.testing.starting import warm_starter  # noqa: PLC0415 - for those who use it

        warm_starter()


def pytest_sessionfinish() -> None:
    """Nothing outlives the run."""
    starting = sys.modules.get("hilsim.testing.starting")
    if starting is not None:
        starting.close_warm_starter()
