"""What tests of others' programs need: lidars for their drivers, a scripted flight controller for autopilot bridges, ground stations and simulators.

Every name is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hilsim.testing.factory import LidarFactory
    from hilsim.testing.flight_controller.flight_report import RULES as FLIGHT_RULES
    from hilsim.testing.flight_controller.flight_report import TIMING_RULES as FLIGHT_TIMING_RULES
    from hilsim.testing.flight_controller.flight_report import Fault, FlightReport
    from hilsim.testing.flight_controller.process import FlightController, FlightError
    from hilsim.testing.lidars import Lidar, lidar
    from hilsim.testing.virtual import VirtualLidar

__all__ = [
    "FLIGHT_RULES",
    "FLIGHT_TIMING_RULES",
    "Fault",
    "FlightController",
    "FlightError",
    "FlightReport",
    "Lidar",
    "LidarFactory",
    "VirtualLidar",
    "lidar",
]

_HOMES = {
    "FLIGHT_RULES": "hilsim.testing.flight_controller.flight_report:RULES",
    "FLIGHT_TIMING_RULES": "hilsim.testing.flight_controller.flight_report:TIMING_RULES",
    "Fault": "hilsim.testing.flight_controller.flight_report:Fault",
    "FlightController": "hilsim.testing.flight_controller.process:FlightController",
    "FlightError": "hilsim.testing.flight_controller.process:FlightError",
    "FlightReport": "hilsim.testing.flight_controller.flight_report:FlightReport",
    "Lidar": "hilsim.testing.lidars:Lidar",
    "LidarFactory": "hilsim.testing.factory:LidarFactory",
    "VirtualLidar": "hilsim.testing.virtual:VirtualLidar",
    "lidar": "hilsim.testing.lidars:lidar",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
