"""Arguments and start of ``hilsim run`` as a child process, for ``Daemon``."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

OF_THE_SERVICE_MANAGER = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
"""Environment variables of a service manager, which a child must not inherit."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """Arguments of ``hilsim run``.

    Attributes:
        rig: Path of the rig's file.
        directory: Directory to which the rig's paths are relative.
        to: Value of ``--to``; empty: the rig's destinations.
        settings: Values of ``--set``.
        ready_file: File that the daemon writes when packets flow.
        log: File to which log and messages are appended.
    """

    rig: Path
    directory: Path
    to: str
    settings: tuple[str, ...]
    ready_file: Path
    log: Path


class Child(Protocol):
    """A child process, such as ``subprocess.Popen``."""

    pid: int

    def poll(self) -> int | None:
        """Exit code, negative for a signal; None while the process runs."""

    def send_signal(self, number: int) -> None:
        """Send a signal; do nothing if the process has ended."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process; returns its exit code.

        Raises:
            subprocess.TimeoutExpired: the process still runs.
        """


def spawn(request: RunRequest) -> Child:
    """Start a new interpreter with ``hilsim run``, which ends when this process ends."""
    command = [sys.executable, "-m", "hilsim", "run", str(request.rig), "--directory", str(request.directory)]
    command += ["--ready-file", str(request.ready_file), "--end-with", str(os.getpid())]
    command += ["--to", request.to] if request.to else []
    command += [part for setting in request.settings for part in ("--set", setting)]
    environment = {name: value for name, value in os.environ.items() if name not in OF_THE_SERVICE_MANAGER}
    with request.log.open("ab") as log:
        # In its own process group: Ctrl-C on the terminal goes to this process, which ends the child.
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, process_group=0)  # noqa: S603 - hilsim itself
