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
        self._older = 0
        self._others = 0
        self._waiting: list[PointPacket] = []
        self._follows: list[bool] = []
        self._before: Before | None = None
        self._stamp_us: int | None = None
        self._headers = HeadersTopic()
        self._sequence = SequenceTopic()
        self._stamps = StampsTopic()
        self._points = PointsTopic()
        self._lasers = LasersTopic()
        self._frames = FramesTopic()
        self._info = InfoTopic()

    def add(self, datagram: CapturedDatagram) -> None:
        """Add one datagram of this sensor."""
        signature = datagram.payload[:4]
        if signature == STDV_SIGNATURE:
            packet = self._headers.read(datagram, self.log)
            if packet is not None:
                self._add_points(packet)
        elif signature == INFO_SIGNATURE:
            self._info.look(datagram, self._stamp_us, self.log)
        elif signature in OLDER_SIGNATURES:
            self._older += 1
        else:
            self._others += 1

    def _add_points(self, packet: PointPacket) -> None:
        follows = self._sequence.take(packet, self.log)
        if follows is None:
            return
        if not follows and self._stamp_us is not None and packet.stamp_us < self._stamp_us:
            self.flush()
            self._stamps.restart()
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
        self._stamps.look(stretch, self.log)
        self._points.look(stretch, self.log)
        self._lasers.look(stretch, self._info.model, self.log)
        self._frames.look(stretch, self.log)

    def conclude(self, log: FindingLog, _host_waited_ns: int) -> None:
        """Judge the rules about the whole stream so far."""
        packets = self._stamps.packets
        self._sequence.conclude(log)
        self._stamps.conclude(log)
        self._points.conclude(packets, log)
        self._lasers.conclude(packets, log)
        self._frames.conclude(log)
        self._info.conclude(packets, self._points.seconds, log)
        if self._older:
            log.report(
                OLDER, f"{self._older} packets are of the older STDT generation (read by the vendor's SDK 1), whose format is not public: not checked"
            )
        if self._others:
            log.report(OTHER, f"{self._others} datagrams are neither points nor information")

    def summary(self) -> CeptonSummary:
        """Figures of the packets judged so far."""
        info, points = self._info.latest, self._points
        firsts = points.points - points.seconds
        return CeptonSummary(
            point_packets=self._headers.packets,
            info_packets=self._info.packets,
            older_packets=self._older,
            other_datagrams=self._others,
            model=info.model_name if info else None,
            model_code=info.model if info else None,
            serial=info.serial if info else None,
            returns=info.returns if info else None,
            header_versions=tuple(sorted(self._headers.versions)),
            points=points.points,
            return_ratio=(points.returns - points.second_returns) / firsts if firsts else float("nan"),
            second_ratio=points.second_returns / points.seconds if points.seconds else float("nan"),
            lasers=self._lasers.count,
            cycle_us=self._lasers.cycle_us,
            frames=self._frames.whole,
            frame_s=self._frames.duration_us / 1e6,
            frame_points=self._frames.points,
            lost_packets=self._sequence.lost,
            stamps="UTC" if self._stamps.is_utc else "power-up",
            rate_ratio=self._stamps.rate_ratio,
            info_period_s=self._info.period_s,
            sync_offset_us=info.sync_offset_us if info else None,
        )
