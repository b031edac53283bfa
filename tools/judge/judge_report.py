"""Report of a judgement as text and as JSON."""

import math
from collections.abc import Iterator
from typing import Any

from tools.judge.judge import MARGIN, Areas, GroupResult, Judgement, ScalarResult


def render_judgement(judgement: Judgement) -> list[str]:
    """Make the lines of the report: captures, areas by group, single figures, and the result in the last line."""
    lines = [
        f"{kind:9}{capture.name}  {capture.statistics}, {capture.setting.rate_rpm} rpm"
        for kind, captures in (("real", judgement.real), ("emulated", judgement.emulated))
        for capture in captures
    ]
    lines += [f"!  {note}" for note in judgement.notes]
    lines += ["", f"{'area under the curve':48}{'real':>16} {'near':>16} {'far':>16}  verdict"]
    lines += [_group_line(result) for result in judgement.results]
    lines += [
        "real: two real captures, the yardstick; near: emulated against real, other half of both captures;",
        f"far: emulated against real, trained on all other captures; apart: far is more than {MARGIN:g} above real",
    ]
    if judgement.scalars:
        lines += ["", f"{'single figures':28}{'real units':>20} {'emulated':>20}  outside"]
        lines += [_scalar_line(scalar) for scalar in judgement.scalars]
    return [*lines, "", *_last_lines(judgement)]


def _group_line(result: GroupResult) -> str:
    title = f"{result.group.name}: {result.group.title}" if result.topic is None else f"  {result.topic.title}"
    if not result.is_judged:
        verdict = "information" if result.topic is None else ""
    elif not result.is_known:
        verdict = "too few"
    else:
        verdict = "apart" if result.tells_apart else "like real units"
    shown = " ".join(f"{_area_text(areas):>16}" for areas in (result.real, result.near, result.far))
    return f"{title:48.48}{shown}  {verdict}".rstrip()


def _area_text(areas: Areas) -> str:
    if not areas.values:
        return "-"
    return f"{areas.mean:.2f} {min(areas.values):.2f}-{max(areas.values):.2f}"


def _scalar_line(scalar: ScalarResult) -> str:
    ranges = [f"{min(values):.3g} to {max(values):.3g}" for values in (scalar.real, scalar.emulated)]
    outside = f"{scalar.outside} of {len(scalar.emulated)}" if scalar.outside else ""
    name = f"{scalar.name}{', ' if scalar.unit else ''}{scalar.unit}"
    return f"  {name:26}{ranges[0]:>20} {ranges[1]:>20}  {outside}".rstrip()


def _last_lines(judgement: Judgement) -> Iterator[str]:
    outside = [scalar.name for scalar in judgement.scalars if scalar.outside]
    if outside:
        yield f"{len(outside)} of {len(judgement.scalars)} single figures lie outside the range of these real captures for some emulated one"
    if judgement.unknown:
        yield f"not looked at, because too few windows could be compared: {', '.join(judgement.unknown)}"
    if judgement.telling:
        yield f"distinguished by: {', '.join(judgement.telling)}"
    elif not judgement.known:
        yield "no result: no group could be judged"
    elif judgement.unknown:
        yield f"no group of {judgement.known} tells emulated from real, but {len(judgement.unknown)} could not be judged"
    else:
        yield f"no group of {judgement.known} tells emulated from real better than real units are distinguished"


def judgement_json(judgement: Judgement) -> dict[str, Any]:
    """Make the report as plain values; None for unknown figures."""
    return {
        "real": [_capture_json(capture) for capture in judgement.real],
        "emulated": [_capture_json(capture) for capture in judgement.emulated],
        "notes": list(judgement.notes),
        "margin": MARGIN,
        "passed": judgement.passed,
        "distinguished_by": judgement.telling,
        "not_looked_at": judgement.unknown,
        "groups": [
            {
                "group": result.group.name,
                "topic": None if result.topic is None else result.topic.name,
                "is_judged": result.is_judged,
                "tells_apart": result.tells_apart if result.is_known else None,
                "real": _areas_json(result.real),
                "near": _areas_json(result.near),
                "far": _areas_json(result.far),
            }
            for result in judgement.results
        ],
        "scalars": [
            {"name": scalar.name, "unit": scalar.unit, "real": list(scalar.real), "emulated": list(scalar.emulated), "outside": scalar.outside}
            for scalar in judgement.scalars
        ],
    }


def _capture_json(capture: Any) -> dict[str, Any]:
    return {
        "file": capture.name,
        "sensor": capture.statistics.source,
        "model": capture.statistics.model.name,
        "rotation_rpm": capture.setting.rate_rpm,
        "return_mode": int(capture.statistics.return_mode),
        "packets": capture.statistics.spacing.packets,
    }


def _areas_json(areas: Areas) -> dict[str, Any]:
    return {"mean": None if math.isnan(areas.mean) else areas.mean, "pairs": list(areas.values)}
