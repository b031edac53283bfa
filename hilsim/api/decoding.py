"""Decode packets of any source to points."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.api.packet import Packet, captured_packets
from hilsim.api.points import DECODED_DTYPE, public_points
from hilsim.capture.metadata import given_metadata
from hilsim.errors import CaptureError
from hilsim.protocols.recognise import PacketKind, recognise
from hilsim.read.scans.part import PointDecoder, ScansPart
from hilsim.registry import family_part, family_parts

_PACKETS_AT_ONCE = 1024
MetadataSource = str | Path | Sequence[str | Path]
"""Path of a metadata file of an Ouster sensor, or several."""


def decode(
    source: str | Path | Iterable[Packet | bytes], *, sensor: str | None = None, model: str = "", metadata: MetadataSource | Mapping[str, Any] = ()
) -> npt.NDArray[Any]:
    """Decode the points in a sensor's packets, from a capture or another source, of real and emulated sensors alike.

    Args:
        source: Path of a capture, or packets in the order in which they were sent; UDP payloads are enough for one sensor.
        sensor: Name of the sensor, as in ``Packet.sensor`` (in a capture: its address), or the serial number of an Ouster sensor; optional for a single
            sensor.
        model: Model of a Velodyne: ``"VLP-16"``, ``"HDL-32E"``, …; default: recognised from the packets.
        metadata: Metadata files (JSON) of Ouster sensors; default: ``x.json`` or ``x.1.json`` … beside a capture ``x.pcap``.

    Returns:
        Structured array with one element a point: the fields ``x``, ``y``, ``z``, ``intensity``, ``ring``, ``time``, ``return`` as in
        ``POINT_DTYPE``, but ``time`` is
        in nanoseconds of the sensor's own stamps (Velodyne: past the hour; Cepton-style: as its packets count; Ouster: as in its timestamp mode); then
        ``range`` in metres, ``azimuth`` in degrees
        clockwise from forward, and ``packet``, the index of the point's packet in ``source``. Of an Ouster sensor also ``signal``, ``near_ir`` and
        ``column``, of a Livox ``tag``.

    Raises:
        CaptureError: the capture cannot be read, several sensors sent and none is named, the lasers of the model are unknown, or there are no valid metadata
            of an Ouster sensor.
        ValueError: the model does not exist.
    """
    name = _known(model)
    if isinstance(source, str | Path):
        path = Path(source)
        source, metadata = captured_packets(path, sensor or ""), _metadata(metadata, path)
    chosen = _Chosen(sensor, name, _metadata(metadata, None))
    taken = chosen.packets(source)
    parts: list[npt.NDArray[Any]] = []
    while some := list(islice(taken, _PACKETS_AT_ONCE)):
        decoded = chosen.decoder.points([payload for _, payload in some])
        points = public_points(decoded, chosen.decoder.dtype)
        points["packet"] = np.array([place for place, _ in some], np.uint32)[decoded["packet"]]
        parts.append(points)
    return np.concatenate(parts) if parts else np.empty(0, DECODED_DTYPE)


def _metadata(given: MetadataSource | Mapping[str, Any], capture: Path | None) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    paths = [given] if isinstance(given, str | Path) else given
    return given_metadata([Path(path) for path in paths], capture)


def _known(model: str) -> str:
    """Name of a model as its family has it.

    Raises:
        ValueError: no family has it.
    """
    names = [name for module in family_parts("scans").values() for name in module.PART.models]
    known: dict[str, str] = {name.casefold(): name for name in names}
    if model and model.casefold() not in known:
        raise ValueError(f'model must be one of {", ".join(names)}, got "{model}"')
    return known[model.casefold()] if model else ""


class _Chosen:
    """The packets of points of one sensor: the named one, or the only one.

    Attributes:
        decoder: Decoder of the sensor, from its first packet on.
    """

    decoder: PointDecoder

    def __init__(self, sensor: str | None, model: str, metadata: Mapping[str, Any]) -> None:
        self._sensor, self._model, self._metadata = sensor, model, metadata
        self._kind: PacketKind | None = None
        self._found = self._serial = ""

    def packets(self, packets: Iterable[Packet | bytes]) -> Iterator[tuple[int, bytes]]:
        """Yield the payloads of a sensor's packets of points, each with its index among all packets."""
        for place, given in enumerate(packets):
            packet = _payload_alone(given, self._sensor) if isinstance(given, bytes) else given
            kind = recognise(packet.payload)
            if kind.facts.is_decoded and self._is_chosen(packet, kind):
                yield place, packet.payload

    def _is_chosen(self, packet: Packet, kind: PacketKind) -> bool:
        """Whether a packet is of the sensor.

        Raises:
            CaptureError: no sensor is named, and this is of another sensor than the first.
        """
        part, metadata = _part(kind), self._metadata.get(kind.facts.family)
        serial = part.serial(packet.payload, metadata)
        if self._sensor not in {None, packet.sensor, serial}:
            return False
        name = serial if self._sensor == serial and serial else packet.sensor
        self._found = self._found or name
        if name != self._found:
            raise CaptureError(f"sensor must be named if several sent points, got {self._found} and {name}")
        if self._kind is None:
            self._kind, self._serial = kind, serial
            self.decoder = part.decoder(packet.payload, name, self._model, metadata)
        if kind is not self._kind:
            return False
        if serial != self._serial:
            raise CaptureError(f"sensor must be a serial number if several sent points from one address, got {self._serial} and {serial}")
        return self.decoder.takes(packet.payload)


def _part(kind: PacketKind) -> ScansPart:
    module = family_part(kind.facts.family, "scans")
    if module is None:
        raise AssertionError(f"a family whose points are decoded must have scans, got {kind.facts.family} without")
    part: ScansPart = module.PART
    return part


def _payload_alone(payload: bytes, sensor: str | None) -> Packet:
    """Packet of a payload without addresses."""
    return Packet(time_ns=0, sensor=sensor or "this sensor", stream="", source=("0.0.0.0", 0), destination=("0.0.0.0", 0), payload=payload)  # noqa: S104 - no address
