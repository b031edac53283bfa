"""What lists of triangles save a sensor that stands still: casting a VLP-16's packets through the trees and in cells, interleaved.

    python bench/bench_cells.py [--rounds 7] [--json FILE]

Scenes: the demo street with and without what moves in it, hills of a million triangles, a world of movers alone (what is before a captured background).
Times are the least of the rounds' means over the packets of one turn, in us a packet of 384 firings (one call of the kernel), on one core; the call itself,
with its 40 arrays to unpack, is about 7 us of each and falls away where packets are rendered in one kernel. Cells are 0.096 degrees wide.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from bench_timing import describe_machine

from hilsim.diagnosis.ray_speed import hills
from hilsim.geometry.frames import IDENTITY
from hilsim.render.beams import cast_beams
from hilsim.render.cell_lists import build_cells, build_turning_cells
from hilsim.render.cells import NO_CELL, NO_CELLS, turning_cell
from hilsim.render.packets import NO_COSINE, packets_of
from hilsim.scene.specs import SceneSpec
from hilsim.scene.street.street import street_objects
from hilsim.scene.world import SceneObject, build_world
from hilsim.sensor.optics.beam import build_beam
from hilsim.sensor.specs import BeamSpec

ELEVATION = np.radians(np.arange(-15.0, 16.0, 2.0))
RISE_M = np.linspace(0.011, -0.011, 16)
SECTORS = 3750
SEQUENCES = 24
STEP = np.radians(0.199)
MAX_RANGE_M = 130.0
SPOT = BeamSpec(divergence_h_mrad=3.0, divergence_v_mrad=1.5, window_h_mm=9.5, window_v_mm=12.7)


def heading(azimuth):
    """Unit directions ``float64[16 * a, 3]``, channel by channel."""
    elevation, turned = np.meshgrid(ELEVATION, azimuth, indexing="ij")
    level = np.cos(elevation)
    return np.stack([level * np.sin(turned), level * np.cos(turned), np.sin(elevation)], axis=-1).reshape(-1, 3)


def packet(origin_m, first_azimuth, pattern):
    """Origins, directions, cells, times of a packet's rays."""
    azimuth = (first_azimuth + np.arange(SEQUENCES) * STEP) % (2.0 * np.pi)
    ahead = heading(azimuth)
    across = np.cross(ahead, [0.0, 0.0, 1.0])
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    sides = np.stack([across, np.cross(across, ahead)], axis=1)
    origin = np.repeat(origin_m, SEQUENCES, axis=0)[:, np.newaxis] + pattern.offset_m @ sides
    direction = ahead[:, np.newaxis] + pattern.tangent @ sides
    direction /= np.linalg.norm(direction, axis=2, keepdims=True)
    cell = np.array([turning_cell(channel, turned, SECTORS) for channel in range(16) for turned in azimuth], np.int32)
    count = direction.size // 3
    return np.ascontiguousarray(origin.reshape(-1, 3)), direction.reshape(-1, 3).astype(np.float32), cell, np.zeros(count, np.int64), np.zeros(count)


def measure(world, origin_m, pattern, rounds):
    """Least us a packet of the trees and of cells, build seconds, and the cells."""
    build_cells(world, origin_m, [[1.0, 0.0, 0.0]], 0, 0.001, MAX_RANGE_M)  # compile
    begin = time.perf_counter()
    cells = build_turning_cells(world, origin_m, IDENTITY, ELEVATION, SECTORS, MAX_RANGE_M, pattern.width_m, pattern.spread)
    build_s = time.perf_counter() - begin
    packets = [packet(origin_m, first, pattern) for first in np.arange(0.0, 2.0 * np.pi, SEQUENCES * STEP)]
    sub_rays = pattern.share.size
    least = [np.inf, np.inf]
    for _ in range(rounds):
        found = []
        for way in range(2):
            spent = 0.0
            for origin, direction, cell, times, travelled in packets:
                hits = np.empty(len(origin), np.float32), np.empty(len(origin), np.int32), np.empty(len(origin), np.int32)
                listed = (cells, cell) if way else (NO_CELLS, NO_CELL)
                order = packets_of(np.arange(len(origin)))
                begin = time.perf_counter()
                cast_beams(world, order, origin, direction, times, MAX_RANGE_M, sub_rays, *listed, travelled, *hits, NO_COSINE)
                spent += time.perf_counter() - begin
                found.append(hits)
            least[way] = min(least[way], spent / len(packets) * 1e6)
        if not all(np.array_equal(a, b) for a, b in zip(found[: len(packets)], found[len(packets) :], strict=True)):
            raise SystemExit("hits differ")
    return least, build_s, cells


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    objects = street_objects(SceneSpec(generator="street"))
    street = build_world(objects)
    nobody = np.zeros(0, np.int32)
    roof = np.array([-3.8, -25.0, 1.9])
    scenes = {
        "street": (street, roof),
        "street, nothing moves": (street._replace(key_first=nobody, key_count=nobody), roof),
        "movers alone": (build_world(objects[-len(street.key_first) :]), roof),
        "hills, 1M triangles": (build_world([SceneObject(mesh=hills(708))]), np.array([0.1, 0.05, 6.0])),
    }
    machine = describe_machine()
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    columns = ("trees", "cells", "ratio", "build s", "MB", "entries", "longest", "no list")
    print(f"{'scene':<24}{'sub-rays':>9}" + "".join(f"{column:>9}" for column in columns))
    table = []
    for name, (world, place) in scenes.items():
        for sub_rays in (1, 7):
            origin_m = place + RISE_M[:, np.newaxis] * [0.0, 0.0, 1.0]
            (trees, listed), build_s, cells = measure(world, origin_m, build_beam(SPOT, sub_rays), options.rounds)
            length = np.diff(cells.first)
            size = sum(column.nbytes for column in cells[:5]) / 1e6
            row = trees, listed, trees / listed, build_s, size, length.mean(), length.max(), (cells.reach_m == 0.0).mean()
            print(f"{name:<24}{sub_rays:>9}" + "".join(f"{value:>9.{places}f}" for value, places in zip(row, (1, 1, 2, 2, 2, 2, 0, 4), strict=True)))
            table.append({"scene": name, "sub_rays": sub_rays, **dict(zip(columns, map(float, row), strict=True))})
    if options.json:
        options.json.write_text(json.dumps({"machine": machine, "us_per_packet": table}, indent=2) + "\n")


if __name__ == "__main__":
    main()
