"""``hilsim run`` of a rig in lockstep: the other side's messages take the place of the clock."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from hilsim.errors import ConfigError

if TYPE_CHECKING:
    from hilsim.config.rig import Rig
    from hilsim.parts.external.lockstep.link import Lockstep
    from hilsim.parts.external.specs import ExternalSpec

log = structlog.get_logger("hilsim")


def run_in_lockstep(rig: "Rig", spec: "ExternalSpec", duration_s: float | None, ready_file: Path | None) -> None:
    """Follow the other side until SIGINT, SIGTERM or the end of the time.

    Raises:
        HilsimError: the rig cannot be built, or a socket cannot be opened.
    """
    from hilsim.offline.epoch import rig_utc_ns  # noqa: PLC0415 - imports kernels
    from hilsim.offline.stepper import Stepper  # noqa: PLC0415
    from hilsim.parts.external.lockstep.link import Lockstep  # noqa: PLC0415

    log.info("lockstep.preparing", rig=rig.name)
    if rig.sinks:
        log.warning("lockstep.sinks_not_used", sinks=[sink.name for sink in rig.sinks])
    utc_epoch_ns = rig_utc_ns(rig)
    lockstep = Lockstep(rig, spec, lambda: Stepper(rig, utc_epoch_ns=utc_epoch_ns), utc_epoch_ns=utc_epoch_ns)
    try:
        with _stopped_by_signals(lockstep), _ready(ready_file, lockstep):
            log.info("lockstep.started", rig=rig.name, address=_shown(lockstep))
            lockstep.run(duration_s)
    finally:
        lockstep.close()
        counts = lockstep.counts
        log.info(
            "lockstep.stopped",
            steps=counts.steps,
            packets=counts.packets,
            partners=counts.partners,
            refused=counts.refused,
            repeated=counts.repeated,
            incomplete=counts.incomplete,
            not_sent=lockstep.not_sent,
        )


def _shown(lockstep: "Lockstep") -> str:
    address = lockstep.address
    return f"unix:{address}" if isinstance(address, str) else f"udp:{address[0]}:{address[1]}"


@contextmanager
def _stopped_by_signals(lockstep: "Lockstep") -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM)
    former = [signal.signal(number, lambda _number, _frame: lockstep.stop()) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, former, strict=True):
            signal.signal(number, handler)


@contextmanager
def _ready(path: Path | None, lockstep: "Lockstep") -> Iterator[None]:
    """A file that exists while messages are followed."""
    if path is None:
        yield
        return
    written = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        written.write_text(json.dumps({"pid": os.getpid(), "external": _shown(lockstep)}) + "\n", encoding="utf-8")
        written.replace(path)
    except OSError as error:
        raise ConfigError(f"{path}: --ready-file must be a file that can be written, got {error.strerror}") from error
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
