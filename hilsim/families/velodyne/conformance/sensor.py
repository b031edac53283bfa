"""Check of one Velodyne sensor, packet by packet, and its figures."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.velodyne.conformance.azimuth import AzimuthTopic
from hilsim.families.velodyne.conformance.blocks import DataBlock, PositionBlock, frame_numbers, host_stamps, stack_position
from hilsim.families.velodyne.conformance.clock import ClockTopic
from hilsim.families.velodyne.conformance.contents import ContentsTopic
from hilsim.families.velodyne.conformance.dual import DualTopic
from hilsim.families.velodyne.conformance.factory import STREAM_OTHER, FactoryTopic, StructureTopic, report_size
from hilsim.families.velodyne.conformance.head_motion import Head
from hilsim.families.velodyne.conformance.headers import HeadersTopic, Origin
from hilsim.families.velodyne.conformance.lasers import LasersTopic
from hilsim.families.velodyne.conformance.motion import MotionTopic
from hilsim.families.velodyne.conformance.nmea import NmeaTopic
from hilsim.families.velodyne.conformance.position import PositionTopic
from hilsim.families.velodyne.conformance.repeats import RepeatsTopic
from hilsim.families.velodyne.conformance.returns import ReturnsTopic
from hilsim.families.velodyne.conformance.spacing import SpacingTopic
from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE, DATA_PORT, ReturnMode
from hilsim.families.velodyne.protocol.models import VLP_16
from hilsim.families.velodyne.protocol.position import POSITION_PACKET_SIZE, POSITION_PORT, PPS_WORDS
from hilsim.families.velodyne.stream import LastPacket, packet_run, stacked_packets
from hilsim.read.analysis.conformance.findings import FindingLog, Place
from hilsim.read.analysis.conformance.part import SensorCheck
from hilsim.read.analysis.conformance.result import SensorSummary, known


@dataclass(frozen=True, kw_only=True)
class VelodyneSummary(SensorSummary):
    """Figures of one Velodyne sensor's stream; NaN for those with too few packets."""

    data_packets: Annotated[int, "Number of whole data packets."]
    position_packets: Annotated[int, "Number of whole position packets."]
    other_datagrams: Annotated[int, "Number of other datagrams of the same address."]
    model: Annotated[str | None, "Model by whose rules the stream was checked.", "factory.model.name"]
    return_mode: Annotated[int | None, "Return mode byte.", "factory.mode"]
    product: Annotated[int | None, "Product byte.", "factory.product"]
    is_dual: Annotated[bool, "Whether blocks come in pairs of one azimuth.", "factory.is_dual"]
    rate_rpm: Annotated[float, "Revolutions a minute by azimuth and firing clock.", "azimuth.rate_rpm"]
    cycle_us: Annotated[float, "Fitted time between packets.", "clock.lines.cycle_us"]
    cycle_drift_ppm: Annotated[float, "Relative excess of ``cycle_us`` over the model's.", "clock.lines.drift_ppm"]
    stamp_residual_us: Annotated[float, "Root mean square distance of the stamps from the fit.", "clock.lines.residual_us"]
    lost_packets: Annotated[int, "Number of packets missing by the stamps.", "clock.lost"]
    azimuth_increment_cdeg: Annotated[float, "Mean increment from block to block.", "azimuth.scatter.mean"]
    azimuth_increment_sd_cdeg: Annotated[float, "Standard deviation of the increments.", "azimuth.scatter.sd"]
    azimuth_autocorrelation: Annotated[float, "Correlation of neighbouring increments.", "azimuth.scatter.autocorrelation"]
    field_of_view_gaps: Annotated[int, "Number of jumps of azimuth inside packets.", "azimuth.gaps"]
    no_return_ratio: Annotated[float, "Share of records without a return.", "returns.no_return_ratio"]
    position_rate_hz: Annotated[float, "Position packets a second by their stamps.", "position.rate_hz"]
    nmea_sentences: Annotated[int, "Number of different sentences.", "nmea.sentences"]
    pps_states: Annotated[tuple[int, ...], "PPS bytes seen.", "position.pps_states"]
    headers: Annotated[str, "Origin of the data packets' headers.", "data_headers.origin.value"]
    gap_p1_us: Annotated[float, "1st percentile of the host time between neighbouring data packets.", "spacing.arrival.spread.p1_us"]
    gap_p50_us: Annotated[float, "Median of the host time between neighbouring data packets.", "spacing.arrival.spread.p50_us"]
    gap_p99_us: Annotated[float, "99th percentile of the host time between neighbouring data packets.", "spacing.arrival.spread.p99_us"]
    gap_sd_us: Annotated[float, "Standard deviation of the host time between neighbouring data packets.", "spacing.arrival.spread.sd_us"]
    host_drift_ppm: Annotated[float, "Rate by which the sensor's clock is slower than the host's.", "spacing.arrival.drift_ppm"]

    def lines(self) -> list[str]:
        """Figures as lines of text, one for each topic."""
        lines = [f"packets   {self.data_packets} data, {self.position_packets} position, {self.other_datagrams} other, {self.lost_packets} lost"]
        if self.data_packets and self.return_mode is not None and self.model is None:
            lines.append(f"sensor    not checked (0x{self.return_mode:02x} 0x{self.product:02x})")
        elif self.data_packets and self.return_mode is not None:
            found = ReturnMode.find(self.return_mode)
            mode = f"{found.words if found else 'unknown'}, 0x{self.return_mode:02x} 0x{self.product:02x}"
            cycle = f"{known(self.cycle_us, '.4f')} us ({known(self.cycle_drift_ppm, '+.2f')} ppm)"
            increment = f"{known(self.azimuth_increment_cdeg, '.3f')} ± {known(self.azimuth_increment_sd_cdeg, '.3f')}"
            gaps = " / ".join(known(gap_us, ".0f") for gap_us in (self.gap_p1_us, self.gap_p50_us, self.gap_p99_us))
            spread = f"sd {known(self.gap_sd_us, '.1f')} us, {known(self.host_drift_ppm, '+.1f')} ppm against the host"
            lines += [
                f"sensor    {self.model} ({mode}), {known(self.rate_rpm, '.2f')} rpm, {self.field_of_view_gaps} field-of-view gaps",
                f"clock     cycle {cycle}, residual {known(self.stamp_residual_us, '.3f')} us rms",
                f"azimuth   {increment} hundredths of a degree a block, neighbours correlated {known(self.azimuth_autocorrelation, '+.2f')}",
                f"returns   {known(100 * self.no_return_ratio, '.1f')} % empty",
                f"arrival   gaps {gaps} us (1, 50, 99 %), {spread}, headers: {self.headers}",
            ]
        if self.position_packets:
            states = ", ".join(PPS_WORDS.get(state, str(state)) for state in self.pps_states)
            lines.append(f"position  {known(self.position_rate_hz, '.1f')} a second, PPS {states}, {self.nmea_sentences} NMEA sentences")
        return lines


