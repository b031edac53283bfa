"""Health as programs read it, over HTTP and over the control socket alike."""

from typing import Any

from hilsim.telemetry.readings import Reading


def health_answer(reading: Reading, now_ns: int) -> dict[str, Any]:
    """Level and faults of a reading, for JSON.

    Args:
        reading: As ``HealthMonitor.complete`` made it.
        now_ns: CLOCK_MONOTONIC, for the age of each fault.
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
