"""The page without a browser: a client of viser's protocol sends what a browser sends."""

import dataclasses
import io
import time
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import websockets.sync.client
from PIL import Image
from viser import _messages

from hilsim.limits import VIEW_POINTS, VIEW_TRIANGLES
from hilsim.show.view.page.cameras import FIRST_PERSON, FOLLOW, FREE
from hilsim.show.view.page.controls import ALL, LAST_SECONDS, ONE_SCAN
from hilsim.show.view.page.models import SceneModel
from hilsim.show.view.page.page import Page, screenshot
from hilsim.show.view.page.server import private_server
from tests.unit.view.feeds import MadeCapture, MadeFeed
from tests.unit.view.gates import PROTOCOL, camera, encoded

TRIANGLE = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32)


def _until(condition):
    deadline_s = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


class Browser:
    """What a test does as a browser."""

    def __init__(self, server, path, page):
        self.server, self.page = server, page
        before = page.cameras.count
        self.connection = websockets.sync.client.unix_connect(str(path), "ws://viser/", subprotocols=[PROTOCOL], max_size=None)
        self.connection.send(encoded(camera()))
        _until(lambda: page.cameras.count > before)
        self.client = server.get_clients()[max(server.get_clients())]

    def set(self, label, value):
        """Change a control by its label; waits until the page has the value."""
        handle = _handle(self.server, self.client, label)
        self.connection.send(encoded(_messages.GuiUpdateMessage(uuid=handle._impl.uuid, updates={"value": value})))
        _until(lambda: handle.value == value)

    def press(self, label):
        handle = _handle(self.server, self.client, label)
        self.connection.send(encoded(_messages.GuiUpdateMessage(uuid=handle._impl.uuid, updates={"value": True})))

    def close(self):
        self.connection.close()


def _handle(server, client, label):
    for gui in (client.gui, server.gui):
        for handle in gui._gui_input_handle_from_uuid.values():
            if handle._impl.props.label == label:
                return handle
    raise AssertionError(label)


@contextmanager
def _page(feed, *arguments, **options):
    with private_server("test") as (server, path):
        page = Page(server, feed, *arguments, **options)
        browser = Browser(server, path, page)
        try:
            yield page, browser
        finally:
            browser.close()


@pytest.fixture
def shown():
    """A page with one scan of two sensors, and a browser."""
    feed = MadeFeed("roof", "front")
    with _page(feed) as (page, browser):
        feed.turn()
        page.step()
        yield SimpleNamespace(page=page, browser=browser, feed=feed)


def _changed(shown, label, value):
    before = shown.page.shown, np.array(shown.page._cloud.colors)
    shown.browser.set(label, value)
    _until(lambda: shown.page._is_changed)
    shown.page.step()
    return before


def test_a_scan_of_every_sensor_is_drawn(shown):
    assert shown.page.shown.size == 2000
    assert shown.page._cloud.points.shape == shown.page._cloud.colors.shape == (2000, 3)
    assert shown.page._cloud.points.dtype == np.float32
    assert "2,000 points of 2 sensors" in shown.page.controls.info.content
    assert "<b>" not in shown.page.controls.info.content


def test_a_new_scan_replaces_the_former_one(shown):
    before = np.array(shown.page._cloud.points)
    shown.feed.turn()
    shown.page.step()
    assert shown.page._cloud.points.shape == before.shape
    assert not np.array_equal(shown.page._cloud.points, before)


def test_nothing_is_drawn_without_a_new_scan(shown):
    drawn = shown.page.drawn
    shown.page.step()
    assert shown.page.drawn == drawn


def test_nothing_is_drawn_without_a_browser():
    feed = MadeFeed()
    with private_server("test") as (server, _):
        page = Page(server, feed)
        feed.turn()
        page.step()
        assert page.drawn == 0


def test_a_browser_that_has_left_before_the_page_knows_it_leaves_nothing(shown):
    shown.browser.close()
    _until(lambda: not shown.page.cameras.count)
    shown.page._connect(shown.browser.client)
    assert shown.page.cameras.count == 0


@pytest.mark.parametrize(("label", "value"), [("colour by", "ring"), ("colour by", "object"), ("colour map", "gray")])
def test_the_colours_follow_their_controls(shown, label, value):
    _, colours = _changed(shown, label, value)
    assert not np.array_equal(shown.page._cloud.colors, colours)


def test_the_size_of_points_follows_its_control(shown):
    _changed(shown, "point size in m", 0.2)
    assert shown.page._cloud.point_size == 0.2


