"""What ``hilsim background`` says of a map."""

from pathlib import Path
from typing import Any

import numpy as np

from hilsim.background.generator import Generated
from hilsim.scene.background import VALID

_DOUBTFUL = 0.5


def figures(found: Generated) -> dict[str, Any]:
    """Coverage and doubt, as numbers."""
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
        "changed_ratio": None if found.change is None else found.change.ratio,
        "captures": [{"name": capture.name, "sha256": capture.sha256, "packets": capture.packets} for capture in partial.captures],
    }


def as_json(found: Generated, files: tuple[Path, ...]) -> dict[str, Any]:
    """For programs."""
    return figures(found) | {"files": [str(path) for path in files], "notes": list(found.notes)}


def as_text(found: Generated, files: tuple[Path, ...]) -> list[str]:
    """For people."""
    told = figures(found)
    cells, covered = told["cells"], told["covered"]
    lines = [
        f"{told['model']} {told['sensor']}: {len(told['captures'])} capture(s), {told['packets']:,} packets, {told['returns']:,} returns",
        f"covered {covered:,} of {cells:,} cells ({covered / cells:.1%}), {told['rows']} rows x {told['columns']} columns",
        f"returns a cell: median {told['hits_median']:,}, least {told['hits_least']:,}",
    ]
    if told["too_few_hits"]:
        lines.append(f"left out: {told['too_few_hits']:,} cells with too few returns (--min-hits, --min-share)")
    if told["doubtful"]:
        lines.append(f"doubtful: {told['doubtful']:,} cells where less than half of the returns lie at the surface (edges, foliage, traffic)")
    if told["outside"]:
        lines.append(f"outside the grid: {told['outside']:,} returns")
    if found.change is not None:
        lines.append(f"stood still: of {found.change.compared:,} cells {found.change.nearer:,} became nearer, {found.change.farther:,} farther")
    lines += [f"wrote {path}" for path in files]
    rigs = [path for path in files if path.suffix == ".toml"]
    lines.append(f"next: hilsim run {rigs[0]}" if rigs else f"no rig: hilsim has no profile of a {told['model']}; name the map in one of your own")
    return lines
