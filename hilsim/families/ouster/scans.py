"""Lidar packets of one Ouster sensor to scans: a frame is a scan."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import structlog

from hilsim.capture.batches import DatagramArrays
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.schedule import first_sequence_of
from hilsim.errors import CaptureError
from hilsim.families.ouster.metadata_files import OusterMetadata, required_metadata
from hilsim.families.ouster.points import OusterDecoder, stacked_payloads
from hilsim.families.ouster.protocol.recognition import FORMS, is_lidar_packet
from hilsim.families.ouster.stream import PacketOrder, cut_head, read_heads, sent_packets
from hilsim.read.scans.losses import Losses
from hilsim.read.scans.part import ScansPart, payload_of
from hilsim.read.scans.points import DECODED_DTYPE, public_points
from hilsim.read.scans.scan import PoseOf, Publish, Scan, ScanPackets
from hilsim.sensor.clock import rig_from_device

log = structlog.get_logger("hilsim")


DECODED_OUSTER_DTYPE = np.dtype([*DECODED_DTYPE.descr, ("signal", "<u2"), ("near_ir", "<u2"), ("column", "<u2")])
"""A point of ``decode`` of an Ouster sensor: as above, and ``signal`` and ``near_ir`` in photons (0 in profiles without) and ``column``, the measurement id.
``intensity`` is the reflectivity; ``return`` is 0 for the first and 1 for the second return of the sensor's ``return_order``."""
_SIZES = np.array(sorted(FORMS))
_NO_METADATA = OusterMetadata()
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

    def __init__(self, sensor: str, first: bytes, publish: Publish, pose: PoseOf, metadata: OusterMetadata) -> None:
        """Create a decoder of packets like the ``first``; without metadata a warning is logged, and its packets are counted only."""
        identity = metadata.identify(first)
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
        payloads = [payload_of(batch, row) for row in rows.tolist()]
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

    def is_by(self, payload: bytes, metadata: OusterMetadata | None) -> bool:
        """Whether the sensor has the same metadata still: not when it was initialised anew, or its metadata have come."""
        return self.metadata == (metadata or _NO_METADATA).identify(payload).metadata

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


class _Decoder:
    """Decoder of one sensor; see ``hilsim.read.scans.part.PointDecoder``."""

    dtype = DECODED_OUSTER_DTYPE

    def __init__(self, first: bytes, where: str, metadata: OusterMetadata) -> None:
        self._decoder = OusterDecoder(required_metadata(metadata.identify(first), first, where))

    def takes(self, payload: bytes) -> bool:
        return len(payload) == self._decoder.layout.size

    def points(self, payloads: Sequence[bytes]) -> npt.NDArray[Any]:
        return self._decoder.points(stacked_payloads(payloads))


def _serials(batch: DatagramArrays, rows: npt.NDArray[np.intp], metadata: OusterMetadata | None) -> npt.NDArray[np.int64]:
    found = np.full(rows.size, -1, np.int64)
    for place in np.flatnonzero(np.isin(batch.size[rows], _SIZES)).tolist():
        payload = payload_of(batch, int(rows[place]))
        if is_lidar_packet(payload):
            found[place] = (metadata or _NO_METADATA).identify(payload).serial
    return found


class _FrameStarts:
    """Finder of an Ouster's frames, each of which begins with the first packet of a turn that is sent."""

    def __init__(self, lidar: LidarEmulator) -> None:
        self._lidar = lidar

    def find(self, first_packet: int, payloads: npt.NDArray[np.uint8]) -> list[int]:
        found = []
        for packet in range(first_packet, first_packet + len(payloads)):
            plan = self._lidar.at_packet(packet).plan
            first = int(first_sequence_of(plan, packet))
            within = (first - plan.own.frame_sequence) % plan.own.columns_per_frame
            if within == plan.own.slots[0] * plan.sequences_per_packet:
                found.append(int(rig_from_device(plan.clock, first * plan.sequence_ns)))
        return found


PART = ScansPart(
    serials=_serials,
    serial=lambda payload, metadata: str((metadata or _NO_METADATA).identify(payload).serial),
    begin=lambda sensor, first, publish, pose, metadata: OusterStream(sensor, first, publish, pose, metadata or _NO_METADATA),
    decoder=lambda first, where, _model, metadata: _Decoder(first, where, metadata or _NO_METADATA),
    starts=_FrameStarts,
    returns=lambda _payload: ("strongest", "second"),
)
