"""Check of one Velodyne sensor, packet by packet."""

from itertools import pairwise

import numpy as np

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.velodyne.conformance.azimuth import AzimuthTopic
from hilsim.families.velodyne.conformance.blocks import DataBlock, PositionBlock, frame_numbers, host_stamps, stack_position
from hilsim.families.velodyne.conformance.clock import ClockTopic
from hilsim.families.velodyne.conformance.contents import ContentsTopic
from hilsim.families.velodyne.conformance.dual import DualTopic
from hilsim.families.velodyne.conformance.factory import FactoryTopic
from hilsim.families.velodyne.conformance.head_motion import Head
from hilsim.families.velodyne.conformance.headers import HeadersTopic, Origin
from hilsim.families.velodyne.conformance.lasers import LasersTopic
from hilsim.families.velodyne.conformance.motion import MotionTopic
from hilsim.families.velodyne.conformance.nmea import NmeaTopic
from hilsim.families.velodyne.conformance.position import PositionTopic
from hilsim.families.velodyne.conformance.repeats import RepeatsTopic
from hilsim.families.velodyne.conformance.returns import ReturnsTopic
from hilsim.families.velodyne.conformance.spacing import SpacingTopic
from hilsim.families.velodyne.conformance.structure import STREAM_OTHER, StructureTopic, report_size
from hilsim.families.velodyne.conformance.summary import VelodyneSummary
from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE, DATA_PORT
from hilsim.families.velodyne.protocol.models import VLP_16
from hilsim.families.velodyne.protocol.position import POSITION_PACKET_SIZE, POSITION_PORT
from hilsim.families.velodyne.stream import LastPacket, packet_run, stacked_packets
from hilsim.read.analysis.conformance.findings import FindingLog, Place
from hilsim.read.analysis.conformance.part import SensorCheck

BLOCK_PACKETS = 1024
_FEWEST_FOR_MEDIAN = 15


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
        packets, known_us = run.packets, run.step_us[run.knows_step]
        median_us = float(np.median(known_us)) if len(known_us) >= _FEWEST_FOR_MEDIAN else None
        frames = frame_numbers(datagrams)
        place = Place(self.data_packets, int(frames[0]))
        mode, product = int(packets["return_mode"][0]), int(packets["product"][0])
        if (mode, product) != (self.factory.mode, self.factory.product):
            self._head.forget()
        self.factory.identify(mode, product, run.azimuth, packets["blocks"]["flag"].astype(np.int64), median_us, place, self.log)
        if self.factory.unchecked:
            return None
        model = self.factory.model or VLP_16
        cycle_us = model.cycle_us(is_dual=self.factory.is_dual)
        group = model.group_blocks(is_dual=self.factory.is_dual)
        azimuth = run.azimuth[:, : model.used_blocks(is_dual=self.factory.is_dual) : group]
        return DataBlock(
            model=model,
            is_dual=self.factory.is_dual,
            cycle_us=cycle_us,
            first_index=self.data_packets,
            frames=frames,
            host_stamp_ns=host_stamps(datagrams),
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
