"""List of all kinds of parts of a running rig; a new kind is one more entry."""

from collections.abc import Callable

from hilsim.daemon.external.part import ExternalPoses
from hilsim.daemon.flight.part import VehiclePart
from hilsim.daemon.gazebo.part import Gazebo
from hilsim.daemon.interfaces.part import SensorInterfaces
from hilsim.daemon.parts import Part, RigContext
from hilsim.daemon.rovers.part import Rovers
from hilsim.daemon.serial_devices.part import SerialDevices
from hilsim.daemon.sinks.part import Sinks
from hilsim.daemon.streaming.replays import Replays
from hilsim.daemon.streaming.sensors import Sensors
from hilsim.daemon.time_inputs.part import TimeInputs

PARTS: tuple[Callable[[RigContext], Part], ...] = (
    Sinks,
    VehiclePart,
    ExternalPoses,
    Sensors,
    SerialDevices,
    Rovers,
    Gazebo,
    Replays,
    TimeInputs,
    SensorInterfaces,
)
"""Kinds of parts in the order in which they are prepared, opened and started; they are stopped in the opposite order.
Sinks are first, so that they miss no packet; the vehicle flies, and poses are received, before sensors measure; replays, whose reading would disturb
the measurement of the rendering cost, start after that.
"""
