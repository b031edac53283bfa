"""Run by test_backends.py in processes of their own: cast the same rays as the parent by another backend and compare.

Usage: backend_rays.py BACKEND EXPECTED.npz, with BACKEND ``cpu`` or ``cuda``; exit code 0 when all hits agree.
"""

import sys
from pathlib import Path

import numpy as np

from hilsim.geometry.poses import Pose
from hilsim.geometry.tracks import linear_track
from hilsim.render.renderer import CpuRenderer, cast
from hilsim.scene.materials import DEFAULTS
from hilsim.scene.primitives import box, plane
from hilsim.scene.world import SceneObject, build_world

COUNT = 400


def scene():
    """Ground, four walls, two movers of one mesh."""
    wood, grass = DEFAULTS["wood"], DEFAULTS["grass"]
    still = [SceneObject(mesh=plane((80.0, 80.0), grass), placement=Pose(position_m=(0.0, 0.0, -2.0)))]
    walls = [((15.0, 3.0, 0.0), (1.0, 9.0, 5.0)), ((-12.0, 0.0, 0.0), (1.0, 20.0, 5.0)), ((0.0, 18.0, 0.0), (7.0, 1.0, 5.0))]
    still += [SceneObject(mesh=box(size, wood), placement=Pose(position_m=place)) for place, size in walls]
    car = box((4.0, 2.0, 1.5), wood)
    turns = [(1.0, 0.0, 0.0, 0.0), (0.6, 0.0, 0.0, 0.8)]
    moving = [
        SceneObject(mesh=car, placement=linear_track([0, 10**9], [[4, y, -0.3], [5, -y, -0.3]], turns, period_ns=3 * 10**9 * rounds))
        for y, rounds in ((4.0, 0), (-5.0, 1))
    ]
    return build_world([*still, *moving])


def rays():
    """Origins, directions and times of ``COUNT`` rays, all different."""
    rng = np.random.default_rng(5)
    heading = rng.normal(size=(COUNT, 3)) * [1.0, 1.0, 0.2]
    origin = rng.uniform(-0.5, 0.5, (COUNT, 3))
    return origin, heading / np.linalg.norm(heading, axis=1, keepdims=True), rng.integers(0, 4 * 10**9, COUNT)


def main(backend, expected_path):
    """Cast and compare."""
    if backend == "cuda":
        from hilsim.render.cuda import CudaRenderer  # noqa: PLC0415 - only this backend needs CUDA or its simulator

        renderer = CudaRenderer()
    else:
        renderer = CpuRenderer()
    hits = cast(renderer, scene(), *rays())
    with np.load(Path(expected_path)) as expected:
        np.testing.assert_allclose(hits.range_m, expected["range_m"], rtol=0.0, atol=1e-4)
        np.testing.assert_array_equal(hits.instance, expected["instance"])
        np.testing.assert_array_equal(hits.triangle, expected["triangle"])


if __name__ == "__main__":
    main(*sys.argv[1:])
