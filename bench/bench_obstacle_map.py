"""What an obstacle map adds to rendering a packet of a VLP-16: ``python bench/bench_obstacle_map.py``."""

import time

import numpy as np

from hilsim.compilation.jit import kernel
from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.emulator.firing import fire
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.planning import build_lidar_plan
from hilsim.emulator.setting import LidarSetting
from hilsim.emulator.workspace import Workspace, allocate_workspace
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.parts.vehicle.obstacle_messages import map_for_messages
from hilsim.parts.vehicle.scan_messages import DistanceSensorSpec, ObstacleSpec
from hilsim.streaming.obstacle_map import ObstacleMap, note_packet
from hilsim.world.platforms.live import LivePose, build_live_pose
from hilsim.world.platforms.platform import live_platform

PACKETS = 20_000
PACKET_NS = 1_327_104


@kernel
def note_packets(obstacle_map: ObstacleMap, plan: LidarPlan, live: LivePose, workspace: Workspace, count: int) -> None:
    """Note one packet again and again, as if it came at its rate."""
    for _ in range(count):
        for ray in range(workspace.rays.time_ns.size):
            workspace.rays.time_ns[ray] += PACKET_NS
        note_packet(obstacle_map, plan, live, workspace)


def main() -> None:
    """Print the time a packet takes, by the messages required."""
    path = profiles_directory() / "sensors" / "vlp16.toml"
    setting = LidarSetting(name="vlp16", stream=0, spec=parse_table(VelodyneSpec, read_toml(path), str(path)))
    plan, live = build_lidar_plan(setting, seed=0, utc_epoch_ns=0), build_live_pose()
    workspace = allocate_workspace(plan, plan.sequences_per_packet, is_opaque=True)
    workspace.sequence[:] = np.arange(plan.sequences_per_packet)
    fire(plan, live_platform(live), workspace.sequence, workspace.rays)
    workspace.returns.distance[:] = np.random.default_rng(1).integers(0, 20_000, workspace.returns.distance.shape)
    obstacle, beam = ObstacleSpec(sensor="vlp16"), DistanceSensorSpec(sensor="vlp16")
    for name, wanted in {"sectors": (obstacle, ()), "a cone": (None, (beam,)), "sectors and a cone": (obstacle, (beam,))}.items():
        obstacle_map = map_for_messages(*wanted, turn_ns=100_000_000)
        note_packets(obstacle_map, plan, live, workspace, 1)
        begun_s = time.perf_counter()
        note_packets(obstacle_map, plan, live, workspace, PACKETS)
        print(f"{name}: {(time.perf_counter() - begun_s) / PACKETS * 1e6:.1f} us a packet")


if __name__ == "__main__":
    main()
