"""Limits of replays; ``docs/reference/limits.md`` has where each is asked, and why."""

from hilsim.limits import Limit

REPLAY_FLOWS = Limit(subject="flows", bound=256)
LOOP_PASS_S = Limit(subject="a pass of a looped capture", bound=0.01, unit="s", is_lower=True)
LOOP_RATE_HZ = Limit(subject="packets of a looped capture a second", bound=200_000.0, unit="Hz")
REPLAY_SPAN_NS = Limit(subject="distance of a packet from the replay's beginning", bound=1 << 61, unit="ns")
