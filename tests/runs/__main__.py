"""``python -m tests.runs``: the tests of ``make test`` in groups beside each other, then a second look at what failed.

A test that fails in its group is run once more, alone. What fails again is a failure; what passes then is unsteady, and is listed.
Three unsteady tests let the run pass, a fourth fails it. Tests that depend on nothing but their inputs have no second look (``failures.annotate``).
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests import commands, skips
from tests.runs import costs, failures, standstills

MOST_UNSTEADY = 3
_MOST_LOOKS = 10
_MOST_REPEATS = 2
_STANDSTILL_NS = 100_000_000
_PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
_IN_TWO = ("--numprocesses=2", "--dist=loadfile")


@dataclass(frozen=True)
class Group:
    """Tests that one run of pytest takes.

    Attributes:
        name: For people.
        command: That runs them.
    """

    name: str
    command: tuple[str, ...]


def _under(folder, *names):
    return tuple(f"{folder}{name}" for name in names)


_FLIGHTS = _under(
    "tests/system/test_",
    "flight_controller.py",
    "controller_process.py",
    "scripted_controller.py",
    "link_doctor.py",
    "rangefinders.py",
    "shipped_rigs.py",
)
_PAGES = _under("tests/system/test_", "sensor_web.py", "view.py", "view_editor.py", "view_in_browser.py")
_PEERS = ("tests/interop", "tests/service")
_STREAMS = _under("tests/unit/", "analysis", "background", "capture", "comparison", "conformance", "inspection", "judgement", "picture")
_ELSEWHERE = ("tests/system", *_PEERS, *_STREAMS)


def _ignoring(paths):
    return tuple(f"--ignore={path}" for path in paths)


LANES = (
    (Group("units", (*_PYTEST, *_IN_TWO, "tests", *_ignoring(_ELSEWHERE))),),
    (
        Group("kernels as Python", ("make", "--no-print-directory", "kernels-as-python")),
        Group("streams", (*_PYTEST, *_IN_TWO, *_STREAMS)),
    ),
    (Group("flights", (*_PYTEST, *_FLIGHTS)), Group("peers", (*_PYTEST, *_PEERS))),
    (
        Group("programs", (*_PYTEST, *_IN_TWO, "tests/system", *_ignoring((*_FLIGHTS, *_PAGES)))),
        Group("pages", (*_PYTEST, *_PAGES)),
    ),
)
"""Groups one after the other within a lane, lanes beside each other.

Flights wait for the wall clock, tests of whole programs wait for packets, and the rest computes: six or seven processes keep two cores busy.
A browser that draws without a graphics card takes a core, so pages come one after the other, when most of the rest has ended.
"""


@dataclass(frozen=True)
class Outcome:
    """What one group came to.

    Attributes:
        group: Which.
        code: Of its process.
        log: What it printed.
        run: What it stored.
    """

    group: Group
    code: int
    log: Path
    run: failures.Run

    @property
    def faults(self):
        """What a second look at tests cannot explain."""
        found = [f"{self.group.name}: {fault}" for fault in self.run.faults]
        found += [f"{self.group.name}: {each.test}: {each.line}" for each in self.run.failures if each.is_final]
        if not found and not (self.run.is_explained and (self.code == 0 or self.run.failures)):
            found.append(f"{self.group.name}: ended with exit code {self.code}, and no failed test explains it")
        return found


def _run_lane(lane, folder, environment):
    for group in lane:
        place = folder / group.name.replace(" ", "-")
        place.mkdir()
        with (place / "log").open("w") as log:
            process = subprocess.Popen(group.command, stdout=log, stderr=subprocess.STDOUT, env=environment | {failures.FOLDER: str(place)})
            yield group, process, place


def run_groups(lanes, folder, environment):
    """Run all lanes; what each group came to, in the order in which they end. Prints a line a minute, and each group's log when it has ended."""
    outcomes, began_s, reported_s = [], time.monotonic(), time.monotonic()
    waiting = [_run_lane(lane, folder, environment) for lane in lanes]
    going = {lane: next(lane) for lane in waiting}
    try:
        while going:
            for lane, (group, process, place) in list(going.items()):
                if process.poll() is None:
                    continue
                outcomes.append(Outcome(group, process.returncode, place / "log", failures.read_run(place)))
                _print(f"\n----- {group.name}\n{(place / 'log').read_text()}")
                going[lane] = next(lane, None)
                if going[lane] is None:
                    del going[lane]
            time.sleep(0.1)
            if time.monotonic() - reported_s > 60.0:
                reported_s = time.monotonic()
                state = ", ".join(f"{group.name} {_percent(place / 'log')}" for group, _, place in going.values())
                _print(f"after {(reported_s - began_s) / 60:.0f} min: {state}")
    finally:
        for _, process, _ in going.values():
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            process.wait()
    return outcomes


