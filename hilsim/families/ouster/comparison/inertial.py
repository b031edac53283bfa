"""Rate of a sensor's inertial measurements."""

from hilsim.families.ouster.protocol.imu import IMU_PACKET_SIZE, MEASUREMENT_SIZE

_GYROSCOPE_AT, _FIRST_AT, _FOOTER_SIZE = 16, 132, 32


class InertialStatistics:
    """Count of the measurements, and their own stamps.

    Attributes:
        measurements: Number of measurements.
    """

    def __init__(self) -> None:
        self.measurements = 0
        self._first: tuple[int, int] | None = None
        self._last = (0, 0)

    def look(self, payload: bytes) -> None:
        """Add an IMU packet of either form."""
        is_legacy = len(payload) == IMU_PACKET_SIZE
        at = _GYROSCOPE_AT if is_legacy else _FIRST_AT
        here = int.from_bytes(payload[at : at + 8], "little"), self.measurements
        self._first = self._first or here
        self._last = here
        self.measurements += 1 if is_legacy else (len(payload) - _FIRST_AT - _FOOTER_SIZE) // MEASUREMENT_SIZE

    @property
    def rate_hz(self) -> float:
        """Measurements a second of the sensor's time, as if none were lost; NaN for less than two packets."""
        if self._first is None or self._last[0] <= self._first[0]:
            return float("nan")
        return (self._last[1] - self._first[1]) / (self._last[0] - self._first[0]) * 1e9
