"""Which kernels are known to be compiled: those of a rig's features, by the files that compiling processes leave."""

import pytest

from hilsim.config.rig import load_rig
from hilsim.daemon import precompile
from hilsim.daemon.precompile import is_compiled, kernel_needs
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
    monkeypatch.setattr(precompile, "module_directory", lambda _module: place)
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


@pytest.mark.parametrize("more", [{"background"}, {"external"}, {"obstacles", "record"}])
def test_kernels_with_an_optional_part_are_others_than_those_without(rig, compiled, more):
    compiled(PLAIN | more)
    assert not is_compiled(rig(ROOM))


def test_features_of_two_rigs_are_not_added(rig, compiled):
    compiled(PLAIN | {"changes"})
    compiled(PLAIN | {"record"})
    assert not is_compiled(rig(ROOM + RECORD + CONTROL))
    compiled(PLAIN | {"changes", "record"})
    assert is_compiled(rig(ROOM + RECORD + CONTROL))
