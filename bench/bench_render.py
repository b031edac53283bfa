"""How many rays a second the CPU casts, beside other ray casters over the same triangles: scans of a VLP-16 and of 128 channels, 1 and 7 rays a beam.

Usage: python bench/bench_render.py [--large] [--rounds N] [--json FILE]. Takes two minutes; --large adds a scene of 5 million triangles.
Each scene's casters run in turn, round by round; the least CPU time of one thread counts. "packets" is what sensors are rendered with, "rays" the
reference that casts one at a time, "packets x2" the same on two threads (least wall time). Figures of a shared machine are ratios, not measurements.
"""

import argparse
import json
import os
import platform
import time
from pathlib import Path

import numpy as np
import peers

from hilsim.geometry.poses import Pose
from hilsim.render.cpu import cast_many, cast_rays
from hilsim.render.renderer import CpuRenderer
from hilsim.scene.materials import DEFAULTS
from hilsim.scene.mesh import Mesh
from hilsim.scene.primitives import box, plane
from hilsim.scene.specs import SceneSpec
from hilsim.scene.street import street_objects
from hilsim.scene.world import SceneObject, build_world
from tests.meshes import join_meshes

AZIMUTHS = 1808
REACH_M = 200.0


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
    return scan(np.arange(-15.0, 16.0, 2.0), 1, order)


def scan(elevation_deg, sub_rays, order="azimuth"):
    """Unit directions of a turn, channel by channel; ``sub_rays`` of a firing are 1.5 mrad about its beam."""
    elevation, azimuth = np.meshgrid(np.radians(elevation_deg), np.arange(AZIMUTHS) * (2 * np.pi / AZIMUTHS), indexing="ij")
    around = 2 * np.pi * np.arange(sub_rays - 1) / max(sub_rays - 1, 1)
    aside = 1.5e-3 * np.stack([np.append(0.0, np.cos(around)), np.append(0.0, np.sin(around))])
    elevation, azimuth = elevation[..., np.newaxis] + aside[0], azimuth[..., np.newaxis] + aside[1]
    level = np.cos(elevation)
    direction = np.stack([level * np.sin(azimuth), level * np.cos(azimuth), np.sin(elevation)], axis=-1)
    if order == "firing":
        direction = direction.transpose(1, 0, 2, 3)
    return np.ascontiguousarray(direction.reshape(-1, 3), dtype=np.float32)


def processor():
    """The CPU's name where Linux tells it."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:  # noqa: PTH123 - not a file of ours
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def street():
    """What stands still of the demo street."""
    return [thing for thing in street_objects(SceneSpec(generator="street")) if isinstance(thing.placement, Pose)]


def measure(world, origin, direction, rounds):
    """Million rays a second of each caster, by name."""
    count = len(direction)
    times = np.zeros(count, dtype=np.int64)
    hits = {way: (np.empty(count, np.float32), np.empty(count, np.int32), np.empty(count, np.int32)) for way in ("packets", "rays", "packets x2")}
    two = CpuRenderer(2)
    casters = {
        "packets": lambda: cast_many(world, origin, direction, times, REACH_M, *hits["packets"]),
        "rays": lambda: cast_rays(world, origin, direction, times, REACH_M, *hits["rays"]),
        "packets x2": lambda: two.cast_rays(world, origin, direction, times, REACH_M, *hits["packets x2"]),
    } | peers.casters(world, origin, direction)
    least = dict.fromkeys(casters, np.inf)
    rays = dict.fromkeys(casters, count)
    for number in range(rounds + 1):
        for name, run in casters.items():
            clock = time.perf_counter if name == "packets x2" else time.process_time
            begin = clock()
            found = run()
            if number:
                least[name] = min(least[name], clock() - begin)
            rays[name] = found if isinstance(found, int) else count
    two.close()
    for one, other in zip(hits["packets"], hits["rays"], strict=True):
        if not np.array_equal(one, other):
            raise SystemExit("packets and rays differ")
    return {name: rays[name] / seconds / 1e6 for name, seconds in least.items()}


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    print(f"{processor()}, {os.cpu_count()} logical CPUs, {platform.platform()}, load {load}; least of {options.rounds}, million rays a second")
    for name, how in peers.missing().items():
        print(f"left out: {name} ({how})")
    scenes = {"town": town(84), "large town": town(834), "street": None, "hills": hills(708)} | (
        {"large hills": hills(1583)} if options.large else {}
    )
    channels = {"VLP-16": np.arange(-15.0, 16.0, 2.0), "128 channels": np.linspace(-25.0, 15.0, 128)}
    build_world([SceneObject(mesh=town(2))])  # compile
    rows = []
    for scene, mesh in scenes.items():
        begin = time.perf_counter()
        world = build_world(street() if mesh is None else [SceneObject(mesh=mesh)])
        build_s = time.perf_counter() - begin
        for (sensor, elevation_deg), sub_rays in [*((item, 1) for item in channels.items()), (next(iter(channels.items())), 7)]:
            direction = scan(elevation_deg, sub_rays)
            origin = np.tile([0.113, 0.047, 8.0 if "hills" in scene else 2.0], (len(direction), 1))
            speeds = measure(world, origin, direction, options.rounds)
            rows.append(
                {"scene": scene, "triangles": len(world.corners), "build_s": build_s, "sensor": sensor, "rays": sub_rays, "mrays_per_s": speeds}
            )
            told = "  ".join(
                f"{name} {speed:.2f}" + (f" (1/{speeds['packets'] / speed:.1f})" if name != "packets" else "") for name, speed in speeds.items()
            )
            print(f"{scene} {len(world.corners)} (built in {build_s:.2f} s), {sensor}, {sub_rays} a beam: {told}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
