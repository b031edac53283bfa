"""What a run of the tests left out and why: written by each run, shown for all runs in one table by ``python -m tests.skips FOLDER``."""

import json
import os
import sys
from collections import Counter
from pathlib import Path

FOLDER = "HILSIM_SKIPS"
"""The environment's variable with the folder that runs write to; unset: they write nothing."""


def write(reports):
    """One file for this run: how many tests for each reason."""
    if FOLDER not in os.environ:
        return
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)
    folder = Path(os.environ[FOLDER])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{os.getpid()}.json").write_text(json.dumps(reasons))


def table(folder):
    """The lines of the table, the most frequent reason first."""
    counts = Counter()
    for path in Path(folder).glob("*.json"):
        counts.update(json.loads(path.read_text()))
    if not counts:
        return ["nothing was skipped"]
    return [f"{'skipped':>7}  because", *(f"{count:>7}  {reason}" for reason, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))]


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in table(sys.argv[1]))
