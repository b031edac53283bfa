"""Check of one Cepton sensor, packet by packet."""

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.cepton.conformance.frames import FramesTopic
from hilsim.families.cepton.conformance.headers import HeadersTopic
from hilsim.families.cepton.conformance.info import InfoTopic
from hilsim.families.cepton.conformance.lasers import LasersTopic
from hilsim.families.cepton.conformance.points import PointsTopic
from hilsim.families.cepton.conformance.sequence import SequenceTopic
from hilsim.families.cepton.conformance.stamps import StampsTopic
from hilsim.families.cepton.conformance.stretch import Before, PointPacket, form_stretch
from hilsim.families.cepton.conformance.summary import CeptonSummary
from hilsim.families.cepton.protocol.info import INFO_SIGNATURE
from hilsim.families.cepton.protocol.stdv import STDV_SIGNATURE
from hilsim.read.analysis.conformance.findings import FindingLog, Rule, Severity
from hilsim.read.analysis.conformance.part import SensorCheck

OLDER = Rule(id="cepton.older", severity=Severity.WARNING)
OTHER = Rule(id="cepton.other", severity=Severity.NOTE)

OLDER_SIGNATURES = (b"STDT", b"INFO")
_STRETCH_PACKETS = 256


class CeptonCheck(SensorCheck):
    """Topics of one sensor, which judge stretches of packets."""

    packet_cost = 2  # a point packet is a little larger than a Velodyne's, and is converted to two arrays

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.older_packets = 0
        self.other_datagrams = 0
        self._waiting: list[PointPacket] = []
        self._follows: list[bool] = []
        self._before: Before | None = None
        self._stamp_us: int | None = None
        self.headers = HeadersTopic()
        self.sequence = SequenceTopic()
        self.stamps = StampsTopic()
        self.points = PointsTopic()
        self.lasers = LasersTopic()
        self.frames = FramesTopic()
        self.info = InfoTopic()

    def add(self, datagram: CapturedDatagram) -> None:
        """Add one datagram of this sensor."""
        signature = datagram.payload[:4]
        if signature == STDV_SIGNATURE:
            packet = self.headers.read(datagram, self.log)
            if packet is not None:
                self._add_points(packet)
        elif signature == INFO_SIGNATURE:
            self.info.look(datagram, self._stamp_us, self.log)
        elif signature in OLDER_SIGNATURES:
            self.older_packets += 1
        else:
            self.other_datagrams += 1

    def _add_points(self, packet: PointPacket) -> None:
        follows = self.sequence.take(packet, self.log)
        if follows is None:
            return
        if not follows and self._stamp_us is not None and packet.stamp_us < self._stamp_us:
            self.flush()
            self.stamps.restart()
        self._stamp_us = packet.stamp_us
        self._waiting.append(packet)
        self._follows.append(follows)
        if len(self._waiting) >= _STRETCH_PACKETS:
            self.flush()

    @property
    def waiting(self) -> int:
        """Number of packets that have not been judged yet."""
        return len(self._waiting)

    def flush(self) -> None:
        """Judge the waiting packets."""
        if not self._waiting:
            return
        stretch = form_stretch(self._waiting, self._follows, self._before)
        self._waiting, self._follows = [], []
        self._before = stretch.end()
        self.stamps.look(stretch, self.log)
        self.points.look(stretch, self.log)
        self.lasers.look(stretch, self.info.model, self.log)
        self.frames.look(stretch, self.log)

    def conclude(self, log: FindingLog, _host_waited_ns: int) -> None:
        """Judge the rules about the whole stream so far."""
        packets = self.stamps.packets
        self.sequence.conclude(log)
        self.stamps.conclude(log)
        self.points.conclude(packets, log)
        self.lasers.conclude(packets, log)
        self.frames.conclude(log)
        self.info.conclude(packets, self.points.seconds, log)
        if self.older_packets:
            log.report(
                OLDER,
                f"{self.older_packets} packets are of the older STDT generation (read by the vendor's SDK 1), whose format is not public: not checked",
            )
        if self.other_datagrams:
            log.report(OTHER, f"{self.other_datagrams} datagrams are neither points nor information")

    def summary(self) -> CeptonSummary:
        """Figures of the packets judged so far."""
        return CeptonSummary.of(self)
