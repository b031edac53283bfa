"""Data packets in ``velodyne_msgs`` of the ROS driver of Velodynes: a message holds those of a scan."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hilsim.families.velodyne.protocol.data import DATA_PORT
from hilsim.show.outputs.ros import RosPart
from hilsim.units import NS_PER_S

_PACKET, _SCAN = "velodyne_msgs/msg/VelodynePacket", "velodyne_msgs/msg/VelodyneScan"


def _fields(make: Callable[..., Any], packets: Sequence[tuple[int, bytes]]) -> dict[str, Any]:
    def packet(time_ns: int, payload: bytes) -> Any:
        stamp = make("builtin_interfaces/msg/Time", sec=time_ns // NS_PER_S, nanosec=time_ns % NS_PER_S)
        return make(_PACKET, stamp=stamp, data=np.frombuffer(payload, np.uint8))

    return {"packets": [packet(*each) for each in packets]}


PART = RosPart(
    message=_SCAN,
    types={
        _PACKET: "builtin_interfaces/Time stamp\nuint8[1206] data\n",
        _SCAN: "std_msgs/Header header\nvelodyne_msgs/VelodynePacket[] packets\n",
    },
    topics={"data": "velodyne_packets"},
    ports={"data": DATA_PORT},
    is_per_scan=True,
    fields=_fields,
    packets=lambda message, _time_ns: [(each.stamp.sec * NS_PER_S + each.stamp.nanosec, each.data.tobytes()) for each in message.packets],
)
