"""Every kind of part of a running rig: a new one is one more line here."""

from collections.abc import Callable

from hilsim.daemon.flight.part import VehiclePart
from hilsim.daemon.gazebo.part import Gazebo
from hilsim.daemon.parts import Part, RigContext
from hilsim.daemon.rovers.part import Rovers
from hilsim.daemon.serial_devices.part import SerialDevices
from hilsim.daemon.sinks.part import Sinks
from hilsim.daemon.streaming.replays import Replays
from hilsim.daemon.streaming.sensors import Sensors

PARTS: tuple[Callable[[RigContext], Part], ...] = (Sinks, VehiclePart, Sensors, SerialDevices, Rovers, Gazebo, Replays)
"""In the order in which they are prepared, opened and started; they are stopped in the opposite order.

What follows the stream is first, so that it misses nothing; the vehicle flies before its sensors look; replays begin to read ahead last, because reading
would disturb the measurement of what rendering costs.
"""
