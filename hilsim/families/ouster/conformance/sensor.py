"""Check of one Ouster sensor, packet by packet, and its figures."""

from dataclasses import dataclass
from typing import Annotated

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.ouster.conformance.frames import FramesTopic
from hilsim.families.ouster.conformance.headers import look_at_headers, report_lidar_type
from hilsim.families.ouster.conformance.imu import FORM, ImuTopic
from hilsim.families.ouster.conformance.link import LinkTopic
from hilsim.families.ouster.conformance.pixels import PixelsTopic
from hilsim.families.ouster.conformance.spacing import SpacingTopic
from hilsim.families.ouster.conformance.stamps import StampsTopic
from hilsim.families.ouster.metadata_files import Identity, OusterMetadata, packet_size
from hilsim.families.ouster.protocol.lidar import LidarLayout, lidar_layout
from hilsim.families.ouster.protocol.metadata import SensorMetadata
from hilsim.families.ouster.protocol.profiles import HeaderKind
from hilsim.families.ouster.protocol.recognition import FORMS, describe_fits
from hilsim.families.ouster.recognition import OusterKind
from hilsim.families.ouster.stream import LastPacket, Lost, PacketOrder, form_block, last_packet, sent_packets
from hilsim.protocols.recognise import recognise
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity
from hilsim.read.analysis.conformance.part import SensorCheck
from hilsim.read.analysis.conformance.result import SensorSummary, known


@dataclass(frozen=True, kw_only=True)
class OusterSummary(SensorSummary):
    """Figures of one sensor's stream; NaN or None for those that are not known."""

    family: Annotated[str, "Family ``ouster``; summaries of a Velodyne have another type."] = "ouster"
    lidar_packets: Annotated[int, "Number of lidar packets."]
    imu_packets: Annotated[int, "Number of IMU packets.", "imu.packets"]
    other_datagrams: Annotated[int, "Number of other datagrams of the same address."]
    model: Annotated[str | None, "Product line by the metadata.", "metadata.prod_line"]
    firmware: Annotated[str | None, "Version of the firmware.", "metadata.firmware.__str__"]
    profile: Annotated[str | None, "Lidar profile.", "metadata.lidar_profile"]
    lidar_mode: Annotated[str | None, "Columns a turn and turns a second.", "metadata.lidar_mode"]
    serial: Annotated[int, "Serial number in the packets."]
    frames: Annotated[int, "Number of frames.", "frames.frames"]
    lost_packets: Annotated[int, "Number of packets missing.", "lost.packets"]
    invalid_columns: Annotated[int, "Number of columns with status 0.", "frames.invalid_columns"]
    return_ratio: Annotated[float, "Share of the pixels with a first return.", "pixels.return_ratio"]
    pairs: Annotated[int, "Number of pixels with two returns.", "pixels.pairs"]
    column_period_us: Annotated[float, "Mean time between columns.", "stamps.steps_us.mean"]
    column_spread_us: Annotated[float, "Standard deviation of that time.", "stamps.steps_us.sd"]
    stamp_grid_ns: Annotated[int, "Largest number of nanoseconds of which all stamps are multiples.", "stamps.grid_ns"]
    gap_p1_us: Annotated[float, "1st percentile of the host's time between neighbouring packets.", "spacing.arrival.spread.p1_us"]
    gap_p50_us: Annotated[float, "Median of that time.", "spacing.arrival.spread.p50_us"]
    gap_p99_us: Annotated[float, "99th percentile of that time.", "spacing.arrival.spread.p99_us"]
    host_drift_ppm: Annotated[float, "Rate by which the sensor's clock is slower than the host's.", "spacing.arrival.drift_ppm"]
    headers: Annotated[str, "Origin of the link headers.", "link.origin"]

    def lines(self) -> list[str]:
        """Figures as lines of text, one for each topic."""
        counted = f"{self.lidar_packets} lidar, {self.imu_packets} IMU, {self.other_datagrams} other, {self.lost_packets} lost"
        lines = [f"packets   {counted}"]
        if not self.lidar_packets:
            return lines
        kind = f"{self.model}, firmware {self.firmware}, {self.profile}, {self.lidar_mode}" if self.model else "no metadata"
        serial = f", serial number {self.serial}" if self.serial else ""
        gaps = " / ".join(known(gap_us, ".0f") for gap_us in (self.gap_p1_us, self.gap_p50_us, self.gap_p99_us))
        period = f"a column each {known(self.column_period_us, '.3f')} ± {known(self.column_spread_us, '.3f')} us"
        return [
            *lines,
            f"sensor    {kind}{serial}",
            f"frames    {self.frames}, {self.invalid_columns} columns not valid",
            f"clock     {period}, multiples of {self.stamp_grid_ns} ns",
            f"returns   {known(100 * self.return_ratio, '.1f')} % of the pixels, {self.pairs} pairs",
            f"arrival   gaps {gaps} us (1, 50, 99 %), {known(self.host_drift_ppm, '+.1f')} ppm against the host, headers: {self.headers}",
        ]


METADATA = Rule(id="ouster.metadata", severity=Severity.WARNING)
SIZE = Rule(id="ouster.size", severity=Severity.ERROR)
OTHER = Rule(id="ouster.other", severity=Severity.NOTE)
NO_LIDAR = Rule(id="ouster.no_lidar", severity=Severity.WARNING)

BLOCK_PACKETS = 64
_Ports = tuple[int, int]


