"""All rules for Cepton streams."""

from hilsim.analysis.conformance.cepton import frames, headers, info, lasers, points, sensor, sequence, stamps
from hilsim.analysis.conformance.findings import Rule

TOPICS: tuple[tuple[str, tuple[Rule, ...]], ...] = (
    ("Cepton: streams", sensor.RULES),
    ("Cepton: point packets", headers.RULES),
    ("Cepton: sequence", sequence.RULES),
    ("Cepton: stamps", stamps.RULES),
    ("Cepton: points", points.RULES),
    ("Cepton: lasers", lasers.RULES),
    ("Cepton: frames", frames.RULES),
    ("Cepton: sensor information", info.RULES),
)
