"""The checker's rules for Hesai streams."""

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.hesai.conformance.sensor import HesaiCheck
from hilsim.families.hesai.protocol.gps import is_gps
from hilsim.families.hesai.protocol.points import BY_SIZE, packet_fault
from hilsim.read.analysis.conformance.part import Claim, ConformancePart

_STARTS = frozenset(model.header[:4] for model, _ in BY_SIZE.values() if model.header)


def _claim(datagram: CapturedDatagram) -> Claim:
    """Packets by their bytes, and what has their size or begins like them."""
    payload = datagram.payload
    if is_gps(payload) or not packet_fault(payload):
        return Claim.SURE
    return Claim.LIKE if len(payload) in BY_SIZE or payload[:4] in _STARTS else Claim.NONE


PART = ConformancePart(label="Hesai", claim=_claim, sensor=lambda source, _metadata: HesaiCheck(source))
