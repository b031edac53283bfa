"""Ouster's lidar packets as arrays: headers and columns without pixels, their order, packets that are missing between others, and blocks of whole packets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.ouster.protocol.bits import read_bits
from hilsim.families.ouster.protocol.headers import COLUMN_DTYPE, COLUMNS, HEADER_DTYPE, HEADERS, PACKET_HEADER_SIZE, VALID_STATUS, HeaderField
from hilsim.families.ouster.protocol.lidar import LidarLayout, LidarPackets, decode_lidar_packets
from hilsim.families.ouster.protocol.metadata import LIDAR_MODES, SensorMetadata, mode_numbers
from hilsim.families.ouster.protocol.pixels import Pixels
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET, HeaderKind
from hilsim.families.ouster.protocol.recognition import FORMS, Form
from hilsim.read.analysis.conformance.findings import Place

MAX_PACKETS = 256
"""Packets a turn of the largest mode."""
_MAX_FRAMES = 3000
"""Frames that a gap may last; a larger step of the frame id is another start."""
_FIRST = -(1 << 62)
"""Step of a packet without a former one."""


class Heads(NamedTuple):
    """Headers of lidar packets.

    Attributes:
        headers: ``HEADER_DTYPE[n]``.
        columns: ``COLUMN_DTYPE[n, 16]``.
    """

    headers: npt.NDArray[Any]
    columns: npt.NDArray[Any]

    @property
    def packet(self) -> npt.NDArray[np.int64]:
        """Number of each packet within the turn, by the measurement id of its first column, ``int64[n]``."""
        return np.asarray(self.columns["measurement_id"][:, 0].astype(np.int64) // COLUMNS_PER_PACKET)

    @property
    def stamp_ns(self) -> npt.NDArray[np.int64]:
        """Time of each packet's last column, ``int64[n]``."""
        return np.asarray(self.columns["timestamp_ns"][:, -1].astype(np.int64))


def cut_head(payload: bytes) -> bytes:
    """Packet header and column headers of a lidar packet, without its pixels.

    Args:
        payload: Lidar packet of a size of ``recognition.FORMS``.
    """
    form = FORMS[len(payload)]
    column = COLUMNS[HeaderKind.STANDARD if form.has_header else HeaderKind.NONE]
    body = np.frombuffer(payload, np.uint8)[form.first_column :][: COLUMNS_PER_PACKET * form.column_size].reshape(
        COLUMNS_PER_PACKET, form.column_size
    )
    head = body[:, : column.header_size]
    if column.footer_size:
        head = np.concatenate((head, body[:, -column.footer_size :]), axis=1)
    return payload[: form.first_column] + head.tobytes()


def read_heads(cut: Sequence[bytes], kind: HeaderKind) -> Heads:
    """Read results of ``cut_head``, of packets with one kind of header."""
    column = COLUMNS[kind]
    first, size = (0 if kind is HeaderKind.NONE else PACKET_HEADER_SIZE), column.header_size + column.footer_size
    rows = np.frombuffer(b"".join(cut), np.uint8).reshape(len(cut), first + COLUMNS_PER_PACKET * size)
    headers = np.zeros(len(rows), HEADER_DTYPE)
    for name, place in HEADERS[kind].items():
        headers[name.name.lower()] = read_bits(rows, 8 * place.offset, place.bits)
    body = rows[:, first:].reshape(len(rows), COLUMNS_PER_PACKET, size)
    columns = np.zeros(body.shape[:2], COLUMN_DTYPE)
    for part, place in column.fields.items():
        columns[part.name.lower()] = read_bits(body, 8 * (place.offset % size), place.bits)
    if column.frame_id is not None:
        headers["frame_id"] = read_bits(body[:, 0], 8 * column.frame_id.offset, column.frame_id.bits)
    return Heads(headers, columns)


def frame_id_count(kind: HeaderKind) -> int:
    """Number of frame ids: after the last one, a frame has 0 again."""
    place = HEADERS[kind].get(HeaderField.FRAME_ID) or COLUMNS[kind].frame_id
    return 1 << (16 if place is None else place.bits)


