"""What a family gives for checks: module ``conformance`` of its folder, with a ``PART``; and what the checks of all sensors share."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar

from hilsim.capture.datagram import CapturedDatagram
from hilsim.read.analysis.conformance.findings import Finding, FindingLog
from hilsim.read.analysis.conformance.result import SensorResult, SensorSummary


class SensorCheck(ABC):
    """Check of one sensor, packet by packet, in memory that does not grow with the stream.

    Attributes:
        packet_cost: Memory of a waiting packet, in Velodyne packets.
        source: Address of the sensor.
        log: Findings on single packets.
        position_packets: Number of position packets, by which a stream without data packets is described.
    """

    packet_cost: ClassVar[int] = 1

    def __init__(self, source: str) -> None:
        self.source = source
        self.log = FindingLog()
        self.position_packets = 0
        self._reported = 0

    @abstractmethod
    def add(self, datagram: CapturedDatagram) -> None:
        """Add one datagram of this sensor.

        Raises:
            CaptureError: metadata beside the capture are invalid.
        """

    @property
    @abstractmethod
    def waiting(self) -> int:
        """Number of packets that have not been judged yet."""

    @abstractmethod
    def flush(self) -> None:
        """Judge the waiting packets."""

    @abstractmethod
    def conclude(self, log: FindingLog, host_waited_ns: int) -> None:
        """Judge the rules about the whole stream so far; may be called at any time and changes no state.

        Args:
            log: Log of findings.
            host_waited_ns: Time for which the listening host kept a program waiting meanwhile; bursts that this may explain are a warning.
        """

    @abstractmethod
    def summary(self) -> SensorSummary:
        """Figures of the packets judged so far."""

    @property
    def has_data(self) -> bool:
        """Whether there are packets that only such a sensor sends."""
        return True

    def new_findings(self) -> list[tuple[str, Finding]]:
        """Findings on single packets since the last call, each with the sensor's address."""
        known, self._reported = self._reported, len(self.log.findings)
        return [(self.source, finding) for finding in self.log.findings[known:]]

    def result(self, *, host_waited_ns: int = 0) -> SensorResult:
        """Findings and figures of the packets judged so far; ``host_waited_ns`` as for ``conclude``."""
        log = FindingLog()
        self.conclude(log, host_waited_ns)
        findings = (*self.log.findings, *log.findings)
        counts = {rule: self.log.counts.get(rule, 0) + log.counts.get(rule, 0) for rule in (*self.log.counts, *log.counts)}
        return SensorResult(source=self.source, summary=self.summary(), findings=findings, counts=counts, not_applied=tuple(log.not_applied))


class Claim(IntEnum):
    """How sure a family is that a datagram is one of its sensors'."""

    NONE = 0
    LIKE = 1
    SURE = 2


@dataclass(frozen=True, kw_only=True)
class ConformancePart:
    """Checks of sensors of one family.

    Attributes:
        label: Name of the family in messages.
        claim: Whether a datagram is one of a sensor of the family: ``LIKE`` by its size or ports, ``SURE`` by its bytes.
        number: Function of a payload and the family's metadata (``given_metadata``), which gives the number by which sensors of one address differ; None
            for a payload that names none, which is of the address's first sensor. Raises CaptureError for invalid metadata.
        sensor: Function of an address and the family's metadata, which begins a check.
    """

    label: str
    claim: Callable[[CapturedDatagram], Claim]
    number: Callable[[bytes, Any], int | None] = lambda _payload, _metadata: None
    sensor: Callable[[str, Any], SensorCheck]
