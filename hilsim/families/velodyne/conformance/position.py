"""Rules for position packets, which are sent at their own times."""

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.conformance.blocks import PositionBlock
from hilsim.families.velodyne.protocol.models import Model
from hilsim.families.velodyne.protocol.position import IMU_OFFSET, IMU_SIZE
from hilsim.families.velodyne.protocol.steps import wrapped_us
from hilsim.families.velodyne.stream import stamp_steps_us
from hilsim.read.analysis.conformance.findings import FindingLog, Rule, Severity
from hilsim.units import HOUR_US

ZERO = Rule(id="position.zero", severity=Severity.ERROR)
TELEMETRY = Rule(id="position.telemetry", severity=Severity.NOTE)
THERMAL = Rule(id="position.thermal", severity=Severity.ERROR)
PPS = Rule(id="position.pps", severity=Severity.ERROR)
RANGE = Rule(id="position.range", severity=Severity.ERROR)
ORDER = Rule(id="position.order", severity=Severity.ERROR, packets=2)
CLOCK = Rule(id="position.clock", severity=Severity.ERROR, packets=10)
COPIED = Rule(id="position.copied", severity=Severity.ERROR, packets=10)
LEAD = Rule(id="position.lead", severity=Severity.ERROR, packets=10)
LOCKED = Rule(id="position.locked", severity=Severity.ERROR, packets=20)
RATE = Rule(id="position.rate", severity=Severity.ERROR, packets=20)
IMU = Rule(id="position.imu", severity=Severity.ERROR, packets=10)

_IMU = slice(IMU_OFFSET, IMU_OFFSET + IMU_SIZE)
_MAX_LEAD_US = 50_000
_LATER_TO_WIRE_US = 350.0  # time from a position packet's stamp to the wire minus that from a data packet's last firing to the wire
_MAX_LEADS = 4096
_POSITIONS = "position packets"


