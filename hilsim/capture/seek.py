"""Seek points of a capture file, and search for the point before a time."""

from bisect import bisect_right
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

from hilsim.units import NS_PER_S

MAX_POINTS = 1 << 16


class ClassicLayout(NamedTuple):
    """Properties of records from a classic PCAP file's header.

    Attributes:
        order: Byte order as ``struct`` writes it.
        fraction_ns: Nanoseconds per unit of a stamp's fraction.
        link_type: Number of the link layer.
        header_size: Number of bytes before each frame.
    """

    order: str
    fraction_ns: int
    link_type: int
    header_size: int


class Interface(NamedTuple):
    """Properties of an interface from a PCAPNG section.

    Attributes:
        link_type: Number of the link layer.
        ticks_per_s: Units of time per second.
        offset_ns: Offset added to every stamp.
    """

    link_type: int
    ticks_per_s: int
    offset_ns: int

    def stamp_ns(self, ticks: int) -> int:
        """Nanoseconds since 1970-01-01 UTC, rounded down."""
        return self.offset_ns + ticks * NS_PER_S // self.ticks_per_s


class SectionLayout(NamedTuple):
    """Properties of a PCAPNG section up to a position in it.

    Attributes:
        order: Byte order as ``struct`` writes it.
        interfaces: Interfaces in the order of their numbers.
    """

    order: str
    interfaces: tuple[Interface, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeekPoint:
    """A position in a capture file at which reading can start.

    Attributes:
        host_stamp_ns: Stamp of the frame at this position, nanoseconds since 1970-01-01 UTC; 0 in a file without frames.
        frame: Number of the frame, from 1.
        latest_ns: Latest stamp up to and including that frame's; later than ``host_stamp_ns`` where stamps decrease.
        offset: Offset of the frame in the decompressed file.
        layout: Properties from earlier blocks; None at the start of the file, where they have not been read.
    """

    host_stamp_ns: int
    frame: int
    latest_ns: int
    offset: int
    layout: ClassicLayout | SectionLayout | None


START = SeekPoint(host_stamp_ns=0, frame=1, latest_ns=0, offset=0, layout=None)


class SeekIndex:
    """Seek points of one file in file order, added by its first reader; may be shared between threads.

    It holds at most ``MAX_POINTS``: when full, every second point is dropped and the spacing doubled.

    Attributes:
        due: Offset from which on the next point is stored.
        is_complete: Whether a reader has reached the end of the file.
    """

    def __init__(self, spacing_bytes: int) -> None:
        self._spacing_bytes = spacing_bytes
        self._points: list[SeekPoint] = []
        self._lock = Lock()
        self.due = 0
        self.is_complete = False

    def __len__(self) -> int:
        return len(self._points)

    def add(self, point: SeekPoint) -> None:
        """Store ``point`` if it is due."""
        with self._lock:
            if point.offset < self.due:
                return
            self._points.append(point)
            if len(self._points) > MAX_POINTS:
                del self._points[1::2]
                self._spacing_bytes *= 2
            self.due = self._points[-1].offset + self._spacing_bytes

    def last(self) -> SeekPoint:
        """Last point so far."""
        with self._lock:
            return self._points[-1] if self._points else START

    def before(self, host_stamp_ns: int) -> SeekPoint:
        """Last point with no stamp after ``host_stamp_ns`` up to and including its frame's, or the first point."""
        with self._lock:
            after = bisect_right(self._points, host_stamp_ns, key=lambda point: point.latest_ns)
            return self._points[max(after - 1, 0)] if self._points else START
