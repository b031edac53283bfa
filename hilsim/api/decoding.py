"""Decode packets of any source to points."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.api.packet import Packet, captured_packets, datagrams_of
from hilsim.api.points import DECODED_DTYPE, DECODED_OUSTER_DTYPE, public_points
from hilsim.capture.batches import gathered
from hilsim.errors import CaptureError
from hilsim.families.cepton.points import decode_cepton
from hilsim.families.ouster.metadata_files import Identity, OusterMetadata, given_metadata, required_metadata
from hilsim.families.ouster.points import OusterDecoder, stacked_payloads
from hilsim.families.velodyne.points import decode_velodyne, geometry_of_packets
from hilsim.families.velodyne.protocol.geometry import FiringGeometry
from hilsim.families.velodyne.protocol.models import BY_NAME
from hilsim.families.velodyne.stream import stacked_packets
from hilsim.protocols.recognise import PacketKind, recognise

_PACKETS_AT_ONCE = 1024
_KINDS = (PacketKind.VELODYNE_DATA, PacketKind.CEPTON_STDV, PacketKind.OUSTER_LIDAR)
MetadataSource = str | Path | Sequence[str | Path]
"""Path of a metadata file of an Ouster sensor, or several."""


def decode(
    source: str | Path | Iterable[Packet | bytes], *, sensor: str | None = None, model: str = "", metadata: MetadataSource | OusterMetadata = ()
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
        ``column`` (``DECODED_OUSTER_DTYPE``).

    Raises:
        CaptureError: the capture cannot be read, several sensors sent and none is named, the lasers of the model are unknown, or there are no valid metadata
            of an Ouster sensor.
        ValueError: the model does not exist.
    """
    geometry = _named_geometry(model) if model else None
    kind: PacketKind | None = None
    parts: list[npt.NDArray[Any]] = []
    is_file = isinstance(source, str | Path)
    packets = captured_packets(Path(source), sensor or "") if isinstance(source, str | Path) else source
    chosen = _Chosen(sensor, _metadata(metadata, Path(str(source)) if is_file else None))
    taken = chosen.packets(packets)
    while some := list(islice(taken, _PACKETS_AT_ONCE)):
        kind = kind or recognise(some[0][1].payload)
        of_kind = [(place, packet) for place, packet in some if recognise(packet.payload) is kind]
        if kind is PacketKind.OUSTER_LIDAR:
            decoded = chosen.decoder().points(stacked_payloads([packet.payload for _, packet in of_kind]))
        elif kind is PacketKind.VELODYNE_DATA:
            geometry = geometry or geometry_of_packets(stacked_packets(packet.payload for _, packet in of_kind))
            decoded = decode_velodyne(gathered(list(datagrams_of(packet for _, packet in of_kind))), geometry)
        else:
            decoded = decode_cepton(gathered(list(datagrams_of(packet for _, packet in of_kind))))
        points = public_points(decoded, DECODED_OUSTER_DTYPE if kind is PacketKind.OUSTER_LIDAR else DECODED_DTYPE)
        points["packet"] = np.array([place for place, _ in of_kind], np.uint32)[decoded["packet"]]
        parts.append(points)
    return np.concatenate(parts) if parts else np.empty(0, DECODED_DTYPE)


def _metadata(given: MetadataSource | OusterMetadata, capture: Path | None) -> OusterMetadata:
    if isinstance(given, OusterMetadata):
        return given
    paths = [given] if isinstance(given, str | Path) else given
    return given_metadata(map(Path, paths), capture)


class _Chosen:
    """The packets of points of one sensor: the named one, or the only one."""

    def __init__(self, sensor: str | None, metadata: OusterMetadata) -> None:
        self._sensor = sensor
        self._metadata = metadata
        self._found: str | None = None
        self._identity: Identity | None = None
        self._decoder: OusterDecoder | None = None

    def packets(self, packets: Iterable[Packet | bytes]) -> Iterator[tuple[int, Packet]]:
        """Yield a sensor's packets of points, each with its index among all packets."""
        for place, given in enumerate(packets):
            packet = _payload_alone(given, self._sensor) if isinstance(given, bytes) else given
            kind = recognise(packet.payload)
            if kind in _KINDS and self._is_chosen(packet, kind):
                yield place, packet

    def _is_chosen(self, packet: Packet, kind: PacketKind) -> bool:
        """Whether a packet is of the sensor.

        Raises:
            CaptureError: no sensor is named, and this is of another sensor than the first.
        """
        identity = self._metadata.identify(packet.payload) if kind is PacketKind.OUSTER_LIDAR else None
        serial = "" if identity is None else str(identity.serial)
        if self._sensor not in {None, packet.sensor, serial}:
            return False
        name = serial if self._sensor == serial and serial else packet.sensor
        self._found = self._found or name
        if name != self._found:
            raise CaptureError(f"sensor must be named if several sent points, got {self._found} and {name}")
        if identity is None:
            return True
        self._identity = self._identity or identity
        if identity.serial != self._identity.serial:
            raise CaptureError(f"sensor must be a serial number if several sent points from one address, got {self._identity.serial} and {serial}")
        if self._decoder is None:
            self._decoder = OusterDecoder(required_metadata(identity, packet.payload, name))
        return len(packet.payload) == self._decoder.layout.size

    def decoder(self) -> OusterDecoder:
        """Decoder of the Ouster sensor, of which there was a packet."""
        if self._decoder is None:
            raise AssertionError("a packet of an Ouster sensor must have been chosen before")
        return self._decoder


def _payload_alone(payload: bytes, sensor: str | None) -> Packet:
    """Packet of a payload without addresses."""
    return Packet(time_ns=0, sensor=sensor or "this sensor", stream="", source=("0.0.0.0", 0), destination=("0.0.0.0", 0), payload=payload)  # noqa: S104 - no address


def _named_geometry(name: str) -> FiringGeometry:
    known = {model.name.casefold(): model for model in BY_NAME.values()}
    if name.casefold() not in known:
        raise ValueError(f'model must be one of {", ".join(BY_NAME)}, got "{name}"')
    return known[name.casefold()].geometry
