"""The demo street: the same for a seed, rich for a lidar, and without collisions."""

import hashlib

import numpy as np
import pytest

from hilsim.world.assets.street.street import StreetLabel, street_objects, street_platform_track
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import matrix_from_quaternion
from hilsim.world.geometry.tracks import top_speed_mps, track_pose
from hilsim.world.render.cpu import cast_rays
from hilsim.world.scene.specs import SceneSpec
from hilsim.world.scene.world import build_world

STREET = SceneSpec(generator="street", generator_seed=1)
GOLDEN = "f44c58fe0069c7b8bd5d9b77cfd02d8e02f1973b5b8812d1773d2e37e055b63a"
"""SHA-256 of the street of seed 1, vertices in millimetres; changes only when the street is meant to change."""


@pytest.fixture(scope="module")
def objects():
    return street_objects(STREET)


@pytest.fixture(scope="module")
def world(objects):
    return build_world(objects)


def movers(objects, label):
    return [thing for thing in objects if thing.label == label and not isinstance(thing.placement, Pose)]


def pose(track, time_ns):
    position_m, orientation = np.empty(3), np.empty(4)
    track_pose(track, time_ns, position_m, orientation)
    return position_m, orientation


def digest(objects):
    sink = hashlib.sha256()
    for thing in objects:
        place = thing.placement if isinstance(thing.placement, Pose) else Pose(position_m=tuple(pose(thing.placement, 0)[0].tolist()))
        sink.update(f"{thing.name} {thing.label} {[f'{value + 0.0:.3f}' for value in place.position_m]} {thing.mesh.materials}".encode())
        sink.update((np.rint(thing.mesh.vertices_m * 1000.0).astype(np.int32)).tobytes())
        sink.update(thing.mesh.triangles.tobytes())
        sink.update(thing.mesh.material.tobytes())
    return sink.hexdigest()


def test_the_street_of_a_seed_is_the_golden_one(objects):
    assert digest(objects) == GOLDEN


def test_another_seed_is_another_street(objects):
    assert digest(street_objects(SceneSpec(generator="street", generator_seed=2))) != digest(objects)


def test_the_street_has_everything_a_street_has(objects):
    assert {thing.label for thing in objects} == set(StreetLabel)
    assert {"retro_sign", "window", "asphalt", "leaves", "rubber"} <= {material.name for thing in objects for material in thing.mesh.materials}
    names = [thing.name for thing in objects]
    assert len(set(names)) == len(names)


def test_the_street_is_rich_but_not_heavy(objects):
    assert 15_000 < sum(len(thing.mesh.triangles) for thing in objects) < 100_000


def test_cars_of_one_model_and_paint_share_their_mesh(objects):
    cars = [thing.mesh for thing in objects if thing.label == StreetLabel.CAR]
    assert len({id(mesh) for mesh in cars}) <= 15 < len(cars)


@pytest.mark.parametrize(("cars", "people"), [(0, 0), (1, 1), (40, 40)])
def test_the_rig_says_how_many_move(cars, people):
    objects = street_objects(SceneSpec(generator="street", generator_moving_cars=cars, generator_pedestrians=people))
    assert len(movers(objects, StreetLabel.CAR)) == cars
    assert len(movers(objects, StreetLabel.PERSON)) == people


def every_track(objects):
    return [street_platform_track(STREET), *(thing.placement for thing in objects if not isinstance(thing.placement, Pose))]


def test_every_way_is_closed_and_nothing_jumps(objects):
    for track in every_track(objects):
        assert track.period_ns > 0
        for time_ns in (*track.time_ns.tolist(), track.period_ns, 1000 * track.period_ns):
            (before, turned_before), (after, turned_after) = pose(track, time_ns - 1000), pose(track, time_ns + 1000)
            assert np.linalg.norm(after - before) < 2e-6 * 12.0
            assert abs(turned_before @ turned_after) > 1.0 - 1e-9


def test_everyone_faces_the_way_they_go(objects):
    for track in every_track(objects):
        for time_ns in range(0, track.period_ns, 777_777_777):
            (before, _), (after, orientation) = pose(track, time_ns - 1_000_000), pose(track, time_ns)
            ahead = matrix_from_quaternion(tuple(orientation.tolist()))[:, 0]
            assert ahead @ (after - before) > 0.999 * np.linalg.norm(after - before) > 0.0


def test_the_platform_drives_about_8_metres_a_second_on_the_ground():
    track = street_platform_track(STREET)
    length_m = np.linalg.norm(np.diff(track.position_m, axis=0, append=track.position_m[:1]), axis=1).sum()
    assert 6.0 < length_m / (track.period_ns * 1e-9) < 9.0
    assert top_speed_mps(track) < 9.5
    assert (track.position_m[:, 2] == 0.0).all()


def discs(thing, time_ns):
    """Three circles along a car that together are as wide as it and a little longer."""
    mesh, place = thing
    half_m = mesh.vertices_m[:, 0].max()
    position_m, orientation = (np.array(place.position_m), np.array(place.orientation)) if isinstance(place, Pose) else pose(place, time_ns)
    ahead = matrix_from_quaternion(tuple(orientation.tolist()))[:2, 0]
    return [position_m[:2] + along * ahead for along in (1.0 - half_m, 0.0, half_m - 1.0)]


