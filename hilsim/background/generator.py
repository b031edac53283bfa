"""Generation of a background map from captures or a live stream: survey, map step over all captures, merge, surface."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hilsim.analysis.ground import Ground, Reason, fit_ground
from hilsim.background.files.cloud import map_points_m
from hilsim.background.imaging import widen
from hilsim.background.job import MapJob, MappedCapture, Motion, PartialMapMaker, Stretch, with_share
from hilsim.background.movement import Change, check_standing
from hilsim.background.partial import CaptureShare, PartialMap, check_size, merge
from hilsim.background.pool import Advance, Mapper
from hilsim.background.stdt import readable
from hilsim.background.surface import SurfaceRule, form_map
from hilsim.background.survey import FoundSensor, Kind, choose, kinds_of, survey
from hilsim.capture.batches import CaptureBatches, DatagramArrays
from hilsim.errors import CaptureError, require
from hilsim.families.cepton.specs import CeptonSpec
from hilsim.families.velodyne.protocol.geometry import FiringGeometry
from hilsim.families.velodyne.protocol.models import MODELS
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.geometry.poses import Pose
from hilsim.scene.background import AzimuthGrid, BackgroundMap, ImageGrid
from hilsim.sensor.specs import LidarSpec

TURNING_COLUMNS = 1800
"""Default number of columns: 0.2 degrees, a firing step at 600 rpm."""
IMAGE_COLUMNS, IMAGE_ROWS = 320, 160
_EXTENT_STEP = 0.01
_GEOMETRIES = {model.name: model.geometry for model in MODELS}
_OF_POINTS = (Kind.STDV, Kind.STDT)
ProgressBar = Callable[[int, str], AbstractContextManager[Callable[[int], object] | None]]


@dataclass(frozen=True, kw_only=True)
class GridSetting:
    """Grid settings of the user; None for the sensor's default.

    Attributes:
        columns: Number of columns.
        rows: Number of rows; for image grids only.
        image_x: Image x of the first and last column.
        image_z: Image z of the first and last row.
    """

    columns: int | None = None
    rows: int | None = None
    image_x: tuple[float, float] | None = None
    image_z: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Generated:
    """A generated map with its notes.

    Attributes:
        map: Background map.
        partial: Counts from which it was computed.
        sensor: The sensor of the first capture.
        change: Largest change within a capture and between captures; None where the sensor moved and its poses are known.
        notes: Notes of the readers about the captures.
    """

    map: BackgroundMap
    partial: PartialMap
    sensor: FoundSensor
    change: Change | None
    notes: tuple[str, ...]

    @cached_property
    def ground(self) -> Ground | Reason:
        """The ground that the map shows, in the sensor frame; or why it shows none."""
        points = map_points_m(self.map)
        geometry = _GEOMETRIES.get(self.map.model)
        if geometry is not None and geometry.vertical_offset_mm:
            points[:, 2] += np.array(geometry.vertical_offset_mm)[list(geometry.elevation_order)][np.nonzero(self.map.used)[0]] * 1e-3
        return fit_ground(points)


def prepare(
    path: Path,
    setting: GridSetting,
    *,
    sensor: str = "",
    named: LidarSpec | None = None,
    stretch: Stretch | None = None,
    motion: Motion | None = None,
    progress: ProgressBar = lambda _size, _label: nullcontext(),
) -> tuple[MapJob, FoundSensor]:
    """Determine the map job for a capture and others of the same sensor.

    Args:
        path: First capture, which determines the sensor, and the extent of an image grid that is not set.
        setting: Settings of the grid.
        sensor: Address of the sensor; optional if there is only one.
        named: Profile of the sensor, if the user gives it: point packets do not identify their sensor.
        stretch: Part of each capture to use.
        motion: Motion of the sensor.
        progress: Progress bar: called with a size in bytes and a label, returns a context whose function takes the number of further bytes done, or None.

    Raises:
        CaptureError: the capture cannot be read, or contains no known sensor, several sensors, or another than the named one.
    """
    if not path.is_file():
        raise CaptureError(f"{path}: {'must be a file' if path.exists() else 'cannot be opened: No such file or directory'}")
    found = choose(survey(CaptureBatches(path), sensor), sensor, str(path))
    extent = None
    if found.kind in _OF_POINTS and (setting.image_x is None or setting.image_z is None):
        with progress(path.stat().st_size, f"measuring {path.name}") as advance, readable(path, found, advance or (lambda _: None)) as source:
            extent = measured_extent(CaptureBatches(source.path), found, str(path))
    return job_for(found, setting, sensor=sensor, named=named, stretch=stretch, motion=motion, extent=extent, where=str(path)), found


def job_for(
    found: FoundSensor,
    setting: GridSetting,
    *,
    where: str,
    sensor: str = "",
    named: LidarSpec | None = None,
    stretch: Stretch | None = None,
    motion: Motion | None = None,
    extent: tuple[float, float, float, float] | None = None,
) -> MapJob:
    """Determine the map job for a sensor that was found; ``extent`` is the extent of its points, where measured.

    Raises:
        CaptureError: its model is unknown, or another than the named one.
        ValueError: the settings do not apply to the sensor.
    """
    geometry = None
    if named is not None:
        check_named(named, found, where)
    if found.kind is Kind.VELODYNE:
        geometry = named.geometry if isinstance(named, VelodyneSpec) else _GEOMETRIES.get(found.model)
        if geometry is None:
            raise CaptureError(
                f"{where}: the model must be one of {', '.join(sorted(_GEOMETRIES))}, got {found} with product byte 0x{found.product:02x}"
            )
        grid: AzimuthGrid | ImageGrid = _azimuth_grid(geometry, setting)
    else:
        grid = _image_grid(setting, extent)
    check_size(grid)
    return MapJob(
        grid=grid,
        kind=found.kind,
        model=found.model,
        named=named.model if named else "",
        geometry=geometry,
        sensor=sensor,
        stretch=stretch or Stretch(),
        motion=motion,
    )


def _azimuth_grid(geometry: FiringGeometry, setting: GridSetting) -> AzimuthGrid:
    require(
        (setting.rows is None, f"rows must be left to a sensor that turns (one a laser), got {setting.rows}"),
        (setting.image_x is None and setting.image_z is None, "image x and z must not be given for a rotating sensor"),
    )
    return AzimuthGrid(columns=setting.columns or TURNING_COLUMNS, elevation_deg=geometry.rows_deg)


def _image_grid(setting: GridSetting, extent: tuple[float, float, float, float] | None) -> ImageGrid:
    x_min, x_max, z_min, z_max = extent or (0.0, 0.0, 0.0, 0.0)
    if setting.image_x is not None:
        x_min, x_max = setting.image_x
    if setting.image_z is not None:
        z_min, z_max = setting.image_z
    return ImageGrid(columns=setting.columns or IMAGE_COLUMNS, rows=setting.rows or IMAGE_ROWS, x_min=x_min, x_max=x_max, z_min=z_min, z_max=z_max)


def measured_extent(batches: Iterator[DatagramArrays] | CaptureBatches, found: FoundSensor, where: str) -> tuple[float, float, float, float]:
    """Extent of a sensor's points in image x and z, rounded outward to hundredths.

    Raises:
        CaptureError: there are no points.
    """
    extent = np.array([np.inf, -np.inf, np.inf, -np.inf])
    for batch in batches:
        widen(batch, (kinds_of(batch) == Kind.STDV) & (batch.sender == found.sender), extent)
    if not np.isfinite(extent).all():
        raise CaptureError(f"{where}: must hold points of {found}, got none")
    low, high = np.floor(extent[::2] / _EXTENT_STEP) * _EXTENT_STEP, np.ceil(extent[1::2] / _EXTENT_STEP) * _EXTENT_STEP
    return float(low[0]), float(high[0]), float(low[1]), float(high[1])


def generate(
    job: MapJob, found: FoundSensor, paths: Sequence[Path], rule: SurfaceRule, run: Mapper, advance: Advance, *, pose: Pose | None = None
) -> Generated:
    """Generate the map from captures of one sensor at one place.

    Args:
        job: Job of ``prepare``.
        found: Sensor of ``prepare``.
        paths: Captures; the first is the one given to ``prepare``.
        rule: Definition of the surface.
        run: Mapper of ``pool.mapper``.
        advance: Called with the number of further bytes processed.
        pose: Pose of the sensor, world from sensor.

    Raises:
        CaptureError: a capture cannot be used; the message names it and the reason.
    """
    first: PartialMap | None = None
    whole: PartialMap | None = None
    changes: list[Change] = []
    notes: list[str] = []
    for path, mapped in zip(paths, run(job, paths, advance), strict=True):
        notes += [f"{path.name}: {note}" for note in mapped.notes]
        changes += _changes(job, first, paths[0], mapped, path)
        first = first or mapped.partial
        whole = mapped.partial if whole is None else merge([whole, mapped.partial])
    if whole is None:
        raise ValueError("paths must name 1 or more captures, got none")
    return _formed(job, found, whole, rule, changes, notes, pose)


def _changes(job: MapJob, first: PartialMap | None, first_path: Path, mapped: MappedCapture, path: Path) -> list[Change]:
    """Changes of the place within a capture, and since the first capture."""
    changes = [] if mapped.change is None else [mapped.change]
    if first is not None and job.motion is None:
        changes.append(check_standing(first, mapped.partial, f"{path}: since {first_path}"))
    return changes


def _formed(
    job: MapJob, found: FoundSensor, whole: PartialMap, rule: SurfaceRule, changes: list[Change], notes: list[str], pose: Pose | None
) -> Generated:
    worst = max(changes, key=lambda change: (change.is_judged, change.ratio), default=None)
    formed = form_map(whole, rule, model=job.named or job.model, pose=pose, provenance=_provenance(job, whole, rule, worst))
    if not formed.used.any():
        raise CaptureError(
            f"{', '.join(capture.name for capture in whole.captures)}: at least one cell must have {rule.min_hits} returns between 0.1 and 200 m, got none: "
            "take a longer capture, or a smaller --min-hits or --min-share"
        )
    return Generated(map=formed, partial=whole, sensor=found, change=worst, notes=tuple(notes))


def _provenance(job: MapJob, whole: PartialMap, rule: SurfaceRule, worst: Change | None) -> dict[str, Any]:
    """Provenance: everything that determines the map and nothing else, so no creation times, no paths, no number of workers."""
    return {
        "captures": [{"name": capture.name, "sha256": capture.sha256, "packets": capture.packets} for capture in whole.captures],
        "settings": {
            "surface": rule.kind,
            "quantile": rule.quantile if rule.kind == "quantile" else None,
            "distance": rule.distance,
            "min_hits": rule.min_hits,
            "min_share": rule.min_share,
            "start_s": job.stretch.start_s,
            "duration_s": job.stretch.duration_s,
            "compensated": job.motion is not None,
        },
        "statistics": {
            "packets": whole.packets,
            "returns": whole.returns,
            "empty": whole.empty,
            "outside": whole.outside,
            "changed_ratio": None if worst is None or not worst.is_judged else round(worst.ratio, 6),
        },
    }


async def generate_live(
    batches: AsyncIterator[DatagramArrays],
    setting: GridSetting,
    rule: SurfaceRule,
    *,
    where: str,
    seconds: float,
    sensor: str = "",
    named: LidarSpec | None = None,
    pose: Pose | None = None,
) -> Generated:
    """Generate the map from ``seconds`` of a stream, by the stamps of its packets.

    Args:
        batches: Batches as they arrive, until the stream ends.
        setting: Settings of the grid.
        rule: Definition of the surface.
        where: Name of the stream in messages.
        seconds: Duration in seconds.
        sensor: Address of the sensor; optional if there is only one.
        named: Profile of the sensor, as in ``prepare``.
        pose: Pose of the sensor, world from sensor.

    Raises:
        CaptureError: packets of no sensor, of several sensors, of another than the named one, or of a moving sensor arrived.
    """
    waiting: list[DatagramArrays] = []
    maker: PartialMapMaker | None = None
    parts: list[PartialMap] = []
    job: MapJob | None = None
    found: FoundSensor | None = None
    first_ns = 0
    async for batch in batches:
        if maker is None:
            waiting.append(batch)
            first_ns = first_ns or int(batch.host_stamp_ns[0])
            if batch.host_stamp_ns[-1] - first_ns < 1e9 * min(1.0, seconds / 4):
                continue
            found = choose(survey(waiting, sensor), sensor, where)
            if found.kind is Kind.STDT:
                raise CaptureError(f"{where}: STDT packets must come from a capture, which the vendor's library can decode, got {found}")
            extent = measured_extent(iter(waiting), found, where) if found.kind is Kind.STDV else None
            job = job_for(found, setting, where=where, sensor=sensor, named=named, extent=extent)
            maker = PartialMapMaker(job, found, where)
            for early in waiting:
                maker.add(early, first_ns)
            continue
        while len(parts) < min(int((batch.host_stamp_ns[0] - first_ns) * 3e-9 / seconds), 2):
            parts.append(maker.take())
        maker.add(batch, first_ns)
    if maker is None or job is None or found is None:
        found = choose(survey(waiting, sensor), sensor, where)
        raise CaptureError(f"{where}: must send for at least {min(1.0, seconds / 4):g} s, got {found.packets} packets of {found}")
    parts.append(maker.take())
    whole = with_share(merge(parts), CaptureShare(name=where, packets=maker.packets, first_ns=maker.first_ns, last_ns=maker.last_ns))
    change = check_standing(parts[0], parts[-1], f"{where}: from the first to the last third")
    return _formed(job, found, whole, rule, [change], [], pose)


def check_named(named: LidarSpec, found: FoundSensor, where: str) -> None:
    """Reject a profile that does not match the sensor found in the packets.

    Args:
        named: The profile that the user gave.
        found: The model found in the packets.
        where: Name of their source.

    Raises:
        CaptureError: the packets have another family, or identify another model.
    """
    if found.kind is Kind.VELODYNE:
        if found.model != named.model:
            raise CaptureError(f"{where}: --profile must be of the packets' model, got one of a {named.model} and packets of {found}")
    elif not isinstance(named, CeptonSpec):
        raise CaptureError(f'{where}: --profile must be of family "cepton" for Cepton packets, got one of a {named.model} and packets of {found}')
