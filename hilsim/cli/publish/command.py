"""``hilsim publish``: what sensors send, live, for Foxglove and ROS 2."""

import os
import signal
from collections import Counter
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
import structlog

from hilsim.cli.addresses import Address, HostPort

if TYPE_CHECKING:
    from hilsim.show.outputs.events import Output, SourceInfo
    from hilsim.show.view.feed.base import Feed

log = structlog.get_logger("hilsim")
_NICE = 10
_EXAMPLES = """\b
Examples:
  hilsim publish /run/hilsim/control --foxglove 127.0.0.1:8765     a daemon's sensors in Foxglove
  hilsim publish --listen 0.0.0.0:2368 --ros2                      a real sensor as ROS 2 topics
  hilsim publish drive.pcap --ros2 --foxglove 127.0.0.1:8765       a capture, played at its own rate
"""


@click.command(epilog=_EXAMPLES)
@click.argument("source", required=False)
@click.option("--listen", type=HostPort(), metavar="HOST:PORT", help="Publish the sensors that send to this UDP port, instead of SOURCE.")
@click.option("--token-file", metavar="PATH", help="File with the daemon's token, for http://HOST:PORT.")
@click.option("--foxglove", type=HostPort(), metavar="HOST:PORT", help="Serve Foxglove's WebSocket here; port 0: any.")
@click.option("--ros2", is_flag=True, help="Publish ROS 2 topics by the environment's rclpy.")
@click.option("--domain", type=click.IntRange(0, 232), default=None, help="ROS_DOMAIN_ID.  [default: that of the environment, else 0]")
@click.option("--ros-args", default="", metavar="ARGS", help="Remappings and parameters, as after --ros-args of a ROS 2 node, in one argument.")
@click.option("--layout", type=click.Choice(["xyzirt", "xyzircaedt"]), default="xyzirt", show_default=True, help="Points of ROS 2 clouds.")
@click.option("--laser-scan", is_flag=True, help="Also publish the laser nearest to the horizon as a LaserScan.")
@click.option(
    "--foxglove-layout",
    "layout_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write a layout for Foxglove or Lichtblick that shows the sensors.",
)
@click.option("--expose", is_flag=True, help="Permit an address of --foxglove that other machines reach: everybody there can read the clouds.")
@click.option(
    "--objects-hz",
    type=click.FloatRange(0, 100),
    default=0.0,
    show_default=True,
    help="Scans a second of each sensor of a daemon that are published with objects.",
)
def publish(
    *,
    source: str | None,
    listen: Address | None,
    token_file: str | None,
    foxglove: Address | None,
    ros2: bool,
    domain: int | None,
    ros_args: str,
    layout: Literal["xyzirt", "xyzircaedt"],
    laser_scan: bool,
    layout_file: Path | None,
    expose: bool,
    objects_hz: float,
) -> None:
    """Publish the scans of SOURCE (a daemon or a capture) or of a UDP port, live, for Foxglove and as ROS 2 topics, until Ctrl-C.

    Foxglove gets the packets as well, and of a daemon the scene and the state. A separate process
    follows the sent packets and does not disturb their sending. At the end it logs how many scans and packets were published, and how many were lost because
    it was too slow.
    """
    from hilsim.api.packet import Packet  # noqa: PLC0415 - slow to import
    from hilsim.show.outputs.events import OutputScan, SourceInfo  # noqa: PLC0415 - slow to import
    from hilsim.show.outputs.live import LiveEvents  # noqa: PLC0415 - imports kernels
    from hilsim.show.view import memory  # noqa: PLC0415
    from hilsim.telemetry.logs import configure_logging  # noqa: PLC0415

    if (source is None) == (listen is None):
        raise click.UsageError("give either SOURCE (a daemon's control socket, http://HOST:PORT or a capture) or --listen HOST:PORT")
    if foxglove is None and not ros2:
        raise click.UsageError("give --foxglove HOST:PORT, --ros2, or both")
    if layout_file is not None and foxglove is None:
        raise click.UsageError("--foxglove-layout is for --foxglove")
    if foxglove is not None and not expose and not ip_address(foxglove[0]).is_loopback:
        raise click.BadParameter(f"must be a loopback address without --expose, got {foxglove[0]}", param_hint="--foxglove")
    memory.return_large_arrays()
    info = SourceInfo(name=source or f"udp:{(listen or ('', 0))[0]}:{(listen or ('', 0))[1]}", has_body=False)
    ros = (domain, ros_args) if ros2 else None
    outputs = _outputs(info, foxglove, ros, layout, with_laser_scans=laser_scan, layout_file=layout_file)
    os.nice(_NICE)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    configure_logging()
    feed = _feed(source, listen, token_file, objects_hz, with_packets=foxglove is not None)
    events, counts = LiveEvents(feed, info), Counter[type]()
    try:
        for event in events:
            for output in outputs:
                output.write(event)
            counts[type(event)] += 1
    except KeyboardInterrupt:
        packets, skipped_packets = counts[Packet], events.skipped_packets
        log.info("publish.stopped", scans=counts[OutputScan], skipped=events.skipped, packets=packets, skipped_packets=skipped_packets)
    finally:
        feed.close()
        for output in outputs:
            output.close()


def _outputs(
    info: "SourceInfo",
    foxglove: Address | None,
    ros: tuple[int | None, str] | None,
    layout: Literal["xyzirt", "xyzircaedt"],
    *,
    with_laser_scans: bool,
    layout_file: Path | None,
) -> "list[Output]":
    """The chosen outputs; the address of Foxglove's is printed."""
    outputs: list[Output] = []
    if ros is not None:
        from hilsim.show.outputs.ros2 import Ros2Topics  # noqa: PLC0415 - an extra

        outputs.append(Ros2Topics(info, *ros, layout=layout, with_laser_scans=with_laser_scans))
    if foxglove is not None:
        from hilsim.show.outputs.foxglove_server import FoxgloveServer  # noqa: PLC0415 - an extra

        server = FoxgloveServer(*foxglove, info, with_laser_scans=with_laser_scans, layout_file=layout_file)
        outputs.append(server)
        click.echo(f"ws://{foxglove[0]}:{server.port}")
    return outputs


def _feed(source: str | None, listen: Address | None, token_file: str | None, objects_hz: float, *, with_packets: bool) -> "Feed":
    from hilsim.show.view.sources import capture_feed, daemon_feed, is_daemon, listen_feed  # noqa: PLC0415 - slow to import

    if listen is not None:
        return listen_feed(*listen, with_packets=with_packets)
    if source is not None and is_daemon(source):
        return daemon_feed(source, token_file, objects_hz, with_packets=with_packets)
    return capture_feed(source or "", with_packets=with_packets)
