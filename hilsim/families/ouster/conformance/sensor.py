"""Check of one Ouster sensor, packet by packet."""

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.ouster.conformance.block import LastPacket, form_block, last_packet
from hilsim.families.ouster.conformance.frames import FramesTopic
from hilsim.families.ouster.conformance.headers import look_at_headers, report_lidar_type
from hilsim.families.ouster.conformance.imu import FORM, ImuTopic
from hilsim.families.ouster.conformance.link import LinkTopic
from hilsim.families.ouster.conformance.pixels import PixelsTopic
from hilsim.families.ouster.conformance.spacing import SpacingTopic
from hilsim.families.ouster.conformance.stamps import StampsTopic
from hilsim.families.ouster.conformance.summary import OusterSummary
from hilsim.families.ouster.metadata_files import Identity, OusterMetadata, packet_size
from hilsim.families.ouster.protocol.lidar import LidarLayout, lidar_layout
from hilsim.families.ouster.protocol.profiles import HeaderKind
from hilsim.families.ouster.protocol.recognition import FORMS, describe_fits
from hilsim.families.ouster.recognition import OusterKind
from hilsim.families.ouster.stream import Lost, PacketOrder, sent_packets
from hilsim.protocols.recognise import recognise
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity
from hilsim.read.analysis.conformance.part import SensorCheck

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
        self._metadata = metadata
        self.lidar_packets = 0
        self._others = 0
        self._identity: Identity | None = None
        self._layout: LidarLayout | None = None
        self._size = 0
        self._lidar_ports: _Ports | None = None
        self._imu_ports: _Ports | None = None
        self._waiting: list[CapturedDatagram] = []
        self._order = PacketOrder(HeaderKind.STANDARD)
        self._before: LastPacket | None = None
        self._frames = FramesTopic()
        self._stamps = StampsTopic()
        self._pixels = PixelsTopic()
        self._imu = ImuTopic()
        self._link = LinkTopic()
        self._spacing = SpacingTopic()

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
            self._begin(datagram, self._metadata.identify(datagram.payload))
        ports = datagram.source_port, datagram.destination_port
        self._lidar_ports = self._lidar_ports or ports
        place = Place(self.lidar_packets + len(self._waiting), datagram.frame)
        if len(datagram.payload) != self._size:
            self._report_size(len(datagram.payload), place)
            return
        self._link.look(datagram, "lidar", place, self.log)
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
        known = self._identity.metadata if self._identity is not None else None
        of = f" ({known.lidar_profile} with {known.beams.channels} channels)" if known is not None else ""
        self.log.report(SIZE, f"a lidar packet must be {self._size} bytes{of}, got {size}", place)

    def _add_imu(self, datagram: CapturedDatagram) -> None:
        self._imu_ports = self._imu_ports or (datagram.source_port, datagram.destination_port)
        self._link.look(datagram, "IMU", Place(self._imu.packets, datagram.frame), self.log)
        header = HeaderKind.STANDARD if self._identity is None else self._identity.header
        self._imu.look(datagram, None if self._identity is None else self._identity.metadata, header, self.log)

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
            self._others += 1

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
        self._frames.look(block, self.log)
        self._stamps.look(block, self.log)
        self._pixels.look(block, self.log)
        self._spacing.look(block)
        self._before = last_packet(block)

    def _lost(self) -> Lost:
        return self._order.lost(sent_packets(None if self._identity is None else self._identity.metadata))

    def conclude(self, log: FindingLog, host_waited_ns: int) -> None:
        """Judge the rules about the whole stream so far."""
        identity, lost = self._identity, self._lost()
        if identity is None:
            log.report(NO_LIDAR, f"lidar packets must come beside IMU packets, got none beside {self._imu.packets}")
        elif identity.metadata is None:
            log.report(METADATA, f"{describe_fits(self._size, identity.header)}; rules that need them are not applied")
        self._frames.conclude(self.lidar_packets, lost, log)
        self._stamps.conclude(log)
        self._pixels.conclude(log)
        self._imu.conclude(log)
        self._link.conclude(log)
        if self.lidar_packets:
            self._spacing.conclude(log, host_waited_ns=host_waited_ns)
        if self._others:
            log.report(OTHER, f"{self._others} datagrams are neither lidar nor IMU packets")

    def summary(self) -> OusterSummary:
        """Figures of the packets judged so far."""
        identity = self._identity
        metadata = None if identity is None else identity.metadata
        spread = self._spacing.arrival.spread
        return OusterSummary(
            lidar_packets=self.lidar_packets,
            imu_packets=self._imu.packets,
            other_datagrams=self._others,
            model=None if metadata is None else metadata.prod_line,
            firmware=None if metadata is None else str(metadata.firmware),
            profile=None if metadata is None else metadata.lidar_profile,
            lidar_mode=None if metadata is None else metadata.lidar_mode,
            serial=0 if identity is None else identity.serial,
            frames=self._frames.frames,
            lost_packets=self._lost().packets,
            invalid_columns=self._frames.invalid_columns,
            return_ratio=self._pixels.return_ratio,
            pairs=self._pixels.pairs,
            column_period_us=self._stamps.steps.mean / 1000.0,
            column_spread_us=self._stamps.steps.sd / 1000.0,
            stamp_grid_ns=self._stamps.grid_ns,
            gap_p1_us=spread.percentile_us(0.01),
            gap_p50_us=spread.percentile_us(0.5),
            gap_p99_us=spread.percentile_us(0.99),
            host_drift_ppm=self._spacing.arrival.drift_ppm()[0],
            headers=self._link.origin,
        )
