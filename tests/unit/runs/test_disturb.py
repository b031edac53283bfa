"""A disturbed command is stopped as a whole, and its exit code is passed on."""

import sys

from tests.runs.disturb import disturb

SLEEPING = (
    "import subprocess, sys, time\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import time\\nlast = time.monotonic()\\nlongest = 0.0\\nwhile longest < 0.09:\\n"
    "    time.sleep(0.001)\\n    now = time.monotonic()\\n    longest = max(longest, now - last)\\n    last = now\\n'])\n"
    "sys.exit(7 if child.wait() == 0 else 1)\n"
)


def test_the_command_and_what_it_starts_are_stopped_until_they_have_noticed():
    code, lengths_s = disturb([sys.executable, "-c", SLEEPING], stops=200, every_s=0.2, seed=1)
    assert code == 7
    assert len(lengths_s) >= 1
    assert all(0.1 <= length_s <= 1.2 for length_s in lengths_s)


def test_a_command_that_ends_at_once_is_not_disturbed():
    assert disturb([sys.executable, "-c", "raise SystemExit(3)"], stops=5, every_s=60.0, seed=1, busy_processes=0) == (3, [])
