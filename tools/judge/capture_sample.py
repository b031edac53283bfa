"""Bounded sample of a capture: the statistics of all its packets, and stretches of neighbouring packets spread over the whole of it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hilsim.capture.datagram import CapturedDatagram
from hilsim.errors import CaptureError
from hilsim.families.velodyne.comparison.blocks import PacketBlock, packet_block
from hilsim.families.velodyne.comparison.stream import StreamStatistics
from hilsim.families.velodyne.recognition import VelodyneKind
from hilsim.families.velodyne.stream import packet_run, stacked_packets
from hilsim.protocols.recognise import recognise
from hilsim.read.analysis.comparison.streams import gather

STRETCH_PACKETS = 48
"""Packets of a stretch: whole windows of 6, 12 and 24 packets."""
_MAX_STRETCHES = 96
_MIN_PACKETS = 12
_RATE_STEP_RPM = 60.0


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Settings that must be equal in the two captures of a pair, because a classifier would find a difference at once.

    Attributes:
        rate_rpm: Rotation rate in whole steps of 60 rpm, the steps of the sensors' own setting.
        return_mode: Return mode in words.
    """

    rate_rpm: int
    return_mode: str

    def __str__(self) -> str:
        return f"{self.rate_rpm} rpm {self.return_mode}"


@dataclass(frozen=True, kw_only=True)
class CaptureSample:
    """Sample of one sensor's stream.

    Attributes:
        name: Name of the capture.
        statistics: Statistics of all packets.
        stretches: Stretches of at most 48 neighbouring packets, in the order of the capture.
    """

    name: str
    statistics: StreamStatistics
    stretches: tuple[PacketBlock, ...]

    @property
    def setting(self) -> Setting:
        """Rate and return mode."""
        rate = _RATE_STEP_RPM * round(self.statistics.azimuth.rate_rpm / _RATE_STEP_RPM)
        return Setting(rate_rpm=int(rate), return_mode=self.statistics.return_mode.words)


class _Stretches:
    """Payloads in stretches; every second one is dropped whenever there are more than 96, so that they stay spread over the capture."""

    def __init__(self) -> None:
        self._kept: list[list[bytes]] = []
        self._current: list[bytes] = []
        self._stride = 1
        self._number = 0

    def add(self, payload: bytes) -> None:
        self._current.append(payload)
        if len(self._current) == STRETCH_PACKETS:
            self._close()

    def _close(self) -> None:
        if self._number % self._stride == 0:
            self._kept.append(self._current)
            if len(self._kept) > _MAX_STRETCHES:
                self._kept = self._kept[::2]
                self._stride *= 2
        self._number += 1
        self._current = []

    def take(self) -> list[list[bytes]]:
        """Give all stretches; the last one only if it holds 12 packets."""
        if len(self._current) >= _MIN_PACKETS:
            self._close()
        return self._kept


def sample_capture(datagrams: Iterable[CapturedDatagram], *, name: str) -> CaptureSample:
    """Read a capture of one sensor, in bounded memory.

    Args:
        datagrams: Datagrams in the order of their arrival.
        name: Name of the capture in errors and reports.

    Raises:
        CaptureError: as of ``hilsim.read.analysis.comparison.streams.gather``, and for a sensor of another family than Velodyne.
    """
    stretches = _Stretches()
    statistics = gather(_noted(datagrams, stretches), name=name)
    if not isinstance(statistics, StreamStatistics):
        raise CaptureError(
            f"{name}: the sensor must be a Velodyne, of which there are classifiers, got {statistics.kind} (hilsim compare A B compares them)"
        )
    blocks = (_block(payloads, statistics) for payloads in stretches.take())
    return CaptureSample(name=name, statistics=statistics, stretches=tuple(block for block in blocks if block is not None))


def _noted(datagrams: Iterable[CapturedDatagram], stretches: _Stretches) -> Iterator[CapturedDatagram]:
    for datagram in datagrams:
        if recognise(datagram.payload) is VelodyneKind.DATA:
            stretches.add(datagram.payload)
        yield datagram


def _block(payloads: list[bytes], statistics: StreamStatistics) -> PacketBlock | None:
    """Make a block of a stretch's packets of the judged mode; None if there are fewer than 12."""
    packets = stacked_packets(payloads)
    packets = packets[(packets["return_mode"] == statistics.return_mode) & (packets["product"] == statistics.product)]
    if len(packets) < _MIN_PACKETS:
        return None
    run = packet_run(packets, None)
    return packet_block(run, run.stamp_us * 1000, int(run.stamp_us[0]) * 1000, statistics.model, is_dual=statistics.dual is not None)
