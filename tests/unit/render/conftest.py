"""Random scenes for the renderers, made from a seed."""

import numpy as np
import pytest

from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import from_roll_pitch_yaw
from hilsim.world.geometry.tracks import linear_track, smooth_track
from hilsim.world.scene.materials import DEFAULTS
from hilsim.world.scene.mesh import Mesh
from hilsim.world.scene.primitives import box, plane
from hilsim.world.scene.world import SceneObject, build_world

SECOND = 1_000_000_000


def rotation(rng):
    return from_roll_pitch_yaw(*rng.uniform(-180.0, 180.0, 3))


def soup(rng, count, spread_m, size_m):
    """Triangles without order."""
    first = rng.uniform(-spread_m, spread_m, (count, 1, 3))
    corners = first + rng.uniform(-size_m, size_m, (count, 3, 3))
    return Mesh.uniform(corners.reshape(-1, 3), np.arange(3 * count).reshape(-1, 3), DEFAULTS["brick"])


def moving(rng, mesh, around_m, period_ns=0):
    times = np.cumsum(rng.integers(SECOND // 10, SECOND, 4)) - SECOND
    build = smooth_track if rng.integers(2) else linear_track
    places = around_m + rng.uniform(-30.0, 30.0, (4, 3))
    return SceneObject(mesh=mesh, placement=build(times, places, [rotation(rng) for _ in range(4)], period_ns), label=7)


@pytest.fixture(scope="session")
def random_world():
    """``build(seed, around_m)``: ground, boxes, loose triangles, and movers of which two share a mesh."""

    def build(seed, around_m=(0.0, 0.0, 0.0), movers=5):
        rng = np.random.default_rng(seed)
        around = np.array(around_m)
        objects = [SceneObject(mesh=plane((300.0, 300.0), DEFAULTS["grass"]), placement=Pose(position_m=tuple(around - [0, 0, 2.0])), label=1)]
        for _ in range(12):
            size = tuple(rng.uniform(0.5, 8.0, 3))
            place = tuple(around + rng.uniform(-40.0, 40.0, 3) * [1, 1, 0.1])
            objects.append(SceneObject(mesh=box(size, DEFAULTS["concrete"]), placement=Pose(position_m=place, orientation=rotation(rng)), label=2))
        objects.append(SceneObject(mesh=soup(rng, 60, 40.0, 3.0), placement=Pose(position_m=tuple(around)), label=3))
        car = box((4.0, 2.0, 1.5), DEFAULTS["paint_silver"])
        objects += [moving(rng, car if number < 2 else soup(rng, 20, 1.0, 1.0), around, number % 2 * 10 * SECOND) for number in range(movers)]
        return build_world(objects)

    return build


@pytest.fixture(scope="session")
def random_rays():
    """``draw(seed, count, around_m)``: origins, unit directions, times; origins and times all different."""

    def draw(seed, count, around_m=(0.0, 0.0, 0.0)):
        rng = np.random.default_rng(seed + 1000)
        origin = np.array(around_m) + rng.uniform(-5.0, 5.0, (count, 3)) * [1, 1, 0.2]
        heading = rng.normal(size=(count, 3)) * [1, 1, 0.4]
        direction = (heading / np.linalg.norm(heading, axis=1, keepdims=True)).astype(np.float32)
        return origin, direction, rng.integers(-SECOND, 3 * SECOND, count)

    return draw
