"""``hilsim poses``: poses of another program to a rig that is driven from outside."""

import os
import re
import socket
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from hilsim.errors import ConfigError, PacketError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hilsim.offline.snapshot import Snapshot
    from hilsim.parts.external.sources.osi import Origin
    from hilsim.parts.external.sources.osi_traces import OsiMessage

_EXAMPLES = """\b
Examples:
  hilsim poses osi:drive_gt.osi --to udp:127.0.0.1:2400 --lockstep     a trace, as fast as the rig renders
  hilsim poses osi-udp:0.0.0.0:48198 --to udp:127.0.0.1:2400           a simulator's OSI GroundTruth, live
  hilsim poses mavlink:0.0.0.0:14550 --to udp:127.0.0.1:2400           an autopilot's telemetry
  hilsim poses gazebo:/world/yard/pose/info --platform robot --object crate=3 --to udp:127.0.0.1:2400
  hilsim poses fmu:car.toml --to udp:127.0.0.1:2400 --lockstep --duration-s 60
"""
_KINDS = ("GroundTruth", "SensorView")
_MESSAGE_NUMBER = re.compile(r"message \d+: ")
_RECEIVE_BUFFER_BYTES = 4 << 20
_MAX_REPORTED = 20
"""Objects left out that are listed, each once: a source sends them with each message."""


@click.command(epilog=_EXAMPLES)
@click.argument("source")
@click.option("--to", required=True, help="Address of the rig's [external]: udp:ADDRESS:PORT or unix:PATH.")
@click.option("--lockstep", is_flag=True, help="Each snapshot is a step of a rig in lockstep. Default: send each when it is due.")
@click.option("--messages", type=click.Choice(_KINDS), help="Type of OSI messages. Default: by a trace's name or schemas, else GroundTruth.")
@click.option(
    "--origin",
    type=click.Choice(("mounting", "rear_axle", "center")),
    default="mounting",
    show_default=True,
    help="Origin of the platform in OSI's host vehicle.",
)
@click.option("--platform", default="", help="Name of the model that carries the sensors, in a Gazebo world.")
@click.option(
    "--object", "objects", multiple=True, metavar="NAME=ID", help="Object of the source that is the rig's external.object of this id; repeatable."
)
@click.option("--duration-s", type=click.FloatRange(0.0, min_open=True), help="End after so much time of the source. Default: at its end.")
def poses(
    *, source: str, to: str, lockstep: bool, messages: str | None, origin: str, platform: str, objects: tuple[str, ...], duration_s: float | None
) -> None:
    """Send the poses of SOURCE (OSI, MAVLink, Gazebo, an FMU) to a rig that is driven from outside."""
    from hilsim.parts.external.sources.relay import Relay, open_link, relay_live, relay_steps  # noqa: PLC0415 - compiles kernels

    ids = dict(map(_identified, objects))
    relay = Relay(sender=os.getpid(), ids=ids)
    with ExitStack() as held:
        link = held.enter_context(open_link(to))
        kind, _, _ = source.partition(":")
        snapshots = _until(_snapshots(source, messages, origin, platform, list(ids), held), duration_s)
        count = relay_steps(snapshots, link, relay) if lockstep else relay_live(snapshots, link, relay, is_paced=kind in {"osi", "fmu"})
    click.echo(f"{count} snapshots sent to {to}")


def _identified(text: str) -> tuple[str, int]:
    name, _, number = text.rpartition("=")
    if not name or not (number.isascii() and number.isdigit() and 1 <= int(number) < 1 << 32):
        raise click.BadParameter(f'must be NAME=ID with an id of 1 to 4294967295, got "{text}"', param_hint="--object")
    return name, int(number)


def _until(snapshots: "Iterator[Snapshot]", duration_s: float | None) -> "Iterator[Snapshot]":
    first_ns = None
    reported: set[str] = set()
    for snapshot in snapshots:
        first_ns = snapshot.time_ns if first_ns is None else first_ns
        if duration_s is not None and snapshot.time_ns > first_ns + round(duration_s * 1e9):
            return
        for sentence in snapshot.omitted:
            without_number = _MESSAGE_NUMBER.sub("", sentence)
            if without_number not in reported and len(reported) < _MAX_REPORTED:
                reported.add(without_number)
                click.secho(f"note: {sentence}", fg="yellow", err=True)
                if len(reported) == _MAX_REPORTED:
                    click.secho("note: further objects that cannot be shown are not listed", fg="yellow", err=True)
        yield snapshot