def test_values_that_no_control_offers_are_replaced(shown):
    for label, value in (("colour by", "cost"), ("colour map", "../x"), ("point size in m", 1e300), ("seconds", float("inf")), ("show", "")):
        shown.browser.set(label, value)
    _until(lambda: shown.page._is_changed)
    shown.page.step()
    controls = shown.page.controls
    assert (controls.quantity, controls.colour_map, controls.amount) == ("intensity", "turbo", ONE_SCAN)
    assert (controls.point_size_m, controls.seconds) == (0.5, 3.0)


def test_a_sensor_that_is_switched_off_is_not_drawn(shown):
    _changed(shown, "front", False)  # noqa: FBT003 - the value
    assert shown.page.shown.size == 1000
    _changed(shown, "roof", False)  # noqa: FBT003
    assert not shown.page._cloud.visible
    _changed(shown, "front", True)  # noqa: FBT003
    assert shown.page._cloud.visible


def test_a_paused_view_stays_and_can_be_coloured(shown):
    _changed(shown, "pause the view", True)  # noqa: FBT003
    points = np.array(shown.page._cloud.points)
    shown.feed.turn()
    shown.page.step()
    _, colours = _changed(shown, "colour by", "distance")
    assert np.array_equal(shown.page._cloud.points, points)
    assert not np.array_equal(shown.page._cloud.colors, colours)
    _changed(shown, "pause the view", False)  # noqa: FBT003
    assert not np.array_equal(shown.page._cloud.points, points)


def test_the_last_seconds_are_drawn(shown):
    _changed(shown, "show", LAST_SECONDS)
    _changed(shown, "seconds", 0.4)
    for _ in range(9):
        shown.feed.turn()
        shown.page.step()
    assert shown.page.shown.size == 5 * 2000
    _changed(shown, "front", False)  # noqa: FBT003
    assert shown.page.shown.size == 5 * 1000
    _changed(shown, "show", ONE_SCAN)
    assert shown.page.shown.size == 1000


def test_the_map_of_all_scans_grows(shown):
    _changed(shown, "show", ALL)
    before = shown.page.shown.size
    for _ in range(10):
        shown.feed.turn()
        shown.page.step()
    assert shown.page.shown.size > before
    assert "cells of 0.05 m" in shown.page.controls.info.content


def test_more_points_than_the_limit_are_decimated_and_both_numbers_shown():
    feed = MadeFeed(count=VIEW_POINTS.bound + 1)
    with _page(feed) as (page, _):
        feed.turn()
        page.step()
        assert page.shown.size == (VIEW_POINTS.bound + 2) // 2
        assert f"{page.shown.size:,} of {VIEW_POINTS.bound + 1:,} points" in page.controls.info.content


def test_a_scan_whose_arrays_do_not_fit_is_logged_and_the_next_one_drawn(shown, capsys):
    shown.feed.turn(instance=np.zeros(1, np.int32))
    shown.page.step()
    assert "view.scan_refused" in capsys.readouterr().out
    shown.feed.turn()
    shown.page.step()
    assert shown.page.shown.size == 2000


def test_a_click_picks_the_nearest_point_and_two_clicks_measure(shown):
    eye = np.array([0.0, 0.0, 1.8])
    first, second = shown.page.shown.world[10], shown.page.shown.world[400]
    _click(shown, eye, first - eye)
    _until(lambda: "channel (ring): 10" in shown.page.controls.picked.content)
    shown.browser.set("measure between two points", True)  # noqa: FBT003
    _click(shown, eye, second - eye)
    _until(lambda: len(shown.page.picked) == 2)
    _until(lambda: "distance" in shown.page.controls.picked.content)
    measured = float(shown.page.controls.picked.content.partition("distance: ")[2].partition(" m")[0])
    picked = [one.world for one in shown.page.picked]
    assert measured == pytest.approx(float(np.linalg.norm(picked[0] - picked[1])), abs=1e-3)
    shown.browser.press("clear")
    _until(lambda: not shown.page.picked)


def _click(shown, origin, direction):
    message = _messages.ScenePointerMessage(
        event_type="click",
        ray_origin=tuple(map(float, origin)),
        ray_direction=tuple(map(float, direction)),
        screen_pos=((0.5, 0.5),),
        modifier=None,
    )
    shown.browser.connection.send(encoded(message))


def test_parts_of_the_scene_are_switched(shown):
    sensor = shown.page._sensors["roof"]
    assert sensor.frame.show_axes
    assert sensor.edges.visible
    _changed(shown, "fields of view", False)  # noqa: FBT003
    _changed(shown, "sensor frames", False)  # noqa: FBT003
    assert not sensor.edges.visible
    assert not sensor.frame.show_axes


