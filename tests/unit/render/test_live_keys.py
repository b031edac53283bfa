"""Objects that are moved by keys: their poses, their spheres, and rays that meet them."""

import numpy as np
import pytest

from hilsim.assembly.editing import EditableWorld
from hilsim.world.geometry.live_keys import CURVE_RATIO, KEYS, UNSEEN_M, LivePlacement, build_live_keys, live_pose, live_sphere, write_key
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import about_axis
from hilsim.world.geometry.tracks import curved_track, linear_track, track_state
from hilsim.world.render.cpu import cast_many, cast_rays
from hilsim.world.render.movers import mover_pose
from hilsim.world.scene.materials import Material
from hilsim.world.scene.primitives import box
from hilsim.world.scene.world import SceneObject, build_world

MS = 1_000_000
LEVEL = np.array((1.0, 0.0, 0.0, 0.0))
CUBE = box((1.0, 1.0, 1.0), Material(name="cube", reflectivity=50))


def put(keys, slot, time_ns, position, velocity=(0.0, 0.0, 0.0), turn=LEVEL, *, seen=True):
    """Write a key."""
    write_key(keys, slot, time_ns, np.array(position, np.float64), np.array(velocity, np.float64), np.array(turn, np.float64), seen)


def winding(time_ns):
    """Position, velocity and orientation of a smooth path."""
    t = 1e-9 * time_ns
    return (10.0 * np.cos(t), 10.0 * np.sin(t), 0.0), (-10.0 * np.sin(t), 10.0 * np.cos(t), 0.0), about_axis((0.0, 0.0, 1.0), float(t))


