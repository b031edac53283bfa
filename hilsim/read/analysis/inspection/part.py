"""What a family gives for inspections: module ``inspection`` of its folder, with a ``PART``."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy.typing as npt

from hilsim.protocols.recognise import PacketKind
from hilsim.read.analysis.ground import Reason
from hilsim.read.analysis.inspection.lines import Line
from hilsim.read.analysis.inspection.result import FlowSummary
from hilsim.read.analysis.inspection.times import CaptureTimes, Steps


class FlowDetails(ABC):
    """Figures of the payloads of one flow, a dataclass; a field ``clock`` holds the clock of the stamps, if the packets have some."""

    @property
    def title(self) -> str:
        """Name of the sensor with its setting; empty for packets that tell none."""
        return ""

    @property
    def loops_seamlessly(self) -> bool:
        """Whether two places of the flow may fit each other."""
        return False

    @abstractmethod
    def lines(self, flow: FlowSummary) -> Iterable[Line]:
        """Lines of the report."""


class FlowInspection(ABC):
    """Packets of one kind from one address to another.

    Attributes:
        sample_bytes: Size of the flow's first packets in which the ground is sought; 0 for packets without points.
    """

    sample_bytes: ClassVar[int] = 0

    def __init__(self) -> None:
        self._payloads: list[bytes] = []

    def take(self, payload: bytes) -> None:
        """Store what is needed of a payload until ``look``; all of it unless a class stores less."""
        self._payloads.append(payload)

    def taken(self) -> list[bytes]:
        """What was stored since the last call."""
        taken, self._payloads = self._payloads, []
        return taken

    @abstractmethod
    def look(self, times: CaptureTimes) -> Steps:
        """Evaluate the packets taken since the last call."""

    @abstractmethod
    def summary(self) -> FlowDetails:
        """Figures of the flow, after at least one block."""

    def points(self, _payloads: list[bytes]) -> npt.NDArray[Any] | Reason:
        """Points of the flow's first packets, with the fields of ``POINT_DTYPE``; the reason why they cannot be decoded."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class InspectionPart:
    """Inspection of flows of one family.

    Attributes:
        kinds: Kinds of packets that are the family's.
        flow: Function of the kind and the first payload of a flow and the family's metadata (``given_metadata``); None for packets that are only counted.
        number: Function of the kind, a payload and the family's metadata, by which flows of the same addresses and kind differ. Raises CaptureError for
            invalid metadata.
        title: Title of each sensor of the family beside those of its flows.
        lines: Function of the flows of a sensor, which gives lines on all of them.
    """

    kinds: frozenset[PacketKind]
    flow: Callable[[PacketKind, bytes, Any], FlowInspection | None]
    number: Callable[[PacketKind, bytes, Any], Hashable] = lambda _kind, _payload, _metadata: None
    title: str = ""
    lines: Callable[[Sequence[FlowSummary]], Iterable[Line]] = lambda _flows: ()
