"""Order of Ouster's lidar packets: headers and columns without pixels, frames, and packets that are missing between others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.families.ouster.protocol.bits import read_bits
from hilsim.families.ouster.protocol.headers import COLUMN_DTYPE, COLUMNS, HEADER_DTYPE, HEADERS, PACKET_HEADER_SIZE, HeaderField
from hilsim.families.ouster.protocol.metadata import LIDAR_MODES, SensorMetadata, mode_numbers
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET, HeaderKind
from hilsim.families.ouster.protocol.recognition import FORMS

MOST_PACKETS = 256
"""Packets a turn of the largest mode."""
_MOST_FRAMES = 3000
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


@dataclass
class _Gap:
    count: int
    after: Any


class PacketOrder:
    """Order of one sensor's lidar packets, and what is missing between them."""

    def __init__(self, kind: HeaderKind) -> None:
        self._frames = FrameCounter(kind)
        self._last_frame: int | None = None
        self._top: int | None = None
        self._gaps: dict[tuple[int, int, int], _Gap] = {}
        self._late = 0
        self.seen = np.zeros(MOST_PACKETS, np.int64)
        """Number of packets by their place in the turn."""

    def look(self, heads: Heads, place: Callable[[int], Any]) -> Run:
        """Add consecutive packets; ``place`` gives the place of a row, and of row -1 that of the packet before."""
        frame, packet = self._frames.look(heads.headers["frame_id"]), np.minimum(heads.packet, MOST_PACKETS - 1)
        frame_step = np.diff(frame, prepend=frame[0] if self._last_frame is None else self._last_frame)
        self._last_frame = int(frame[-1])
        self.seen += np.bincount(packet, minlength=MOST_PACKETS)
        is_break = (frame_step > _MOST_FRAMES) | (frame_step < -1)
        position = frame * MOST_PACKETS + packet
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
            key = before % MOST_PACKETS, after % MOST_PACKETS, after // MOST_PACKETS - before // MOST_PACKETS
            self._gaps.setdefault(key, _Gap(0, place(start + row - 1))).count += 1
        self._late += int((step[1 if is_first else 0 :] < 0).sum())
        self._top = int(top[-1])

    def lost(self, window: npt.NDArray[np.int64] | None = None) -> Lost:
        """Packets that are missing.

        Args:
            window: ``int64[n]``, numbers of the packets of a turn that the sensor sends; None: those that were seen in any turn.
        """
        sent = np.flatnonzero(self.seen) if window is None else window
        found = [(self._missing(key, sent), gap) for key, gap in self._gaps.items()]
        missing = [(count, gap) for count, gap in found if count > 0]
        packets = sum(count * gap.count for count, gap in missing) - self._late
        if packets <= 0:
            return Lost(0, 0, 0, None)
        longest, worst = max(missing, key=lambda each: each[0])
        return Lost(packets, sum(gap.count for _, gap in missing), longest, worst.after)

    @staticmethod
    def _missing(key: tuple[int, int, int], sent: npt.NDArray[np.int64]) -> int:
        before, after, frames = key
        if frames == 0:
            return int(((sent > before) & (sent < after)).sum())
        return int((sent > before).sum()) + (frames - 1) * sent.size + int((sent < after).sum())


def sent_packets(metadata: SensorMetadata | None) -> npt.NDArray[np.int64] | None:
    """Numbers of the packets of a turn that a sensor sends, ``int64[n]``; None without metadata."""
    return None if metadata is None else window_packets(metadata.window, metadata.columns_per_frame)
