"""What a lookout adds to rendering a packet of a VLP-16: ``python bench/bench_lookout.py``."""

import time

import numpy as np

from hilsim._jit import kernel
from hilsim.autopilot.obstacle_map import Lookout, build_lookout, note_packet
from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.emulator.firing import fire
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.planning import lidar_plan
from hilsim.emulator.setting import LidarSetting
from hilsim.emulator.workspace import Shots, allocate_shots
from hilsim.rangefinders.specs import DistanceSensorSpec, ObstacleSpec
from hilsim.sensor.velodyne_specs import VelodyneSpec
from hilsim.vehicle.live import LivePose, live_pose
from hilsim.vehicle.platform import live_carrier

PACKETS = 20_000
PACKET_NS = 1_327_104


@kernel
def note_packets(lookout: Lookout, plan: LidarPlan, live: LivePose, shots: Shots, count: int) -> None:
    """Note one packet again and again, as if it came at its rate."""
    for _ in range(count):
        for ray in range(shots.rays.time_ns.size):
            shots.rays.time_ns[ray] += PACKET_NS
        note_packet(lookout, plan, live, shots)


def main() -> None:
    """Print the time a packet takes, by what is wanted."""
    path = profiles_directory() / "sensors" / "vlp16.toml"
    setting = LidarSetting(name="vlp16", stream=0, spec=parse_table(VelodyneSpec, read_toml(path), str(path)))
    plan, live = lidar_plan(setting, seed=0, utc_epoch_ns=0), live_pose()
    shots = allocate_shots(plan, plan.sequences_per_packet, is_opaque=True)
    fire(plan, live_carrier(live), 0, plan.sequences_per_packet, shots.rays)
    shots.returns.distance[:] = np.random.default_rng(1).integers(0, 20_000, shots.returns.distance.shape)
    obstacle, beam = ObstacleSpec(sensor="vlp16"), DistanceSensorSpec(sensor="vlp16")
    for name, wanted in {"sectors": (obstacle, ()), "a cone": (None, (beam,)), "sectors and a cone": (obstacle, (beam,))}.items():
        lookout = build_lookout(*wanted, turn_ns=100_000_000)
        note_packets(lookout, plan, live, shots, 1)
        begun_s = time.perf_counter()
        note_packets(lookout, plan, live, shots, PACKETS)
        print(f"{name}: {(time.perf_counter() - begun_s) / PACKETS * 1e6:.1f} us a packet")


if __name__ == "__main__":
    main()
