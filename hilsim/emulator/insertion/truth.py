"""Ground truth of the returns that objects made in recorded packets."""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel, signed
from hilsim.emulator.insertion.packet import InsertionWorkspace
from hilsim.emulator.insertion.unit import PacketFormat, RecordedUnit
from hilsim.emulator.truth import Truth, describe_echo
from hilsim.families.cepton.protocol.stdv import POINT_SIZE
from hilsim.scene.world import World
from hilsim.sensor.echoes import return_type

_CEPTON, _POINT_SIZE, _NO_SEQUENCE, _RETURNS = constant(PacketFormat.CEPTON), constant(POINT_SIZE), constant(-1), constant(2)


@kernel
def note_inserted(
    unit: RecordedUnit, world: World, rig_ns: int, packet: int, payload: npt.NDArray[np.uint8], workspace: InsertionWorkspace, truth: Truth, row: int
) -> int:
    """Write a row for each return that an object made in a packet.

    The index of the firing sequence is -1 for a Cepton, whose points do not show it. A mixed echo, of an object and a recorded surface, has a row too: its range
    is that of both.

    Args:
        unit: The unit that recorded the packet.
        world: World that was put into it.
        rig_ns: Rig time of the packet's stamp.
        packet: Index of the packet since the replay started.
        payload: The packet.
        workspace: After ``insert_objects``.
        truth: Written from ``row`` on.
        row: First row to write.

    Returns:
        The row after the last.
    """
    recorded, rays = workspace.recorded, workspace.rays
    lasers = 1 if unit.packet_format == _CEPTON else int(unit.record_channel.max()) + 1
    count = recorded.state[3]
    for firing in range(count):
        returns = 2 if recorded.place[firing, 1] >= 0 else 1
        for number in range(returns):
            echo = int(workspace.reported[firing, number])
            if echo < 0:
                continue
            place, other = recorded.place[firing, number], workspace.reported[firing, 1 - number] if returns == _RETURNS else -1
            truth.packet[row], truth.channel[row], truth.time_ns[row] = packet, recorded.channel[firing], rig_ns + recorded.time_ns[firing]
            if unit.packet_format == _CEPTON:
                truth.block[row], truth.record[row] = 0, (place - signed(payload[5])) // _POINT_SIZE
                truth.sequence[row] = _NO_SEQUENCE
                x = signed(payload[place]) | signed(payload[place + 1]) << 8
                z = signed(payload[place + 4]) | signed(payload[place + 5]) << 8
                y = signed(payload[place + 2]) | signed(payload[place + 3]) << 8
                x, z = x - ((x & 0x8000) << 1), z - ((z & 0x8000) << 1)
                truth.distance[row] = int(np.floor(np.sqrt(float(x * x + y * y + z * z)) + 0.5))
                truth.reflectivity[row] = payload[place + 6]
            else:
                truth.block[row], truth.record[row] = place // 100, (place % 100 - 4) // 3
                truth.sequence[row] = (packet * count + firing) // lasers
                truth.distance[row] = signed(payload[place]) | signed(payload[place + 1]) << 8
                truth.reflectivity[row] = payload[place + 2]
            truth.range_m[row] = workspace.reported_m[firing, number]
            truth.noise_m[row] = truth.distance[row] * unit.response.unit_m - truth.range_m[row]
            describe_echo(world, rays.hits, firing, echo, truth, row)
            truth.return_type[row] = return_type(workspace.choice[:returns], number, rays.hits, firing, echo, other)
            for axis in range(3):
                truth.position_m[row, axis] = rays.start_m[firing, axis]
            for part in range(4):
                truth.orientation[row, part] = rays.turn[firing, part]
            row += 1
    return row
