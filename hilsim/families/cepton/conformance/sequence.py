"""Rules for sequence numbers: missing, repeated and reordered packets."""

from collections import OrderedDict
from zlib import crc32

from hilsim.families.cepton.conformance.stretch import PointPacket
from hilsim.families.cepton.protocol.stdv import POINT_SIZE, SEQUENCE_OFFSET
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity

LOST = Rule(id="sequence.lost", severity=Severity.WARNING, packets=2)
TIME = Rule(id="sequence.time", severity=Severity.ERROR, packets=2)
ORDER = Rule(id="sequence.order", severity=Severity.WARNING, packets=2)
DUPLICATE = Rule(id="sequence.duplicate", severity=Severity.WARNING, packets=2)
REPEATED = Rule(id="sequence.repeated", severity=Severity.ERROR, packets=2)
RESTART = Rule(id="sequence.restart", severity=Severity.WARNING, packets=2)

_NUMBERS = 1 << 32
_MAX_LEAP = 1 << 20  # 150 s of the fastest known sensor; a larger step is a restart or another sensor
_MAX_OVERTAKEN = 16
_REMEMBERED = 64
_OVERTAKEN_SHARE = 0.01


def _duration_us(packet: PointPacket) -> int:
    """Duration of a packet's points, the sum of their steps."""
    return sum(packet.payload[packet.header_size + 7 :: POINT_SIZE])


class SequenceTopic:
    """Sequence numbers of one sensor, which show the packets that follow each other directly."""

    def __init__(self) -> None:
        self.taken = 0
        self.lost = 0
        self.holes = 0
        self.overtaken = 0
        self._last: PointPacket | None = None
        self._end_us = 0
        self._last_duration_us = 0
        self._seen: OrderedDict[tuple[int, int], int] = OrderedDict()

    def take(self, packet: PointPacket, log: FindingLog) -> bool | None:
        """Judge a packet; returns whether it directly follows the former one, or None for a repeated or late packet, which is left out."""
        follows = self._judge(packet, log)
        self.taken += 1
        if follows is None:
            return None
        self._seen[self._name(packet)] = crc32(packet.payload)
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        self._last = packet
        self._last_duration_us = _duration_us(packet)
        self._end_us = packet.stamp_us + self._last_duration_us
        return follows

    def _name(self, packet: PointPacket) -> tuple[int, int]:
        """Packet identity: the sequence number, or the stamp without numbers."""
        return (packet.sequence, 0) if packet.sequence >= 0 else (-1, packet.stamp_us)

    def _judge(self, packet: PointPacket, log: FindingLog) -> bool | None:
        last = self._last
        if last is None or last.version != packet.version:
            return False
        place = Place(packet.number, packet.frame, SEQUENCE_OFFSET if packet.sequence >= 0 else 8)
        if packet.sequence < 0:
            return self._by_time(packet, place, log)
        step = (packet.sequence - last.sequence + _NUMBERS // 2) % _NUMBERS - _NUMBERS // 2
        if step == 1:
            return True
        if -_MAX_OVERTAKEN <= step <= 0:
            self._note_again_or_late(packet, place, log)
            return None
        self._judge_leap(packet, step, place, log)
        return False

    def _judge_leap(self, packet: PointPacket, step: int, place: Place, log: FindingLog) -> None:
        """Judge a step ahead of the numbers: missing packets, a restart of the sensor, or a wrong number."""
        passed_us = packet.stamp_us - self._end_us
        if not 1 < step <= _MAX_LEAP:
            runs_on = 0 <= passed_us <= _MAX_OVERTAKEN * max(self._last_duration_us, 1)
            text = f"the number begins anew: {packet.sequence} after {self._last.sequence if self._last else None}, " + (
                "while stamps run on" if runs_on else "and so do the stamps"
            )
            log.report(RESTART, text, place, severity=Severity.ERROR if runs_on else None)
            self._seen.clear()
            return
        expected_us = (step - 1) * self._last_duration_us
        if abs(passed_us - expected_us) > max(expected_us // 10, self._last_duration_us // 2):
            log.report(
                TIME,
                f"{step - 1} missing packets must take about {expected_us} us, got {passed_us} us from the last point before to the stamp",
                place,
            )
            return
        self._miss(step - 1)

    def _by_time(self, packet: PointPacket, place: Place, log: FindingLog) -> bool | None:
        """Judge a packet without a number: a stamp at least half a packet away from the last point before is a gap."""
        passed_us = packet.stamp_us - self._end_us
        packets = round(passed_us / max(self._last_duration_us, 1))
        if packets == 0:
            return True
        if passed_us > 0:
            self._miss(packets)
            return False
        if packets >= -_MAX_OVERTAKEN:
            self._note_again_or_late(packet, place, log)
            return None
        log.report(RESTART, f"stamps begin anew: {packet.stamp_us} after {self._end_us}", place)
        return False

    def _miss(self, packets: int) -> None:
        self.lost += packets
        self.holes += 1

    def _note_again_or_late(self, packet: PointPacket, place: Place, log: FindingLog) -> None:
        known = self._seen.get(self._name(packet))
        named = f"number {packet.sequence}" if packet.sequence >= 0 else f"stamp {packet.stamp_us}"
        if known is None:
            self.overtaken += 1
            self.lost = max(self.lost - 1, 0)
            self._seen[self._name(packet)] = crc32(packet.payload)
        elif known == crc32(packet.payload):
            log.report(DUPLICATE, f"{named} comes twice", place)
        else:
            log.report(REPEATED, f"{named} must be one packet's, got two that differ", place)

    def conclude(self, log: FindingLog) -> None:
        """Judge the whole stream."""
        if self.lost:
            log.report(LOST, f"{self.lost} packets are missing, in {self.holes} places")
        if self.overtaken:
            is_much = self.overtaken > _OVERTAKEN_SHARE * self.taken
            log.report(ORDER, f"{self.overtaken} of {self.taken} packets came behind later ones", severity=Severity.ERROR if is_much else None)
