"""Rules for stamps: headers and points must have one clock."""

import numpy as np

from hilsim.families.cepton.conformance.stretch import PointPacket, Stretch
from hilsim.families.cepton.protocol.stdv import STAMP_OFFSET
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity

CHAIN = Rule(id="stamps.chain", severity=Severity.ERROR, packets=2)
RANGE = Rule(id="stamps.range", severity=Severity.ERROR)
CONSTANT = Rule(id="stamps.constant", severity=Severity.ERROR, packets=8)
RATE = Rule(id="stamps.rate", severity=Severity.WARNING, packets=200)
UTC = Rule(id="stamps.utc", severity=Severity.WARNING, packets=16)

UTC_FROM_US = 10**15
"""Stamp from which the clock is UTC: reached by UTC in 2001, by a counter of microseconds since power-up after 31 years."""
_ENDS = 32
_SHORTEST_S = 1.0
_LARGEST_DIFFERENCE = 0.02
_MAX_FROM_UTC_S = 5.0


class StampsTopic:
    """Stamps of one sensor."""

    def __init__(self) -> None:
        self.packets = 0
        self.step_sum_us = 0
        self._first: list[PointPacket] = []
        self._last: list[PointPacket] = []

    def restart(self) -> None:
        """Note a restart of the sensor, after which stamps have no relation to earlier ones."""
        self._first, self._last = [], []

    def look(self, stretch: Stretch, log: FindingLog) -> None:
        """Judge a stretch."""
        self.packets += len(stretch.packets)
        self.step_sum_us += int(stretch.points["step_us"].sum())
        self._first += stretch.packets[: max(_ENDS - len(self._first), 0)]
        self._last = (self._last + stretch.packets)[-_ENDS:]
        stamps = np.array([packet.stamp_us for packet in stretch.packets], dtype=np.int64)
        before_us = stretch.before.time_us if stretch.before is not None else int(stamps[0])
        ends = np.concatenate(([before_us], stretch.time_us[stretch.start[1:] - 1]))
        broken = stretch.follows & (stamps != ends)

        def place(row: int) -> Place:
            return Place(stretch.packets[row].number, stretch.packets[row].frame, STAMP_OFFSET)

        def message(row: int) -> str:
            return f"the header's stamp must be {ends[row]} us, when the last point before was fired, got {stamps[row]}"

        log.report_each(CHAIN, broken, message, place)
        log.report_each(RANGE, stamps < 0, lambda row: f"stamp must be 0 us or more, got {stamps[row]}", place)

    @property
    def is_utc(self) -> bool:
        """Whether stamps count from 1970."""
        return bool(self._last) and self._last[-1].stamp_us >= UTC_FROM_US

    @property
    def zero(self) -> str:
        """Zero of the stamps: ``power-up`` or ``UTC``."""
        return "UTC" if self.is_utc else "power-up"

    @property
    def ahead_of_host_s(self) -> float:
        """Latest stamps minus the host's time; NaN without packets."""
        return _ahead_s(self._last)

    @property
    def rate_ratio(self) -> float:
        """Time by the stamps over time by the host's clock; NaN for too short a time."""
        if self.packets < RATE.packets or not self._first:
            return float("nan")
        host_s = (self._last[0].host_stamp_ns - self._first[0].host_stamp_ns) / 1e9
        return 1.0 + (_ahead_s(self._last) - _ahead_s(self._first)) / host_s if host_s >= _SHORTEST_S else float("nan")

    def conclude(self, log: FindingLog) -> None:
        """Judge the whole stream."""
        if self.packets >= CONSTANT.packets and self.step_sum_us == 0:
            log.report(CONSTANT, f"steps must not all be 0, got that in {self.packets} packets")
        if abs(self.rate_ratio - 1.0) > _LARGEST_DIFFERENCE:
            log.report(RATE, f"stamps must count as fast as the host within {100 * _LARGEST_DIFFERENCE:g} %, got {100 * self.rate_ratio:.2f} % of it")
        if self.is_utc and self.packets >= UTC.packets and abs(self.ahead_of_host_s) > _MAX_FROM_UTC_S:
            log.report(UTC, f"stamps since 1970 must be the host's time within {_MAX_FROM_UTC_S:g} s, got {self.ahead_of_host_s:+.1f} s")


def _ahead_s(packets: list[PointPacket]) -> float:
    """Median of stamp minus host time."""
    if not packets:
        return float("nan")
    return float(np.median([packet.stamp_us / 1e6 - packet.host_stamp_ns / 1e9 for packet in packets]))
