"""The live server of Foxglove's protocol: what a client gets that subscribes late, and a burst of packets."""

import asyncio
import threading
import time

import numpy as np
import pytest

from hilsim.api.packet import Packet
from hilsim.assembly.shapes import Shape
from hilsim.show.outputs.events import SceneShapes, SourceInfo
from hilsim.show.outputs.foxglove_server import BACKLOG, FoxgloveServer
from hilsim.show.outputs.scene import SceneChanges
from hilsim.world.geometry.poses import Pose
from tests.foxglove_client import FoxgloveClient

CORNERS = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
FACE = np.array([[0, 1, 2]], np.int32)
BURST = 20 * BACKLOG


def triangle(name, x_m=0.0):
    return Shape(name, 4, CORNERS.copy(), FACE.copy(), Pose(position_m=(x_m, 0.0, 0.0)), is_still=True)


def packet(number):
    return Packet(
        time_ns=number, sensor="roof", stream="data", source=("1.2.3.4", 2368), destination=("5.6.7.8", 2368), payload=number.to_bytes(4, "big") * 300
    )


def served(events, talk):
    """Write events as a client asks for them; returns what ``talk`` returns."""
    server = FoxgloveServer("127.0.0.1", 0, SourceInfo(name="test"))
    end = threading.Event()

    def write():
        while not end.is_set():
            for event in events():
                server.write(event)
            time.sleep(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        return asyncio.run(talk(f"ws://127.0.0.1:{server.port}"))
    finally:
        end.set()
        writer.join()
        server.close()


def test_a_client_that_subscribes_late_gets_the_whole_scene_as_it_is_then():
    events = [
        SceneShapes(stamp_ns=1, shapes=(triangle("wall"), triangle("cart"), triangle("gone"))),
        SceneShapes(stamp_ns=2, shapes=(triangle("cart", 5.0),), removed=("gone",)),
    ]

    def once():
        waiting, events[:] = events.copy(), []
        return waiting or [packet(0)]

    async def talk(url):
        async with asyncio.timeout(60), FoxgloveClient(url, only={"/scene"}) as client:
            await client.until(lambda: client.messages["/scene"])
        return client.scene()

    (scene,) = served(once, talk)
    assert [(entity.id, entity.triangles[0].pose.position.x) for entity in scene.entities] == [("wall", 0.0), ("cart", 5.0)]


@pytest.mark.extended
def test_a_burst_of_packets_far_beyond_the_backlog_reaches_a_client_that_reads():
    sent = []

    def burst():
        return [packet(0)] if len(sent) != 1 else [packet(number) for number in range(1, BURST)]

    async def talk(url):
        async with asyncio.timeout(60), FoxgloveClient(url) as client:
            await client.until(lambda: client.messages["/roof/packets/2368/payload"])
            sent.append(client)
            await client.until(lambda: len(set(client.messages["/roof/packets/2368/payload"])) == BURST)
        return True

    assert served(burst, talk)


def test_packets_are_logged_in_groups_smaller_than_the_backlog_with_a_pause_behind_each(monkeypatch):
    pauses = []
    monkeypatch.setattr("hilsim.show.outputs.foxglove_server.time.sleep", pauses.append)
    server = FoxgloveServer("127.0.0.1", 0, SourceInfo(name="test"))
    for number in range(BACKLOG):
        server.write(packet(number))
    server.close()
    assert len(pauses) >= 2
    assert min(pauses) > 0.0


def test_a_scene_that_is_built_again_has_no_changes_and_one_that_differs_has_those():
    changes = SceneChanges()
    whole = changes.event([triangle("a"), triangle("b")], 1)
    assert ([shape.name for shape in whole.shapes], whole.removed) == (["a", "b"], ())
    assert changes.event([triangle("a"), triangle("b")], 2) is None
    moved = changes.event([triangle("a", 3.0), triangle("c")], 3)
    assert ([shape.name for shape in moved.shapes], moved.removed, moved.stamp_ns) == (["a", "c"], ("b",), 3)
