"""Worlds with objects added, moved and removed: the same as worlds built anew."""

import numpy as np
import pytest

from hilsim.assembly.editing import EditableWorld
from hilsim.errors import ConfigError
from hilsim.world.geometry.poses import Pose, mounting
from hilsim.world.geometry.tracks import fixed_track, linear_track
from hilsim.world.render.cpu import cast_rays
from hilsim.world.scene.materials import Material
from hilsim.world.scene.primitives import box, sphere
from hilsim.world.scene.world import SceneObject, build_world
from tests.compiled import compiled_only

PLASTER, PAINT, GLASS = (
    Material(name="plaster", reflectivity=85),
    Material(name="paint", reflectivity=20),
    Material(name="glass", reflectivity=4, transmission=0.8),
)
TRACK = linear_track(np.array([0, 10**9]), [(0.0, 6.0, 0.0), (8.0, 6.0, 0.0)], [(1.0, 0.0, 0.0, 0.0)] * 2, 0)
BALL = sphere(1.0, PAINT, 0.01)


def scene():
    return [
        SceneObject(mesh=box((40.0, 40.0, 1.0), PLASTER), placement=Pose(position_m=(0.0, 0.0, -3.0)), name="floor", label=1),
        SceneObject(mesh=box((1.0, 4.0, 4.0), PAINT), placement=Pose(position_m=(7.0, 0.0, 0.0)), name="wall", label=2),
        SceneObject(mesh=BALL, placement=TRACK, name="ball", label=3),
        SceneObject(mesh=box((1.0, 4.0, 4.0), PLASTER), placement=Pose(position_m=(-7.0, 0.0, 0.0)), name="other wall", label=4),
    ]


