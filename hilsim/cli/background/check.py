"""``hilsim background --check``: compare a map, or what its rig shows, with captures."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from hilsim.capture.batches import DatagramArrays, read_only, sender_number
from hilsim.cli.background.outputs import RIG_SUFFIX, NamedProfile
from hilsim.config.rig import Rig, load_rig
from hilsim.errors import CaptureError, ConfigError
from hilsim.read.background.agreement import MAX_BIAS_MM, MIN_AGREEMENT, MIN_COVERAGE, Agreement, Shown, compare
from hilsim.read.background.files.archive import read_archive
from hilsim.read.background.generator import Generated
from hilsim.read.background.job import MapJob, PartialMapMaker
from hilsim.read.background.part import GridSetting
from hilsim.read.background.surface import SurfaceRule, surfaces
from hilsim.read.background.survey import choose, survey
from hilsim.world.scene.background import AzimuthGrid, BackgroundMap
from hilsim.world.scene.specs import SceneSpec

_SHORTEST_S, _LONGEST_S, _STEP_S = 3.0, 20.0, 0.25
_SENDER = sender_number("127.0.0.1", 0)
Generate = Callable[[GridSetting, NamedProfile | None, SurfaceRule], Generated]


def check(file: Path, generate: Generate) -> tuple[Agreement, Generated, str]:
    """Compare a map, or what its rig shows, with captures.

    Args:
        file: Rig (``.toml``) or map (``.npz``).
        generate: Function that makes a map of the captures with the cells, the profile and the rule of the checked map.

    Returns:
        Agreement, map of the captures, and name of what was compared.

    Raises:
        AssetError: the map cannot be read.
        ConfigError: the rig cannot be used.
        CaptureError: the captures cannot be used, or come from another sensor.
    """
    rig = _rig_of(file) if file.suffix == RIG_SUFFIX else None
    formed = read_archive(rig.directory / rig.spec.scene.background[0].file if rig else file)
    profile = NamedProfile(rig.spec.sensor[0].profile, rig.lidars[0].spec) if rig else None
    rule = _rule(formed)
    found = generate(_setting(formed), profile, rule)
    if found.map.grid != formed.grid:
        raise CaptureError(f"{file}: the map must be of the captures' sensor and cells, got a map of a {formed.model or 'sensor without a name'}")
    if rig is None:
        return compare(Shown(np.where(formed.used, formed.distance_mm, 0).astype(np.int64), formed.used), found.partial, rule), found, "the map"
    spans_s = [(capture.last_ns - capture.first_ns) * 1e-9 for capture in found.partial.captures]
    shown_s = min(max(sum(spans_s), _SHORTEST_S), _LONGEST_S)
    shown = _shown(rig, formed, rule, round(shown_s / _STEP_S))
    return compare(shown, found.partial, rule), found, f"what the rig shows in {round(shown_s / _STEP_S) * _STEP_S:g} s"


def _rig_of(file: Path) -> Rig:
    """Load the rig with only the map in its scene."""
    rig = load_rig(file)
    backgrounds = rig.spec.scene.background
    if len(backgrounds) != 1 or len(rig.spec.sensor) != 1:
        raise ConfigError(f"{file}: a rig to check must have one sensor and one background, got {len(rig.spec.sensor)} and {len(backgrounds)}")
    return replace(rig, spec=replace(rig.spec, scene=SceneSpec(background=backgrounds)))


def _setting(formed: BackgroundMap) -> GridSetting:
    grid = formed.grid
    if isinstance(grid, AzimuthGrid):
        return GridSetting(columns=grid.columns)
    return GridSetting(columns=grid.columns, rows=grid.rows, image_x=(grid.x_min, grid.x_max), image_z=(grid.z_min, grid.z_max))


def _rule(formed: BackgroundMap) -> SurfaceRule:
    """Surface rule of the map, from its metadata; the surface's distance is checked."""
    settings = formed.provenance.get("settings", {})
    usual = SurfaceRule()
    return SurfaceRule(
        kind=settings.get("surface", usual.kind),
        quantile=settings.get("quantile") or usual.quantile,
        min_hits=settings.get("min_hits", usual.min_hits),
        min_share=settings.get("min_share", usual.min_share),
    )