BLOCK_PACKETS = 1024


class VelodyneCheck(SensorCheck):
    """Topics of one sensor, which judge blocks of packets."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.data_packets = 0
        self.other_datagrams = 0
        self._data: list[CapturedDatagram] = []
        self._positions: list[CapturedDatagram] = []
        self._data_stamps_before: list[int] = []
        self._last_data_stamp_us = -1
        self._before: LastPacket | None = None
        self._last_host_ns: int | None = None
        self._head = Head()
        self.factory = FactoryTopic()
        self.structure = StructureTopic()
        self.clock = ClockTopic(self._head.seen)
        self.azimuth = AzimuthTopic()
        self.motion = MotionTopic()
        self.repeats = RepeatsTopic()
        self.dual = DualTopic()
        self.returns = ReturnsTopic()
        self.contents = ContentsTopic()
        self.lasers = LasersTopic()
        self.position = PositionTopic()
        self.nmea = NmeaTopic()
        self.spacing = SpacingTopic()
        self.data_headers = HeadersTopic(is_data=True)
        self.position_headers = HeadersTopic(is_data=False)

    def add(self, datagram: CapturedDatagram) -> None:
        """Add one datagram of this sensor."""
        size = len(datagram.payload)
        ports = (datagram.source_port, datagram.destination_port)
        if size == DATA_PACKET_SIZE:
            self._last_data_stamp_us = int.from_bytes(datagram.payload[1200:1204], "little")
            self._data.append(datagram)
            if len(self._data) >= BLOCK_PACKETS:
                self.flush()
        elif size == POSITION_PACKET_SIZE and DATA_PORT not in ports:
            self._positions.append(datagram)
            self._data_stamps_before.append(self._last_data_stamp_us)
            if len(self._positions) >= BLOCK_PACKETS:
                self.flush()
        elif DATA_PORT in ports:
            report_size(self.log, size, Place(self.data_packets + len(self._data), datagram.frame), is_data=True)
        elif POSITION_PORT in ports:
            report_size(self.log, size, Place(self.position_packets + len(self._positions), datagram.frame), is_data=False)
        else:
            self.other_datagrams += 1

    @property
    def waiting(self) -> int:
        """Number of packets that have not been judged yet."""
        return len(self._data) + len(self._positions)

    def flush(self) -> None:
        """Judge the waiting packets."""
        if self._data:
            self._look_at_data(self._data)
            self._data = []
        if self._positions:
            self._look_at_position(self._positions, self._data_stamps_before)
            self._positions, self._data_stamps_before = [], []

    def _look_at_data(self, datagrams: list[CapturedDatagram]) -> None:
        packets = stacked_packets(datagram.payload for datagram in datagrams)
        factory = packets["return_mode"].astype(np.int64) * 256 + packets["product"]
        borders = [0, *(np.flatnonzero(np.diff(factory)) + 1).tolist(), len(packets)]
        self.data_headers.look(datagrams, self.data_packets)
        for start, stop in pairwise(borders):
            self._look_at_run(datagrams[start:stop])

    def _look_at_run(self, datagrams: list[CapturedDatagram]) -> None:
        block = self._block(datagrams)
        self.data_packets += len(datagrams)
        if block is None:
            return
        self._before = block.run.last()
        for topic in (self.structure, self.clock, self.azimuth, self.dual, self.returns, self.contents):
            topic.look(block, self.log)
        for other in (self.motion, self.repeats, self.lasers, self.spacing):
            other.look(block)

    def _block(self, datagrams: list[CapturedDatagram]) -> DataBlock | None:
        """Convert the packets to arrays; None for a model that is not checked."""
        run = packet_run(stacked_packets(datagram.payload for datagram in datagrams), self._before)
        frames, before = frame_numbers(datagrams), (self.factory.mode, self.factory.product)
        self.factory.identify(run, Place(self.data_packets, int(frames[0])), self.log)
        if (self.factory.mode, self.factory.product) != before:
            self._head.forget()
        if self.factory.unchecked:
            return None
        model = self.factory.model or VLP_16
        cycle_us, host_ns = model.cycle_us(is_dual=self.factory.is_dual), host_stamps(datagrams)
        host_step_ns = np.diff(host_ns, prepend=host_ns[0] if self._last_host_ns is None else self._last_host_ns)
        self._last_host_ns = int(host_ns[-1])
        group = model.group_blocks(is_dual=self.factory.is_dual)
        azimuth = run.azimuth[:, : model.used_blocks(is_dual=self.factory.is_dual) : group]
        return DataBlock(
            model=model,
            is_dual=self.factory.is_dual,
            first_index=self.data_packets,
            frames=frames,
            host_ns=host_ns,
            host_step_ns=host_step_ns,
            run=run,
            azimuth=azimuth,
            is_next=run.is_next(cycle_us),
            motion=self._head.follow(
                azimuth,
                run.step_us,
                cycle_us=cycle_us,
                sequence_us=model.sequence_ns / 1000.0,
                stamps_last=model.stamps_last_firing,
                tolerance_us=model.step_tolerance_us,
            ),
        )

    def _look_at_position(self, datagrams: list[CapturedDatagram], data_stamps: list[int]) -> None:
        packets = stack_position(datagrams)
        block = PositionBlock(
            model=self.factory.model,
            is_dual=self.factory.is_dual,
            first_index=self.position_packets,
            frames=frame_numbers(datagrams),
            host_stamp_ns=host_stamps(datagrams),
            packets=packets,
            stamp_us=packets["timestamp"].astype(np.int64),
            data_stamp_us=np.array(data_stamps, dtype=np.int64),
        )
        self.position_headers.look(datagrams, self.position_packets)
        if not self.factory.unchecked:
            self.position.look(block, self.log)
        self.nmea.look(block, self.log)
        self.position_packets += len(datagrams)

    @property
    def has_data(self) -> bool:
        """Whether there are data packets."""
        return self.data_packets > 0

    def conclude(self, log: FindingLog, host_waited_ns: int) -> None:
        """Judge the rules about the whole stream so far."""
        if self.factory.unchecked:
            self.factory.conclude(log)
        elif self.data_packets:
            for topic in (self.factory, self.clock, self.dual, self.returns, self.lasers):
                topic.conclude(log)
            self.azimuth.conclude(log, self.repeats.first_pass)
            self.motion.conclude(log, self.repeats)
            self.repeats.conclude(log, self.motion.seam_leap_cdeg(self.repeats))
        self.data_headers.conclude(log, self.factory.model)
        if self.position_packets:
            self.position.conclude(log, self.azimuth.longest_pause_us)
            self.nmea.conclude(log)
            self.position_headers.conclude(log, self.factory.model)
        self.spacing.conclude(log, is_real=self.data_headers.origin is not Origin.EXPORTER, host_waited_ns=host_waited_ns)
        if self.other_datagrams:
            log.report(STREAM_OTHER, f"{self.other_datagrams} datagrams are neither data nor position packets")

    def summary(self) -> VelodyneSummary:
        """Figures of the packets judged so far."""
        return VelodyneSummary.of(self)
