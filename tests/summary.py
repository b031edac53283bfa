"""``python -m tests.summary STEP COMMAND...``: runs one step of ``make test-all`` and adds it to the summary; without arguments it prints the summary.

A step's result is its exit code, minutes, and what pytest's JUnit report counts. The summary's exit code is 1 if a step failed.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

FOLDER = Path(".test-all")


def run(step, command):
    """Run a command; store what it came to, and return 0: the summary judges all steps."""
    FOLDER.mkdir(exist_ok=True)
    report = FOLDER / f"{step}.xml"
    report.unlink(missing_ok=True)
    began_s = time.monotonic()
    addopts = f"{os.environ.get('PYTEST_ADDOPTS', '')} --junit-xml={report.resolve()}"
    code = subprocess.run(command, env=os.environ | {"PYTEST_ADDOPTS": addopts}, check=False).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    row = {"step": step, "code": code, "minutes": (time.monotonic() - began_s) / 60, "cpu_minutes": (used.ru_utime + used.ru_stime) / 60}
    (FOLDER / f"{step}.json").write_text(json.dumps(row | counts(report) | {"at_s": began_s}))
    return 0


def counts(report):
    """What a JUnit report counts: tests by outcome, names of failed ones, reasons of skips."""
    outcomes, failed, reasons = Counter(), [], Counter()
    for case in ET.parse(report).iter("testcase") if report.exists() else ():  # noqa: S314 - pytest wrote it
        kinds = {child.tag: child.get("message", "") for child in case}
        if "failure" in kinds or "error" in kinds:
            outcomes["failed"] += 1
            failed.append(f"{case.get('classname')}::{case.get('name')}")
        elif "skipped" in kinds:
            outcomes["skipped"] += 1
            reasons[kinds["skipped"].splitlines()[0].removeprefix("Skipped: ")] += 1
        else:
            outcomes["passed"] += 1
    return {**outcomes, "failed_tests": failed, "reasons": dict(reasons)}


def summary():
    """Print all steps, the failed tests and the reasons of skips; 1 if a step failed."""
    rows = sorted((json.loads(path.read_text()) for path in FOLDER.glob("*.json")), key=lambda row: row["at_s"])
    lines = [f"{'step':12} {'result':>8} {'passed':>7} {'failed':>7} {'skipped':>8} {'minutes':>8} {'processor':>10}"]
    for row in rows:
        passed, failed, skipped = (row.get(name, 0) for name in ("passed", "failed", "skipped"))
        result = "ok" if row["code"] == 0 else f"exit {row['code']}"
        lines.append(f"{row['step']:12} {result:>8} {passed:7} {failed:7} {skipped:8} {row['minutes']:8.1f} {row['cpu_minutes']:10.1f}")
    lines += [f"FAILED {row['step']}: {test}" for row in rows for test in row["failed_tests"]]
    reasons = sum((Counter(row["reasons"]) for row in rows), Counter())
    lines += [f"{count:6} skipped: {reason}" for reason, count in reasons.most_common()]
    sys.stdout.write("\n".join(lines) + "\n")
    return int(any(row["code"] for row in rows))


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2:]) if len(sys.argv) > 2 else summary())
