"""A Mid-360's stream in a room for the checker's tests: points, inertial packets and push messages."""

import binascii
import struct
import zlib
from dataclasses import dataclass, replace

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.livox.interface.keys import MID360_PORTS
from hilsim.families.livox.interface.requests import push_message
from hilsim.families.livox.interface.state import Conditions, LidarState
from hilsim.families.livox.protocol.commands import encode_frame
from tests.livox_sensors import in_room
from tests.livox_units import unit_of

EPOCH_NS, S = 1_767_229_200_000_000_000, 10**9
SOURCE = "192.168.1.103"


@dataclass(frozen=True)
class Sent:
    """A payload, the port that it left, and when it was captured."""

    host_ns: int
    port: int
    payload: bytes

    def with_bytes(self, at, form, *values):
        """Bytes of a data packet replaced, and its CRC made anew."""
        data = struct.pack(form, *values)
        payload = self.payload[:at] + data + self.payload[at + len(data) :]
        return replace(self, payload=payload[:24] + struct.pack("<I", zlib.crc32(payload[28:])) + payload[28:])

    def with_frame(self, at, form, *values):
        """Bytes of a control frame replaced, and both CRCs made anew."""
        data = struct.pack(form, *values)
        payload = self.payload[:at] + data + self.payload[at + len(data) :]
        return replace(
            self, payload=payload[:18] + struct.pack("<HI", binascii.crc_hqx(payload[:18], 0xFFFF), zlib.crc32(payload[24:])) + payload[24:]
        )


def room(duration_s, ports=(56_300, 56_400), **options):
    """``Sent`` points and inertial packets of a sensor in a room, from these ports."""
    lidar = in_room(**options)
    sent = []
    for port, batch in zip(ports, (lidar.data_span(0, round(duration_s * S)), lidar.position_span(0, round(duration_s * S))), strict=True):
        rows = zip(batch.deadline_ns, batch.payload, batch.size, strict=True)
        sent += [Sent(EPOCH_NS + int(due), port, row[:size].tobytes()) for due, row, size in rows]
    return sorted(sent, key=lambda one: one.host_ns)


def pushes(number, work=1):
    """Push messages of a sensor that samples, or is in another work state."""
    state = LidarState.of(unit_of(SOURCE), {0x001A: bytes([work])})
    conditions = [Conditions(now_ns=second * S, local_ns=second * S, time_type=0) for second in range(number)]
    frames = [push_message(state, second + 5, each) for second, each in enumerate(conditions)]
    return [Sent(EPOCH_NS + second * S, MID360_PORTS.push, encode_frame(frame)) for second, frame in enumerate(frames)]


def datagrams(sent):
    return [
        CapturedDatagram(one.host_ns, SOURCE, one.port, "192.168.1.5", one.port + 1, one.payload, None, is_ethernet=False, frame=number)
        for number, one in enumerate(sent, 1)
    ]
