"""Checker of streams of all families, which applies to each datagram the rules of its sensor's family."""

from collections.abc import Iterable
from dataclasses import replace

from hilsim.analysis.conformance.findings import Finding, FindingLog
from hilsim.analysis.conformance.result import CheckResult
from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.sensor_names import SensorNames
from hilsim.families.cepton.conformance.sensor import OLDER_SIGNATURES, CeptonSensor
from hilsim.families.cepton.protocol.info import INFO_SIGNATURE
from hilsim.families.cepton.protocol.stdv import STDV_SIGNATURE
from hilsim.families.ouster.conformance.streams import OusterStreams
from hilsim.families.ouster.metadata_files import OusterMetadata
from hilsim.families.velodyne.conformance.checker import Checker
from hilsim.families.velodyne.conformance.structure import STREAM_MANY, STREAM_NONE
from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE, DATA_PORT
from hilsim.families.velodyne.protocol.position import POSITION_PACKET_SIZE, POSITION_PORT
from hilsim.limits import VERIFY_SENSORS, VERIFY_WAITING

_SIGNATURES = frozenset((STDV_SIGNATURE, INFO_SIGNATURE, *OLDER_SIGNATURES))
_VELODYNE_SIZES, _VELODYNE_PORTS = frozenset((DATA_PACKET_SIZE, POSITION_PACKET_SIZE)), frozenset((DATA_PORT, POSITION_PORT))
_PER_PACKET = 2  # a point packet is a little larger than a Velodyne's, and is converted to two arrays


class StreamChecker:
    """Checker of a stream of Velodyne, Cepton and Ouster datagrams, with sensors distinguished by ``SensorNames`` (Ouster: and serial number).

    Memory does not grow with the length of the stream, nor with the number of sensors beyond ``VERIFY_SENSORS`` of each family.
    """

    def __init__(self, metadata: OusterMetadata | None = None) -> None:
        """Check nothing yet.

        Args:
            metadata: Metadata of Ouster sensors; None: there are none.
        """
        self._names = SensorNames()
        self._velodyne = Checker(self._names)
        self._ouster = OusterStreams(metadata, self._names)
        self._cepton: dict[str, CeptonSensor] = {}
        self._reported: dict[str, int] = {}
        self._taken = 0
        self._waiting = 0
        self._further = 0

    def feed(self, datagrams: Iterable[CapturedDatagram]) -> list[tuple[str, Finding]]:
        """Add datagrams in the order of their arrival.

        Returns:
            New findings, each with its sensor's address.

        Raises:
            CaptureError: metadata beside the capture of Ouster packets are invalid.
        """
        found = self._velodyne.feed(datagram for datagram in self._names.ahead(datagrams) if not self._takes(datagram))
        found += self._ouster.new_findings()
        for source, sensor in self._cepton.items():
            known = self._reported.get(source, 0)
            found += [(source, finding) for finding in sensor.log.findings[known:]]
            self._reported[source] = len(sensor.log.findings)
        return found

    def _takes(self, datagram: CapturedDatagram) -> bool:
        """Judge a datagram of a Cepton or an Ouster sensor; returns whether it is one."""
        name = self._names.of(datagram)
        if datagram.payload[:4] not in _SIGNATURES:
            is_velodyne_like = len(datagram.payload) in _VELODYNE_SIZES or datagram.destination_port in _VELODYNE_PORTS
            if self._ouster.takes(datagram, is_like_others=is_velodyne_like or name in self._cepton):
                return True
            if name not in self._cepton or is_velodyne_like:
                return False
        self._taken += 1
        sensor = self._cepton.get(name)
        if sensor is None:
            if len(self._cepton) >= VERIFY_SENSORS.bound:
                self._further += 1
                return True
            sensor = self._cepton[name] = CeptonSensor(name)
        self._waiting -= sensor.waiting
        sensor.add(datagram)
        self._waiting += sensor.waiting
        if self._waiting * _PER_PACKET > VERIFY_WAITING.bound:
            fullest = max(self._cepton.values(), key=lambda each: each.waiting)
            self._waiting -= fullest.waiting
            fullest.flush()
        return True

    def result(self, *, host_waited_ns: int = 0) -> CheckResult:
        """Judge the waiting packets and return the result; feeding may continue afterwards.

        Args:
            host_waited_ns: Time for which the listening host kept a program waiting meanwhile; bursts that this may explain are a warning.
        """
        for sensor in self._cepton.values():
            sensor.flush()
        self._waiting = 0
        velodyne = self._velodyne.result(host_waited_ns=host_waited_ns)
        ouster = self._ouster.results(host_waited_ns=host_waited_ns)
        if not self._cepton and not ouster:
            return velodyne
        log = FindingLog()
        for family, further in (("Cepton", self._further), ("Ouster", self._ouster.further)):
            if further:
                log.report(
                    STREAM_MANY,
                    f"only the first {VERIFY_SENSORS.bound} {family} sensors were checked: {further:,} packets of others were counted only",
                )
        return replace(
            velodyne,
            sensors=(*velodyne.sensors, *(sensor.result() for sensor in self._cepton.values()), *ouster),
            findings=(*(each for each in velodyne.findings if each.rule != STREAM_NONE.id), *log.findings),
            datagrams=velodyne.datagrams + self._taken + self._ouster.taken,
        )
