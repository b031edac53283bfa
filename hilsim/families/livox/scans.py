"""Livox packets to points and to scans: the pattern has none, so a tenth of a second by the packets' stamps is one."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.schedule import packet_device_ns
from hilsim.families.livox.family import WINDOW_NS
from hilsim.families.livox.packets import own_clock_ns
from hilsim.families.livox.points import FURTHER_FIELDS, decode_livox
from hilsim.families.livox.protocol.points import stamp_of
from hilsim.families.livox.recognition import LivoxKind, recognise
from hilsim.read.analysis.decode import batch_of
from hilsim.read.scans.part import ScansPart, payload_of
from hilsim.read.scans.points import DECODED_DTYPE
from hilsim.read.scans.stream import SensorStream
from hilsim.read.scans.turns import Numbered
from hilsim.sensor.clock import rig_from_device

_BEGUN_NS = 1_000_000
"""Time up to which a window that begins a stream is whole."""


class Windows:
    """Tenths of a second by the points' times.

    Attributes:
        whole_from: First window that was seen from its beginning.
    """

    def __init__(self) -> None:
        self.whole_from = 0
        self._number = 0
        self._window: int | None = None

    def begin_again(self) -> None:
        """Continue with another window behind a gap of time."""
        if self._window is not None:
            self._number, self._window = self._number + 1, None

    def number(self, azimuth_cdeg: npt.NDArray[np.int64], packet: npt.NDArray[np.int64], points: npt.NDArray[Any]) -> Numbered:
        """Number the next packets and their points; arguments as in ``HeadTurns.number``, of which only the number of azimuths matters."""
        packet_turn = np.full(azimuth_cdeg.size, self._number)
        if not points.size:
            return Numbered(np.zeros(0, np.int64), packet_turn, self._number)
        window = points["time_ns"] // WINDOW_NS
        if self._window is None:
            self._window = int(window[0])
            self.whole_from = self._number + (int(points["time_ns"][0]) % WINDOW_NS > _BEGUN_NS)
        turn = self._number + np.cumsum(np.diff(window, prepend=self._window) != 0)
        first = np.unique(packet, return_index=True)
        packet_turn[first[0]] = turn[first[1]]
        self._number, self._window = int(turn[-1]), int(window[-1])
        return Numbered(turn, np.maximum.accumulate(packet_turn), self._number)


class LivoxDecoder:
    """Decoder of one sensor; see ``hilsim.read.scans.stream.StreamDecoder``."""

    dtype = np.dtype([*DECODED_DTYPE.descr, *FURTHER_FIELDS])
    is_sure = True

    def takes(self, _payload: bytes) -> bool:
        """Each point packet is decoded."""
        return True

    def points(self, payloads: Sequence[bytes]) -> npt.NDArray[Any]:
        """Points of consecutive packets."""
        return decode_livox(batch_of(payloads))

    def new_turns(self) -> Windows:
        """Tenths of a second."""
        return Windows()

    def stamps(self, payloads: Sequence[bytes]) -> tuple[npt.NDArray[np.int64], None]:
        """Stamps; there are no azimuths."""
        return np.array([stamp_of(payload) for payload in payloads], np.int64), None


def _serials(batch: DatagramArrays, rows: npt.NDArray[np.intp], _metadata: None) -> npt.NDArray[np.int64]:
    return np.array([0 if recognise(payload_of(batch, row)) is LivoxKind.POINTS else -1 for row in rows.tolist()], np.int64)


class _WindowStarts:
    """Finder of the windows of an emulated lidar by its stamps."""

    def __init__(self, lidar: LidarEmulator) -> None:
        self._lidar = lidar

    def find(self, first_packet: int, payloads: npt.NDArray[np.uint8]) -> list[int]:
        plan = self._lidar.at_packet(first_packet).plan
        begin_ns, end_ns = (int(packet_device_ns(plan, packet)) for packet in (first_packet, first_packet + len(payloads)))
        shown_ns, until_ns = (int(own_clock_ns(plan.clock, device_ns)) for device_ns in (begin_ns, end_ns))
        starts = range(-(-shown_ns // WINDOW_NS) * WINDOW_NS, until_ns, WINDOW_NS)
        device = (begin_ns + (start_ns - shown_ns) * (end_ns - begin_ns) // (until_ns - shown_ns) for start_ns in starts)
        return [int(rig_from_device(plan.clock, device_ns)) for device_ns in device]


PART = ScansPart(
    serials=_serials,
    serial=lambda _payload, _metadata: "",
    begin=lambda sensor, _first, publish, pose, _metadata: SensorStream(sensor, LivoxDecoder(), publish, pose),
    decoder=lambda _first, _where, _model, _metadata: LivoxDecoder(),
    starts=_WindowStarts,
    returns=lambda _payload: ("first",),
)