class OusterCheck(SensorCheck):
    """Topics of one sensor, which judge blocks of its lidar packets, and its IMU packets one by one."""

    packet_cost = 16  # a lidar packet is up to 27 times as large as a Velodyne's

    def __init__(self, source: str, metadata: OusterMetadata) -> None:
        super().__init__(source)
        self._given = metadata
        self.lidar_packets = 0
        self.other_datagrams = 0
        self._identity: Identity | None = None
        self._layout: LidarLayout | None = None
        self._size = 0
        self._lidar_ports: _Ports | None = None
        self._imu_ports: _Ports | None = None
        self._waiting: list[CapturedDatagram] = []
        self._order = PacketOrder(HeaderKind.STANDARD)
        self._before: LastPacket | None = None
        self.frames = FramesTopic()
        self.stamps = StampsTopic()
        self.pixels = PixelsTopic()
        self.imu = ImuTopic()
        self.link = LinkTopic()
        self.spacing = SpacingTopic()

    @property
    def waiting(self) -> int:
        """Number of packets that have not been judged yet."""
        return len(self._waiting)

    def add(self, datagram: CapturedDatagram) -> None:
        """Add one datagram of this sensor.

        Raises:
            CaptureError: metadata beside the capture are invalid.
        """
        match recognise(datagram.payload):
            case OusterKind.LIDAR:
                self._add_lidar(datagram)
            case OusterKind.IMU:
                self._add_imu(datagram)
            case _:
                self._add_other(datagram)

    def _add_lidar(self, datagram: CapturedDatagram) -> None:
        if self._identity is None:
            self._begin(datagram, self._given.identify(datagram.payload))
        ports = datagram.source_port, datagram.destination_port
        self._lidar_ports = self._lidar_ports or ports
        place = Place(self.lidar_packets + len(self._waiting), datagram.frame)
        if len(datagram.payload) != self._size:
            self._report_size(len(datagram.payload), place)
            return
        self.link.look(datagram, "lidar", place, self.log)
        self._waiting.append(datagram)
        if len(self._waiting) >= BLOCK_PACKETS:
            self.flush()

    def _begin(self, datagram: CapturedDatagram, identity: Identity) -> None:
        self._identity = identity
        self._order = PacketOrder(identity.header)
        metadata = identity.metadata
        self._size = len(datagram.payload)
        if metadata is not None:
            self._size = packet_size(metadata)
            self._layout = lidar_layout(metadata.profile, metadata.beams.channels, metadata.footer)

    def _report_size(self, size: int, place: Place) -> None:
        known = self.metadata
        of = f" ({known.lidar_profile} with {known.beams.channels} channels)" if known is not None else ""
        self.log.report(SIZE, f"a lidar packet must be {self._size} bytes{of}, got {size}", place)

    def _add_imu(self, datagram: CapturedDatagram) -> None:
        self._imu_ports = self._imu_ports or (datagram.source_port, datagram.destination_port)
        self.link.look(datagram, "IMU", Place(self.imu.packets, datagram.frame), self.log)
        header = HeaderKind.STANDARD if self._identity is None else self._identity.header
        self.imu.look(datagram, self.metadata, header, self.log)

    def _add_other(self, datagram: CapturedDatagram) -> None:
        """Add a datagram that is not recognised: wrong in one of the sensor's flows, else only counted."""
        ports, payload = (datagram.source_port, datagram.destination_port), datagram.payload
        place = Place(self.lidar_packets + len(self._waiting), datagram.frame)
        if ports == self._lidar_ports and ports != self._imu_ports:
            if len(payload) == self._size and FORMS[self._size].has_header:
                report_lidar_type(self.log, payload, place)
            else:
                self._report_size(len(payload), place)
        elif ports == self._imu_ports and ports != self._lidar_ports:
            self.log.report(FORM, f"an IMU packet must be 48 bytes of possible values, or of type 2, got {len(payload)} bytes", place)
        else:
            self.other_datagrams += 1

    def flush(self) -> None:
        """Judge the waiting packets."""
        datagrams, self._waiting = self._waiting, []
        identity = self._identity
        if not datagrams or identity is None:
            return
        metadata = identity.metadata
        block = form_block(datagrams, identity.header, metadata, self._layout, self._order, self.lidar_packets, self._before)
        self.lidar_packets += len(datagrams)
        look_at_headers(block, self.log)
        self.frames.look(block, self.log)
        self.stamps.look(block, self.log)
        self.pixels.look(block, self.log)
        self.spacing.look(block)
        self._before = last_packet(block)

    @property
    def metadata(self) -> SensorMetadata | None:
        """Metadata of the sensor; None where they are not known."""
        return None if self._identity is None else self._identity.metadata

    @property
    def serial(self) -> int:
        """Serial number in the packets; 0 before a lidar packet."""
        return 0 if self._identity is None else self._identity.serial

    @property
    def lost(self) -> Lost:
        """Lidar packets that are missing."""
        return self._order.lost(sent_packets(self.metadata))

    def conclude(self, log: FindingLog, host_waited_ns: int) -> None:
        """Judge the rules about the whole stream so far."""
        identity = self._identity
        if identity is None:
            log.report(NO_LIDAR, f"lidar packets must come beside IMU packets, got none beside {self.imu.packets}")
        elif identity.metadata is None:
            log.report(METADATA, f"{describe_fits(self._size, identity.header)}; rules that need them are not applied")
        self.frames.conclude(self.lidar_packets, self.lost, log)
        self.stamps.conclude(log)
        self.pixels.conclude(log)
        self.imu.conclude(log)
        self.link.conclude(log)
        if self.lidar_packets:
            self.spacing.conclude(log, host_waited_ns=host_waited_ns)
        if self.other_datagrams:
            log.report(OTHER, f"{self.other_datagrams} datagrams are neither lidar nor IMU packets")

    def summary(self) -> OusterSummary:
        """Figures of the packets judged so far."""
        return OusterSummary.of(self)
