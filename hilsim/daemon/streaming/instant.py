"""Instant of rig time 0: soon after the start, or the UTC instant that ``transmit.epoch_utc`` gives to the daemons of several hosts."""

import time

from hilsim.config.part_kind import parts_of
from hilsim.config.rig import Rig
from hilsim.daemon.parts import RigClock
from hilsim.errors import ConfigError
from hilsim.telemetry.clocks import utc_ahead_ns

AHEAD_S = 1.0
"""Time before rig time 0 at which a daemon that waits for it fills its rings."""


def rig_clock(rig: Rig, earliest_ns: int) -> RigClock:
    """Clock of a rig that sends from CLOCK_MONOTONIC ``earliest_ns`` on at the earliest.

    UTC is converted to CLOCK_MONOTONIC here, once: what sets the host's UTC clock afterwards does not move a packet.

    Raises:
        ConfigError: rig time 0 has passed, and the rig cannot begin in the middle.
    """
    ahead_ns, pinned_ns = utc_ahead_ns(), rig.spec.transmit.epoch_utc_ns
    if pinned_ns is None:
        return RigClock(earliest_ns, earliest_ns + ahead_ns, earliest_ns)
    epoch_ns = pinned_ns - ahead_ns
    parts = _parts_from_the_start(rig)
    if epoch_ns < earliest_ns and parts:
        raise ConfigError(
            f"{rig.path}: transmit.epoch_utc must be later than the start for a rig with {', '.join(parts)}, which cannot begin in the middle,"
            f' got "{rig.spec.transmit.epoch_utc}", {(earliest_ns - epoch_ns) / 1e9:.1f} s before'
        )
    return RigClock(epoch_ns, pinned_ns, max(epoch_ns, earliest_ns))


def wait_s(rig: Rig) -> float:
    """Time to wait before the start for a rig time 0 in the future, in seconds; 0 where there is none."""
    pinned_ns = rig.spec.transmit.epoch_utc_ns
    return 0.0 if pinned_ns is None else max((pinned_ns - time.monotonic_ns() - utc_ahead_ns()) / 1e9 - AHEAD_S, 0.0)


def _parts_from_the_start(rig: Rig) -> list[str]:
    """Tables of a rig whose state at a rig time depends on everything before."""
    spec = rig.spec
    given = {
        **{f"[[{kind.table}]]" if kind.is_list else f"[{kind.table}]": not kind.can_join for kind, _ in parts_of(spec)},
        "a script": rig.script,
    }
    return [name for name, value in given.items() if value]
