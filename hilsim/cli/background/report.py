"""Report of ``hilsim background`` on a map."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from hilsim.read.background.generator import Generated
from hilsim.read.background.movement import MIN_CELLS
from hilsim.world.scene.background import VALID

_DOUBTFUL = 0.5
_MIN_COVERED = 0.2
"""Share of covered cells below which a map is reported as sparse; known outdoor captures, with their sky, cover at least 40 % of their cells."""


def figures(found: Generated) -> dict[str, Any]:
    """Figures of coverage and doubtful cells."""
    formed, partial = found.map, found.partial
    is_valid = formed.flags == VALID
    hits = formed.hit_count[is_valid]
    return {
        "model": formed.model,
        "sensor": found.sensor.address,
        "rows": formed.grid.rows,
        "columns": formed.grid.columns,
        "cells": int(is_valid.size),
        "covered": int(is_valid.sum()),
        "used": int(formed.used.sum()),
        "too_few_hits": int(((formed.hit_count > 0) & ~is_valid).sum()),
        "doubtful": int((is_valid & (formed.confidence < _DOUBTFUL)).sum()),
        "hits_median": int(np.median(hits)),
        "hits_least": int(hits.min()),
        "packets": partial.packets,
        "returns": partial.returns,
        "empty": partial.empty,
        "outside": partial.outside,
        "stood_still": _stood_still(found),
        "changed_ratio": None if found.change is None or not found.change.is_judged else found.change.ratio,
        "compared": None if found.change is None else found.change.compared,
        "ground": asdict(found.ground),
        "captures": [{"name": capture.name, "sha256": capture.sha256, "packets": capture.packets} for capture in partial.captures],
    }


def _stood_still(found: Generated) -> str:
    if found.change is None:
        return "not checked: its poses are known"
    return "yes" if found.change.is_judged else "not checked: too short"


def warnings(found: Generated) -> tuple[str, ...]:
    """Warnings about the use of a map."""
    numbers = figures(found)
    covered = numbers["covered"] / numbers["cells"]
    if covered >= _MIN_COVERED:
        return ()
    few = f"the map covers only {numbers['covered']:,} of its {numbers['cells']:,} cells ({covered:.1%})"
    return (f"{few}: a rig shows nothing in the others; record longer, or use fewer cells (--columns)",)


def as_json(found: Generated, files: tuple[Path, ...]) -> dict[str, Any]:
    """Report for JSON."""
    return figures(found) | {"files": [str(path) for path in files], "notes": list(found.notes), "warnings": list(warnings(found))}


def as_text(found: Generated, files: tuple[Path, ...]) -> list[str]:
    """Report as lines of text."""
    numbers = figures(found)
    cells, covered = numbers["cells"], numbers["covered"]
    lines = [
        f"{numbers['model']} {numbers['sensor']}: {len(numbers['captures'])} capture(s), {numbers['packets']:,} packets, {numbers['returns']:,} returns",
        f"covered {covered:,} of {cells:,} cells ({covered / cells:.1%}), {numbers['rows']} rows x {numbers['columns']} columns",
        f"returns a cell: median {numbers['hits_median']:,}, least {numbers['hits_least']:,}",
    ]
    if numbers["too_few_hits"]:
        lines.append(f"left out: {numbers['too_few_hits']:,} cells with too few returns (--min-hits, --min-share)")
    if numbers["doubtful"]:
        lines.append(f"doubtful: {numbers['doubtful']:,} cells where less than half of the returns lie at the surface (edges, foliage, traffic)")
    if numbers["outside"]:
        lines.append(f"outside the grid: {numbers['outside']:,} returns")
    if found.change is not None and not found.change.is_judged:
        lines.append(
            f"stood still: not checked: too short ({found.change.compared:,} cells have returns in both the first and the last third, {MIN_CELLS} are needed)"
        )
    elif found.change is not None:
        lines.append(f"stood still: of {found.change.compared:,} cells {found.change.nearer:,} became nearer, {found.change.farther:,} farther")
    lines.append(str(found.ground))
    lines += [f"wrote {path}" for path in files]
    rigs = [path for path in files if path.suffix == ".toml"]
    lines.append(f"next: hilsim run {rigs[0]}" if rigs else "no rig: the packets do not name their sensor; give --profile NAME (a Cepton-style one)")
    return lines
