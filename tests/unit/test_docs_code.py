"""Every block of Python on a page runs: the blocks of a page one after the other, in a folder that has what the page speaks of."""

import sys
import types
from contextlib import contextmanager, nullcontext

import pytest

import hilsim
from hilsim_flight_controller import FlightController
from tests.pages import PAGES, blocks_of, by_page
from tests.support import write_rig

EDITS = {
    ("add-an-output.md", 1): "a line of a class of hilsim's own",
    ("add-an-output.md", 2): "an entry of a table of hilsim's own, with the line above",
    ("livox.md", 0): "a host, in the environment of the vendor's SDK: tests/interop/test_livox_control.py does what it does",
    ("hesai.md", 0): "a decoder's points, in its environment: tests/interop/test_hesai_points.py does what it does",
    ("add-a-serial-device.md", 1): "a line of a table of hilsim's own",
}
"""Blocks, counted from 0 on their pages, that show a change of a file and run only there; their pages' tests make the change or check it."""


@contextmanager
def _recording_with_truth(directory):
    """The files that the page on ground truth works on."""
    pytest.importorskip("pyarrow", reason="the extra truth is not installed")
    hilsim.record(write_rig(directory), directory / "drive.pcap", duration_s=0.1, truth=directory / "drive.parquet")
    yield {}


@contextmanager
def _flight_controller(_):
    """The controller of a test that is being written, and what it says at the end."""
    with FlightController(link="pty", script="idle") as controller:
        yield {"controller": controller, "report": controller.report()}


@contextmanager
def _room(directory):
    """The rig that the page on editing works on."""
    pytest.importorskip("tomlkit", reason="the extra view is not installed")
    write_rig(directory, name="room.toml")
    yield {}


PREPARED = {"edit-a-scene.md": _room, "ground-truth.md": _recording_with_truth, "test-with-a-flight-controller.md": _flight_controller}


WITH_BLOCKS = [page for page in PAGES if blocks_of(page, "python")]


@pytest.mark.parametrize("page", by_page(WITH_BLOCKS))
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("page")  # dataclasses look for the module that they stand in
    monkeypatch.setitem(sys.modules, "page", module)
    with PREPARED.get(page.name, lambda _: nullcontext({}))(tmp_path) as given:
        vars(module).update(given)
        for block in blocks_of(page, "python"):
            if block.key not in EDITS:
                exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), vars(module))  # noqa: S102 - our own pages
