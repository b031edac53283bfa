"""Interface between the sources of scans and what shows them."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from hilsim.api.packet import Packet
from hilsim.assembly.shapes import Shape
from hilsim.read.scans.scan import Scan


class Feed(Protocol):
    """Source of scans. Any thread may call any method; none of them waits for packets."""

    @property
    def title(self) -> str:
        """Name of the source for people, such as the path of a capture."""
        ...

    def sensors(self) -> tuple[str, ...]:
        """Names of the sensors of which packets have come, in order of their first packets."""
        ...

    def scans_since(self, sensor: str, number: int) -> Sequence[Scan]:
        """Complete scans from ``number`` on that are still stored, oldest first; none for an unknown sensor."""
        ...

    def status(self) -> Mapping[str, object] | None:
        """Keys of the daemon's latest ``state``, and its latest ``health`` under that key; None where the source is no daemon, or nothing has come yet."""
        ...

    def close(self) -> None:
        """End the threads and connections; closing again does nothing."""
        ...


@runtime_checkable
class PacketFeed(Feed, Protocol):
    """Feed that gives the packets as well, if it was made with packets."""

    @property
    def dropped_packets(self) -> int:
        """Packets that were gone before they could be taken."""
        ...

    def packets(self) -> Sequence[Packet]:
        """Packets since the last call, in the order of their stamps."""
        ...


@runtime_checkable
class SceneFeed(Feed, Protocol):
    """Feed that knows the scene: that of a daemon."""

    def shapes(self, stamp_ns: int) -> Sequence[Shape] | None:
        """Objects of the scene at a UTC instant, with names that differ; None where the scene is not known. It may take seconds."""
        ...


@runtime_checkable
class TruthfulFeed(Feed, Protocol):
    """Feed that knows the ground truth of points: that of a daemon."""

    def truth(self, scan: Scan, index: int) -> Mapping[str, object]:
        """Ground truth of a point of a stored scan; it may take a second."""
        ...
