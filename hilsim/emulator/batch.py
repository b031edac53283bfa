"""The one type between producers and sinks: datagrams with deadlines, as arrays."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.protocols.flow_key import FlowKey


@dataclass(frozen=True, kw_only=True)
class Flow:
    """Source and destination of the datagrams of one stream.

    Attributes:
        name: Unique within a rig: ``"<sensor>/data"``, ``"<sensor>/position"``.
        source: IPv4 address the sensor sends from.
        source_port: UDP port the sensor sends from.
        destination: IPv4 address: unicast, directed or limited broadcast, multicast.
        destination_port: UDP port of the receiver.
    """

    name: str
    source: str
    source_port: int
    destination: str
    destination_port: int

    @property
    def key(self) -> FlowKey:
        """Its addresses and ports."""
        return FlowKey(self.source, self.source_port, self.destination, self.destination_port)


class DatagramBatch(NamedTuple):
    """Datagrams of one flow in sending order.

    Attributes:
        flow: Source and destination of the datagrams.
        deadline_ns: ``int64[n]``, rig time each must leave at.
        pose_ns: ``int64[n]``, rig time of the newest pose used in each (of its last firing).
        size: ``int32[n]``, payload bytes used.
        payload: ``uint8[n, capacity]``.
    """

    flow: Flow
    deadline_ns: npt.NDArray[np.int64]
    pose_ns: npt.NDArray[np.int64]
    size: npt.NDArray[np.int32]
    payload: npt.NDArray[np.uint8]
