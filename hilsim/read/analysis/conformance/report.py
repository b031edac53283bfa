"""Report of a check as text and as JSON."""

from dataclasses import asdict
from typing import Any

from hilsim.read.analysis.conformance.findings import Finding, Place, Severity
from hilsim.read.analysis.conformance.result import CheckResult, SensorResult
from hilsim.read.analysis.plain import plain

_ORDER = (Severity.ERROR, Severity.WARNING, Severity.NOTE)


def render_text(result: CheckResult) -> list[str]:
    """Make the lines of the report: each sensor's figures and findings, errors first, then the verdict."""
    lines: list[str] = []
    for sensor in result.sensors:
        lines += [
            f"{sensor.source}",
            *(f"  {line}" for line in sensor.summary.lines()),
            *_finding_lines(sensor),
            *_not_applied_lines(sensor),
            "",
        ]
    lines += [_finding_line(finding) for finding in result.findings]
    if result.strangers:
        lines.append(f"{result.strangers} datagrams of other programs were passed over")
    counts = ", ".join(_counted(result.count(severity), severity) for severity in _ORDER)
    return [*lines, f"{'passed' if result.passed else 'FAILED'}: {counts}"]


def _counted(count: int, severity: Severity) -> str:
    return f"{count} {severity.value}{'' if count == 1 else 's'}"


def _finding_lines(sensor: SensorResult) -> list[str]:
    lines = []
    ranked = sorted(sensor.findings, key=lambda finding: _ORDER.index(finding.severity))
    for rule in dict.fromkeys(finding.rule for finding in ranked):
        of_rule = [finding for finding in ranked if finding.rule == rule]
        lines += [f"  {_finding_line(finding)}" for finding in of_rule]
        more = sensor.counts[rule] - len(of_rule)
        if more:
            lines.append(f"  {of_rule[0].severity.value:7} {rule}: and {more} more")
    return lines


def _not_applied_lines(sensor: SensorResult) -> list[str]:
    """Make one line for all rules that lack the same samples, so that their silence is not read as a pass."""
    lacking: dict[tuple[int, int, str], list[str]] = {}
    for skipped in sensor.not_applied:
        lacking.setdefault((skipped.got, skipped.needs, skipped.of), []).append(skipped.rule)
    return [f"  not applied: {', '.join(dict.fromkeys(rules))} (too short: {got} of {needs} {of})" for (got, needs, of), rules in lacking.items()]


def _finding_line(finding: Finding) -> str:
    where = ""
    if finding.place is not None:
        byte = "" if finding.place.byte_offset is None else f", byte {finding.place.byte_offset}"
        where = f" (packet {finding.place.packet_index}, frame {finding.place.frame}{byte})"
    return f"{finding.severity.value:7} {finding.rule}: {finding.message}{where}"


def to_json(result: CheckResult) -> dict[str, Any]:
    """Make the report as plain values; None for unknown figures."""
    return {
        "passed": result.passed,
        "datagrams": result.datagrams,
        "strangers": result.strangers,
        "findings": [_finding_json(finding) for finding in result.findings],
        "sensors": [
            {
                "source": sensor.source,
                "summary": plain(asdict(sensor.summary)),
                "findings": [_finding_json(finding) for finding in sensor.findings],
                "counts": dict(sensor.counts),
                "not_applied": [asdict(skipped) for skipped in sensor.not_applied],
            }
            for sensor in result.sensors
        ],
    }


def _finding_json(finding: Finding) -> dict[str, Any]:
    place = dict.fromkeys(Place._fields) if finding.place is None else finding.place._asdict()
    return {"rule": finding.rule, "severity": finding.severity.value, "message": finding.message, **place}
