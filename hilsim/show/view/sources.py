"""Feed of the source that a person names: a daemon, a capture or a UDP port."""

import stat
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from hilsim.errors import ConfigError, HilsimError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hilsim.config.rig import Rig
    from hilsim.editing.session import EditSession
    from hilsim.show.view.feed.base import Feed
    from hilsim.world.geometry.poses import Pose

log = structlog.get_logger("hilsim")

_FEEDS = "hilsim.show.view.feed"
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


def daemon_feed(address: str, token_file: str | None, labels_hz: float, *, with_packets: bool = False) -> "Feed":
    """Follow a daemon; ``labels_hz`` scans of each sensor a second get their objects by rendering their packets again.

    Raises:
        HilsimError: no daemon answers there.
    """
    feed: Feed = import_module(f"{_FEEDS}.daemon_feed").DaemonFeed(address, token_file=token_file, labels_hz=labels_hz, with_packets=with_packets)
    return feed


def edit_session(address: str, token_file: str | None) -> "EditSession | None":
    """Begin to edit the rig of a daemon; None, with a line in the log, where its file cannot be edited from here."""
    from hilsim.api.control import connect  # noqa: PLC0415 - slow to import
    from hilsim.api.editing import edit  # noqa: PLC0415 - slow to import
    from hilsim.daemon.control.client import Client  # noqa: PLC0415 - slow to import

    try:
        path = str(Client(address, token_file=token_file).ask({"do": "rig"})["path"])
        return edit(path, connect(address, token_file=token_file))
    except HilsimError as error:
        log.warning("view.not_editable", reasons=str(error).split("\n"))
        return None


def capture_feed(path: str, mounts: "Mapping[str, Pose] | None" = None, *, with_packets: bool = False) -> "Feed":
    """Play a capture, with its sensors where ``mounts`` has them, by their names; the others are at the origin.

    Raises:
        CaptureError: it cannot be read.
    """
    feed: Feed = import_module(f"{_FEEDS}.capture_feed").CaptureFeed(path, mounts=mounts, with_packets=with_packets)
    return feed


def mounts_of(rig: "Rig") -> "Mapping[str, Pose]":
    """Mounts of a rig's sensors by the names that they have in a capture of the rig."""
    mounts: dict[str, Pose] = {}
    for sensor, lidar in zip(rig.spec.sensor, rig.lidars, strict=True):
        network = sensor.network
        points, *_ = lidar.family.flows(network.data_port, network.position_port)
        further = f"{network.source}:{points.destination_port}"
        mounts[further if network.source in mounts else network.source] = lidar.setup.body_from_sensor
    return mounts


def listen_feed(host: str, port: int, *, with_packets: bool = False) -> "Feed":
    """Listen to a UDP port.

    Raises:
        CaptureError: the port is in use or not permitted.
    """
    feed: Feed = import_module(f"{_FEEDS}.listen_feed").ListenFeed(host, port, with_packets=with_packets)
    return feed
