"""MAVLink frames as bytes: splitting a stream, packing messages, and frames that no dialect knows. Layouts: mavlink.io, "Packet serialization"."""

import hashlib
import struct
from dataclasses import dataclass, field

from pymavlink.dialects.v20 import common
from pymavlink.generator.mavcrc import x25crc

V1, V2 = 0xFE, 0xFD
_SIGNED = 1
_SIGNATURE_SIZE = 13
_V1_OVERHEAD, _V2_OVERHEAD = 8, 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """A frame as it came."""

    raw: bytes
    version: int
    sequence: int
    system: int
    component: int
    identity: int
    signed: bool

    @property
    def payload_size(self):
        return self.raw[1]

    @property
    def source(self):
        return self.system, self.component

    def message(self):
        """Decoded, or None where the dialect does not know it."""
        return _DECODER.decode(bytearray(self.raw)) if self.identity in common.mavlink_map else None


_DECODER = common.MAVLink(None)


@dataclass
class Splitter:
    """Frames out of a stream. What belongs to none is kept apart: ``garbage``, and ``corrupt`` frames whose checksum is not that of their id."""

    garbage: bytearray = field(default_factory=bytearray)
    corrupt: list = field(default_factory=list)
    waiting: bytearray = field(default_factory=bytearray)

    def feed(self, data):
        """The frames that are whole now."""
        buffer = self.waiting
        buffer += data
        frames = []
        start = 0
        while start < len(buffer):
            if buffer[start] not in {V1, V2}:
                self.garbage.append(buffer[start])
                start += 1
                continue
            size = _frame_size(buffer, start)
            if size is None or start + size > len(buffer):
                break
            raw = bytes(buffer[start : start + size])
            if checksum_holds(raw):
                frames.append(_frame(raw))
                start += size
            else:
                self.corrupt.append(raw)
                start += 1
        del buffer[:start]
        return frames


def _frame_size(buffer, start):
    """Bytes that a frame has, or None while its header is not there."""
    if len(buffer) - start < 3:
        return None
    if buffer[start] == V1:
        return buffer[start + 1] + _V1_OVERHEAD
    return buffer[start + 1] + _V2_OVERHEAD + (_SIGNATURE_SIZE if buffer[start + 2] & _SIGNED else 0)


def _frame(raw):
    if raw[0] == V1:
        return Frame(raw=raw, version=1, sequence=raw[2], system=raw[3], component=raw[4], identity=raw[5], signed=False)
    identity = int.from_bytes(raw[7:10], "little")
    return Frame(raw=raw, version=2, sequence=raw[4], system=raw[5], component=raw[6], identity=identity, signed=bool(raw[2] & _SIGNED))


def system_of(raw):
    """System id of a frame's sender."""
    return raw[3] if raw[0] == V1 else raw[5]


def checksum_holds(raw):
    """Whether a frame's checksum is that of its bytes; of an unknown id nobody can tell, and it counts as right."""
    frame = _frame(raw)
    if frame.identity not in common.mavlink_map:
        return True
    end = 1 + (5 if frame.version == 1 else 9) + frame.payload_size
    crc = x25crc(raw[1:end])
    crc.accumulate(bytes([common.mavlink_map[frame.identity].crc_extra]))
    return raw[end : end + 2] == struct.pack("<H", crc.crc)


class Writer:
    """Messages of one component as frames, numbered one after the other."""

    def __init__(self, system, component):
        self.mav = common.MAVLink(None, srcSystem=system, srcComponent=component)

    def pack(self, message):
        raw = message.pack(self.mav)
        self._count()
        return raw

    def unknown(self, identity, payload, crc_extra=0x5A):
        """A frame of an id that no dialect has."""
        return self._frame(identity, payload, crc_extra, flags=0)

    def signed(self, message, *, key=bytes(32), stamp=0):
        """A frame with a signature (mavlink.io, "Message signing"): link 0, 48 bits of time, six bytes of a SHA-256."""
        message.pack(self.mav)
        identity = message.get_msgId()
        body = self._frame(identity, bytes(message.get_payload()), common.mavlink_map[identity].crc_extra, flags=_SIGNED)
        tail = bytes([0]) + stamp.to_bytes(6, "little")
        return body + tail + hashlib.sha256(key + body + tail).digest()[:6]

    def _frame(self, identity, payload, crc_extra, *, flags):
        head = bytes([len(payload), flags, 0, self.mav.seq, self.mav.srcSystem, self.mav.srcComponent]) + identity.to_bytes(3, "little")
        crc = x25crc(head + payload)
        crc.accumulate(bytes([crc_extra]))
        self._count()
        return bytes([V2]) + head + payload + struct.pack("<H", crc.crc)

    def _count(self):
        self.mav.seq = (self.mav.seq + 1) % 256
