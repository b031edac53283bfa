"""MAVLink frames as bytes: splitting a stream, packing messages, and frames of unknown ids. Layouts: mavlink.io, "Packet serialization"."""

import hashlib
import struct
from dataclasses import dataclass, field

from hilsim_flight_controller.mavlink import Message, common, crc_extra_of, crc_of, knows

V1, V2 = 0xFE, 0xFD
_SIGNED = 1
_SIGNATURE_SIZE = 13
_V1_OVERHEAD, _V2_OVERHEAD = 8, 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """A received frame."""

    raw: bytes
    version: int
    sequence: int
    system: int
    component: int
    identity: int
    signed: bool

    @property
    def payload_size(self) -> int:
        """Size of the payload in bytes, from the header."""
        return self.raw[1]

    @property
    def source(self) -> tuple[int, int]:
        """System and component of the sender."""
        return self.system, self.component

    def message(self) -> Message:
        """Decode the message; None if the dialect does not know it."""
        return _DECODER.decode(bytearray(self.raw)) if knows(self.identity) else None


_DECODER = common.MAVLink(None)


@dataclass
class Splitter:
    """Splits a stream into frames. Other bytes are kept separately: ``garbage``, and ``corrupt`` frames whose checksum does not match their id."""

    garbage: bytearray = field(default_factory=bytearray)
    corrupt: list[bytes] = field(default_factory=list)
    waiting: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> list[Frame]:
        """Process bytes; returns the frames that are now complete."""
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


def _frame_size(buffer: bytearray, start: int) -> int | None:
    """Size of a frame in bytes, or None if its header is incomplete."""
    if len(buffer) - start < 3:
        return None
    if buffer[start] == V1:
        return buffer[start + 1] + _V1_OVERHEAD
    return buffer[start + 1] + _V2_OVERHEAD + (_SIGNATURE_SIZE if buffer[start + 2] & _SIGNED else 0)


def _frame(raw: bytes) -> Frame:
    if raw[0] == V1:
        return Frame(raw=raw, version=1, sequence=raw[2], system=raw[3], component=raw[4], identity=raw[5], signed=False)
    identity = int.from_bytes(raw[7:10], "little")
    return Frame(raw=raw, version=2, sequence=raw[4], system=raw[5], component=raw[6], identity=identity, signed=bool(raw[2] & _SIGNED))


def system_of(raw: bytes) -> int:
    """System id of a frame's sender."""
    return raw[3] if raw[0] == V1 else raw[5]


def checksum_holds(raw: bytes) -> bool:
    """Whether a frame's checksum is correct; for an unknown id it cannot be computed, and counts as correct."""
    frame = _frame(raw)
    if not knows(frame.identity):
        return True
    end = 1 + (5 if frame.version == 1 else 9) + frame.payload_size
    return raw[end : end + 2] == struct.pack("<H", crc_of(raw[1:end], crc_extra_of(frame.identity)))


class Writer:
    """Packs messages of one component as frames with consecutive numbers."""

    def __init__(self, system: int, component: int) -> None:
        self.mav = common.MAVLink(None, srcSystem=system, srcComponent=component)

    def pack(self, message: Message) -> bytes:
        """Pack a message as a frame."""
        raw = bytes(message.pack(self.mav))
        self._count()
        return raw

    def unknown(self, identity: int, payload: bytes, crc_extra: int = 0x5A) -> bytes:
        """Pack a frame of an unknown id."""
        return self.frame(identity, payload, crc_extra)

    def signed(self, message: Message, *, key: bytes = bytes(32), stamp: int = 0) -> bytes:
        """Pack a frame with a signature (mavlink.io, "Message signing"): link 0, 48 bits of time, six bytes of a SHA-256."""
        message.pack(self.mav)
        identity = int(message.get_msgId())
        body = self.frame(identity, bytes(message.get_payload()), crc_extra_of(identity), flags=_SIGNED)
        tail = bytes([0]) + stamp.to_bytes(6, "little")
        return body + tail + hashlib.sha256(key + body + tail).digest()[:6]

    def frame(self, identity: int, payload: bytes, crc_extra: int, *, flags: int = 0) -> bytes:
        """Pack a given payload as a MAVLink 2 frame; ``flags`` are its incompatibility flags."""
        head = bytes([len(payload), flags, 0, self.mav.seq, self.mav.srcSystem, self.mav.srcComponent]) + identity.to_bytes(3, "little")
        self._count()
        return bytes([V2]) + head + payload + struct.pack("<H", crc_of(head + payload, crc_extra))

    def _count(self) -> None:
        self.mav.seq = (self.mav.seq + 1) % 256
