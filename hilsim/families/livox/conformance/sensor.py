"""Check of one Livox sensor, packet by packet, and its figures."""

from collections import deque
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.livox.conformance.control import ControlTopic
from hilsim.families.livox.conformance.data import FlowTopic
from hilsim.families.livox.conformance.pattern import PatternTopic
from hilsim.families.livox.interface.keys import HAP_PORTS, MID360_PORTS
from hilsim.families.livox.protocol.imu import read_imu
from hilsim.families.livox.protocol.points import HEADER_SIZE, IMU_DATA, POINT_DTYPES, POINTS, SPHERICAL, TYPE_AT, UNIT_MM, DataHeader, read_points
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity
from hilsim.read.analysis.conformance.part import SensorCheck
from hilsim.read.analysis.conformance.result import SensorSummary, known

PORT = Rule(id="livox.port", severity=Severity.ERROR)
FAR = Rule(id="livox.range", severity=Severity.ERROR)
ANGLES = Rule(id="livox.angles", severity=Severity.ERROR)
TAG = Rule(id="livox.tag", severity=Severity.WARNING)
ZERO = Rule(id="livox.zero", severity=Severity.WARNING)
EMPTY = Rule(id="livox.empty", severity=Severity.WARNING, packets=1000)
IMU_VALUES = Rule(id="livox.imu_values", severity=Severity.ERROR)
GRAVITY = Rule(id="livox.gravity", severity=Severity.WARNING, packets=20)
NO_POINTS = Rule(id="livox.no_points", severity=Severity.NOTE)

SENSOR_PORTS = frozenset(port for ports in (MID360_PORTS, HAP_PORTS) for port in (ports.command, ports.push, ports.points, ports.imu))
_POINT_PORTS, _IMU_PORTS = ({getattr(ports, name) for ports in (MID360_PORTS, HAP_PORTS)} for name in ("points", "imu"))
_DATA_PORTS = _POINT_PORTS | _IMU_PORTS
_FARTHEST_M = 200.0
_MAX_ZENITH_CDEG, _MAX_AZIMUTH_CDEG = 18_000, 36_000
_MAX_G, _MAX_RATE = 40.0, 40.0
_MIN_MEAN_G, _MAX_MEAN_G = 0.3, 3.0
_MAX_KEPT = 2000
_START_OF_CONTROL = b"\xaa"


@dataclass(frozen=True, kw_only=True)
class LivoxSummary(SensorSummary):
    """Figures of one sensor's stream; NaN or None for those that are not known."""

    family: Annotated[str, "Family ``livox``; summaries of a Velodyne have another type."] = "livox"
    point_packets: Annotated[int, "Number of point packets.", "points.packets"]
    imu_packets: Annotated[int, "Number of inertial packets.", "imu.packets"]
    control_frames: Annotated[int, "Number of answers and push messages.", "control.frames"]
    push_messages: Annotated[int, "Number of push messages.", "control.pushes"]
    serial: Annotated[str | None, "Serial number by push messages.", "control.serial"]
    data_types: Annotated[tuple[int, ...], "Types of points."]
    time_types: Annotated[tuple[int, ...], "Sources of time: 0 none, 1 PTP, 2 GPS."]
    return_ratio: Annotated[float, "Share of the shots with a return."]
    lost_packets: Annotated[int, "Number of point packets missing.", "points.lost"]
    pattern_rms_deg: Annotated[float, "Distance of directions from the pattern, degrees rms.", "pattern.rms_deg"]
    gravity_g: Annotated[float, "Median norm of the acceleration."]
    host_drift_ppm: Annotated[float, "Rate by which the sensor's clock is slower than the host's.", "points.arrival.drift_ppm"]

    def lines(self) -> list[str]:
        """Figures as lines of text, one for each topic."""
        counted = f"{self.point_packets} points, {self.imu_packets} IMU, {self.push_messages} push, {self.lost_packets} lost"
        types = f"type {' and '.join(map(str, self.data_types)) or '-'}, time of source {' and '.join(map(str, self.time_types)) or '-'}"
        came = f"{known(100 * self.return_ratio, '.1f')} % of the shots, {known(self.pattern_rms_deg, '.3f')} degrees rms from the pattern"
        return [
            f"packets   {counted}",
            f"sensor    {types}{f', serial number {self.serial}' if self.serial else ''}",
            f"returns   {came}",
            f"inertia   {known(self.gravity_g, '.3f')} g",
            f"arrival   {known(self.host_drift_ppm, '+.1f')} ppm against the host",
        ]


