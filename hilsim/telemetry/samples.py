"""Conversion of a field of a reading to samples of its metric, where it is more than one number."""

from collections.abc import Iterator, Mapping
from enum import Enum
from operator import attrgetter

from hilsim.telemetry.faults import Fault, InjectedFault, Level, worst_level
from hilsim.telemetry.metrics import Sample, Samples
from hilsim.transmit.kernel_drops import KernelDrops
from hilsim.transmit.scheduling import SchedulingMode

SCHEDULING_MODES = tuple(mode.value for mode in SchedulingMode)
"""Scheduling modes, best first: SCHED_FIFO; SCHED_OTHER with a short EEVDF slice; SCHED_OTHER with defaults."""


def by_key(counts: Mapping[str, int]) -> Iterator[Sample]:
    """One sample per key."""
    for key, count in counts.items():
        yield (key,), count


def by_reason(counts: Mapping[Enum, int]) -> Iterator[Sample]:
    """One sample per member, labelled by its value."""
    for reason, count in counts.items():
        yield (str(reason.value),), count


def by_backend(current: str) -> Iterator[Sample]:
    """1 for the backend that casts rays, 0 for the other."""
    for backend in ("cpu", "cuda"):
        yield (backend,), float(backend == current)


def by_mode(scheduling: Mapping[str, str]) -> Iterator[Sample]:
    """1 for the mode that each thread obtained, 0 for the others."""
    for thread, obtained in scheduling.items():
        for mode in dict.fromkeys((*SCHEDULING_MODES, obtained)):
            yield (thread, mode), float(mode == obtained)


def udp_refused(drops: KernelDrops | None) -> Iterator[Sample]:
    """Sample for all programs; none where the kernel does not provide it."""
    if drops is not None and drops.udp_refused is not None:
        yield (), drops.udp_refused


def by_interface(name: str) -> Samples:
    """Samples of an attribute of each interface's counters."""
    read = attrgetter(name)

    def samples(drops: KernelDrops | None) -> Iterator[Sample]:
        for counters in drops.interfaces if drops else ():
            yield (counters.interface,), read(counters)

    return samples


def is_healthy(faults: tuple[Fault, ...]) -> Iterator[Sample]:
    """1 without a fault."""
    yield (), float(worst_level(faults) is Level.HEALTHY)


def by_level(faults: tuple[Fault, ...]) -> Iterator[Sample]:
    """1 for the worst level, 0 for the others."""
    worst = worst_level(faults)
    for level in Level:
        yield (level.value,), float(level is worst)


def by_injected(faults: tuple[InjectedFault, ...]) -> Iterator[Sample]:
    """A sample for each kind of fault on command: names and targets are whatever a client asks for, and would be series for ever."""
    acting = {each.kind for each in faults if each.acts}
    yield from (((kind,), float(kind in acting)) for kind in dict.fromkeys(each.kind for each in faults))


def by_fault(faults: tuple[Fault, ...]) -> Iterator[Sample]:
    """1 at the level of each fault, 0 at the other level."""
    for fault in faults:
        for level in (Level.DEGRADED, Level.UNHEALTHY):
            yield (*fault.identity, level.value), float(level is fault.level)
