"""Complaints of asyncio, logged once."""

import asyncio
import errno
import os
import resource
import socket
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hilsim.telemetry.loop_faults import LoopFaults, loop_faults_logged


@pytest.fixture
def no_descriptor_left():
    """Takes all that are left, when called."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = []

    def take():
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(int(entry.name) for entry in Path("/proc/self/fd").iterdir()) + 8, hard))
        try:
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            return

    yield take
    for descriptor in taken:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.asyncio
async def test_connections_that_cannot_be_accepted_are_reported_once_and_without_traceback(no_descriptor_left, caplog):
    clients = [socket.socket() for _ in range(20)]
    with loop_faults_logged(), capture_logs() as log:
        server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        no_descriptor_left()
        for client in clients:
            client.setblocking(False)  # noqa: FBT003 - as the socket module has it
            client.connect_ex(address)
        async with asyncio.timeout(10):
            while not log:  # noqa: ASYNC110 - nothing tells of a record
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # whatever else it would say
        server.close()
    for client in clients:
        client.close()
    assert [(record["event"], record["reason"]) for record in log] == [("connection.not_accepted", os.strerror(errno.EMFILE))]
    assert caplog.records == []


@pytest.mark.asyncio
async def test_other_complaints_are_reported_as_before(caplog):
    loop = asyncio.get_running_loop()
    LoopFaults()(loop, {"message": "task was destroyed", "exception": ValueError("odd")})
    assert "task was destroyed" in caplog.text


@pytest.mark.asyncio
async def test_afterwards_the_loop_has_its_former_handler():
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    with loop_faults_logged():
        assert isinstance(loop.get_exception_handler(), LoopFaults)
    assert loop.get_exception_handler() is before
