"""Decoders of several sensors, by name."""

from collections.abc import Callable, Mapping
from ipaddress import IPv4Address

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays
from hilsim.limits import VIEWED_SENSORS
from hilsim.scans.losses import Losses
from hilsim.scans.stream import PoseOf, Publish, SensorStream, no_pose


class SensorStreams:
    """Decoders, which begin with their sensors' first packets.

    Attributes:
        ignored: Datagrams of sensors beyond the most that are decoded.
    """

    def __init__(self, publish: Publish, introduce: Callable[[str], None], pose: PoseOf = no_pose) -> None:
        """Create no decoder yet.

        Args:
            publish: Function that takes complete scans.
            introduce: Function that takes the name of each new sensor.
            pose: Function that gives poses of sensors.
        """
        self.ignored = 0
        self._publish, self._introduce, self._pose = publish, introduce, pose
        self._streams: dict[str, SensorStream] = {}

    def add(self, sensor: str, batch: DatagramArrays, rows: npt.NDArray[np.intp]) -> None:
        """Decode the next datagrams of a sensor."""
        stream = self._streams.get(sensor)
        if stream is None:
            if len(self._streams) >= VIEWED_SENSORS.bound:
                self.ignored += rows.size
                return
            stream = SensorStream(sensor, self._publish, self._pose)
            self._streams = {**self._streams, sensor: stream}
        before = stream.packets
        stream.add(batch, rows)
        if stream.packets and not before:
            self._introduce(sensor)

    def reset(self) -> None:
        """Forget incomplete scans."""
        for stream in self._streams.values():
            stream.reset()

    def losses(self) -> Mapping[str, Losses]:
        """Counts by sensor, of those with data packets."""
        return {name: stream.losses for name, stream in self._streams.items() if stream.losses.packets}


def address_text(number: int) -> str:
    """IPv4 address of a number."""
    return str(IPv4Address(number))
