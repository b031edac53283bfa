"""Events for the clients of a WebSocket, by Foxglove's protocol and its own SDK."""

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilsim.api.packet import Packet
from hilsim.errors import ConfigError
from hilsim.show.outputs.events import Event, SceneShapes, SourceInfo
from hilsim.show.outputs.foxglove_layout import SCENE
from hilsim.show.outputs.foxglove_log import FoxgloveLog, require_foxglove

if TYPE_CHECKING:
    from hilsim.assembly.shapes import Shape

BACKLOG = 32
"""Messages that wait for a client that reads slowly, the oldest of which are lost beyond: its memory stays at some scans."""
_TOGETHER, _PAUSE_S = 8, 0.0005
"""Packets that are logged at once, and the pause behind them: a burst beyond the backlog would be lost before the SDK's thread has sent it."""


class FoxgloveServer(FoxgloveLog):
    """A log for the clients of a WebSocket. A client that subscribes to the scene gets all its objects.

    Attributes:
        port: Port in use.
    """

    def __init__(self, host: str, port: int, info: SourceInfo, *, with_laser_scans: bool = False, layout_file: Path | None = None) -> None:
        """Begin to listen.

        Args:
            host: Address to bind.
            port: TCP port; 0: any.
            info: Description of the source.
            with_laser_scans: As for ``FoxgloveLog``.
            layout_file: As for ``FoxgloveLog``.

        Raises:
            ConfigError: the package is missing, or the port is in use or not permitted.
        """
        foxglove = require_foxglove()
        context = foxglove.Context()
        self._listener = _SceneListener()
        try:
            self._server = foxglove.start_server(
                name=f"hilsim: {info.name}",
                host=host,
                port=port,
                context=context,
                message_backlog_size=BACKLOG,
                server_listener=self._listener,
            )
        except (OSError, RuntimeError) as error:
            raise ConfigError(f"{host}:{port}: must be a TCP port that is free and permitted, got {error}") from error
        self.port: int = self._server.port
        self._scene: dict[str, Shape] = {}
        self._together = 0
        super().__init__(context, info, with_laser_scans=with_laser_scans, layout_file=layout_file)

    def write(self, event: Event) -> None:
        """Log an event's messages; the scene is logged for clients that have subscribed to it since the last call."""
        match event:
            case SceneShapes():
                self._take_scene(event)
            case Packet():
                super().write(event)
                self._pause()
            case _:
                super().write(event)
        if self._listener.is_new.is_set():
            self._listener.is_new.clear()
            super().write(SceneShapes(stamp_ns=time.time_ns(), shapes=tuple(self._scene.values())))

    def _take_scene(self, event: SceneShapes) -> None:
        """Keep the objects, and log them if a client has subscribed: making the message is most of the work."""
        for name in event.removed:
            self._scene.pop(name, None)
        self._scene |= {shape.name: shape for shape in event.shapes}
        if SCENE not in self._channels:
            super().write(SceneShapes(stamp_ns=event.stamp_ns, shapes=()))
        elif self._channels[SCENE].has_sinks():
            super().write(event)

    def _pause(self) -> None:
        self._together += 1
        if self._together >= _TOGETHER:
            self._together = 0
            time.sleep(_PAUSE_S)

    def close(self) -> None:
        """Close the port and the connections."""
        self._server.stop()


class _SceneListener:
    """Listener of the SDK, which calls it from a thread of its own once messages reach the client.

    Attributes:
        is_new: Set when a client has subscribed to the scene.
    """

    def __init__(self) -> None:
        self.is_new = threading.Event()

    def on_subscribe(self, _client: Any, channel: Any) -> None:
        """Take a subscription."""
        if channel.topic == SCENE:
            self.is_new.set()

    def on_unsubscribe(self, _client: Any, _channel: Any) -> None:
        """Nothing ends with a subscription."""
