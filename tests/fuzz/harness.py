"""Runs one target over corrupted inputs and reports forbidden results.

Rules: nothing but ``HilsimError`` may come out; no input takes above ``MAX_CPU_S`` of CPU; memory does not grow over the run beyond ``MAX_GROWTH_MB``.
Input number ``i`` depends on the target's name, the seed and ``i`` alone.
"""

import gc
import json
import os
import resource
import signal
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from hilsim.errors import HilsimError
from tests.fuzz.mutation import Mutate

MAX_CPU_S = 1.0
HOPELESS_CPU_S = 10.0
MAX_GROWTH_MB = 96.0
MAX_MEMORY_BYTES = 6 << 30
MAX_FAILURES = 20
_WARM_UP_RATIO = 0.25


@dataclass(frozen=True, kw_only=True)
class Target:
    """One reader of bytes.

    Attributes:
        name: On the command line.
        corpus: Makes sound inputs in a directory of their own.
        mutate: Corrupts them.
        run: Reads one; ``HilsimError`` is a good answer.
        suffix: Of the file that keeps a failing input.
        needs_kernels: Compiled code is run; else Numba stays switched off, so that a wrong index is an exception.
        cpu_s: What one sound input may take more than ``MAX_CPU_S``: of kernels that run as Python, and of whole rigs.
    """

    name: str
    corpus: Callable[[Path], list[bytes]]
    mutate: Mutate
    run: Callable[[bytes, Path], None]
    suffix: str = ".bin"
    needs_kernels: bool = False
    cpu_s: float = 0.0


class HopelessError(BaseException):
    """An input took so long that it is given up."""


@dataclass(kw_only=True)
class Outcome:
    """What a run found.

    Attributes:
        target: Its name.
        inputs: How many were read.
        refused: Those answered by a ``HilsimError``.
        failures: ``"input 17: KeyError: … (file)"``.
        slowest_s: CPU of the slowest input.
        growth_mb: Of memory after the warm-up.
        seconds: Of the run.
    """

    target: str
    inputs: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    growth_mb: float = 0.0
    seconds: float = 0.0

    def text(self) -> str:
        """One line, and a line a failure."""
        line = (
            f"{self.target:14} {self.inputs:8,} inputs, {self.refused:8,} refused, slowest {self.slowest_s:.2f} s, "
            f"growth {self.growth_mb:+.1f} MB, {self.seconds:.0f} s, {len(self.failures)} failures"
        )
        return "\n".join([line, *(f"  {failure}" for failure in self.failures)])


def fuzz(target: Target, folder: Path, *, seed: int, count: int, seconds: float = float("inf"), first: int = 0) -> Outcome:
    """Read up to ``count`` inputs, for at most so long.

    Args:
        target: What reads.
        folder: For its files; failing inputs stay there.
        seed: Of the inputs.
        count: How many.
        seconds: Wall clock.
        first: Number of the first input; with ``count=1`` one is read again.
    """
    work = folder / f"{target.name}-files"
    work.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    _limit_memory()
    corpus = target.corpus(work)
    outcome = Outcome(target=target.name)
    begun = time.monotonic()
    warm_mb: float | None = None
    for number in range(first, first + count):
        elapsed_s = time.monotonic() - begun
        if elapsed_s > seconds or len(outcome.failures) >= MAX_FAILURES:
            break
        if warm_mb is None and (number - first >= _WARM_UP_RATIO * count or elapsed_s > _WARM_UP_RATIO * seconds):
            warm_mb = _resident_mb()
        data = target.mutate(Random(f"{target.name} {seed} {number}"), corpus)  # noqa: S311 - no secret
        fault = _read(target, data, work, outcome)
        if fault:
            place = folder / f"{target.name}-{seed}-{number}{target.suffix}"
            place.write_bytes(data)
            outcome.failures.append(f"input {number}: {fault} ({place})")
    outcome.seconds = time.monotonic() - begun
    outcome.growth_mb = 0.0 if warm_mb is None else _resident_mb() - warm_mb
    if outcome.growth_mb > MAX_GROWTH_MB:
        outcome.failures.append(f"memory must grow by at most {MAX_GROWTH_MB:.0f} MB after the warm-up, got {outcome.growth_mb:.0f} MB")
    return outcome


def _read(target: Target, data: bytes, work: Path, outcome: Outcome) -> str:
    """Read one input; returns what is wrong with what came out."""
    outcome.inputs += 1
    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, HOPELESS_CPU_S + target.cpu_s)
    begun_s = time.process_time()
    fault = ""
    try:
        target.run(data, work)
    except HilsimError:
        outcome.refused += 1
    except (Exception, HopelessError) as error:  # noqa: BLE001 - that is what is sought
        last = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"{type(error).__name__}: {str(error)[:120]} at {Path(last.filename).name}:{last.lineno}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    taken_s = time.process_time() - begun_s
    outcome.slowest_s = max(outcome.slowest_s, taken_s)
    if not fault and taken_s > MAX_CPU_S + target.cpu_s:
        fault = f"must take at most {MAX_CPU_S + target.cpu_s:g} s of CPU, got {taken_s:.1f} s"
    return fault


def _give_up(*_: object) -> None:
    raise HopelessError("took too long")


def _limit_memory() -> None:
    """An input that asks for all of the machine's memory gets a MemoryError instead."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES if hard < 0 else min(hard, MAX_MEMORY_BYTES), hard))


def _resident_mb() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


def to_json(outcome: Outcome) -> str:
    """For the parent process."""
    return json.dumps(vars(outcome))
