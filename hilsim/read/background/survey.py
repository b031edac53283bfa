"""Survey of the sensors in a capture's first packets, and choice of the one to map."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays, sender_of
from hilsim.capture.sensor_names import SensorNames
from hilsim.errors import CaptureError
from hilsim.read.background.part import FoundSensor, map_sources

_ENOUGH_PACKETS = 200
_MAX_DATAGRAMS = 50_000


def kinds_of(batch: DatagramArrays) -> npt.NDArray[np.int8]:
    """Kind of each datagram, ``int8[n]``: its place in ``map_sources``, from 1 on; 0 for another."""
    kinds = np.zeros(batch.start.size, dtype=np.int8)
    for number, source in enumerate(map_sources(), 1):
        kinds[source.recognise(batch)] = number
    return kinds


@dataclass(kw_only=True)
class _Seen:
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
                found = seen.setdefault(key, _Seen(sender=int(batch.sender[index])))
                found.packets += 1
                if len(found.payloads) < _ENOUGH_PACKETS:
                    start = int(batch.start[index])
                    found.payloads.append(batch.data[start : start + int(batch.size[index])].tobytes())
        datagrams += len(kinds)
        wanted = [entry for (name, _), entry in seen.items() if sensor in {"", name}]
        if datagrams >= _MAX_DATAGRAMS or any(entry.packets >= _ENOUGH_PACKETS for entry in wanted):
            break
    return tuple(
        FoundSensor(address=name, sender=entry.sender, source=map_sources()[kind - 1].identify(entry.payloads), packets=entry.packets)
        for (name, kind), entry in seen.items()
    )


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
    others = np.flatnonzero((kinds != 0) & ~is_of_sensor)
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
            f"{where}: must hold packets of a lidar ({', '.join(str(source.kind) for source in map_sources())}), got none; hilsim inspect lists its content"
        )
    if sensor:
        of_address = [entry for entry in found if entry.address == sensor]
        if not of_address:
            raise CaptureError(f"{where}: the sensor must be one of {addresses}, got {sensor}")
        return of_address[0]
    if len(found) > 1:
        raise CaptureError(f"{where}: one sensor must be chosen with --sensor ADDRESS, got {addresses}")
    return found[0]
