"""Survey of the sensors in a capture's first packets, and choice of the one to map."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays, sender_of
from hilsim.capture.sensor_names import SensorNames
from hilsim.compilation.jit import kernel
from hilsim.errors import CaptureError
from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE, RETURNS_BY_MODE_BYTE
from hilsim.families.velodyne.protocol.models import OTHER_PRODUCTS, identify_model
from hilsim.families.velodyne.stream import stacked_packets
from hilsim.units import TURN_CDEG

_ENOUGH_PACKETS = 200
_MOST_DATAGRAMS = 50_000


class Kind(IntEnum):
    """Kind of a datagram."""

    OTHER = 0
    VELODYNE = 1
    STDV = 2
    STDT = 3


@kernel
def write_kinds(batch: DatagramArrays, kind: npt.NDArray[np.int8]) -> None:
    """Write the ``Kind`` of each datagram of a batch to ``int8[n]``."""
    data = batch.data
    for index in range(batch.start.size):
        at = batch.start[index]
        size = batch.size[index]
        kind[index] = 0
        if size == 1206 and data[at] == 0xFF and data[at + 1] == 0xEE:
            kind[index] = 1
        elif size >= 20 and data[at] == 0x53 and data[at + 1] == 0x54 and data[at + 2] == 0x44:
            if data[at + 3] == 0x56:
                kind[index] = 2
            elif data[at + 3] == 0x54:
                kind[index] = 3


def kinds_of(batch: DatagramArrays) -> npt.NDArray[np.int8]:
    """``Kind`` of each datagram, ``int8[n]``."""
    kind = np.empty(batch.start.size, dtype=np.int8)
    write_kinds(batch, kind)
    return kind


@dataclass(frozen=True, kw_only=True)
class FoundSensor:
    """One sensor found in a capture.

    Attributes:
        address: Name by ``SensorNames``: the IPv4 address, of a further sensor behind it with the port.
        sender: ``sender_number`` of its packets.
        kind: Kind of its packets.
        model: Name of its model; empty if unknown.
        product: Velodyne's factory byte; 0 for others.
        packets: Number of packets read until it was identified.
        rate_rpm: Rotation rate; 0 if unknown.
    """

    address: str
    sender: int
    kind: Kind
    model: str
    product: int
    packets: int
    rate_rpm: float = 0.0

    def __str__(self) -> str:
        return f"{self.address} ({self.model or 'unknown model'})"


@dataclass(kw_only=True)
class _Seen:
    kind: Kind
    sender: int
    packets: int = 0
    payloads: list[bytes] = field(default_factory=list)


def survey(batches: Iterable[DatagramArrays], sensor: str = "") -> tuple[FoundSensor, ...]:
    """Sensors at a capture's beginning, in the order of their first packets.

    Args:
        batches: Batches of the capture.
        sensor: Address of the required sensor: reading ends when it is identified.
    """
    seen: dict[tuple[str, int], _Seen] = {}
    names = SensorNames(sensor)
    datagrams = 0
    for batch in batches:
        kinds = kinds_of(batch)
        for name, own in names.rows(batch, np.flatnonzero(kinds)):
            for index in own:
                key = name, int(kinds[index])
                found = seen.setdefault(key, _Seen(kind=Kind(key[1]), sender=int(batch.sender[index])))
                found.packets += 1
                if len(found.payloads) < _ENOUGH_PACKETS:
                    start = int(batch.start[index])
                    found.payloads.append(batch.data[start : start + int(batch.size[index])].tobytes())
        datagrams += len(kinds)
        wanted = [entry for (name, _), entry in seen.items() if sensor in {"", name}]
        if datagrams >= _MOST_DATAGRAMS or any(entry.packets >= _ENOUGH_PACKETS for entry in wanted):
            break
    return tuple(_identified(name, entry) for (name, _), entry in seen.items())


def _identified(address: str, seen: _Seen) -> FoundSensor:
    model, product, rate_rpm = "", 0, 0.0
    if seen.kind is Kind.VELODYNE:
        model, product, rate_rpm = _velodyne(seen.payloads)
    elif seen.kind is Kind.STDV:
        model = "Cepton STDV"
    elif seen.kind is Kind.STDT:
        model = "Cepton STDT"
    return FoundSensor(address=address, sender=seen.sender, kind=seen.kind, model=model, product=product, packets=seen.packets, rate_rpm=rate_rpm)


def _velodyne(payloads: list[bytes]) -> tuple[str, int, float]:
    """Name of the model, factory byte and rotation rate (rpm), from the most frequent values in packets and their spacing."""
    packets = stacked_packets(payloads)
    product = Counter(packets["product"].tolist()).most_common(1)[0][0]
    mode = Counter(packets["return_mode"].tolist()).most_common(1)[0][0]
    packets = packets[packets["product"] == product]
    steps_us = np.diff(packets["timestamp"].astype(np.int64))
    step_us = float(np.median(steps_us)) if len(steps_us) > 1 else None
    model = identify_model(product, step_us, is_dual=bool(RETURNS_BY_MODE_BYTE[mode] == 2))
    turned_cdeg = np.diff(packets["blocks"]["azimuth"][:, 0].astype(np.int64)) % TURN_CDEG
    rates_rpm = turned_cdeg[steps_us > 0] / steps_us[steps_us > 0] * (60e6 / TURN_CDEG)
    return (model.name if model else OTHER_PRODUCTS.get(product, "")), product, float(np.median(rates_rpm)) if rates_rpm.size else 0.0


def check_others(batch: DatagramArrays, kinds: npt.NDArray[np.int8], is_of_sensor: npt.NDArray[np.bool_], sensor: FoundSensor, where: str) -> None:
    """Reject packets of several sensors if none was chosen.

    Args:
        batch: Batch of datagrams.
        kinds: Kinds of the datagrams.
        is_of_sensor: ``bool[n]``, whether a datagram is from the sensor.
        sensor: Sensor to map.
        where: Name of the capture in errors.

    Raises:
        CaptureError: there are such packets.
    """
    others = np.flatnonzero((kinds != Kind.OTHER) & ~is_of_sensor)
    if others.size:
        address, port = sender_of(int(batch.sender[others[0]]))
        other = f"{address}:{port}" if address == sender_of(sensor.sender)[0] else address
        raise CaptureError(f"{where}: one sensor must be chosen with --sensor ADDRESS, got {sensor} and {other}")


def choose(found: tuple[FoundSensor, ...], sensor: str, where: str) -> FoundSensor:
    """Choose the sensor to map.

    Args:
        found: Sensors of ``survey``.
        sensor: Address of the sensor; optional if there is only one.
        where: Name of the capture in errors.

    Raises:
        CaptureError: there is none, or there are several without a choice, or the chosen one is missing.
    """
    addresses = ", ".join(map(str, found))
    if not found:
        raise CaptureError(
            f"{where}: must hold packets of a lidar (Velodyne data packets of {DATA_PACKET_SIZE} bytes, Cepton STDV or STDT points), got none; "
            "hilsim inspect lists its content"
        )
    if sensor:
        of_address = [entry for entry in found if entry.address == sensor]
        if not of_address:
            raise CaptureError(f"{where}: the sensor must be one of {addresses}, got {sensor}")
        return of_address[0]
    if len(found) > 1:
        raise CaptureError(f"{where}: one sensor must be chosen with --sensor ADDRESS, got {addresses}")
    return found[0]
