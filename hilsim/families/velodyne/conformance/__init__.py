"""Rules for Velodyne streams, one module for each topic, with a class that judges blocks of packets and then the whole stream."""

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.velodyne.conformance.sensor import VelodyneCheck
from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE, DATA_PORT
from hilsim.families.velodyne.protocol.position import POSITION_PACKET_SIZE, POSITION_PORT
from hilsim.read.analysis.conformance.part import Claim, ConformancePart


def _claim(datagram: CapturedDatagram) -> Claim:
    is_like = len(datagram.payload) in {DATA_PACKET_SIZE, POSITION_PACKET_SIZE} or datagram.destination_port in {DATA_PORT, POSITION_PORT}
    return Claim.LIKE if is_like else Claim.NONE


PART = ConformancePart(label="Velodyne", claim=_claim, sensor=lambda source, _metadata: VelodyneCheck(source))
