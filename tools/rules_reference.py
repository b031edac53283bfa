"""All rules of the checker, and the page of documentation that lists them."""

from hilsim.analysis.conformance.cepton import frames, info, points, sensor, sequence, stamps
from hilsim.analysis.conformance.cepton import headers as cepton_headers
from hilsim.analysis.conformance.cepton import lasers as cepton_lasers
from hilsim.analysis.conformance.findings import Rule
from hilsim.analysis.conformance.velodyne import (
    azimuth,
    clock,
    contents,
    dual,
    factory,
    headers,
    lasers,
    motion,
    nmea,
    position,
    repeats,
    returns,
    spacing,
    structure,
)

TOPICS: tuple[tuple[str, tuple[Rule, ...]], ...] = (
    ("Structure", (*structure.RULES, *repeats.RULES)),
    ("Factory bytes", factory.RULES),
    ("Time stamps", clock.RULES),
    ("Azimuth", (*azimuth.RULES, *motion.RULES)),
    ("Dual return", dual.RULES),
    ("Distance and reflectivity", (*returns.RULES, *contents.RULES, *lasers.RULES)),
    ("Position packets", position.RULES),
    ("NMEA sentences", nmea.RULES),
    ("Link headers", headers.RULES),
    ("Arrival", spacing.RULES),
    ("Cepton: streams", sensor.RULES),
    ("Cepton: point packets", cepton_headers.RULES),
    ("Cepton: sequence", sequence.RULES),
    ("Cepton: stamps", stamps.RULES),
    ("Cepton: points", points.RULES),
    ("Cepton: lasers", cepton_lasers.RULES),
    ("Cepton: frames", frames.RULES),
    ("Cepton: sensor information", info.RULES),
)

_INTRODUCTION = """\
# Conformance rules

What `hilsim verify` checks. Each rule states a property of a real sensor; a stream without that property gets a finding with the rule's name.
An **error** is something no real sensor does, a **warning** is unusual or was seen on single real units only, a **note** is worth knowing.
Where a line names a milder case in brackets, that case gets the severity named there.
*Packets* is how many of the kind the rule needs before it applies; rules that need more than one are reported once for the whole stream.

This page is written by `make docs`.
"""


def rules_reference() -> str:
    """The rules as a page of Markdown, a table a topic."""
    parts = [_INTRODUCTION]
    for title, rules in TOPICS:
        parts.append(f"\n## {title}\n\n| rule | severity | true of a real sensor | packets | known from |\n|---|---|---|---|---|\n")
        parts += [f"| `{rule.id}` | {rule.severity} | {rule.holds} | {rule.packets} | {rule.source} |\n" for rule in rules]
    return "".join(parts)
