"""Timed changes of a rig's vehicle, as the flight loop takes them."""

from collections.abc import Iterator

from hilsim.autopilot.changes.table import Kind
from hilsim.autopilot.loop_setup import TimedChange, placed_motion
from hilsim.config.rig import Rig
from hilsim.config.script import Script, VehicleChange
from hilsim.vehicle.multirotor import Multirotor
from hilsim.vehicle.wind import build_wind

VEHICLE = "vehicle"
"""Name of the vehicle in ``late_s`` and in answers."""
_LEVEL = (0.0, 0.0, 0.0)


def loop_changes(change: VehicleChange, at_ns: int, multirotor: Multirotor, *, seed: int) -> Iterator[TimedChange]:
    """Changes of the flight loop that a change of a vehicle consists of, at a rig time."""
    if change.reset:
        yield TimedChange(at_ns, Kind.RESET)
    if change.position_m is not None:
        yield TimedChange(at_ns, Kind.PLACE, motion=placed_motion(multirotor, change.position_m, change.rotation_deg or _LEVEL))
    if change.wind is not None:
        yield TimedChange(at_ns, Kind.WIND, wind=build_wind(change.wind, seed, 0))


def script_changes(rig: Rig, script: Script | None, multirotor: Multirotor) -> list[TimedChange]:
    """Changes of the flight loop that a script lists, by their times."""
    found = [change for change in script.changes if isinstance(change, VehicleChange)] if script is not None else []
    found.sort(key=lambda change: change.sensor_ns(VEHICLE))
    return [each for change in found for each in loop_changes(change, change.sensor_ns(VEHICLE), multirotor, seed=rig.spec.seed)]
