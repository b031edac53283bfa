"""Replay controls: of a capture that the view plays itself, and of a daemon's replays."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from hilsim.errors import ConfigError, TransmitError
from hilsim.show.view.page.strips import plain

if TYPE_CHECKING:
    import viser

    from hilsim.api.control import Control

_STEP_S = 0.01


@runtime_checkable
class Player(Protocol):
    """Replay that can be played, paused and sought; the feed of a capture is one."""

    @property
    def position_s(self) -> float:
        """Position in the capture."""
        ...

    @property
    def duration_s(self) -> float:
        """Length of the capture."""
        ...

    def play(self) -> None:
        """Continue."""
        ...

    def pause(self) -> None:
        """Pause."""
        ...

    def seek_s(self, position_s: float) -> None:
        """Continue at a position."""
        ...


class DaemonPlayer:
    """Replay of a daemon.

    Attributes:
        position_s: Position in the capture.
        duration_s: Length of the capture, as far as the daemon has reported it.
    """

    def __init__(self, control: "Control", name: str) -> None:
        """Create the controls of a replay."""
        self.position_s = 0.0
        self.duration_s = 0.0
        self._control = control
        self._name = name

    def show(self, replay: Mapping[str, Any]) -> None:
        """Take over the replay's state (``replays`` of the daemon's state)."""
        position_s, ratio = replay.get("position_s"), replay.get("ratio")
        if isinstance(position_s, int | float):
            self.position_s = float(position_s)
            if isinstance(ratio, int | float) and ratio > 0.01:
                self.duration_s = max(self.position_s, self.position_s / ratio)

    def play(self) -> None:
        """Continue."""
        self._control.resume(self._name)

    def pause(self) -> None:
        """Pause."""
        self._control.pause(self._name)

    def seek_s(self, position_s: float) -> None:
        """Continue at a position."""
        self._control.seek(position_s, self._name)


class PlayerControls:
    """Play, pause and position of one replay on the page."""

    def __init__(self, server: "viser.ViserServer", title: str, player: Player) -> None:
        """Add the controls."""
        self._player = player
        with server.gui.add_folder(title, order=20.0):
            play, pause = server.gui.add_button("play"), server.gui.add_button("pause")
            self._position: Any = server.gui.add_slider("position in s", 0.0, max(player.duration_s, _STEP_S), _STEP_S, 0.0)
            self._error = server.gui.add_markdown("", visible=False)

        @play.on_click
        def _(event: object) -> None:
            del event
            self._do(player.play)

        @pause.on_click
        def _(event: object) -> None:
            del event
            self._do(player.pause)

        @self._position.on_update
        def _(event: Any) -> None:
            if event.client is not None:  # the page itself moves it, too
                self._do(lambda: player.seek_s(min(max(float(self._position.value), 0.0), self._position.max)))

    def step(self) -> None:
        """Show the present position."""
        longest_s = max(self._player.duration_s, _STEP_S)
        if longest_s != self._position.max:
            self._position.max = longest_s
        position_s = round(min(max(self._player.position_s, 0.0), longest_s) / _STEP_S) * _STEP_S
        if abs(position_s - self._position.value) >= _STEP_S / 2:
            self._position.value = position_s

    def _do(self, action: Any) -> None:
        try:
            action()
        except (ConfigError, TransmitError) as error:
            self._error.content = plain(str(error))
        self._error.visible = bool(self._error.content)


class ReplayControls:
    """Controls of all replays: of the view's own capture, or of those that a daemon's state lists."""

    def __init__(self, server: "viser.ViserServer", feed: object, control: "Control | None") -> None:
        """Add the controls of a feed that plays a capture."""
        self._server = server
        self._control = control
        self._daemons: dict[str, DaemonPlayer] = {}
        self._controls = [PlayerControls(server, "Replay", feed)] if isinstance(feed, Player) else []

    def step(self, status: Mapping[str, Any] | None) -> None:
        """Show the present positions; add controls of replays that a daemon's state lists for the first time."""
        replays = status.get("replays") if status is not None and self._control is not None else None
        for replay in replays if isinstance(replays, list | tuple) else ():
            if isinstance(replay, Mapping) and isinstance(replay.get("replay"), str):
                self._show(replay["replay"], replay)
        for controls in self._controls:
            controls.step()

    def _show(self, name: str, replay: Mapping[str, Any]) -> None:
        if name not in self._daemons and self._control is not None:
            self._daemons[name] = DaemonPlayer(self._control, name)
            self._controls.append(PlayerControls(self._server, f"Replay {name}", self._daemons[name]))
        self._daemons[name].show(replay)
