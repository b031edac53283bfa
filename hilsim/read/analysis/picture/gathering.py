"""Packets of points of one sensor of a stream, whose first packet decides the family."""

from collections.abc import Mapping
from typing import Any

from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.sensor_names import SensorNames
from hilsim.emulator.lidar import LidarEmulator
from hilsim.errors import CaptureError
from hilsim.read.analysis.picture.part import Gatherer, PicturePart, PictureScan
from hilsim.registry import family_parts, part_of

_MAX_PACKETS = 20_000
"""Largest number of packets: a VLS-128 in dual mode at 300 rpm sends 3618 packets a turn; an image scan may have any length."""
_PACKETS_AT_ONCE = 128


def _parts() -> dict[str, PicturePart]:
    return {family: module.PART for family, module in family_parts("picture").items()}


class Gathered:
    """Packets of points of the chosen sensor of a stream, or of the first one.

    Attributes:
        sensor: Address or second name (``PicturePart.name``) of the sensor; empty until it is known.
    """

    def __init__(self, sensor: str, metadata: Mapping[str, Any] | None = None, model: str = "") -> None:
        """Gather nothing yet.

        Args:
            sensor: Name of the sensor; empty for the first one.
            metadata: Metadata of sensors, as ``given_metadata`` gives them; None: there are none.
            model: Model that the user names; empty to recognise it from the packets.
        """
        self.sensor = sensor
        self._metadata = metadata or {}
        self._model = model
        self._names = SensorNames(sensor)
        self._parts = _parts()
        self._family = ""
        self._gatherer: Gatherer | None = None
        self._taken = 0
        self._unread = ""

    def take(self, datagram: CapturedDatagram) -> None:
        """Add a datagram if it belongs to the sensor.

        Raises:
            CaptureError: what the sensor is, or its metadata, is not known.
            ConfigError: no profile has the model's name.
        """
        payload = datagram.payload
        for family, part in self._parts.items():
            if part.is_points(payload):
                self._take_points(family, part, datagram)
                return
            self._unread = self._unread or part.unread(payload)

    def _take_points(self, family: str, part: PicturePart, datagram: CapturedDatagram) -> None:
        payload, metadata = datagram.payload, self._metadata.get(family)
        name = self._names.of(datagram)
        if self.sensor not in {"", name, part.name(payload, metadata)} or self._family not in {"", family}:
            return
        if self._gatherer is None:
            self._family = family
            self._gatherer = part.of_packet(payload, metadata, self._model, name)
            self.sensor = self.sensor or name
        self._gatherer.take(payload)
        self._taken += 1

    @property
    def is_empty(self) -> bool:
        """Whether there is no packet of points."""
        return self._gatherer is None

    def is_enough(self) -> bool:
        """Whether the packets contain a whole scan, or are as many as may be gathered."""
        return self._gatherer is not None and (self._gatherer.is_whole or self._taken >= _MAX_PACKETS)

    def scan(self, where: str) -> PictureScan:
        """The scan.

        Args:
            where: Name of the stream in errors.

        Raises:
            CaptureError: there are no packets of points, or no whole scan.
            PacketError: a packet is not one of the sensor.
        """
        if self._gatherer is None:
            of_sensor = f" of {self.sensor}" if self.sensor else ""
            raise CaptureError(f"{where}: {no_points()}{of_sensor} found{self._unread and f'; {self._unread}'}")
        return self._gatherer.scan()


def no_points() -> str:
    """Text that there are no packets of points of any family."""
    *most, last = (f"no {part.packets}" for part in _parts().values())
    return f"{', '.join(most)} and {last}"


def scan_of_lidar(lidar: LidarEmulator, at_ns: int) -> PictureScan:
    """First whole scan of an emulated lidar from a time on.

    Raises:
        CaptureError: no scans of its family can be drawn.
    """
    setting = lidar.setting
    module = part_of(type(setting.family), "picture")
    if module is None:
        raise CaptureError(f"a picture of a {setting.spec.model} cannot be drawn: its family, {setting.family.name}, gives none")
    gatherer: Gatherer = module.PART.of_setting(setting)
    first = lidar.first_data_packet(at_ns)
    for start in range(first, first + _MAX_PACKETS, _PACKETS_AT_ONCE):
        for row in lidar.data_packets(start, _PACKETS_AT_ONCE).payload:
            gatherer.take(row.tobytes())
        if gatherer.is_whole:
            break
    return gatherer.scan()
