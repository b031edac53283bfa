"""Limits of poses from other programs; ``docs/reference/limits.md`` has where each is asked, and why."""

from hilsim.limits import Limit

OSI_MESSAGE_BYTES = Limit(subject="an OSI message", bound=64 << 20, unit="bytes")
STEP_S = Limit(subject="a stretch that a step releases", bound=60.0, unit="s")
WAITING_POSES = Limit(subject="poses that wait for their step", bound=100_000)
RECORDED_POSES = Limit(subject="poses of a recording", bound=2_000_000)
