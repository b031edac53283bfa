"""Metadata of Ouster sensors in JSON files beside a capture: ``x.json``, or ``x.1.json``, ``x.2.json`` … beside ``x.pcap``; or in files that the user names.

Files beside a capture are read only when the capture has an Ouster packet, because a file of that name may hold anything else.
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import structlog

from hilsim.errors import CaptureError, PacketError
from hilsim.families.ouster.protocol.headers import HeaderField
from hilsim.families.ouster.protocol.lidar import lidar_layout
from hilsim.families.ouster.protocol.metadata import SensorMetadata, metadata_document
from hilsim.families.ouster.protocol.metadata_reading import UnknownProfileError, read_metadata
from hilsim.families.ouster.protocol.profiles import HeaderKind
from hilsim.families.ouster.protocol.recognition import describe_fits, header_kind, read_header_field
from hilsim.limits import SENSOR_METADATA_BYTES

log = structlog.get_logger("hilsim")

_COMPRESSIONS = (".gz", ".zst")
_NUMBER = re.compile(r"[._]\d+")


def metadata_beside(capture: Path) -> tuple[Path, ...]:
    """Files with a capture's name and the suffix ``.json``, with a number before it or without."""
    path = capture.with_suffix("") if capture.suffix in _COMPRESSIONS else capture
    stem = path.with_suffix("").name if path.suffix else path.name
    try:
        found = sorted(other for other in path.parent.iterdir() if other.suffix == ".json" and other.name.startswith(stem))
    except OSError:  # a pipe, or a folder that may not be listed
        return ()
    return tuple(other for other in found if other.stem == stem or _NUMBER.fullmatch(other.stem[len(stem) :]))


def write_beside(capture: Path, sensors: Sequence[SensorMetadata]) -> None:
    """Write the metadata of a capture's sensors into the files of ``metadata_beside``, in place of those of a former capture of that name.

    Nothing is written beside a pipe or a device, and for no sensors.

    Raises:
        CaptureError: a file of that name is no metadata, which is kept, or one cannot be written.
    """
    if not sensors or not capture.is_file():
        return
    for former in metadata_beside(capture):
        try:
            load_metadata(former)
        except CaptureError as error:
            raise CaptureError(f"{former} must be metadata of a former capture, which those of this one replace, or not be there: {error}") from error
        former.unlink()
    names = [".json"] if len(sensors) == 1 else [f".{number}.json" for number in range(1, len(sensors) + 1)]
    for name, sensor in zip(names, sensors, strict=True):
        path = capture.with_suffix(name)
        try:
            path.write_text(json.dumps(metadata_document(sensor), indent=1) + "\n")
        except OSError as error:
            raise CaptureError(f"{path}: cannot be written: {error.strerror}") from error


def load_metadata(path: Path) -> SensorMetadata:
    """Read a metadata file.

    Raises:
        CaptureError: the file cannot be read, or is no metadata that packets can be read by; the text names every fault.
    """
    try:
        with path.open("rb") as file:
            text = file.read(SENSOR_METADATA_BYTES.bound + 1)
    except OSError as error:
        raise CaptureError(f"{path}: cannot be opened: {error.strerror}") from error
    SENSOR_METADATA_BYTES.enforce(len(text), str(path), CaptureError)
    try:
        return read_metadata(text)
    except PacketError as error:
        raise CaptureError(f"{path}: {error}") from error


def _of_known_profile(path: Path) -> SensorMetadata | None:
    """Read a metadata file; None, with a line in the log, for a lidar profile that is not described here: its packets are counted, as without metadata."""
    try:
        return load_metadata(path)
    except CaptureError as error:
        if not isinstance(error.__cause__, UnknownProfileError):
            raise
        log.warning("metadata.profile_unknown", reason=str(error))
        return None


