"""The page of the live view in a real browser: points appear and change, each control acts, and pages of other servers get nothing."""

import asyncio
import io
import threading
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from aiohttp import web
from PIL import Image

from hilsim.show.view.gate import Gate, listen, new_token
from hilsim.show.view.page.cameras import FIRST_PERSON, FOLLOW
from hilsim.show.view.page.controls import ALL, LAST_SECONDS, ONE_SCAN
from hilsim.show.view.page.models import SceneModel
from hilsim.show.view.page.page import Page
from hilsim.show.view.page.parts import rotation
from hilsim.show.view.serving import server_beside
from tests.system.browsers import PATIENCE_MS, browser, pixels, window
from tests.unit.view.feeds import MadeCapture

pytestmark = [pytest.mark.system, pytest.mark.asyncio, pytest.mark.timeout(600)]

WALL = SceneModel(
    name="wall", vertices=np.array([[-2, 6, 0], [2, 6, 0], [2, 6, 3], [-2, 6, 3]], np.float32), triangles=np.array([[0, 1, 2], [0, 2, 3]], np.int32)
)


async def _until(condition):
    async with asyncio.timeout(PATIENCE_MS / 1000):
        while not condition():  # noqa: ASYNC110 - other threads change it
            await asyncio.sleep(0.02)


@asynccontextmanager
async def _shown(count=2000):
    """A page with a feed, updated by its own thread, in a window."""
    async with browser() as opened, _page_in(opened, count) as view:
        yield view


@asynccontextmanager
async def _page_in(opened, count):
    gate, feed = Gate(listen("127.0.0.1", 0), new_token()), MadeCapture("roof", "front", count=count)
    async with gate.serve(), server_beside("hilsim view") as (server, path):
        page = Page(server, feed, [WALL])
        gate.open_to(path)
        ended = threading.Event()
        running = asyncio.create_task(asyncio.to_thread(page.run, ended))
        feed.turn()
        try:
            async with window(opened) as shown:
                await shown.goto(gate.url)
                await shown.get_by_text("screenshot").wait_for()
                await _until(lambda: page.drawn)
                yield SimpleNamespace(gate=gate, feed=feed, server=server, page=page, window=shown, browser=opened)
        finally:
            ended.set()
            await running


def _handle(view, label):
    (client,) = view.server.get_clients().values()
    for gui in (client.gui, view.server.gui):
        for handle in gui._gui_input_handle_from_uuid.values():
            if handle._impl.props.label == label:
                return handle
    raise AssertionError(label)


def _element(view, label, inside=""):
    return view.window.locator(f'[id="{_handle(view, label)._impl.uuid}"]{inside}')


async def _press(view, label):
    await _element(view, label).dispatch_event("click")


async def _choose(view, label, option):
    """Choose an option of a dropdown."""
    box = _element(view, label)
    await box.dispatch_event("click")
    options = view.window.locator("[role=option]:visible", has_text=option)
    await options.first.dispatch_event("click")
    await _until(lambda: _handle(view, label).value == option)


async def _drawn(view, condition):
    """Wait until the page has drawn what a control asks for."""
    await _until(lambda: condition(view.page))


async def test_points_appear_in_the_browser_and_change():
    async with _shown() as view:
        assert view.window.url == view.gate.url.partition("?")[0]
        assert view.page._cloud.points.shape == (4000, 3)
        first = await pixels(view.window)
        scene = first[200:, :600].reshape(-1, 3)
        assert len(np.unique(scene, axis=0)) > 50  # not blank
        for _ in range(5):
            drawn = view.page.drawn
            view.feed.turn()
            await _until(lambda drawn=drawn: view.page.drawn > drawn)
        await view.window.get_by_text("4,000 points of 2 sensors").wait_for()
        async with asyncio.timeout(PATIENCE_MS / 1000):
            while np.array_equal((await pixels(view.window))[200:, :600], first[200:, :600]):  # noqa: ASYNC110 - the browser has no event for it
                await asyncio.sleep(0.02)


LINKS = """(() => {
    const link = WebGL2RenderingContext.prototype.linkProgram;
    window.links = 0;
    WebGL2RenderingContext.prototype.linkProgram = function (program) { window.links++; return link.call(this, program); };
})()"""


@pytest.mark.extended
async def test_scans_of_other_numbers_of_points_are_drawn_by_the_shaders_that_were_linked_for_the_first():
    async with _shown() as view:
        await view.window.get_by_text("4,000 points of 2 sensors").wait_for()
        await pixels(view.window)
        await view.window.evaluate(LINKS)
        for count in (1900, 2100, 1800, 2200):
            view.feed.count = count
            view.feed.turn()
            await view.window.get_by_text(f"{2 * count:,} points of 2 sensors").wait_for()
            await pixels(view.window)
        assert await view.window.evaluate("window.links") <= 1  # the browser may link the first ones late


