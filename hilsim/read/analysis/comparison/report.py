"""Report of a comparison as text and as JSON."""

import math
from collections.abc import Iterator
from enum import StrEnum
from itertools import groupby
from textwrap import wrap
from typing import Any, NamedTuple

from hilsim.read.analysis.comparison.comparison import Comparison, Limit, Row, Verdict
from hilsim.read.analysis.plain import plain

_TITLES = {
    "stream": "stream",
    "azimuth": "azimuth increments between firing groups, 0.01 deg",
    "stamps": "time stamps about straight lines, and their steps",
    "spacing": "capture times of neighbouring packets",
    "reflectivity": "reflectivity bytes of returns",
    "empty": "firings without a return, and their bytes",
    "ranges": "distances",
    "noise": "range noise by reflectivity byte",
    "grid": "parity of distance codes; steps between neighbouring firings of one laser",
    "bytes": "noise of the byte: neighbouring firings, and patches of 12 by their mean byte",
    "correlation": "lag-1 autocorrelation of range noise in patches of 12 firings; white noise -0.25",
    "edges": "depth edges; single firings without a return and isolated returns, of returns",
    "columns": "steps of the stamps of neighbouring columns, and the stamps' grid",
    "frames": "time from turn to turn",
    "imu": "inertial packets",
    "signal": "photons times range squared by reflectivity, by range; photons of pixels without a return",
    "near_ir": "photons of ambient light",
    "dual": "pairs of dual mode; shares of pairs with a return, or of different pairs",
}


class Tone(StrEnum):
    """Kind of a line, which decides its colour."""

    HEAD = "head"
    PLAIN = "plain"
    ALIKE = "alike"
    DIFFERS = "differs"
    NOTE = "note"
    BAD = "bad"


class Line(NamedTuple):
    """A line of the report."""

    text: str
    tone: Tone = Tone.PLAIN


_TONES = {Verdict.ALIKE: Tone.ALIKE, Verdict.DIFFERS: Tone.DIFFERS, Verdict.UNIT: Tone.NOTE}
_WIDTH = 110


def render_text(comparison: Comparison, names: tuple[str, str]) -> list[Line]:
    """Make the lines of the report: both streams, a table by topic, and a summary of what differs.

    Args:
        comparison: The comparison to print.
        names: Names of the two streams, usually their files.
    """
    streams = (comparison.a, comparison.b)
    lines = [Line(f"{letter}  {name}  {stream.source}  {stream}", Tone.HEAD) for letter, name, stream in zip("AB", names, streams, strict=True)]
    lines += [Line(f"!  {note}", Tone.NOTE) for note in comparison.notes()]
    lines += [Line(""), Line(f"{'':26}{'A':>16} {'B':>16}   {'distance':>9} {'':9}{'verdict':8}{'tolerance':>14}", Tone.HEAD)]
    for group, rows in groupby(comparison.rows, key=lambda row: row.statistic.name.split(".")[0]):
        lines.append(Line(f"{group}{'' if _TITLES[group] == group else f'  ({_TITLES[group]})'}", Tone.HEAD))
        lines += [_row_line(row) for row in rows]
    return [*lines, Line(""), *_summary_lines(comparison)]


def _row_line(row: Row) -> Line:
    statistic = row.statistic
    distance = "-" if math.isnan(row.distance) else f"{row.distance:.4g}"
    verdict = row.verdict or statistic.depends_on or "-"
    limit = "" if row.tolerance is None else row.tolerance.text
    name = statistic.name.split(".")[1]
    tone = _TONES.get(row.verdict, Tone.PLAIN)
    text = f"  {name:24}{row.a_text:>16} {row.b_text:>16}   {distance:>9} {statistic.unit:9}{verdict:8}{limit:>14}"
    return Line(text.rstrip(), tone)