@pytest.mark.parametrize("count", [2, 100, KEYS, 3 * KEYS + 17])
def test_a_slot_gives_the_poses_of_a_track_of_its_readable_keys(count):
    keys = build_live_keys(3)
    times = [20 * MS * number for number in range(count)]
    for time_ns in times:
        put(keys, 1, time_ns, *winding(time_ns))
    kept = times[-min(count, KEYS // 2) :]
    position, velocity, turn = zip(*map(winding, kept), strict=True)
    track = curved_track(kept, position, velocity, velocity, turn)
    for time_ns in range(kept[0], kept[-1] + 50 * MS, 7_777_777):
        (x, y, z), found = live_pose(keys, 1, time_ns)
        (a, b, c), expected = track_state(track, time_ns)
        assert (x, y, z) == (a, b, c)
        assert found == pytest.approx(expected, abs=1e-15)


def test_an_object_without_a_key_or_before_its_first_one_is_beyond_every_ray():
    keys = build_live_keys(2)
    assert live_pose(keys, 0, 0)[0] == (0.0, 0.0, UNSEEN_M)
    put(keys, 0, 50 * MS, (1.0, 2.0, 3.0))
    assert live_pose(keys, 0, 50 * MS - 1)[0][2] == UNSEEN_M
    assert live_pose(keys, 0, 50 * MS)[0] == live_pose(keys, 0, 10**12)[0] == (1.0, 2.0, 3.0)


def test_an_object_is_not_seen_between_a_key_that_ends_it_and_the_next_one():
    keys = build_live_keys(1)
    for time_ns, seen in ((0, True), (100 * MS, False), (200 * MS, True)):
        put(keys, 0, time_ns, (1.0, 2.0, 3.0), seen=seen)
    assert [live_pose(keys, 0, at * MS)[0][2] for at in (99, 100, 199, 200)] == [3.0, UNSEEN_M, UNSEEN_M, 3.0]


def test_a_sphere_holds_an_object_at_all_times_within():
    keys, limit_mps = build_live_keys(1), 12.0
    for step in range(100):
        time_ns = 100 * MS * step
        put(keys, 0, time_ns, *winding(time_ns))
    for first_ns in range(0, 9000 * MS, 313 * MS):
        x, y, z, radius = live_sphere(keys, 0, 0.5, CURVE_RATIO * limit_mps, first_ns, first_ns + 40 * MS)
        assert radius == pytest.approx(0.5 + 5.0 * 12.0 * 0.02, abs=1e-6)
        away = [np.linalg.norm(np.subtract(live_pose(keys, 0, first_ns + at * MS)[0], (x, y, z))) for at in range(41)]
        assert max(away) + 0.5 < radius


@pytest.mark.parametrize(
    ("first_ms", "last_ms", "expected"),
    [
        (0, 40, "none"),
        (0, 60, "partly"),
        (60, 90, "whole"),
        (90, 110, "partly"),
        (100, 190, "none"),
        (110, 210, "partly"),
        (210, 900, "whole"),
        (60, 900, "partly"),
    ],
)
def test_a_sphere_says_whether_an_object_is_seen_throughout(first_ms, last_ms, expected):
    keys = build_live_keys(1)
    for time_ns, seen in ((50 * MS, True), (100 * MS, False), (200 * MS, True)):
        put(keys, 0, time_ns, (1.0, 2.0, 3.0), seen=seen)
    radius = live_sphere(keys, 0, 0.5, 500.0, first_ms * MS, last_ms * MS)[3]
    assert {"none": radius < 0.0, "partly": np.isinf(radius), "whole": 0.5 < radius < 1e3}[expected]


def test_nothing_is_seen_in_a_slot_without_keys():
    assert live_sphere(build_live_keys(1), 0, 0.5, 500.0, 0, MS)[3] < 0.0


def moving_scene(*, live):
    """A wall, and a box that passes in front of it, by keys or on the same track."""
    keys = build_live_keys(1)
    wall = SceneObject(mesh=box((0.2, 40.0, 10.0), Material(name="wall", reflectivity=20)), placement=Pose(position_m=(15.0, 0.0, 0.0)))
    times, positions, velocity = [0, 400 * MS, 1000 * MS], [(10.0, -4.0, 0.0), (10.0, 0.0, 0.0), (10.0, 6.0, 0.0)], (0.0, 10.0, 0.0)
    for time_ns, position in zip(times, positions, strict=True):
        put(keys, 0, time_ns, position, velocity)
    track = linear_track(times, positions, [LEVEL] * 3)
    return build_world([wall, SceneObject(mesh=CUBE, placement=LivePlacement(0) if live else track)], live=keys), keys


def cast(world, times, *, by=cast_many):
    """Instances and ranges of rays ahead at rig times."""
    count = len(times)
    origin, direction = np.zeros((count, 3)), np.tile(np.array((1.0, 0.0, 0.0), np.float32), (count, 1))
    range_m, instance, triangle = np.empty(count, np.float32), np.empty(count, np.int32), np.empty(count, np.int32)
    by(world, origin, direction, np.array(times, np.int64), 100.0, range_m, instance, triangle)
    return range_m, instance, triangle


@pytest.mark.parametrize("by", [cast_many, cast_rays])
def test_rays_meet_an_object_of_keys_as_one_on_the_same_track(by):
    times = [2 * MS * number for number in range(500)]
    found = [cast(moving_scene(live=live)[0], times, by=by) for live in (True, False)]
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)
    assert 40 < np.count_nonzero(found[0][1] == 1) < 60  # a box 1 m wide at 10 m/s


@pytest.mark.parametrize("by", [cast_many, cast_rays])
def test_rays_of_one_batch_meet_an_object_from_the_instant_at_which_it_appears(by):
    world, keys = moving_scene(live=True)
    keys = build_live_keys(1)
    world = world._replace(live=keys)
    put(keys, 0, 10 * MS, (10.0, 0.0, 0.0))
    put(keys, 0, 20 * MS, (10.0, 0.0, 0.0), seen=False)
    put(keys, 0, 30 * MS, (5.0, 0.0, 0.0))
    range_m, instance, _ = cast(world, [at * MS for at in range(40)], by=by)
    assert instance.tolist() == [0] * 10 + [1] * 10 + [0] * 10 + [1] * 10
    assert range_m[[0, 15, 25, 35]] == pytest.approx([14.9, 9.5, 14.9, 4.5])


def test_a_slot_that_the_keys_lack_is_refused():
    with pytest.raises(ValueError, match="object 0: slot must be 0 to 1, got 2"):
        build_world([SceneObject(mesh=CUBE, placement=LivePlacement(2))], live=build_live_keys(2))


@pytest.mark.parametrize(("slots", "keys", "message"), [(-1, 4, "slots must be at least 0, got -1"), (1, 1, "keys must be at least 2, got 1")])
def test_counts_of_keys_are_checked(slots, keys, message):
    with pytest.raises(ValueError, match=message):
        build_live_keys(slots, keys)


def test_worlds_that_edits_make_share_the_keys():
    keys = build_live_keys(2)
    objects = [
        SceneObject(mesh=CUBE, placement=Pose(position_m=(20.0, 0.0, 0.0)), name="still"),
        SceneObject(mesh=CUBE, placement=LivePlacement(1), name="live"),
    ]
    edited = EditableWorld.of(objects, build_world(objects, live=keys))
    first = edited.added(SceneObject(mesh=CUBE, placement=LivePlacement(0), name="other"))
    second = first.placed(0, Pose(position_m=(0.0, 5.0, 0.0)))  # lifts it from the tiles
    put(keys, 1, 0, (8.0, 0.0, 0.0))
    for world in (edited.world, first.world, second.world, second.without(2).world):
        assert world.live is keys
        row = world.key_first.tolist().index(-2)
        assert mover_pose(world, row, 5 * MS)[0] == (8.0, 0.0, 0.0)
    assert first.without(1).world.key_first.tolist() == [-1]
