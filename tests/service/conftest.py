"""A Debian 12 under a real systemd, with hilsim installed as docs/how-to/install-as-a-service.md says; `make test-service` runs these tests."""

import pytest

from tests.service.machine import Machine, missing_requirement, prepared_root


def pytest_collection_modifyitems(config, items):
    """Building the root takes a minute and downloads packages, so these tests run only when asked for by their mark."""
    if "service" in config.getoption("-m"):
        return
    for item in items:
        if item.get_closest_marker("service"):
            item.add_marker(pytest.mark.skip(reason="boots a Debian container: make test-service"))


@pytest.fixture(scope="session")
def machine():
    """The booted machine; gone at the end."""
    missing = missing_requirement()
    if missing:
        pytest.skip(missing)
    with Machine(prepared_root()) as booted:
        yield booted


@pytest.fixture
def demo(machine):
    """hilsim@demo with its rig as shipped, not running and without a history."""
    service = machine.service("demo")
    service.reset()
    yield service
    service.stop()