def seen(world, time_ns=500_000_000):
    rng = np.random.default_rng(5)
    direction = rng.normal(size=(3000, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, np.newaxis]
    range_m, instance, triangle = np.zeros(3000, np.float32), np.zeros(3000, np.int32), np.zeros(3000, np.int32)
    cast_rays(world, np.zeros((3000, 3)), direction.astype(np.float32), np.full(3000, time_ns), 100.0, range_m, instance, triangle)
    is_hit = instance >= 0
    owner = np.where(instance < world.tile_count, world.owner[triangle], world.instance_object[instance])
    return (
        range_m,
        np.where(is_hit, owner, -1),
        np.where(is_hit, world.reflectivity[world.material[triangle]], 0),
        np.where(is_hit, world.source[triangle], 0),
    )


def assert_alike(edited, objects, unseen=frozenset()):
    """Same ranges, objects, reflectivities and triangles as of a world that is built anew; edited objects are movers in both."""
    expected = build_world([thing if number in edited.still else moving(thing) for number, thing in enumerate(objects)], unseen)
    for got, wanted in zip(seen(edited.world), seen(expected), strict=True):
        assert np.array_equal(got, wanted)
    assert np.array_equal(edited.world.object_label, expected.object_label)


def moving(thing):
    placement = fixed_track(thing.placement) if isinstance(thing.placement, Pose) else thing.placement
    return SceneObject(mesh=thing.mesh, placement=placement, name=thing.name, label=thing.label)


@pytest.fixture
def edited():
    return EditableWorld.of(scene(), build_world(scene()))


CRATE = SceneObject(mesh=box((1.0, 1.0, 1.0), GLASS), placement=mounting((0.0, -4.0, 0.0), (0.0, 0.0, 30.0)), name="crate", label=9)


@compiled_only
def test_an_added_object_is_seen_under_the_next_id(edited):
    grown = edited.added(CRATE)
    assert grown.find("crate") == 4
    assert_alike(grown, [*scene(), CRATE])
    assert not grown.world.is_opaque
    assert (seen(grown.world)[1] == 4).any()


@compiled_only
def test_static_geometry_is_shared_by_the_worlds_before_and_after_a_change(edited):
    grown = edited.added(CRATE)
    moved = grown.placed(4, Pose(position_m=(0.0, 5.0, 1.0)))
    assert moved.world.corners is grown.world.corners
    assert moved.world.node_bounds is grown.world.node_bounds
    assert moved.still == edited.still


def test_an_object_that_leaves_the_tiles_leaves_their_rows_and_boxes_as_they_are(edited):
    rows, nodes = edited.world.corners.shape[0], edited.world.node_links.shape[0]
    for left in (edited.placed(1, Pose(position_m=(0.0, 0.0, 9.0))), edited.without(1)):
        is_left = edited.world.owner == 1
        assert (left.world.corners[:rows][~is_left] == edited.world.corners[~is_left]).all()
        assert (left.world.node_links[:nodes] == edited.world.node_links).all()
        assert (left.world.owner[:rows] == edited.world.owner).all()
        assert area_m2(left.world, 1) == 0.0
    assert area_m2(edited.world, 1) > 0.0


def area_m2(world, number):
    """Area of an object's triangles in the tiles."""
    edges = world.corners[world.owner == number, 3:]
    return 0.5 * np.linalg.norm(np.cross(edges[:, :3], edges[:, 3:]), axis=1).sum()


@compiled_only
def test_objects_of_one_mesh_share_its_geometry(edited):
    twin = SceneObject(mesh=BALL, placement=Pose(position_m=(0.0, -6.0, 0.0)), name="twin")
    grown = edited.added(twin)
    assert grown.world.corners is edited.world.corners
    assert_alike(grown, [*scene(), twin])


@compiled_only
@pytest.mark.parametrize("name", ["wall", "ball"], ids=["one that stood still", "one that moved"])
def test_an_object_is_moved_and_moved_again(edited, name):
    number = edited.find(name)
    for pose in (Pose(position_m=(3.0, 3.0, 0.5)), mounting((-3.0, 3.0, 0.5), (10.0, 20.0, 30.0))):
        edited = edited.placed(number, pose)
        objects = scene()
        objects[number] = SceneObject(mesh=objects[number].mesh, placement=pose, name=name, label=objects[number].label)
        assert_alike(edited, objects)


@compiled_only
def test_an_object_that_stood_still_travels(edited):
    travelling = edited.placed(1, TRACK)
    objects = scene()
    objects[1] = SceneObject(mesh=objects[1].mesh, placement=TRACK, name="wall", label=2)
    assert_alike(travelling, objects)


@compiled_only
@pytest.mark.parametrize("name", ["floor", "wall", "ball"])
def test_a_removed_object_is_not_seen_and_the_others_keep_their_ids(edited, name):
    number = edited.find(name)
    assert_alike(edited.without(number), scene(), frozenset({number}))


@compiled_only
def test_a_hundred_random_edits_leave_the_world_that_is_built_anew():
    rng = np.random.default_rng(11)
    edited, objects, gone = EditableWorld.of(scene(), build_world(scene())), scene(), set()
    for _ in range(100):
        here = [number for number in range(len(objects)) if number not in gone]
        kind = rng.integers(3)
        if kind == 0 or len(here) < 3:
            objects.append(
                SceneObject(
                    mesh=box(tuple(rng.uniform(0.3, 2.0, 3)), PAINT),
                    placement=Pose(position_m=tuple(rng.uniform(-8, 8, 3))),
                    name=f"box {len(objects)}",
                )
            )
            edited = edited.added(objects[-1])
            continue
        number = int(rng.choice(here))
        if kind == 1:
            pose = mounting(tuple(rng.uniform(-8, 8, 3)), tuple(rng.uniform(-180, 180, 3)))
            objects[number] = SceneObject(mesh=objects[number].mesh, placement=pose, name=objects[number].name, label=objects[number].label)
            edited = edited.placed(number, pose)
        else:
            gone.add(number)
            edited = edited.without(number)
    assert_alike(edited, objects, frozenset(gone))


def test_a_name_must_be_one_objects(edited):
    assert edited.has("wall")
    assert not edited.has("gate")
    with pytest.raises(ConfigError, match='name must be one object\'s, got "gate", which no objects have'):
        edited.find("gate")
    twice = edited.added(CRATE).added(CRATE)
    with pytest.raises(ConfigError, match='got "crate", which 2 objects have'):
        twice.find("crate")
    assert twice.without(4).find("crate") == 5
