"""``hilsim picture``: draw one scan as an image."""

import asyncio
from pathlib import Path
from typing import Any

import click

from hilsim.capture.live import Listener
from hilsim.capture.metadata import given_metadata
from hilsim.capture.pcap import CaptureFile
from hilsim.cli.addresses import Address, HostPort
from hilsim.cli.outputs import ImageFile, metadata_option
from hilsim.cli.rigs import loaded
from hilsim.config.part_kind import parts_of
from hilsim.config.places import SDF_SUFFIXES, rig_path
from hilsim.errors import CaptureError
from hilsim.read.analysis.picture.gathering import Gathered, no_points, scan_of_lidar
from hilsim.read.analysis.picture.part import PictureScan
from hilsim.read.analysis.picture.scales import check_picture_path


@click.command()
@click.argument("source", required=False)
@click.option("--listen", type=HostPort(), help="Use the packets that arrive at HOST:PORT instead of a rig or capture.")
@click.option("-o", "--output", type=ImageFile(), required=True, help="Image to write: .png, .svg or .pdf.")
@click.option("--sensor", default="", help="Name of the sensor in a rig, or ADDRESS or ADDRESS:PORT of one in a capture. Default: the first.")
@click.option("--model", default="", help="Model (HDL-32E, VLP-16 ...) or profile. Default: recognised from the packets.")
@metadata_option
@click.option("--at-s", type=click.FloatRange(0.0), default=0.0, show_default=True, help="Time into the rig or capture.")
@click.option("--extent-m", type=click.FloatRange(1.0, 300.0), default=None, help="Half width of the view from above.")
@click.option("--timeout-s", type=click.FloatRange(0.1), default=5.0, show_default=True, help="Longest wait for live packets.")
def picture(
    *,
    source: str | None,
    listen: Address | None,
    output: Path,
    sensor: str,
    model: str,
    metadata: tuple[Path, ...],
    at_s: float,
    extent_m: float | None,
    timeout_s: float,
) -> None:
    """Draw one scan of SOURCE (a rig or a capture) or of a live stream: images of range and reflectivity, and the view from above.

    Of an Ouster sensor also images of signal and near infrared, as far as its profile has them.
    """
    if (source is None) == (listen is None):
        raise click.UsageError("give either SOURCE (a rig or a capture) or --listen HOST:PORT")
    check_picture_path(output)
    scan: PictureScan
    if listen is not None:
        title = f"live at {listen[0]}:{listen[1]}"
        gathered = asyncio.run(_live(listen, Gathered(sensor, given_metadata(metadata), model), timeout_s))
        scan, named = gathered.scan(title), gathered.sensor
    elif source is not None and (Path(source).suffix in {".toml", *SDF_SUFFIXES} or not Path(source).exists()):
        title = f"{source}, {at_s:g} s"
        scan, named = _from_rig(source, sensor, at_s)
    else:
        title, path = f"{source}, {at_s:g} s", Path(source or "")
        gathered = _captured(path, Gathered(sensor, given_metadata(metadata, path), model), at_s)
        scan, named = gathered.scan(title), gathered.sensor
    scan.draw(output, title=f"{title}, {named}", extent_m=extent_m)
    click.echo(f"{output}: {scan}")
    if scan.remark:
        click.echo(f"note: {scan.remark}", err=True)


def _captured(path: Path, gathered: Gathered, at_s: float) -> Gathered:
    start_ns: int | None = None
    for datagram in CaptureFile(path):
        if start_ns is None:
            start_ns = datagram.host_stamp_ns
        if datagram.host_stamp_ns - start_ns >= at_s * 1e9:
            gathered.take(datagram)
        if gathered.is_enough():
            break
    return gathered


async def _live(address: Address, gathered: Gathered, timeout_s: float) -> Gathered:
    async def collect() -> None:
        async with Listener(host=address[0], ports=(address[1],)) as listener:
            async for datagram in listener:
                gathered.take(datagram)
                if gathered.is_enough():
                    return

    try:
        async with asyncio.timeout(timeout_s):
            await collect()
    except TimeoutError:
        if gathered.is_empty:
            raise CaptureError(
                f"{address[0]}:{address[1]}: {no_points()} in {timeout_s:g} s; is a sensor sending here (hilsim doctor names the usual causes)?"
            ) from None
    return gathered


def _from_rig(source: str, sensor: str, at_s: float) -> tuple[PictureScan, str]:
    """Scan of a sensor, and its title."""
    from hilsim.assembly.build import build_lidar, build_scenery  # noqa: PLC0415 - compiles kernels

    rig = loaded(rig_path(source))
    names: list[Any] = [entry.name for entry in rig.spec.sensor]
    if not names:
        for kind, _ in parts_of(rig.spec):
            drawn: tuple[PictureScan, str] | None = kind.picture(rig, sensor, at_s)
            if drawn is not None:
                return drawn
        raise CaptureError(f"{source}: must have a sensor for a picture, got none (for a replay, draw a picture of its capture)")
    if sensor and sensor not in names:
        raise CaptureError(f'{source}: sensor must be one of {", ".join(names)}, got "{sensor}"')
    sensor = sensor or names[0]
    lidar = build_lidar(rig, names.index(sensor), build_scenery(rig), utc_epoch_ns=0, frames=False)
    return scan_of_lidar(lidar, round(at_s * 1e9)), sensor
