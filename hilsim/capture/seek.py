"""Where reading a capture file can start, and which of those places comes before a time."""

from bisect import bisect_right
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

from hilsim.units import NS_PER_S

MOST_POINTS = 1 << 16


class ClassicLayout(NamedTuple):
    """Properties of records from a classic PCAP file's header.

    Attributes:
        order: Byte order as ``struct`` writes it.
        fraction_ns: Nanoseconds in a unit of a stamp's fraction.
        link_type: Number of the link layer.
        header_size: Bytes before each frame.
    """

    order: str
    fraction_ns: int
    link_type: int
    header_size: int


class Interface(NamedTuple):
    """Properties of an interface from a PCAPNG section.

    Attributes:
        link_type: Number of the link layer.
        ticks_per_s: Units of time in a second.
        offset_ns: What to add to every stamp.
    """

    link_type: int
    ticks_per_s: int
    offset_ns: int

    def stamp_ns(self, ticks: int) -> int:
        """Nanoseconds since 1970-01-01 UTC, rounded down."""
        return self.offset_ns + ticks * NS_PER_S // self.ticks_per_s


class SectionLayout(NamedTuple):
    """What is known of a PCAPNG section up to some place in it.

    Attributes:
        order: Byte order as ``struct`` writes it.
        interfaces: In the order of their numbers.
    """

    order: str
    interfaces: tuple[Interface, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeekPoint:
    """A place in a capture file at which reading can start.

    Attributes:
        host_stamp_ns: Stamp of the frame that begins here, nanoseconds since 1970-01-01 UTC; 0 in a file without frames.
        frame: Its number, from 1.
        latest_ns: The latest stamp up to and including that frame's; later than ``host_stamp_ns`` where stamps go backwards.
        offset: Where it begins among the file's decompressed bytes.
        layout: What is known from the frames before; None at the very start, where it is still to be read.
    """

    host_stamp_ns: int
    frame: int
    latest_ns: int
    offset: int
    layout: ClassicLayout | SectionLayout | None


START = SeekPoint(host_stamp_ns=0, frame=1, latest_ns=0, offset=0, layout=None)


class SeekIndex:
    """Seek points of one file in file order, added by whoever reads it first; may be shared between threads.

    At most ``MOST_POINTS`` are kept: with more, every second is dropped and their spacing doubled.

    Attributes:
        due: Offset from which on the next point is stored.
        is_complete: Whether a reader came to the end of the file.
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
        """Keep ``point`` if it is due."""
        with self._lock:
            if point.offset < self.due:
                return
            self._points.append(point)
            if len(self._points) > MOST_POINTS:
                del self._points[1::2]
                self._spacing_bytes *= 2
            self.due = self._points[-1].offset + self._spacing_bytes

    def last(self) -> SeekPoint:
        """The last point so far."""
        with self._lock:
            return self._points[-1] if self._points else START

    def before(self, host_stamp_ns: int) -> SeekPoint:
        """The last point with no stamp after ``host_stamp_ns`` up to and including its frame's, or the first point."""
        with self._lock:
            after = bisect_right(self._points, host_stamp_ns, key=lambda point: point.latest_ns)
            return self._points[max(after - 1, 0)] if self._points else START
