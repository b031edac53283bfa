"""Rules for one flow of points or inertial packets: headers, checksums, numbers, stamps and arrival."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.livox.conformance.pattern import INTERVAL_NS
from hilsim.families.livox.protocol.points import (
    COUNT_AT,
    CRC_AT,
    FRAME_AT,
    IMU_DATA,
    INTERVAL_AT,
    NO_TIME,
    NUMBER_AT,
    POINTS,
    STAMP_AT,
    TIME_TYPE_AT,
    DataHeader,
    has_valid_crc,
    header_fault,
    read_header,
)
from hilsim.read.analysis.conformance.arrival import GAPS, Arrival
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity
from hilsim.units import NS_PER_S

FORM = Rule(id="livox.form", severity=Severity.ERROR)
CRC = Rule(id="livox.crc", severity=Severity.ERROR)
COUNT = Rule(id="livox.count", severity=Severity.ERROR)
INTERVAL = Rule(id="livox.interval", severity=Severity.ERROR)
FRAME = Rule(id="livox.frame", severity=Severity.WARNING)
RESERVED = Rule(id="livox.reserved", severity=Severity.WARNING)
TIME_TYPE = Rule(id="livox.time_type", severity=Severity.WARNING, packets=2)
NUMBER = Rule(id="livox.number", severity=Severity.ERROR, packets=2)
STEP = Rule(id="livox.step", severity=Severity.ERROR, packets=2)
ORDER = Rule(id="livox.order", severity=Severity.ERROR, packets=2)
LOST = Rule(id="livox.lost", severity=Severity.WARNING, packets=2)
CLOCK = Rule(id="livox.clock", severity=Severity.ERROR)
BURST = Rule(id="livox.burst", severity=Severity.ERROR, packets=100)
TICK = Rule(id="livox.tick", severity=Severity.ERROR, packets=100)
RATE = Rule(id="livox.rate", severity=Severity.WARNING, packets=500)

IMU_STEP_NS = 5_000_000
_RESERVED_AT, _NUMBERS, _MAX_LOST = 12, 1 << 16, 20_000
_MAX_STEP_ERROR, _MAX_STEP_ERROR_NS = 0.002, 1000
_LONGEST_UP_NS, _MAX_FROM_UTC_NS = 3 * 365 * 86_400 * NS_PER_S, 5 * NS_PER_S
_FAR_RATIO = 0.5
_BLOCK = 256


class FlowTopic:
    """Packets of one flow, judged one by one; their arrival in blocks.

    Attributes:
        packets: Number of packets.
        lost: Number of packets missing by their numbers.
        header: Header of the last whole packet.
        step_ns: Time between packets by their form.
        restarts: Number of times that stamps began anew.
    """

    def __init__(self, name: str) -> None:
        """Begin; ``name`` is ``points`` or ``IMU``."""
        self.name = name
        self.packets = self.lost = self.restarts = self.step_ns = 0
        self.header: DataHeader | None = None
        self.arrival = Arrival(_FAR_RATIO)
        self._gaps: list[tuple[int, int, int, bool]] = []
        self._host_ns = 0

    def look(self, datagram: CapturedDatagram, log: FindingLog) -> DataHeader | None:
        """Judge a packet; returns its header if its contents can be judged."""
        payload, place = datagram.payload, Place(self.packets, datagram.frame)
        self.packets += 1
        fault = header_fault(payload)
        if fault:
            log.report(FORM, f"{self.name}: {fault}", place)
            return None
        header = read_header(payload)
        if not has_valid_crc(payload):
            text = f"the CRC of {self.name} must be that of the {len(payload) - STAMP_AT} bytes behind it, got 0x{header.crc:08x}"
            log.report(CRC, text, place.at(CRC_AT))
        self._look_at_fields(header, place, log)
        self._look_at_clock(header, datagram.host_stamp_ns, place, log)
        before, self.header = self.header, header
        if before is not None:
            self._look_at_step(before, header, datagram.host_stamp_ns, place, log)
        self._host_ns = datagram.host_stamp_ns
        return header

    def _look_at_fields(self, header: DataHeader, place: Place, log: FindingLog) -> None:
        count = 1 if header.data_type == IMU_DATA else POINTS
        if header.count != count:
            log.report(COUNT, f"{self.name} must be {count} a packet, got {header.count}", place.at(COUNT_AT))
        if header.data_type == IMU_DATA:
            self.step_ns, is_even = IMU_STEP_NS, header.interval == 0
        else:
            # from the first point to the last one there are 95 of the 96 steps to the next packet
            former_ns, self.step_ns = self.step_ns, header.interval * INTERVAL_NS * POINTS // (POINTS - 1)
            is_even = header.interval > 0 and former_ns in {0, self.step_ns}
        if not is_even:
            rule = "0 of one measurement" if header.data_type == IMU_DATA else "that of all packets, and above 0"
            log.report(INTERVAL, f"time_interval of {self.name} must be {rule}, got {header.interval}", place.at(INTERVAL_AT))
        if header.frame:
            log.report(FRAME, f"frame_cnt must be 0 of a scanner that repeats nothing, got {header.frame}", place.at(FRAME_AT))
        if any(header.reserved):
            log.report(RESERVED, f"reserved bytes must be 0, got {header.reserved.hex(' ')}", place.at(_RESERVED_AT))

    def _look_at_clock(self, header: DataHeader, host_ns: int, place: Place, log: FindingLog) -> None:
        if header.time_type == NO_TIME:
            if header.stamp_ns > _LONGEST_UP_NS:
                log.report(CLOCK, f"stamps of a clock without a source must count from power-up, got {header.stamp_ns} ns", place.at(STAMP_AT))
        elif abs(header.stamp_ns - host_ns) > _MAX_FROM_UTC_NS:
            text = f"stamps of a synchronised clock must be the host's UTC within 5 s, got {(header.stamp_ns - host_ns) / NS_PER_S:+.1f} s"
            log.report(CLOCK, text, place.at(STAMP_AT), severity=Severity.WARNING)

    def _look_at_step(self, before: DataHeader, header: DataHeader, host_ns: int, place: Place, log: FindingLog) -> None:
        if header.time_type != before.time_type:
            text = f"time_type must stay {before.time_type}, got {header.time_type}: its clock got or lost its source"
            log.report(TIME_TYPE, text, place.at(TIME_TYPE_AT))
            return
        number = (header.number - before.number) % _NUMBERS
        stamp_ns = header.stamp_ns - before.stamp_ns
        steps = round(stamp_ns / self.step_ns) if self.step_ns else 0
        if number > _MAX_LOST or number == 0 or stamp_ns <= 0:
            self.restarts += 1
            text = f"numbers and stamps of {self.name} must rise, got number {before.number} and {header.number}, {stamp_ns} ns later"
            log.report(ORDER, text, place.at(NUMBER_AT))
            return
        if (steps - number) % _NUMBERS:
            text = f"udp_cnt of {self.name} must rise by the packets of {stamp_ns} ns, {steps}, got {number} more ({header.number})"
            log.report(NUMBER, text, place.at(NUMBER_AT))
        elif number > 1:
            self.lost += number - 1
        if abs(stamp_ns - steps * self.step_ns) > _MAX_STEP_ERROR_NS + _MAX_STEP_ERROR * self.step_ns * min(steps, 10):
            log.report(STEP, f"stamps of {self.name} must advance by multiples of {self.step_ns} ns, got {stamp_ns}", place.at(STAMP_AT))
        self._gaps.append((host_ns, host_ns - self._host_ns, stamp_ns, number == 1))
        if len(self._gaps) >= _BLOCK:
            self.flush()

    def flush(self) -> None:
        """Count the gaps that wait."""
        if not self._gaps:
            return
        rows: npt.NDArray[Any] = np.array(self._gaps, np.int64)
        self._gaps = []
        self.arrival.add(rows[:, 0], rows[:, 1], rows[:, 2], is_continuous=np.ones(len(rows), np.bool_), is_near=rows[:, 3] > 0)

    def conclude(self, log: FindingLog, host_waited_ns: int) -> None:
        """Judge the whole flow."""
        if self.lost:
            log.report(LOST, f"no packet of {self.name} must be missing, got {self.lost} by the numbers")
        if log.applies((BURST, TICK, RATE), self.arrival.count, of=GAPS) and self.arrival.has_fractions:
            doubt_ppm = 6.0 * self.arrival.drift_error_ppm
            self.arrival.judge(log, BURST, TICK, RATE, doubt_ppm=doubt_ppm, host_waited_ns=host_waited_ns)
