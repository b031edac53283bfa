"""Live view beside a daemon: a child process that follows it, and whose end changes nothing."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hilsim.config.changes import Changes
    from hilsim.daemon.running_rig import RunningRig
    from hilsim.daemon.service import Console

_END_S = 3.0


@dataclass(kw_only=True, eq=False)
class ViewChild:
    """Process that shows a daemon.

    Attributes:
        show: Callback for a line for the operator: the URL.
        at: Address of the page; None: the usual one.
    """

    show: Callable[[str], None]
    at: tuple[str, int] | None = None
    _folder: Path | None = field(default=None, init=False)
    _process: subprocess.Popen[str] | None = field(default=None, init=False)

    def reachable(self, rig: Path, changed: "Changes", directory: Path | None) -> "Changes":
        """Changes of the rig with a control socket in a private folder, if it has no control interface that the view can follow."""
        from hilsim.config.toml_file import rig_table  # noqa: PLC0415 - slow to import

        table = changed.made_in(rig_table(rig), directory or rig.parent).table.get("control", {})
        if isinstance(table, dict) and (table.get("socket") or table.get("http")):
            return changed
        self._folder = Path(tempfile.mkdtemp(prefix="hilsim-run-"))  # mode 0700
        return replace(changed, settings=(*changed.settings, f"control.socket={self._folder / 'control'}"))

    def beside(self, console: "Console") -> "Console":
        """Console that also starts the process once packets flow."""

        def started(running: "RunningRig", metrics: str) -> None:
            console.started(running, metrics)
            self._start(running)

        return replace(console, started=started)

    def _start(self, running: "RunningRig") -> None:
        control, place = running.rig.spec.control, running.rig.directory
        address = [str(place / control.socket)] if control.socket else [f"http://{control.http}", "--token-file", str(place / control.token_file)]
        command = [sys.executable, "-m", "hilsim", "view", *address, "--end-with", str(os.getpid())]
        if self.at is not None:
            command += ["--at", f"{self.at[0]}:{self.at[1]}"]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own command
        threading.Thread(target=self._pass_on, args=(self._process,), name="view-url", daemon=True).start()

    def _pass_on(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            self.show(f"view     {line.strip()}")

    def end(self) -> None:
        """End the process, and remove the control socket's folder."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
