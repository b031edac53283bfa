"""Rules for IMU packets of both forms."""

from collections import deque

import numpy as np
import numpy.typing as npt

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.ouster.protocol.bits import read_bits
from hilsim.families.ouster.protocol.firmware import FOOTER_SIZE
from hilsim.families.ouster.protocol.headers import HEADERS, IMU_PACKET, HeaderField
from hilsim.families.ouster.protocol.imu import ACCEL_GYRO_NMEA, IMU_DTYPE, IMU_PACKET_SIZE, LEGACY_IMU, MEASUREMENT_DTYPE
from hilsim.families.ouster.protocol.lidar import footers_of
from hilsim.families.ouster.protocol.metadata import SensorMetadata
from hilsim.families.ouster.protocol.profiles import HeaderKind
from hilsim.protocols.crc64 import CRC_SIZE
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity

FORM = Rule(id="ouster.imu_form", severity=Severity.ERROR)
PERIOD = Rule(id="ouster.imu_period", severity=Severity.ERROR, packets=4)
TIMES = Rule(id="ouster.imu_times", severity=Severity.ERROR)
VALUES = Rule(id="ouster.imu_values", severity=Severity.ERROR)
GRAVITY = Rule(id="ouster.imu_gravity", severity=Severity.WARNING, packets=8)
MEASUREMENTS = Rule(id="ouster.imu_measurements", severity=Severity.ERROR)
HEADER = Rule(id="ouster.imu_header", severity=Severity.ERROR)
IMU_ORDER = Rule(id="ouster.imu_order", severity=Severity.ERROR, packets=2)

_PERIOD_NS, _PERIOD_DOUBT_NS = 10_000_000, 20_000
_MAX_PERIODS = 1000
_LATEST_READING_NS = 2_000_000
_STEPS_PER_G, _STEPS_PER_DPS = 16_384, 32_768 / 250.0
"""Finest steps of both values; the default ranges have 1/4096 g and 250/32768 degrees a second."""
_COARSEST = 1e-3
_MIN_G, _MAX_G = 0.3, 3.0
_FIRST, _NMEA_END = 132, 125
_MAX_KEPT = 1000
_MPS2_PER_G = 9.80665


