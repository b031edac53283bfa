"""Ouster sensors of a stream, by name and serial number."""

from hilsim.analysis.conformance.findings import Finding
from hilsim.analysis.conformance.result import SensorResult
from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.sensor_names import SensorNames
from hilsim.families.ouster.conformance.sensor import OusterSensor
from hilsim.families.ouster.metadata_files import OusterMetadata
from hilsim.limits import VERIFY_SENSORS, VERIFY_WAITING
from hilsim.protocols.recognise import PacketKind, recognise

_PER_PACKET = 16  # a lidar packet is up to 27 times as large as a Velodyne's


class OusterStreams:
    """Checks of the Ouster sensors of a stream.

    Attributes:
        taken: Number of datagrams of Ouster sensors.
        further: Number of those of sensors beyond ``VERIFY_SENSORS``, which are counted only.
    """

    def __init__(self, metadata: OusterMetadata | None = None, names: SensorNames | None = None) -> None:
        """Check nothing yet, with sensors by ``names``, or by names of this object's own."""
        self._names = names or SensorNames()
        self.taken = self.further = 0
        self._metadata = metadata or OusterMetadata()
        self._sensors: dict[tuple[str, int], OusterSensor] = {}
        self._of_source: dict[str, list[OusterSensor]] = {}
        self._without_lidar: dict[str, OusterSensor] = {}
        self._reported: dict[OusterSensor, int] = {}
        self._waiting = 0

    @property
    def sensors(self) -> list[OusterSensor]:
        """Sensors in the order of their appearance."""
        return [sensor for sensors in self._of_source.values() for sensor in sensors]

    def takes(self, datagram: CapturedDatagram, *, is_like_others: bool) -> bool:
        """Judge a datagram of an Ouster sensor; returns whether it is one.

        Args:
            datagram: The datagram.
            is_like_others: Whether an unrecognised datagram is like those of another family.

        Raises:
            CaptureError: metadata beside the capture of lidar packets are invalid.
        """
        kind = recognise(datagram.payload)
        name = self._names.of(datagram)
        of_source = self._of_source.get(name)
        if kind not in {PacketKind.OUSTER_LIDAR, PacketKind.OUSTER_IMU} and (not of_source or is_like_others or kind is not PacketKind.OTHER):
            return False
        self.taken += 1
        if kind is PacketKind.OUSTER_LIDAR:
            self._add_lidar(datagram, name)
        elif kind is PacketKind.OUSTER_IMU:
            sensor = of_source[0] if of_source else self._new(name)
            if sensor is not None:
                if not of_source:
                    self._without_lidar[name] = sensor
                sensor.add_imu(datagram)
        elif of_source:
            of_source[0].add_other(datagram)
        return True

    def _new(self, source: str) -> OusterSensor | None:
        """Add a sensor; returns None beyond the most."""
        if sum(map(len, self._of_source.values())) >= VERIFY_SENSORS.bound:
            self.further += 1
            return None
        sensor = OusterSensor(source)
        self._of_source.setdefault(source, []).append(sensor)
        return sensor

    def _add_lidar(self, datagram: CapturedDatagram, name: str) -> None:
        identity = self._metadata.identify(datagram.payload)
        serial = identity.serial if identity.metadata is None else int(identity.metadata.serial)
        key = name, serial
        sensor = self._sensors.get(key) or self._without_lidar.pop(name, None) or self._new(name)
        if sensor is None:
            return
        self._sensors[key] = sensor
        self._waiting -= sensor.waiting
        sensor.add_lidar(datagram, identity)
        self._waiting += sensor.waiting
        if self._waiting * _PER_PACKET > VERIFY_WAITING.bound:
            fullest = max(self.sensors, key=lambda each: each.waiting)
            self._waiting -= fullest.waiting
            fullest.flush()

    def new_findings(self) -> list[tuple[str, Finding]]:
        """Findings since the last call, each with its sensor's address."""
        found = []
        for sensor in self.sensors:
            known = self._reported.get(sensor, 0)
            found += [(sensor.source, finding) for finding in sensor.log.findings[known:]]
            self._reported[sensor] = len(sensor.log.findings)
        return found

    def results(self, *, host_waited_ns: int) -> tuple[SensorResult, ...]:
        """Judge the waiting packets; returns the result of each sensor."""
        for sensor in self.sensors:
            sensor.flush()
        self._waiting = 0
        return tuple(sensor.result(host_waited_ns=host_waited_ns) for sensor in self.sensors)
