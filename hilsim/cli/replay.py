"""``hilsim replay``: send captures to hardware."""

import asyncio
import gc
import json
import os
import signal
import sys
import termios
import tty
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hilsim.cli.leaving import LEFT_OUT_EXIT_CODE, leave
from hilsim.cli.terminal.live_line import LiveLine
from hilsim.errors import CaptureError, ConfigError, TransmitError

if TYPE_CHECKING:
    from hilsim.daemon.running_rig import RunningRig

_STEP_S = 5.0
_LEFT, _RIGHT = b"\x1b[D", b"\x1b[C"


def _kind() -> Any:
    """What a rig's ``[[replay]]`` is, which an installation may be without."""
    from hilsim.config.part_tables import part_kind  # noqa: PLC0415

    kind = part_kind("replay")
    if kind is None:
        raise ConfigError("the part that replays must be installed, got none")
    return kind


@click.command()
@click.argument("captures", metavar="CAPTURE...", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--to",
    metavar="HOST[:PORT]",
    default="127.0.0.1",
    show_default=True,
    help="Destination of packets: an address or the name of a host; `recorded`: the recorded one.",
)
@click.option(
    "--from",
    "source",
    metavar="ADDRESS",
    default="auto",
    help="Source address of packets, `recorded`, or `auto` (default): to loopback destinations 127.0.C.D for a recorded A.B.C.D, else the recorded one.",
)
@click.option(
    "--flow",
    "flows",
    metavar="MATCH[=SEND]",
    multiple=True,
    help="Replay flows that match SOURCE>DESTINATION (each ADDRESS:PORT, any part may be omitted), and send them as SEND if given; repeatable.",
)
@click.option(
    "--source-ports",
    type=click.Choice(["auto", "recorded", "any"]),
    default="auto",
    help="Source ports. auto: any to loopback destinations, else the recorded ones.",
)
@click.option("--broadcast", is_flag=True, help="Allow a broadcast destination: every host on the network gets the packets.")
@click.option("--interface", default="", help="Network interface to send through.")
@click.option("--frames", is_flag=True, help="Send whole Ethernet frames with the recorded addresses and headers (needs --interface, CAP_NET_RAW).")
@click.option("--destination-mac", default="", help="Destination MAC address of frames to one host.")
@click.option(
    "--pace",
    type=click.Choice(["device", "capture", "nominal"]),
    default="device",
    show_default=True,
    help="Send times: by the sensor's own stamps (free of the capturing host's jitter), by the capture's times, or at the model's constant rate.",
)
@click.option("--rate-hz", type=click.FloatRange(0.0), default=0.0, help="Rate of packets of unknown kinds, for --pace nominal.")
@click.option("--interval-scale", type=float, default=1.0, show_default=True, help="Factor on the time between packets; 0.5 is twice as fast.")
@click.option("--start-s", type=float, default=0.0, help="Capture time at which to begin.")
@click.option("--duration-s", type=float, default=None, help="Length of capture time to replay.")
@click.option("--end-s", type=float, default=None, help="Capture time at which to end.")
@click.option("--offset-s", "offsets", type=float, multiple=True, help="Time at which a capture begins; once for each capture, in their order.")
@click.option(
    "--align",
    type=click.Choice(["start", "capture"]),
    default="start",
    show_default=True,
    help="Several captures begin together (start), or as far apart as they were recorded (capture).",
)
@click.option(
    "--retime",
    type=click.Choice(["utc", "device", "none"]),
    default="utc",
    show_default=True,
    help="New time of stamps, NMEA sentences and sequence numbers: the present UTC (utc), the time since the start (device), or as recorded (none).",
)
@click.option("--clock-offset-s", type=float, default=0.0, help="Time of the stamps at the start with --retime device.")
@click.option(
    "--loop",
    type=click.Choice(["none", "plain", "seamless"]),
    default="none",
    show_default=True,
    help="seamless: cut where the head points in the same direction, so that receivers see one continuous stream.",
)
@click.option("--loops", type=click.IntRange(0), default=0, help="Number of passes of a loop; 0 (default): until stopped.")
@click.option("--loop-sensor", default="", metavar="ADDRESS", help="Recorded address of the sensor for which the seam is cut.")
@click.option("--scheduling", type=click.Choice(["auto", "fifo", "slice", "plain"]), default="auto", show_default=True)
@click.option(
    "--late-policy",
    type=click.Choice(["postpone", "skip", "send", "stop"]),
    default="postpone",
    show_default=True,
    help="After a stall of this machine: postpone all following packets (none is lost), or keep the times and skip or send packets 20 ms late, or stop.",
)
@click.option("--metrics", default="none", metavar="ADDRESS:PORT", show_default=True, help="Serve Prometheus metrics there.")
@click.option(
    "--control",
    metavar="ADDRESS",
    default="",
    help="Unix socket, or udp:ADDRESS:PORT of this host, at which `hilsim control` can pause, resume and seek.",
)
@click.option("--record", type=click.Path(dir_okay=False, path_type=Path), default=None, help="Write what is sent to this PCAP file.")
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON at the end.")
def replay(captures: tuple[Path, ...], **options: Any) -> None:
    """Send the packets of CAPTUREs (PCAP, PCAPNG; plain, gzip, zstd) as the sensors did, with new stamps; several captures use one clock.

    On a terminal: space pauses, left and right seek by 5 s, q stops. Exit codes: 0 all packets were sent, 1 an error, 3 packets were skipped because they
    would have been late.
    """
    gc.disable()  # until packets flow, as in `hilsim run`
    click.get_current_context().call_on_close(gc.enable)  # if it ends before that
    person, name = sys.stderr.isatty(), captures[0].name if len(captures) == 1 else f"{len(captures)} captures"
    line = LiveLine(is_watched=person)
    line.step(f"{name}: starting")
    from hilsim.assembly.rig_sources import MadeRig  # noqa: PLC0415
    from hilsim.cli.terminal.screen import Screen  # noqa: PLC0415
    from hilsim.config.rig import Rig  # noqa: PLC0415
    from hilsim.daemon.service import Console, serve  # noqa: PLC0415
    from hilsim.telemetry.logs import configure_logging  # noqa: PLC0415

    kind = _kind()
    rig = Rig(path=Path.cwd() / "replay", spec=kind.of_options(captures, options), lidars=())
    configure_logging("error" if person else "info")
    screen, keys = Screen(name, line), Keys()
    summary: dict[str, Any] = {}

    def started(running: "RunningRig", metrics: str) -> None:
        if keys.listen(running):
            screen.hint("keys     space pauses, left and right seek by 5 s, q stops")
        if person:
            screen.started(running, metrics)

    def ended(running: "RunningRig") -> None:
        if person:
            screen.status(running.reading())
        summary.update(kind.summarised(running))

    console = Console(step=screen.step, started=started, status=screen.status, ended=ended) if person else Console(started=started, ended=ended)
    try:
        ending = asyncio.run(serve(MadeRig(rig=rig), console, until_played=options["loop"] == "none" or options["loops"] > 0))
    finally:
        keys.close()
        screen.close()
    if options["as_json"]:
        click.echo(json.dumps(summary))
    faults = summary.get("faults", [])
    if faults:
        raise CaptureError("\n".join(faults))
    refused = sum(sum(flow["send_errors"].values()) for flow in summary.get("flows", []))
    if refused:
        raise TransmitError(
            f"every packet must be accepted by the kernel, got {refused} refused; is the destination reachable (ip route get ADDRESS)?"
        )
    left_out = sum(flow["dropped_packets"] for flow in summary.get("flows", []))
    if left_out:
        played = sum(flow["sent_packets"] for flow in summary["flows"]) + left_out
        click.secho(
            f"warning: {left_out} of {played} packets were not sent: they were more than 20 ms late (--late-policy postpone loses none)",
            fg="yellow",
            err=True,
        )
    leave(ending, LEFT_OUT_EXIT_CODE if left_out else 0)


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
        played = running.played().values()
        if pressed == b" ":
            paused = not all(each.state().is_paused for each in played)
            for each in played:
                each.pause(paused=paused)
        elif pressed in {_LEFT, _RIGHT}:
            for each in played:
                each.seek(max(each.state().position_s + (_STEP_S if pressed == _RIGHT else -_STEP_S), 0.0))
        elif pressed in {b"q", b"\x04"}:
            os.kill(os.getpid(), signal.SIGTERM)
