"""Packets in ``ouster_sensor_msgs`` of the ROS driver of Ouster sensors: a message holds one."""

import numpy as np

from hilsim.families.ouster.family import IMU_PORT, LIDAR_PORT
from hilsim.show.outputs.ros import RosPart

_PACKET = "ouster_sensor_msgs/msg/PacketMsg"

PART = RosPart(
    message=_PACKET,
    types={_PACKET: "uint8[] buf\n"},
    topics={"lidar": "lidar_packets", "imu": "imu_packets"},
    ports={"lidar": LIDAR_PORT, "imu": IMU_PORT},
    is_per_scan=False,
    fields=lambda _make, packets: {"buf": np.frombuffer(packets[0][1], np.uint8)},
    packets=lambda message, time_ns: [(time_ns, message.buf.tobytes())],
)
