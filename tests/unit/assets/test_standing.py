"""Objects that stand on the ground of a scene."""

import numpy as np
import pytest

from hilsim.errors import ConfigError
from hilsim.world.assets.scenes import scene_objects
from hilsim.world.geometry.poses import Pose
from hilsim.world.scene.background_specs import BackgroundSpec
from hilsim.world.scene.object_specs import MotionSpec, TerrainSpec, WaypointSpec
from hilsim.world.scene.shape_specs import BoxSpec, CylinderSpec, EllipsoidSpec, PlaneSpec, SphereSpec
from hilsim.world.scene.specs import SceneSpec

PERSON = CylinderSpec(radius_m=0.25, height_m=1.75, position_m=(3.0, 4.0, 0.0), stand_on_ground=True, name="person")
FLOOR = BoxSpec(size_m=(20.0, 20.0, 1.0), position_m=(0.0, 0.0, -1.5))
ROOF = BoxSpec(size_m=(20.0, 20.0, 0.3), position_m=(0.0, 0.0, 4.0))


def lowest_m(spec, directory, name="person"):
    """Lowest point in the world of the object of a name."""
    (thing,) = (thing for thing in scene_objects(spec, directory)[0] if thing.name == name)
    return float(thing.mesh.placed(thing.placement).vertices_m[:, 2].min())


def test_an_object_is_put_on_the_floor_and_not_on_the_roof(tmp_path):
    assert lowest_m(SceneSpec(box=(FLOOR, ROOF), cylinder=(PERSON,)), tmp_path) == pytest.approx(-1.0, abs=1e-3)


def test_an_object_is_put_on_a_slab_that_covers_the_ground(tmp_path):
    kerb = BoxSpec(size_m=(4.0, 4.0, 0.3), position_m=(3.0, 4.0, 0.0))
    spec = SceneSpec(plane=(PlaneSpec(size_m=(50.0, 50.0)),), box=(kerb,), cylinder=(PERSON,))
    assert lowest_m(spec, tmp_path) == pytest.approx(0.15, abs=1e-3)


def test_an_object_that_does_not_fit_under_a_table_is_put_on_it(tmp_path):
    table = BoxSpec(size_m=(2.0, 2.0, 0.05), position_m=(3.0, 4.0, 0.75))
    ball = SphereSpec(radius_m=0.2, position_m=(3.0, 4.0, 0.0), stand_on_ground=True, name="ball")
    spec = SceneSpec(plane=(PlaneSpec(size_m=(50.0, 50.0)),), box=(table,), cylinder=(PERSON,), sphere=(ball,))
    assert lowest_m(spec, tmp_path) == pytest.approx(0.775, abs=1e-3)
    assert lowest_m(spec, tmp_path, "ball") == pytest.approx(0.0, abs=1e-3)


def test_z_counts_from_the_ground(tmp_path):
    bird = SphereSpec(radius_m=0.1, position_m=(3.0, 4.0, 1.5), stand_on_ground=True, name="bird")
    assert lowest_m(SceneSpec(box=(FLOOR,), sphere=(bird,)), tmp_path, "bird") == pytest.approx(0.5, abs=1e-3)


def test_a_turned_object_is_put_on_its_lowest_point(tmp_path):
    lying = EllipsoidSpec(
        radii_m=(0.2, 0.4, 1.0), tolerance_m=1e-4, position_m=(1.0, 1.0, 0.0), rotation_deg=(90.0, 0.0, 30.0), stand_on_ground=True, name="egg"
    )
    spec = SceneSpec(plane=(PlaneSpec(size_m=(50.0, 50.0), position_m=(0.0, 0.0, 2.0)),), ellipsoid=(lying,))
    assert lowest_m(spec, tmp_path, "egg") == pytest.approx(2.0, abs=1e-3)
    (egg,) = (thing for thing in scene_objects(spec, tmp_path)[0] if thing.name == "egg")
    assert egg.placement.position_m[2] == pytest.approx(2.4, abs=2e-3)


