"""``hilsim map``: aggregate returns to a map."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from hilsim.api.decoding import decode
from hilsim.api.emulator import Emulator
from hilsim.api.packet import captured_packets
from hilsim.capture.metadata import given_metadata
from hilsim.config.places import SDF_SUFFIXES
from hilsim.errors import CaptureError, ConfigError
from hilsim.protocols.recognise import recognise
from hilsim.read.analysis.map_files import check_map_path, write_map
from hilsim.read.analysis.returns_map import ReturnsMap, place_points
from hilsim.read.background.job import Motion, check_covered
from hilsim.read.background.poses import load_motion
from hilsim.world.geometry.poses import Pose, mounting
from hilsim.world.geometry.tracks import fixed_track
from hilsim.world.platforms.platform import build_platform

_STEP_S = 0.5
_PACKETS_AT_ONCE = 4096
_RIG_S = 10.0


@click.command(name="map")
@click.argument("source")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="File to write: .ply, .las or .npz.")
@click.option("--cell-m", type=click.FloatRange(0.001, 100.0), default=0.2, show_default=True, help="Edge of a cell.")
@click.option("--min-count", type=click.IntRange(1), default=1, show_default=True, help="Leave out cells with fewer returns.")
@click.option("--memory-mb", type=click.FloatRange(1.0, 1e6), default=512.0, show_default=True, help="Most memory; what does not fit is left out.")
@click.option("--sensor", default="", help="Name of a sensor of the rig (default: all), or ADDRESS or ADDRESS:PORT of one in a capture.")
@click.option("--model", default="", help="Model of a Velodyne in a capture. Default: recognised from the packets.")
@click.option("--duration-s", type=click.FloatRange(0.001, 1e6), default=None, help="Length to use.  [default: 10 s of a rig, all of a capture]")
@click.option(
    "--poses", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Poses of what carried the sensor of a capture: .csv or .tum."
)
@click.option("--position-m", type=float, nargs=3, default=None, metavar="X Y Z", help="Position of a capture's sensor (with --poses: in the body).")
@click.option("--rotation-deg", type=float, nargs=3, default=None, metavar="R P Y", help="Its roll, pitch and yaw.")
@click.option("--json", "as_json", is_flag=True, help="Print statistics as JSON.")
def map(  # noqa: A001 - the name of the command
    *,
    source: str,
    output: Path,
    cell_m: float,
    min_count: int,
    memory_mb: float,
    sensor: str,
    model: str,
    duration_s: float | None,
    poses: Path | None,
    position_m: tuple[float, float, float] | None,
    rotation_deg: tuple[float, float, float] | None,
    as_json: bool,
) -> None:
    """Aggregate the returns of SOURCE (a rig or a capture) to a map: the number of returns in each cell of a grid, and their mean position."""
    check_map_path(output)
    returns_map = ReturnsMap(cell_m, memory_mb)
    returns = 0
    if Path(source).suffix in {".toml", *SDF_SUFFIXES} or not Path(source).exists():
        if poses is not None or position_m is not None or rotation_deg is not None:
            raise click.UsageError("--poses, --position-m and --rotation-deg are for captures: a rig knows where its sensors are")
        parts = _of_rig(source, sensor, duration_s or _RIG_S)
    else:
        for name, values in (("position-m", position_m), ("rotation-deg", rotation_deg)):
            if values is not None and not np.isfinite(values).all():
                raise click.UsageError(f"--{name} must be finite, got {values}")
        mounted = mounting(position_m or (0.0, 0.0, 0.0), rotation_deg or (0.0, 0.0, 0.0))
        motion = load_motion(poses, mounted) if poses is not None else Motion(track=fixed_track(mounted), is_utc=True, body_from_sensor=Pose())
        parts = _of_capture(Path(source), sensor, model, duration_s, motion)
    for points_m in parts:
        returns_map.add(points_m)
        returns += len(points_m)
    cells = returns_map.cells(min_count)
    try:
        write_map(output, cells, cell_m)
    except OSError as error:
        raise ConfigError(f"{output}: must be a file that can be written, got {error.strerror}") from error
    left_out, too_far = returns_map.left_out, returns_map.too_far
    if as_json:
        facts = {
            "file": str(output),
            "returns": returns,
            "cells": len(cells.returns),
            "blocks": returns_map.blocks,
            "left_out": left_out,
            "too_far": too_far,
            "cell_m": cell_m,
        }
        click.echo(json.dumps(facts))
        return
    click.echo(f"{output}: {len(cells.returns):,} cells of {cell_m:g} m from {returns:,} returns")
    if too_far:
        click.echo(f"warning: {too_far:,} returns were left out: they are too far away for cells of {cell_m:g} m", err=True)
    if left_out > too_far:
        click.echo(
            f"warning: {left_out - too_far:,} returns were left out: {memory_mb:g} MB hold no more blocks; give --memory-mb or larger cells", err=True
        )


def _of_rig(source: str, sensor: str, duration_s: float) -> Iterator[npt.NDArray[np.float64]]:
    """Yield the returns of a rig's sensors in the world."""
    emulator = Emulator(source)
    for name in (sensor,) if sensor else emulator.sensors:
        for begin in np.arange(0.0, duration_s, _STEP_S).tolist():
            end = min(begin + _STEP_S, duration_s)
            yield emulator.world_points(emulator.points(begin, end, name), name)


def _of_capture(path: Path, sensor: str, model: str, duration_s: float | None, motion: Motion) -> Iterator[npt.NDArray[np.float64]]:
    """Yield the returns in a capture in the world, each at the capture time of its packet, less the time from its firing to the packet's last one.

    Raises:
        CaptureError: it has no points.
    """
    some: list[Any] = []
    start_ns: int | None = None
    found = sensor
    has_points = False
    metadata = given_metadata(capture=path)
    platform = build_platform(motion.track)

    def placed() -> npt.NDArray[np.float64]:
        if len(motion.track.time_ns) > 1:
            check_covered(motion, start_ns or 0, some[0].time_ns, some[-1].time_ns, str(path))
        points = decode(some, sensor=found, model=model, metadata=metadata)
        captured_ns = np.array([packet.time_ns for packet in some], np.int64)
        last_ns = np.zeros(len(some), np.int64)
        np.maximum.at(last_ns, points["packet"], points["time"])
        time_ns = captured_ns[points["packet"]] - (last_ns[points["packet"]] - points["time"]) - (0 if motion.is_utc else start_ns or 0)
        points_m = np.stack([points["x"], points["y"], points["z"]], axis=1).astype(np.float64)
        mount = motion.body_from_sensor
        place_points(platform, np.array(mount.position_m), np.array(mount.orientation), time_ns, points_m)
        return points_m

    for packet in captured_packets(path, sensor):
        start_ns = packet.time_ns if start_ns is None else start_ns
        if duration_s is not None and packet.time_ns - start_ns > duration_s * 1e9:
            break
        if not recognise(packet.payload).facts.is_decoded or (sensor and packet.sensor != sensor):
            continue
        found = found or packet.sensor
        if packet.sensor != found:
            raise CaptureError(f"{path}: --sensor must name one of several, got packets of {found} and {packet.sensor}")
        some.append(packet)
        has_points = True
        if len(some) >= _PACKETS_AT_ONCE:
            yield placed()
            some = []
    if some:
        yield placed()
    if not has_points:
        raise CaptureError(f"{path}: no packets of points{f' of {sensor}' if sensor else ''} found; hilsim inspect lists what a capture holds")
