"""viser's server behind the gate: what of it is replaced."""

import asyncio
import time

import pytest
import websockets.sync.client

from hilsim.show.view.page.server import LoopEvent, private_server
from tests.unit.view.gates import PROTOCOL, camera, encoded


@pytest.mark.asyncio
async def test_an_event_is_set_on_its_loop_alone():
    event = LoopEvent(asyncio.get_running_loop())
    waiting = asyncio.create_task(event.wait())
    await asyncio.to_thread(event.set)
    assert not event.is_set()
    event.set()
    assert await waiting


def test_messages_for_all_browsers_and_for_one_wake_the_loop_by_such_events():
    with private_server("test") as (server, path):
        with websockets.sync.client.unix_connect(str(path), "ws://viser/", subprotocols=[PROTOCOL], max_size=None) as browser:
            browser.send(encoded(camera()))
            deadline_s = time.monotonic() + 60.0
            while not server.get_clients():
                assert time.monotonic() < deadline_s
                time.sleep(0.005)
            (client,) = server.get_clients().values()
            buffers = [server._websock_server.get_message_buffer(), client._websock_connection.get_message_buffer()]
        assert [type(buffer.message_event) for buffer in buffers] == [LoopEvent, LoopEvent]