def _shown(rig: Rig, formed: BackgroundMap, rule: SurfaceRule, steps: int) -> Shown:
    """Surfaces that the rig's packets show, by the cells of its map."""
    from hilsim.assembly.build import build_lidar, build_scenery  # noqa: PLC0415 - compiles kernels

    lidar = build_lidar(rig, 0, build_scenery(rig), utc_epoch_ns=0, frames=False)
    maker: PartialMapMaker | None = None
    for step in range(steps):
        packets = lidar.data_span(round(step * _STEP_S * 1e9), round((step + 1) * _STEP_S * 1e9))
        payload = np.ascontiguousarray(packets.payload)
        count = packets.size.size
        start = np.arange(count, dtype=np.int64) * payload.shape[1]
        source = np.full(count, _SENDER, dtype=np.int64)
        batch = DatagramArrays(read_only(payload.reshape(-1)), start, packets.size.astype(np.int64), packets.deadline_ns, source)
        if maker is None:
            sensor = choose(survey([batch]), "", str(rig.path))
            maker = PartialMapMaker(MapJob(grid=formed.grid, source=sensor.source, named=lidar.setting.spec), sensor, str(rig.path))
        maker.add(batch, 0)
    if maker is None:
        raise AssertionError("a check must have at least one step")
    found = surfaces(maker.take(), rule.beyond_ppm, takes_mean=True)
    return Shown(found.distance_mm, found.averaged == found.hits)


def as_text(agreement: Agreement, found: Generated, what: str) -> list[str]:
    """Lines of text, with the verdict last."""
    over = f"mean and standard deviation over {agreement.one_surface:,} cells of one surface"
    lines = [
        f"{found.sensor}: {found.partial.packets:,} packets, {found.partial.returns:,} returns, against {what}",
        f"bias {agreement.bias_mm:+.1f} mm (at most {MAX_BIAS_MM:g}), spread {agreement.spread_mm:.1f} mm: {over}"
        if agreement.is_judged
        else "bias not judged",
        f"coverage {agreement.coverage_ratio:.1%} (at least {MIN_COVERAGE:.0%}) of {agreement.cells:,} cells in which the capture has a surface",
        f"agreement {agreement.agreement_ratio:.1%} (at least {MIN_AGREEMENT:.0%}): returns of the capture within 10 cm or 1/64 of what is shown",
    ]
    faults = agreement.faults()
    return [*lines, *faults, "passed" if not faults else "FAILED" if agreement.is_judged else "NOT JUDGED"]


def as_json(agreement: Agreement, found: Generated, what: str) -> dict[str, Any]:
    """Result for JSON."""
    return {
        "against": what,
        "sensor": found.sensor.address,
        "packets": found.partial.packets,
        "returns": found.partial.returns,
        **asdict(agreement),
        **({} if agreement.is_judged else {"bias_mm": None, "spread_mm": None}),
        "limits": {"bias_mm": MAX_BIAS_MM, "coverage_ratio": MIN_COVERAGE, "agreement_ratio": MIN_AGREEMENT},
        "judged": agreement.is_judged,
        "passed": not agreement.faults(),
        "faults": list(agreement.faults()),
        "notes": list(found.notes),
    }


def report(agreement: Agreement, found: Generated, what: str) -> None:
    """Print the result as text."""
    for note in found.notes:
        click.secho(f"note: {note}", fg="yellow", err=True)
    *lines, verdict = as_text(agreement, found, what)
    click.echo("\n".join(lines))
    click.secho(verdict, fg="green" if verdict == "passed" else "red", bold=True)
