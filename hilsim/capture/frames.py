"""Frames out of capture files: classic PCAP and PCAPNG, both byte orders, any time resolution, read as a stream.

dpkt reads headers and records. Its files are read through ``_MeasuredFile``, because dpkt hands out a cut-off last record as if it were whole,
and would follow a broken record length into reading the rest of the file at once. PCAPNG blocks are walked here with dpkt's block classes:
dpkt's own reader knows one interface and one section only, and gives times as floats.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, NamedTuple

import dpkt

from hilsim.capture.link import SUPPORTED_LINKS
from hilsim.errors import CaptureError

_LONGEST_RECORD = 1 << 24  # bytes; the largest legal frame is 256 KiB, PCAPNG blocks with many options are larger
_NS_PER_S = 1_000_000_000
_SECTION = b"\x0a\x0d\x0d\x0a"
_LITTLE_ENDIAN = b"\x4d\x3c\x2b\x1a"
_CLASSIC_MAGICS = frozenset(bytes.fromhex(magic) for magic in ("a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1", "a1b2cd34", "34cdb2a1"))
_NANO_MAGICS = frozenset((b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1"))
_INTERFACE, _OBSOLETE_PACKET, _SIMPLE_PACKET, _ENHANCED_PACKET = 1, 2, 3, 6
_OPTION_RESOLUTION, _OPTION_OFFSET = 9, 14


class Frame(NamedTuple):
    """One captured frame.

    Attributes:
        number: From 1, as analysers count.
        host_stamp_ns: Nanoseconds since 1970-01-01 UTC by the capturing host's clock.
        link_type: Number of the link layer.
        data: The bytes that were kept.
    """

    number: int
    host_stamp_ns: int
    link_type: int
    data: bytes


@dataclass(kw_only=True)
class CaptureNotes:
    """What a reader had to say about a file while reading it; complete once the file was read to its end.

    Attributes:
        frames: Frames read.
        counts: How often something was passed over or doubted, by what.
        broken: Where and how the file stops making sense, or None.
    """

    frames: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    broken: str | None = None

    def lines(self) -> tuple[str, ...]:
        """One sentence a note."""
        told = tuple(f"{count} of {self.frames} frames: {what}" for what, count in sorted(self.counts.items()))
        return told if self.broken is None else (*told, self.broken)


class _BrokenFileError(Exception):
    """The file stops making sense here; never leaves this module."""


class _MeasuredFile:
    """A file that knows how far it was read and refuses reads that came out short or are absurdly long."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self.name = name
        self.position = 0

    def read_start(self) -> bytes:
        """Up to four bytes, to tell what the file is."""
        data = self._file.read(4)
        self.position += len(data)
        return data

    def read(self, size: int) -> bytes:
        """Exactly ``size`` bytes, or none at the end of the file."""
        if not 0 <= size <= _LONGEST_RECORD:
            raise _BrokenFileError(f"a record of {size} bytes cannot be")
        try:
            data = self._file.read(size)
        except (OSError, EOFError) as error:
            raise CaptureError(f"{self.name}: cannot be read at byte {self.position}: {error}") from error
        if data and len(data) < size:
            raise _BrokenFileError(f"{size} bytes were due, {len(data)} are there")
        self.position += len(data)
        return data


def _describe(start: bytes) -> str:
    """What a file that is no capture seems to be, by its first bytes."""
    if not start:
        return "is empty"
    known = {b"\x1f\x8b": "is compressed with gzip: decompress it first", b"\x28\xb5\x2f\xfd": "is compressed with zstd: decompress it first"}
    for magic, sentence in known.items():
        if start.startswith(magic):
            return sentence
    if all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in start):
        return f'is text beginning "{start[:16].decode("ascii").strip()}"'
    return f"begins with bytes {start[:4].hex(' ')}"


def read_frames(file: IO[bytes], name: str, notes: CaptureNotes) -> Iterator[Frame]:
    """Yield every frame of an open capture; a file that breaks off ends the iteration with ``notes.broken`` set.

    Args:
        file: Opened for reading bytes; need not be seekable.
        name: What to call it in errors.
        notes: Filled in while reading.

    Raises:
        CaptureError: it is no capture, or of a link layer that is not known.
    """
    measured = _MeasuredFile(file, name)
    try:
        magic = _first_bytes(measured)
        records = _pcapng_frames(measured, magic) if magic == _SECTION else _classic_frames(measured, magic)
        for number, (stamp_ns, link_type, data) in enumerate(records, start=1):
            if link_type not in SUPPORTED_LINKS:
                raise CaptureError(
                    f"{name}: frame {number} is of link type {link_type}, which hilsim cannot read (Ethernet, cooked, raw IP, loopback)"
                )
            notes.frames = number
            yield Frame(number, stamp_ns, link_type, data)
    except (_BrokenFileError, dpkt.UnpackError) as error:
        notes.broken = f"the file breaks off after frame {notes.frames}, at byte {measured.position}: {str(error) or 'a block makes no sense'}"


