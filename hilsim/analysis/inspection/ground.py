"""The ground under an inspected sensor, from its first packets."""

import numpy as np

from hilsim.analysis.ground import Ground, Reason, fit_ground, points_of
from hilsim.capture.batches import DatagramArrays
from hilsim.families.cepton.points import decode_cepton
from hilsim.families.ouster.points import OusterDecoder, stacked_payloads
from hilsim.families.ouster.protocol.metadata import SensorMetadata
from hilsim.families.velodyne.points import decode_velodyne
from hilsim.families.velodyne.protocol.geometry import FiringGeometry
from hilsim.protocols.recognise import PacketKind

_MOST_BYTES = 600_000
"""Size of 500 Velodyne packets, with 192,000 points at most: the first 0.7 s of a VLP-16."""
_MOST_OUSTER_BYTES = 2_200_000
"""Size of a frame of 1024 columns, 128 channels and two returns."""
_KINDS = frozenset((PacketKind.VELODYNE_DATA, PacketKind.CEPTON_STDV, PacketKind.OUSTER_LIDAR))


class GroundSample:
    """The first packets of a flow, if they hold points."""

    def __init__(self, kind: PacketKind) -> None:
        self._kind = kind
        self._payloads: list[bytes] = []
        self._left_bytes = (_MOST_OUSTER_BYTES if kind is PacketKind.OUSTER_LIDAR else _MOST_BYTES) if kind in _KINDS else 0

    def add(self, payload: bytes) -> None:
        """Keep a payload, unless enough are kept."""
        if len(payload) <= self._left_bytes:
            self._payloads.append(payload)
            self._left_bytes -= len(payload)
        else:
            self._left_bytes = 0

    def ground(self, geometry: FiringGeometry | None, metadata: SensorMetadata | None = None) -> Ground | Reason | None:
        """The ground; None for packets without points that can be decoded.

        Args:
            geometry: Lasers of a Velodyne's model; None where the model is not known.
            metadata: Metadata of an Ouster sensor; None where they are not known.
        """
        if self._kind not in _KINDS:
            return None
        if self._kind is PacketKind.OUSTER_LIDAR:
            if metadata is None:
                return Reason(reason="the metadata must be known for its beams' angles")
            return fit_ground(points_of(OusterDecoder(metadata).points(stacked_payloads(self._payloads))))
        if self._kind is PacketKind.VELODYNE_DATA and geometry is None:
            return Reason(reason="the model must be known for its lasers' angles")
        size = np.array([len(payload) for payload in self._payloads], dtype=np.int64)
        none = np.zeros(size.size, dtype=np.int64)
        batch = DatagramArrays(np.frombuffer(b"".join(self._payloads), dtype=np.uint8), np.cumsum(size) - size, size, none, none)
        return fit_ground(points_of(decode_cepton(batch) if geometry is None else decode_velodyne(batch, geometry)))
