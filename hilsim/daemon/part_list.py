"""The parts of a running rig: those of the core, and those of the kinds whose tables it has (``config.part_kind``)."""

from collections.abc import Callable

from hilsim.config.part_kind import parts_of
from hilsim.daemon.external.part import ExternalPoses
from hilsim.daemon.flight.part import VehiclePart
from hilsim.daemon.interfaces.part import SensorInterfaces
from hilsim.daemon.parts import Part, RigContext
from hilsim.daemon.serial_devices.part import SerialDevices
from hilsim.daemon.sinks.part import Sinks
from hilsim.daemon.streaming.replays import Replays
from hilsim.daemon.streaming.sensors import Sensors
from hilsim.daemon.time_inputs.part import TimeInputs

_BEFORE: tuple[Callable[[RigContext], Part], ...] = (Sinks, VehiclePart, ExternalPoses, Sensors, SerialDevices)
_AFTER: tuple[Callable[[RigContext], Part], ...] = (Replays, TimeInputs, SensorInterfaces)


def make_parts(context: RigContext) -> tuple[Part, ...]:
    """Make the parts of a rig, in the order in which they are prepared, opened and started; they are stopped in the opposite order.

    Sinks are first, so that they miss no packet; the vehicle flies, and poses are received, before sensors measure; replays, whose reading would disturb
    the measurement of the rendering cost, start after that.
    """
    makers = *_BEFORE, *(kind.part for kind, _ in parts_of(context.rig.spec)), *_AFTER
    return tuple(part for make in makers if (part := make(context)) is not None)
