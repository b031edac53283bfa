"""Limits of rovers' scans; ``docs/reference/limits.md`` has where each is asked, and why."""

from hilsim.limits import Limit

ROVER_SCAN_POINTS = Limit(subject="points of a scan", bound=100_000)
ROVER_LINE_BYTES = Limit(subject="a line", bound=16 << 20, unit="bytes")