@pytest.mark.extended
async def test_each_control_of_the_points_acts():
    async with _shown() as view:
        colours = view.page._cloud.colors.copy()
        await _choose(view, "colour by", "ring")
        await _drawn(view, lambda page: not np.array_equal(page._cloud.colors, colours))
        colours = view.page._cloud.colors.copy()
        await _choose(view, "colour map", "gray")
        await _drawn(view, lambda page: not np.array_equal(page._cloud.colors, colours) and np.ptp(page._cloud.colors, axis=1).max() == 0)
        thumb = _element(view, "point size in m", " [role=slider]")
        await thumb.focus()
        await view.window.keyboard.press("End")
        await _drawn(view, lambda page: page._cloud.point_size == 0.5)
        await _press(view, "front")
        await _drawn(view, lambda page: page.shown.size == 2000)
        await _choose(view, "show", LAST_SECONDS)
        await _drawn(view, lambda page: page._history is not None)
        view.feed.turn()
        await _drawn(view, lambda page: page.shown.size == 4000)
        await _choose(view, "show", ALL)
        await _drawn(view, lambda page: page._map is not None and "cells of" in page.controls.info.content)
        await _choose(view, "show", ONE_SCAN)
        await _drawn(
            view,
            lambda page: page._map is None and page.controls.info.content.startswith("2,000 points") and "cells" not in page.controls.info.content,
        )
        await _press(view, "pause the view")
        await _until(lambda: view.page.controls.is_paused)
        points = view.page._cloud.points.copy()
        view.feed.turn()
        steps = view.page._steps
        await _until(lambda: view.page._steps > steps + 3)
        assert np.array_equal(view.page._cloud.points, points)
        await _press(view, "pause the view")
        await _drawn(view, lambda page: not np.array_equal(page._cloud.points, points))


@pytest.mark.extended
async def test_parts_of_the_scene_replay_and_cameras_are_controlled():
    async with _shown() as view:
        sensor, (mesh,) = view.page._sensors["roof"], view.page._meshes
        for label, is_visible in (
            ("fields of view", lambda: sensor.edges.visible),
            ("sensor frames", lambda: sensor.frame.show_axes),
            ("scene", lambda: mesh.visible),
        ):
            assert is_visible()
            await _press(view, label)
            await _until(lambda is_visible=is_visible: not is_visible())
        for label in ("play", "pause"):
            await _press(view, label)
            await _until(lambda label=label: view.feed.done[-1:] == [label])
        thumb = _element(view, "position in s", " [role=slider]")
        await thumb.focus()
        await view.window.keyboard.press("End")
        await _until(lambda: view.feed.done[-1:] == [20.0])
        (client,) = view.server.get_clients().values()
        await _press(view, "top view")
        await _until(lambda: client.camera.position[2] > 50.0)
        await _press(view, "behind the sensor")
        await _until(lambda: client.camera.position[2] < 20.0)
        await _choose(view, "mode", FIRST_PERSON)
        view.feed.turn()
        await _until(lambda: abs(client.camera.position[2] - 1.8) < 0.01)
        await _choose(view, "sensor", "front")
        await _choose(view, "mode", FOLLOW)
        view.feed.turn()
        await _until(lambda: client.camera.position[2] > 5.0)


@pytest.mark.extended
async def test_a_click_on_a_point_describes_it_and_two_measure():
    async with _shown() as view:
        await _press(view, "front")
        await _drawn(view, lambda page: page.shown.size == 2000)
        await _click(view, 0)
        await _until(lambda: len(view.page.picked) == 1)
        await view.window.get_by_text("channel (ring)").wait_for()
        await _press(view, "measure between two points")
        await _until(lambda: view.page.controls.measures)
        await _click(view, 60)
        await _until(lambda: len(view.page.picked) == 2)
        await view.window.get_by_text("distance:").wait_for()
        await _press(view, "clear")
        await _until(lambda: not view.page.picked)


async def _click(view, index):
    """Click the pixel of a shown point."""
    (client,) = view.server.get_clients().values()
    camera = client.camera
    x, y, z = rotation(camera.wxyz).T @ (view.page.shown.world[index] - camera.position)
    canvas = await view.window.locator("canvas").first.bounding_box()
    focal = canvas["height"] / 2 / np.tan(camera.fov / 2)
    await view.window.mouse.click(canvas["x"] + canvas["width"] / 2 + focal * x / z, canvas["y"] + canvas["height"] / 2 + focal * y / z)


@pytest.mark.extended
async def test_a_screenshot_is_downloaded():
    async with _shown() as view:
        async with view.window.expect_download() as download:
            await _press(view, "screenshot")
        file = await download.value
        picture = np.asarray(Image.open(io.BytesIO(Path(await file.path()).read_bytes())))  # noqa: ASYNC240 - a small file
        assert file.suggested_filename.startswith("hilsim-")
        assert len(np.unique(picture.reshape(-1, picture.shape[-1]), axis=0)) > 50


@pytest.mark.extended
async def test_a_page_of_another_server_in_the_same_browser_gets_neither_page_nor_stream():
    """A foreign page with the cookie's own browser: another port is another origin, but the same site."""
    async with _shown() as view:
        own = view.gate.url.partition("?")[0]
        script = f"""
            const outcome = [];
            const socket = new WebSocket("{own.replace("http", "ws")}", "viser-v1.1.1");
            const ended = new Promise(done => {{ socket.onopen = () => done("opened"); socket.onerror = () => done("refused"); }});
            const read = fetch("{own}", {{credentials: "include"}}).then(() => "read", () => "refused");
            Promise.all([ended, read]).then(found => {{ document.title = found.join(" "); }});"""

        async def foreign(request):
            del request
            return web.Response(text=f"<html><body><script>{script}</script></body></html>", content_type="text/html")

        app = web.Application()
        app.add_routes([web.get("/", foreign)])
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            evil = await view.window.context.new_page()
            await evil.goto(f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/")
            await evil.wait_for_function("document.title != ''")
            assert await evil.title() == "refused refused"
            await evil.close()
        finally:
            await runner.cleanup()
        assert view.gate.refused["foreign_origin"] >= 2
        drawn = view.page.drawn
        view.feed.turn()
        await _until(lambda: view.page.drawn > drawn)
        assert len(view.server.get_clients()) == 1
