"""One replay of a running rig."""

from dataclasses import dataclass, field

from hilsim.capture.datagram import CapturedDatagram
from hilsim.emulator.insertion.packet import InsertionCount
from hilsim.parts.replays.reading import ReplayReading
from hilsim.parts.replays.source import ReplaySource
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.protocols.flow_key import FlowKey
from hilsim.protocols.recognise import PacketKind


@dataclass(kw_only=True, eq=False)
class Playing:
    """One replay: its replay source, and the rows of its flows in the transmitter."""

    spec: ReplaySpec
    replay_source: ReplaySource
    number: int = -1
    """Number of its element in ``Postponement``."""
    rows: dict[FlowKey, int] = field(default_factory=dict)

    @property
    def seen(self) -> dict[FlowKey, tuple[PacketKind, CapturedDatagram]]:
        """Flows in the capture's beginning: the most frequent packet kind and the first datagram of each."""
        overview = self.replay_source.overview
        return {flow: (kinds.most_common(1)[0][0], overview.firsts[flow]) for flow, kinds in overview.kinds.items()}

    def reading(self) -> ReplayReading:
        """Values for the metrics."""
        state, inserter = self.replay_source.state(), self.replay_source.inserter
        return ReplayReading(
            replay=self.spec.name,
            position_s=state.position_s,
            passes=state.passes,
            played_packets=state.played_packets,
            waiting_packets=state.waiting_packets,
            underruns=state.underruns,
            late_packets=state.late_packets,
            is_paused=state.is_paused,
            has_ended=state.has_ended,
            ratio=state.ratio,
            postponed_s=state.postponed_s,
            inserted_returns=inserter.count(InsertionCount.INSERTED) if inserter else 0,
            hidden_returns=inserter.count(InsertionCount.HIDDEN) if inserter else 0,
        )
