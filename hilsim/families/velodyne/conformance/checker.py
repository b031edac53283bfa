"""Checker of a stream of datagrams."""

from collections.abc import Iterable

from hilsim.analysis.conformance.findings import Finding, FindingLog, Severity
from hilsim.analysis.conformance.result import CheckResult
from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.sensor_names import SensorNames
from hilsim.families.velodyne.conformance.sensor_check import SensorCheck
from hilsim.families.velodyne.conformance.structure import STREAM_MANY, STREAM_NONE
from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE, DATA_PORT
from hilsim.families.velodyne.protocol.position import POSITION_PACKET_SIZE, POSITION_PORT
from hilsim.limits import VERIFY_SENSORS, VERIFY_WAITING
from hilsim.protocols.recognise import PacketKind, recognise

_PORTS = frozenset((DATA_PORT, POSITION_PORT))
_SIZES = frozenset((DATA_PACKET_SIZE, POSITION_PACKET_SIZE))
_MOST_ADDRESSES = 65_536  # largest number of addresses counted separately
_CEPTON = frozenset(kind for kind in PacketKind if kind.name.startswith("CEPTON"))


class Checker:
    """Checker of a stream of datagrams by the rules of real Velodyne sensors.

    Sensors are distinguished by ``SensorNames``. Packets are judged in blocks of about a thousand, so memory does not grow with the length of the stream,
    nor with the number of sensors: packets of sensors beyond ``VERIFY_SENSORS`` are only counted. Findings on single packets are reported when a block is full,
    findings on the whole stream by ``result``.
    """

    def __init__(self, names: SensorNames | None = None) -> None:
        """Check nothing yet, with sensors by ``names``, or by names of this checker's own."""
        self._names = names or SensorNames()
        self._sensors: dict[str, SensorCheck] = {}
        self._reported: dict[str, int] = {}
        self._datagrams = 0
        self._strangers = 0
        self._cepton = 0
        self._waiting = 0
        self._further: set[str] = set()
        self._further_datagrams = 0

    def feed(self, datagrams: Iterable[CapturedDatagram]) -> list[tuple[str, Finding]]:
        """Add datagrams in the order of their arrival.

        Returns:
            New findings, each with its sensor's address.
        """
        for datagram in datagrams:
            self._datagrams += 1
            name = self._names.of(datagram)
            sensor = self._sensors.get(name)
            if sensor is None:
                is_like = len(datagram.payload) in _SIZES or datagram.destination_port in _PORTS
                if not is_like:
                    self._strangers += 1
                    self._cepton += recognise(datagram.payload) in _CEPTON
                    continue
                if len(self._sensors) >= VERIFY_SENSORS.bound:
                    self._count_further(name)
                    continue
                sensor = self._sensors[name] = SensorCheck(name)
            self._waiting -= sensor.waiting
            sensor.add(datagram)
            self._waiting += sensor.waiting
            if self._waiting > VERIFY_WAITING.bound:
                fullest = max(self._sensors.values(), key=lambda sensor: sensor.waiting)
                self._waiting -= fullest.waiting
                fullest.flush()
        return self._take_new()

    def _count_further(self, source: str) -> None:
        self._further_datagrams += 1
        if len(self._further) < _MOST_ADDRESSES:
            self._further.add(source)

    def _take_new(self) -> list[tuple[str, Finding]]:
        new = []
        for source, sensor in self._sensors.items():
            known = self._reported.get(source, 0)
            new += [(source, finding) for finding in sensor.log.findings[known:]]
            self._reported[source] = len(sensor.log.findings)
        return new

    def result(self, *, host_waited_ns: int = 0) -> CheckResult:
        """Judge the waiting packets and return the result; feeding may continue afterwards.

        Args:
            host_waited_ns: Time for which the listening host kept a program waiting meanwhile (``SpacingTopic.conclude``).
        """
        log = FindingLog()
        for sensor in self._sensors.values():
            sensor.flush()
        self._waiting = 0
        sensors = tuple(sensor.result(host_waited_ns=host_waited_ns) for sensor in self._sensors.values())
        if not any(sensor.data_packets for sensor in self._sensors.values()):
            positions = sum(sensor.position_packets for sensor in self._sensors.values())
            counted = f" ({positions} position packets)" if positions else ""
            instead = f"; {self._cepton} are a Cepton sensor's, and only Velodyne streams are checked" if self._cepton else ""
            log.report(STREAM_NONE, f"no Velodyne data packets among {self._datagrams} datagrams{counted}{instead}")
        if self._further:
            many = f"{len(self._further):,}{' or more' if len(self._further) >= _MOST_ADDRESSES else ''}"
            log.report(
                STREAM_MANY,
                f"only the first {VERIFY_SENSORS.bound} sensors were checked: {self._further_datagrams:,} packets of {many} further addresses were counted only",
            )
        return CheckResult(sensors=sensors, findings=tuple(log.findings), datagrams=self._datagrams, strangers=self._strangers)


def check(datagrams: Iterable[CapturedDatagram]) -> CheckResult:
    """Check a finite stream."""
    checker = Checker()
    checker.feed(datagrams)
    return checker.result()


__all__ = ["CheckResult", "Checker", "Severity", "check"]
