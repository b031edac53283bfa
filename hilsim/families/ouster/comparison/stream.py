"""All statistics of one Ouster sensor's stream, gathered packet by packet in memory that does not grow with the stream."""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from hilsim.analysis.comparison.noise import NoiseStatistics
from hilsim.analysis.comparison.spacing import SpacingStatistics
from hilsim.analysis.comparison.stream import FEWEST_PACKETS, check_sensor
from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.sensor_names import SensorNames
from hilsim.errors import CaptureError
from hilsim.families.ouster.comparison.blocks import LidarBlock
from hilsim.families.ouster.comparison.columns import ColumnStatistics, FrameStatistics
from hilsim.families.ouster.comparison.inertial import InertialStatistics
from hilsim.families.ouster.comparison.pixels import PairStatistics, PixelStatistics
from hilsim.families.ouster.metadata_files import OusterMetadata, required_metadata
from hilsim.families.ouster.points import stacked_payloads
from hilsim.families.ouster.protocol.headers import HeaderField
from hilsim.families.ouster.protocol.lidar import decode_lidar_packets, lidar_layout
from hilsim.families.ouster.protocol.metadata import SensorMetadata
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET
from hilsim.families.ouster.protocol.recognition import read_header_field
from hilsim.families.ouster.stream import Heads, PacketOrder, sent_packets
from hilsim.protocols.recognise import PacketKind, recognise

_BLOCK_PACKETS = 32  # packets a turn of the smallest mode: a block has no packet of two turns
_LINE = re.compile(r"OS-?\d-\d+")


