"""The pytest plugin: the fixture ``hilsim_lidar``. Registered by the entry point ``pytest11``; it imports hilsim only when a test requests a sensor."""

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
    """Factory of lidars for this test.

    ``sensor = hilsim_lidar("vlp16")`` streams UDP packets to ``sensor.port`` until the test ends. Its options are those of ``hilsim.testing.lidar``.
    When the test fails, its report names a PCAP of the sent packets and shows the metrics.
    """
    from hilsim.testing.factory import LidarFactory  # noqa: PLC0415 - for those who use it

    with LidarFactory(tmp_path) as sensors:
        request.node.stash[_SENSORS] = sensors
        yield sensors


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> "Generator[None, pytest.TestReport, pytest.TestReport]":
    """Attach the sensors' packets and metrics to the report of a failed test, while they still run."""
    report = yield
    sensors = item.stash.get(_SENSORS, None)
    if report.failed and sensors is not None:
        report.sections.extend(sensors.reports())
    return report


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start the imports if a test will request a sensor, so that the first one waits for less."""
    if not session.config.option.collectonly and any(_FIXTURE in getattr(item, "fixturenames", ()) for item in session.items):
        from hilsim.testing.starting import warm_starter  # noqa: PLC0415 - for those who use it

        warm_starter()


def pytest_sessionfinish() -> None:
    """End all processes of the run."""
    starting = sys.modules.get("hilsim.testing.starting")
    if starting is not None:
        starting.close_warm_starter()
