"""``hilsim export``: write what a rig or a capture holds in the formats of other tools."""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from hilsim.capture.metadata import given_metadata
from hilsim.cli.outputs import metadata_option
from hilsim.cli.rigs import changes, loaded, setting
from hilsim.config.places import SDF_SUFFIXES, rig_path
from hilsim.errors import ConfigError
from hilsim.show.outputs.formats import CLOUDS, FORMATS, SHAPES, Shapes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hilsim.show.outputs.events import Event, SourceInfo

_RIG_S = 10.0
_REPORT_NS = 200_000_000
_EXAMPLES = """\b
Examples:
  hilsim export demo -o demo.mcap                         for Foxglove: points, poses, packets
  hilsim export drive.pcap -o drive-bag --format ros2     a ROS 2 bag of a recorded sensor
  hilsim export drive.pcap -o scans --format pcd          one PCD file for each scan
  hilsim export demo -o town --format kitti               a labelled sequence
"""


@click.command(epilog=_EXAMPLES)
@click.argument("source")
@setting
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="File or folder to write.")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    help="Default: by the suffix of OUTPUT. For a point-cloud format without that suffix OUTPUT is a folder with one file for each scan.",
)
@click.option(
    "--layout",
    type=click.Choice(["xyzirt", "xyzircaedt"]),
    default="xyzirt",
    show_default=True,
    help="Points of a ROS 2 bag: as of velodyne_pointcloud, or of Autoware and nebula.",
)
@click.option("--storage", type=click.Choice(["mcap", "sqlite3"]), default="mcap", show_default=True, help="Storage of a ROS 2 bag.")
@click.option("--no-packets", is_flag=True, help="Leave the packets themselves out of an MCAP file or a bag.")
@click.option("--laser-scan", is_flag=True, help="Also write the laser nearest to the horizon as a LaserScan (MCAP, bags).")
@click.option(
    "--foxglove-layout",
    "layout_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write a layout for Foxglove or Lichtblick that shows the sensors.",
)
@click.option("--script", type=click.Path(dir_okay=False, exists=True, path_type=Path), help="Timed changes of a rig (.toml or .jsonl).")
@click.option("--sensor", default="", help="The only sensor of a capture to export: ADDRESS, or ADDRESS:PORT where several have one address.")
@metadata_option
@click.option("--duration-s", type=click.FloatRange(0.001, 1e6), default=None, help="Length to export.  [default: 10 s of a rig, all of a capture]")
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON.")
def export(
    *,
    source: str,
    settings: tuple[str, ...],
    output: Path,
    format_name: str | None,
    layout: Literal["xyzirt", "xyzircaedt"],
    storage: Literal["mcap", "sqlite3"],
    no_packets: bool,
    laser_scan: bool,
    layout_file: Path | None,
    script: Path | None,
    sensor: str,
    metadata: tuple[Path, ...],
    duration_s: float | None,
    as_json: bool,
) -> None:
    """Write the scans, packets and poses of SOURCE (a rig or a capture) in a format of other tools: point clouds, MCAP, ROS 2 bags, labelled data sets."""
    kind = _kind(format_name, output, layout_file)
    in_one = kind in CLOUDS and output.suffix.lower() == f".{kind}"
    with_packets = kind in {"mcap", "ros2"} and not no_packets
    info, events, is_rig = _source(source, settings, script, sensor, metadata, duration_s, with_packets=with_packets, shapes=SHAPES.get(kind, "none"))
    from hilsim.show.outputs.making import make_output  # noqa: PLC0415 - imports kernels

    made = make_output(
        kind,
        output,
        info,
        layout=layout,
        storage=storage,
        in_one=in_one,
        with_packets=with_packets,
        with_laser_scans=laser_scan,
        layout_file=layout_file,
    )
    scans, packets, begun_s = 0, 0, time.monotonic()
    from hilsim.api.packet import Packet  # noqa: PLC0415 - slow to import
    from hilsim.show.outputs.bag import RosBag  # noqa: PLC0415
    from hilsim.show.outputs.events import OutputScan, completed  # noqa: PLC0415

    first_ns = shown_ns = last_ns = 0
    shows = sys.stderr.isatty() and not as_json
    try:
        with completed(made, output):
            for event in events:
                made.write(event)
                if isinstance(event, OutputScan):
                    scans += 1
                    last_ns = event.stamp_ns
                    first_ns = first_ns or last_ns
                elif isinstance(event, Packet):
                    packets += 1
                if shows and last_ns - shown_ns >= _REPORT_NS:
                    shown_ns = last_ns
                    click.echo(f"\r{scans:,} scans, {(last_ns - first_ns) / 1e9:.1f} s", err=True, nl=False)
    except OSError as error:
        raise ConfigError(f"{output}: must be writable, got {error.strerror or error}") from error
    if shows:
        click.echo("\r\033[K", err=True, nl=False)
    if isinstance(made, RosBag):
        packets = made.packets
    facts = {
        "output": str(output),
        "format": kind,
        "scans": scans,
        "packets": packets,
        "sensors": list(info.mounts),
        "seconds": round((last_ns - first_ns) / 1e9, 3),
        "took_s": round(time.monotonic() - begun_s, 3),
        "is_labelled": is_rig,
        "remarks": info.remarks,
    }
    if as_json:
        click.echo(json.dumps(facts))
        return
    click.echo(f"{output}: {scans:,} scans of {', '.join(info.mounts)}" + (f", {packets:,} packets" if with_packets else ""))
    for remark in info.remarks:
        click.echo(f"note: {remark}", err=True)


def _kind(format_name: str | None, output: Path, layout_file: Path | None) -> str:
    """The format by its name or by the output's suffix."""
    kind = format_name or output.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise click.UsageError(
            f"--format must be given where OUTPUT does not end in {', '.join('.' + name for name in (*CLOUDS, 'mcap'))}, got {output}"
        )
    if layout_file is not None and kind != "mcap":
        raise click.UsageError(f"--foxglove-layout is for MCAP files, got the format {kind}")
    return kind


def _source(
    source: str,
    settings: tuple[str, ...],
    script: Path | None,
    sensor: str,
    metadata: tuple[Path, ...],
    duration_s: float | None,
    *,
    with_packets: bool,
    shapes: Shapes,
) -> "tuple[SourceInfo, Iterator[Event], bool]":
    from hilsim.show.outputs.sources import capture_events, rig_events  # noqa: PLC0415 - imports kernels

    if Path(source).suffix in {".toml", *SDF_SUFFIXES} or not Path(source).exists():
        if sensor or metadata:
            raise click.UsageError("--sensor and --metadata are for captures: choose a rig's sensors with --set")
        rig = loaded(rig_path(source), changes(settings))
        info, events = rig_events(rig, duration_s or _RIG_S, with_packets=with_packets, shapes=shapes, script=script)
        return info, events, True
    if settings or script:
        raise click.UsageError(f"{'--set' if settings else '--script'} is for rigs: a capture has no keys")
    info, events = capture_events(Path(source), sensor=sensor, duration_s=duration_s, metadata=given_metadata(metadata, Path(source)))
    return info, events, False
