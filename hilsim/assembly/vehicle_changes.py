"""Timed changes of a rig's vehicle, as the flight loop takes them."""

from collections.abc import Iterator

from hilsim.config.script import VehicleChange
from hilsim.errors import ConfigError
from hilsim.fly.autopilot.changes.table import Kind
from hilsim.fly.autopilot.loop_setup import TimedChange, placed_motion
from hilsim.fly.collision.surroundings import is_below_ground
from hilsim.vehicle.multirotor import Multirotor
from hilsim.vehicle.wind import build_wind
from hilsim.world.geometry.frames import Vector
from hilsim.world.scene.world import World

VEHICLE = "vehicle"
"""Name of the vehicle in ``late_s`` and in answers."""
_LEVEL = (0.0, 0.0, 0.0)


def require_place(world: World, position_m: Vector | None, name: str = "position_m") -> None:
    """Refuse a place of a vehicle under the ground; None: no place.

    Raises:
        ConfigError: the place is there.
    """
    if position_m is not None and is_below_ground(world, position_m):
        raise ConfigError(f"{name} must be above the ground, got {list(position_m)}, below which there is none: the vehicle would fall for ever")


def loop_changes(change: VehicleChange, at_ns: int, multirotor: Multirotor, *, seed: int) -> Iterator[TimedChange]:
    """Changes of the flight loop that a change of a vehicle consists of, at a rig time."""
    if change.reset:
        yield TimedChange(at_ns, Kind.RESET)
    if change.position_m is not None:
        yield TimedChange(at_ns, Kind.PLACE, placed_motion(multirotor, change.position_m, change.rotation_deg or _LEVEL))
    if change.wind is not None:
        yield TimedChange(at_ns, Kind.WIND, build_wind(change.wind, seed, 0))
