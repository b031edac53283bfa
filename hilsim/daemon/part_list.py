"""The parts of a running rig: those of the core, and those of the kinds whose tables it has (``config.part_kind``)."""

from typing import Any

from hilsim.config.part_kind import PartKind, parts_of
from hilsim.config.part_tables import part_kind
from hilsim.config.rig import RigSpec
from hilsim.daemon.interfaces.part import SensorInterfaces
from hilsim.daemon.parts import Part, RigContext
from hilsim.daemon.serial_devices.part import SerialDevices
from hilsim.daemon.sinks.part import Sinks
from hilsim.daemon.streaming.sensors import Sensors
from hilsim.daemon.time_inputs.part import TimeInputs
from hilsim.registry import OWN_PARTS


def make_parts(context: RigContext) -> tuple[Part, ...]:
    """Make the parts of a rig, in the order in which they are prepared, opened and started; they are stopped in the opposite order.

    Sinks are first, so that they miss no packet; parts move sensors and what is seen before sensors measure; parts that send start after that, because
    reading captures would disturb the measurement of the rendering cost.
    """
    kinds = [kind for kind, _ in parts_of(context.rig.spec)]
    moving, others = (
        [part for kind in kinds if (kind.moves or kind.carries) is moves and (part := kind.part(context)) is not None] for moves in (True, False)
    )
    time_inputs = TimeInputs(context)
    core = Sensors(context, [part.obstacle_map for part in moving]), SerialDevices(context)
    return Sinks(context), *moving, *core, *others, time_inputs, SensorInterfaces(context, time_inputs.heard)


def listed_parts(spec: RigSpec) -> dict[str, list[tuple[PartKind[Any], Any]]]:
    """Tables of parts that send, with their kinds, by the plurals of their names."""
    sending = [kind.table for kind, _ in parts_of(spec) if kind.destination]
    tables = dict.fromkeys([*(table for table, own in OWN_PARTS.items() if own.is_listed), *sending])
    return {f"{table}s": [(part_kind(table), each) for each in spec.part(table)] for table in tables}