def test_a_sensor_that_moves_leaves_a_track(shown):
    for _ in range(12):
        shown.feed.turn()
        shown.page.step()
    assert shown.page._sensors["roof"].track.points.shape[0] >= 8


def test_meshes_are_drawn_up_to_a_limit_of_triangles():
    small = SceneModel(name="small", vertices=TRIANGLE, triangles=np.array([[0, 1, 2]], np.int32))
    large = SceneModel(name="large", vertices=TRIANGLE, triangles=np.tile(np.array([[0, 1, 2]], np.int32), (VIEW_TRIANGLES.bound, 1)))
    feed = MadeFeed()
    with _page(feed, [small, large, small]) as (page, _):
        feed.turn()
        page.step()
        assert len(page._meshes) == 2
        assert "1 meshes are too large" in page.controls.info.content


def test_a_page_far_from_the_origin_of_the_world_has_its_own():
    feed = MadeFeed()
    with _page(feed) as (page, browser):
        feed.turn(position_m=(4e6, 5e5, 100.0))
        page.step()
        assert np.abs(page._cloud.points).max() < 20.0
        found = page.pick((0.0, 0.0, 0.0), page.shown.world[7])
        assert "position: 40000" in "".join(f"{name}: {value}" for name, value in found.rows)
        assert np.linalg.norm(browser.client.camera.position) < 30.0


def test_a_camera_follows_its_sensor(shown):
    client = shown.browser.client
    assert _handle(shown.browser.server, client, "mode").value == FOLLOW
    before = np.array(client.camera.position)
    shown.feed.turn()
    shown.page.step()
    np.testing.assert_allclose(np.array(client.camera.position) - before, [0.0, 0.5, 0.0], atol=1e-6)


def test_a_camera_follows_its_sensor_however_late_its_browser_reports(shown):
    client = shown.browser.client
    for _ in range(5):
        late = camera()
        late.position, late.look_at = (0.0, -10.0, 8.0), (0.0, 2.0, 1.0)  # of long ago, by a person who has turned it
        shown.browser.connection.send(encoded(late))
        _until(lambda: np.allclose(client.camera.look_at, (0.0, 2.0, 1.0)))
        shown.feed.turn()
        shown.page.step()
        sensor = np.array(shown.feed.scans["roof"][-1].position_m)
        np.testing.assert_allclose(client.camera.look_at, sensor + np.array([0.0, 6.0, 0.0]), atol=1e-6)
        np.testing.assert_allclose(np.array(client.camera.position) - client.camera.look_at, [0.0, -12.0, 7.0], atol=1e-6)


def test_a_camera_looks_out_of_its_sensor(shown):
    client = shown.browser.client
    shown.browser.set("sensor", "front")
    shown.browser.set("mode", FIRST_PERSON)
    shown.feed.turn()
    shown.page.step()
    np.testing.assert_allclose(client.camera.position, [0.0, 0.5, 1.8], atol=1e-6)
    np.testing.assert_allclose(client.camera.look_at, [0.0, 6.5, 1.8], atol=1e-6)


def test_a_free_camera_is_left_alone(shown):
    shown.browser.set("mode", FREE)
    before = np.array(shown.browser.client.camera.position)
    shown.feed.turn()
    shown.page.step()
    assert np.array_equal(shown.browser.client.camera.position, before)


def test_the_camera_looks_from_above_and_from_behind(shown):
    client = shown.browser.client
    shown.browser.press("top view")
    _until(lambda: client.camera.position[2] > 50.0)
    shown.browser.press("behind the sensor")
    _until(lambda: client.camera.position[2] < 20.0)
    assert client.camera.position[1] < -10.0


def test_browsers_have_cameras_of_their_own(shown):
    path = shown.browser.connection.socket.getpeername()
    second = Browser(shown.browser.server, path, shown.page)
    second.press("top view")
    _until(lambda: second.client.camera.position[2] > 50.0)
    assert shown.browser.client.camera.position[2] < 20.0
    second.close()
    _until(lambda: shown.page.cameras.count == 1)


def test_a_screenshot_is_a_png_of_at_most_full_hd():
    sizes = []

    def get_render(height, width, **_):
        sizes.append((height, width))
        return np.zeros((height, width, 3), np.uint8)

    client = SimpleNamespace(camera=SimpleNamespace(image_height=5000, image_width=640), get_render=get_render)
    assert Image.open(io.BytesIO(screenshot(client))).size == (640, 1080)
    assert sizes == [(1080, 640)]


