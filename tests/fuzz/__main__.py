"""``python -m tests.fuzz``: every target in a process of its own, or one of them; exits with 1 where something came out that may not.

python -m tests.fuzz --seconds 3600                             # an hour, divided among the targets
python -m tests.fuzz --target npz --seed 7 --count 100000
python -m tests.fuzz --target npz --seed 7 --first 4711 --count 1   # one input again, by its number
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Feeds corrupted inputs to every parser.")
    parser.add_argument("--target", action="append", default=[], help="a target's name; repeatable; default: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1_000_000, help="inputs a target")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for all targets together")
    parser.add_argument("--output", type=Path, default=Path(".fuzz"), help="where failing inputs are kept")
    parser.add_argument("--list", action="store_true", help="print the names of the targets")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        return _run_here(given)
    from tests.fuzz.targets import TARGETS  # noqa: PLC0415 - imports Numba, which reads the environment only once

    if given.list:
        print("\n".join(TARGETS))  # noqa: T201
        return 0
    names = given.target or list(TARGETS)
    codes = [_run_apart(name, given, len(names), needs_kernels=TARGETS[name].needs_kernels) for name in names]
    return int(any(codes))


def _run_apart(name: str, given: argparse.Namespace, targets: int, *, needs_kernels: bool) -> int:
    command = [sys.executable, "-m", "tests.fuzz", "--here", "--target", name, "--output", str(given.output)]
    command += ["--seed", str(given.seed), "--count", str(given.count), "--first", str(given.first), "--seconds", str(given.seconds / targets)]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "0" if needs_kernels else "1", "MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment, check=False).returncode


def _run_here(given: argparse.Namespace) -> int:
    from tests.fuzz.harness import fuzz  # noqa: PLC0415 - as above
    from tests.fuzz.targets import TARGETS  # noqa: PLC0415

    failures = 0
    for words in given.target:
        name, _, count = words.partition("=")
        most = int(count or given.count)
        outcome = fuzz(TARGETS[name], given.output, seed=given.seed, count=most, seconds=given.seconds, first=given.first)
        print(outcome.text(), flush=True)  # noqa: T201
        failures += len(outcome.failures)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
