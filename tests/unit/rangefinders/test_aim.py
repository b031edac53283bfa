"""Serial devices look where the rig says: rays by hand, and bytes of rendered scenes."""

import math
import struct

import numpy as np
import pytest

from hilsim.parts.rangefinders.aim import rangefinder_rays
from hilsim.parts.rangefinders.ld06 import Ld06, Ld06Spec
from hilsim.parts.rangefinders.sf45 import Sf45Spec
from hilsim.parts.rangefinders.tfmini import Tfmini, TfminiSpec
from hilsim.parts.vehicle.scan_messages import ObstacleSpec
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import from_roll_pitch_yaw
from hilsim.world.scene.materials import DEFAULTS
from hilsim.world.scene.primitives import box, plane
from hilsim.world.scene.world import SceneObject, build_world
from tests.renderers import CpuRenderer, cast
from tests.unit.autopilot.scans import obstacle_values

HALF = math.sqrt(0.5)


def looking(azimuth_deg, *, position=(0.0, 0.0, 0.0), orientation=(1.0, 0.0, 0.0, 0.0), **mounted):
    spec = Sf45Spec(port="/dev/ttyS3", **mounted)
    rays = rangefinder_rays(spec, np.array([position]), np.array([orientation]), np.array([azimuth_deg]))
    assert (rays.origin_m.dtype, rays.direction.dtype) == (np.float64, np.float32)
    return rays.origin_m[0], rays.direction[0]


@pytest.mark.parametrize(
    ("azimuth_deg", "rotation_deg", "direction"),
    [
        (0.0, (0, 0, 0), (1, 0, 0)),
        (90.0, (0, 0, 0), (0, -1, 0)),  # clockwise: to the right
        (-45.0, (0, 0, 0), (HALF, HALF, 0)),
        (0.0, (0, 0, 90), (0, 1, 0)),  # turned to the left
        (0.0, (0, 90, 0), (0, 0, -1)),  # nose down
        (90.0, (180, 0, 0), (0, 1, 0)),  # hung upside down, azimuths run the other way
    ],
)
def test_a_beam_points_where_azimuth_and_mounting_say(azimuth_deg, rotation_deg, direction):
    _, pointed = looking(azimuth_deg, mount_rotation_deg=rotation_deg)
    np.testing.assert_allclose(pointed, direction, atol=1e-6)


def test_a_beam_starts_at_its_mounting_and_turns_with_the_vehicle():
    origin, direction = looking(0.0, position=(691_000.0, 5_334_000.0, 520.0), orientation=(HALF, 0.0, 0.0, HALF), mount_position_m=(0.2, 0.0, -0.1))
    np.testing.assert_allclose(origin, (691_000.0, 5_334_000.2, 519.9), rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(direction, (0.0, 1.0, 0.0), atol=1e-6)


@pytest.fixture(scope="module")
def world():
    """Ground, and a wall 5 m to the right of a vehicle at the origin looking east."""
    ground = SceneObject(mesh=plane((100.0, 100.0), DEFAULTS["grass"]), label=1)
    wall = SceneObject(mesh=box((4.0, 1.0, 10.0), DEFAULTS["concrete"]), placement=Pose(position_m=(0.0, -5.5, 5.0)), label=2)
    return build_world([ground, wall])


def sampling(world, spec, height_m=3.0, orientation=(1.0, 0.0, 0.0, 0.0)):
    def sample(time_ns, azimuth_deg):
        count = time_ns.size
        rays = rangefinder_rays(spec, np.tile((0.0, 0.0, height_m), (count, 1)), np.tile(orientation, (count, 1)), azimuth_deg)
        return cast(CpuRenderer(), world, rays.origin_m, rays.direction, time_ns).range_m

    return sample


@pytest.mark.extended
def test_a_tfmini_that_looks_down_tells_the_height_and_its_slant_when_the_vehicle_rolls(world):
    spec = TfminiSpec(port="/dev/ttyS1", mount_position_m=(0.0, 0.0, -0.1), mount_rotation_deg=(0.0, 90.0, 0.0))
    sensor = Tfmini(spec, seed=1, stream=0)
    (level,) = sensor.frames(0, 10_000_000, sampling(world, spec))
    (rolled,) = sensor.frames(10_000_000, 20_000_000, sampling(world, spec, orientation=from_roll_pitch_yaw(0.0, 30.0, 0.0)))
    assert struct.unpack_from("<H", level.data, 2) == (290,)
    # The mounting goes down with the vehicle: 3 m less 0.1 m * cos 30, along a beam that is 30 degrees from plumb.
    assert struct.unpack_from("<H", rolled.data, 2) == (round(100 * (3.0 - 0.1 * math.cos(math.radians(30))) / math.cos(math.radians(30))),)


def test_an_ld06_sees_the_wall_on_the_right_and_nothing_elsewhere(world):
    spec = Ld06Spec(port="/dev/ttyS2")
    seen = {}
    for packet in Ld06(spec, seed=1, stream=0).frames(0, 100_000_000, sampling(world, spec)):
        first, last = struct.unpack_from("<H", packet.data, 4)[0], struct.unpack_from("<H", packet.data, 42)[0]
        for point in range(12):
            azimuth_deg = (first + (last - first) % 36000 * point / 11) / 100.0 % 360.0
            seen[azimuth_deg] = struct.unpack_from("<H", packet.data, 6 + 3 * point)[0]
    hits = {azimuth_deg: distance for azimuth_deg, distance in seen.items() if distance}
    half_deg = math.degrees(math.atan2(2.0, 5.0))
    assert min(hits) == pytest.approx(90.0 - half_deg, abs=0.8)
    assert max(hits) == pytest.approx(90.0 + half_deg, abs=0.8)
    assert all(distance == pytest.approx(5000.0 / math.cos(math.radians(azimuth_deg - 90.0)), abs=2.0) for azimuth_deg, distance in hits.items())


def test_a_rendered_scan_makes_sectors_in_which_the_wall_is_on_the_right(world):
    azimuth, elevation = (grid.ravel() for grid in np.meshgrid(np.arange(0.0, 360.0, 0.5), np.arange(-15.0, 16.0, 2.0)))
    level = np.cos(np.radians(elevation))
    direction = np.stack([level * np.cos(np.radians(azimuth)), -level * np.sin(np.radians(azimuth)), np.sin(np.radians(elevation))], axis=1)
    range_m = cast(CpuRenderer(), world, (0.0, 0.0, 3.0), direction).range_m
    distances = obstacle_values(ObstacleSpec(sensor="top", range_max_m=40.0), range_m, direction).distances
    assert set(np.flatnonzero(distances <= 4000).tolist()) == set(range(14, 23))  # 68.2 to 111.8 degrees, and not the ground 3 m below
    assert distances[18] == 500
    assert set(np.delete(distances, range(14, 23)).tolist()) == {4001}
