"""All statistics of one Ouster sensor's stream, gathered packet by packet in memory that does not grow with the stream."""

import re
from typing import Any

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.ouster.comparison.columns import ColumnStatistics, FrameStatistics, InertialStatistics
from hilsim.families.ouster.comparison.pixels import PairStatistics, PixelStatistics
from hilsim.families.ouster.metadata_files import OusterMetadata, required_metadata
from hilsim.families.ouster.protocol.headers import HeaderField
from hilsim.families.ouster.protocol.lidar import lidar_layout
from hilsim.families.ouster.protocol.metadata import SensorMetadata
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET
from hilsim.families.ouster.protocol.recognition import read_header_field
from hilsim.families.ouster.recognition import OusterKind
from hilsim.families.ouster.stream import LastPacket, PacketOrder, form_block, last_packet, sent_packets
from hilsim.protocols.recognise import recognise
from hilsim.read.analysis.comparison.histogram import Histogram
from hilsim.read.analysis.comparison.noise import NoiseStatistics
from hilsim.read.analysis.comparison.part import SensorStatistics

BLOCK_PACKETS = 32  # packets a turn of the smallest mode: a block has no packet of two turns
_LINE = re.compile(r"OS-?\d-\d+")


class OusterStatistics(SensorStatistics):
    """Statistics of the packets of one Ouster sensor.

    Attributes:
        metadata: Metadata of the sensor.
        columns: Steps and grid of the columns' stamps.
        frames: Time from turn to turn.
        imu: Rate of the inertial measurements.
        returns: Ranges, reflectivity and photons.
        noise: Range noise of the first returns by reflectivity.
    """

    family = "ouster"
    dual: PairStatistics | None

    def __init__(self, source: str, metadata: SensorMetadata) -> None:
        super().__init__(source)
        self.metadata = metadata
        self.columns = ColumnStatistics(metadata)
        self.frames = FrameStatistics(metadata)
        self.imu = InertialStatistics()
        self.returns = PixelStatistics(metadata.profile)
        self.noise = NoiseStatistics(metadata.beams.channels, unit_mm=1)
        self.dual = PairStatistics() if metadata.profile.returns > 1 else None
        self._layout = lidar_layout(metadata.profile, metadata.beams.channels, metadata.footer)
        self._order = PacketOrder(metadata.profile.header)
        self._before: LastPacket | None = None

    def __str__(self) -> str:
        kind = f"{self.kind}, {self.metadata.lidar_profile}, {self.metadata.lidar_mode}, firmware {self.metadata.firmware}"
        return f"{kind}, {self.spacing.packets:,} packets in {self.spacing.duration_s:.3f} s"

    @property
    def kind(self) -> str:
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

    def _takes(self, payload: bytes) -> bool:
        """Whether a lidar packet is one of this sensor, by its size and serial number."""
        serial = read_header_field(payload, self.metadata.profile.header, HeaderField.SERIAL)
        return len(payload) == self._layout.size and serial in {0, int(self.metadata.serial)}

    def look_beside(self, datagram: CapturedDatagram) -> None:
        """Add an IMU packet; those before the sensor's first lidar packet are no loss for a rate."""
        if recognise(datagram.payload) is OusterKind.IMU:
            self.imu.look(datagram.payload)

    def look(self, datagrams: list[CapturedDatagram]) -> None:
        """Add at most ``BLOCK_PACKETS`` lidar packets in the order of their arrival; those of another size or serial number are ignored."""
        received = len(datagrams)
        datagrams = [datagram for datagram in datagrams if self._takes(datagram.payload)]
        self.other_packets += received - len(datagrams)
        if not datagrams:
            return
        block = form_block(datagrams, self.metadata.profile.header, self.metadata, self._layout, self._order, self.spacing.packets, self._before)
        self._before = last_packet(block)
        for topic in (self.spacing, self.columns, self.frames, self.returns, self.dual):
            if topic is not None:
                topic.look(block)
        pixels, channels = block.measured, self.metadata.beams.channels
        ranges = pixels.range_mm[:, 0].reshape(-1, channels) * block.has_pixels.reshape(-1, 1)
        self.noise.add(ranges, pixels.reflectivity[:, 0].reshape(-1, channels), block.follows.ravel())

    def facts(self) -> dict[str, Any]:
        """Profile, mode and firmware."""
        return {"profile": self.metadata.lidar_profile, "mode": self.metadata.lidar_mode, "firmware": str(self.metadata.firmware)}

    def histograms(self) -> dict[str, Histogram]:
        """Distributions by name."""
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
        return histograms if self.dual is None else histograms | {"dual_separations_m": self.dual.separations_m}


def begin(datagrams: list[CapturedDatagram], source: str, metadata: OusterMetadata | None, name: str) -> OusterStatistics:
    """Begin the statistics of the sensor of the first packet.

    Raises:
        CaptureError: its metadata are not known.
    """
    first = datagrams[0].payload
    identity = (metadata or OusterMetadata()).identify(first)
    return OusterStatistics(source, required_metadata(identity, first, f"{name}: {source}"))
