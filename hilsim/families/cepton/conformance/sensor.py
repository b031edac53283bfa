"""Check of one Cepton sensor, packet by packet, and its figures."""

import math
from dataclasses import dataclass
from typing import Annotated

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.cepton.conformance.frames import FramesTopic
from hilsim.families.cepton.conformance.headers import HeadersTopic
from hilsim.families.cepton.conformance.info import InfoTopic
from hilsim.families.cepton.conformance.lasers import LasersTopic
from hilsim.families.cepton.conformance.points import PointsTopic
from hilsim.families.cepton.conformance.sequence import SequenceTopic
from hilsim.families.cepton.conformance.stamps import StampsTopic
from hilsim.families.cepton.conformance.stretch import Before, PointPacket, form_stretch
from hilsim.families.cepton.protocol.info import INFO_SIGNATURE
from hilsim.families.cepton.protocol.stdv import STDV_SIGNATURE
from hilsim.read.analysis.conformance.findings import FindingLog, Rule, Severity
from hilsim.read.analysis.conformance.part import SensorCheck
from hilsim.read.analysis.conformance.result import SensorSummary, known


@dataclass(frozen=True, kw_only=True)
class CeptonSummary(SensorSummary):
    """Figures of one sensor's stream; NaN or None for those with too few packets."""

    family: Annotated[str, "Family ``cepton``; summaries of a Velodyne have another type."] = "cepton"
    point_packets: Annotated[int, "Number of STDV packets.", "headers.packets"]
    info_packets: Annotated[int, "Number of INFZ packets.", "info.packets"]
    older_packets: Annotated[int, "Number of STDT and INFO packets, of the older generation."]
    other_datagrams: Annotated[int, "Number of other datagrams of the same address."]
    model: Annotated[str | None, "Name that the sensor reports.", "info.latest.model_name"]
    model_code: Annotated[int | None, "Code of the model.", "info.latest.model"]
    serial: Annotated[int | None, "Serial number.", "info.latest.serial"]
    returns: Annotated[int | None, "Returns a firing that the sensor announces.", "info.latest.returns"]
    header_versions: Annotated[tuple[int, ...], "Header versions of point packets.", "headers.versions"]
    points: Annotated[int, "Number of points.", "points.points"]
    return_ratio: Annotated[float, "Share of the firings' points that are returns.", "points.return_ratio"]
    second_ratio: Annotated[float, "Share of the points flagged as second returns that are returns.", "points.second_ratio"]
    lasers: Annotated[int, "Number of lasers that fired.", "lasers.count"]
    cycle_us: Annotated[float, "Time in which each laser fires once.", "lasers.cycle_us"]
    frames: Annotated[int, "Number of whole frames without a gap.", "frames.whole"]
    frame_s: Annotated[float, "Median time of a frame.", "frames.duration_s"]
    frame_points: Annotated[float, "Median number of points of a frame.", "frames.points"]
    lost_packets: Annotated[int, "Number of packets missing by their numbers (or stamps).", "sequence.lost"]
    stamps: Annotated[str, "Zero of the stamps: ``power-up`` or ``UTC``.", "stamps.zero"]
    rate_ratio: Annotated[float, "Time by the stamps over time by the host's clock.", "stamps.rate_ratio"]
    info_period_s: Annotated[float, "Median time between information packets.", "info.period_s"]
    sync_offset_us: Annotated[int | None, "Latest offset from the stamps to the synchronised clock.", "info.latest.sync_offset_us"]

    def lines(self) -> list[str]:
        """Figures as lines of text, one for each topic."""
        lines = [
            f"packets   {self.point_packets} points (STDV), {self.info_packets} information (INFZ), {self.other_datagrams} other, {self.lost_packets} lost"
        ]
        if self.older_packets:
            lines = lines if self.point_packets else []
            lines.append(f"older     {self.older_packets} packets (STDT and INFO) of the generation before STDV, counted and not checked")
        if self.model is not None:
            lines.append(f"sensor    {self.model} (model {self.model_code}), serial number {self.serial}, {self.returns} return(s) a firing")
        if self.points:
            versions = " and ".join(map(str, self.header_versions))
            drift = f", {(self.rate_ratio - 1.0) * 1e6:+.1f} ppm against the host" if not math.isnan(self.rate_ratio) else ""
            came = f"{known(100 * self.return_ratio, '.1f')} % of first and {known(100 * self.second_ratio, '.1f')} % of second returns came back"
            lines += [
                f"points    {self.points} of {self.lasers} lasers, {came}",
                f"firing    every laser each {known(self.cycle_us, '.0f')} us, header version {versions}",
                f"frames    {self.frames} whole, {known(1000 * self.frame_s, '.1f')} ms and {known(self.frame_points, '.0f')} points each",
                f"clock     stamps since {'1970 (UTC)' if self.stamps == 'UTC' else 'power-up'}{drift}",
            ]
        if self.info_packets:
            lines.append(f"info      each {known(self.info_period_s, '.3f')} s, {self.sync_offset_us} us to the synchronised clock")
        return lines


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
