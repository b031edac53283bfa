"""Health of the daemon: judge successive readings, and log each fault once when it begins and once when it ends."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import structlog

from hilsim.daemon.notify import ServiceManager
from hilsim.telemetry.faults import Fault, InjectedFault, Level
from hilsim.telemetry.history import CounterHistory
from hilsim.telemetry.losses import WINDOW_S, is_judged, judge, kernel_counters, own_counters
from hilsim.telemetry.readings import Reading
from hilsim.units import NS_PER_S

_UNWATCHED_NS = 5 * NS_PER_S
_STEP_NS = 5 * NS_PER_S
_RECORDS_KEPT = 8
_RECORD_PAUSE_NS = 10 * NS_PER_S
_STATUS_NS = 10 * NS_PER_S


class Changes(NamedTuple):
    """Changes of faults since the last reading.

    Attributes:
        began: New faults.
        worsened: Faults that became unhealthy for the first time since they began.
        ended: Faults that have ended, with their duration in seconds.
    """

    began: tuple[Fault, ...]
    worsened: tuple[Fault, ...]
    ended: tuple[tuple[Fault, float], ...]


class HealthMonitor:
    """Judge of successive readings, which takes the time as an argument. One thread calls ``observe``, any thread may call the rest."""

    def __init__(self) -> None:
        self._history = CounterHistory()
        self._active: Mapping[tuple[str, str], Fault] = {}
        self._worst: Mapping[tuple[str, str], Level] = {}
        self._judged: tuple[Fault, ...] = ()
        self._observed_ns: int | None = None
        self._report: dict[str, Any] = {}
        self._records: deque[tuple[int, dict[str, Any]]] = deque(maxlen=_RECORDS_KEPT)

    def observe(self, reading: Reading, now_ns: int) -> Changes:
        """Judge a reading at CLOCK_MONOTONIC ``now_ns``; to be called about twice a second."""
        self._history.note(now_ns, own_counters(reading), kernel_counters(reading))
        self._judged = judge(self._history.grown(WINDOW_S * NS_PER_S), reading)
        former, worst = self._active, self._worst
        active = {
            fault.identity: replace(fault, since_ns=former[fault.identity].since_ns if fault.identity in former else now_ns)
            for fault in (*_found(reading), *self._judged)
        }
        self._active, self._observed_ns = active, now_ns
        self._worst = {key: Level.UNHEALTHY if worst.get(key) is Level.UNHEALTHY else fault.level for key, fault in active.items()}
        return Changes(
            began=tuple(fault for key, fault in active.items() if key not in former),
            worsened=tuple(fault for key, fault in active.items() if worst.get(key) is Level.DEGRADED and fault.level is Level.UNHEALTHY),
            ended=tuple((fault, (now_ns - (fault.since_ns or now_ns)) / 1e9) for key, fault in former.items() if key not in active),
        )

    def complete(self, reading: Reading, now_ns: int) -> Reading:
        """Add to a reading the faults found in those before it, and the time when each fault began."""
        active, observed_ns = self._active, self._observed_ns
        faults = [*_found(reading), *self._judged]
        if observed_ns is not None and now_ns - observed_ns > _UNWATCHED_NS:
            faults.append(
                Fault(key="health_unwatched", text=f"the counters were last checked {(now_ns - observed_ns) / 1e9:.0f} s ago", since_ns=observed_ns)
            )
        dated = (replace(fault, since_ns=active[fault.identity].since_ns) if fault.identity in active else fault for fault in faults)
        return replace(reading, faults=tuple(dated))

    def record(self, now_ns: int) -> dict[str, list[int]] | None:
        """Store the last minute of counters for later, and return it; None if the former record is younger than 10 s.

        Returns:
            Growth of each counter that grew, by ``"subject name"``, in intervals of 5 s, oldest first.
        """
        if self._records and now_ns - self._records[-1][0] < _RECORD_PAUSE_NS:
            return None
        counters = self._last_minute()
        self._records.append((now_ns, {"faults": [fault.sentence for fault in self._active.values()], "counters": counters}))
        return counters

    def report(self, now_ns: int) -> dict[str, Any]:
        """Report for JSON: the last minute of counters now, and at the beginning of the latest faults."""
        recorded = [{"ago_s": round((now_ns - at_ns) / 1e9, 1), **record} for at_ns, record in tuple(self._records)]
        return {"step_s": _STEP_NS // NS_PER_S, "counters": self._last_minute(), "recorded": recorded}

    def _last_minute(self) -> dict[str, list[int]]:
        return {f"{counted.subject} {counted.name}": growth for counted, growth in self._history.series(_STEP_NS).items()}


def _found(reading: Reading) -> tuple[Fault, ...]:
    """Faults that a reading contains and that are not judged here, whether or not the reading was completed before."""
    return tuple(fault for fault in reading.faults if not is_judged(fault.key) and fault.key != "health_unwatched")


class HealthReporter:
    """Reporter of a monitor's findings to the log and the service manager."""

    def __init__(self, monitor: HealthMonitor, manager: ServiceManager, log: structlog.stdlib.BoundLogger, streaming: Callable[[], str]) -> None:
        """Report the findings of ``monitor``; ``streaming`` gives the service manager's status without faults."""
        self._monitor = monitor
        self._manager = manager
        self._log = log
        self._streaming = streaming
        self._noted: set[tuple[str, str]] = set()
        self._injected: set[InjectedFault] = set()
        self._status: frozenset[tuple[str, str, str]] = frozenset()
        self._status_ns: int | None = None

    def step(self, reading: Reading, now_ns: int, notes: Iterable[tuple[str, str]] = ()) -> Reading:
        """Judge and report one reading; to be called about twice a second.

        Args:
            reading: Newest reading.
            now_ns: CLOCK_MONOTONIC time.
            notes: Remarks on replays for the operator: name and sentence.

        Returns:
            The reading, with the faults found.
        """
        for name, note in notes:
            if (name, _without_count(note)) not in self._noted:
                self._noted.add((name, _without_count(note)))
                self._log.warning("replay.noted", replay=name, note=note)
        changes = self._monitor.observe(reading, now_ns)
        completed = self._monitor.complete(reading, now_ns)
        self._tell(changes, completed, now_ns)
        self._tell_injected(completed)
        self._tell_manager(completed, now_ns)
        return completed

    def _tell(self, changes: Changes, reading: Reading, now_ns: int) -> None:
        for event, faults in (("health.fault_began", changes.began), ("health.fault_worsened", changes.worsened)):
            for fault in faults:
                report = self._log.error if fault.level is Level.UNHEALTHY else self._log.warning
                report(event, fault=fault.key, subject=fault.subject, fault_level=fault.level.value, text=fault.text)
        for fault, duration_s in changes.ended:
            self._log.info("health.fault_ended", fault=fault.key, subject=fault.subject, duration_s=round(duration_s, 1), text=fault.text)
        if changes.began and (counters := self._monitor.record(now_ns)) is not None:
            self._log.warning("health.counters_recorded", step_s=_STEP_NS // NS_PER_S, counters=counters)
        if changes.ended and not reading.faults:
            self._log.info("health.restored")

    def _tell_injected(self, reading: Reading) -> None:
        """Log faults on command as they come and go."""
        acting = {each for each in reading.injected if each.acts}
        for event, faults in (("fault.began", acting - self._injected), ("fault.ended", self._injected - acting)):
            for each in sorted(faults):
                self._log.info(event, fault=each.fault, kind=each.kind, on=each.on)
        self._injected = acting

    def _tell_manager(self, reading: Reading, now_ns: int) -> None:
        """Send a new status when faults begin, end or change their level, and new figures every 10 s."""
        faults = frozenset((*fault.identity, fault.level.value) for fault in reading.faults)
        is_due = bool(faults) and self._status_ns is not None and now_ns - self._status_ns >= _STATUS_NS
        if faults != self._status or is_due:
            self._manager.status("; ".join(fault.sentence for fault in reading.faults) or self._streaming())
            self._status, self._status_ns = faults, now_ns


def _without_count(note: str) -> str:
    """Note without its numbers, so that the same remark is logged once whatever its numbers are."""
    return "".join(character for character in note if not character.isdigit())