@pytest.mark.parametrize("seed", [1, 2])
def test_no_car_touches_another_or_the_platform(seed):
    spec = SceneSpec(generator="street", generator_seed=seed, generator_moving_cars=40)
    cars = [(thing.mesh, thing.placement) for thing in street_objects(spec) if thing.label == StreetLabel.CAR]
    cars.append((cars[0][0], street_platform_track(spec)))
    for time_ns in range(0, 60_000_000_000, 700_000_000):
        centres = np.array([discs(car, time_ns) for car in cars])
        apart_m = np.linalg.norm(centres[:, None, :, None] - centres[None, :, None, :], axis=-1).min(axis=(2, 3))
        np.fill_diagonal(apart_m, np.inf)
        assert apart_m.min() > 2.05  # two half widths of 1.02 m, mirrors apart


def rays_around(eye_m, elevation_deg, count):
    azimuth, elevation = np.meshgrid(np.arange(count) * (2.0 * np.pi / count), np.radians(elevation_deg))
    direction = np.stack([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)], axis=-1).reshape(-1, 3)
    return np.tile(eye_m, (len(direction), 1)), direction.astype(np.float32)


def cast(world, origin_m, direction, time_ns):
    count = len(direction)
    range_m, instance, triangle = np.empty(count, np.float32), np.empty(count, np.int32), np.empty(count, np.int32)
    cast_rays(world, origin_m, direction, np.full(count, time_ns), 130.0, range_m, instance, triangle)
    owner = np.where(instance < 0, -1, np.where(world.instance_object[instance] >= 0, world.instance_object[instance], world.owner[triangle]))
    return range_m, owner


@pytest.mark.parametrize("share", [0.0, 0.2, 0.45, 0.7, 0.9])
def test_a_lidar_on_the_roof_sees_a_rich_scene_all_the_way_round(world, share):
    track = street_platform_track(STREET)
    time_ns = int(share * track.period_ns)
    eye_m = pose(track, time_ns)[0] + np.array([0.0, 0.0, 1.9])
    range_m, owner = cast(world, *rays_around(eye_m, np.arange(-15.0, 16.0, 2.0), 900), time_ns)
    label = world.object_label[owner[owner >= 0]]
    assert np.isfinite(range_m).mean() > 0.8
    assert range_m.min() > 0.7
    assert np.isin([StreetLabel.GROUND, StreetLabel.BUILDING, StreetLabel.CAR, StreetLabel.TREE, StreetLabel.LAMP_POST], label).all()
    buildings = range_m[owner >= 0][label == StreetLabel.BUILDING]
    assert buildings.min() > 5.0
    assert np.median(buildings) < 60.0


def test_signs_face_the_traffic_that_passes_them(objects):
    """A sign's plate looks back at a car that is 12 m before it in the lane beside it."""
    track = street_platform_track(STREET)
    signs = [thing for thing in objects if thing.label == StreetLabel.TRAFFIC_SIGN and " sign 0." in thing.name]
    assert len(signs) == 4
    for sign in signs:
        facing = matrix_from_quaternion(sign.placement.orientation)[:2, 0]
        place = np.array(sign.placement.position_m)
        passing = min(range(0, track.period_ns, 50_000_000), key=lambda time_ns: np.linalg.norm(pose(track, time_ns)[0][:2] - place[:2]))
        before = pose(track, passing - 1_500_000_000)[0][:2] - place[:2]
        assert facing @ before > 0.7 * np.linalg.norm(before)


def test_the_street_may_lie_at_utm_coordinates():
    origin = (691000.25, 5334000.5, 520.0)
    far = SceneSpec(generator="street", generator_seed=1, origin_m=origin)
    near_track, far_track = street_platform_track(STREET), street_platform_track(far)
    np.testing.assert_allclose(far_track.position_m - origin, near_track.position_m, atol=1e-8)
    ray = rays_around(np.array([27.0 + 4.0, 3.0, 1.9]), [-10.0, 2.0], 200)
    near_range_m, _ = cast(build_world(street_objects(STREET)), *ray, 0)
    far_range_m, _ = cast(build_world(street_objects(far)), ray[0] + np.array(origin), ray[1], 0)
    hit = np.isfinite(near_range_m)
    np.testing.assert_allclose(far_range_m[hit], near_range_m[hit], atol=2e-3)


def test_a_car_is_a_closed_shape_from_most_sides(objects):
    """Rays from above, left, right, behind and before end on the car, not inside it: the surface is nearer than its middle."""
    car = movers(objects, StreetLabel.CAR)[0]
    solid = build_world([type(car)(mesh=car.mesh)])
    for side in ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (-1.0, 0.0, 0.0)):
        start = np.array([[0.02, 0.03, 0.6]]) + 10.0 * np.array(side)
        range_m, _ = cast(solid, start, -np.array([side], dtype=np.float32), 0)
        assert range_m[0] < 9.6
