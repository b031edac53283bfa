"""``hilsim view``: show what a daemon sends, a capture or a UDP port in a browser."""

import asyncio
import os
from ipaddress import ip_address

import click

from hilsim.cli.addresses import Address, HostPort
from hilsim.cli.rigs import loaded
from hilsim.config.places import rig_path
from hilsim.errors import ConfigError

_EXAMPLES = """\b
Examples:
  hilsim run demo --view                          the demo, and its page
  hilsim view /run/hilsim/control                 what a running daemon sends
  hilsim view http://127.0.0.1:9466 --token-file control.token
  hilsim view drive.pcap                          a capture, played at its own rate
  hilsim view --listen 127.0.0.1:2368             a sensor, or whatever sends to this port
"""
_NICE = 10


@click.command(epilog=_EXAMPLES)
@click.argument("source", required=False)
@click.option("--listen", type=HostPort(), metavar="HOST:PORT", help="Show the sensors that send to this UDP port, instead of SOURCE.")
@click.option("--token-file", metavar="PATH", help="File with the daemon's token (the rig's `[control] token_file`), for http://HOST:PORT.")
@click.option(
    "--objects-hz",
    type=click.FloatRange(0, 100),
    default=1.0,
    show_default=True,
    help="Scans a second of each sensor of a daemon whose points are labelled with objects, which renders their packets again; 0: none.",
)
@click.option("--mounts", metavar="RIG", help="Rig with the mounts of a capture's sensors: those of its sensors with the same source addresses.")
@click.option(
    "--at", type=HostPort(), metavar="HOST:PORT", default=("127.0.0.1", 8080), show_default="127.0.0.1:8080", help="Address of the page; port 0: any."
)
@click.option(
    "--expose",
    is_flag=True,
    help="Permit an address of --at that other machines reach: everybody who has the URL sees the bench, without encryption.",
)
@click.option("--end-with", type=click.IntRange(1), metavar="PID", help="Stop when the process of this number has ended in any way.")
def view(
    *,
    source: str | None,
    listen: Address | None,
    token_file: str | None,
    objects_hz: float,
    mounts: str | None,
    at: Address,
    expose: bool,
    end_with: int | None,
) -> None:
    """Show what SOURCE sends, live in a browser: points, sensors, objects and health.

    SOURCE is a daemon (its control socket, the rig's `[control] socket`, or http://HOST:PORT, `[control] http`) or a capture (PCAP, PCAPNG). The command
    prints the URL of the page, which contains a token: without it, no other user or web page can open the page.
    """
    from hilsim.show.view.page.server import require_view  # noqa: PLC0415 - slow to import

    if (source is None) == (listen is None):
        raise click.UsageError("give either SOURCE (a daemon's control socket, http://HOST:PORT or a capture) or --listen HOST:PORT")
    if not expose and not ip_address(at[0]).is_loopback:
        raise click.BadParameter(f"must be a loopback address without --expose, got {at[0]}", param_hint="--at")
    require_view()
    if end_with is not None:
        from hilsim.processes import end_with_process  # noqa: PLC0415

        end_with_process(end_with)
    os.nice(_NICE)  # packets come first
    from hilsim.show.view import gate as gates  # noqa: PLC0415
    from hilsim.show.view import memory, sources  # noqa: PLC0415

    memory.return_large_arrays()

    is_daemon = source is not None and sources.is_daemon(source)
    if token_file is not None and not (is_daemon and str(source).startswith("http://")):
        raise ConfigError("--token-file must come with a daemon at http://HOST:PORT")
    if mounts is not None and (is_daemon or source is None):
        raise ConfigError("--mounts must come with a capture: a daemon's sensors are where its rig has them")
    places = sources.mounts_of(loaded(rig_path(mounts))) if mounts is not None else None
    gate = gates.Gate(gates.listen(*at), gates.new_token())
    click.echo(gate.url)
    from hilsim.show.view.serving import serve_view  # noqa: PLC0415 - imports after the URL is printed

    if listen is not None:
        host, port = listen
        asyncio.run(serve_view(gate, lambda: sources.listen_feed(host, port)))
    elif is_daemon:
        from hilsim.api.control import connect  # noqa: PLC0415

        address = str(source)
        asyncio.run(
            serve_view(
                gate,
                lambda: sources.daemon_feed(address, token_file, objects_hz),
                connect(address, token_file=token_file),
                lambda: sources.edit_session(address, token_file),
            )
        )
    else:
        path = str(source)
        asyncio.run(serve_view(gate, lambda: sources.capture_feed(path, places)))