class PositionTopic:
    """Position packets of one sensor."""

    def __init__(self) -> None:
        self.packets = 0
        self.pps_states: tuple[int, ...] = ()
        self.rate_hz = float("nan")
        self._model: Model | None = None
        self._is_dual = False
        self._imu = 0
        self._telemetry = 0
        self._locked_silent = 0
        self._shut_down = 0
        self._copied = 0
        self._same = 0
        self._span_us = 0
        self._last_us: int | None = None
        self._leads: list[int] = []

    def look(self, block: PositionBlock, log: FindingLog) -> None:
        """Judge one block."""
        self.packets += len(block.stamp_us)
        self._model, self._is_dual = block.model, block.is_dual
        self._check_bytes(block, log)
        self._check_stamps(block, log)
        known = block.data_stamp_us >= 0
        lead = wrapped_us(block.stamp_us[known] - block.data_stamp_us[known])
        self._copied += int((lead == 0).sum())
        self._leads.extend(lead[: max(0, _MAX_LEADS - len(self._leads))].tolist())

    def _check_bytes(self, block: PositionBlock, log: FindingLog) -> None:
        head = block.packets["reserved_0"].copy()
        if block.model is not None and block.model.has_imu:
            self._imu += int(head[:, _IMU].any(axis=1).sum())
            head[:, _IMU] = 0
        for start, area in ((0, head), (334, block.packets["reserved_1"])):
            self._check_zero(area, start, block, log)
        pps = block.packets["pps"]
        self.pps_states = tuple(sorted({*self.pps_states, *np.unique(pps).tolist()}))
        log.report_each(PPS, pps > 3, lambda row: f"the PPS byte must be 0 to 3, got {pps[row]}", block.place, 202)
        thermal = block.packets["thermal_status"]
        log.report_each(THERMAL, thermal > 1, lambda row: f"the thermal status must be 0 or 1, got {thermal[row]}", block.place, 203)
        self._shut_down += int((thermal == 1).sum())
        self._locked_silent += int(((pps == 2) & (block.packets["nmea"][:, 0] == 0)).sum())
        self._telemetry += int((block.packets["temperature_top"] != 0).sum())

    def _check_zero(self, area: npt.NDArray[np.uint8], start: int, block: PositionBlock, log: FindingLog) -> None:
        log.report_each(ZERO, area != 0, lambda row, at: f"byte {start + at} must be 0, got {area[row, at]}", block.place, lambda at: start + at)

    def _check_stamps(self, block: PositionBlock, log: FindingLog) -> None:
        stamps = block.stamp_us
        log.report_each(RANGE, stamps >= HOUR_US, lambda row: f"the stamp must be below {HOUR_US:,}, got {stamps[row]:,}", block.place, 198)
        step = stamp_steps_us(stamps, self._last_us)
        if self._last_us is None:
            step[0] = 1
        else:
            self._span_us += int(step[0])
        log.report_each(
            ORDER, step < 0, lambda row: f"the stamp must not be earlier than the one before, got a step of {step[row]} us", block.place, 198
        )
        self._span_us += int(step[1:].sum())
        self._same += int((step == 0).sum())
        self._last_us = int(stamps[-1])

    def conclude(self, log: FindingLog, longest_pause_us: int) -> None:
        """Judge the whole stream; a data packet is captured up to ``longest_pause_us`` after its stamp, with a limited field of view."""
        if self._telemetry:
            log.report(TELEMETRY, f"{self._telemetry} of {self.packets} packets carry a temperature, as firmware since 2018 does")
        if self._shut_down:
            log.report(THERMAL, f"the sensor has shut down for its temperature in {self._shut_down} packets", severity=Severity.WARNING)
        if self._same > 0.02 * self.packets:
            log.report(ORDER, f"stamps must grow, got the same stamp as before in {self._same} of {self.packets} packets")
        if self._locked_silent:
            log.report(PPS, f"PPS is locked without a sentence in {self._locked_silent} of {self.packets} packets", severity=Severity.WARNING)
        model = self._model
        if model is not None and model.has_imu and log.applies(IMU, self.packets, of=_POSITIONS) and not self._imu:
            log.report(IMU, f"bytes 14 to 37 must carry gyro and accelerometer words, got zeros in all of {self.packets} packets")
        if log.applies(RATE, self.packets, of=_POSITIONS) and model is not None and self._span_us > 0:
            self._conclude_rate(model, log)
        if log.applies((CLOCK, COPIED, LEAD, LOCKED), len(self._leads), of=_POSITIONS) and model is not None:
            self._conclude_leads(model, np.array(self._leads, dtype=np.int64), longest_pause_us, log)

    def _conclude_rate(self, model: Model, log: FindingLog) -> None:
        self.rate_hz = (self.packets - 1) / self._span_us * 1e6
        if any(low <= self.rate_hz <= high for low, high in model.position_rates_hz):
            return
        known = " or ".join(f"{low:.0f} to {high:.0f}" for low, high in model.position_rates_hz)
        is_doubled = self._is_dual and any(low <= self.rate_hz / 2.0 <= high for low, high in model.position_rates_hz)
        words = " (doubled in dual mode)" if is_doubled else ""
        severity = Severity.ERROR if is_doubled else Severity.WARNING
        log.report(RATE, f"a {model.name} sends {known} position packets a second, got {self.rate_hz:.1f}{words}", severity=severity)

    def _conclude_leads(self, model: Model, lead_us: npt.NDArray[np.int64], longest_pause_us: int, log: FindingLog) -> None:
        cycle_us = model.cycle_us(is_dual=self._is_dual)
        median_us = float(np.median(lead_us))
        if self._copied > 0.5 * len(lead_us):
            log.report(
                COPIED, f"the stamp must be the time of assembly, got that of the data packet before in {self._copied} of {len(lead_us)} packets"
            )
            return
        if not -_MAX_LEAD_US <= median_us <= _MAX_LEAD_US + longest_pause_us:
            log.report(CLOCK, f"position and data stamps must come from one clock, got {median_us / 1000:.1f} ms between neighbours")
            return
        phase = np.exp(2j * np.pi * lead_us / cycle_us)
        if log.applies(LOCKED, len(lead_us), of=_POSITIONS) and abs(phase.mean()) > 0.95:
            log.report(LOCKED, f"position packets must not follow the data packets' beat, got all {len(lead_us)} at one phase")
        elif model.channels == 16 and median_us < cycle_us - _LATER_TO_WIRE_US:
            log.report(
                LEAD,
                f"position stamps must be more than {cycle_us - _LATER_TO_WIRE_US:.0f} us ahead of the data packet before, got {median_us:.0f} us",
            )
