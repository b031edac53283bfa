"""Checker of streams of all families, which applies to each datagram the rules of its sensor's family."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.sensor_names import SensorNames
from hilsim.limits import VERIFY_SENSORS, VERIFY_WAITING
from hilsim.read.analysis.conformance.findings import Finding, FindingLog, Rule, Severity
from hilsim.read.analysis.conformance.part import Claim, ConformancePart, SensorCheck
from hilsim.read.analysis.conformance.result import CheckResult
from hilsim.registry import family_parts

STREAM_NONE = Rule(id="stream.none", severity=Severity.ERROR)
STREAM_MANY = Rule(id="stream.many", severity=Severity.WARNING)


class StreamChecker:
    """Checker of a stream of datagrams by the rules of real sensors.

    Sensors are distinguished by ``SensorNames``, and by the number that their packets name. Packets are judged in blocks, so memory does not grow with the
    length of the stream, nor with the number of sensors: packets of sensors of a family beyond ``VERIFY_SENSORS`` are only counted. Findings on single
    packets are reported when a block is full, findings on the whole stream by ``result``.
    """

    def __init__(self, metadata: Mapping[str, Any] | None = None) -> None:
        """Check nothing yet.

        Args:
            metadata: Metadata of sensors, as ``given_metadata`` gives them; None: there are none.
        """
        self._names = SensorNames()
        self._parts: dict[str, ConformancePart] = {family: module.PART for family, module in family_parts("conformance").items()}
        self._metadata = metadata or {}
        self._sensors: dict[str, dict[tuple[str, int | None], SensorCheck]] = {family: {} for family in self._parts}
        self._first: dict[str, dict[str, SensorCheck]] = {family: {} for family in self._parts}
        """The first sensor of each address."""
        self._further = Counter[str]()
        self._waiting = self._datagrams = self._strangers = 0

    def feed(self, datagrams: Iterable[CapturedDatagram]) -> list[tuple[str, Finding]]:
        """Add datagrams in the order of their arrival.

        Returns:
            New findings, each with its sensor's address.

        Raises:
            CaptureError: metadata beside the capture are invalid.
        """
        for datagram in self._names.ahead(datagrams):
            self._datagrams += 1
            name = self._names.of(datagram)
            family = self._family(datagram, name)
            if family is None:
                self._strangers += 1
                continue
            sensor = self._sensor(family, name, datagram.payload)
            if sensor is None:
                self._further[family] += 1
                continue
            self._waiting -= sensor.waiting * sensor.packet_cost
            sensor.add(datagram)
            self._waiting += sensor.waiting * sensor.packet_cost
            if self._waiting > VERIFY_WAITING.bound:
                fullest = max(self._all(), key=lambda each: each.waiting * each.packet_cost)
                self._waiting -= fullest.waiting * fullest.packet_cost
                fullest.flush()
        return [finding for sensor in self._all() for finding in sensor.new_findings()]

    def _family(self, datagram: CapturedDatagram, name: str) -> str | None:
        """Family of a datagram's sensor: that with the surest claim, of equal ones that of a sensor of the same address; None for a datagram of another program."""
        claims = {family: (part.claim(datagram), name in self._first[family]) for family, part in self._parts.items()}
        surest = max(claims, key=lambda family: claims[family])
        return surest if claims[surest] > (Claim.NONE, False) else None

    def _sensor(self, family: str, name: str, payload: bytes) -> SensorCheck | None:
        """Sensor of a packet; None beyond the most. Packets that name no number may come before those that name that of their sensor."""
        part, metadata = self._parts[family], self._metadata.get(family)
        known, first = self._sensors[family], self._first[family]
        number = part.number(payload, metadata)
        if number is None and name in first:
            return first[name]
        key = name, number
        if key not in known and (name, None) in known:
            known[key] = known.pop((name, None))
        if key not in known:
            if len(known) >= VERIFY_SENSORS.bound:
                return None
            known[key] = part.sensor(name, metadata)
            first.setdefault(name, known[key])
        return known[key]

    def _all(self) -> Iterable[SensorCheck]:
        return (sensor for known in self._sensors.values() for sensor in known.values())

    def result(self, *, host_waited_ns: int = 0) -> CheckResult:
        """Judge the waiting packets and return the result; feeding may continue afterwards.

        Args:
            host_waited_ns: Time for which the listening host kept a program waiting meanwhile; bursts that this may explain are a warning.
        """
        log, sensors = FindingLog(), tuple(self._all())
        for sensor in sensors:
            sensor.flush()
        self._waiting = 0
        if not any(sensor.has_data for sensor in sensors):
            positions = sum(sensor.position_packets for sensor in sensors)
            counted = f" ({positions} position packets)" if positions else ""
            *most, last = (part.label for part in self._parts.values())
            log.report(STREAM_NONE, f"no data packets of {', '.join(most)} or {last} sensors among {self._datagrams} datagrams{counted}")
        for family, further in self._further.items():
            label = self._parts[family].label
            log.report(
                STREAM_MANY, f"only the first {VERIFY_SENSORS.bound} {label} sensors were checked: {further:,} packets of others were counted only"
            )
        results = tuple(sensor.result(host_waited_ns=host_waited_ns) for sensor in sensors)
        return CheckResult(sensors=results, findings=tuple(log.findings), datagrams=self._datagrams, strangers=self._strangers)


def check(datagrams: Iterable[CapturedDatagram], metadata: Mapping[str, Any] | None = None) -> CheckResult:
    """Check a finite stream; ``metadata`` as for ``StreamChecker``."""
    checker = StreamChecker(metadata)
    checker.feed(datagrams)
    return checker.result()
