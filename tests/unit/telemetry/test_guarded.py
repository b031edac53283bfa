"""What runs beside the stream fails alone."""

import asyncio

import pytest
import structlog

from hilsim.telemetry import guarded as guard
from hilsim.telemetry.guarded import guarded


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(guard, "_AGAIN_S", 0.0)


def test_work_that_fails_is_logged_with_its_traceback_and_begun_again_and_its_neighbour_goes_on():
    tries = []

    async def work():
        tries.append(len(tries))
        if len(tries) < 3:
            raise KeyError(len(tries))

    async def run():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(guarded("teller", work))
            neighbour = tasks.create_task(asyncio.sleep(0.05, "done"))
        return neighbour.result()

    with structlog.testing.capture_logs() as said:
        assert asyncio.run(run()) == "done"
    assert tries == [0, 1, 2]
    assert [(event["event"], event["helper"], event["exc_info"]) for event in said] == [("helper.failed", "teller", True)] * 2


def test_cancelling_ends_it():
    async def work():
        await asyncio.sleep(60)

    async def run():
        task = asyncio.create_task(guarded("teller", work))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task.cancelled()

    assert asyncio.run(run())
