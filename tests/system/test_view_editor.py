"""The editor in a real browser, on the page of a real daemon: what is edited there is in the packets that leave."""

import asyncio
import math
import os
import threading
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import velodyne_decoder
from PIL import Image
from viser.transforms import SE3, SO3

import hilsim
from hilsim.api.control import connect
from hilsim.read.background.files.archive import write_archive
from hilsim.show.view.feed.daemon_feed import DaemonFeed
from hilsim.show.view.gate import Gate, listen, new_token
from hilsim.show.view.page.page import Page
from hilsim.show.view.serving import server_beside
from hilsim.show.view.sources import edit_session
from tests.random_edits import map_at
from tests.support import write_rig
from tests.system.browsers import PATIENCE_MS, browser, pixels, window
from tests.system.conftest import SCENE
from tests.system.test_changes import CONTROL, sensor

pytestmark = [pytest.mark.extended, pytest.mark.system, pytest.mark.asyncio, pytest.mark.timeout(600)]

LEVEL = (1.0, 0.0, 0.0, 0.0)


async def until(condition):
    async with asyncio.timeout(PATIENCE_MS / 1000):
        while not condition():  # noqa: ASYNC110 - other threads change it
            await asyncio.sleep(0.02)


@asynccontextmanager
async def edited(address):
    """The page of a daemon, in a window."""
    async with browser() as opened, page_in(opened, address) as view:
        yield view


@asynccontextmanager
async def page_in(opened, address):
    gate, feed = Gate(listen("127.0.0.1", 0), new_token()), DaemonFeed(address)
    session = await asyncio.to_thread(edit_session, address, None)
    async with gate.serve(), server_beside("hilsim view") as (server, path):
        page = Page(server, feed, (), connect(address), session)
        gate.open_to(path)
        ended = threading.Event()
        running = asyncio.create_task(asyncio.to_thread(page.run, ended))
        try:
            async with window(opened) as shown:
                await shown.goto(gate.url)
                await shown.get_by_text("screenshot").wait_for()
                await until(lambda: page.editor is not None)
                yield SimpleNamespace(page=page, editor=page.editor, session=session, server=server, window=shown)
        finally:
            ended.set()
            await running
            await asyncio.to_thread(feed.close)


async def press(view, label):
    handles = view.server.gui._gui_input_handle_from_uuid.values()
    handle = next(handle for handle in handles if handle._impl.props.label == label)
    await view.window.locator(f'[id="{handle._impl.uuid}"]').dispatch_event("click")


async def choose(view, label, option):
    """Choose an option of a list."""
    await press(view, label)
    await view.window.locator("[role=option]:visible", has_text=option).first.dispatch_event("click")


async def drag_by_mouse(view, edits):
    """Drag the handle of an object at x = 4 m by its red arrow, half a metre towards the sensor, which makes so many edits with those before."""
    (client,) = view.server.get_clients().values()
    camera = client.camera
    camera.position, camera.look_at, camera.up_direction = (4.0, -6.0, 4.0), (4.0, 0.0, 0.0), (0.0, 0.0, 1.0)
    canvas = await view.window.locator("canvas").first.bounding_box()

    def pixel(x):
        """Place in the window of a point of the handle's red arrow."""
        seen = SE3.from_rotation_and_translation(SO3(np.asarray(camera.wxyz)), np.asarray(camera.position)).inverse().apply(np.array((x, 0.0, 0.0)))
        scale = canvas["height"] / 2 / math.tan(camera.fov / 2) / seen[2]
        return canvas["x"] + canvas["width"] / 2 + scale * seen[0], canvas["y"] + canvas["height"] / 2 + scale * seen[1]

    async with asyncio.timeout(PATIENCE_MS / 1000):
        while len(view.editor._groups) < edits:  # until the browser has drawn the handle where the camera sees it
            await view.window.mouse.move(*pixel(5.15))
            await view.window.mouse.down()
            for x in (5.0, 4.8, 4.65):
                await view.window.mouse.move(*pixel(x))
            await view.window.mouse.up()
            await asyncio.sleep(1.0)


def points_ahead(stream):
    """Points (m) straight ahead in the newest whole turn of what a driver receives, by velodyne-decoder."""
    stream.drain()
    decoder = velodyne_decoder.StreamDecoder(velodyne_decoder.Config(model=velodyne_decoder.Model.VLP16))
    received = [payload for payload, _ in stream.take(300)]
    scans = [scan for at, payload in enumerate(received) if (scan := decoder.decode(1000.0 + at * 0.001327, payload)) is not None]
    points = np.asarray(scans[-1][1])
    return points[(np.abs(points[:, 1]) < 0.3) & (points[:, 0] > 0.8) & (np.abs(points[:, 2]) < 0.4)]


