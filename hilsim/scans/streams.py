"""Decoders of several sensors, by name."""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays
from hilsim.families.ouster.metadata_files import Identity, OusterMetadata
from hilsim.families.ouster.protocol.recognition import FORMS, is_lidar_packet
from hilsim.families.ouster.scans import OusterStream
from hilsim.limits import VIEWED_SENSORS
from hilsim.scans.losses import Losses
from hilsim.scans.stream import PoseOf, Publish, SensorStream, no_pose

_OUSTER_SIZES = np.array(sorted(FORMS))


class SensorStreams:
    """Decoders, which begin with their sensors' first packets.

    Attributes:
        ignored: Datagrams of sensors beyond the most that are decoded.
    """

    def __init__(self, publish: Publish, introduce: Callable[[str], None], pose: PoseOf = no_pose, metadata: OusterMetadata | None = None) -> None:
        """Create no decoder yet.

        Args:
            publish: Function that takes complete scans.
            introduce: Function that takes the name of each new sensor.
            pose: Function that gives poses of sensors.
            metadata: Metadata of Ouster sensors; None: there are none.
        """
        self.ignored = 0
        self._publish, self._introduce, self._pose = publish, introduce, pose
        self._metadata = metadata or OusterMetadata()
        self._streams: dict[str, SensorStream | OusterStream] = {}
        self._names: dict[tuple[str, int], str] = {}

    def add(self, sensor: str, batch: DatagramArrays, rows: npt.NDArray[np.intp]) -> None:
        """Decode the next datagrams of a sensor; a second Ouster sensor behind one address is named by address and serial number.

        Raises:
            CaptureError: metadata of Ouster sensors beside a capture are invalid.
        """
        by_size = np.isin(batch.size[rows], _OUSTER_SIZES)
        if by_size.any():
            rows = self._add_ouster(sensor, batch, rows, by_size)
        if not rows.size:
            return
        stream = self._streams.get(sensor)
        if stream is None:
            if len(self._streams) >= VIEWED_SENSORS.bound:
                self.ignored += rows.size
                return
            stream = SensorStream(sensor, self._publish, self._pose)
            self._streams = {**self._streams, sensor: stream}
        self._feed(stream, batch, rows)

    def _feed(self, stream: SensorStream | OusterStream, batch: DatagramArrays, rows: npt.NDArray[np.intp]) -> None:
        before = stream.packets
        stream.add(batch, rows)
        if stream.packets and not before:
            self._introduce(stream.sensor)

    def _add_ouster(self, sensor: str, batch: DatagramArrays, rows: npt.NDArray[np.intp], by_size: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
        """Decode Ouster's lidar packets; returns the other rows."""
        found: dict[int, list[int]] = {}
        firsts: dict[int, tuple[Identity, bytes]] = {}
        is_ouster = np.zeros(rows.size, np.bool_)
        for place in np.flatnonzero(by_size).tolist():
            row = int(rows[place])
            payload = batch.data[batch.start[row] : batch.start[row] + batch.size[row]].tobytes()
            if is_lidar_packet(payload):
                identity = self._metadata.identify(payload)
                is_ouster[place] = True
                found.setdefault(identity.serial, []).append(row)
                firsts.setdefault(identity.serial, (identity, payload))
        for serial, own in found.items():
            stream = self._ouster(sensor, serial, *firsts[serial])
            if stream is None:
                self.ignored += len(own)
            else:
                self._feed(stream, batch, np.array(own, np.intp))
        return rows[~is_ouster]

    def _ouster(self, sensor: str, serial: int, identity: Identity, first: bytes) -> OusterStream | None:
        """Decoder of one Ouster sensor; None beyond the most that are decoded."""
        name = self._names.get((sensor, serial))
        if name is None:
            if len(self._streams) >= VIEWED_SENSORS.bound:
                return None
            name = sensor if sensor not in self._streams else f"{sensor}-{serial}"
            self._names[sensor, serial] = name
            self._streams = {**self._streams, name: OusterStream(name, identity, first, self._publish, self._pose)}
        stream = self._streams[name]
        if isinstance(stream, OusterStream) and stream.metadata != identity.metadata:  # it was initialised anew, or its metadata have come
            stream = OusterStream(name, identity, first, self._publish, self._pose)
            self._streams = {**self._streams, name: stream}
        return stream if isinstance(stream, OusterStream) else None

    def use_metadata(self, metadata: OusterMetadata) -> None:
        """Read Ouster packets by these metadata from now on."""
        self._metadata = metadata

    def reset(self) -> None:
        """Forget incomplete scans."""
        for stream in self._streams.values():
            stream.reset()

    def losses(self) -> Mapping[str, Losses]:
        """Counts by sensor, of those with data packets."""
        return {name: stream.losses for name, stream in self._streams.items() if stream.losses.packets}
