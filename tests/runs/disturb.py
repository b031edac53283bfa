"""``python -m tests.runs.disturb COMMAND``: runs a command as on a bad machine, to see whether tests judge the code.

Two processes keep the cores busy, and the command's whole process group is stopped and continued some thirty times for 0.1 to 1.2 s.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time

STOPS = 30
SHORTEST_S, LONGEST_S = 0.1, 1.2
_BUSY = "while True: pass"


def disturb(command, *, stops, every_s, seed, busy_processes=2):
    """Run a command under disturbance; its exit code and how long (s) each stop was."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    busy = [subprocess.Popen([sys.executable, "-S", "-c", _BUSY]) for _ in range(busy_processes)]
    process = subprocess.Popen(command, process_group=0)
    lengths_s = []
    try:
        while len(lengths_s) < stops and _runs_on(process, every_s * chance.uniform(0.5, 1.5)):
            lengths_s.append(chance.uniform(SHORTEST_S, LONGEST_S))
            os.killpg(process.pid, signal.SIGSTOP)
            time.sleep(lengths_s[-1])
            os.killpg(process.pid, signal.SIGCONT)
        return process.wait(), lengths_s
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGCONT)
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
        for each in busy:
            each.kill()
            each.wait()


def _runs_on(process, seconds):
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def main():
    """Disturb the command of the arguments; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.runs.disturb")
    parser.add_argument("--stops", type=int, default=STOPS)
    parser.add_argument("--every-s", type=float, default=35.0, help="mean time between two stops")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    code, lengths_s = disturb(arguments.command, stops=arguments.stops, every_s=arguments.every_s, seed=arguments.seed)
    sys.stdout.write(f"stopped {len(lengths_s)} times, {sum(lengths_s):.1f} s in all; exit code {code}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
