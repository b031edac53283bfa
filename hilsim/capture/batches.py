"""A capture's datagrams in batches of arrays, for readers of millions of them: no object is made for a single datagram.

The usual format - classic PCAP, little-endian, Ethernet, whole IPv4 datagrams without options or VLAN tags - is parsed by a kernel in
pieces of the file, compressed or not. From the first record of another kind on, ``CaptureFile`` reads the rest, so that both give the same datagrams.
"""

from collections.abc import Generator, Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from ipaddress import IPv4Address
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.capture.cuts import FILE_HEADER_SIZE, FRACTIONS_NS, LARGEST_FRAME, RECORD_HEADER_SIZE, FilePart
from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.link import LINK_ETHERNET
from hilsim.capture.pcap import CaptureFile
from hilsim.capture.seek import START, ClassicLayout, SeekPoint
from hilsim.capture.source import BrokenFileError, CaptureBytes
from hilsim.compilation.jit import constant, kernel, signed
from hilsim.errors import CaptureError
from hilsim.units import NS_PER_S

_SMALLEST_PIECE_SIZE, _LARGEST_PIECE_SIZE = 1 << 16, 1 << 18
_PIECES = 12  # minimum number of pieces per file, so that its beginning and its end are separate
_DATAGRAMS_A_BATCH = 1024
_FRAME_HEADERS_SIZE = 42  # Ethernet, IPv4 and UDP
_LARGEST_FRAME = constant(LARGEST_FRAME)
_RECORD_HEADER_SIZE = constant(RECORD_HEADER_SIZE)
_ETHERNET_SIZE = 14
_IPV6_HEADERS_SIZE = 54
_ODD = constant(-1)
_IPV6, _MAX_IPV6 = 1 << 44, 65_536
_of_ipv6: dict[int, str] = {}
_MORE, _FULL, _UNUSUAL = constant(0), constant(1), constant(2)


class DatagramArrays(NamedTuple):
    """UDP datagrams, in file order.

    Attributes:
        data: ``uint8[bytes]``, buffer with the payloads.
        start: ``int64[n]``, offset of each payload in ``data``.
        size: ``int64[n]``, size of each payload in bytes.
        host_stamp_ns: ``int64[n]``, nanoseconds since 1970-01-01 UTC by the capturing host's clock.
        sender: ``int64[n]``, ``sender_number`` of the source address and the destination port.
        header_size: Bytes of Ethernet, IPv4 and UDP headers that lie before each payload in ``data``: 42, or 0 where they are not there.
    """

    data: npt.NDArray[np.uint8]
    start: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    host_stamp_ns: npt.NDArray[np.int64]
    sender: npt.NDArray[np.int64]
    header_size: int = 0


