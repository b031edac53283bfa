"""Which kernels are known to be compiled, by the files that compiling processes leave, and what a process beside a caller compiles."""

import os
import threading

import pytest

from hilsim.compilation import cache
from hilsim.config.rig import load_rig
from hilsim.daemon import precompile
from hilsim.daemon.precompile import compile_beside, is_compiled, kernel_needs
from tests.support import ROOM, write_rig

RECORD, CONTROL = '[record]\nfile = "sent.pcap"\n', '[control]\nsocket = "control"\n'
PLAIN = {"platform-fixed", "steady", "velodyne"}


@pytest.fixture
def rig(tmp_path):
    return lambda text: load_rig(write_rig(tmp_path, text))


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """Write a file as a process does that compiled the kernels of some features."""
    place = tmp_path / "marks"
    place.mkdir()
    monkeypatch.setattr(precompile, "kernel_directories", lambda _module: [place])
    return lambda features: (place / f"features-{len(list(place.iterdir()))}").write_text("\n".join(features))


def test_any_number_of_rays_needs_the_same_kernels(rig):
    assert {kernel_needs(rig(ROOM.replace("sub_rays = 1", f"sub_rays = {rays}"))) for rays in (1, 7, 19)} == {tuple(sorted(PLAIN))}


def test_nothing_is_compiled_before_a_rig_with_its_features_was(rig, compiled):
    assert not is_compiled(rig(ROOM))
    compiled(PLAIN - {"velodyne"})
    assert not is_compiled(rig(ROOM))
    compiled(PLAIN)
    assert is_compiled(rig(ROOM))
    assert not is_compiled(rig(ROOM + RECORD))


@pytest.mark.parametrize("more", [{"record"}, {"changes", "record", "replay"}, {"cepton", "ouster"}])
def test_a_rig_with_more_features_has_the_kernels_of_one_with_fewer(rig, compiled, more):
    compiled(PLAIN | more)
    assert is_compiled(rig(ROOM))


@pytest.mark.parametrize("more", [{"background"}, {"moved"}, {"obstacles", "record"}])
def test_kernels_with_an_optional_part_are_others_than_those_without(rig, compiled, more):
    compiled(PLAIN | more)
    assert not is_compiled(rig(ROOM))


def test_features_of_two_rigs_are_not_added(rig, compiled):
    changing = PLAIN - {"velodyne"} | {"velodyne-rare", "changes"}
    compiled(changing)
    compiled(PLAIN | {"record"})
    assert not is_compiled(rig(ROOM + RECORD + CONTROL))
    compiled(changing | {"record"})
    assert is_compiled(rig(ROOM + RECORD + CONTROL))


FEW_STAGES = """
from pathlib import Path
from time import sleep

from hilsim.compilation.jit import compile_for
from hilsim.daemon import precompile
from hilsim.emulator.fused import render_info_packet
from hilsim.protocols.ethernet import PAYLOAD_ONLY

def compile_few(rig):
    while not Path(__file__).with_name("go").exists():
        sleep(0.01)
    some = precompile._some_lidar(rig)
    compile_for(render_info_packet, some.plan, some.platform, PAYLOAD_ONLY, 0, 0, some.datagram)

precompile._TASKS["stages"] = compile_few
main = precompile.main
"""
"""The module of the child, whose stages are those that compile in seconds; the child waits for the file ``go``."""


@pytest.fixture
def children(tmp_path, monkeypatch):
    """A cache without kernels, and the module of the child; gives the threads that wait for children."""
    (tmp_path / "few_stages.py").write_text(FEW_STAGES)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", ""))))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(precompile, "__name__", "few_stages")
    known = (cache.cache_directory, cache.is_writable, cache.module_directory)
    for each in known:
        each.cache_clear()
    yield lambda: [thread for thread in threading.enumerate() if thread.name == "compile-beside"]
    monkeypatch.undo()
    for each in known:
        each.cache_clear()


@pytest.mark.extended
def test_a_child_compiles_beside_its_caller_into_a_cold_cache_and_is_not_started_with_a_warm_one(rig, children, tmp_path):
    compile_beside(rig(ROOM))
    (child,) = children()
    assert not cache.module_is_compiled("hilsim.emulator.fused")
    (tmp_path / "go").touch()
    child.join()
    assert cache.module_is_compiled("hilsim.emulator.fused")
    (tmp_path / "go").unlink()
    compile_beside(rig(ROOM))
    assert children() == []


def test_a_child_that_fails_does_not_disturb_its_caller(rig, children, tmp_path):
    (tmp_path / "few_stages.py").write_text(FEW_STAGES.replace("    compile_for(", "    raise SystemExit("))
    compile_beside(rig(ROOM))
    (child,) = children()
    (tmp_path / "go").touch()
    child.join()
    assert not cache.module_is_compiled("hilsim.emulator.fused")