def _snapshots(source: str, messages: str | None, origin: str, platform: str, names: list[str], held: ExitStack) -> "Iterator[Snapshot]":
    """Snapshots of a source.

    Raises:
        ConfigError: the text names no source.
        HilsimError: the source cannot be read.
    """
    kind, _, place = source.partition(":")
    if kind in {"osi", "osi-udp", "osi-tcp"} and place:
        return _osi(kind, place, messages, origin, held)
    if kind == "mavlink" and place:
        from hilsim.parts.external.sources.mavlink import mavlink_snapshots  # noqa: PLC0415

        return mavlink_snapshots(held.enter_context(_bound(place)))
    if kind == "gazebo" and place:
        from hilsim.parts.external.sources.gazebo import gazebo_snapshots  # noqa: PLC0415
        from hilsim.parts.gazebo.specs import GazeboSpec  # noqa: PLC0415
        from hilsim.parts.gazebo.subscriber import Subscriber  # noqa: PLC0415

        return gazebo_snapshots(held.enter_context(Subscriber(GazeboSpec(), place, "Pose_V")), platform, names or None)
    if kind == "fmu" and place:
        return _fmu(Path(place), held)
    raise ConfigError(
        f'source must be osi:FILE, osi-udp:ADDRESS:PORT, osi-tcp:ADDRESS:PORT, mavlink:ADDRESS:PORT, gazebo:TOPIC or fmu:FILE, got "{source}"'
    )


def _osi(kind: str, place: str, messages: str | None, origin: str, held: ExitStack) -> "Iterator[Snapshot]":
    from hilsim.parts.external.sources.osi import Origin  # noqa: PLC0415
    from hilsim.parts.external.sources.osi_sockets import datagrams, stream_messages  # noqa: PLC0415
    from hilsim.parts.external.sources.osi_traces import read_trace  # noqa: PLC0415
    from hilsim.protocols.osi import MessageType  # noqa: PLC0415

    wanted: MessageType | None = next((each for each in get_args(MessageType) if each == messages), None)
    chosen: Origin = next(each for each in get_args(Origin) if each == origin)
    if kind == "osi":
        found = read_trace(Path(place), wanted, note=lambda text: click.secho(f"note: {text}", fg="yellow", err=True))
    elif kind == "osi-udp":
        found = datagrams(held.enter_context(_bound(place)), wanted or "GroundTruth")
    else:
        found = stream_messages(held.enter_context(_connected(place)), wanted or "GroundTruth")
    snapshots = (partial(_read, each, chosen) for each in found)
    return (read() for read in snapshots) if kind == "osi" else accepted(snapshots)


def _read(message: "OsiMessage", origin: "Origin") -> "Snapshot":
    from hilsim.parts.external.sources.osi import osi_snapshot  # noqa: PLC0415

    if message.fault:
        raise PacketError(f"{message.where}: {message.fault}")
    return osi_snapshot(message.content, message.kind, origin=origin, where=message.where)


def accepted(snapshots: "Iterator[Callable[[], Snapshot]]") -> "Iterator[Snapshot]":
    """Snapshots of messages from the network; those that are malformed are left out, counted, and reported at times."""
    from hilsim.telemetry.rarely import Rarely  # noqa: PLC0415

    rarely, refused = Rarely(), 0
    for read in snapshots:
        try:
            snapshot = read()
        except PacketError as error:
            refused += 1
            if rarely.may_report(time.monotonic()):
                click.secho(f"note: refused: {error}", fg="yellow", err=True)
        else:
            yield snapshot
    if refused:
        click.secho(f"note: {refused} messages refused", fg="yellow", err=True)


def _fmu(path: Path, held: ExitStack) -> "Iterator[Snapshot]":
    from dataclasses import replace  # noqa: PLC0415

    from hilsim.config.parse import parse_table  # noqa: PLC0415
    from hilsim.config.toml_file import read_toml  # noqa: PLC0415
    from hilsim.parts.external.sources.fmi import Fmu, FmuSpec  # noqa: PLC0415

    spec = parse_table(FmuSpec, read_toml(path), str(path))
    return held.enter_context(Fmu(replace(spec, file=path.parent / spec.file))).snapshots()


def _address(place: str) -> tuple[str, int]:
    host, _, port = place.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and int(port) <= 65_535):
        raise ConfigError(f'address must be ADDRESS:PORT, got "{place}"')
    return host, int(port)


def _bound(place: str) -> socket.socket:
    address = _address(place)
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
    try:
        opened.bind(address)
    except OSError as error:
        opened.close()
        raise ConfigError(f"{place}: must be an address of this host with a free port, got {error}") from error
    return opened


def _connected(place: str) -> socket.socket:
    try:
        return socket.create_connection(_address(place))
    except OSError as error:
        raise ConfigError(f"{place}: must be an address that accepts a connection, got {error}") from error
