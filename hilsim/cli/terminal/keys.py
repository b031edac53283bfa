"""Keys on the terminal for a replay: pause, seek, stop."""

import asyncio
import os
import signal
import sys
import termios
import tty
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hilsim.daemon.running_rig import RunningRig

_STEP_S = 5.0
_LEFT, _RIGHT = b"\x1b[D", b"\x1b[C"


class Keys:
    """Reader of keys while the event loop runs, which restores the terminal at its end."""

    def __init__(self) -> None:
        self._former: list[Any] | None = None

    def listen(self, running: "RunningRig") -> bool:
        """Start reading keys; returns False if standard input is not a terminal or belongs to another program."""
        if not sys.stdin.isatty() or os.getpgrp() != os.tcgetpgrp(sys.stdin.fileno()):
            return False
        self._former = termios.tcgetattr(sys.stdin.fileno())
        tty.setcbreak(sys.stdin.fileno())
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._read, running)
        return True

    def close(self) -> None:
        """Restore the terminal."""
        if self._former is not None:
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._former)
            self._former = None

    def _read(self, running: "RunningRig") -> None:
        pressed = os.read(sys.stdin.fileno(), 64)
        sources = running.replays.choose("")
        if pressed == b" ":
            paused = not all(replay_source.state().is_paused for replay_source in sources)
            for replay_source in sources:
                replay_source.pause(paused=paused)
        elif pressed in {_LEFT, _RIGHT}:
            for replay_source in sources:
                replay_source.seek(max(replay_source.state().position_s + (_STEP_S if pressed == _RIGHT else -_STEP_S), 0.0))
        elif pressed in {b"q", b"\x04"}:
            os.kill(os.getpid(), signal.SIGTERM)
