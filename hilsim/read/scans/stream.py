"""Packets of one sensor to scans: recognition, decoding, division into turns."""

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import structlog

from hilsim.capture.batches import DatagramArrays
from hilsim.errors import CaptureError
from hilsim.read.analysis.decode import POINT_DTYPE
from hilsim.read.scans.losses import Losses
from hilsim.read.scans.part import PointDecoder, payload_of
from hilsim.read.scans.points import DECODED_DTYPE, further_fields, public_points
from hilsim.read.scans.scan import PoseOf, Publish, Scan, ScanPackets, no_pose
from hilsim.read.scans.turns import Numbered

log = structlog.get_logger("hilsim")

_MIN_PACKETS = 8
"""Packets by whose times a model is recognised."""
_GIVEN_UP_PACKETS = 400
_LONGEST_TURN_NS = 1_000_000_000
"""A scan ends by then, also where the head does not turn."""
_GAP_NS = 300_000_000
"""Time without a packet behind which another turn begins: longer than a turn at 300 rpm."""
_NEVER = 1 << 62


class Turns(Protocol):
    """Number of the scan of each point.

    Attributes:
        whole_from: First scan that was seen from its beginning.
    """

    whole_from: int

    def begin_again(self) -> None:
        """Continue with another scan behind a gap of time."""

    def number(self, azimuth_cdeg: npt.NDArray[np.int64], packet: npt.NDArray[np.int64], points: npt.NDArray[Any]) -> Numbered:
        """Number the next packets and their points; arguments as in ``HeadTurns.number``."""


class StreamDecoder(PointDecoder, Protocol):
    """Decoder of the packets of a sensor whose scans are divided by their points."""

    @property
    def is_sure(self) -> bool:
        """Whether the model that sends the packets is known."""

    def new_turns(self) -> Turns:
        """What numbers the scans of the sensor."""

    def stamps(self, payloads: Sequence[bytes]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64] | None]:
        """Stamps of packets, ``int64[n]`` in nanoseconds, and the azimuth of each one's beginning, 0.01 degrees; None without a head that turns."""


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

    def __init__(self, sensor: str, decoder: StreamDecoder, publish: Publish, pose: PoseOf = no_pose) -> None:
        """Give complete scans of ``sensor`` to ``publish``, with poses by ``pose``."""
        self.sensor = sensor
        self.losses = Losses()
        self.packets = 0
        self._decoder, self._publish, self._pose = decoder, publish, pose
        self._waiting: list[tuple[bytes, int]] = []
        self._before: tuple[bytes, int] | None = None
        self._turns = decoder.new_turns()
        self._held = _Held(np.empty(0, POINT_DTYPE), np.empty(0, np.int64))
        self._payloads: deque[tuple[bytes, int, int]] = deque()
        """Payload, UTC of sending and turn of the packets of incomplete scans."""
        self._first = 0
        self._scans = 0
        self._is_given_up = False

    def add(self, batch: DatagramArrays, rows: npt.NDArray[np.intp]) -> None:
        """Decode the sensor's next packets of points, those of some rows of a batch."""
        self._waiting += zip([payload_of(batch, row) for row in rows.tolist()], batch.host_stamp_ns[rows].tolist(), strict=True)
        if self._waiting and (self._decoder.is_sure or self._knows_model()):
            some, self._waiting = self._waiting, []
            for part in _parts(some, None if self._before is None else self._before[1]):
                self._decode(part)

    def is_by(self, _payload: bytes, _metadata: Any) -> bool:
        """Any packet of the sensor is decoded here."""
        return True

    def reset(self) -> None:
        """Forget the packets of incomplete scans, as after a seek."""
        self._waiting.clear()
        self._begin_again()

    def _knows_model(self) -> bool:
        """Recognise the model, when there are enough packets."""
        if len(self._waiting) < _MIN_PACKETS or self._is_given_up:
            self._drop_unknown()
            return False
        try:
            self._decoder.points([payload for payload, _ in self._waiting])
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
        decoded = self._decoder.points(payloads)
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
        stamp_ns, azimuth = self._decoder.stamps(payloads)
        self.losses.count(stamp_ns, azimuth)
        return np.zeros(len(payloads) - leading, np.int64) if azimuth is None else azimuth[leading:]

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
            further=further_fields(decoded, self._decoder.dtype),
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