def test_a_capture_is_played_paused_and_sought():
    feed = MadeCapture()
    with _page(feed) as (page, browser):
        feed.turn()
        page.step()
        browser.press("play")
        _until(lambda: feed.done == ["play"])
        browser.press("pause")
        _until(lambda: feed.done == ["play", "pause"])
        browser.set("position in s", 7.5)
        _until(lambda: feed.done == ["play", "pause", 7.5])
        feed.position_s = 9.25
        page.step()
        assert _handle(browser.server, browser.client, "position in s").value == pytest.approx(9.25)
        assert feed.done == ["play", "pause", 7.5]


def test_replays_of_a_daemon_are_controlled_through_it():
    done = []
    control = SimpleNamespace(
        resume=lambda name: done.append(("resume", name)),
        pause=lambda name: done.append(("pause", name)),
        seek=lambda position_s, name: done.append(("seek", position_s, name)),
    )
    feed = MadeFeed()
    feed.state = {"rig_s": 1.0, "replays": [{"replay": "lot", "position_s": 5.0, "ratio": 0.5}]}
    with _page(feed, control=control) as (page, browser):
        page.step()
        browser.press("pause")
        _until(lambda: done == [("pause", "lot")])
        browser.set("position in s", 2.5)
        _until(lambda: done[1:] == [("seek", 2.5, "lot")])
        assert _handle(browser.server, browser.client, "position in s").max == pytest.approx(10.0)


def test_faults_on_command_are_listed_and_cleared():
    cleared, feed = [], MadeFeed()
    feed.state = {"rig_s": 1.0}
    with _page(feed, control=SimpleNamespace(clear=lambda: cleared.append(True))) as (page, browser):
        page.step()
        assert all(handle._impl.props.label != "clear faults" for handle in browser.server.gui._gui_input_handle_from_uuid.values())
        tape = {"name": "tape", "kind": "blocked_sector", "on": "ro*f", "acts": True}
        feed.state = {"rig_s": 2.0, "injected": [tape, {"name": "dead", "acts": False}]}
        shown = lambda: page.step() or (page._faults._text.content if page._faults._text is not None else "")  # noqa: E731 - asked again and again
        _until(lambda: shown() == "- **tape** on ro&#42;f\n- **dead** on &#42;, waits")
        browser.press("clear faults")
        _until(lambda: cleared)
        feed.state = {"rig_s": 3.0, "injected": []}
        _until(lambda: shown() == "none")


def test_the_health_of_a_daemon_is_shown_as_strips():
    feed = MadeFeed()
    flows = {"data": {"late_packets": 1, "dropped_packets": 0, "lateness_max_s": 0.0001}}
    feed.state = {"rig_s": 1.0, "level": "degraded", "faults": [{"text": "it is late"}], "sensors": {"roof": {"lead_s": 0.01, "flows": flows}}}
    with _page(feed) as (page, _):
        page.step()
        flows["data"]["late_packets"] = 5
        feed.state = {**feed.state, "rig_s": 2.0}
        for _ in range(10):
            page.step()
        assert page._health._text.content == "**degraded**\n- it is late"
        lateness, packets, render = page._health._strips
        assert list(packets._chart.data[1]) == [0.0, 4.0]
        assert list(lateness._chart.data[3]) == pytest.approx([0.1, 0.1])
        assert list(render._chart.data[3]) == [10.0, 10.0]


def test_objects_are_shown_of_the_scans_of_which_they_are_known():
    feed = MadeFeed()
    with _page(feed) as (page, browser):
        for _ in range(3):
            feed.turn(instance=None, label=None)
        page.step()
        assert page.shown.stamp_ns == feed.scans["roof"][-1].stamp_ns
        browser.set("colour by", "object")
        feed.scans["roof"][1] = dataclasses.replace(feed.scans["roof"][1], instance=np.zeros(1000, np.int32))
        page.step()
        assert page.shown.stamp_ns == feed.scans["roof"][1].stamp_ns
        feed.turn(instance=None, label=None)
        page.step()
        assert (page.shown.instance == 0).all()
        browser.set("colour by", "ring")
        page.step()
        assert page.shown.stamp_ns == feed.scans["roof"][-1].stamp_ns


def test_a_picked_object_is_named():
    feed = MadeFeed()
    feed.object_name = lambda instance: f"car {instance}"
    with _page(feed) as (page, _):
        feed.turn()
        page.step()
        found = page.pick((0.0, 0.0, 1.8), page.shown.world[3] - np.array([0.0, 0.0, 1.8]))
        assert dict(found.rows)["object"] in {f"{number}, car {number}" for number in range(6)}
