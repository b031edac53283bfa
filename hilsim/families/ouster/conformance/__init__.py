"""Rules for Ouster streams: lidar packets with the sensor's metadata, and IMU packets of both forms."""

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.ouster.conformance.sensor import OusterCheck
from hilsim.families.ouster.metadata_files import OusterMetadata
from hilsim.families.ouster.recognition import OusterKind
from hilsim.protocols.recognise import recognise
from hilsim.read.analysis.conformance.part import Claim, ConformancePart

_NO_METADATA = OusterMetadata()


def _claim(datagram: CapturedDatagram) -> Claim:
    return Claim.SURE if recognise(datagram.payload) in {OusterKind.LIDAR, OusterKind.IMU} else Claim.NONE


def _number(payload: bytes, metadata: OusterMetadata | None) -> int | None:
    """Serial number of a lidar packet's sensor; None of an IMU packet, which names none in older firmware."""
    if recognise(payload) is not OusterKind.LIDAR:
        return None
    identity = (metadata or _NO_METADATA).identify(payload)
    return identity.serial if identity.metadata is None else int(identity.metadata.serial)


PART = ConformancePart(label="Ouster", claim=_claim, number=_number, sensor=lambda source, metadata: OusterCheck(source, metadata or _NO_METADATA))
