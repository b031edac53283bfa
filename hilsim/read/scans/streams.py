"""Decoders of several sensors, by name."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays
from hilsim.capture.metadata import NONE
from hilsim.limits import VIEWED_SENSORS
from hilsim.read.scans.losses import Losses
from hilsim.read.scans.part import ScansPart, Stream, payload_of
from hilsim.read.scans.scan import PoseOf, Publish, no_pose
from hilsim.registry import family_parts


class SensorStreams:
    """Decoders, which begin with their sensors' first packets."""

    def __init__(self, publish: Publish, introduce: Callable[[str], None], pose: PoseOf = no_pose, metadata: Mapping[str, Any] = NONE) -> None:
        """Create no decoder yet.

        Args:
            publish: Function that takes complete scans.
            introduce: Function that takes the name of each new sensor.
            pose: Function that gives poses of sensors.
            metadata: Metadata of sensors by family.
        """
        self._ignored = 0
        self._publish, self._introduce, self._pose, self._metadata = publish, introduce, pose, metadata
        self._parts: dict[str, ScansPart] = {family: module.PART for family, module in family_parts("scans").items()}
        self._streams: dict[str, Stream] = {}
        self._names: dict[tuple[str, str, int], str] = {}
        self._others: dict[str, int] = {}
        """Packets of another kind by sensor, before its first packet of points."""

    def add(self, sensor: str, batch: DatagramArrays, rows: npt.NDArray[np.intp]) -> None:
        """Decode the next datagrams of a sensor; a second sensor behind one address and port is named by address and serial number.

        Raises:
            CaptureError: metadata beside a capture are invalid.
        """
        for family, part in self._parts.items():
            if not rows.size:
                return
            serials = part.serials(batch, rows, self._metadata.get(family))
            for serial in np.unique(serials[serials >= 0]).tolist():
                own = rows[serials == serial]
                stream = self._stream(sensor, family, serial, payload_of(batch, int(own[0])))
                if stream is None:
                    self._ignored += own.size
                else:
                    self._feed(stream, batch, own)
            rows = rows[serials < 0]
        if sensor in self._streams:
            self._streams[sensor].losses.other_packets += rows.size
        else:
            self._others[sensor] = self._others.get(sensor, 0) + rows.size

    def _feed(self, stream: Stream, batch: DatagramArrays, rows: npt.NDArray[np.intp]) -> None:
        before = stream.packets
        stream.add(batch, rows)
        if stream.packets and not before:
            self._introduce(stream.sensor)

    def _stream(self, sensor: str, family: str, serial: int, payload: bytes) -> Stream | None:
        """Decoder of one sensor by a packet; None beyond the most that are decoded."""
        name = self._names.get((sensor, family, serial))
        if name is None and len(self._streams) >= VIEWED_SENSORS.bound:
            return None
        metadata = self._metadata.get(family)
        if name is None:
            name = self._names[sensor, family, serial] = sensor if sensor not in self._streams else f"{sensor}-{serial}"
        if name not in self._streams or not self._streams[name].is_by(payload, metadata):
            self._streams = {**self._streams, name: self._parts[family].begin(name, payload, self._publish, self._pose, metadata)}
            self._streams[name].losses.other_packets += self._others.pop(name, 0)
        return self._streams[name]

    def use_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Read packets by these metadata, by family, from now on."""
        self._metadata = metadata

    def reset(self) -> None:
        """Forget incomplete scans."""
        for stream in self._streams.values():
            stream.reset()

    def losses(self) -> Mapping[str, Losses]:
        """Counts by sensor, of those with data packets."""
        return {name: stream.losses for name, stream in self._streams.items() if stream.losses.packets}

    def remarks(self) -> list[str]:
        """Sentences on what is not in the scans."""
        cut = {name: losses.cut_scans for name, losses in self.losses().items() if losses.cut_scans}
        found = [f"{name}: {count} turns or frames that are not whole, as at an end of a capture, are left out" for name, count in cut.items()]
        if self._ignored:
            found.append(f"{self._ignored} packets of further sensors are left out: at most {VIEWED_SENSORS.bound} sensors are decoded")
        return found