class LivoxCheck(SensorCheck):
    """Topics of one sensor, which judge its packets one by one."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.points, self.imu = FlowTopic("points"), FlowTopic("IMU")
        self.pattern, self.control = PatternTopic(), ControlTopic()
        self.data_types: tuple[int, ...] = ()
        self.time_types: tuple[int, ...] = ()
        self._shots = self._returns = 0
        self._norms_g: deque[float] = deque(maxlen=_MAX_KEPT)

    def add(self, datagram: CapturedDatagram) -> None:
        """Add one datagram of this sensor."""
        payload, port = datagram.payload, datagram.source_port
        if payload[:1] == _START_OF_CONTROL or (port not in _DATA_PORTS and len(payload) < HEADER_SIZE):
            self.control.look(datagram, self.log)
            return
        is_imu = port in _IMU_PORTS if port in _DATA_PORTS else len(payload) > TYPE_AT and payload[TYPE_AT] == IMU_DATA
        topic = self.imu if is_imu else self.points
        place, restarts = Place(topic.packets, datagram.frame), topic.restarts
        header = topic.look(datagram, self.log)
        if header is None:
            return
        if (header.data_type == IMU_DATA) != (port in _IMU_PORTS) or port not in _DATA_PORTS:
            rule = f"{sorted(_IMU_PORTS)}" if header.data_type == IMU_DATA else f"{sorted(_POINT_PORTS)}"
            self.log.report(PORT, f"packets of type {header.data_type} must come from port {rule}, got {port}", place)
        self.control.look_at_data(datagram, place, self.log)
        self.time_types = tuple(sorted({*self.time_types, header.time_type}))
        if header.data_type == IMU_DATA:
            self._look_at_imu(payload, place)
            return
        if topic.restarts != restarts:
            self.pattern.restart()
        self._look_at_points(payload, port, header, place)

    def _look_at_points(self, payload: bytes, port: int, header: DataHeader, place: Place) -> None:
        self.data_types = tuple(sorted({*self.data_types, header.data_type}))
        _, points = read_points(payload)
        if header.data_type == SPHERICAL:
            is_wrong = (points["zenith"] > _MAX_ZENITH_CDEG) | (points["azimuth"] > _MAX_AZIMUTH_CDEG)
            self._report_first(ANGLES, is_wrong, "angles must be at most 180 and 360 degrees", header, place)
            range_m = points["distance"] / 1000.0
        else:
            range_m = np.sqrt(sum(points[axis].astype(np.float64) ** 2 for axis in "xyz")) * UNIT_MM[header.data_type] / 1000.0
        self._report_first(FAR, range_m > _FARTHEST_M, f"points must be at most {_FARTHEST_M:.0f} m away", header, place)
        tag, seen = points["tag"], range_m > 0.0
        is_wrong = (tag & (tag >> 1) & 0b010101 > 0) | (tag > 0b111111)
        self._report_first(TAG, is_wrong, "tags must be of confidence 0 to 2, and of six bits", header, place)
        self._report_first(ZERO, ~seen & ((points["reflectivity"] > 0) | (tag > 0)), "shots without a return must be zero", header, place)
        self._shots, self._returns = self._shots + seen.size, self._returns + int(seen.sum())
        if header.count == POINTS:
            self.pattern.look(payload, port, header, place, self.log)

    def _report_first(self, rule: Rule, wrong: npt.NDArray[np.bool_], text: str, header: DataHeader, place: Place) -> None:
        if wrong.any():
            point = int(wrong.argmax())
            at = HEADER_SIZE + point * POINT_DTYPES[header.data_type].itemsize
            self.log.report(rule, f"{text}, got another one at point {point} and {int(wrong.sum()) - 1} more", place.at(at))

    def _look_at_imu(self, payload: bytes, place: Place) -> None:
        _, measurements = read_imu(payload)
        rate, force = float(np.abs(measurements[:, :3]).max()), float(np.abs(measurements[:, 3:]).max())
        if not (rate <= _MAX_RATE and force <= _MAX_G):
            got = ", ".join(f"{value:.6g}" for value in measurements[0])
            text = f"rates must be at most {_MAX_RATE:.0f} rad/s and accelerations {_MAX_G:.0f} g, got {got}"
            self.log.report(IMU_VALUES, text, place.at(HEADER_SIZE))
            return
        self._norms_g.append(float(np.linalg.norm(measurements[0, 3:])))

    @property
    def waiting(self) -> int:
        """Number of packets that have not been judged yet."""
        return 0

    def flush(self) -> None:
        """Count the gaps that wait."""
        self.points.flush()
        self.imu.flush()

    @property
    def return_ratio(self) -> float:
        """Share of the shots with a return; NaN before any shot."""
        return self._returns / self._shots if self._shots else float("nan")

    @property
    def gravity_g(self) -> float:
        """Median norm of the acceleration; NaN before any."""
        return float(np.median(self._norms_g)) if self._norms_g else float("nan")

    def conclude(self, log: FindingLog, host_waited_ns: int) -> None:
        """Judge the rules about the whole stream so far."""
        if not self.points.packets:
            log.report(NO_POINTS, f"point packets must come beside others, got none beside {self.imu.packets} inertial packets")
        for topic in (self.points, self.imu):
            if topic.packets:
                topic.conclude(log, host_waited_ns)
        if self.points.packets and log.applies(EMPTY, self.points.packets) and not self._returns:
            log.report(EMPTY, f"some of {self._shots} shots must have a return, got none")
        if self.imu.packets and log.applies(GRAVITY, len(self._norms_g), of="inertial packets") and not _MIN_MEAN_G <= self.gravity_g <= _MAX_MEAN_G:
            log.report(GRAVITY, f"the acceleration must be about 1 g, got {self.gravity_g:.3f} g in the median (another unit?)")
        self.control.conclude(log)

    def summary(self) -> LivoxSummary:
        """Figures of the packets judged so far."""
        return LivoxSummary.of(self)
