"""viser's server, reachable through the gate only.

viser listens on TCP for everybody, and opens a public tunnel on the request of any client. Here it listens at a Unix socket in a private directory, and
has no handler for tunnels. viser also wakes its event loop from other threads in a way that now and then raises an error there; here it does so on the loop.
All this takes private names of viser, so its version is pinned (extra ``view``), and tests hold each.
"""

import asyncio
import contextlib
import io
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilsim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import viser


def require_view() -> None:
    """Check that the packages of the extra ``view`` are installed.

    Raises:
        ConfigError: they are not.
    """
    try:
        import msgspec  # noqa: F401, PLC0415 - an extra
        import viser  # noqa: F401, PLC0415 - an extra
    except ImportError as error:
        raise ConfigError(f"hilsim view requires the package {error.name} (pip install 'hilsim-lidar[view]')") from error


@contextmanager
def private_server(label: str) -> "Iterator[tuple[viser.ViserServer, Path]]":
    """Run a server of viser while the block runs; gives it and its Unix socket, which only this user can open."""
    folder = Path(tempfile.mkdtemp(prefix="hilsim-view-"))  # mode 0700
    try:
        path = folder / "viser"
        server = _start(label, path)
        try:
            yield server, path
        finally:
            with contextlib.redirect_stdout(io.StringIO()):
                server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class LoopEvent(asyncio.Event):
    """Event that is set on its event loop only; elsewhere ``set`` does nothing: viser's buffers also schedule each call on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Create an event of a loop."""
        super().__init__()
        self._its_loop = loop

    def set(self) -> None:
        """Wake the waiting tasks, if called on the loop."""
        if asyncio._get_running_loop() is self._its_loop:  # noqa: SLF001 - the public name raises an error on threads without a loop
            super().set()


def _wake_on_loop() -> None:
    """Make viser's buffers of messages use ``LoopEvent``: they set a plain ``asyncio.Event`` on any thread, which raises while the loop adds a waiter."""
    from viser.infra import _async_message_buffer, _infra  # noqa: PLC0415 - an extra

    class Buffer(_async_message_buffer.AsyncMessageBuffer):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.message_event = LoopEvent(self.event_loop)

    _infra.AsyncMessageBuffer = Buffer  # type: ignore[attr-defined]


def _start(label: str, path: Path) -> "viser.ViserServer":
    import viser  # noqa: PLC0415 - an extra
    import websockets.asyncio.server as listening  # noqa: PLC0415 - an extra
    from viser import _messages  # noqa: PLC0415 - an extra

    _wake_on_loop()

    original = listening.serve

    def serve(handler: Any, host: str, port: int, **options: Any) -> Any:
        del host, port
        return original(handler, unix=True, path=str(path), **options)

    listening.serve = serve  # type: ignore[misc, assignment]
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints an address
            server = viser.ViserServer(host="127.0.0.1", port=0, label=label, verbose=False)
    finally:
        listening.serve = original  # type: ignore[misc]
    for request in (_messages.ShareUrlRequest, _messages.ShareUrlDisconnect):
        server._websock_server.unregister_handler(request)  # noqa: SLF001 - there is no public name
    server.request_share_url = _no_tunnel  # type: ignore[method-assign]
    return server


def _no_tunnel(*arguments: object, **options: object) -> None:
    del arguments, options
    raise AssertionError("the view is never shared by a tunnel")