@pytest.mark.alone  # a browser without a graphics card is seconds behind the mouse beside other tests
async def test_an_object_is_dragged_by_its_handle_with_the_mouse(daemon, tmp_path, receiver):
    """Its picture is the second one of docs/how-to/view.md: ``HILSIM_PICTURES=docs/images`` writes it anew."""
    stream = receiver()
    rig = write_rig(tmp_path, SCENE.replace("seed = 5", "seed = 5\nlead_ms = 8.0") + sensor("lidar", stream.port, receiver().port) + CONTROL)
    daemon(rig)
    async with edited(str(tmp_path / "control")) as view:
        view.editor._on_ground.value = False
        await press(view, "add")
        await until(lambda: view.editor.selected == "box 1")
        await drag_by_mouse(view, 2)
        (_, *moves) = hilsim.connect(tmp_path / "control").script()
        assert {change["kind"] for change in moves} == {"move"}
        x, y, z = moves[-1]["position_m"]
        assert 3.3 < x < 3.8
        assert (y, z) == (0.0, 0.0)
        await until(lambda: abs(np.median(points_ahead(stream)[:, 0]) - (x - 0.5)) < 0.05)
        if "HILSIM_PICTURES" in os.environ:
            picture = Image.fromarray(await pixels(view.window)).crop((0, 180, 1000, 1400)).resize((656, 800), Image.Resampling.LANCZOS)
            picture.quantize(128).save(Path(os.environ["HILSIM_PICTURES"], "edit.png"), optimize=True)


async def test_an_object_that_is_added_dragged_and_removed_on_the_page_is_in_the_packets_that_leave(daemon, tmp_path, receiver):
    stream = receiver()
    rig = write_rig(tmp_path, SCENE.replace("seed = 5", "seed = 5\nlead_ms = 8.0") + sensor("lidar", stream.port, receiver().port) + CONTROL)
    running, before = daemon(rig), rig.read_text()
    control = hilsim.connect(tmp_path / "control")
    empty_m = np.median(points_ahead(stream)[:, 0])
    async with edited(str(tmp_path / "control")) as view:
        view.editor._on_ground.value = False
        await press(view, "add")
        await until(lambda: view.editor.selected == "box 1")
        assert [change["kind"] for change in control.script()] == ["add"]
        assert np.median(points_ahead(stream)[:, 0]) == pytest.approx(3.5, abs=0.05)
        for step in range(1, 6):
            view.editor.drag((4.0 - 0.2 * step, 0.0, 0.0), LEVEL, "start" if step == 1 else "update")
            await asyncio.sleep(0.05)
        view.editor.drag((3.0, 0.0, 0.0), LEVEL, "end")
        await until(lambda: len(view.editor._groups) == 2)
        assert np.median(points_ahead(stream)[:, 0]) == pytest.approx(2.5, abs=0.05)
        view.editor._file.value = "edited.toml"
        await press(view, "save as")
        await until((tmp_path / "edited.toml").exists)
        await press(view, "undo")
        await until(lambda: len(view.editor._groups) == 1)
        assert np.median(points_ahead(stream)[:, 0]) == pytest.approx(3.5, abs=0.05)
        await press(view, "delete")
        await until(lambda: not view.editor.selected)
        assert np.median(points_ahead(stream)[:, 0]) == pytest.approx(empty_m, abs=0.05)
    assert rig.read_text() == before
    points = hilsim.Emulator(tmp_path / "edited.toml").points(0.0, 0.1)
    names = hilsim.Emulator(tmp_path / "edited.toml").object_names()
    seen = points[points["instance"] == names.index("box 1")]
    assert seen["y"].min() == pytest.approx(2.5, abs=0.05)
    assert running.stop()[0] == 0


CRATE = """
name = "crate before what was captured"
seed = 5
lead_ms = 8.0
[metrics]
port = 0
[[scene.box]]
name = "crate"
size_m = [1.0, 1.0, 1.0]
position_m = [4.0, 0.0, 0.0]
"""
MAPPED = """
[[scene.background]]
file = "map.npz"
[platform]
kind = "background"
"""
REPLAYED = """
[[replay]]
name = "recorded"
file = "recorded.pcap"
overlay = true
loop = "seamless"
[[replay.flow]]
match = ">:2368"
send = ">127.0.0.1:{port}"
"""


def before_a_captured_background(directory, port, position_port):
    write_archive(map_at((0.0, 0.0, 0.0)), directory / "map.npz")
    return write_rig(directory, CRATE + MAPPED + sensor("lidar", port, position_port) + CONTROL)


def in_a_recording(directory, port, position_port):
    del position_port
    hilsim.record(write_rig(directory, name="recording.toml"), directory / "recorded.pcap", duration_s=1.0)
    return write_rig(directory, CRATE + REPLAYED.format(port=port) + CONTROL)


@pytest.mark.parametrize(("written", "behind_m"), [(before_a_captured_background, 6.0), (in_a_recording, 10.0)])
async def test_an_object_in_front_of_what_was_captured_is_dragged_and_removed(daemon, tmp_path, receiver, written, behind_m):
    stream = receiver()
    running = daemon(written(tmp_path, stream.port, receiver().port))
    assert np.median(points_ahead(stream)[:, 0]) == pytest.approx(3.5, abs=0.05)
    async with edited(str(tmp_path / "control")) as view:
        view.editor._on_ground.value = False
        await choose(view, "object", "crate")
        await until(lambda: view.editor.selected == "crate")
        await drag_by_mouse(view, 1)
        moves = hilsim.connect(tmp_path / "control").script()
        x, y, z = moves[-1]["position_m"]
        assert 3.3 < x < 3.8
        assert (y, z) == (0.0, 0.0)
        await until(lambda: abs(np.median(points_ahead(stream)[:, 0]) - (x - 0.5)) < 0.05)
        await press(view, "delete")
        await until(lambda: not view.editor.selected)
        await until(lambda: abs(np.median(points_ahead(stream)[:, 0]) - behind_m) < 0.1)
    assert running.stop()[0] == 0
