"""Packets of one sensor to scans: recognition, decoding, division into turns."""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import structlog

from hilsim.analysis.decode import POINT_DTYPE
from hilsim.capture.batches import DatagramArrays
from hilsim.errors import CaptureError
from hilsim.families.cepton.points import decode_cepton
from hilsim.families.velodyne.points import decode_velodyne, geometry_of_packets
from hilsim.families.velodyne.protocol.data import DATA_PACKET_DTYPE, DATA_PACKET_SIZE
from hilsim.protocols.recognise import PacketKind, recognise
from hilsim.scans.losses import Losses
from hilsim.scans.points import DECODED_DTYPE, public_points
from hilsim.scans.scan import IDENTITY_WXYZ, Scan, ScanPackets
from hilsim.scans.turns import HeadTurns, ImageScans

if TYPE_CHECKING:
    from hilsim.families.velodyne.protocol.geometry import FiringGeometry

log = structlog.get_logger("hilsim")

_FEWEST_PACKETS = 8
"""Packets by whose times a model is recognised."""
_GIVEN_UP_PACKETS = 400
_LONGEST_TURN_NS = 1_000_000_000
"""A scan ends by then, also where the head does not turn."""
_GAP_NS = 300_000_000
"""Time without a packet behind which another turn begins: longer than a turn at 300 rpm."""
_FLAGS = (0xEE, 0xDD, 0xCC, 0xBB)
_STDV = np.frombuffer(b"STDV", np.uint8)
_HOUR_NS = 3_600_000_000_000
_NEVER = 1 << 62

PoseOf = Callable[[str, int], tuple[tuple[float, float, float], tuple[float, float, float, float]]]
"""Function that gives the position and orientation of a sensor at a UTC instant."""
Publish = Callable[[Scan, ScanPackets], None]
"""Function that takes the next scan of a sensor."""


def no_pose(_sensor: str, _stamp_ns: int) -> tuple[tuple[float, float, float], tuple[float, float, float, float]]:
    """Pose of a sensor of which none is known."""
    return (0.0, 0.0, 0.0), IDENTITY_WXYZ


class _Held(NamedTuple):
    """Decoded packets whose scans are not complete."""

    points: npt.NDArray[Any]
    turn: npt.NDArray[np.int64]


