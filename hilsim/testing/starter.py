"""A process that has imported the daemon and loaded its kernels, and forks a daemon when a test requests a sensor.

Importing and loading are most of the cost of a daemon's start; a fork of this process has them already. There is one such process per test run (a worker of pytest-xdist is a run),
started with the first sensor or a little earlier. When its parent ends for any reason, it ends its daemons, removes their files, and ends itself.
``starting`` is its counterpart in the parent.
"""

import asyncio
import importlib
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilsim.assembly.rig_sources import MadeRig, RigFile, RigSource
from hilsim.compilation.cache import cache_directory
from hilsim.config.changes import Changes
from hilsim.config.rig import Rig, rig_of_table
from hilsim.daemon.precompile import is_compiled, kernel_needs
from hilsim.daemon.ready_file import ReadyFile
from hilsim.daemon.running_rig import RunningRig
from hilsim.daemon.service import Console, serve
from hilsim.errors import HilsimError
from hilsim.processes import end_with_process
from hilsim.telemetry.logs import configure_logging
from hilsim.testing import forks
from hilsim.testing.sensor_rig import sensor_rig

if TYPE_CHECKING:
    from collections.abc import Callable


class Starter:
    """Prepares daemons before they are forked."""

    def __init__(self) -> None:
        self._ready_files: list[Path] = []
        self._asked: set[tuple[str, ...]] = set()
        self._rehearsed: set[tuple[str, ...]] = set()
        self._unrehearsed: list[Callable[[], Rig]] = [_usual_rig]  # made while there is no request

    def prepare(self, asked: dict[str, Any]) -> forks.Work:
        """What the fork does: run as ``hilsim run`` does."""
        source, ready_file, server = self._source(asked), Path(asked["ready_file"]), os.getpid()
        self._ready_files.append(ready_file)
        return lambda: _run(source, ready_file, server)

    def rest(self) -> bool:
        """Load the kernels of a rig, unless a daemon is being waited for; returns whether there are more."""
        self._ready_files = [path for path in self._ready_files if path.parent.exists()]
        if self._unrehearsed and all(path.exists() for path in self._ready_files):
            self._rehearse(self._unrehearsed.pop()())
        return bool(self._unrehearsed)

    def close(self) -> None:
        """Remove files that the parent, which has ended too, cannot remove."""
        for path in self._ready_files:
            shutil.rmtree(path.parent, ignore_errors=True)

    def _source(self, asked: dict[str, Any]) -> RigSource:
        """Rig of a daemon; from the second one of its kind on, its kernels are loaded before the fork, because more may follow."""
        changes = Changes(to=asked["to"], settings=tuple(asked["settings"]))
        source = RigFile(path=Path(asked["rig"]), directory=Path(asked["directory"]), changes=changes)
        try:
            rig = source.load()
        except HilsimError:
            return source  # the daemon reports the error
        needs = kernel_needs(rig)
        if needs in self._asked and needs not in self._rehearsed:
            self._rehearse(rig)
        elif needs not in self._rehearsed:
            self._unrehearsed.append(lambda: rig)
        self._asked.add(needs)
        return MadeRig(rig=rig)

    def _rehearse(self, rig: Rig) -> None:
        """Load the kernels for such a rig, so that forks have them; none is compiled here."""
        # Imports of a daemon that serves metrics; not before the first daemon, which is being waited for.
        importlib.import_module("hilsim.telemetry.server")
        needs = kernel_needs(rig)
        if needs not in self._rehearsed and cache_directory() is not None and is_compiled(rig):
            self._rehearsed.add(needs)
            with suppress(HilsimError):
                RunningRig(rig=rig).rehearse()


def _usual_rig() -> Rig:
    """Rig that most tests request. No file is written: a rehearsal opens none."""
    usual = sensor_rig("vlp16", "room", name="usual", keys={}, tables={"record": {"file": str(Path(tempfile.gettempdir(), "usual.pcap"))}})
    return rig_of_table(usual.table, usual.path)


def _run(source: RigSource, ready_file: Path, server: int) -> int:
    """Run as ``hilsim run`` does; returns its exit code. The daemon collects garbage once its packets flow."""
    end_with_process(server)
    configure_logging()
    try:
        with ReadyFile(path=ready_file).kept() as ready:
            return asyncio.run(serve(source, ready.console(Console()))).exit_code
    except HilsimError as error:
        sys.stderr.write("".join(f"error: {line}\n" for line in str(error).split("\n")))
        return 1


def main(descriptor: int, parent: int) -> None:
    """Main function of the process."""
    starter = Starter()
    try:
        forks.serve(descriptor, parent, starter.prepare, starter.rest)
    finally:
        starter.close()
    os._exit(0)
