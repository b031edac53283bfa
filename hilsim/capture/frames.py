"""Frames of capture files: classic PCAP and PCAPNG, both byte orders, any time resolution, read as a stream.

dpkt parses file headers and interface descriptions. Records and packet blocks are parsed here, in large pieces of the file: dpkt's
readers do not return a frame's length on the wire, return times as floats or decimals (2 us a frame), return a truncated last record as
complete, read the rest of the file at once after a broken record length, and support one interface and one section only.

Formats: https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcap/ and https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcapng/.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from hilsim.capture.link import SUPPORTED_LINKS
from hilsim.capture.notes import CaptureNotes
from hilsim.capture.seek import START, ClassicLayout, Interface, SectionLayout, SeekIndex, SeekPoint
from hilsim.capture.source import BrokenFileError, CaptureBytes
from hilsim.errors import CaptureError
from hilsim.units import NS_PER_S

_LONGEST_RECORD = 1 << 24  # bytes; the largest legal frame is 256 KiB, PCAPNG blocks with many options are larger
_LATEST_NS = (1 << 63) - 1  # in the year 2262
_MAX_INTERFACES = 1 << 16
_CLASSIC_HEADER_SIZE = 24
_SECTION = b"\x0a\x0d\x0d\x0a"
_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_INTERFACE, _OBSOLETE_PACKET, _SIMPLE_PACKET, _ENHANCED_PACKET = 1, 2, 3, 6
_PACKET_KINDS = frozenset((_OBSOLETE_PACKET, _ENHANCED_PACKET))
_SMALLEST_BLOCK_SIZE = 12
_PACKET_OVERHEAD = 32  # bytes of a packet block besides the packet, without options and padding
_BLOCK_HEAD = {order: struct.Struct(f"{order}II") for order in "<>"}
_PACKET_HEAD = {order: struct.Struct(f"{order}IIIIIII") for order in "<>"}
_OPTION_RESOLUTION, _OPTION_OFFSET = 9, 14

# magic: byte order, nanoseconds per unit of the fraction, bytes before each frame (24 in Kuznetsov's modified format)
_CLASSIC = {
    bytes.fromhex("a1b2c3d4"): (">", 1000, 16),
    bytes.fromhex("d4c3b2a1"): ("<", 1000, 16),
    bytes.fromhex("a1b23c4d"): (">", 1, 16),
    bytes.fromhex("4d3cb2a1"): ("<", 1, 16),
    bytes.fromhex("a1b2cd34"): (">", 1000, 24),
    bytes.fromhex("34cdb2a1"): ("<", 1000, 24),
}
_FOREIGN = {
    b"\x1f\x8b": "is compressed twice: decompress it first",
    b"\x28\xb5\x2f\xfd": "is compressed twice: decompress it first",
    b"BZh": "is compressed with bzip2: decompress it first",
    b"\xfd7zXZ": "is compressed with xz: decompress it first",
    b"\x04\x22\x4d\x18": "is compressed with lz4: decompress it first",
    b"PK\x03\x04": "is a ZIP archive: unpack it first",
    b"#ROSBAG": "is a ROS bag: hilsim convert makes a capture of it",
    b"\x89MCAP": "is an MCAP file: hilsim convert makes a capture of it",
    b"SQLite": "is an SQLite file: hilsim convert makes a capture of a ROS 2 bag's",
    b"snoop\x00": "is a snoop capture: convert it with editcap first",
}


class Frame(NamedTuple):
    """One captured frame.

    Attributes:
        number: Number of the frame from 1, as in packet analysers.
        host_stamp_ns: Capture time, nanoseconds since 1970-01-01 UTC by the capturing host's clock.
        link_type: Number of the link layer.
        interface: Number of the interface in its PCAPNG section; 0 in classic PCAP.
        data: Captured bytes.
        wire_size: Size of the frame on the wire in bytes.
    """

    number: int
    host_stamp_ns: int
    link_type: int
    interface: int
    data: bytes
    wire_size: int


def read_frames(
    source: CaptureBytes, notes: CaptureNotes, index: SeekIndex, *, start: SeekPoint = START, piece_size: int = 1 << 18
) -> Iterator[Frame]:
    """Yield the frames of an open capture; at a truncated or broken record the iteration ends with ``notes.broken`` set.

    Args:
        source: Newly opened capture.
        notes: Notes, filled in while reading.
        index: Index, to which seek points are added while reading.
        start: Point of the same file to start at.
        piece_size: Number of bytes of the file to read at once.

    Raises:
        CaptureError: the file is no capture, or has an unknown link layer.
    """
    from dpkt import UnpackError  # noqa: PLC0415 - it imports forty protocols, which would take 0.05 s of every start

    walk = _Walk(source, notes, index, start, piece_size)
    try:
        layout = start.layout or walk.read_layout()
        yield from walk.classic(layout) if isinstance(layout, ClassicLayout) else walk.pcapng(layout)
    except (BrokenFileError, UnpackError) as error:
        where = f"byte {walk.offset}{f' of the decompressed {source.compression} stream' if source.compression else ''}"
        reason = str(error) or "a block makes no sense"
        notes.broken = f"the file breaks off after frame {start.frame - 1 + notes.frames}, at {where}: {reason}"
    if walk.is_indexing:
        index.is_complete = True


def _describe(start: bytes) -> str:
    """Probable type of a file that is no capture, by its first bytes."""
    if not start:
        return "is empty"
    for magic, sentence in _FOREIGN.items():
        if start.startswith(magic):
            return sentence
    if start.strip() and all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in start):
        return f'is text beginning "{start.decode("ascii").strip().splitlines()[0]}"'
    return f"begins with bytes {start[:4].hex(' ')}"


def _interface(block_bytes: bytes, order: str) -> Interface:
    import dpkt  # noqa: PLC0415 - as in read_frames

    block = (dpkt.pcapng.InterfaceDescriptionBlockLE if order == "<" else dpkt.pcapng.InterfaceDescriptionBlock)(block_bytes)
    options = {option.code: bytes(option.data) for option in block.opts}
    resolution = (options.get(_OPTION_RESOLUTION) or b"\x06")[0]  # 10**-n s, or 2**-n s with the top bit set
    exponent = resolution & 0x7F
    offset_s = int.from_bytes(options.get(_OPTION_OFFSET, b""), "little" if order == "<" else "big", signed=True)
    return Interface(block.linktype, 2**exponent if resolution & 0x80 else 10**exponent, offset_s * NS_PER_S)


def _classic_layout(head: bytes) -> ClassicLayout:
    """Properties in the header of a classic PCAP file."""
    order, fraction_ns, record_header_size = _CLASSIC[head[:4]]
    import dpkt  # noqa: PLC0415 - as in read_frames

    header = (dpkt.pcap.LEFileHdr if order == "<" else dpkt.pcap.FileHdr)(head[:_CLASSIC_HEADER_SIZE])
    # the upper bits of the link type describe frame check sequences
    return ClassicLayout(order, fraction_ns, header.linktype & 0xFFFF, record_header_size)


class _Walk:
    """One pass over a file from a seek point on.

    Attributes:
        offset: Offset of the current record in the decompressed file, valid when more bytes are needed or
            an error is reported.
        is_indexing: Whether its seek points are added to the index; false where a gap would be left before them.
    """

    def __init__(self, source: CaptureBytes, notes: CaptureNotes, index: SeekIndex, start: SeekPoint, piece_size: int) -> None:
        self._source = source
        self._notes = notes
        self._index = index
        self._start = start
        self._piece_size = piece_size
        self._last_ns = start.host_stamp_ns if start.layout else -_LATEST_NS
        self._latest_ns = start.latest_ns if start.layout else -_LATEST_NS
        self._order = "<"
        self._interfaces: list[Interface] = []
        self._rest = b""  # bytes read beyond the file header
        self.offset = start.offset
        self.is_indexing = start.offset <= index.due

    def read_layout(self) -> ClassicLayout | SectionLayout:
        """Read up to the first record of a file and return its header's properties; empty for PCAPNG, whose blocks contain them."""
        name = self._source.name
        try:
            head = self._more(b"", _CLASSIC_HEADER_SIZE)
        except BrokenFileError as error:
            raise CaptureError(f"{name}: must be a PCAP or PCAPNG capture, but {error}") from error
        self._rest = head
        if head[:4] == _SECTION:
            return SectionLayout("<", ())
        if head[:4] not in _CLASSIC:
            raise CaptureError(f"{name}: must be a PCAP or PCAPNG capture, but {_describe(head[:16])}")
        if len(head) < _CLASSIC_HEADER_SIZE:
            raise BrokenFileError(f"a file header of {_CLASSIC_HEADER_SIZE} bytes was expected, {len(head)} bytes are left")
        self.offset = _CLASSIC_HEADER_SIZE
        self._rest = head[_CLASSIC_HEADER_SIZE:]
        return _classic_layout(head)

    def _more(self, rest: bytes, due: int) -> bytes:
        """``rest`` and further bytes of the file, at least ``due`` bytes unless the file ends before."""
        pieces, size = [rest], len(rest)
        while piece := self._source.read(self._piece_size):
            pieces.append(piece)
            size += len(piece)
            if size >= due:
                break
        return b"".join(pieces)

    def _next_piece(self, rest: bytes, due: int, offset: int, what: str) -> bytes:
        """Bytes from ``offset`` on, of which ``rest`` was already read: at least ``due``, or none at the end of the file."""
        self.offset = offset
        piece = self._more(rest, due)
        if rest and len(piece) == len(rest):
            raise BrokenFileError(f"a {what} of {due} bytes was expected, {len(rest)} are left")
        return piece

    def _first_piece(self) -> bytes:
        """Bytes read beyond the first record's start, after seeking to it."""
        if self._start.layout:
            self._source.skip_to(self._start.offset, self._piece_size)
        rest, self._rest = self._rest, b""
        return rest

    def _add_point(self, layout: ClassicLayout | SectionLayout, frame: int, stamp_ns: int, last_ns: int, offset: int) -> None:
        latest_ns = max(self._latest_ns, last_ns, stamp_ns)
        self._index.add(SeekPoint(host_stamp_ns=stamp_ns, frame=frame, latest_ns=latest_ns, offset=offset, layout=layout))

    def _step_back(self, last_ns: int, frame: int) -> None:
        """Record that ``frame`` is earlier than the previous one, which was at ``last_ns``."""
        self._latest_ns = max(self._latest_ns, last_ns)
        self._notes.count_earlier(frame)

    def _broken(self, offset: int, reason: str) -> BrokenFileError:
        self.offset = offset
        return BrokenFileError(reason)

    def classic(self, layout: ClassicLayout) -> Iterator[Frame]:  # noqa: C901 - one loop over records: a call for each takes longer than the rest
        """Yield the frames of a classic PCAP file."""
        order, fraction_ns, link_type, header_size = layout
        unpack = struct.Struct(order + "IIII").unpack_from
        notes, last_ns = self._notes, self._last_ns
        number = before = self._start.frame - 1
        buffer, at, base = self._first_piece(), 0, self.offset
        while True:
            due = header_size
            is_due = self.is_indexing and base >= self._index.due
            end = len(buffer)
            while end - at >= header_size:
                seconds, fraction, size, wire_size = unpack(buffer, at)
                if not size and not wire_size and buffer[at : at + 4] in _CLASSIC:  # the header of another capture that was appended
                    if end - at < _CLASSIC_HEADER_SIZE:
                        due = _CLASSIC_HEADER_SIZE
                        break
                    layout = _classic_layout(buffer[at : at + _CLASSIC_HEADER_SIZE])
                    order, fraction_ns, link_type, header_size = layout
                    unpack = struct.Struct(order + "IIII").unpack_from
                    notes.appended += 1
                    at += _CLASSIC_HEADER_SIZE
                    continue
                begin = at + header_size
                stop = begin + size
                if stop > end:
                    due = header_size + size
                    break
                number += 1
                stamp_ns = seconds * NS_PER_S + fraction * fraction_ns
                if stamp_ns < last_ns:
                    self._step_back(last_ns, number)
                if is_due:
                    is_due = False
                    self._add_point(layout, number, stamp_ns, last_ns, base + at)
                last_ns = stamp_ns
                notes.frames = number - before
                if link_type not in SUPPORTED_LINKS:
                    raise self._unknown(link_type, number)
                yield Frame(number, stamp_ns, link_type, 0, buffer[begin:stop], wire_size)
                at = stop
            if due > _LONGEST_RECORD:
                raise self._too_long(base + at, due - header_size, buffer[at : at + 4])
            buffer, at, base = self._next_piece(buffer[at:], due, base + at, "record"), 0, base + at
            if not buffer:
                return

    def _too_long(self, offset: int, size: int, start: bytes) -> BrokenFileError:
        appended = ": a PCAPNG capture was appended, give it as a file of its own" if start == _SECTION else ""
        return self._broken(offset, f"a record of {size} bytes cannot be{appended}")

    def _unknown(self, link_type: int, number: int) -> CaptureError:
        return CaptureError(
            f"{self._source.name}: frame {number} is of link type {link_type}, which hilsim cannot read (Ethernet, cooked, raw IP, loopback)"
        )

    def pcapng(self, layout: SectionLayout) -> Iterator[Frame]:
        """Yield the frames of a PCAPNG file."""
        self._order, self._interfaces = layout.order, list(layout.interfaces)
        self._notes.interfaces = len(self._interfaces)
        number = before = self._start.frame - 1
        last_ns = self._last_ns
        for kind, offset, block in self._blocks():
            if kind not in _PACKET_KINDS:
                self._tell(kind, block, offset, number)
                continue
            interface_index, stamp_ns, link_type, data, wire_size = self._packet(block, offset)
            number += 1
            if stamp_ns < last_ns:
                self._step_back(last_ns, number)
            if self.is_indexing and offset >= self._index.due:
                self._add_point(SectionLayout(self._order, tuple(self._interfaces)), number, stamp_ns, last_ns, offset)
            last_ns = stamp_ns
            self._notes.frames = number - before
            if self._is_readable(link_type, number):
                yield Frame(number, stamp_ns, link_type, interface_index, data, wire_size)

    def _blocks(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield kind, offset and bytes of each block of a PCAPNG file."""
        buffer, at, base = self._first_piece(), 0, self.offset
        while True:
            due = _SMALLEST_BLOCK_SIZE
            end = len(buffer)
            while end - at >= _SMALLEST_BLOCK_SIZE:
                if buffer.startswith(_SECTION, at):
                    self._begin_section(buffer[at + 8 : at + 12], base + at)
                if buffer[at : at + 4] in _CLASSIC:
                    raise self._broken(base + at, "a PCAP capture was appended: give it as a file of its own")
                kind, size = _BLOCK_HEAD[self._order].unpack_from(buffer, at)
                if size < _SMALLEST_BLOCK_SIZE or at + size > end:
                    due = size
                    break
                block = buffer[at : at + size]
                if block[4:8] != block[-4:]:
                    raise self._broken(base + at, f"a block of {size} bytes does not end with its length")
                yield kind, base + at, block
                at += size
            if not _SMALLEST_BLOCK_SIZE <= due <= _LONGEST_RECORD:
                raise self._broken(base + at, f"a block of {due} bytes cannot be")
            buffer, at, base = self._next_piece(buffer[at:], due, base + at, "block"), 0, base + at
            if not buffer:
                return

    def _begin_section(self, magic: bytes, offset: int) -> None:
        """Begin a section: the byte order may change, and interfaces are numbered anew."""
        if magic not in _ORDERS:
            raise self._broken(offset, f"a section's byte order cannot be derived from {magic.hex(' ')}")
        self._order = _ORDERS[magic]
        self._interfaces = []

    def _tell(self, kind: int, block: bytes, offset: int, frame: int) -> None:
        """Process a block without a packet."""
        self.offset = offset
        if kind == _INTERFACE:
            if len(self._interfaces) == _MAX_INTERFACES:
                raise self._broken(offset, f"a section of more than {_MAX_INTERFACES} interfaces cannot be")
            self._interfaces.append(_interface(block, self._order))
            self._notes.interfaces = max(self._notes.interfaces, len(self._interfaces))
        elif kind == _SIMPLE_PACKET:
            raise CaptureError(
                f"{self._source.name}: has packets without times (PCAPNG simple packet blocks) after frame {frame}, at byte {offset}; "
                "capture again with tcpdump or dumpcap, which keep them"
            )

    def _packet(self, block: bytes, offset: int) -> tuple[int, int, int, bytes, int]:
        """Interface, stamp, link type, captured bytes and size on the wire of an enhanced or obsolete packet block."""
        if len(block) < _PACKET_OVERHEAD:
            raise self._broken(offset, f"a packet in a block of {len(block)} bytes cannot be")
        kind, size, interface_index, high, low, kept_size, wire_size = _PACKET_HEAD[self._order].unpack_from(block)
        if kind == _OBSOLETE_PACKET:  # 16 bits of interface, 16 of drops
            interface_index = interface_index & 0xFFFF if self._order == "<" else interface_index >> 16
        if interface_index >= len(self._interfaces):
            raise self._broken(offset, f"a packet names interface {interface_index} of {len(self._interfaces)}")
        if kept_size > size - _PACKET_OVERHEAD:
            raise self._broken(offset, f"a packet of {kept_size} bytes cannot be in a block of {size}")
        interface = self._interfaces[interface_index]
        stamp_ns = interface.stamp_ns((high << 32) | low)
        if not -_LATEST_NS <= stamp_ns <= _LATEST_NS:
            raise self._broken(offset, f"a time of {stamp_ns // NS_PER_S} s since 1970 cannot be")
        return interface_index, stamp_ns, interface.link_type, block[28 : 28 + kept_size], wire_size

    def _is_readable(self, link_type: int, number: int) -> bool:
        """Whether hilsim supports the link layer; if it supports none in the section, that is an error."""
        if link_type in SUPPORTED_LINKS:
            return True
        if all(interface.link_type not in SUPPORTED_LINKS for interface in self._interfaces):
            raise self._unknown(link_type, number)
        self._notes.counts[f"passed over: link type {link_type}, which hilsim cannot read"] += 1
        return False
