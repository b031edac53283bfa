"""UTC of rig time 0 for rigs without a real-time clock."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hilsim.units import NS_PER_S

if TYPE_CHECKING:
    from hilsim.config.rig import Rig

START_UTC = "2026-01-01T00:00:00Z"
"""Default of a rig without ``transmit.epoch_utc``."""


def utc_ns(instant: str | datetime) -> int:
    """Convert an instant to nanoseconds since 1970-01-01 UTC, rounded to seconds.

    Args:
        instant: ISO 8601 text or a datetime; without a time zone it is UTC.

    Raises:
        ValueError: the text is not an ISO 8601 instant.
    """
    found = datetime.fromisoformat(instant) if isinstance(instant, str) else instant
    return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()) * NS_PER_S


def rig_utc_ns(rig: "Rig", start_utc: str | datetime | None = None) -> int:
    """UTC of rig time 0 in nanoseconds: the given instant, else the rig's ``transmit.epoch_utc``, else ``START_UTC``.

    Raises:
        ValueError: the text is not an ISO 8601 instant.
    """
    pinned_ns = rig.spec.transmit.epoch_utc_ns
    return pinned_ns if start_utc is None and pinned_ns is not None else utc_ns(START_UTC if start_utc is None else start_utc)
