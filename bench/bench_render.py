"""How many rays a second the CPU casts: one VLP-16 scan in both orders over 1 thousand to 1 million triangles, on one thread.

Usage: python bench/bench_render.py. Takes about half a minute. Figures of a shared machine are ratios, not measurements.
"""

import os
import platform
import time

import numpy as np

from hilsim.render.cpu import cast_rays
from hilsim.scene.materials import DEFAULTS
from hilsim.scene.mesh import Mesh
from hilsim.scene.primitives import box, plane
from hilsim.scene.world import SceneObject, build_world
from tests.meshes import join_meshes

ROUNDS = 15
AZIMUTHS = 1808


def town(blocks):
    """Ground and boxes, off the sensor's place."""
    rng = np.random.default_rng(1)
    concrete = DEFAULTS["concrete"]
    parts = [plane((400.0, 400.0), concrete)]
    while len(parts) <= blocks:
        size = rng.uniform(1.0, 12.0, 3)
        place = rng.uniform(-90.0, 90.0, 3)
        if np.hypot(place[0], place[1]) > 12.0:
            block = box(tuple(size), concrete)
            place[2] = size[2] / 2
            parts.append(Mesh(block.vertices_m + place, block.triangles, block.material, block.materials))
    return join_meshes(tuple(parts))


def hills(cells):
    """Rolling ground of ``2 * cells**2`` triangles, 600 m wide."""
    line = np.linspace(-300.0, 300.0, cells + 1)
    x, y = np.meshgrid(line, line, indexing="ij")
    z = 3.0 * np.sin(x / 17.0) * np.cos(y / 23.0) + 0.3 * np.sin(x / 1.7 + y)
    first = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
    halves = [np.stack([first, first + cells + 1, first + 1], axis=1), np.stack([first + 1, first + cells + 1, first + cells + 2], axis=1)]
    return Mesh.uniform(np.stack([x, y, z], axis=-1).reshape(-1, 3), np.concatenate(halves), DEFAULTS["grass"])


def vlp16_scan(order):
    """Unit directions ``float32[16 * AZIMUTHS, 3]``."""
    elevation, azimuth = np.meshgrid(np.radians(np.arange(-15.0, 16.0, 2.0)), np.arange(AZIMUTHS) * (2 * np.pi / AZIMUTHS), indexing="ij")
    level = np.cos(elevation)
    direction = np.stack([level * np.sin(azimuth), level * np.cos(azimuth), np.sin(elevation)], axis=-1)
    if order == "firing":
        direction = direction.transpose(1, 0, 2)
    return np.ascontiguousarray(direction.reshape(-1, 3), dtype=np.float32)


def processor():
    """The CPU's name where Linux tells it."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:  # noqa: PTH123 - not a file of ours
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def measure(world, direction):
    """Best and median million rays a second."""
    count = len(direction)
    origin = np.tile([0.113, 0.047, 8.0 if world.corners.shape[0] > 100_000 else 2.0], (count, 1))
    times = np.zeros(count, dtype=np.int64)
    hits = np.empty(count, np.float32), np.empty(count, np.int32), np.empty(count, np.int32)
    seconds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        cast_rays(world, origin, direction, times, 200.0, *hits)
        seconds.append(time.perf_counter() - begin)
    return count / min(seconds) / 1e6, count / float(np.median(seconds)) / 1e6, float(np.isfinite(hits[0]).mean())


def main():
    """Print a table."""
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    print(f"{processor()}, {os.cpu_count()} logical CPUs, {platform.platform()}, load {load}; one thread, best and median of {ROUNDS}")
    print(f"{'triangles':>10} {'build s':>8} {'order':>8} {'best':>7} {'median':>7} Mray/s {'hit':>5}")
    build_world([SceneObject(mesh=town(2))])  # compile
    for mesh in (town(84), town(834), hills(708)):
        begin = time.perf_counter()
        world = build_world([SceneObject(mesh=mesh)])
        build_s = time.perf_counter() - begin
        for order in ("azimuth", "firing"):
            best, median, share = measure(world, vlp16_scan(order))
            print(f"{len(mesh.triangles):>10} {build_s:>8.3f} {order:>8} {best:>7.2f} {median:>7.2f} {'':6} {share:>5.0%}")


if __name__ == "__main__":
    main()
