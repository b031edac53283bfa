"""Notes of a reader on a capture file."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(kw_only=True)
class CaptureNotes:
    """Notes of a reader about a file; complete when the file was read to its end.

    Attributes:
        frames: Number of frames read.
        appended: Number of further captures that were appended to a classic PCAP file.
        interfaces: Largest number of interfaces in a section of a PCAPNG file; 0 in classic PCAP.
        counts: Number of frames skipped or doubtful, by reason.
        fragmented: Number of fragmented datagrams, by result.
        cut: Number of frames whose datagram was skipped because the capture's snap length truncated it.
        snap_size: Captured bytes of the longest of those frames.
        earlier: Number of frames with a time stamp before the previous frame's.
        first_earlier: Number of the first such frame, or None.
        broken: Position and kind of an error that ends the file, or None.
    """

    frames: int = 0
    appended: int = 0
    interfaces: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    fragmented: Counter[str] = field(default_factory=Counter)
    cut: int = 0
    snap_size: int = 0
    earlier: int = 0
    first_earlier: int | None = None
    broken: str | None = None

    def count_earlier(self, frame: int) -> None:
        """Count a frame that is earlier than the previous one."""
        self.earlier += 1
        if self.first_earlier is None:
            self.first_earlier = frame

    def count_cut(self, kept_size: int) -> None:
        """Count a datagram skipped because only ``kept_size`` bytes of its frame were captured."""
        self.cut += 1
        self.snap_size = max(self.snap_size, kept_size)

    def lines(self) -> tuple[str, ...]:
        """Notes as sentences."""
        lines = [f"{count} of {self.frames} frames: {what}" for what, count in sorted(self.counts.items())]
        lines += [f"datagrams in fragments: {count} {what}" for what, count in sorted(self.fragmented.items())]
        if self.cut:
            lines.append(
                f"{self.cut} of {self.frames} frames: passed over: cut by the capture's snap length of {self.snap_size} bytes: "
                "capture again with tcpdump -s 0"
            )
        if self.appended:
            lines.append(f"the file is {self.appended + 1} captures, one behind the other (hilsim replay takes several files, too)")
        if self.earlier:
            lines.append(f"{self.earlier} of {self.frames} frames: earlier than the one before; first at frame {self.first_earlier}")
        if self.broken is not None:
            lines.append(self.broken)
        return tuple(lines)
