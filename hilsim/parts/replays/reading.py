"""Metrics of replays."""

from dataclasses import dataclass
from typing import Annotated

from hilsim.telemetry.metrics import Label, counter, gauge, state


@dataclass(frozen=True, kw_only=True)
class ReplayReading:
    """One capture in replay.

    Attributes:
        replay: Name in the rig.
        has_ended: Whether everything was played.
        ratio: Progress of this pass, 0 to 1.
    """

    replay: Annotated[str, Label("sensor")]
    position_s: Annotated[float, gauge("hilsim_replay_position_seconds", "Capture time of the current packet, from the capture's first packet")]
    passes: Annotated[int, counter("hilsim_replay_passes_total", "Passes through the capture completed")]
    played_packets: Annotated[int, counter("hilsim_replay_played_packets_total", "Datagrams of the capture queued for sending")]
    late_packets: Annotated[int, counter("hilsim_replay_late_packets_total", "Datagrams of the capture read too late to be sent in time")]
    waiting_packets: Annotated[int, gauge("hilsim_replay_lookahead_packets", "Datagrams of the capture read ahead")]
    underruns: Annotated[int, counter("hilsim_replay_underruns_total", "Number of times that no datagram was read ahead when one was due")]
    postponed_s: Annotated[
        float,
        gauge(
            "hilsim_replay_postponed_seconds",
            "Delay of the replay caused by stalls of the host or slow reading",
        ),
    ] = 0.0
    inserted_returns: Annotated[
        int, counter("hilsim_replay_inserted_returns_total", "Returns that objects of the scene made in the points of a replay with an overlay")
    ] = 0
    hidden_returns: Annotated[
        int, counter("hilsim_replay_hidden_returns_total", "Recorded returns replaced or removed by objects of the scene in a replay with an overlay")
    ] = 0
    is_paused: Annotated[bool, state("hilsim_replay_paused", "1 while the replay is paused")]
    has_ended: bool
    ratio: float

    @property
    def name(self) -> str:
        """Name in the rig."""
        return self.replay
