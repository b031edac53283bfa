"""Recognition of packets by the bytes of their UDP payload; ports and addresses are configurable and prove nothing."""

from enum import Enum
from typing import NamedTuple

from hilsim.protocols.ethernet import PLAIN_STYLE, LinkStyle
from hilsim.registry import family_parts


class KindFacts(NamedTuple):
    """Facts on a kind of packets that do not depend on its layout.

    Attributes:
        words: Its name in messages.
        family: Name of the family whose sensors send it; empty if unknown.
        stream: Name of its stream in metrics and in the Python API.
        has_points: Whether the packets contain measurements: a sensor is recognised by them.
        is_decoded: Whether the points are decoded.
        port_step: Usual distance from the destination port of a sensor's points to that of these packets; None if a sensor has no port for them.
        style: Headers of the sensor's own frames.
    """

    words: str
    family: str = ""
    stream: str = "other"
    has_points: bool = False
    is_decoded: bool = False
    port_step: int | None = None
    style: LinkStyle = PLAIN_STYLE


class PacketKind(Enum):
    """Kind of a payload. The module ``recognition`` of each family's folder extends it by the family's own kinds."""

    @property
    def facts(self) -> KindFacts:
        """Facts on the kind."""
        facts: KindFacts = self.value
        return facts

    def __str__(self) -> str:
        return self.facts.words


class OtherKind(PacketKind):
    """Payloads of no family."""

    OTHER = KindFacts("not recognised")


def recognise(payload: bytes) -> PacketKind:
    """The kind of a payload: what the first family says whose module ``recognition`` recognises it, else ``OtherKind.OTHER``."""
    for module in family_parts("recognition").values():
        kind: PacketKind | None = module.recognise(payload)
        if kind is not None:
            return kind
    return OtherKind.OTHER
