"""``hilsim background``: make a map of what a stationary sensor saw, from captures or live packets."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal

import click

from hilsim.capture.batches import DatagramArrays, gathered
from hilsim.capture.live import Listener
from hilsim.cli.addresses import Address, HostPort
from hilsim.cli.background.outputs import NamedProfile, check_free, named_profile, write_files
from hilsim.cli.background.report import as_json, as_text, warnings
from hilsim.cli.terminal.progress import progress_bar
from hilsim.compilation.cache import module_is_compiled
from hilsim.errors import CommandFaultError
from hilsim.read.background.files.grey import GREY_KINDS
from hilsim.read.background.generator import Generated, generate, generate_live, prepare
from hilsim.read.background.job import Motion, Stretch
from hilsim.read.background.part import GridSetting
from hilsim.read.background.pool import mapper
from hilsim.read.background.poses import first_pose, load_motion
from hilsim.read.background.surface import SurfaceRule
from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.overlay_frames import ground_only_pose
from hilsim.world.geometry.poses import Pose, extrinsics

_SECONDS = 10.0


@click.command()
@click.argument("captures", nargs=-1, metavar="[CAPTURE...]", type=click.Path(path_type=Path))
@click.option("-o", "--output", metavar="NAME", type=click.Path(path_type=Path), help="Write NAME.npz and more files of that name.")
@click.option(
    "--check",
    "checked",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write nothing: compare a map (.npz), or what its rig (.toml) shows, with the captures. Exits with 1 if they do not agree.",
)
@click.option("--listen", type=HostPort(), help="Use the packets that arrive at HOST:PORT instead of captures.")
@click.option("--seconds", type=click.FloatRange(0.1, 86_400), default=_SECONDS, show_default=True, help="Time to listen.")
@click.option(
    "--sensor", default="", metavar="ADDRESS", help="Address of the sensor, with :PORT where several have one; needed if there are several."
)
@click.option(
    "--profile", "profile_name", default="", metavar="NAME", help="Profile of the sensor (shipped or a path); Cepton points do not name it."
)
@click.option("--start-s", type=click.FloatRange(0.0), default=0.0, help="Begin at this time of each capture.")
@click.option("--duration-s", type=click.FloatRange(0.0, min_open=True), default=None, help="Use this length of each capture.  [default: all]")
@click.option(
    "--columns",
    type=click.IntRange(2, 65_536),
    default=None,
    help="Cells across.  [default: a turn's firings at 600 rpm (a Velodyne's: 1800), 320 for an image]",
)
@click.option("--rows", type=click.IntRange(2, 65_536), default=None, help="Cells along an image's height.  [default: 160]")
@click.option("--image-x", type=float, nargs=2, default=None, metavar="MIN MAX", help="Image x of an image's first and last column.")
@click.option("--image-z", type=float, nargs=2, default=None, metavar="MIN MAX", help="Image z of an image's first and last row.")
@click.option(
    "--surface", type=click.Choice(["quantile", "max"]), default="quantile", show_default=True, help="Surface that the map shows in each cell."
)
@click.option(
    "--quantile", type=click.FloatRange(0.5, 1.0, max_open=True), default=0.95, show_default=True, help="Share of returns up to the surface."
)
@click.option(
    "--distance",
    type=click.Choice(["mean", "farthest"]),
    default="mean",
    show_default=True,
    help="Distance of the surface: the mean of its returns, or the farthest.",
)
@click.option("--min-hits", type=click.IntRange(1, 1_000_000), default=2, show_default=True, help="Leave cells with fewer returns empty.")
@click.option(
    "--min-share", type=click.FloatRange(0.0, 1.0), default=0.25, show_default=True, help="Leave cells empty in which fewer firings have a return."
)
@click.option("--poses", type=click.Path(dir_okay=False, path_type=Path), help="Poses of the platform of a moving sensor: .csv or .tum.")
@click.option("--height-m", type=float, default=None, help="Height of the sensor above the ground.")
@click.option("--pitch-deg", type=float, default=None, help="Tilt of the sensor; positive looks down.")
@click.option(
    "--position-m", type=float, nargs=3, default=None, metavar="X Y Z", help="Position of the sensor in the world (with --poses: in the body)."
)
@click.option("--rotation-deg", type=float, nargs=3, default=None, metavar="R P Y", help="Roll, pitch and yaw of the sensor.")
@click.option(
    "--workers",
    type=click.IntRange(1, 1024),
    default=os.cpu_count() or 1,
    show_default="all cores",
    help="Processes, or threads for one capture; does not affect the map.",
)
@click.option("--cluster", default="", metavar="ADDRESS", help='Compute on a Dask scheduler\'s workers, or on "local" ones.')
@click.option("--grey", type=click.Choice(GREY_KINDS), default="png", show_default=True, help="Kind of the grey picture; a .bmp has 8 bits a pixel.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@click.option("--json", "is_json", is_flag=True, help="Print statistics as JSON.")
def background(
    *,
    captures: tuple[Path, ...],
    output: Path | None,
    checked: Path | None,
    listen: Address | None,
    seconds: float,
    sensor: str,
    profile_name: str,
    start_s: float,
    duration_s: float | None,
    columns: int | None,
    rows: int | None,
    image_x: tuple[float, float] | None,
    image_z: tuple[float, float] | None,
    surface: str,
    quantile: float,
    distance: Literal["mean", "farthest"],
    min_hits: int,
    min_share: float,
    poses: Path | None,
    height_m: float | None,
    pitch_deg: float | None,
    position_m: Vector | None,
    rotation_deg: Vector | None,
    workers: int,
    cluster: str,
    grey: str,
    force: bool,
    is_json: bool,
) -> None:
    """Make a depth map of the place that the stationary sensor of each CAPTURE saw, without what came and went.

    Writes NAME.npz (the map), NAME.bmp, NAME-grey.png (or .bmp) and NAME.ply (to view), and NAME.toml, a rig that shows it.
    """
    _refuse_nonsense(captures, listen, output, checked, captures_only=bool(poses or start_s or duration_s is not None or cluster or checked))
    if checked is not None and (profile_name or any(value is not None for value in (columns, rows, image_x, image_z))):
        raise click.UsageError("--profile, --columns, --rows, --image-x and --image-z must not be given with --check, whose file sets them")
    mounted = _mounted(height_m, pitch_deg, position_m, rotation_deg)
    if output is not None:
        check_free(output, force=force, grey=grey)
    profile = named_profile(profile_name) if profile_name else None
    if not module_is_compiled("hilsim.read.background.surface"):
        click.echo("compiling kernels, which takes up to half a minute the first time ...", err=True)
    try:
        setting = GridSetting(columns=columns, rows=rows, image_x=image_x, image_z=image_z)
        rule = SurfaceRule(
            kind="max" if surface == "max" else "quantile", quantile=quantile, distance=distance, min_hits=min_hits, min_share=min_share
        )
        stretch = Stretch(start_s=start_s, duration_s=duration_s)
        captured = partial(
            _captured, captures=captures, sensor=sensor, stretch=stretch, poses=poses, mounted=mounted, workers=workers, cluster=cluster
        )
        if output is None:
            _check(checked or Path(), captured, is_json=is_json)
            return
        found = captured(setting, profile, rule) if listen is None else _live(listen, seconds, sensor, profile, setting, rule, mounted)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    files = write_files(found, output, force=force, grey=grey, profile=profile)
    for note in found.notes:
        click.secho(f"note: {note}", fg="yellow", err=True)
    for warning in warnings(found):
        click.secho(f"warning: {warning}", fg="yellow", err=True)
    click.echo(json.dumps(as_json(found, files), indent=2) if is_json else "\n".join(as_text(found, files)))


def _refuse_nonsense(captures: tuple[Path, ...], listen: Address | None, output: Path | None, checked: Path | None, *, captures_only: bool) -> None:
    if bool(captures) == (listen is not None):
        raise click.UsageError("give either captures or --listen HOST:PORT")
    if (output is None) == (checked is None):
        raise click.UsageError("give either -o NAME or --check FILE")
    if listen is not None and captures_only:
        raise click.UsageError("--poses, --start-s, --duration-s, --cluster and --check are for captures")
    if len({path.resolve() for path in captures}) < len(captures):
        raise click.UsageError("each capture must be given once")


def _check(file: Path, build: Callable[[GridSetting, NamedProfile | None, SurfaceRule], Generated], *, is_json: bool) -> None:
    from hilsim.cli.background import check  # noqa: PLC0415 - imports the renderer

    agreement, found, what = check.check(file, build)
    if is_json:
        click.echo(json.dumps(check.as_json(agreement, found, what), indent=2))
    else:
        check.report(agreement, found, what)
    if agreement.faults():
        raise CommandFaultError


def _mounted(height_m: float | None, pitch_deg: float | None, position_m: Vector | None, rotation_deg: Vector | None) -> Pose | None:
    """Pose of the sensor in the world (or body), if given: by height and tilt above the ground, or in full."""
    is_ground_only = height_m is not None or pitch_deg is not None
    if is_ground_only and (position_m or rotation_deg):
        raise click.UsageError("give either --height-m and --pitch-deg, or --position-m and --rotation-deg")
    if is_ground_only:
        return ground_only_pose(height_m or 0.0, pitch_deg or 0.0)
    if position_m or rotation_deg:
        return extrinsics(position_m or (0.0, 0.0, 0.0), rotation_deg or (0.0, 0.0, 0.0))
    return None


def _captured(
    setting: GridSetting,
    profile: NamedProfile | None,
    rule: SurfaceRule,
    *,
    captures: tuple[Path, ...],
    sensor: str,
    stretch: Stretch,
    poses: Path | None,
    mounted: Pose | None,
    workers: int,
    cluster: str,
) -> Generated:
    motion: Motion | None = None
    if poses is not None:
        motion = load_motion(poses, mounted or extrinsics((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
        if len(captures) > 1 and not motion.is_utc:
            raise click.UsageError("several captures need poses with UTC times (seconds since 1970)")
    named = profile.spec if profile else None
    job, found = prepare(captures[0], setting, sensor=sensor, named=named, stretch=stretch, motion=motion, progress=progress_bar)
    sizes = sum(path.stat().st_size for path in captures if path.is_file())
    label = f"reading {captures[0].name}" if len(captures) == 1 else f"reading {len(captures)} captures"
    with progress_bar(sizes, label) as advance:
        return generate(
            job, found, captures, rule, mapper(workers, cluster), advance or (lambda _: None), pose=first_pose(motion) if motion else mounted
        )


def _live(
    address: Address, seconds: float, sensor: str, profile: NamedProfile | None, setting: GridSetting, rule: SurfaceRule, mounted: Pose | None
) -> Generated:
    where = f"{address[0]}:{address[1]}"
    batches = _arriving(address, seconds)
    named = profile.spec if profile else None
    return asyncio.run(generate_live(batches, setting, rule, where=where, seconds=seconds, sensor=sensor, named=named, pose=mounted))


async def _arriving(address: Address, seconds: float) -> AsyncIterator[DatagramArrays]:
    """Yield the packets that arrive until the time is over."""
    loop = asyncio.get_running_loop()
    over_s = loop.time() + seconds
    async with Listener(host=address[0], ports=(address[1],)) as listener:
        batches = listener.batches()
        while (left_s := over_s - loop.time()) > 0.0:
            with suppress(TimeoutError, StopAsyncIteration):
                yield gathered(await asyncio.wait_for(anext(batches), left_s))
