"""Objects that a timed change puts on the ground."""

import pytest

from hilsim.assembly.build import build_scenery
from hilsim.assembly.changed import RigState
from hilsim.config.rig import load_rig
from hilsim.config.script import AddChange, MoveChange, RemoveChange
from hilsim.errors import ConfigError
from hilsim.world.scene.shape_specs import BoxSpec, CylinderSpec
from tests.support import ROOM, write_rig

SLAB = '[[scene.box]]\nname = "slab"\nposition_m = [3.0, -2.0, -0.9]\nsize_m = [2.0, 2.0, 0.2]\n'


@pytest.fixture
def state(tmp_path):
    rig = load_rig(write_rig(tmp_path, ROOM + 'profile = "vlp16"\n' + SLAB))
    return RigState.at_start(rig, build_scenery(rig))


def added(name, at_m):
    return AddChange(at_s=1.0, cylinder=CylinderSpec(name=name, radius_m=0.2, height_m=1.6, position_m=at_m, stand_on_ground=True))


def lowest_m(state, name):
    (thing,) = (thing for thing in state.objects if thing.name == name)
    return float(thing.mesh.placed(thing.placement).vertices_m[:, 2].min())


def test_an_added_object_is_put_on_the_rigs_floor_or_on_what_covers_it(state):
    state = state.after(added("far", (-5.0, 2.0, 0.0))).after(added("near", (3.0, -2.0, 0.0)))
    assert lowest_m(state, "far") == pytest.approx(-1.0, abs=1e-3)
    assert lowest_m(state, "near") == pytest.approx(-0.8, abs=1e-3)


def test_an_added_object_is_put_on_what_was_moved_below_it_and_not_on_what_was_removed(state):
    moved = state.after(MoveChange(at_s=0.5, name="slab", position_m=(-5.0, 2.0, -0.9), rotation_deg=(0.0, 0.0, 0.0)))
    assert lowest_m(moved.after(added("person", (-5.0, 2.0, 0.0))), "person") == pytest.approx(-0.8, abs=1e-3)
    assert lowest_m(moved.after(added("person", (3.0, -2.0, 0.0))), "person") == pytest.approx(-1.0, abs=1e-3)
    removed = state.after(RemoveChange(at_s=0.5, name="slab"))
    assert lowest_m(removed.after(added("person", (3.0, -2.0, 0.0))), "person") == pytest.approx(-1.0, abs=1e-3)


def test_an_added_object_is_put_on_another_added_one_only_if_that_is_no_standing_one(state):
    crate = AddChange(at_s=0.5, box=BoxSpec(name="crate", size_m=(1.0, 1.0, 1.0), position_m=(-5.0, 2.0, -0.5)))
    assert lowest_m(state.after(crate).after(added("person", (-5.0, 2.0, 0.0))), "person") == pytest.approx(0.0, abs=1e-3)
    assert lowest_m(state.after(added("one", (-5.0, 2.0, 0.0))).after(added("other", (-5.0, 2.0, 0.0))), "other") == pytest.approx(-1.0, abs=1e-3)


def test_an_object_added_over_nothing_is_refused(state):
    with pytest.raises(ConfigError, match=r"^person: stand_on_ground requires a still surface at x = 60, y = 0"):
        state.after(added("person", (60.0, 0.0, 0.0)))
