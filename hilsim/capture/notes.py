"""Notes of a reader on a capture file."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(kw_only=True)
class CaptureNotes:
    """Remarks of a reader about a file; complete when the file was read to its end.

    Attributes:
        frames: Frames read.
        interfaces: Most interfaces that a section of a PCAPNG file describes; 0 in classic PCAP.
        counts: In how many frames something was passed over or doubted, by what.
        fragmented: What became of how many datagrams that came in fragments, by what.
        cut: Frames whose datagram was passed over because the capture's snap length cut it.
        snap_size: Bytes that were kept of the longest of those.
        earlier: Frames with a time stamp before that of the frame before.
        first_earlier: Number of the first of those, or None.
        broken: Where and how the file stops making sense, or None.
    """

    frames: int = 0
    interfaces: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    fragmented: Counter[str] = field(default_factory=Counter)
    cut: int = 0
    snap_size: int = 0
    earlier: int = 0
    first_earlier: int | None = None
    broken: str | None = None

    def count_earlier(self, frame: int) -> None:
        """Note that ``frame`` is earlier than the one before."""
        self.earlier += 1
        if self.first_earlier is None:
            self.first_earlier = frame

    def count_cut(self, kept_size: int) -> None:
        """Note that a datagram was passed over because only ``kept_size`` bytes of its frame are there."""
        self.cut += 1
        self.snap_size = max(self.snap_size, kept_size)

    def lines(self) -> tuple[str, ...]:
        """One sentence a note."""
        lines = [f"{count} of {self.frames} frames: {what}" for what, count in sorted(self.counts.items())]
        lines += [f"datagrams in fragments: {count} {what}" for what, count in sorted(self.fragmented.items())]
        if self.cut:
            lines.append(
                f"{self.cut} of {self.frames} frames: passed over: cut by the capture's snap length of {self.snap_size} bytes: "
                "capture again with tcpdump -s 0"
            )
        if self.earlier:
            lines.append(f"{self.earlier} of {self.frames} frames: earlier than the one before; first at frame {self.first_earlier}")
        if self.broken is not None:
            lines.append(self.broken)
        return tuple(lines)
