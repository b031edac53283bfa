"""The sinks of a rig as a part, which receive all sent datagrams up to the last."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import ClassVar, NamedTuple

from hilsim.assembly.build import rig_metadata
from hilsim.capture.sinks.base import Sink
from hilsim.capture.sinks.pcap import PcapSeriesSink
from hilsim.capture.sinks.plugin import SinkContext
from hilsim.config.rig import Rig
from hilsim.config.sinks import PCAP_SINK, SinkSetting, sink_kind
from hilsim.daemon.flows import Flows
from hilsim.daemon.parts import Change, Needs, Part, RigClock, RigContext
from hilsim.daemon.sinks.follower import Follower
from hilsim.daemon.sinks.foreign import ForeignSink
from hilsim.daemon.sinks.live import LivePackets
from hilsim.errors import ConfigError
from hilsim.protocols.ethernet import Framing
from hilsim.telemetry.faults import Fault
from hilsim.telemetry.readings import Reading, RecordingReading

NamedSinks = Iterator[tuple[str, Sink]]


class SinkKind(NamedTuple):
    """One kind of sink.

    Attributes:
        table: Field of ``RigSpec`` that requests such sinks; it cannot change while packets flow.
        make: Function that makes a rig's sinks, with names that differ from those of all other kinds.
    """

    table: str
    make: Callable[[Rig], NamedSinks]


def pcap_sinks(rig: Rig) -> NamedSinks:
    """Make the sinks of ``[record]``, which write PCAP files."""
    if rig.spec.record.file:
        yield PCAP_SINK, PcapSeriesSink(rig.spec.record, rig.directory, rig_metadata(rig))


def plugin_sinks(rig: Rig) -> NamedSinks:
    """Make the sinks of ``[[sink]]``, which plug-ins define."""
    for setting in rig.sinks:
        yield setting.name, _foreign(setting, SinkContext(name=setting.name, rig=rig.name, directory=rig.directory))


def _foreign(setting: SinkSetting, context: SinkContext) -> ForeignSink:
    plugin, origin = sink_kind(setting.kind)
    return ForeignSink(lambda: plugin.make(setting.settings, context), name=setting.name, origin=origin)


KINDS: tuple[SinkKind, ...] = (SinkKind("record", pcap_sinks), SinkKind("sink", plugin_sinks))
"""Kinds of sinks; a new kind is one more entry."""


class Sinks(Part):
    """The sinks of a rig, and the stream of its packets for clients.

    Attributes:
        followers: Sinks that the rig requests.
        live: Stream for clients of the control socket or port; None without either.
    """

    follows_sending: ClassVar[bool] = True
    _flows: Flows

    def __init__(self, context: RigContext) -> None:
        super().__init__(context)
        self.followers: tuple[Follower, ...] = ()
        self.live: LivePackets | None = None

    def prepare(self) -> None:
        """Check that every sink can be opened.

        Raises:
            HilsimError: a sink cannot be opened.
        """
        named = [pair for kind in KINDS for pair in kind.make(self.context.rig)]
        for _, sink in named:
            sink.check()
        self.followers = tuple(Follower(name, sink, queue) for queue, (name, sink) in enumerate(named))
        control = self.context.rig.spec.control
        self.live = LivePackets(len(self.followers)) if control.socket or control.http else None

    def needs(self) -> Needs:
        """Requirements of the sinks: one queue each, and one for clients that follow."""
        return Needs(queues=len(self.followers) + (self.live is not None))

    def add_flow(self, number: int, name: str, framing: Framing, stack: str) -> None:
        """Tell all sinks of a flow."""
        for follower in self.followers:
            follower.add_flow(number, name, framing, stack)
        if self.live is not None:
            self.live.add_flow(number, name, framing, stack)

    def open(self, flows: Flows) -> None:
        """Take the flows that sinks will follow."""
        self._flows = flows

    def warm(self) -> None:
        """Open every sink, after the flows are known, and load the kernel.

        Raises:
            HilsimError: a sink cannot be opened.
        """
        for follower in self.followers:
            follower.open(self._flows.transmitter)
        if self.live is not None:
            self.live.open(self._flows.transmitter)

    def start(self, clock: RigClock) -> None:
        """Start receiving packets."""
        utc_offset_ns = clock.utc_epoch_ns - clock.epoch_ns
        for follower in self.followers:
            follower.start(utc_offset_ns=utc_offset_ns)
        if self.live is not None:
            self.live.start(utc_offset_ns=utc_offset_ns)

    def change(self, rig: Rig) -> Change:
        """Refuse a change of the sinks.

        Raises:
            ConfigError: the sinks change.
        """
        for table in (kind.table for kind in KINDS):
            wanted = getattr(rig.spec, table)
            if wanted != getattr(self.context.rig.spec, table):
                header = f"[[{table}]]" if isinstance(wanted, tuple) else f"[{table}]"
                raise ConfigError(f"{rig.path}: {header} cannot change while packets flow; restart the service for that")
        return Change()

    def stop(self) -> None:
        """Write the waiting packets of all sinks at the same time, and close every sink."""
        live, self.live = self.live, None
        if live is not None:
            live.end()
        for follower in self.followers:
            follower.end()
        for follower in self.followers:
            follower.stop()
        if live is not None:
            live.stop()
        self.followers = ()

    def add_reading(self, reading: Reading, now_ns: int) -> Reading:
        """Add the values of all sinks together; the faults name a sink that failed."""
        del now_ns
        if self.live is not None:
            reading = replace(reading, packet_streams=self.live.reading())
        readings = [follower.reading() for follower in self.followers]
        if not readings:
            return reading
        total = RecordingReading(
            running=all(each.running for each in readings),
            recorded_packets=sum(each.recorded_packets for each in readings),
            unrecorded_packets=sum(each.unrecorded_packets for each in readings),
        )
        return replace(reading, recording=total)

    def faults(self, now_ns: int) -> tuple[Fault, ...]:
        """Faults of sinks that have ended too early."""
        del now_ns
        several = len(self.followers) > 1 or any(follower.name != PCAP_SINK for follower in self.followers)
        return tuple(
            Fault(key="recording_ended", subject=follower.name if several else "", text=f"the recording has ended: {follower.fault}")
            for follower in self.followers
            if follower.fault
        )