class ImuTopic:
    """IMU packets of one sensor, judged one by one."""

    def __init__(self) -> None:
        self.packets = 0
        self._last_ns: int | None = None
        self._periods = self._off_periods = 0
        self._norms_g: deque[float] = deque(maxlen=_MAX_KEPT)
        self._steps_ns: deque[int] = deque(maxlen=_MAX_KEPT)

    def look(self, datagram: CapturedDatagram, metadata: SensorMetadata | None, header: HeaderKind, log: FindingLog) -> None:
        """Judge one packet.

        Args:
            datagram: The packet.
            metadata: Metadata of the sensor, or None.
            header: Kind of its packet headers.
            log: Log of findings.
        """
        place = Place(self.packets, datagram.frame)
        self.packets += 1
        payload = datagram.payload
        is_legacy = len(payload) == IMU_PACKET_SIZE
        if metadata is not None and is_legacy != (metadata.imu_profile == LEGACY_IMU):
            log.report(FORM, f"IMU packets must be of the form {metadata.imu_profile}, got {len(payload)} bytes", place)
        if is_legacy:
            self._look_at_legacy(payload, place, log)
        else:
            self._look_at_measurements(payload, metadata, header, place, log)

    def _step(self, stamp_ns: int) -> int | None:
        step_ns = None if self._last_ns is None else stamp_ns - self._last_ns
        self._last_ns = stamp_ns
        return step_ns

    def _look_at_legacy(self, payload: bytes, place: Place, log: FindingLog) -> None:
        record = np.frombuffer(payload, IMU_DTYPE)[0]
        diagnostic_ns, accelerometer_ns, gyroscope_ns = (int(record[name]) for name in ("diagnostic_ns", "accelerometer_ns", "gyroscope_ns"))
        step_ns = self._step(diagnostic_ns)
        if step_ns is not None:
            self._look_at_period(step_ns, place, log)
        if not 0 < gyroscope_ns - accelerometer_ns <= _LATEST_READING_NS:
            log.report(
                TIMES, f"the gyroscope must be read up to 2 ms after the accelerometer, got {gyroscope_ns - accelerometer_ns} ns", place.at(16)
            )
        self._look_at_grid(record["acceleration_g"], _STEPS_PER_G, "acceleration", "1/4096 g", place.at(24), log)
        self._look_at_grid(record["rate_dps"], _STEPS_PER_DPS, "angular velocity", "250/32768 degrees a second", place.at(36), log)
        self._norms_g.append(float(np.linalg.norm(record["acceleration_g"].astype(np.float64))))

    def _look_at_period(self, step_ns: int, place: Place, log: FindingLog) -> None:
        if step_ns <= 0:
            log.report(IMU_ORDER, f"diagnostic times must rise, got {step_ns} ns after the packet before", place.at(0))
            return
        periods = round(step_ns / _PERIOD_NS)
        if periods <= _MAX_PERIODS:
            self._periods += 1
            self._off_periods += periods == 0 or abs(step_ns - periods * _PERIOD_NS) > _PERIOD_DOUBT_NS
            self._steps_ns.append(step_ns)

    @staticmethod
    def _look_at_grid(values: npt.NDArray[np.float32], steps: float, what: str, grid: str, place: Place, log: FindingLog) -> None:
        counts = values.astype(np.float64) * steps
        tolerance = _COARSEST + np.abs(counts) * 1e-6
        if not np.isfinite(counts).all() or (np.abs(counts - np.rint(counts)) > tolerance).any():
            log.report(VALUES, f"{what} must be in whole steps of the sensor ({grid}), got {', '.join(f'{value:.9g}' for value in values)}", place)

    def _look_at_measurements(self, payload: bytes, metadata: SensorMetadata | None, kind: HeaderKind, place: Place, log: FindingLog) -> None:
        kind = HeaderKind.STANDARD if kind is HeaderKind.NONE else kind
        self._look_at_header(payload, metadata, kind, place, log)
        rows = np.frombuffer(payload[_FIRST:-FOOTER_SIZE], MEASUREMENT_DTYPE)
        ids = rows["measurement_id"].astype(np.int64)
        times_ns = rows["time_ns"].astype(np.int64)
        steps = np.diff(ids)
        if ids.size > 1 and ((steps <= 0).any() or (steps != steps[0]).any()):
            log.report(MEASUREMENTS, f"measurement ids must rise evenly, got {', '.join(map(str, ids.tolist()))}", place.at(_FIRST + 8))
        if (np.diff(times_ns) <= 0).any():
            log.report(MEASUREMENTS, "times of measurements must rise", place.at(_FIRST))
        step_ns = self._step(int(times_ns[-1]))
        if step_ns is not None and step_ns <= 0:
            log.report(IMU_ORDER, f"times of measurements must rise, got {step_ns} ns after the packet before", place.at(_FIRST))
        norms = np.linalg.norm(rows["acceleration_mps2"].astype(np.float64), axis=1) / _MPS2_PER_G
        self._norms_g.append(float(norms.mean()))

    @staticmethod
    def _look_at_header(payload: bytes, metadata: SensorMetadata | None, kind: HeaderKind, place: Place, log: FindingLog) -> None:
        places = HEADERS[kind]

        def field(name: HeaderField) -> int:
            found = places[name]
            return int.from_bytes(payload[found.offset : found.offset + found.bits // 8], "little")

        if field(HeaderField.PACKET_TYPE) != IMU_PACKET:
            log.report(HEADER, f"packet type must be {IMU_PACKET}, got {field(HeaderField.PACKET_TYPE)}", place.at(0))
        if any(payload[_NMEA_END:_FIRST]):
            log.report(HEADER, "bytes behind the NMEA sentence must be 0", place.at(_NMEA_END))
        if metadata is None:
            return
        for name, expected in ((HeaderField.SERIAL, int(metadata.serial)), (HeaderField.INIT_ID, metadata.initialization_id)):
            if field(name) != expected:
                log.report(HEADER, f"{name.name.lower()} must be {expected} as in the metadata, got {field(name)}", place)
        row = np.frombuffer(payload, np.uint8)[np.newaxis]
        expected_footer, got = footers_of(row, metadata.footer)[0], read_bits(row[:, -CRC_SIZE:], 0, 64)[0]
        if metadata.imu_profile == ACCEL_GYRO_NMEA and expected_footer != got:
            log.report(HEADER, f"the last eight bytes must be 0x{expected_footer:016x}, got 0x{got:016x}", place.at(len(payload) - CRC_SIZE))

    def conclude(self, log: FindingLog) -> None:
        """Judge the whole stream."""
        if self._periods and log.applies(PERIOD, self.packets, of="IMU packets") and self._off_periods > 0.1 * self._periods:
            usual_ms = float(np.median(self._steps_ns)) / 1e6
            log.report(PERIOD, f"diagnostic times must advance by multiples of 10 ms, got {usual_ms:.4f} ms in the median ({self._off_periods} off)")
        if self.packets >= GRAVITY.packets:
            mean_g = float(np.median(self._norms_g))
            if not _MIN_G <= mean_g <= _MAX_G:
                log.report(GRAVITY, f"the acceleration must be about 1 g, got {mean_g:.3f} g in the median (another unit?)")
