"""Pulses: one at each UTC second of this computer's clock, or those of a kernel PPS device."""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import structlog

from hilsim.units import NS_PER_S

log = structlog.get_logger("hilsim")

_POLL_S = 0.02
_RETRY_S = 0.5
_ASSERTED = re.compile(r"([0-9]{1,12})\.([0-9]{9})#([0-9]+)\s*")
"""Time and number of the last pulse, as the kernel writes it (Documentation/ABI/testing/sysfs-pps)."""


async def system_pulses() -> AsyncIterator[int]:
    """UTC of each second as it begins, in ns since 1970."""
    second = time.time_ns() // NS_PER_S
    while True:
        second = max(second + 1, time.time_ns() // NS_PER_S)
        await asyncio.sleep(max(second * NS_PER_S - time.time_ns(), 0) / 1e9)
        yield second * NS_PER_S


async def device_pulses(sensor: str, path: str) -> AsyncIterator[int]:
    """UTC of the pulses of a PPS device by this computer's clock, in ns since 1970, as they come; each change of the device is logged once.

    Args:
        sensor: Name of the sensor, for the log.
        path: ``/dev/ppsN``, or a file of the form of ``/sys/class/pps/ppsN/assert``, which anyone may read.
    """
    asserted = Path("/sys/class/pps") / Path(path).name / "assert" if path.startswith("/dev/") else Path(path)
    number, problem = "", ""
    while True:
        try:
            found = _ASSERTED.fullmatch(asserted.read_text(encoding="ascii"))
            reason = "" if found else "it has had no pulse"
        except (OSError, UnicodeDecodeError) as error:
            found, reason = None, (os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error))
        if reason != problem:
            problem = reason
            if reason:
                log.warning("time_input.no_pulse", sensor=sensor, pps=path, file=str(asserted), reason=reason)
            else:
                log.info("time_input.pulses", sensor=sensor, pps=path)
        if found is not None and found[3] != number:
            is_first, number = not number, found[3]
            if not is_first:  # it may be of long ago
                yield int(found[1]) * NS_PER_S + int(found[2])
        await asyncio.sleep(_POLL_S if found else _RETRY_S)