def _summary_lines(comparison: Comparison) -> Iterator[Line]:
    differing, alike = comparison.differing, comparison.alike
    judged = alike + len(differing)
    yield Line(f"judged {judged} of {len(comparison.rows)}: {alike} alike, {len(differing)} differ", Tone.HEAD)
    if comparison.of_unit:
        yield from _wrapped(f"another unit, by {', '.join(comparison.of_unit)}", Tone.NOTE)
    for reason, names in _gaps(comparison).items():
        yield from _wrapped(f"not looked at, because {reason}: {', '.join(names)}", Tone.NOTE)
    yield from _wrapped(f"not measured: {'; '.join(f'{what} ({reason})' for what, reason in comparison.unmeasured)}", Tone.PLAIN)
    yield from _last_line(comparison, judged)
    for limit in comparison.limits:
        yield Line(_limit_text(limit), Tone.ALIKE if limit.is_kept else Tone.BAD)


def _gaps(comparison: Comparison) -> dict[str, list[str]]:
    """Names of the statistics that were not looked at, by reason."""
    gaps: dict[str, list[str]] = {}
    for name, reason in comparison.not_looked_at:
        gaps.setdefault(reason.split(" (")[0], []).append(name)
    return gaps


def _last_line(comparison: Comparison, judged: int) -> Iterator[Line]:
    """Make the line that people read as the result: nothing that was not looked at may sound like a pass."""
    gaps = len(comparison.not_looked_at)
    if comparison.differing:
        yield Line(f"differ: {', '.join(comparison.differing)}", Tone.DIFFERS)  # on one line, for programs that read the last one
    elif not judged:
        yield Line("no result: nothing was judged", Tone.NOTE)
    elif gaps:
        yield Line(f"no difference found, but {gaps} of {gaps + judged} judged rows were not looked at", Tone.NOTE)
    else:
        yield Line(f"alike in each of {judged} judged rows: as near as two real units", Tone.ALIKE)


def _wrapped(text: str, tone: Tone) -> Iterator[Line]:
    for line in wrap(text, _WIDTH, subsequent_indent="  ", break_on_hyphens=False):
        yield Line(line, tone)


def _limit_text(limit: Limit) -> str:
    if math.isnan(limit.distance):
        return f"FAILED: {limit.name} must be at most {limit.limit:g}, and is unknown for either stream"
    return f"{'kept' if limit.is_kept else 'FAILED'}: {limit.name} must be at most {limit.limit:g}, got {limit.distance:.4g}"


def to_json(comparison: Comparison, names: tuple[str, str]) -> dict[str, Any]:
    """Make the report as plain values, with all distributions; None for unknown figures."""
    a, b = ({"file": name, **stream.to_json()} for stream, name in zip((comparison.a, comparison.b), names, strict=True))
    values: dict[str, Any] = plain(
        {
            "a": a,
            "b": b,
            "notes": comparison.notes(),
            "passed": comparison.passed,
            "differ": comparison.differing,
            "of_unit": comparison.of_unit,
            "not_looked_at": [{"name": name, "reason": reason} for name, reason in comparison.not_looked_at],
            "not_measured": [{"name": name, "reason": reason} for name, reason in comparison.unmeasured],
            "statistics": [_row_json(row) for row in comparison.rows],
            "limits": [
                {"name": limit.name, "limit": limit.limit, "distance": limit.distance, "is_kept": limit.is_kept} for limit in comparison.limits
            ],
        }
    )
    return values


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "name": row.statistic.name,
        "a": row.a,
        "b": row.b,
        "distance": row.distance,
        "unit": row.statistic.unit,
        "depends_on": row.statistic.depends_on or None,
        "verdict": row.verdict.value or None,
        "tolerance": None if row.tolerance is None else row.tolerance.limit,
        "real_units": None if row.tolerance is None or row.tolerance.real is None else list(row.tolerance.real),
        "tolerance_source": None if row.tolerance is None else row.tolerance.source,
    }
