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

from hilsim.cli.diagnosis.machine import processor_text
from hilsim.cli.diagnosis.ray_speed import REACH_M, VLP16_ELEVATIONS_DEG, hills, scan, street, town
from hilsim.world.render.cpu import cast_many, cast_rays
from hilsim.world.scene.world import SceneObject, build_world
from tests.meshes import join_meshes
from tests.renderers import CpuRenderer


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
    print(f"{processor_text()}, {os.cpu_count()} logical CPUs, {platform.platform()}, load {load}; least of {options.rounds}, million rays a second")
    for name, how in peers.missing().items():
        print(f"left out: {name} ({how})")
    scenes = {"town": join_meshes(tuple(town(84))), "large town": join_meshes(tuple(town(834))), "street": None, "hills": hills(708)} | (
        {"large hills": hills(1583)} if options.large else {}
    )
    channels = {"VLP-16": VLP16_ELEVATIONS_DEG, "128 channels": np.linspace(-25.0, 15.0, 128)}
    build_world([SceneObject(mesh=join_meshes(tuple(town(2))))])  # compile
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
