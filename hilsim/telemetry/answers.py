"""Health in JSON, the same over HTTP and over the control socket."""

from typing import Any

from hilsim.telemetry.readings import Reading


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
