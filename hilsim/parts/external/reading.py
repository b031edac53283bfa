"""Metrics of poses from another simulator."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from hilsim.telemetry.metrics import Sample, counter, gauge, state
from hilsim.telemetry.samples import by_key

STATES = ("waiting", "settling", "following", "silent")
"""States of poses from another simulator."""


def _by_state(current: str) -> Iterator[Sample]:
    """1 for the state of poses, 0 for the others."""
    for name in STATES:
        yield (name,), float(name == current)


@dataclass(frozen=True, kw_only=True)
class ExternalReading:
    """Poses from another simulator.

    Attributes:
        message_age_s: Age of the newest message; None before the first.
    """

    state: Annotated[
        str,
        state(
            "hilsim_external_state",
            "1 for the state of poses from another simulator, 0 for the others: settling until the sender's clock is known",
            labels=("state",),
            samples=_by_state,
        ),
    ]
    message_age_s: Annotated[float | None, gauge("hilsim_external_message_age_seconds", "Time since the last message of another simulator")]
    messages: Annotated[int, counter("hilsim_external_messages_total", "Datagrams received from another simulator, including refused ones")]
    refused_messages: Annotated[
        Mapping[str, int],
        counter(
            "hilsim_external_refused_messages_total",
            "Datagrams refused: malformed, from a second sender, of objects of which too many wait, or of declarations that cannot be followed",
            labels=("reason",),
            samples=by_key,
        ),
    ]
    lost_messages: Annotated[int, counter("hilsim_external_lost_messages_total", "Datagrams missing by their sequence")]
    reordered_messages: Annotated[int, counter("hilsim_external_reordered_messages_total", "Datagrams that came after a later one")]
    sender_changes: Annotated[
        int, counter("hilsim_external_sender_changes_total", "Times that another sender followed, or the sender's clock was set")
    ]
    poses: Annotated[int, counter("hilsim_external_poses_total", "Poses accepted, including those too late for a key")]
    refused_poses: Annotated[
        Mapping[str, int],
        counter(
            "hilsim_external_refused_poses_total",
            "Poses not made into a key: late for their time, older than the newest, far ahead, too dense, too far away, of an unknown id, or malformed",
            labels=("reason",),
            samples=by_key,
        ),
    ]
    keys: Annotated[int, counter("hilsim_external_keys_total", "Keys committed for rendering")]
    extrapolated_keys: Annotated[int, counter("hilsim_external_extrapolated_keys_total", "Keys extrapolated, because no pose had come in time")]
    stalls: Annotated[
        int,
        counter("hilsim_external_stalls_total", "Times that keys were committed so late that sensors may have been rendered beyond the newest one"),
    ]
    unrecorded_keys: Annotated[int, counter("hilsim_external_unrecorded_keys_total", "Keys missing from the recording of poses")] = 0