class SensorStream:
    """Decoder of one sensor. One thread calls it.

    Attributes:
        sensor: Name of the sensor.
        losses: Counts of what is missing.
        packets: Number of data packets decoded so far.
    """

    def __init__(self, sensor: str, publish: Publish, pose: PoseOf = no_pose) -> None:
        """Create a decoder for ``sensor`` that gives complete scans to ``publish``, with poses by ``pose``."""
        self.sensor = sensor
        self.losses = Losses()
        self.packets = 0
        self._publish, self._pose = publish, pose
        self._is_velodyne: bool | None = None
        self._geometry: FiringGeometry | None = None
        self._waiting: list[tuple[bytes, int]] = []
        self._before: tuple[bytes, int] | None = None
        self._turns: HeadTurns | ImageScans = HeadTurns()
        self._held = _Held(np.empty(0, POINT_DTYPE), np.empty(0, np.int64))
        self._payloads: deque[tuple[bytes, int, int]] = deque()
        """Payload, UTC of sending and turn of the packets of incomplete scans."""
        self._first = 0
        self._scans = 0
        self._is_given_up = False

    def add(self, batch: DatagramArrays, chosen: npt.NDArray[np.intp]) -> None:
        """Decode the sensor's next datagrams, those of some rows of a batch."""
        rows = chosen[self._is_data(batch, chosen)]
        self.losses.other_packets += chosen.size - rows.size
        start, size = batch.start[rows].tolist(), batch.size[rows].tolist()
        payloads = [batch.data[at : at + length].tobytes() for at, length in zip(start, size, strict=True)]
        self._waiting += zip(payloads, batch.host_stamp_ns[rows].tolist(), strict=True)
        if self._waiting and (self._geometry is not None or self._is_velodyne is False or self._knows_model()):
            some, self._waiting = self._waiting, []
            for part in _parts(some, None if self._before is None else self._before[1]):
                self._decode(part)

    def reset(self) -> None:
        """Forget the packets of incomplete scans, as after a seek."""
        self._waiting.clear()
        self._begin_again()

    def _is_data(self, batch: DatagramArrays, chosen: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Whether each datagram is a data packet of the stream's family; the first data packet determines that."""
        size, start = batch.size[chosen], batch.start[chosen]
        enough = size >= _STDV.size
        head = batch.data[np.where(enough, start, 0)[:, None] + np.arange(4)] if batch.data.size >= 4 else np.zeros((size.size, 4), np.uint8)
        velodyne = (size == DATA_PACKET_SIZE) & (head[:, 0] == 0xFF) & np.isin(head[:, 1], _FLAGS)
        cepton = enough & (head == _STDV).all(axis=1)
        for row in np.flatnonzero(velodyne | cepton).tolist() if self._is_velodyne is None else ():
            kind = recognise(batch.data[start[row] : start[row] + size[row]].tobytes())
            if kind in {PacketKind.VELODYNE_DATA, PacketKind.CEPTON_STDV}:
                self._is_velodyne = kind is PacketKind.VELODYNE_DATA
                self._turns = HeadTurns() if self._is_velodyne else ImageScans()
                break
        else:
            if self._is_velodyne is None:
                return np.zeros(size.size, np.bool_)
        return np.asarray(velodyne if self._is_velodyne else cepton)

    def _knows_model(self) -> bool:
        """Recognise the model of a Velodyne, when there are enough packets."""
        if len(self._waiting) < _FEWEST_PACKETS or self._is_given_up:
            self._drop_unknown()
            return False
        packets = np.frombuffer(b"".join(payload for payload, _ in self._waiting), DATA_PACKET_DTYPE)
        try:
            self._geometry = geometry_of_packets(packets)
        except CaptureError as error:
            if len(self._waiting) >= _GIVEN_UP_PACKETS:
                self._is_given_up = True
                log.warning("scans.model_unknown", sensor=self.sensor, reason=str(error))
                self._drop_unknown()
            return False
        return True

    def _drop_unknown(self) -> None:
        if self._is_given_up:
            self.losses.other_packets += len(self._waiting)
            self._waiting.clear()

    def _decode(self, some: list[tuple[bytes, int]]) -> None:
        """Decode packets without a gap of time between them."""
        if self._before is not None and not 0 <= some[0][1] - self._before[1] <= _GAP_NS:
            self._begin_again()
        leading = [] if self._before is None else [self._before]
        payloads = [payload for payload, _ in (*leading, *some)]
        batch = _joined(payloads)
        decoded = decode_cepton(batch) if self._geometry is None else decode_velodyne(batch, self._geometry)
        begin = int(np.searchsorted(decoded["packet"], len(leading)))  # they come packet by packet
        decoded = decoded[begin:]
        packet = decoded["packet"].astype(np.int64) - len(leading)
        azimuth = self._count(payloads, len(leading))
        numbered = self._turns.number(azimuth, packet, decoded)
        decoded["packet"] = packet + self.packets
        self._before = some[-1]
        self.packets += len(some)
        self._held = _Held(np.concatenate([self._held.points, decoded]), np.concatenate([self._held.turn, numbered.point_turn]))
        self._payloads.extend((payload, stamp_ns, turn) for (payload, stamp_ns), turn in zip(some, numbered.packet_turn.tolist(), strict=True))
        self._give(numbered.complete)
        if self._payloads and self._payloads[-1][1] - self._payloads[0][1] > _LONGEST_TURN_NS:
            self._turns.whole_from = min(self._turns.whole_from, self._payloads[0][2])
            self._give(self._payloads[-1][2] + 1)
            self._begin_again()

    def _count(self, payloads: list[bytes], leading: int) -> npt.NDArray[np.int64]:
        """Count missing packets; returns the first azimuth of each new packet."""
        self.losses.packets += len(payloads) - leading
        if self._geometry is None:
            stamp_ns = np.array([int.from_bytes(payload[8:16], "little") * 1000 for payload in payloads], np.int64)
            self.losses.count(stamp_ns, None)
            return np.zeros(len(payloads) - leading, np.int64)
        packets = np.frombuffer(b"".join(payloads), DATA_PACKET_DTYPE)
        azimuth = packets["blocks"]["azimuth"][:, 0].astype(np.int64)
        self.losses.count(packets["timestamp"].astype(np.int64) * 1000, azimuth)
        return azimuth[leading:]

    def _give(self, complete: int) -> None:
        """Publish the scans before a turn, and remove them from what is held."""
        held, turns = self._held
        if (turns[1:] < turns[:-1]).any():  # lasers of one firing look into two turns
            order = np.argsort(turns, kind="stable")
            held, turns = held[order], turns[order]
        packet = held["packet"].astype(np.int64)
        needed_from = np.append(np.minimum.accumulate(packet[::-1])[::-1], _NEVER)
        given = 0
        while self._payloads and (turn := min(self._payloads[0][2], int(turns[given]) if given < turns.size else _NEVER)) < complete:
            until = int(np.searchsorted(turns, turn, side="right"))
            points, given = held[given:until], until
            begin = self._first
            last = max((at for at, packet in enumerate(self._payloads) if packet[2] <= turn), default=0)
            if points.size:
                begin = int(points["packet"].min())
                last = max(last, int(points["packet"].max()) - self._first)
            packets = [self._payloads[at] for at in range(max(begin - self._first, 0), min(last + 1, len(self._payloads)))]
            if turn >= self._turns.whole_from and packets:
                self._publish_scan(points, begin, packets)
            else:
                self.losses.cut_scans += 1
            while self._payloads and self._payloads[0][2] <= turn and self._first < needed_from[given]:
                self._payloads.popleft()
                self._first += 1
            if self._payloads and self._payloads[0][2] <= turn:  # it has points of the next turn
                payload, stamp_ns, _ = self._payloads[0]
                self._payloads[0] = (payload, stamp_ns, turn + 1)
        self._held = _Held(held[given:], turns[given:])

    def _publish_scan(self, decoded: npt.NDArray[Any], begin: int, packets: list[tuple[bytes, int, int]]) -> None:
        stamp_ns = np.array([stamp for _, stamp, _ in packets], np.int64)
        position_m, wxyz = self._pose(self.sensor, int((stamp_ns[0] + stamp_ns[-1]) // 2))
        scan = Scan(
            sensor=self.sensor,
            number=self._scans,
            stamp_ns=int(stamp_ns[0]),
            points=public_points(decoded, DECODED_DTYPE),
            position_m=position_m,
            wxyz=wxyz,
        )
        self._scans += 1
        self._publish(scan, ScanPackets(begin, [payload for payload, _, _ in packets], stamp_ns))

    def _begin_again(self) -> None:
        if self._payloads:
            self.losses.cut_scans += 1
        self._turns.begin_again()
        self._held = _Held(np.empty(0, POINT_DTYPE), np.empty(0, np.int64))
        self._payloads.clear()
        self._first = self.packets
        self._before = None


def _parts(packets: list[tuple[bytes, int]], before_ns: int | None) -> list[list[tuple[bytes, int]]]:
    """Divide packets where there is a gap of time."""
    stamp_ns = np.array([stamp for _, stamp in packets], np.int64)
    step = np.diff(stamp_ns, prepend=stamp_ns[0] if before_ns is None else before_ns)
    cuts = [place for place in np.flatnonzero((step > _GAP_NS) | (step < 0)).tolist() if place > 0]
    return [packets[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(packets)], strict=True)]


def _joined(payloads: list[bytes]) -> DatagramArrays:
    size = np.array([len(payload) for payload in payloads], np.int64)
    none = np.zeros(size.size, np.int64)
    return DatagramArrays(np.frombuffer(b"".join(payloads), np.uint8), np.cumsum(size) - size, size, none, none)