@pytest.mark.extended
def test_objects_stand_on_slopes_and_far_from_the_origin(tmp_path):
    slope = PlaneSpec(size_m=(50.0, 50.0), rotation_deg=(0.0, -10.0, 0.0))
    spec = SceneSpec(origin_m=(500_000.0, 4_000_000.0, 600.0), plane=(slope,), cylinder=(PERSON,))
    assert lowest_m(spec, tmp_path) == pytest.approx(600.0 + 3.0 * np.tan(np.radians(10.0)), abs=1e-3)


def test_neither_moving_objects_nor_standing_ones_are_ground(tmp_path):
    way = MotionSpec(waypoints=(WaypointSpec(time_s=0.0, position_m=(3.0, 4.0, 0.0)), WaypointSpec(time_s=9.0, position_m=(3.0, 4.0, 1.0))))
    lorry = BoxSpec(size_m=(4.0, 4.0, 3.0), motion=way)
    crate = BoxSpec(size_m=(1.0, 1.0, 1.0), position_m=(3.0, 4.0, 0.0), stand_on_ground=True, name="crate")
    spec = SceneSpec(box=(FLOOR, lorry, crate), cylinder=(PERSON,))
    assert lowest_m(spec, tmp_path) == lowest_m(spec, tmp_path, "crate") == pytest.approx(-1.0, abs=1e-3)


def test_the_ground_of_a_captured_background_is_the_plane_z_0(tmp_path):
    captured = BackgroundSpec(file="hall.npz")
    assert lowest_m(SceneSpec(background=(captured,), cylinder=(PERSON,)), tmp_path) == pytest.approx(0.0, abs=1e-9)
    step = BoxSpec(size_m=(2.0, 2.0, 0.4), position_m=(3.0, 4.0, 0.2))
    assert lowest_m(SceneSpec(background=(captured,), box=(step,), cylinder=(PERSON,)), tmp_path) == pytest.approx(0.4, abs=1e-3)


@pytest.mark.extended
def test_objects_stand_on_the_streets_ground(tmp_path):
    scene = SceneSpec(generator="street", generator_moving_cars=0, generator_pedestrians=0)
    for x_m in (-40.0, -3.0, 0.0, 12.0, 60.0):
        for y_m in (-9.0, -6.0, 0.0, 2.0, 6.5):
            spec = SceneSpec(**{**vars(scene), "cylinder": (CylinderSpec(**{**vars(PERSON), "position_m": (x_m, y_m, 0.0)}),)})
            assert 0.0 <= lowest_m(spec, tmp_path) <= 0.2 or lowest_m(spec, tmp_path) > 0.5  # on the road, the pavement, or on a car


def test_an_object_over_nothing_is_refused(tmp_path):
    beside = BoxSpec(size_m=(1.0, 1.0, 1.0), position_m=(30.0, 0.0, 0.0), stand_on_ground=True, name="crate")
    with pytest.raises(
        ConfigError, match=r"^crate: stand_on_ground requires a still surface at x = 30, y = 0 that faces up, with 1.00 m of room above it, got none$"
    ):
        scene_objects(SceneSpec(box=(FLOOR, beside)), tmp_path)
    with pytest.raises(ConfigError, match="person: stand_on_ground requires"):
        scene_objects(SceneSpec(cylinder=(PERSON,)), tmp_path)


def test_what_moves_and_terrain_cannot_stand_on_the_ground():
    way = MotionSpec(waypoints=(WaypointSpec(time_s=0.0, position_m=(0.0, 0.0, 0.0)), WaypointSpec(time_s=1.0, position_m=(1.0, 0.0, 0.0))))
    with pytest.raises(ValueError, match="stand_on_ground must be of an object without a motion"):
        BoxSpec(size_m=(1.0, 1.0, 1.0), motion=way, stand_on_ground=True)
    with pytest.raises(ValueError, match="terrain must not have stand_on_ground"):
        TerrainSpec(file="t.tif", stand_on_ground=True)


def test_objects_that_do_not_stand_keep_their_places(tmp_path):
    objects, _ = scene_objects(SceneSpec(box=(FLOOR,), cylinder=(PERSON,)), tmp_path)
    assert objects[0].placement == Pose(position_m=(0.0, 0.0, -1.5))