def read_only(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The same bytes in an array that cannot be written, as those of captures: kernels are compiled for one type of buffer instead of two."""
    view = data.view()
    view.setflags(write=False)
    return view


class UnusualRecordError(Exception):
    """A part of a capture contains a record that only a reader of the whole file can interpret; caught by the caller that requested the part."""


class CaptureBatches:
    """The UDP datagrams of a capture file, or of a part of it, in batches; each iteration reads them anew.

    Attributes:
        path: Path of the file.
        part: Part to read; None for the whole file.
        file: Reader of records that the kernel cannot parse; its notes list what was skipped there.
    """

    def __init__(self, path: Path, part: FilePart | None = None) -> None:
        """Prepare to read the file; it is not opened yet."""
        self.path = path
        self.part = part
        self.file = CaptureFile(path)
        self._source: CaptureBytes | None = None
        self._is_walked = True

    @property
    def read_bytes(self) -> int:
        """Number of bytes of the file, or its part, read in the latest iteration, as stored on disk."""
        if self.part:
            return min(max(self._source.file_position - self.part.start, 0), self.part.stop - self.part.start) if self._source else 0
        if self._is_walked:
            return self._source.file_position if self._source else 0
        return self.file.read_bytes

    def __iter__(self) -> Iterator[DatagramArrays]:
        """Yield batches.

        Raises:
            CaptureError: the file cannot be opened, is no capture, or has an unknown link layer.
            UnusualRecordError: for a part only: a record requires ``CaptureFile``, which reads whole files.
        """
        self._is_walked = True
        if self.part is not None:
            with CaptureBytes(self.path) as source:
                self._source = source
                yield from _walked_part(source, self.part)
            return
        rest: SeekPoint | None = None
        if self.path.is_file():
            with CaptureBytes(self.path) as source:
                self._source = source
                rest = yield from _walked(source, min(max(self.file.size_bytes // _PIECES, _SMALLEST_PIECE_SIZE), _LARGEST_PIECE_SIZE))
            if rest is None:
                return
        self._is_walked = False
        yield from batches_of(self.file.datagrams(rest))


class PcapPieces:
    """Reader of a classic PCAP stream of Ethernet frames that comes in pieces, as over a connection.

    Attributes:
        skipped: Frames passed over that are no whole UDP datagrams over IPv4 without options, such as fragments.
        lost: Packets missing before the latest batch, and earlier, that the sender of the stream reported by records without bytes.
    """

    def __init__(self) -> None:
        self.skipped = self.lost = 0
        self._rest = b""
        self._fraction_ns = 0
        self._last_ns = 0
        self._rows = _Rows(_DATAGRAMS_A_BATCH)

    def add(self, piece: bytes) -> Iterator[DatagramArrays]:
        """Yield the datagrams that a piece completes; 42 bytes of headers lie before each in the buffer.

        Raises:
            CaptureError: the stream is no little-endian classic PCAP of Ethernet frames.
        """
        self._rest += piece
        if not self._fraction_ns:
            if len(self._rest) < FILE_HEADER_SIZE:
                return
            head, self._rest = self._rest[:FILE_HEADER_SIZE], self._rest[FILE_HEADER_SIZE:]
            self._fraction_ns = FRACTIONS_NS.get(head[:4], 0)
            if not self._fraction_ns or int.from_bytes(head[20:22], "little") != LINK_ETHERNET:
                raise CaptureError(f"a stream of packets must be a PCAP of Ethernet frames, got the bytes {head[:4].hex()}")
        data, at, kind = np.frombuffer(self._rest, dtype=np.uint8), 0, _FULL
        while kind != _MORE:
            rows = self._rows
            at, _, found, self._last_ns, kind = _walk(
                data, at, self._fraction_ns, self._last_ns, rows.start, rows.size, rows.host_stamp_ns, rows.sender
            )
            if found:
                yield rows.batch(data, found)
            if kind == _UNUSUAL:
                kept = int.from_bytes(data[at + 8 : at + 12].tobytes(), "little")
                if kept > LARGEST_FRAME:
                    raise CaptureError(f"a frame of a stream of packets must be at most {LARGEST_FRAME} bytes, got {kept}")
                if kept:
                    self.skipped += 1
                else:
                    self.lost += int.from_bytes(data[at + 12 : at + 16].tobytes(), "little")
                at += RECORD_HEADER_SIZE + kept
        self._rest = self._rest[at:]


def batches_of(datagrams: Iterable[CapturedDatagram]) -> Iterator[DatagramArrays]:
    """Collect datagrams of any source into batches."""
    waiting = iter(datagrams)
    while some := list(islice(waiting, _DATAGRAMS_A_BATCH)):
        yield gathered(some, with_headers=True)


def gathered(datagrams: list[CapturedDatagram], *, with_headers: bool = False) -> DatagramArrays:
    """Batch of some datagrams.

    Args:
        datagrams: The datagrams.
        with_headers: Whether their headers are kept, if all have plain ones.
    """
    has_headers = with_headers and all(datagram.is_ethernet and len(datagram.link or b"") == _FRAME_HEADERS_SIZE for datagram in datagrams)
    header_size = _FRAME_HEADERS_SIZE if has_headers else 0
    frames = [(datagram.link or b"") + datagram.payload if has_headers else datagram.payload for datagram in datagrams]
    length = np.array([len(frame) for frame in frames], dtype=np.int64)
    return DatagramArrays(
        np.frombuffer(b"".join(frames), dtype=np.uint8),
        np.cumsum(length) - length + header_size,
        length - header_size,
        np.array([datagram.host_stamp_ns for datagram in datagrams], dtype=np.int64),
        np.array([sender_number(datagram.source, datagram.destination_port) for datagram in datagrams], dtype=np.int64),
        header_size,
    )


@lru_cache(maxsize=4096)
def sender_number(source: str, destination_port: int) -> int:
    """A source address and a destination port as one number; of an IPv6 address its hash, from which this process finds the address."""
    if ":" not in source:
        return int(IPv4Address(source)) << 16 | destination_port
    number = _IPV6 | int.from_bytes(blake2b(source.encode(), digest_size=5).digest())
    if len(_of_ipv6) < _MAX_IPV6:
        _of_ipv6[number] = source
    return number << 16 | destination_port


@lru_cache(maxsize=4096)
def sender_of(number: int) -> tuple[str, int]:
    """Source address and destination port of a ``sender_number``."""
    address, port = number >> 16, number & 0xFFFF
    return _of_ipv6.get(address, f"IPv6 {address:x}") if address & _IPV6 else str(IPv4Address(address)), port


def _walked(source: CaptureBytes, piece_size: int) -> Generator[DatagramArrays, None, SeekPoint | None]:
    """Yield the batches of a plain capture; returns the point where ``CaptureFile`` must continue, or None at the end of the file."""
    try:
        head = _filled(source, b"", FILE_HEADER_SIZE, piece_size)
    except BrokenFileError:
        return START
    fraction_ns = FRACTIONS_NS.get(head[:4])
    if fraction_ns is None or int.from_bytes(head[20:22], "little") != LINK_ETHERNET:
        return START
    layout = ClassicLayout("<", fraction_ns, LINK_ETHERNET, _RECORD_HEADER_SIZE)
    rest, offset, frame, last_ns = head[FILE_HEADER_SIZE:], FILE_HEADER_SIZE, 1, 0
    rows = _Rows(piece_size // (_RECORD_HEADER_SIZE + _FRAME_HEADERS_SIZE) + 1)
    while True:
        try:
            piece = _filled(source, rest, len(rest) + 1, piece_size)
        except BrokenFileError:
            piece = rest
        is_at_end = len(piece) == len(rest)
        data = np.frombuffer(piece, dtype=np.uint8)
        at, kind = 0, _FULL
        while kind == _FULL:
            at, frames, found, last_ns, kind = _walk(data, at, fraction_ns, last_ns, rows.start, rows.size, rows.host_stamp_ns, rows.sender)
            frame += frames
            if found:
                yield rows.batch(data, found)
        if kind == _UNUSUAL or (is_at_end and at < len(piece)):
            return SeekPoint(host_stamp_ns=last_ns, frame=frame, latest_ns=last_ns, offset=offset + at, layout=layout)
        if is_at_end:
            return None
        rest = piece[at:]
        offset += at


def _walked_part(source: CaptureBytes, part: FilePart) -> Iterator[DatagramArrays]:
    """Yield the batches of a part of a plain capture."""
    source.skip_to(part.start, _LARGEST_PIECE_SIZE)
    rows = _Rows(_LARGEST_PIECE_SIZE // (RECORD_HEADER_SIZE + _FRAME_HEADERS_SIZE) + 1)
    rest, left, last_ns = b"", part.stop - part.start, 0
    while left > 0:
        read = source.read(min(_LARGEST_PIECE_SIZE, left))
        left = left - len(read) if read else 0
        data = np.frombuffer(rest + read, dtype=np.uint8)
        at, kind = 0, _FULL
        while kind == _FULL:
            at, _, found, last_ns, kind = _walk(data, at, part.fraction_ns, last_ns, rows.start, rows.size, rows.host_stamp_ns, rows.sender)
            if found:
                yield rows.batch(data, found)
        rest = data[at:].tobytes()
        if kind == _UNUSUAL or (not left and rest):
            raise UnusualRecordError


def _filled(source: CaptureBytes, rest: bytes, due: int, piece_size: int) -> bytes:
    """``rest`` and about one further piece of the file, at least ``due`` bytes unless the file ends before."""
    pieces, size = [rest], len(rest)
    while size < max(due, piece_size) and (piece := source.read(piece_size)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


class _Rows:
    """Output arrays of the kernel."""

    def __init__(self, count: int) -> None:
        self.start, self.size, self.host_stamp_ns, self.sender = np.empty((4, count), dtype=np.int64)

    def batch(self, data: npt.NDArray[np.uint8], count: int) -> DatagramArrays:
        """Copy of the first ``count`` rows."""
        start, size, host_stamp_ns, sender = (column[:count].copy() for column in (self.start, self.size, self.host_stamp_ns, self.sender))
        return DatagramArrays(data, start, size, host_stamp_ns, sender, _FRAME_HEADERS_SIZE)


@kernel
def _number(data: npt.NDArray[np.uint8], at: int) -> int:
    """Read a little-endian 32-bit number."""
    number: int = signed(data[at]) | signed(data[at + 1]) << 8 | signed(data[at + 2]) << 16 | signed(data[at + 3]) << 24
    return number


@kernel
def _udp_size(data: npt.NDArray[np.uint8], begin: int, kept: int) -> int:
    """Size of the UDP datagram, including its header, in an Ethernet frame of ``kept`` bytes: 0 if there is none, ``_ODD`` if it is not a plain one."""
    if kept < _ETHERNET_SIZE:
        return _ODD
    ether_type = signed(data[begin + 12]) << 8 | signed(data[begin + 13])
    if ether_type == 0x8100 or ether_type == 0x88A8 or ether_type == 0x9100:  # noqa: PLR1714 - a set would be made for each frame
        return _ODD
    if ether_type != 0x0800:
        is_ipv6_udp = ether_type == 0x86DD and kept >= _IPV6_HEADERS_SIZE and (data[begin + 20] == 17 or data[begin + 20] in (0, 43, 60))
        return _ODD if is_ipv6_udp and (data[begin + 38] != 0xFF or data[begin + 39] != 0x02) else 0
    if kept < _FRAME_HEADERS_SIZE or data[begin + 14] != 0x45:
        return _ODD
    if data[begin + 23] != 17:
        return 0
    size: int = signed(data[begin + 38]) << 8 | signed(data[begin + 39])
    is_fragment = (data[begin + 20] & 0x3F) != 0 or data[begin + 21] != 0
    return _ODD if is_fragment or size < 8 or _FRAME_HEADERS_SIZE - 8 + size > kept else size


@kernel
def _walk(
    data: npt.NDArray[np.uint8],
    at: int,
    fraction_ns: int,
    last_ns: int,
    start: npt.NDArray[np.int64],
    size: npt.NDArray[np.int64],
    host_stamp_ns: npt.NDArray[np.int64],
    sender: npt.NDArray[np.int64],
) -> tuple[int, int, int, int, int]:
    """Parse whole records from ``at`` on.

    Returns the offset of the stop, the number of frames passed, the number of datagrams found, the last frame's stamp, and the reason: ``_MORE`` bytes are needed, the rows
    are ``_FULL``, or the next record is ``_UNUSUAL``. Frames other than IPv4 UDP are not written; offsets as in ``hilsim.capture.link``.
    """
    found = frames = 0
    why = _MORE
    end = data.size
    while end - at >= _RECORD_HEADER_SIZE:
        begin = at + _RECORD_HEADER_SIZE
        kept = _number(data, at + 8)
        if kept > _LARGEST_FRAME:
            why = _UNUSUAL
            break
        if begin + kept > end:
            break
        udp_size = _udp_size(data, begin, kept)
        if udp_size < 0 or found == start.size:
            why = _FULL if udp_size >= 0 else _UNUSUAL
            break
        last_ns = _number(data, at) * NS_PER_S + _number(data, at + 4) * fraction_ns
        if udp_size > 0:
            start[found] = begin + _FRAME_HEADERS_SIZE
            size[found] = udp_size - 8
            host_stamp_ns[found] = last_ns
            address = signed(data[begin + 26]) << 24 | signed(data[begin + 27]) << 16 | signed(data[begin + 28]) << 8 | signed(data[begin + 29])
            sender[found] = address << 16 | signed(data[begin + 36]) << 8 | signed(data[begin + 37])
            found += 1
        frames += 1
        at = begin + kept
    return at, frames, found, last_ns, why