class FrameCounter:
    """Count of a sensor's frames, which continues where frame ids begin again at 0."""

    def __init__(self, kind: HeaderKind) -> None:
        self._count = frame_id_count(kind)
        self._last_id: int | None = None
        self._frame = 0

    def look(self, frame_id: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Numbers of the frames of consecutive packets, ``int64[n]``; the first frame has its own id as number."""
        ids = frame_id.astype(np.int64)
        if not ids.size:
            return ids
        before = int(ids[0]) if self._last_id is None else self._last_id
        start = int(ids[0]) if self._last_id is None else self._frame
        half = self._count // 2
        step = (np.diff(ids, prepend=before) + half) % self._count - half
        frames = start + np.cumsum(step)
        self._last_id, self._frame = int(ids[-1]), int(frames[-1])
        return np.asarray(frames)


def window_packets(window: tuple[int, int], columns_per_frame: int) -> npt.NDArray[np.int64]:
    """Numbers of the packets of a turn that hold a column of the window, ``int64[n]``; a window may wrap."""
    first, last = (column // COLUMNS_PER_PACKET for column in window)
    if window[0] <= window[1]:
        return np.arange(first, last + 1)
    return np.unique(np.concatenate((np.arange(last + 1), np.arange(first, columns_per_frame // COLUMNS_PER_PACKET))))


def columns_seen(most_id: int) -> int:
    """Columns a turn of the smallest mode with a measurement id."""
    return min((mode_numbers(mode)[0] for mode in LIDAR_MODES if mode_numbers(mode)[0] > most_id), default=most_id + 1)


class Run(NamedTuple):
    """Relation of each packet to the former one.

    Attributes:
        frame: ``int64[n]``, frame, counted.
        packet: ``int64[n]``, number of the packet within the turn.
        is_next: ``bool[n]``, whether it directly follows the former one within a frame.
        is_late: ``bool[n]``, whether it was overtaken by later packets.
        is_repeated: ``bool[n]``, whether it has the place of the former one.
        is_break: ``bool[n]``, whether the frame ids begin anew.
    """

    frame: npt.NDArray[np.int64]
    packet: npt.NDArray[np.int64]
    is_next: npt.NDArray[np.bool_]
    is_late: npt.NDArray[np.bool_]
    is_repeated: npt.NDArray[np.bool_]
    is_break: npt.NDArray[np.bool_]


class Lost(NamedTuple):
    """Packets that are missing.

    Attributes:
        packets: Number of packets.
        runs: Number of places.
        longest: Largest number in one place.
        after: Place of the packet before those; None if none is missing.
    """

    packets: int
    runs: int
    longest: int
    after: Any


class PacketOrder:
    """Order of one sensor's lidar packets, and what is missing between them."""

    def __init__(self, kind: HeaderKind) -> None:
        self._frames = FrameCounter(kind)
        self._last_frame: int | None = None
        self._top: int | None = None
        self._gaps: dict[tuple[int, int, int], tuple[int, Any]] = {}
        """Number of gaps by places in the turn and number of frames, and the place before the first of them."""
        self._late = 0
        self.seen = np.zeros(MAX_PACKETS, np.int64)
        """Number of packets by their place in the turn."""

    def look(self, heads: Heads, place: Callable[[int], Any]) -> Run:
        """Add consecutive packets; ``place`` gives the place of a row, and of row -1 that of the packet before."""
        frame, packet = self._frames.look(heads.headers["frame_id"]), np.minimum(heads.packet, MAX_PACKETS - 1)
        frame_step = np.diff(frame, prepend=frame[0] if self._last_frame is None else self._last_frame)
        self._last_frame = int(frame[-1])
        self.seen += np.bincount(packet, minlength=MAX_PACKETS)
        is_break = (frame_step > _MAX_FRAMES) | (frame_step < -1)
        position = frame * MAX_PACKETS + packet
        step = np.zeros(frame.size, np.int64)
        for start, stop in pairwise([0, *np.flatnonzero(is_break).tolist(), frame.size]):
            self._follow(position[start:stop], step[start:stop], start, place, is_again=start > 0 or bool(is_break[0]))
        is_first = step == _FIRST
        return Run(frame, packet, is_next=step == 1, is_late=(step < 0) & ~is_first, is_repeated=step == 0, is_break=is_break)

    def _follow(
        self, position: npt.NDArray[np.int64], step: npt.NDArray[np.int64], start: int, place: Callable[[int], Any], *, is_again: bool
    ) -> None:
        """Compare packets without a break with the latest one before each; ``step`` gets the steps of their positions."""
        if not position.size:
            return
        is_first = self._top is None or is_again
        before_first = int(position[0]) if self._top is None or is_again else self._top
        top = np.maximum.accumulate(np.concatenate((np.array([before_first]), position)))
        step[:] = position - top[:-1]
        if is_first:
            step[0] = _FIRST
        for row in np.flatnonzero(step > 1).tolist():
            before, after = int(top[row]), int(position[row])
            key = before % MAX_PACKETS, after % MAX_PACKETS, after // MAX_PACKETS - before // MAX_PACKETS
            count, first = self._gaps.get(key) or (0, place(start + row - 1))
            self._gaps[key] = count + 1, first
        self._late += int((step[1 if is_first else 0 :] < 0).sum())
        self._top = int(top[-1])

    def lost(self, window: npt.NDArray[np.int64] | None = None) -> Lost:
        """Packets that are missing.

        Args:
            window: ``int64[n]``, numbers of the packets of a turn that the sensor sends; None: those that were seen in any turn.
        """
        sent = np.flatnonzero(self.seen) if window is None else window
        found = [(self._missing(key, sent), *gap) for key, gap in self._gaps.items()]
        packets = sum(size * count for size, count, _ in found if size > 0) - self._late
        if packets <= 0:
            return Lost(0, 0, 0, None)
        longest, _, after = max(found, key=lambda each: each[0])
        return Lost(packets, sum(count for size, count, _ in found if size > 0), longest, after)

    @staticmethod
    def _missing(key: tuple[int, int, int], sent: npt.NDArray[np.int64]) -> int:
        before, after, frames = key
        if frames == 0:
            return int(((sent > before) & (sent < after)).sum())
        return int((sent > before).sum()) + (frames - 1) * sent.size + int((sent < after).sum())


def sent_packets(metadata: SensorMetadata | None) -> npt.NDArray[np.int64] | None:
    """Numbers of the packets of a turn that a sensor sends, ``int64[n]``; None without metadata."""
    return None if metadata is None else window_packets(metadata.window, metadata.columns_per_frame)


@dataclass(frozen=True, kw_only=True)
class LidarBlock:
    """Consecutive lidar packets of one size and sensor."""

    kind: Annotated[HeaderKind, "Kind of the packet header."]
    metadata: Annotated[SensorMetadata | None, "Metadata of the sensor; None where pixels cannot be judged."]
    layout: Annotated[LidarLayout | None, "Layout of the packets by the metadata, or None."]
    first_index: Annotated[int, "Index of the first packet among the sensor's lidar packets."]
    datagrams: Annotated[list[CapturedDatagram], "The packets."]
    payloads: Annotated[npt.NDArray[np.uint8], "``uint8[n, size]``."]
    heads: Annotated[Heads, "Packet and column headers."]
    run: Annotated[Run, "Order of the packets."]
    before: Annotated["LastPacket | None", "Last packet of the block before, or None."]
    pixels: Annotated[LidarPackets | None, "Fields of the packets, or None without metadata."]

    @property
    def form(self) -> Form:
        """Places of the columns."""
        return FORMS[self.payloads.shape[1]]

    @property
    def stamp_ns(self) -> npt.NDArray[np.int64]:
        """Stamps of the columns, ``int64[n, 16]``."""
        return np.asarray(self.heads.columns["timestamp_ns"].astype(np.int64))

    @property
    def ids(self) -> npt.NDArray[np.int64]:
        """Measurement ids, ``int64[n, 16]``."""
        return np.asarray(self.heads.columns["measurement_id"].astype(np.int64))

    @property
    def is_valid(self) -> npt.NDArray[np.bool_]:
        """Whether columns are valid, ``bool[n, 16]``."""
        return np.asarray(self.heads.columns["status"] & VALID_STATUS != 0)

    @property
    def has_pixels(self) -> npt.NDArray[np.bool_]:
        """Whether columns are valid and within the turn, ``bool[n, 16]``."""
        return np.asarray(self.is_valid & (self.ids < self.columns_per_frame))

    @property
    def measured(self) -> Pixels:
        """Pixels of packets with metadata."""
        if self.pixels is None:
            raise AssertionError("pixels must have metadata")
        return self.pixels.pixels

    @property
    def host_ns(self) -> npt.NDArray[np.int64]:
        """Capture times, ``int64[n]``."""
        return np.array([datagram.host_stamp_ns for datagram in self.datagrams], np.int64)

    @property
    def host_step_ns(self) -> npt.NDArray[np.int64]:
        """Capture time minus that of the former packet, ``int64[n]``; 0 for the stream's first packet."""
        host_ns = self.host_ns
        return np.diff(host_ns, prepend=host_ns[0] if self.before is None else self.before.host_ns)

    @property
    def step_ns(self) -> npt.NDArray[np.int64]:
        """Stamp of the last column minus that of the former packet, ``int64[n]``; 0 for the stream's first packet."""
        last_ns = self.stamp_ns[:, -1]
        return np.diff(last_ns, prepend=last_ns[0] if self.before is None else self.before.stamp_ns)

    @property
    def position(self) -> npt.NDArray[np.int64]:
        """Number of each packet, counted through all frames, ``int64[n]``."""
        return np.asarray(self.run.frame * (self.columns_per_frame // COLUMNS_PER_PACKET) + self.run.packet)

    @property
    def is_next(self) -> npt.NDArray[np.bool_]:
        """Whether a packet directly follows the former one, also from frame to frame, ``bool[n]``."""
        position = self.position
        return np.asarray(np.diff(position, prepend=position[0] if self.before is None else self.before.columns // COLUMNS_PER_PACKET) == 1)

    @property
    def follows(self) -> npt.NDArray[np.bool_]:
        """Whether a column directly follows the former one of the stream, ``bool[n, 16]``."""
        follows = np.ones((len(self.datagrams), COLUMNS_PER_PACKET), np.bool_)
        follows[:, 0] = self.is_next
        return follows

    @property
    def column_ns(self) -> float:
        """Nominal time between columns; NaN without metadata."""
        return float("nan") if self.metadata is None else 1e9 / (self.metadata.columns_per_frame * self.metadata.rate_hz)

    @property
    def cycle_us(self) -> float:
        """Nominal time between packets; NaN without metadata."""
        return COLUMNS_PER_PACKET * self.column_ns / 1000.0

    @property
    def columns_per_frame(self) -> int:
        """Columns a turn, by the metadata, else of the smallest mode with the ids of most packets."""
        if self.metadata is not None:
            return self.metadata.columns_per_frame
        return columns_seen(int(np.percentile(self.ids, 99, method="lower")))

    def column_byte(self, column: int, offset: int = 0) -> int:
        """Byte of a column."""
        return self.form.first_column + column * self.form.column_size + offset

    def pixel_byte(self, column: int, beam: int) -> int:
        """Byte of a pixel."""
        size = 0 if self.layout is None else self.layout.pixel_size
        return self.column_byte(column, COLUMNS[self.kind].header_size + beam * size)

    def place(self, row: int, byte: int | None = None) -> Place:
        """Place of a packet of this block; row -1 is the packet before it."""
        if row < 0:
            return Place(self.first_index - 1, self.datagrams[0].frame if self.before is None else self.before.frame, byte)
        return Place(self.first_index + row, self.datagrams[row].frame, byte)


@dataclass(frozen=True, kw_only=True)
class LastPacket:
    """The last packet of a block."""

    frame: Annotated[int, "Number of its frame in the capture."]
    stamp_ns: Annotated[int, "Stamp of its last column."]
    host_ns: Annotated[int, "Capture time."]
    columns: Annotated[int, "Number of its last column, counted over frames."]
    init_id: Annotated[int, "Initialisation id."]


def form_block(
    datagrams: list[CapturedDatagram],
    kind: HeaderKind,
    metadata: SensorMetadata | None,
    layout: LidarLayout | None,
    order: PacketOrder,
    first_index: int,
    before: LastPacket | None,
) -> LidarBlock:
    """Convert consecutive packets of one size."""
    payloads = np.frombuffer(b"".join(datagram.payload for datagram in datagrams), np.uint8).reshape(len(datagrams), -1)
    heads = read_heads([cut_head(datagram.payload) for datagram in datagrams], kind)

    return LidarBlock(
        kind=kind,
        metadata=metadata,
        layout=layout,
        first_index=first_index,
        datagrams=datagrams,
        payloads=payloads,
        heads=heads,
        run=order.look(heads, lambda row: Place(first_index + row, datagrams[max(row, 0)].frame)),
        before=before,
        pixels=_pixels(payloads, metadata, layout),
    )


def _pixels(payloads: npt.NDArray[np.uint8], metadata: SensorMetadata | None, layout: LidarLayout | None) -> LidarPackets | None:
    """Fields of packets; the type is set to a lidar packet's, because a rule of its own judges it."""
    if metadata is None or layout is None:
        return None
    typed = payloads.copy()
    if metadata.profile.header is not HeaderKind.NONE:
        typed[:, 0] = 1
        typed[:, 1] = np.where(metadata.profile.header is HeaderKind.STANDARD, 0, typed[:, 1])
    return decode_lidar_packets(typed, metadata.profile, layout, checks_footer=False)


def last_packet(block: LidarBlock) -> LastPacket:
    """The last packet of a block."""
    return LastPacket(
        frame=block.datagrams[-1].frame,
        stamp_ns=int(block.stamp_ns[-1, -1]),
        host_ns=block.datagrams[-1].host_stamp_ns,
        columns=int(block.run.frame[-1]) * block.columns_per_frame + int(block.ids[-1, -1]),
        init_id=int(block.heads.headers["init_id"][-1]),
    )
