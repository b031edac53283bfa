"""Reassembly of fragmented IPv4 datagrams (RFC 791) with bounded memory for any capture.

Each incomplete datagram has a buffer and a bit per 8 bytes received. Overlapping fragments must agree: fragments that do not are an
attack or a mix of two datagrams under one identification (RFC 5722 has the same rule for IPv6), and the datagram is dropped. For the
second reason the UDP checksum is verified, if present.
"""

import struct
from dataclasses import dataclass, field

from hilsim.capture.frames import Frame
from hilsim.capture.link import Fragment
from hilsim.capture.notes import CaptureNotes
from hilsim.units import NS_PER_S

MAX_UNFINISHED = 1024  # each of at most 64 KiB
LONGEST_WAIT_NS = 30_000_000_000
_LARGEST_IP_SIZE = 65535
_DONT_FRAGMENT = 0x4000
_NEVER_WHOLE = "passed over: not all fragments came"
_NOT_IN_TIME = f"passed over: not all fragments came within {LONGEST_WAIT_NS // NS_PER_S} s"
_TOO_MANY = f"passed over: more than {MAX_UNFINISHED} were unfinished at once"
_DISAGREE = "passed over: their fragments overlap and do not agree"
_WRONG_WHOLE = "passed over: UDP length or checksum does not fit what the fragments make"
_WHOLE = "put together"

Key = tuple[int, int, bytes]


@dataclass(slots=True, kw_only=True)
class _Unfinished:
    """A datagram with missing fragments.

    Attributes:
        since_ns: Stamp of the first fragment received.
        data: Received data at their positions, zeros elsewhere.
        have: Bit mask with one bit per 8 bytes received.
        size: Total size of the data; None before the last fragment is received.
        head: Frame of the fragment at position 0 up to its data.
        ip: Offset of the IPv4 header in ``head``.
        is_spoilt: Whether its fragments disagree; it is kept so that later fragments do not start a new datagram.
    """

    since_ns: int
    data: bytearray = field(default_factory=bytearray)
    have: int = 0
    size: int | None = None
    head: bytes = b""
    ip: int = 0
    is_spoilt: bool = False

    def put(self, fragment: Fragment, frame: bytes) -> bool:
        """Store a fragment; returns False where it does not agree with the received data."""
        new = frame[fragment.start : fragment.stop]
        stop = fragment.position + len(new)
        if not self._fits(fragment, len(new), stop) or not self._agrees(new, fragment.position):
            return False
        if fragment.is_last:
            self.size = stop
        if fragment.position == 0:
            self.head, self.ip = frame[: fragment.start], fragment.ip
        self.data.extend(bytes(max(stop - len(self.data), 0)))
        self.data[fragment.position : stop] = new
        self.have |= _bits(fragment.position, len(new))
        return True

    def _fits(self, fragment: Fragment, size: int, stop: int) -> bool:
        if stop > _LARGEST_IP_SIZE - (fragment.start - fragment.ip):
            return False
        if fragment.is_last:
            return self.size in {None, stop} and len(self.data) <= stop
        return size % 8 == 0 and (self.size is None or stop <= self.size)

    def _agrees(self, new: bytes, position: int) -> bool:
        both = self.have & _bits(position, len(new))
        while both:
            at = 8 * ((both & -both).bit_length() - 1)
            both &= both - 1
            if self.data[at : at + 8] != new[at - position : at - position + 8]:
                return False
        return True

    @property
    def is_whole(self) -> bool:
        return self.size is not None and self.have == _bits(0, self.size)


def _bits(position: int, size: int) -> int:
    return ((1 << (size + 7) // 8) - 1) << position // 8


class Reassembly:
    """Incomplete datagrams of one reading of a capture."""

    def __init__(self, notes: CaptureNotes) -> None:
        self._counts = notes.fragmented
        self._unfinished: dict[Key, _Unfinished] = {}

    def add(self, frame: Frame, fragment: Fragment) -> bytes | None:
        """Add a fragment; returns the datagram's frame once it is complete.

        Args:
            frame: Frame of the fragment; fragments of different interfaces are not combined.
            fragment: Position of the fragment in the frame.

        Returns:
            Bytes of a frame as if the datagram had not been fragmented: the first fragment's headers with IPv4 length, fragment field and
            checksum of the whole; or None.
        """
        self._drop_old(frame.host_stamp_ns)
        key = (frame.link_type, frame.interface, fragment.key)
        unfinished = self._unfinished.get(key)
        if unfinished is None:
            unfinished = self._begin(key, frame.host_stamp_ns)
        if unfinished.is_spoilt:
            if fragment.is_last:
                del self._unfinished[key]
            return None
        if not unfinished.put(fragment, frame.data):
            self._counts[_DISAGREE] += 1
            self._unfinished[key] = _Unfinished(since_ns=unfinished.since_ns, is_spoilt=True)
            return None
        if not unfinished.is_whole:
            return None
        del self._unfinished[key]
        whole = _whole_frame(unfinished)
        self._counts[_WRONG_WHOLE if whole is None else _WHOLE] += 1
        return whole

    def finish(self) -> None:
        """Count the incomplete datagrams at the end of the capture."""
        self._count_lost(list(self._unfinished), _NEVER_WHOLE)

    def _begin(self, key: Key, stamp_ns: int) -> _Unfinished:
        if len(self._unfinished) >= MAX_UNFINISHED:
            self._count_lost([next(iter(self._unfinished))], _TOO_MANY)
        unfinished = self._unfinished[key] = _Unfinished(since_ns=stamp_ns)
        return unfinished

    def _drop_old(self, stamp_ns: int) -> None:
        while self._unfinished:
            key, oldest = next(iter(self._unfinished.items()))
            if stamp_ns - oldest.since_ns <= LONGEST_WAIT_NS:
                return
            self._count_lost([key], _NOT_IN_TIME)

    def _count_lost(self, keys: list[Key], why: str) -> None:
        for key in keys:
            if not self._unfinished.pop(key).is_spoilt:
                self._counts[why] += 1


def _whole_frame(unfinished: _Unfinished) -> bytes | None:
    """Frame with the whole datagram, or None if UDP's length or checksum does not match."""
    data = unfinished.data
    header = bytearray(unfinished.head[unfinished.ip :])
    udp_size, checksum = struct.unpack_from(">HH", data, 4) if len(data) >= 8 else (0, 0)
    if not 8 <= udp_size <= len(data):
        return None
    pseudo_header = header[12:20] + struct.pack(">HH", header[9], udp_size)
    if checksum and _sum(pseudo_header + data[:udp_size] + bytes(udp_size % 2)) != 0:
        return None
    flags = int.from_bytes(header[6:8], "big") & _DONT_FRAGMENT
    struct.pack_into(">H", header, 2, len(header) + len(data))
    struct.pack_into(">H", header, 6, flags)
    header[10:12] = bytes(2)
    struct.pack_into(">H", header, 10, -_sum(header) % 0xFFFF)
    return unfinished.head[: unfinished.ip] + bytes(header) + bytes(data)


def _sum(data: bytearray) -> int:
    """Ones' complement sum of 16-bit words: 0 if they include a valid checksum."""
    return int.from_bytes(data, "big") % 0xFFFF
