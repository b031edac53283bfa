"""viser's server, reachable through the gate only.

viser listens on TCP for everybody, and opens a public tunnel on the request of any client. Here it listens at a Unix socket in a private directory, and
has no handler for tunnels. Both take private names of viser, so its version is pinned (extra ``view``), and tests hold both.
"""

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


def _start(label: str, path: Path) -> "viser.ViserServer":
    import viser  # noqa: PLC0415 - an extra
    import websockets.asyncio.server as listening  # noqa: PLC0415 - an extra
    from viser import _messages  # noqa: PLC0415 - an extra

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
