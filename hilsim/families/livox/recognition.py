"""Recognition of Livox packets: lengths, types and numbers of points that fit each other, and the checksum of a control frame's head."""

from struct import Struct

from hilsim.families.livox.protocol.commands import crc16
from hilsim.families.livox.protocol.points import IMU_DATA, TYPE_AT, header_fault
from hilsim.protocols.ethernet import PLAIN_STYLE
from hilsim.protocols.recognise import KindFacts, PacketKind

LIVOX_STYLE = PLAIN_STYLE
"""Headers of a real unit's frames are not known: no capture of one is public."""
_CONTROL = Struct("<BBHIHBB6sH")
"""Start of a frame (0xAA), version, length, sequence number, command, request or answer, sender, reserved, CRC-16; its CRC-32 and data follow."""
_START, _PUSH, _FROM_LIDAR = 0xAA, 0x0102, 1


class LivoxKind(PacketKind):
    """Kinds of Livox packets."""

    POINTS = KindFacts("Livox points", "livox", "points", has_points=True, is_decoded=True, style=LIVOX_STYLE)
    IMU = KindFacts("Livox IMU", "livox", "imu", port_step=100, style=LIVOX_STYLE)
    PUSH = KindFacts("Livox push", "livox", "push", port_step=-100, style=LIVOX_STYLE)
    COMMAND = KindFacts("Livox command", "livox", "commands", style=LIVOX_STYLE)


def recognise(payload: bytes) -> LivoxKind | None:
    """The kind of a payload."""
    if not header_fault(payload):
        return LivoxKind.IMU if payload[TYPE_AT] == IMU_DATA else LivoxKind.POINTS
    if len(payload) < _CONTROL.size + 4 or payload[0] != _START:
        return None
    _, version, length, _, command, _, sender, _, crc = _CONTROL.unpack_from(payload)
    if version != 0 or length != len(payload) or crc != crc16(payload[: _CONTROL.size - 2]):
        return None
    return LivoxKind.PUSH if command == _PUSH and sender == _FROM_LIDAR else LivoxKind.COMMAND
