"""Run by test_backends.py in processes of their own: cast the same rays as the parent by another backend and compare.

Usage: backend_rays.py BACKEND EXPECTED.npz, with BACKEND ``cpu`` or ``cuda``; exit code 0 when all hits agree.
"""

import sys
from pathlib import Path
from threading import Thread

import numpy as np

from hilsim.world.geometry.live_keys import LivePlacement, build_live_keys, write_key
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import linear_track
from hilsim.world.render.renderer import RaySlice
from hilsim.world.scene.materials import DEFAULTS
from hilsim.world.scene.primitives import box, plane
from hilsim.world.scene.world import SceneObject, build_world
from tests.renderers import CpuRenderer, cast

COUNT = 400


def scene():
    """Ground, four walls, two movers of one mesh, and two that keys move, of which one is seen for a while."""
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
    keys = build_live_keys(2, 8)  # the second slot has none
    for time_ns in range(0, 6 * 10**9, 2 * 10**9):
        write_key(keys, 0, time_ns, np.array((-5.0, 1e-9 * time_ns, 0.0)), np.array((0.0, 1.0, 0.0)), np.array(turns[1]), time_ns != 2 * 10**9)
    moving += [SceneObject(mesh=car, placement=LivePlacement(slot)) for slot in range(2)]
    return build_world([*still, *moving], live=keys)


def rays():
    """Origins, directions and times of ``COUNT`` rays, all different."""
    rng = np.random.default_rng(5)
    heading = rng.normal(size=(COUNT, 3)) * [1.0, 1.0, 0.2]
    origin = rng.uniform(-0.5, 0.5, (COUNT, 3))
    return origin, heading / np.linalg.norm(heading, axis=1, keepdims=True), rng.integers(0, 4 * 10**9, COUNT)


def cast_together(renderer, expected):
    """Parts of the rays, each with a reach of its own, asked for by four threads at once."""
    origin, direction, time_ns = rays()
    hits = np.zeros(COUNT, np.float32), np.zeros(COUNT, np.int32), np.zeros(COUNT, np.int32)
    reach_m = [200.0, 10.0, 15.0, 200.0]
    parts = [
        RaySlice(origin[of], direction[of].astype(np.float32), time_ns[of], most_m, *(column[of] for column in hits))
        for of, most_m in zip((slice(k * COUNT // 4, (k + 1) * COUNT // 4) for k in range(4)), reach_m, strict=True)
    ]
    world = scene()
    askers = [Thread(target=renderer.cast_slices, args=(world, [part._replace(range_m=part.range_m[:0]), part])) for part in parts]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    in_reach = expected["range_m"] < np.repeat(reach_m, COUNT // 4)
    assert 0.2 < in_reach.mean() < np.isfinite(expected["range_m"]).mean()
    np.testing.assert_allclose(hits[0], np.where(in_reach, expected["range_m"], np.inf), rtol=0.0, atol=1e-4)
    np.testing.assert_array_equal(hits[1], np.where(in_reach, expected["instance"], -1))
    np.testing.assert_array_equal(hits[2], np.where(in_reach, expected["triangle"], -1))


def main(backend, expected_path):
    """Cast and compare."""
    if backend == "cuda":
        from hilsim.world.render.cuda import CudaRenderer  # noqa: PLC0415 - only this backend needs CUDA or its simulator

        renderer = CudaRenderer()
    else:
        renderer = CpuRenderer()
    hits = cast(renderer, scene(), *rays())
    with np.load(Path(expected_path)) as expected:
        np.testing.assert_allclose(hits.range_m, expected["range_m"], rtol=0.0, atol=1e-4)
        np.testing.assert_array_equal(hits.instance, expected["instance"])
        np.testing.assert_array_equal(hits.triangle, expected["triangle"])
        if backend == "cuda":
            cast_together(renderer, expected)


if __name__ == "__main__":
    main(*sys.argv[1:])
