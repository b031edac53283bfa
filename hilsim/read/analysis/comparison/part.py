"""What a family gives for comparisons: module ``comparison`` of its folder, with a ``PART``."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hilsim.capture.datagram import CapturedDatagram
from hilsim.read.analysis.comparison.comparison import Comparison, Row
from hilsim.read.analysis.comparison.histogram import Histogram
from hilsim.read.analysis.comparison.spacing import SpacingStatistics
from hilsim.read.analysis.comparison.statistic import Statistic


class SensorStatistics(ABC):
    """Statistics of the packets of one sensor, gathered in memory that does not grow with the stream.

    Attributes:
        family: Name of the family.
        source: Address of the sensor.
        other_packets: Number of the address's data packets that are ignored.
        spacing: Statistics of arrival at the host.
        dual: Statistics of pairs of returns; None without a mode of two returns.
    """

    family: ClassVar[str]
    dual: Any = None

    def __init__(self, source: str) -> None:
        self.source = source
        self.other_packets = 0
        self.spacing = SpacingStatistics()

    @property
    @abstractmethod
    def kind(self) -> str:
        """Model or product line."""

    @abstractmethod
    def look(self, datagrams: list[CapturedDatagram]) -> None:
        """Add data packets in the order of their arrival, at most ``block_packets``; those of another sensor or mode are ignored and counted."""

    def look_beside(self, datagram: CapturedDatagram) -> None:  # noqa: B027 - only some families have such packets
        """Add a datagram of the sensor that is no data packet."""

    def check(self, name: str) -> None:  # noqa: B027 - only some settings can change
        """Check that the packets are of one setting, after the last one.

        Args:
            name: Name of the stream in errors.

        Raises:
            CaptureError: they are not.
        """

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Settings as plain values."""

    @abstractmethod
    def histograms(self) -> dict[str, Histogram]:
        """Distributions by name."""

    def to_json(self) -> dict[str, Any]:
        """Plain values, with all distributions."""
        return {
            "sensor": self.source,
            "model": self.kind,
            **self.facts(),
            "packets": self.spacing.packets,
            "other_packets": self.other_packets,
            "duration_s": self.spacing.duration_s,
            "histograms": {key: histogram.to_json() for key, histogram in self.histograms().items()},
        }


@dataclass(frozen=True, kw_only=True)
class ComparisonPart:
    """Comparison of streams of one family.

    Attributes:
        statistics: Statistics that are compared.
        packets: Name of the packets of ``is_data`` in errors.
        is_data: Whether a payload is a data packet of the family.
        first_packets: Number of data packets that ``begin`` needs to know the sensor, as far as the stream has as many.
        block_packets: Number of data packets that are added at once.
        begin: Function of the first data packets of a sensor, its address, the family's metadata (``given_metadata``) and the stream's name in errors, which
            gives the statistics of that sensor, without those packets. Raises CaptureError for a sensor that is not known.
        compare: Function of the statistics of both streams, the largest allowed distances by names of statistics, and the names of both streams in
            errors. Raises CaptureError for sensors that cannot be compared.
        draw_panels: Function of the axes ``[3, 3]``, the statistics of both streams and the rows by name, which draws the distributions.
    """

    statistics: tuple[Statistic, ...]
    packets: str
    is_data: Callable[[bytes], bool]
    first_packets: int
    block_packets: int
    begin: Callable[[list[CapturedDatagram], str, Any, str], SensorStatistics]
    compare: Callable[[Any, Any, Mapping[str, float], tuple[str, str]], Comparison]
    draw_panels: Callable[[Any, Sequence[Any], Mapping[str, Row]], None]
