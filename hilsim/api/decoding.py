"""Decode packets of any source to points."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.analysis.decode import decode_cepton, decode_velodyne
from hilsim.analysis.picture.scan import geometry_of_packets
from hilsim.analysis.velodyne_stream import stacked_packets
from hilsim.api.packet import Packet, datagrams_of, read_capture
from hilsim.api.points import DECODED_DTYPE, public_points
from hilsim.capture.batches import gathered
from hilsim.errors import CaptureError
from hilsim.protocols.recognise import PacketKind, recognise
from hilsim.protocols.velodyne.geometry import FiringGeometry
from hilsim.protocols.velodyne.models import BY_NAME

_PACKETS_AT_ONCE = 1024
_KINDS = (PacketKind.VELODYNE_DATA, PacketKind.CEPTON_STDV)


def decode(source: str | Path | Iterable[Packet | bytes], *, sensor: str | None = None, model: str = "") -> npt.NDArray[Any]:
    """Decode the points in a sensor's packets, from a capture or another source, of real and emulated sensors alike.

    Args:
        source: Path of a capture, or packets in the order in which they were sent; UDP payloads are enough for one sensor.
        sensor: Name of the sensor, as in ``Packet.sensor`` (in a capture: its address); optional for a single sensor.
        model: Model of a Velodyne: ``"VLP-16"``, ``"HDL-32E"``, …; default: recognised from the packets.

    Returns:
        Structured array with one element a point: the fields ``x``, ``y``, ``z``, ``intensity``, ``ring``, ``time``, ``return`` as in
        ``POINT_DTYPE``, but ``time`` is
        in nanoseconds of the sensor's own stamps (Velodyne: past the hour; Cepton-style: as its packets count); then ``range`` in metres,
        ``azimuth`` in degrees
        clockwise from forward, and ``packet``, the index of the point's packet in ``source``.

    Raises:
        CaptureError: the capture cannot be read, several sensors sent and none is named, or the lasers of the model are unknown.
        ValueError: the model does not exist.
    """
    geometry = _named_geometry(model) if model else None
    kind: PacketKind | None = None
    parts = [np.empty(0, DECODED_DTYPE)]
    packets = read_capture(source) if isinstance(source, str | Path) else source
    chosen = _chosen(packets, sensor)
    while some := list(islice(chosen, _PACKETS_AT_ONCE)):
        kind = kind or recognise(some[0][1].payload)
        of_kind = [(place, packet) for place, packet in some if recognise(packet.payload) is kind]
        batch = gathered(list(datagrams_of(packet for _, packet in of_kind)))
        if kind is PacketKind.VELODYNE_DATA:
            geometry = geometry or geometry_of_packets(stacked_packets(packet.payload for _, packet in of_kind))
            decoded = decode_velodyne(batch, geometry)
        else:
            decoded = decode_cepton(batch)
        points = public_points(decoded, DECODED_DTYPE)
        points["packet"] = np.array([place for place, _ in of_kind], np.uint32)[decoded["packet"]]
        parts.append(points)
    return np.concatenate(parts)


def _chosen(packets: Iterable[Packet | bytes], sensor: str | None) -> Iterator[tuple[int, Packet]]:
    """Yield a sensor's packets of points, each with its index among all packets."""
    found = sensor
    for place, given in enumerate(packets):
        packet = _payload_alone(given, sensor) if isinstance(given, bytes) else given
        if packet.sensor == sensor or sensor is None:
            if recognise(packet.payload) not in _KINDS:
                continue
            found = found or packet.sensor
            if packet.sensor != found:
                raise CaptureError(f"sensor must be named if several sent points, got {found} and {packet.sensor}")
            yield place, packet


def _payload_alone(payload: bytes, sensor: str | None) -> Packet:
    """Packet of a payload without addresses."""
    return Packet(time_ns=0, sensor=sensor or "this sensor", stream="", source=("0.0.0.0", 0), destination=("0.0.0.0", 0), payload=payload)  # noqa: S104 - no address


def _named_geometry(name: str) -> FiringGeometry:
    known = {model.name.casefold(): model for model in BY_NAME.values()}
    if name.casefold() not in known:
        raise ValueError(f'model must be one of {", ".join(BY_NAME)}, got "{name}"')
    return known[name.casefold()].geometry
