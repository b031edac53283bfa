"""The parts of a running rig: those of the core, and those of the kinds whose tables it has (``config.part_kind``)."""

from collections.abc import Callable

from hilsim.config.part_kind import parts_of
from hilsim.daemon.interfaces.part import SensorInterfaces
from hilsim.daemon.parts import Part, RigContext
from hilsim.daemon.serial_devices.part import SerialDevices
from hilsim.daemon.sinks.part import Sinks
from hilsim.daemon.streaming.replays import Replays
from hilsim.daemon.streaming.sensors import Sensors
from hilsim.daemon.time_inputs.part import TimeInputs

Makers = tuple[Callable[[RigContext], Part], ...]
_SENSORS: Makers = (Sensors, SerialDevices)
_LAST: Makers = (Replays, TimeInputs, SensorInterfaces)


def make_parts(context: RigContext) -> tuple[Part, ...]:
    """Make the parts of a rig, in the order in which they are prepared, opened and started; they are stopped in the opposite order.

    Sinks are first, so that they miss no packet; parts move sensors and what is seen before sensors measure; replays, whose reading would disturb
    the measurement of the rendering cost, start after that.
    """
    kinds = [kind for kind, _ in parts_of(context.rig.spec)]
    moving, others = ([kind.part for kind in kinds if (kind.moves or kind.carries) is moves] for moves in (True, False))
    makers = Sinks, *moving, *_SENSORS, *others, *_LAST
    return tuple(part for make in makers if (part := make(context)) is not None)
