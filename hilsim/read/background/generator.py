"""Generation of a background map from captures or a live stream: survey, map step over all captures, merge, surface."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hilsim.capture.batches import CaptureBatches, DatagramArrays
from hilsim.errors import CaptureError
from hilsim.read.analysis.ground import Ground, Reason, fit_ground
from hilsim.read.background.files.cloud import map_points_m
from hilsim.read.background.job import MapJob, MappedCapture, Motion, PartialMapMaker, Stretch
from hilsim.read.background.movement import Change, check_standing
from hilsim.read.background.part import Advance, Batches, FoundSensor, GridSetting
from hilsim.read.background.partial import CaptureShare, PartialMap, check_size, merge
from hilsim.read.background.pool import Mapper
from hilsim.read.background.surface import SurfaceRule, form_map
from hilsim.read.background.survey import choose, survey
from hilsim.sensor.specs import LidarSpec
from hilsim.world.geometry.poses import Pose
from hilsim.world.scene.background import BackgroundMap

ProgressBar = Callable[[int, str], AbstractContextManager[Callable[[int], object] | None]]


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
        heights_m = self.sensor.source.row_heights_m()
        if heights_m is not None:
            points[:, 2] += heights_m[np.nonzero(self.map.used)[0]]
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

    @contextmanager
    def measured() -> Iterator[CaptureBatches]:
        with (
            progress(path.stat().st_size, f"measuring {path.name}") as advance,
            found.source.readable(path, found, advance or (lambda _: None)) as readable,
        ):
            yield CaptureBatches(readable.path)

    return job_for(found, setting, batches=measured, where=str(path), sensor=sensor, named=named, stretch=stretch, motion=motion), found


def job_for(
    found: FoundSensor,
    setting: GridSetting,
    *,
    batches: Batches,
    where: str,
    sensor: str = "",
    named: LidarSpec | None = None,
    stretch: Stretch | None = None,
    motion: Motion | None = None,
) -> MapJob:
    """Determine the map job for a sensor that was found; an extent of its points that is not set is measured in ``batches``.

    Raises:
        CaptureError: its model is unknown, or another than the named one.
        ValueError: the settings do not apply to the sensor.
    """
    if named is not None:
        found.source.check_named(named, found, where)
    grid = found.source.grid(setting, named, found, batches, where)
    check_size(grid)
    return MapJob(grid=grid, source=found.source, named=named, sensor=sensor, stretch=stretch or Stretch(), motion=motion)


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
    formed = form_map(whole, rule, model=(job.named or job.source).model, pose=pose, provenance=_provenance(job, whole, rule, worst))
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
            if found.source.decoded:
                raise CaptureError(f"{where}: {found.source.kind} must come from a capture, which the vendor's library can decode, got {found}")
            job = job_for(found, setting, batches=lambda: nullcontext(waiting), where=where, sensor=sensor, named=named)
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
    share = CaptureShare(name=where, packets=maker.packets, first_ns=maker.first_ns, last_ns=maker.last_ns)
    whole = replace(merge(parts), captures=(share,))
    change = check_standing(parts[0], parts[-1], f"{where}: from the first to the last third")
    return _formed(job, found, whole, rule, [change], [], pose)
