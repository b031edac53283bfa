"""Tools for other projects' tests: lidars for drivers, a scripted flight controller for autopilot bridges, ground stations and simulators.

Every name is loaded on first use.
"""

from typing import TYPE_CHECKING

from hilsim.lazy_imports import lazy_names

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

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