def _percent(log):
    found = re.findall(r"\[ *\d+%\]", log.read_text())
    return found[-1] if found else "[  0%]"


def look_again(outcomes, folder, environment, machine):
    """Run what failed and may have a second look once more, one after the other.

    Returns:
        Rows of the table of unsteady tests, and the tests that failed again.
    """
    unsteady, failed = [], []
    again = [each for outcome in outcomes for each in outcome.run.failures if not each.is_final]
    for number, failure in enumerate(again):
        if number >= _MOST_LOOKS:
            failed.append(f"{failure.test}: {failure.line} (more than {_MOST_LOOKS} tests failed: no second look)")
            continue
        if _passes_alone(failure.test, folder / f"again-{number}", environment, machine):
            standstill_ms = machine.longest_ns(failure.began_ns, failure.ended_ns) // 1_000_000
            unsteady.append(
                f"{failure.test}\n    first failure: {failure.line}\n    longest standstill of the machine while it ran: {standstill_ms} ms"
            )
        else:
            failed.append(f"{failure.test}: {failure.line}")
    return unsteady, failed


def _passes_alone(test, folder, environment, machine):
    """Whether a test passes by itself; a failure during which the machine stood still does not count, twice."""
    for look in range(_MOST_REPEATS + 1):
        place, began_ns = folder / str(look), time.monotonic_ns()
        done = subprocess.run([*_PYTEST, test], env=environment | {failures.FOLDER: str(place)}, check=False)
        if done.returncode == 0 and failures.read_run(place).passed == 1:
            return True
        if machine.longest_ns(began_ns, time.monotonic_ns()) < _STANDSTILL_NS:
            return False
    return False


def judge(faults, unsteady, failed):
    """The last lines of a run, and its exit code."""
    lines = [f"FAILED {each}" for each in (*faults, *failed)]
    if unsteady:
        lines += [
            f"{len(unsteady)} unsteady (failed beside others, passed alone; {MOST_UNSTEADY} are permitted):",
            *(f"  {each}" for each in unsteady),
        ]
    is_red = bool(faults or failed or len(unsteady) > MOST_UNSTEADY)
    lines.append("the tests FAILED" if is_red else "the tests passed")
    return lines, int(is_red)


def main(lanes=LANES):
    """Run everything; the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # groups that run are ended too
    with tempfile.TemporaryDirectory(prefix="hilsim-tests-") as name:
        folder = Path(name)
        watcher = standstills.Watcher(folder / "standstills")
        environment = commands.ONE_THREAD | os.environ | {skips.FOLDER: str(folder / "skips"), standstills.FILE: str(watcher.path)}
        try:
            outcomes = run_groups(lanes, folder, environment)
            unsteady, failed = look_again(outcomes, folder, environment, standstills.Machine(watcher.path))
        finally:
            watcher.end()
        lines, code = judge([fault for outcome in outcomes for fault in outcome.faults], unsteady, failed)
        _print("\n".join([*skips.table(folder / "skips"), *lines]))
        (folder / "costs.txt").write_text("\n".join(costs.table(folder)) + "\n")
        with contextlib.suppress(OSError):
            shutil.copytree(folder, Path(".pytest_cache/last-run"), dirs_exist_ok=True)
        _print("processor time by group and by test: .pytest_cache/last-run/costs.txt")
    return code


def _print(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
