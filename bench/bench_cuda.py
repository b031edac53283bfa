"""How fast a GPU casts rays for hilsim, beside one core and beside NVIDIA Warp on the same GPU: from one data packet to a million rays.

Usage: python bench/bench_cuda.py [--rounds N] [--json FILE]. Requires an NVIDIA GPU (pip install 'hilsim-lidar[cuda]'); Warp is optional.
Milliseconds a call, median of N. "cpu" is ``cast_many`` on one core. "cuda" is ``CudaRenderer.cast_rays``, as a daemon uses it: copies into and
from the memory that host and GPU share included. "kernel" is its launch alone. "warp" is a Warp kernel that writes ranges only, rays resident; "warp, copied"
adds copies of rays and ranges through page-locked memory. Ranges of the GPU that differ from the CPU's by more than 1 mm are counted.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import peers
from numba import config

from hilsim.cli.diagnosis.machine import processor_text
from hilsim.cli.diagnosis.ray_speed import REACH_M, VLP16_ELEVATIONS_DEG, hills, scan, street, town
from hilsim.world.render.cpu import cast_many
from hilsim.world.render.cuda import CudaRenderer
from hilsim.world.scene.world import SceneObject, build_world
from tests.meshes import join_meshes

BATCHES = {"packet, 1 ray": (384, 1), "packet, 7 rays": (384 * 7, 7), "8 packets, 7 rays": (8 * 384 * 7, 7), "a million": (1 << 20, 7)}


def milliseconds(call, rounds):
    """Median of a call's wall time, after two calls that compile and allocate."""
    spent = []
    for number in range(rounds + 2):
        begin = time.perf_counter()
        call()
        if number >= 2:
            spent.append(time.perf_counter() - begin)
    return 1e3 * float(np.median(spent))


def rays_of(count, sub_rays, height_m):
    """The first rays of scans of a VLP-16, as many times over as needed."""
    direction = scan(VLP16_ELEVATIONS_DEG, sub_rays)
    direction = np.ascontiguousarray(np.resize(direction, (count, 3)))
    return np.tile([0.113, 0.047, height_m], (count, 1)), direction, np.zeros(count, dtype=np.int64)


def outputs(count):
    """Arrays for hits."""
    return np.empty(count, np.float32), np.empty(count, np.int32), np.empty(count, np.int32)


def kernel_alone(renderer, count):
    """Call that runs the renderer's kernel once more over the rays of its last cast."""
    still, moving, kernel, stream = renderer._still, renderer._parts.block, renderer._kernel, renderer._stream  # noqa: SLF001

    def call():
        kernel[(count + 63) // 64, 64, stream](still, moving, count, 0, REACH_M)
        stream.synchronize()

    return call


def measure(renderer, world, batch, height_m, rounds):
    """Milliseconds of each way to cast one batch, and how many ranges differ by more than 1 mm."""
    count, sub_rays = BATCHES[batch]
    origin, direction, times = rays_of(count, sub_rays, height_m)
    on_cpu, on_gpu = outputs(count), outputs(count)
    spent = {
        "cpu": milliseconds(lambda: cast_many(world, origin, direction, times, REACH_M, *on_cpu), min(rounds, 20)),
        "cuda": milliseconds(lambda: renderer.cast_rays(world, origin, direction, times, REACH_M, *on_gpu), rounds),
    }
    with np.errstate(invalid="ignore"):
        differ = int(np.sum(~(np.isclose(on_cpu[0], on_gpu[0], rtol=0.0, atol=1e-3) | (on_cpu[0] == on_gpu[0]))))
    if not config.ENABLE_CUDASIM:
        spent["kernel"] = milliseconds(kernel_alone(renderer, count), rounds)
        spent |= {name: milliseconds(call, rounds) for name, call in peers.warp_on_gpu(world, origin, direction, REACH_M).items()}
    return spent, differ


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    renderer = CudaRenderer()
    print(f"{renderer.name}; {processor_text()}; milliseconds a call, median of {options.rounds}")
    rows = []
    for scene, objects, height_m in (
        ("town", [SceneObject(mesh=join_meshes(tuple(town(84))))], 2.0),
        ("street", street(), 2.0),
        ("hills", [SceneObject(mesh=hills(708))], 8.0),
    ):
        world = build_world(objects)
        for batch in BATCHES:
            spent, differ = measure(renderer, world, batch, height_m, options.rounds)
            rows.append({"scene": scene, "triangles": len(world.corners), "batch": batch, "ms": spent, "differ": differ})
            print(
                f"{scene} {len(world.corners)}, {batch}: {', '.join(f'{name} {ms:.3f}' for name, ms in spent.items())}; {differ} differ", flush=True
            )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