def _first_bytes(measured: _MeasuredFile) -> bytes:
    start = measured.read_start()
    if start[:4] != _SECTION and start[:4] not in _CLASSIC_MAGICS:
        raise CaptureError(f"{measured.name}: must be a PCAP or PCAPNG capture, but {_describe(start + measured.read_start())}")
    return start


class _Rejoined:
    """Gives dpkt back the bytes that were read to tell the formats apart."""

    def __init__(self, magic: bytes, rest: _MeasuredFile) -> None:
        self._magic = magic
        self._rest = rest
        self.name = rest.name

    def read(self, size: int) -> bytes:
        """Read ``size`` bytes."""
        magic, self._magic = self._magic, b""
        return magic + self._rest.read(size - len(magic))


def _classic_frames(measured: _MeasuredFile, magic: bytes) -> Iterator[tuple[int, int, bytes]]:
    reader = dpkt.pcap.Reader(_Rejoined(magic, measured))
    link_type = reader.datalink() & 0xFFFF  # the upper bits tell of frame check sequences
    is_nano = magic in _NANO_MAGICS
    for stamp, data in reader:
        # dpkt gives a Decimal for nanoseconds (exact) and a float for microseconds (0.24 us coarse: rounding finds the microsecond)
        yield int(stamp * _NS_PER_S) if is_nano else round(stamp * 1_000_000) * 1000, link_type, data


class _Interface(NamedTuple):
    link_type: int
    resolution: int  # the option's byte: 10**-n s, or 2**-n s with the top bit set
    offset_s: int

    def stamp_ns(self, ticks: int) -> int:
        exponent = self.resolution & 0x7F
        per_second: int = 2**exponent if self.resolution & 0x80 else 10**exponent
        return self.offset_s * _NS_PER_S + ticks * _NS_PER_S // per_second


def _interface(body: bytes, *, is_little: bool) -> _Interface:
    block = (dpkt.pcapng.InterfaceDescriptionBlockLE if is_little else dpkt.pcapng.InterfaceDescriptionBlock)(body)
    options = {option.code: bytes(option.data) for option in block.opts}
    offset = options.get(_OPTION_OFFSET, b"\x00")
    return _Interface(
        link_type=block.linktype,
        resolution=options.get(_OPTION_RESOLUTION, b"\x06")[0],
        offset_s=int.from_bytes(offset, "little" if is_little else "big", signed=True),
    )


def _pcapng_frames(measured: _MeasuredFile, magic: bytes) -> Iterator[tuple[int, int, bytes]]:
    interfaces: list[_Interface] = []
    is_little = True
    head = magic
    while head:
        if head == _SECTION:  # byte order may change and interfaces are counted anew
            size_and_order = measured.read(8)
            is_little = size_and_order[4:] == _LITTLE_ENDIAN
            interfaces = []
            size = int.from_bytes(size_and_order[:4], "little" if is_little else "big")
            body = head + size_and_order + measured.read(size - 12)
        else:
            size_bytes = measured.read(4)
            size = int.from_bytes(size_bytes, "little" if is_little else "big")
            body = head + size_bytes + measured.read(size - 8)
        kind = int.from_bytes(head, "little" if is_little else "big")
        if kind == _INTERFACE:
            interfaces.append(_interface(body, is_little=is_little))
        elif kind in {_ENHANCED_PACKET, _OBSOLETE_PACKET}:
            yield _packet(body, kind, interfaces, is_little=is_little)
        elif kind == _SIMPLE_PACKET:
            raise CaptureError(f"{measured.name}: has packets without times (simple packet blocks) at byte {measured.position}")
        head = measured.read(4)


def _packet(body: bytes, kind: int, interfaces: list[_Interface], *, is_little: bool) -> tuple[int, int, bytes]:
    enhanced, obsolete = (
        (dpkt.pcapng.EnhancedPacketBlockLE, dpkt.pcapng.PacketBlockLE) if is_little else (dpkt.pcapng.EnhancedPacketBlock, dpkt.pcapng.PacketBlock)
    )
    block = (enhanced if kind == _ENHANCED_PACKET else obsolete)(body)
    if block.iface_id >= len(interfaces):
        raise _BrokenFileError(f"a packet names interface {block.iface_id} of {len(interfaces)}")
    interface = interfaces[block.iface_id]
    return interface.stamp_ns((block.ts_high << 32) | block.ts_low), interface.link_type, block.pkt_data
