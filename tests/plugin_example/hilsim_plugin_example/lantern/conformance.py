"""Rules for a Lantern's packets."""

from dataclasses import dataclass
from typing import Any

from hilsim.plugins import Claim, ConformancePart, Place, Rule, SensorCheck, SensorSummary, Severity
from hilsim_plugin_example.lantern.protocol import COLUMNS, stacked
from hilsim_plugin_example.lantern.recognition import recognise

NUMBER = Rule(id="lantern.number", severity=Severity.ERROR, packets=2)


@dataclass(frozen=True, kw_only=True)
class LanternSummary(SensorSummary):
    """Figures of a stream."""

    packets: int

    def lines(self) -> list[str]:
        """Figures as lines of text."""
        return [f"packets   {self.packets} of {COLUMNS} columns"]


class LanternCheck(SensorCheck):
    """Check of one sensor."""

    waiting = 0

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._packets = 0
        self._next: int | None = None

    def add(self, datagram: Any) -> None:
        """Each packet continues with the column behind the former one's last."""
        if recognise(datagram.payload) is None:
            return
        number = int(stacked([datagram.payload])["number"][0])
        if self._next not in {None, number}:
            self.log.report(NUMBER, f"number of the first column must be {self._next}, got {number}", Place(self._packets, datagram.frame, 4))
        self._packets, self._next = self._packets + 1, (number + COLUMNS) % (1 << 32)

    def flush(self) -> None:
        """Nothing waits."""

    def conclude(self, log: Any, host_waited_ns: int) -> None:
        """No rule is about the whole stream."""

    def summary(self) -> LanternSummary:
        """Figures so far."""
        return LanternSummary(packets=self._packets)


PART = ConformancePart(
    label="Lantern",
    claim=lambda datagram: Claim.SURE if recognise(datagram.payload) else Claim.NONE,
    sensor=lambda source, _metadata: LanternCheck(source),
)
