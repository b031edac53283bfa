"""The map of returns on the page, and the ground truth of a picked point."""

import time

import numpy as np
import pytest

from hilsim.show.view.page.mapping import MapLayer
from hilsim.show.view.page.page import Page
from hilsim.show.view.page.picking import truth_rows
from hilsim.show.view.page.server import private_server
from tests.unit.view.feeds import MadeFeed


@pytest.fixture(scope="module")
def server():
    with private_server("test") as (made, _):
        yield made


@pytest.fixture(autouse=True)
def clean(server):
    yield
    server.gui.reset()
    server.scene.reset()


def turns(feed, count):
    return [scan for _ in range(count) for scan in (feed.turn() or feed.scans_since("roof", 0))[-1:]]


def test_a_map_counts_the_returns_of_each_cell_and_is_a_file(server, tmp_path):
    layer, feed = MapLayer(server), MadeFeed("roof")
    assert layer.file() == ("", b"")
    assert layer.info.content == "a map must grow before it is saved"
    scans = turns(feed, 3)
    for scan in scans:
        layer.add(scan)
    for _ in range(5):
        layer.step(np.zeros(3))
    points = sum(scan.points.size for scan in scans)
    assert layer.info.content == f"{points:,} returns in {layer.cells:,} cells"
    layer._format.value = "npz"
    name, contents = layer.file()
    (tmp_path / name).write_bytes(contents)
    with np.load(tmp_path / name) as written:
        assert (written["count"].sum(), written["count"].size) == (points, layer.cells)
    layer.clear()
    for _ in range(5):
        layer.step(np.zeros(3))
    assert layer.cells == 0


def test_the_page_lets_the_map_grow_without_a_browser(server):
    feed = MadeFeed("roof")
    page = Page(server, feed)
    page.mapping._is_on.value = True
    for _ in range(12):
        feed.turn()
        page.step()
    assert page.mapping.cells > 0


class Truthful(MadeFeed):
    """A feed that knows the truth of its points."""

    def truth(self, scan, index):
        return {"object": "crate", "material": "wood", "cause": "surface", "range_m": float(scan.points["range"][index]), "incidence_deg": None}


def test_the_truth_of_a_picked_point_comes_after_its_numbers(server):
    feed = Truthful("roof")
    page = Page(server, feed)
    page.mapping._is_on.value = True  # there is no browser
    feed.turn()
    for _ in range(12):
        page.step()
    page._draw()
    target = page.shown.world[100].astype(float)
    picked = page.pick((0.0, 0.0, 0.0), target)
    deadline_s = time.monotonic() + 30.0
    while page.picked[-1] is picked:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    with page._lock:  # the thread has marked the point, too: the page may go
        rows = dict(page.picked[-1].rows)
    assert (rows["true object"], rows["material"], rows["true range"]) == ("crate", "wood", rows["range"])
    assert "angle of incidence" not in rows
    assert truth_rows({"reason": "no rig"}) == (("ground truth", "unknown: no rig"),)