class OusterStatistics:
    """Statistics of the packets of one Ouster sensor.

    Attributes:
        source: Address of the sensor.
        metadata: Metadata of the sensor.
        other_packets: Number of lidar packets of that address of another size or serial number, which are ignored.
        spacing: Statistics of arrival at the host.
        columns: Steps and grid of the columns' stamps.
        frames: Time from turn to turn.
        imu: Rate of the inertial measurements.
        returns: Ranges, reflectivity and photons.
        noise: Range noise of the first returns by reflectivity.
        dual: Pairs of returns; None in profiles with one.
    """

    def __init__(self, source: str, metadata: SensorMetadata) -> None:
        self.source = source
        self.metadata = metadata
        self.other_packets = 0
        self.spacing = SpacingStatistics()
        self.columns = ColumnStatistics(metadata)
        self.frames = FrameStatistics(metadata)
        self.imu = InertialStatistics()
        self.returns = PixelStatistics(metadata.profile)
        self.noise = NoiseStatistics(metadata.beams.channels, unit_mm=1)
        self.dual = PairStatistics() if metadata.profile.returns > 1 else None
        self._layout = lidar_layout(metadata.profile, metadata.beams.channels, metadata.footer)
        self._order = PacketOrder(metadata.profile.header)
        self._before: tuple[int, int, int] | None = None

    def __str__(self) -> str:
        kind = f"{self.line}, {self.metadata.lidar_profile}, {self.metadata.lidar_mode}, firmware {self.metadata.firmware}"
        return f"{kind}, {self.spacing.packets:,} packets in {self.spacing.duration_s:.3f} s"

    @property
    def line(self) -> str:
        """Product line and beams, such as ``OS-1-128``, without the letters of the order of the beams."""
        found = _LINE.match(self.metadata.prod_line)
        return found.group() if found else self.metadata.prod_line

    @property
    def missing_share(self) -> float:
        """Share of the window's columns that are missing, or have no pixels; NaN before any packet."""
        lost = self._order.lost(sent_packets(self.metadata)).packets * COLUMNS_PER_PACKET
        missing = lost + self.columns.without_pixels
        whole = missing + self.columns.present
        return missing / whole if whole else float("nan")

    def takes(self, payload: bytes) -> bool:
        """Whether a lidar packet is one of this sensor, by its size and serial number."""
        serial = read_header_field(payload, self.metadata.profile.header, HeaderField.SERIAL)
        return len(payload) == self._layout.size and serial in {0, int(self.metadata.serial)}

    def look(self, datagrams: list[CapturedDatagram]) -> None:
        """Add at most ``_BLOCK_PACKETS`` lidar packets of the sensor, in the order of their arrival.

        Raises:
            PacketError: a packet cannot be read.
        """
        packets = decode_lidar_packets(
            stacked_payloads([datagram.payload for datagram in datagrams]), self.metadata.profile, self._layout, checks_footer=False
        )
        run = self._order.look(Heads(packets.headers, packets.columns), lambda row: row)
        position = run.frame * (self.metadata.columns_per_frame // COLUMNS_PER_PACKET) + run.packet
        host_ns = np.array([datagram.host_stamp_ns for datagram in datagrams], np.int64)
        before = self._before or (int(position[0]), int(host_ns[0]), 0)
        block = LidarBlock(
            metadata=self.metadata,
            packets=packets,
            position=position,
            host_ns=host_ns,
            host_step_ns=np.diff(host_ns, prepend=before[1]),
            is_next=np.diff(position, prepend=before[0]) == 1,
            former_stamp_ns=before[2],
        )
        self._before = int(position[-1]), int(host_ns[-1]), int(block.stamp_ns[-1, -1])
        for topic in (self.spacing, self.columns, self.frames, self.returns, self.dual):
            if topic is not None:
                topic.look(block)
        is_valid, channels = block.is_valid.ravel(), packets.pixels.range_mm.shape[-1]
        ranges = packets.pixels.range_mm[:, 0].reshape(-1, channels) * is_valid[:, np.newaxis]
        self.noise.add(ranges, packets.pixels.reflectivity[:, 0].reshape(-1, channels), block.follows.ravel())

    def to_json(self) -> dict[str, Any]:
        """Plain values, with all distributions."""
        histograms = {
            "column_steps_us": self.columns.steps,
            "frame_durations_us": self.frames.durations,
            "spacing_us": self.spacing.gaps,
            "reflectivity": self.returns.reflectivity,
            "ranges_m": self.returns.ranges_m,
            "empty_signal": self.returns.empty_signal,
            "near_ir": self.returns.near_ir,
            "empty_near_ir": self.returns.empty_near_ir,
        }
        if self.dual is not None:
            histograms["dual_separations_m"] = self.dual.separations_m
        return {
            "sensor": self.source,
            "model": self.line,
            "profile": self.metadata.lidar_profile,
            "mode": self.metadata.lidar_mode,
            "firmware": str(self.metadata.firmware),
            "packets": self.spacing.packets,
            "other_packets": self.other_packets,
            "duration_s": self.spacing.duration_s,
            "histograms": {key: histogram.to_json() for key, histogram in histograms.items()},
        }


class _Gatherer:
    """Statistics of the stream so far, of the sensor that is asked for or the first one."""

    def __init__(self, metadata: OusterMetadata, name: str, sensor: str) -> None:
        self.packets: dict[str, int] = {}
        self.statistics: OusterStatistics | None = None
        self._metadata, self._name, self._sensor = metadata, name, sensor
        self._names = SensorNames(sensor)
        self._waiting: list[CapturedDatagram] = []

    def take(self, datagram: CapturedDatagram) -> None:
        kind = recognise(datagram.payload)
        if kind is PacketKind.OUSTER_IMU:
            self._take_imu(datagram)
        if kind is not PacketKind.OUSTER_LIDAR:
            return
        source = self._names.of(datagram)
        self.packets[source] = self.packets.get(source, 0) + 1
        if source != (self._sensor or next(iter(self.packets))):
            return
        if self.statistics is None:
            identity = self._metadata.identify(datagram.payload)
            metadata = required_metadata(identity, datagram.payload, f"{self._name}: {source}")
            self.statistics = OusterStatistics(source, metadata)
        if not self.statistics.takes(datagram.payload):
            self.statistics.other_packets += 1
            return
        self._waiting.append(datagram)
        if len(self._waiting) == _BLOCK_PACKETS:
            self.flush()

    def _take_imu(self, datagram: CapturedDatagram) -> None:
        """Add an IMU packet; those before the sensor's first lidar packet are no loss for a rate."""
        if self.statistics is not None and self._names.of(datagram) == self.statistics.source:
            self.statistics.imu.look(datagram.payload)

    def flush(self) -> None:
        if self.statistics is not None and self._waiting:
            self.statistics.look(self._waiting)
            self._waiting = []


def gather_ouster(datagrams: Iterable[CapturedDatagram], metadata: OusterMetadata, *, name: str, sensor: str = "") -> OusterStatistics:
    """Gather the statistics of one sensor's packets.

    Args:
        datagrams: Datagrams in the order of their arrival.
        metadata: Metadata of the sensors.
        name: Name of the stream in errors.
        sensor: Address of the sensor; optional for a single sensor.

    Raises:
        CaptureError: there are too few lidar packets, they come from several sensors, or their metadata are not known.
    """
    gatherer = _Gatherer(metadata, name, sensor)
    for datagram in datagrams:
        gatherer.take(datagram)
    check_sensor(gatherer.packets, sensor, name)
    gatherer.flush()
    statistics = gatherer.statistics
    if statistics is None or statistics.spacing.packets < FEWEST_PACKETS:
        got = 0 if statistics is None else statistics.spacing.packets
        raise CaptureError(f"{name}: must hold at least {FEWEST_PACKETS} Ouster lidar packets of one sensor, got {got}")
    return statistics
