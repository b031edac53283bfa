"""What a beam's width costs: the stages of a data packet of the demo street with 1, 7 and 19 sub-rays, interleaved.

    python bench/bench_optics.py [--packets 300] [--rounds 3] [--json FILE]

Times are the least of the rounds' means, in us of a processor's time a packet (384 firings): firing (poses, head, directions), tracing (casting rays, and
those behind foliage, and what they met), responding (echoes, detection, returns); a stage's is that of the run with it less that of the run without.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from bench_timing import describe_machine

from hilsim.assembly.build import build_lidar, build_scenery
from hilsim.compilation.jit import kernel
from hilsim.config.rig import load_rig
from hilsim.emulator.firing import fire
from hilsim.emulator.fused import trace
from hilsim.emulator.reception.detection import respond
from hilsim.emulator.workspace import allocate_workspace

DEMO = Path(__file__).resolve().parent.parent / "profiles" / "rigs" / "demo.toml"
STAGES = ("fire", "trace", "respond")


@kernel
def run(plan, platform, world, workspace, packets, stages):
    """The first so many stages of many packets, of which one in three is made: without Python between them."""
    sequences = plan.sequences_per_packet
    for packet in range(packets):
        workspace.sequence[:] = np.arange(3 * packet * sequences, 3 * packet * sequences + sequences)
        fire(plan, platform, workspace.sequence, workspace.rays)
        if stages > 1:
            trace(plan, world, workspace)
        if stages > 2:
            respond(plan, workspace)


def measure(lidar, world, packets):
    """Mean us a packet of each stage."""
    plan = lidar.plan
    workspace = allocate_workspace(plan, plan.sequences_per_packet, is_opaque=world.is_opaque, keeps_hits=False)
    run(plan, lidar.platform, world, workspace, 10, len(STAGES))
    through = [0.0]
    for stages in range(1, len(STAGES) + 1):
        begin_s = time.thread_time()
        run(plan, lidar.platform, world, workspace, packets, stages)
        through.append(time.thread_time() - begin_s)
    return np.diff(through) / packets * 1e6


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
