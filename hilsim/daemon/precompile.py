"""Compiles half of the kernels in a process of its own while the daemon compiles the other half: a cold start on two cores takes half as long.

Numba compiles one kernel at a time in a process; what another process has put into the cache on disk it merely loads. The child renders one packet of an
empty world, which compiles everything from firing to bytes (``python -m hilsim.daemon.precompile``). For a rig with a vehicle a second child flies a moment over
nothing (``python -m hilsim.daemon.precompile flight``).
"""

import subprocess
import sys

from hilsim._kernel_cache import module_is_compiled
from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory

_FLIGHT = "flight"


def start_precompiling(*, has_lidar: bool, has_vehicle: bool) -> "tuple[subprocess.Popen[bytes], ...]":
    """Start children for what is missing from the cache; none when there is nothing to do or no cache to do it in."""
    wanted: list[tuple[str, ...]] = [()] if has_lidar and not module_is_compiled("hilsim.daemon.feeder") else []
    wanted += [(_FLIGHT,)] if has_vehicle and not module_is_compiled("hilsim.bridge.flying") else []
    command, quiet = [sys.executable, "-m", __name__], subprocess.DEVNULL
    return tuple(subprocess.Popen([*command, *words], stdin=quiet, stdout=quiet, stderr=quiet) for words in wanted)  # noqa: S603 - ourselves


def compile_flight() -> None:
    """Fly a vehicle for some steps over nothing; the daemon itself compiles the talk with a controller."""
    from hilsim.bridge.outfit import flown_track, open_line, outfit  # noqa: PLC0415 - only the child needs these
    from hilsim.bridge.specs import VehicleRigSpec  # noqa: PLC0415
    from hilsim.scene.world import build_world  # noqa: PLC0415
    from hilsim.vehicle.specs import VehicleSpec  # noqa: PLC0415

    path = profiles_directory() / "vehicles" / "iris.toml"
    vehicle = parse_table(VehicleSpec, read_toml(path), str(path))
    flown_track(outfit(VehicleRigSpec(), vehicle, open_line("hold"), seed=0, rate_hz=250), build_world([]), 0)


def compile_lidar() -> None:
    """Fire and cast a packet's rays into nothing, and encode a position packet; the daemon itself compiles the rest meanwhile."""
    import numpy as np  # noqa: PLC0415 - only the child needs these

    from hilsim.emulator.encoding import encode  # noqa: PLC0415
    from hilsim.emulator.firing import fire  # noqa: PLC0415
    from hilsim.emulator.fused import render_info_packet  # noqa: PLC0415
    from hilsim.emulator.hits import collect  # noqa: PLC0415
    from hilsim.emulator.plan import LidarSetting, lidar_plan  # noqa: PLC0415
    from hilsim.emulator.shots import allocate_shots  # noqa: PLC0415
    from hilsim.geometry.poses import Pose  # noqa: PLC0415
    from hilsim.geometry.tracks import fixed_track  # noqa: PLC0415
    from hilsim.packets.ethernet import PAYLOAD_ONLY  # noqa: PLC0415
    from hilsim.packets.velodyne_data import DATA_PACKET_SIZE  # noqa: PLC0415
    from hilsim.render.beams import cast_beams  # noqa: PLC0415
    from hilsim.scene.world import build_world  # noqa: PLC0415
    from hilsim.sensor.velodyne_specs import VelodyneSpec  # noqa: PLC0415
    from hilsim.vehicle.carrier import build_carrier  # noqa: PLC0415

    path = profiles_directory() / "sensors" / "vlp16.toml"
    setting = LidarSetting(name="none", stream=0, spec=parse_table(VelodyneSpec, read_toml(path), str(path)))
    plan = lidar_plan(setting, seed=0, utc_epoch_ns=0)
    carrier, world = build_carrier(fixed_track(Pose())), build_world([])
    payload = np.zeros(DATA_PACKET_SIZE, np.uint8)
    shots = allocate_shots(plan, plan.sequences_per_packet, is_opaque=True)
    rays = shots.rays
    footprint = 1, 0.0, 0.0, plan.beam_cells.cells, rays.cell, rays.travelled_m
    cast_beams(world, rays.origin_m, rays.direction, rays.time_ns, 1.0, *footprint, rays.range_m, rays.instance, rays.triangle)
    collect(plan, world, rays, rays.range_m.size, shots.backdrop, shots.hits, shots.ahead)
    fire(plan, carrier, 0, plan.sequences_per_packet, rays)
    render_info_packet(plan, carrier, PAYLOAD_ONLY, 0, 0, payload)
    encode(plan, 0, shots.returns, 0, payload)


if __name__ == "__main__":
    if sys.argv[1:] == [_FLIGHT]:
        compile_flight()
    else:
        compile_lidar()
