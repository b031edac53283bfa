"""Rays per second cast by this machine, by the size of the scene: scans of a VLP-16 over rolling ground, over towns, and in the demo street."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilsim.world.assets.street.street import street_objects
from hilsim.world.geometry.poses import Pose
from hilsim.world.render.cpu import cast_many
from hilsim.world.scene.materials import DEFAULTS
from hilsim.world.scene.mesh import Mesh
from hilsim.world.scene.primitives import box, plane
from hilsim.world.scene.specs import SceneSpec
from hilsim.world.scene.world import SceneObject, World, build_world

REACH_M = 200.0
VLP16_ELEVATIONS_DEG = np.arange(-15.0, 16.0, 2.0)
_AZIMUTHS = 1808
_ROUNDS, _ROUND_S = 3, 0.15
_SPOT_RAD = 1.5e-3
_EYE_M, _EYE_OVER_HILLS_M = 2.0, 8.0
_TOWN_HALF_M, _CLEARING_M = 90.0, 12.0
_RAYS_PER_BEAM = (1, 7)
_WARM_UP_HILLS = 4


@dataclass(frozen=True, kw_only=True)
class RaySpeed:
    """Speed of ray casting in one scene.

    Attributes:
        scene: Name of the scene.
        triangles: Number of triangles.
        build_s: Time to build the world.
        rays_per_beam: Number of rays with similar directions.
        one_core_mrays_per_s: Million rays per second of one thread's CPU time.
        all_cores_mrays_per_s: Million rays per second of wall-clock time, with one thread per core.
    """

    scene: str
    triangles: int
    build_s: float
    rays_per_beam: int
    one_core_mrays_per_s: float
    all_cores_mrays_per_s: float


def town(blocks: int) -> list[Mesh]:
    """Meshes of a ground and boxes, away from the sensor."""
    rng = np.random.default_rng(1)
    concrete = DEFAULTS["concrete"]
    parts = [plane((400.0, 400.0), concrete)]
    while len(parts) <= blocks:
        size = rng.uniform(1.0, 12.0, 3)
        place = rng.uniform(-_TOWN_HALF_M, _TOWN_HALF_M, 3)
        if np.hypot(place[0], place[1]) > _CLEARING_M:
            block = box((float(size[0]), float(size[1]), float(size[2])), concrete)
            place[2] = size[2] / 2
            parts.append(Mesh(block.vertices_m + place, block.triangles, block.material, block.materials))
    return parts


def hills(cells: int) -> Mesh:
    """Mesh of rolling ground with ``2 * cells**2`` triangles, 600 m wide."""
    line = np.linspace(-300.0, 300.0, cells + 1)
    x, y = np.meshgrid(line, line, indexing="ij")
    z = 3.0 * np.sin(x / 17.0) * np.cos(y / 23.0) + 0.3 * np.sin(x / 1.7 + y)
    first = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
    halves = [np.stack([first, first + cells + 1, first + 1], axis=1), np.stack([first + 1, first + cells + 1, first + cells + 2], axis=1)]
    return Mesh.uniform(np.stack([x, y, z], axis=-1).reshape(-1, 3), np.concatenate(halves), DEFAULTS["grass"])


def street() -> list[SceneObject]:
    """Static objects of the demo street."""
    return [thing for thing in street_objects(SceneSpec(generator="street")) if isinstance(thing.placement, Pose)]


def scan(elevation_deg: npt.ArrayLike, rays_per_beam: int) -> npt.NDArray[np.float32]:
    """Directions of a turn, channel by channel, ``float32[n, 3]``; the further rays of a beam are within 1.5 mrad of its first."""
    elevation, azimuth = np.meshgrid(np.radians(elevation_deg), np.arange(_AZIMUTHS) * (2 * np.pi / _AZIMUTHS), indexing="ij")
    around = 2 * np.pi * np.arange(rays_per_beam - 1) / max(rays_per_beam - 1, 1)
    aside = _SPOT_RAD * np.stack([np.append(0.0, np.cos(around)), np.append(0.0, np.sin(around))])
    elevation, azimuth = elevation[..., np.newaxis] + aside[0], azimuth[..., np.newaxis] + aside[1]
    level = np.cos(elevation)
    direction = np.stack([level * np.sin(azimuth), level * np.cos(azimuth), np.sin(elevation)], axis=-1)
    return np.ascontiguousarray(direction.reshape(-1, 3), dtype=np.float32)


SCENES: Mapping[str, Callable[[], list[SceneObject]]] = {
    "small town": lambda: [SceneObject(mesh=part) for part in town(84)],
    "town": lambda: [SceneObject(mesh=part) for part in town(834)],
    "the demo's street": street,
    "hills": lambda: [SceneObject(mesh=hills(708))],
}
"""Scenes of a thousand to a million triangles."""


def ray_speeds(cores: int, report: Callable[[str], object], scenes: Mapping[str, Callable[[], list[SceneObject]]] = SCENES) -> Iterator[RaySpeed]:
    """Measure each scene; kernels are compiled first if necessary.

    Args:
        cores: Number of threads for "all cores".
        report: Called with the current step.
        scenes: Functions that make the scenes, by name.
    """
    report("compiling the kernels that cast rays")
    _speed("", build_world([SceneObject(mesh=hills(_WARM_UP_HILLS))]), 0.0, 1, cores)
    for name, objects in scenes.items():
        report(f"casting rays: {name}")
        things = objects()
        begun_s = time.perf_counter()
        world = build_world(things)
        build_s = time.perf_counter() - begun_s
        for rays in _RAYS_PER_BEAM:
            yield _speed(name, world, build_s, rays, cores)


def _speed(name: str, world: World, build_s: float, rays: int, cores: int) -> RaySpeed:
    direction = scan(VLP16_ELEVATIONS_DEG, rays)
    origin = np.tile([0.113, 0.047, _EYE_OVER_HILLS_M if name == "hills" else _EYE_M], (len(direction), 1))
    one_core = max(_rays_per_s(1, time.thread_time, world, origin, direction) for _ in range(_ROUNDS))
    all_cores = max(_rays_per_s(cores, time.perf_counter, world, origin, direction) for _ in range(_ROUNDS))
    return RaySpeed(
        scene=name,
        triangles=len(world.corners),
        build_s=build_s,
        rays_per_beam=rays,
        one_core_mrays_per_s=one_core / 1e6,
        all_cores_mrays_per_s=all_cores / 1e6,
    )


def _rays_per_s(threads: int, clock: Callable[[], float], world: World, origin: npt.NDArray[np.float64], direction: npt.NDArray[np.float32]) -> float:
    """Rays per second of independent threads that cast turn after turn, as sensors do."""
    time_ns = np.zeros(len(direction), np.int64)
    ready = threading.Barrier(threads)

    def cast() -> float:
        hits = np.empty(len(direction), np.float32), np.empty(len(direction), np.int32), np.empty(len(direction), np.int32)
        ready.wait()
        begun_s, turns = clock(), 0
        while (took_s := clock() - begun_s) < _ROUND_S:
            cast_many(world, origin, direction, time_ns, REACH_M, *hits)
            turns += 1
        return turns * len(direction) / took_s

    with ThreadPoolExecutor(threads) as pool:
        return sum(work.result() for work in [pool.submit(cast) for _ in range(threads)])
