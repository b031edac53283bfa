"""``hilsim verify``: check whether a stream is what a real sensor sends."""

import asyncio
import json
import sys
from pathlib import Path

import click

from hilsim.api.verification import VerifyReport
from hilsim.api.verification import verify as verify_stream
from hilsim.capture.busy_host import BusyHost
from hilsim.capture.live import Listener
from hilsim.capture.metadata import given_metadata
from hilsim.cli.addresses import Address, HostPort
from hilsim.cli.outputs import metadata_option
from hilsim.errors import CaptureError, CommandFaultError
from hilsim.read.analysis.conformance.checker import StreamChecker

_POSITION_PORT = 8308  # a Velodyne's


@click.command()
@click.argument("capture", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--listen", type=HostPort(), help="Check the packets that arrive at HOST:PORT.")
@click.option(
    "--position-port",
    type=click.IntRange(0, 65_535),
    default=_POSITION_PORT,
    show_default=True,
    help="Port of position packets (Ouster: of IMU packets).",
)
@click.option("--duration-s", type=click.FloatRange(0.1), default=5.0, show_default=True, help="Time to listen.")
@metadata_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def verify(*, capture: Path | None, listen: Address | None, position_port: int, duration_s: float, metadata: tuple[Path, ...], as_json: bool) -> None:
    """Check a Velodyne, Cepton (STDV) or Ouster stream bit by bit, from CAPTURE (PCAP, PCAPNG) or live; real sensors and emulated ones alike.

    Exits with 1 if a rule is broken. docs/reference/conformance-rules.md lists the rules.
    """
    if (capture is None) == (listen is None):
        raise click.UsageError("give either CAPTURE or --listen HOST:PORT")
    if listen is None:
        report = verify_stream(capture or Path(), metadata=metadata)
    else:
        checker = StreamChecker(given_metadata(metadata))
        with BusyHost() as host:
            notes = asyncio.run(_live(checker, listen, position_port, duration_s))
        report = VerifyReport(result=checker.result(host_waited_ns=host.waited_ns), notes=notes)
    _say(report, as_json=as_json)


async def _live(checker: StreamChecker, address: Address, position_port: int, duration_s: float) -> tuple[str, ...]:
    seen = 0
    async with Listener(host=address[0], ports=(address[1], position_port)) as listener:
        if sys.stderr.isatty():
            click.echo(f"listening at {address[0]}:{address[1]} for {duration_s:g} s ...", err=True)
        try:
            async with asyncio.timeout(duration_s):
                async for batch in listener.batches():
                    seen += len(batch)
                    checker.feed(batch)
        except TimeoutError:
            pass
        if seen == 0:
            raise CaptureError(f"{address[0]}:{address[1]}: nothing arrived in {duration_s:g} s; is a sensor sending here?")
        return (f"{listener.dropped} datagrams dropped by the kernel: this host reads too slowly",) if listener.dropped else ()


def _say(report: VerifyReport, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(report.to_dict(), indent=2))
    else:
        for note in report.notes:
            click.secho(f"note: {note}", fg="yellow", err=True)
        lines, _, verdict = str(report).rpartition("\n")
        click.echo(lines)
        click.secho(verdict, fg="green" if report.passed else "red", bold=True)
    if not report.passed:
        raise CommandFaultError
