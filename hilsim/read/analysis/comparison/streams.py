"""Statistics and comparison of streams of any family, which the first data packet decides."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.sensor_names import SensorNames
from hilsim.errors import CaptureError
from hilsim.read.analysis.comparison.comparison import Comparison
from hilsim.read.analysis.comparison.part import ComparisonPart, SensorStatistics
from hilsim.registry import family_parts

MIN_PACKETS = 50  # smallest number of packets for statistics
_MAX_WAITING = 256  # datagrams before the first data packet that are kept, so that memory stays bounded


def comparison_parts() -> dict[str, ComparisonPart]:
    """Parts of the families whose streams can be compared."""
    return {family: module.PART for family, module in family_parts("comparison").items()}


def statistic_names() -> tuple[str, ...]:
    """Names of the statistics of all families."""
    return tuple(dict.fromkeys(statistic.name for part in comparison_parts().values() for statistic in part.statistics))


def gather(datagrams: Iterable[CapturedDatagram], metadata: Mapping[str, Any] | None = None, *, name: str, sensor: str = "") -> Any:
    """Gather the statistics of one sensor's packets.

    Args:
        datagrams: Datagrams in the order of their arrival.
        metadata: Metadata of sensors, as ``given_metadata`` gives them; None: there are none.
        name: Name of the stream in errors.
        sensor: Address of the sensor; optional for a single sensor.

    Returns:
        Statistics of the type of the sensor's family, a ``SensorStatistics``.

    Raises:
        CaptureError: there are too few data packets, they come from several sensors, or what their sensor is, or its setting, is not known.
    """
    family, part, stream = _family_of(datagrams, sensor)
    names, packets = SensorNames(sensor), Counter[str]()
    statistics: SensorStatistics | None = None
    waiting: list[CapturedDatagram] = []

    def add() -> SensorStatistics:
        added = statistics or part.begin(waiting, sensor or next(iter(packets)), (metadata or {}).get(family), name)
        for start in range(0, len(waiting), part.block_packets):
            added.look(waiting[start : start + part.block_packets])
        waiting.clear()
        return added

    for datagram in stream:
        if not part.is_data(datagram.payload):
            if statistics is not None and names.of(datagram) == statistics.source:
                statistics.look_beside(datagram)
            continue
        source = names.of(datagram)
        packets[source] += 1
        if source == (sensor or next(iter(packets))):
            waiting.append(datagram)
            if len(waiting) == (part.first_packets if statistics is None else part.block_packets):
                statistics = add()
    _check_sensor(packets, sensor, name)
    if waiting:
        statistics = add()
    if statistics is None or statistics.spacing.packets < MIN_PACKETS:
        got = 0 if statistics is None else statistics.spacing.packets
        raise CaptureError(f"{name}: must hold at least {MIN_PACKETS} {part.packets}, got {got}")
    statistics.check(name)
    return statistics


def _family_of(datagrams: Iterable[CapturedDatagram], sensor: str) -> tuple[str, ComparisonPart, Iterator[CapturedDatagram]]:
    """Family of the sensor's first data packet, the first one without such a packet; and the stream."""
    parts = comparison_parts()
    rest = iter(datagrams)
    before: deque[CapturedDatagram] = deque(maxlen=_MAX_WAITING)
    names = SensorNames(sensor)
    for datagram in rest:
        before.append(datagram)
        if names.of(datagram) == (sensor or names.of(datagram)):
            found = next((family for family, part in parts.items() if part.is_data(datagram.payload)), None)
            if found is not None:
                return found, parts[found], chain(before, rest)
    family, part = next(iter(parts.items()))
    return family, part, iter(before)


def _check_sensor(packets: Mapping[str, int], sensor: str, name: str) -> None:
    """Check that the sensor is one of those with packets, or the only one.

    Args:
        packets: Number of packets by address.
        sensor: Address of the sensor; empty for the only one.
        name: Name of the stream in errors.

    Raises:
        CaptureError: it is not.
    """
    senders = ", ".join(f"{address} ({count:,} packets)" for address, count in packets.items())
    if sensor and packets and sensor not in packets:
        raise CaptureError(f"{name}: the sensor must be one of {senders}, got {sensor}")
    if not sensor and len(packets) > 1:
        raise CaptureError(f"{name}: one sensor must be chosen, got {senders}")


def compare(
    a: SensorStatistics, b: SensorStatistics, limits: Mapping[str, float] | None = None, *, names: tuple[str, str] = ("a", "b")
) -> Comparison:
    """Compare two streams of one family.

    Args:
        a: Statistics of the first stream.
        b: Statistics of the second stream.
        limits: Largest allowed distances by names of statistics.
        names: Names of the two streams in errors.

    Raises:
        CaptureError: the families differ, or the family cannot compare these sensors.
    """
    if a.family != b.family:
        raise CaptureError(f"both sensors must be of one family, got {a.kind} in {names[0]} and {b.kind} in {names[1]}")
    return comparison_parts()[a.family].compare(a, b, limits or {}, names)