class OusterMetadata:
    """Metadata by which the Ouster packets of a stream are read."""

    def __init__(self, sensors: Iterable[SensorMetadata] = (), *, capture: Path | None = None) -> None:
        """Use these sensors, or without any those of the files beside a capture, when a packet is looked up."""
        self._sensors: tuple[SensorMetadata, ...] | None = tuple(sensors)
        self._capture = capture
        if not self._sensors and capture is not None:
            self._sensors = None

    @property
    def sensors(self) -> tuple[SensorMetadata, ...]:
        """All sensors.

        Raises:
            CaptureError: a file beside the capture is no metadata.
        """
        if self._sensors is None:
            self._sensors = tuple(sensor for path in metadata_beside(self._capture or Path()) if (sensor := _of_known_profile(path)) is not None)
        return self._sensors

    def identify(self, payload: bytes) -> "Identity":
        """Identity of the sensor that sent a lidar packet, and its metadata.

        The metadata are those with the packet's serial number (and initialisation id, if several have that number). A packet without packet header, and one
        with a serial number of which there are no metadata, is of the only sensor whose packets have its size; without such a sensor, or with several of
        them, its metadata are None.

        Raises:
            CaptureError: a file beside the capture is no metadata.
        """
        by_bytes = header_kind(payload)
        for kind in dict.fromkeys((*(sensor.profile.header for sensor in self.sensors), by_bytes)):
            serial = read_header_field(payload, kind, HeaderField.SERIAL)
            known = [sensor for sensor in self.sensors if int(sensor.serial) == serial != 0 and sensor.profile.header is kind]
            if known:
                init_id = read_header_field(payload, kind, HeaderField.INIT_ID)
                return Identity(kind, serial, next((sensor for sensor in known if sensor.initialization_id == init_id), known[0]))
        fitting = [sensor for sensor in self.sensors if packet_size(sensor) == len(payload)]
        sensor = fitting[0] if len(fitting) == 1 else None
        kind = by_bytes if sensor is None else sensor.profile.header
        return Identity(kind, read_header_field(payload, kind, HeaderField.SERIAL), sensor)


class Identity(NamedTuple):
    """Sensor of a lidar packet.

    Attributes:
        header: Kind of the packet header.
        serial: Serial number in the packet; 0 without packet header.
        metadata: Metadata of the sensor; None if there are none.
    """

    header: HeaderKind
    serial: int
    metadata: SensorMetadata | None

    @property
    def is_sure(self) -> bool:
        """Whether there are metadata with the packet's serial number, or it has none."""
        return self.metadata is not None and self.serial in {0, int(self.metadata.serial)}


def required_metadata(identity: Identity, payload: bytes, where: str) -> SensorMetadata:
    """Metadata by which the pixels of a lidar packet can be read.

    Args:
        identity: Sensor of the packet.
        payload: The packet.
        where: Start of the message, usually the sensor's address.

    Raises:
        CaptureError: there are none, or those of another sensor or of packets of another size.
    """
    metadata = identity.metadata
    if metadata is None:
        raise CaptureError(f"{where}: {describe_fits(len(payload), identity.header)}")
    if not identity.is_sure:
        raise CaptureError(f"{where}: metadata must be of serial number {identity.serial}, got {metadata.serial}")
    if packet_size(metadata) != len(payload):
        raise CaptureError(f"{where}: metadata must be of packets of {len(payload)} bytes, got {packet_size(metadata)}")
    return metadata


def packet_size(sensor: SensorMetadata) -> int:
    """Bytes of a sensor's lidar packets."""
    return lidar_layout(sensor.profile, sensor.beams.channels, sensor.footer).size


def given_metadata(paths: Iterable[Path], capture: Path | None = None) -> OusterMetadata:
    """Metadata of the files that a user names, which are read at once; without any, of those beside a capture.

    Raises:
        CaptureError: a file cannot be read, or is no metadata; the text has a line for each.
    """
    sensors, faults = [], []
    for path in paths:
        try:
            sensors.append(load_metadata(path))
        except CaptureError as error:
            faults.append(str(error))
    if faults:
        raise CaptureError("\n".join(faults))
    return OusterMetadata(sensors, capture=capture)


def known_metadata(sensors: Sequence[SensorMetadata]) -> OusterMetadata:
    """Metadata of sensors that are known without a file."""
    return OusterMetadata(sensors)
