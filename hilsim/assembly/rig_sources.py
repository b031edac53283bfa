"""Sources of the daemon's rig, at the start and at each reload."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import structlog

from hilsim.config.changes import Changes
from hilsim.config.chosen import chosen
from hilsim.config.hosts import resolved
from hilsim.config.places import SDF_SUFFIXES
from hilsim.config.rig import Rig, rig_of_table, with_recording
from hilsim.config.script import load_script
from hilsim.config.toml_file import rig_table

log = structlog.get_logger("hilsim")


class RigSource(Protocol):
    """Source of the rig, at the start and at each reload."""

    def load(self) -> Rig:
        """Read and check it.

        Raises:
            ConfigError: the rig is not sound.
        """


@dataclass(frozen=True, kw_only=True)
class RigFile:
    """A rig from a file.

    Attributes:
        path: The file.
        changes: Changes by the command line.
        recording: Keys of its ``[record]`` that the command line replaces.
        directory: Files that it names are relative to this; None: to its own directory.
        script: File of timed changes; None: none.
        only: Names of the sensors, replays and parts that run; empty: all.
    """

    path: Path
    changes: Changes = field(default_factory=Changes)
    recording: Mapping[str, str | float] = field(default_factory=dict)
    directory: Path | None = None
    script: Path | None = None
    only: tuple[str, ...] = ()

    def load(self) -> Rig:
        """Read and check it, and look up the hosts it names.

        Raises:
            ConfigError: the rig is not sound.
        """
        place = self.path if self.directory is None else self.directory / self.path.name
        rig = rig_of_table(rig_table(self.path), place, self.changes)
        if self.script is not None:
            rig = replace(rig, script=load_script(self.script))
        return resolved(with_recording(chosen(rig, self.only), self.recording), self.changes)


@dataclass(frozen=True, kw_only=True)
class MadeRig:
    """A rig that the command line made: the same at each reload."""

    rig: Rig

    def load(self) -> Rig:
        """Rig with addresses in place of its hosts' names.

        Raises:
            ConfigError: a host has no address.
        """
        return resolved(self.rig)


def shown(rig: Rig) -> str:
    """Name of a rig in the log: its file, or its name if a command made it."""
    return str(rig.path) if rig.path.suffix in {".toml", *SDF_SUFFIXES} else rig.spec.name


def say_hosts(rig: Rig) -> None:
    """Log which names of hosts became which addresses, and which sensors send from another address than the rig's."""
    for sensor, source in rig.sources:
        log.warning("source.replaced", sensor=sensor, source=source, reason="no other host receives packets from a loopback address")
    for host, address in rig.hosts:
        log.info("host.resolved", host=host, address=address)
