"""Report of a judgement as text and as JSON."""

import math
from collections.abc import Iterator
from typing import Any

from hilsim.analysis.comparison.report import Line, Tone
from hilsim.analysis.judgement.judge import MARGIN, Areas, GroupResult, Judgement, ScalarResult


def render_judgement(judgement: Judgement) -> list[Line]:
    """Make the lines of the report: captures, areas by group, single figures, and the result in the last line."""
    lines = [
        Line(f"{kind:9}{capture.name}  {capture.statistics}, {capture.setting.rate_rpm} rpm", Tone.HEAD)
        for kind, captures in (("real", judgement.real), ("emulated", judgement.emulated))
        for capture in captures
    ]
    lines += [Line(f"!  {note}", Tone.NOTE) for note in judgement.notes]
    lines += [Line(""), Line(f"{'area under the curve':48}{'real':>16} {'near':>16} {'far':>16}  verdict", Tone.HEAD)]
    lines += [_group_line(result) for result in judgement.results]
    lines += [
        Line("real: two real captures, the yardstick; near: emulated against real, other half of both captures;"),
        Line(f"far: emulated against real, trained on all other captures; apart: far is more than {MARGIN:g} above real"),
    ]
    if judgement.scalars:
        lines += [Line(""), Line(f"{'single figures':28}{'real units':>20} {'emulated':>20}  outside", Tone.HEAD)]
        lines += [_scalar_line(scalar) for scalar in judgement.scalars]
    return [*lines, Line(""), *_last_lines(judgement)]


def _group_line(result: GroupResult) -> Line:
    title = f"{result.group.name}: {result.group.title}" if result.topic is None else f"  {result.topic.title}"
    if not result.is_judged:
        verdict, tone = "information" if result.topic is None else "", Tone.PLAIN
    elif not result.is_known:
        verdict, tone = "too few", Tone.NOTE
    else:
        verdict, tone = ("apart", Tone.DIFFERS) if result.tells_apart else ("like real units", Tone.ALIKE)
    shown = " ".join(f"{_area_text(areas):>16}" for areas in (result.real, result.near, result.far))
    return Line(f"{title:48.48}{shown}  {verdict}".rstrip(), tone)


def _area_text(areas: Areas) -> str:
    if not areas.values:
        return "-"
    return f"{areas.mean:.2f} {min(areas.values):.2f}-{max(areas.values):.2f}"


def _scalar_line(scalar: ScalarResult) -> Line:
    ranges = [f"{min(values):.3g} to {max(values):.3g}" for values in (scalar.real, scalar.emulated)]
    outside = f"{scalar.outside} of {len(scalar.emulated)}" if scalar.outside else ""
    name = f"{scalar.name}{', ' if scalar.unit else ''}{scalar.unit}"
    return Line(f"  {name:26}{ranges[0]:>20} {ranges[1]:>20}  {outside}".rstrip(), Tone.DIFFERS if scalar.outside else Tone.PLAIN)


def _last_lines(judgement: Judgement) -> Iterator[Line]:
    outside = [scalar.name for scalar in judgement.scalars if scalar.outside]
    if outside:
        yield Line(f"{len(outside)} of {len(judgement.scalars)} single figures lie outside the range of these real captures for some emulated one")
    if judgement.unknown:
        yield Line(f"not looked at, because too few windows could be compared: {', '.join(judgement.unknown)}", Tone.NOTE)
    if judgement.telling:
        yield Line(f"distinguished by: {', '.join(judgement.telling)}", Tone.BAD)
    elif not judgement.known:
        yield Line("no result: no group could be judged", Tone.BAD)
    elif judgement.unknown:
        yield Line(f"no group of {judgement.known} tells emulated from real, but {len(judgement.unknown)} could not be judged", Tone.NOTE)
    else:
        yield Line(f"no group of {judgement.known} tells emulated from real better than real units are distinguished", Tone.ALIKE)


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
