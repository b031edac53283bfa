"""UTC of rig time 0 for rigs without a real-time clock."""

from datetime import UTC, datetime

from hilsim.units import NS_PER_S

START_UTC = "2026-01-01T00:00:00Z"
"""Default."""


def utc_ns(instant: str | datetime) -> int:
    """Convert an instant to nanoseconds since 1970-01-01 UTC, rounded to seconds.

    Args:
        instant: ISO 8601 text or a datetime; without a time zone it is UTC.

    Raises:
        ValueError: the text is not an ISO 8601 instant.
    """
    found = datetime.fromisoformat(instant) if isinstance(instant, str) else instant
    return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()) * NS_PER_S
