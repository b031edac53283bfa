"""The checker's rules for Livox streams: points, inertial packets, the scan pattern and push messages."""

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.livox.conformance.sensor import SENSOR_PORTS, LivoxCheck
from hilsim.families.livox.protocol.commands import is_from_sensor
from hilsim.families.livox.recognition import LivoxKind
from hilsim.protocols.recognise import recognise
from hilsim.read.analysis.conformance.part import Claim, ConformancePart


def _claim(datagram: CapturedDatagram) -> Claim:
    """Packets of a sensor by their bytes, others of its ports by these; requests are of no sensor but of a host."""
    kind = recognise(datagram.payload)
    if not isinstance(kind, LivoxKind):
        return Claim.LIKE if kind is None and datagram.source_port in SENSOR_PORTS else Claim.NONE
    return Claim.NONE if kind is LivoxKind.COMMAND and not is_from_sensor(datagram.payload) else Claim.SURE


PART = ConformancePart(label="Livox", claim=_claim, sensor=lambda source, _metadata: LivoxCheck(source))
