"""What each run of the tests stores of itself, so that ``tests.runs`` can take a second look: failed tests, and how the run ended."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic_ns  # by its own name: tests replace the module's

import pytest

from tests import commands

FOLDER = "HILSIM_FAILURES"
"""Environment variable with the folder that runs write to; unset: they write nothing."""

_BEGAN_NS = pytest.StashKey[int]()
_BEGAN_CPU = pytest.StashKey[tuple[float, float]]()
_CALCULATED = ("tests/golden/",)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One failed test of a run.

    Attributes:
        test: Its node id.
        line: The last line of what pytest reports of it.
        began_ns: CLOCK_MONOTONIC.
        ended_ns: CLOCK_MONOTONIC.
        is_final: It depends on no clock, no other process and no chance, or its process died: no second look.
    """

    test: str
    line: str
    began_ns: int
    ended_ns: int
    is_final: bool


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one run of pytest stored.

    Attributes:
        failures: In the order they came.
        passed: Tests.
        exit_status: pytest's; None: the run ended without its report.
        faults: Of the run itself: tests that could not be collected, processes left behind.
    """

    failures: tuple[Failure, ...]
    passed: int
    exit_status: int | None
    faults: tuple[str, ...]

    @property
    def is_explained(self):
        """Whether its failed tests are all that is wrong with it."""
        return not self.faults and self.exit_status == (1 if self.failures else 0)


class Recorder:
    """Writes a run's file; registered by ``tests.conftest`` in the process that started the run."""

    def __init__(self, folder):
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._path = Path(folder) / f"{os.getpid()}.jsonl"
        self._passed, self._faults, self._costs = 0, [], {}

    def pytest_runtest_logreport(self, report):
        """Store a failure at once: the run may die of the next one."""
        if report.failed:
            now_ns = monotonic_ns()
            began_ns, ended_ns = getattr(report, "ran_ns", (now_ns, now_ns))
            is_final = getattr(report, "is_final", True)  # the report of a worker's death has no such attribute
            self._write(asdict(Failure(test=report.nodeid, line=_last_line(report), began_ns=began_ns, ended_ns=ended_ns, is_final=is_final)))
        self._passed += report.passed and report.when == "call"
        if report.when == "teardown" and hasattr(report, "cost"):
            self._costs[report.nodeid] = report.cost

    def pytest_collectreport(self, report):
        """Store what could not be collected."""
        if report.failed:
            self._faults.append(f"{report.nodeid} could not be collected: {_last_line(report)}")

    def close(self, exit_status, faults):
        """Store how the run ended."""
        self._write({"exit_status": int(exit_status), "passed": self._passed, "faults": [*self._faults, *faults]})
        self._path.with_suffix(".costs").write_text(json.dumps(self._costs))

    def _write(self, record):
        with self._path.open("a") as file:
            file.write(json.dumps(record) + "\n")


def note_beginning(item):
    """Call before a test is set up."""
    item.stash[_BEGAN_NS] = monotonic_ns()
    item.stash[_BEGAN_CPU] = _cpu_s()


def annotate(item, report):
    """Add to a report when its test ran and whether it may have a second look; workers send such attributes on."""
    report.ran_ns = (item.stash.get(_BEGAN_NS, monotonic_ns()), monotonic_ns())
    is_property = hasattr(getattr(item, "function", None), "hypothesis")  # examples come from a fixed seed
    own_s, children_s = _cpu_s()
    began_own_s, began_children_s = item.stash.get(_BEGAN_CPU, (own_s, children_s))
    report.cost = {"own_s": own_s - began_own_s, "children_s": children_s - began_children_s, "is_property": is_property}
    report.is_final = is_property or item.nodeid.startswith(_CALCULATED) or os.environ.get("NUMBA_DISABLE_JIT") == "1"


def read_run(folder):
    """What the one run that wrote to ``folder`` stored; of a run that wrote nothing ``exit_status`` is None."""
    records = [json.loads(line) for path in sorted(Path(folder).glob("*.jsonl")) for line in path.read_text().splitlines()]
    end = records.pop() if records and "exit_status" in records[-1] else {"exit_status": None, "passed": 0, "faults": []}
    seen = {}
    for record in records:
        seen.setdefault(record["test"], Failure(**record))
    return Run(failures=tuple(seen.values()), passed=end["passed"], exit_status=end["exit_status"], faults=tuple(end["faults"]))


def _cpu_s():
    """Processor time of this process, and of what it started that has ended."""
    times = os.times()
    return times.user + times.system, times.children_user + times.children_system + commands.used_s()


def _last_line(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[0] if crash is not None else lines[-1])[:300] if lines else ""
