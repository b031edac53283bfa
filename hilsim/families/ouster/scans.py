"""Lidar packets of one Ouster sensor to scans: a frame is a scan."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import structlog

from hilsim.capture.batches import DatagramArrays
from hilsim.errors import CaptureError
from hilsim.families.ouster.metadata_files import Identity, required_metadata
from hilsim.families.ouster.points import OusterDecoder, stacked_payloads
from hilsim.families.ouster.stream import PacketOrder, cut_head, read_heads, sent_packets
from hilsim.scans.losses import Losses
from hilsim.scans.points import DECODED_DTYPE, public_points
from hilsim.scans.scan import Scan, ScanPackets
from hilsim.scans.stream import PoseOf, Publish, no_pose

log = structlog.get_logger("hilsim")

_GAP_NS = 1_000_000_000
"""Time without a packet behind which a frame is given up: longer than a turn of any mode."""


class _Held(NamedTuple):
    """Packet of a frame that is not complete.

    Attributes:
        payload: The packet.
        stamp_ns: UTC at which it was sent.
    """

    payload: bytes
    stamp_ns: int


class OusterStream:
    """Decoder of one sensor. One thread calls it.

    Attributes:
        sensor: Name of the sensor.
        losses: Counts of what is missing.
        packets: Number of lidar packets decoded so far.
        metadata: Metadata of the sensor; None if there are none.
    """

    def __init__(self, sensor: str, identity: Identity, first: bytes, publish: Publish, pose: PoseOf = no_pose) -> None:
        """Create a decoder of packets like the ``first``; without metadata a warning is logged, and its packets are counted only."""
        self.sensor, self.metadata = sensor, identity.metadata
        self.losses = Losses()
        self.packets = 0
        self._publish, self._pose = publish, pose
        self._decoder: OusterDecoder | None = None
        try:
            self._decoder = OusterDecoder(required_metadata(identity, first, sensor))
        except CaptureError as error:
            log.warning("scans.metadata_missing", sensor=sensor, reason=str(error))
        self._order = PacketOrder(identity.header)
        sent = sent_packets(identity.metadata)
        self._sent = np.zeros(1, np.int64) if sent is None else sent
        self._frame: int | None = None
        self._is_whole = False
        self._held: list[_Held] = []
        self._scans = 0

    def add(self, batch: DatagramArrays, rows: npt.NDArray[np.intp]) -> None:
        """Decode the sensor's next lidar packets, those of some rows of a batch."""
        if self._decoder is None:
            self.losses.other_packets += rows.size
            return
        start, size = batch.start[rows].tolist(), batch.size[rows].tolist()
        payloads = [batch.data[at : at + length].tobytes() for at, length in zip(start, size, strict=True)]
        fitting = [number for number, payload in enumerate(payloads) if len(payload) == self._decoder.layout.size]
        self.losses.other_packets += len(payloads) - len(fitting)
        if not fitting:
            return
        run = self._order.look(read_heads([cut_head(payloads[number]) for number in fitting], self._decoder.sensor.profile.header), lambda row: row)
        lost = self._order.lost(self._sent)
        self.losses.packets, self.losses.lost, self.losses.gaps = self.losses.packets + len(fitting), lost.packets, lost.runs
        stamps = batch.host_stamp_ns[rows].tolist()
        columns = run.frame.tolist(), run.packet.tolist(), run.is_break.tolist()
        for number, frame, packet, is_break in zip(fitting, *columns, strict=True):
            self._take(_Held(payloads[number], stamps[number]), frame, packet, is_break=is_break)

    def reset(self) -> None:
        """Forget the packets of an incomplete frame, as after a seek."""
        self._give_up()

    def _take(self, held: _Held, frame: int, packet: int, *, is_break: bool) -> None:
        """Add one packet to its frame, which it may complete."""
        is_apart = bool(self._held) and not 0 <= held.stamp_ns - self._held[-1].stamp_ns <= _GAP_NS
        if is_break or is_apart:
            self._give_up()
        if self._frame is not None and frame < self._frame:
            self.losses.other_packets += 1  # its frame was published before
            return
        if frame != self._frame:
            self._give()
            self._is_whole = packet == self._sent[0] or self._frame is not None
            self._frame = frame
        self._held.append(held)
        self.packets += 1
        if packet == self._sent[-1] and len(self._held) >= self._sent.size:
            self._give()

    def _give_up(self) -> None:
        if self._held:
            self.losses.cut_scans += 1
        self._held.clear()
        self._frame = None

    def _give(self) -> None:
        """Publish the frame that is held, unless it was not seen from its beginning."""
        held, decoder = self._held, self._decoder
        self._held = []
        if not held or decoder is None:
            return
        if not self._is_whole:
            self.losses.cut_scans += 1
            return
        first = self.packets - len(held)
        points = decoder.points(stacked_payloads([each.payload for each in held]))
        points["packet"] += first
        stamp_ns = np.array([each.stamp_ns for each in held], np.int64)
        position_m, wxyz = self._pose(self.sensor, int((stamp_ns[0] + stamp_ns[-1]) // 2))
        number, self._scans = self._scans, self._scans + 1
        scan = Scan(
            sensor=self.sensor,
            number=number,
            stamp_ns=int(stamp_ns[0]),
            points=public_points(points, DECODED_DTYPE),
            position_m=position_m,
            wxyz=wxyz,
        )
        self._publish(scan, ScanPackets(first, [each.payload for each in held], stamp_ns))
