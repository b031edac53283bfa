"""STDV packets of a Cepton-style sensor to points, and to scans of its image."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.schedule import first_sequence_of
from hilsim.families.cepton.points import decode_cepton
from hilsim.families.cepton.protocol.stdv import FRAME_PARITY, POINT_FLAGS_OFFSET, POINT_SIZE, STAMP_OFFSET, header_size, read_stdv_header
from hilsim.read.analysis.decode import batch_of
from hilsim.read.scans.part import ScansPart, payload_of
from hilsim.read.scans.points import DECODED_DTYPE
from hilsim.read.scans.stream import SensorStream
from hilsim.read.scans.turns import Numbered
from hilsim.sensor.clock import rig_from_device

_NAME = np.frombuffer(b"STDV", np.uint8)


class ImageScans:
    """Scans of an image, of which each has another parity than the one before.

    Attributes:
        whole_from: First scan that was seen from its beginning.
    """

    def __init__(self) -> None:
        self.whole_from = 1
        self._number = 0
        self._parity: int | None = None

    def begin_again(self) -> None:
        """Continue with another scan behind a gap of time."""
        self._number += 1
        self.whole_from = self._number + 1
        self._parity = None

    def number(self, azimuth_cdeg: npt.NDArray[np.int64], packet: npt.NDArray[np.int64], points: npt.NDArray[Any]) -> Numbered:
        """Number the next packets and their points; arguments as in ``HeadTurns.number``, of which only the number of azimuths matters."""
        count = azimuth_cdeg.size
        if not points.size:
            return Numbered(np.zeros(0, np.int64), np.full(count, self._number), self._number)
        parity = (points["flags"] & FRAME_PARITY).astype(np.int64)
        before = int(parity[0]) if self._parity is None else self._parity
        turn = self._number + np.cumsum(np.diff(parity, prepend=before) != 0)
        self._number, self._parity = int(turn[-1]), int(parity[-1])
        packet_turn = np.full(count, turn[0])
        packet_turn[packet[::-1]] = turn[::-1]  # the first point of each packet is written last
        return Numbered(turn, np.maximum.accumulate(packet_turn), self._number)


class CeptonDecoder:
    """Decoder of one sensor; see ``hilsim.read.scans.stream.StreamDecoder``."""

    dtype = DECODED_DTYPE
    is_sure = True

    def takes(self, _payload: bytes) -> bool:
        """Each STDV packet is decoded."""
        return True

    def points(self, payloads: Sequence[bytes]) -> npt.NDArray[Any]:
        """Points of consecutive STDV packets."""
        return decode_cepton(batch_of(payloads))

    def new_turns(self) -> ImageScans:
        """Scans of the image."""
        return ImageScans()

    def stamps(self, payloads: Sequence[bytes]) -> tuple[npt.NDArray[np.int64], None]:
        """Stamps; there are no azimuths."""
        return np.array([int.from_bytes(payload[STAMP_OFFSET : STAMP_OFFSET + 8], "little") * 1000 for payload in payloads], np.int64), None


def _serials(batch: DatagramArrays, rows: npt.NDArray[np.intp], _metadata: None) -> npt.NDArray[np.int64]:
    found = np.full(rows.size, -1, np.int64)
    sized = np.flatnonzero(batch.size[rows] >= _NAME.size)
    named = sized[(batch.data[batch.start[rows[sized], None] + np.arange(_NAME.size)] == _NAME).all(axis=1)] if sized.size else sized
    found[[place for place in named.tolist() if read_stdv_header(payload_of(batch, int(rows[place]))) is not None]] = 0
    return found


class _ImageStarts:
    """Finder of image scans, which begin with the first firing of another frame parity."""

    def __init__(self, lidar: LidarEmulator) -> None:
        self._plan = lidar.plan
        self._flags = slice(header_size(lidar.plan.own.header_version) + POINT_FLAGS_OFFSET, None, POINT_SIZE * lidar.plan.choice.size)
        self._before: int | None = None

    def find(self, first_packet: int, payloads: npt.NDArray[np.uint8]) -> list[int]:
        plan = self._plan
        parity = (payloads[:, self._flags] & FRAME_PARITY).reshape(-1)
        before = parity[0] if self._before is None else self._before
        self._before = int(parity[-1])
        channels = plan.firing_offset_ns.size
        found = []
        for firing in np.flatnonzero(np.diff(parity, prepend=np.uint8(before))).tolist():
            sequence = first_sequence_of(plan, first_packet) + firing // channels
            found.append(int(rig_from_device(plan.clock, sequence * plan.sequence_ns + int(plan.firing_offset_ns[firing % channels]))))
        return found


PART = ScansPart(
    serials=_serials,
    serial=lambda _payload, _metadata: "",
    begin=lambda sensor, _first, publish, pose, _metadata: SensorStream(sensor, CeptonDecoder(), publish, pose),
    decoder=lambda _first, _where, _model, _metadata: CeptonDecoder(),
    starts=_ImageStarts,
    returns=lambda _payload: ("strongest", "last"),
)
