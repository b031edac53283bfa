"""``hilsim run`` as a child process, for ``Daemon``: its arguments, and its start."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

OF_THE_SERVICE_MANAGER = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
"""Environment variables of a service manager; a daemon that is started here must not inherit them."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What ``hilsim run`` is to do.

    Attributes:
        rig: The rig's file.
        directory: Files that it names are relative to this.
        to: ``--to``; empty: the rig's destinations.
        settings: Each a ``--set``.
        ready_file: What it writes when packets flow.
        log: File that its log and its messages are appended to.
    """

    rig: Path
    directory: Path
    to: str
    settings: tuple[str, ...]
    ready_file: Path
    log: Path


class Child(Protocol):
    """A process that was started; ``subprocess.Popen`` is one."""

    pid: int

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""

    def send_signal(self, number: int) -> None:
        """Signal it; nothing where it has ended."""

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, when it has ended.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """


def spawn(request: RunRequest) -> Child:
    """A new interpreter that runs ``hilsim run``; it ends when this process does."""
    command = [sys.executable, "-m", "hilsim", "run", str(request.rig), "--directory", str(request.directory)]
    command += ["--ready-file", str(request.ready_file), "--end-with", str(os.getpid())]
    command += ["--to", request.to] if request.to else []
    command += [part for setting in request.settings for part in ("--set", setting)]
    environment = {name: value for name, value in os.environ.items() if name not in OF_THE_SERVICE_MANAGER}
    with request.log.open("ab") as log:
        # In a process group of its own: Ctrl-C on our terminal is for us, and we end it.
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, process_group=0)  # noqa: S603 - our own program
