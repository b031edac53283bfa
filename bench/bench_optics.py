"""What a beam's width costs: the stages of a data packet of the demo street with 1, 7 and 19 sub-rays, interleaved.

    python bench/bench_optics.py [--packets 300] [--rounds 3] [--json FILE]

Times are the least of the rounds' means, in us a packet (384 firings), on one core: firing (poses, head, directions), tracing (casting rays, and those
behind foliage, and what they met), responding (echoes, detection, returns).
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from bench_timing import describe_machine

from hilsim._jit import kernel
from hilsim.assembly.build import build_lidar, build_scenery
from hilsim.config.rig import load_rig
from hilsim.emulator.detection import respond
from hilsim.emulator.firing import fire
from hilsim.emulator.fused import trace
from hilsim.emulator.workspace import allocate_workspace

DEMO = Path(__file__).resolve().parent.parent / "profiles" / "rigs" / "demo.toml"
STAGES = ("fire", "trace", "respond")


@kernel
def traced(plan, world, workspace):
    """``trace`` as a kernel of its own."""
    trace(plan, world, workspace)


def measure(lidar, world, packets):
    """Mean us a packet of each stage."""
    plan = lidar.plan
    workspace = allocate_workspace(plan, plan.sequences_per_packet, is_opaque=world.is_opaque)
    spent = np.zeros(len(STAGES))
    for packet in range(-10, packets):
        first = 3 * max(packet, 0) * plan.sequences_per_packet
        instants = [time.perf_counter()]
        fire(plan, lidar.platform, first, plan.sequences_per_packet, workspace.rays)
        instants.append(time.perf_counter())
        traced(plan, world, workspace)
        instants.append(time.perf_counter())
        respond(plan, first, plan.sequences_per_packet, workspace)
        instants.append(time.perf_counter())
        if packet >= 0:
            spent += np.diff(instants)
    return spent / packets * 1e6


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rig = load_rig(DEMO)
    scenery = build_scenery(rig)
    demo = build_lidar(rig, 0, scenery, utc_epoch_ns=0, frames=False)
    lidars = {rays: replace(demo, setting=demo.setting.with_sub_rays(rays)) for rays in (1, 7, 19)}
    rows = {rays: np.full(len(STAGES), np.inf) for rays in lidars}
    for _ in range(options.rounds):
        for rays, lidar in lidars.items():
            rows[rays] = np.minimum(rows[rays], measure(lidar, scenery.world, options.packets))
    machine = describe_machine()
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    print(f"{'sub-rays':>8} " + "".join(f"{stage:>10}" for stage in STAGES) + f"{'all':>10}{'cost of one':>14}")
    one = rows[1].sum()
    for rays, row in rows.items():
        print(f"{rays:>8} " + "".join(f"{value:>10.1f}" for value in row) + f"{row.sum():>10.1f}{row.sum() / one:>13.2f}x")
    if options.json:
        table = {str(rays): dict(zip(STAGES, row.tolist(), strict=True)) for rays, row in rows.items()}
        options.json.write_text(json.dumps({"machine": machine, "us_per_packet": table}, indent=2) + "\n")


if __name__ == "__main__":
    main()
