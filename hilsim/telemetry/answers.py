"""Parts of answers in JSON, the same over HTTP and over the control socket."""

import math
from typing import Any

from hilsim.telemetry.metrics import HistogramReading
from hilsim.telemetry.readings import PacketStreamReading, Reading


def health_answer(reading: Reading, now_ns: int) -> dict[str, Any]:
    """Level and faults of a reading, for JSON.

    Args:
        reading: Reading of ``HealthMonitor.complete``.
        now_ns: CLOCK_MONOTONIC time, for the age of each fault.
    """
    return {
        "level": reading.level.value,
        "healthy": not reading.faults,
        "faults": [
            {
                "fault": fault.key,
                "subject": fault.subject,
                "level": fault.level.value,
                "text": fault.text,
                "for_s": 0.0 if fault.since_ns is None else round((now_ns - fault.since_ns) / 1e9, 1),
            }
            for fault in reading.faults
        ],
    }


def in_json(value: Any) -> Any:
    """A value for JSON, which has no infinity and no NaN: null in their place, such as a height where there is no ground below."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: in_json(part) for key, part in value.items()}
        case list() | tuple():
            return [in_json(part) for part in value]
    return value


def histogram_answer(reading: HistogramReading | None, bounds_s: tuple[float, ...]) -> dict[str, Any] | None:
    """Histogram for JSON: counts at or below each bound since the start, then of all; None for none."""
    return None if reading is None else {"bounds_s": bounds_s, "cumulative": reading.cumulative, "sum_s": reading.sum_s}


def packet_streams_answer(streams: PacketStreamReading) -> dict[str, Any]:
    """Clients of the sent packets and what they got, for JSON."""
    return {
        "clients": [client._asdict() for client in streams.clients],
        "sent_packets": streams.sent_packets,
        "lost_packets": {reason.value: count for reason, count in streams.lost_packets.items()},
    }
