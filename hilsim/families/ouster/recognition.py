"""Recognition of an Ouster's packets by size, type and what must count or be possible in them (``protocol.recognition``)."""

from hilsim.families.ouster.protocol.recognition import is_imu_packet, is_lidar_packet
from hilsim.protocols.ethernet import LinkStyle
from hilsim.protocols.recognise import KindFacts, PacketKind

OUSTER_LIDAR_STYLE = LinkStyle(ttl=64, dont_fragment=False, counting_identification=True, udp_checksum=True)
"""A Linux host's default, as public captures with true headers have it; large packets are fragments."""
OUSTER_IMU_STYLE = LinkStyle(ttl=64, dont_fragment=True, counting_identification=True, udp_checksum=True)


class OusterKind(PacketKind):
    """Kinds of an Ouster's packets."""

    LIDAR = KindFacts("Ouster lidar", "ouster", "lidar", has_points=True, is_decoded=True, style=OUSTER_LIDAR_STYLE)
    IMU = KindFacts("Ouster IMU", "ouster", "imu", port_step=1, style=OUSTER_IMU_STYLE)


def recognise(payload: bytes) -> OusterKind | None:
    """The kind of a payload."""
    if is_lidar_packet(payload):
        return OusterKind.LIDAR
    return OusterKind.IMU if is_imu_packet(payload) else None
