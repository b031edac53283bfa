"""Rules for the headers of point packets: whether readers can decode the packet."""

from struct import Struct

from hilsim.capture.datagram import CapturedDatagram
from hilsim.families.cepton.conformance.stretch import PointPacket
from hilsim.families.cepton.protocol.stdv import POINT_SIZE, header_size, points_max, read_stdv_header
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity

VERSION = Rule(id="stdv.version", severity=Severity.ERROR)
SIZE = Rule(id="stdv.size", severity=Severity.ERROR)
COUNT = Rule(id="stdv.count", severity=Severity.ERROR)
POINT = Rule(id="stdv.point", severity=Severity.ERROR)
FLAGS = Rule(id="stdv.flags", severity=Severity.WARNING)
CHANGED = Rule(id="stdv.changed", severity=Severity.ERROR)

_HEADER = Struct("<4sBBHqBBH")
_EXTENDED_POINT = 12


class HeadersTopic:
    """Headers of one sensor, judged one by one."""

    def __init__(self) -> None:
        self.packets = 0
        self.versions: tuple[int, ...] = ()

    def read(self, datagram: CapturedDatagram, log: FindingLog) -> PointPacket | None:
        """Judge the header; returns the packet if its points can be judged."""
        place = Place(self.packets, datagram.frame)
        self.packets += 1
        payload = datagram.payload
        if len(payload) < _HEADER.size:
            log.report(SIZE, f"a packet must have a header of 20 bytes or more, got {len(payload)} bytes in all", place)
            return None
        _, version, size, flags, stamp_us, point_version, point_size, points = _HEADER.unpack_from(payload)
        if version not in {1, 2} or size != header_size(version):
            log.report(VERSION, f"header must be version 1 of 20 bytes or 2 of 24, got version {version} of {size}", place.at(4))
            return None
        if flags:
            log.report(FLAGS, f"flags must be 0, got 0x{flags:04x}", place.at(6))
        if self.versions and version not in self.versions:
            log.report(CHANGED, f"header version must stay {min(self.versions)}, got {version}", place.at(4))
        self.versions = tuple(sorted({*self.versions, version}))
        if not self._has_sound_points(size, point_version, point_size, points, version, len(payload), place, log):
            return None
        header = read_stdv_header(payload)
        sequence = -1 if header is None or header.sequence is None else header.sequence
        return PointPacket(place.packet_index, datagram.frame, datagram.host_stamp_ns, version, size, stamp_us, sequence, payload)

    def _has_sound_points(
        self, size: int, point_version: int, point_size: int, points: int, version: int, payload_size: int, place: Place, log: FindingLog
    ) -> bool:
        if (point_version, point_size) != (0, POINT_SIZE):
            is_extended = point_size == _EXTENDED_POINT
            log.report(
                POINT,
                f"points must be version 0 of 10 bytes, got version {point_version} of {point_size}"
                + (": not checked further" if is_extended else ""),
                place.at(16),
                severity=Severity.WARNING if is_extended else None,
            )
            return False
        if not 1 <= points <= points_max(version):
            log.report(COUNT, f"points must be 1 to {points_max(version)}, got {points}", place.at(18))
            return False
        if payload_size != size + points * POINT_SIZE:
            log.report(SIZE, f"{points} points behind {size} bytes of header must be {size + points * POINT_SIZE} bytes, got {payload_size}", place)
            return False
        return True
