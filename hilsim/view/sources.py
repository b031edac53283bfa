"""Feed of the source that a person names: a daemon, a capture or a UDP port."""

import stat
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from hilsim.errors import ConfigError

if TYPE_CHECKING:
    from hilsim.view.feed.base import Feed

_FEEDS = "hilsim.view.feed"
_HTTP = "http://"
_UDP = "udp:"


def is_daemon(source: str) -> bool:
    """Whether a source is a daemon: an address, or a Unix socket.

    Raises:
        ConfigError: it is neither a daemon nor a file.
    """
    if source.startswith(_UDP):
        raise ConfigError(f"a daemon must be named by its control socket or http://HOST:PORT, got {source}")
    if source.startswith(_HTTP):
        return True
    try:
        mode = Path(source).stat().st_mode
    except OSError as error:
        raise ConfigError(f"SOURCE must be a daemon's control socket, http://HOST:PORT or a capture, got {source}: {error.strerror}") from error
    if not stat.S_ISSOCK(mode) and not stat.S_ISREG(mode):
        raise ConfigError(f"SOURCE must be a daemon's control socket, http://HOST:PORT or a capture, got {source}")
    return stat.S_ISSOCK(mode)


def daemon_feed(address: str, token_file: str | None, labels_hz: float) -> "Feed":
    """Follow a daemon; ``labels_hz`` scans of each sensor a second get their objects by rendering their packets again.

    Raises:
        HilsimError: no daemon answers there.
    """
    feed: Feed = import_module(f"{_FEEDS}.daemon_feed").DaemonFeed(address, token_file=token_file, labels_hz=labels_hz)
    return feed


def capture_feed(path: str) -> "Feed":
    """Play a capture.

    Raises:
        CaptureError: it cannot be read.
    """
    feed: Feed = import_module(f"{_FEEDS}.capture_feed").CaptureFeed(path)
    return feed


def listen_feed(host: str, port: int) -> "Feed":
    """Listen to a UDP port.

    Raises:
        CaptureError: the port is in use or not permitted.
    """
    feed: Feed = import_module(f"{_FEEDS}.listen_feed").ListenFeed(host, port)
    return feed
