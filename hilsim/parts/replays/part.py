"""The replays of a rig: replay sources with their flows on the transmitter."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hilsim.capture.datagram import CapturedDatagram
from hilsim.config.rig import Rig
from hilsim.daemon.flows import Flows
from hilsim.daemon.parts import Actor, Change, Needs, Part, Played, RigClock, RigContext
from hilsim.emulator.retime import StampClock
from hilsim.errors import CaptureError, ConfigError
from hilsim.parts.replays.actor import ReplayActor
from hilsim.parts.replays.flows import LoopbackSources, taken_addresses
from hilsim.parts.replays.inserting.recorded_units import build_inserter
from hilsim.parts.replays.player import MAX_PLAYERS, Player, Postponement
from hilsim.parts.replays.playing import Playing
from hilsim.parts.replays.reading import ReplayReading
from hilsim.parts.replays.recorded.plan import begin_times_ns, parts_notes
from hilsim.parts.replays.recorded.tracks import Track
from hilsim.parts.replays.screen_text import arrow
from hilsim.parts.replays.source import ReplaySource
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.parts.replays.targets import find_target, flow_socket, link_framing, link_style
from hilsim.protocols.ethernet import HEADER_SIZE, PAYLOAD_ONLY, Framing
from hilsim.protocols.flow_key import FlowKey
from hilsim.protocols.recognise import OtherKind, PacketKind
from hilsim.telemetry.faults import Fault
from hilsim.telemetry.readings import Reading
from hilsim.transmit.ring import allocate_rings
from hilsim.transmit.scheduling import ThreadSettings
from hilsim.transmit.specs import FlowSpec

_PLAYER_PRIORITY_BELOW = 10
_PLAYER_SLICE_US = 1000.0
_UNKNOWN_RATE_HZ = 100.0
_LARGEST_DATAGRAM = 65_535
_JOIN_NS = 100_000_000
"""Delay of a replay that is added while packets flow."""


class Replays(Part):
    """The replays of a rig.

    Attributes:
        flows: Flows of the rig, from opening on.
    """

    flows: Flows

    def __init__(self, context: RigContext) -> None:
        super().__init__(context)
        self._playing: dict[str, Playing] = {}
        self._sources = LoopbackSources()
        self._changing = threading.Lock()
        self._postponed_ns: npt.NDArray[np.int64] = np.zeros(MAX_PLAYERS, np.int64)
        self._started: dict[str, ReplaySource] = {}

    @property
    def actors(self) -> Mapping[str, Actor]:
        """Maker of timed changes of replays."""
        return {"replay": ReplayActor(context=self.context, sources=self._started)}

    @property
    def played(self) -> Mapping[str, Played]:
        """Replays that play, by name."""
        return dict(self._started)

    # -- the life cycle ----------------------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Scan the captures.

        Raises:
            CaptureError: captures cannot be replayed; the message names each.
        """
        self._playing = self._look_over(self.context.rig)

    def needs(self) -> Needs:
        """Requirements of the flows found in the captures' beginnings."""
        return Needs(flows=self.flow_count, capacity_bytes=self.capacity, packet_rate_hz=self.packet_rate_hz)

    def _look_over(self, rig: Rig) -> dict[str, Playing]:
        """Scan the captures of a rig that do not play yet, without changing anything.

        Raises:
            CaptureError: captures cannot be replayed; the message names each.
            ConfigError: there are too many.
        """
        specs: Sequence[ReplaySpec] = rig.spec.part("replay")
        if len(specs) >= MAX_PLAYERS:
            raise ConfigError(f"{rig.path}: replay must have fewer than {MAX_PLAYERS} entries, got {len(specs)}")
        found: dict[str, Playing] = {}
        faults = []
        for number, spec in enumerate(specs):
            shows_same = not spec.overlay or (self.context.shows(rig) and not self.context.is_changed)
            if spec.name in self._playing and self._playing[spec.name].spec == spec and shows_same:
                continue
            try:
                inserter = build_inserter(rig, number, self.context.scenery(rig)) if spec.overlay else None
                found[spec.name] = Playing(spec=spec, replay_source=ReplaySource(spec, rig.directory / spec.file, inserter))
            except CaptureError as error:
                faults.append(str(error))
        if faults:
            raise CaptureError("\n".join(faults))
        return found

    def change(self, rig: Rig) -> "ReplayChange":
        """Prepare the replays of another rig while packets flow, without changing anything.

        Raises:
            CaptureError: captures cannot be replayed; the message names each.
            ConfigError: a capture has larger datagrams than this transmitter was made for.
        """
        prepared = self._look_over(rig)
        for name, playing in prepared.items():
            if playing.replay_source.overview.capacity > self.flows.transmitter.rings.payload.shape[2]:
                raise ConfigError(f"{rig.path}: replay {name} has larger datagrams than the ones that flow; restart the service for it")
        self._sources.leave_to_others(taken_addresses(rig))
        kept = frozenset({spec.name for spec in rig.spec.part("replay")} - prepared.keys())
        opened = tuple(self._flow_spec(playing, flow, *seen) for playing in prepared.values() for flow, seen in playing.seen.items())
        return ReplayChange(replays=self, kept=kept, prepared=prepared, opened=opened)

    def become(self, change: "ReplayChange", clock: RigClock) -> tuple[str, ...]:
        """Become the replays of another rig, whose sockets are held. Replays that both rigs have continue; new ones begin at once.

        Returns:
            One sentence for each replay that states what was done.

        Raises:
            TransmitError: a flow cannot be opened; that replay does not play.
        """
        kept, prepared = change.kept, change.prepared
        done = [f"{name}: unchanged" for name in self._playing if name in kept]
        for name in [name for name in self._playing if name not in kept]:
            self._remove(self._playing.pop(name))
            done += [] if name in prepared else [f"{name}: removed"]
        for name, playing in prepared.items():
            try:
                self._open_one(playing)
            except BaseException:
                self._remove(playing)
                raise
            self._playing[name] = playing
            self._start_one(playing, clock, time.monotonic_ns() + _JOIN_NS)
            done.append(f"{name}: started with its new settings")
        return tuple(done)

    def _remove(self, playing: Playing) -> None:
        self._stop_one(playing)
        with self._changing:
            for row in playing.rows.values():
                self.flows.transmitter.remove_flow(row)

    @property
    def flow_count(self) -> int:
        """Number of flows seen so far."""
        return sum(len(playing.replay_source.overview.kinds) for playing in self._playing.values())

    @property
    def capacity(self) -> int:
        """Bytes of the largest datagram or frame."""
        capacities = [playing.replay_source.overview.capacity + HEADER_SIZE for playing in self._playing.values()]
        return min(max(capacities, default=0), _LARGEST_DATAGRAM)

    @property
    def packet_rate_hz(self) -> float:
        """Packets a second of all flows seen so far together."""
        return sum(rate for playing in self._playing.values() for rate in playing.replay_source.overview.rate_hz.values())

    def open(self, flows: Flows) -> None:
        """Open every flow seen so far.

        Raises:
            TransmitError: a flow cannot be opened.
        """
        self.flows = flows
        self._sources = LoopbackSources(taken=taken_addresses(self.context.rig))
        for playing in self._playing.values():
            self._open_flows(playing)

    def warm(self) -> None:
        """Load the kernels and start reading ahead.

        Raises:
            CaptureError: a capture cannot be read.
        """
        for playing in self._playing.values():
            self._read_ahead(playing)

    def rehearse(self) -> None:
        """Load or compile the kernels that replaying needs, without opening a socket."""
        settings, inserters = ThreadSettings(scheduling="plain"), [playing.replay_source.inserter for playing in self._playing.values()]
        for inserter in {inserter is None: inserter for inserter in inserters}.values():  # the kernel of a replay with objects is another one
            rings = allocate_rings(1, 2, self.capacity)
            Player(name="", rings=rings, slots=64, capacity=self.capacity, scale=1.0, settings=settings, inserter=inserter)

    def _open_one(self, playing: Playing) -> None:
        self._open_flows(playing)
        self._read_ahead(playing)

    def _open_flows(self, playing: Playing) -> None:
        # Every flow seen in the beginning is opened here, so that a socket that cannot be opened is reported at the start.
        for flow, (kind, first) in playing.seen.items():
            with self._changing:  # reading threads of other replays may find new flows at the same time
                self._row(playing, flow, kind, first)

    def _read_ahead(self, playing: Playing) -> None:
        def open_track(track: Track) -> tuple[int, Framing]:
            with self._changing:
                return self._row(playing, track.recorded, track.kind, track.first), self._framing(playing.spec, track)

        transmit = self.context.rig.spec.transmit
        priority = max(transmit.priority - _PLAYER_PRIORITY_BELOW, 1)
        settings = ThreadSettings(scheduling=transmit.scheduling, priority=priority, slice_us=_PLAYER_SLICE_US)
        playing.replay_source.open(self.flows.transmitter.rings, open_track, settings, self._postponement(playing))

    def _postponement(self, playing: Playing) -> Postponement | None:
        if playing.spec.late_policy != "postpone":
            return None
        taken = {other.number for other in self._playing.values()}
        playing.number = next(number for number in range(MAX_PLAYERS) if number not in taken)
        return Postponement(by_ns=self._postponed_ns, own=playing.number)

    def start(self, clock: RigClock) -> None:
        """Start playing."""
        for name, note in parts_notes([(playing.spec, playing.replay_source.overview) for playing in self._playing.values()]):
            self._playing[name].replay_source.remarks += (note,)
        begin_ns = begin_times_ns([(playing.spec, playing.replay_source.overview.first_ns) for playing in self._playing.values()])
        for playing, after_ns in zip(self._playing.values(), begin_ns, strict=True):
            self._start_one(playing, clock, clock.epoch_ns + after_ns)

    def _start_one(self, playing: Playing, clock: RigClock, begin_ns: int) -> None:
        spec = playing.spec
        utc_ns = clock.utc_epoch_ns - clock.epoch_ns
        shown_ns = utc_ns if spec.retime == "utc" else round(spec.clock_offset_s * 1e9) - clock.epoch_ns
        if playing.replay_source.inserter is not None:
            playing.replay_source.inserter.insertion.rig_epoch_ns[0] = clock.epoch_ns
        playing.replay_source.start(begin_ns, StampClock(shown_ns=shown_ns, utc_ns=utc_ns))
        self._started[spec.name] = playing.replay_source

    def stop(self) -> None:
        """End all threads; the transmitter closes the sockets."""
        for playing in self._playing.values():
            self._stop_one(playing)
        self._playing.clear()

    def _stop_one(self, playing: Playing) -> None:
        self._started.pop(playing.spec.name, None)
        playing.replay_source.stop()
        if playing.replay_source.inserter is not None:
            playing.replay_source.inserter.close()

    # -- flows -------------------------------------------------------------------------------------------------------------------------

    def _row(self, playing: Playing, flow: FlowKey, kind: PacketKind, first: CapturedDatagram) -> int:
        """The transmitter's row of a recorded flow, opened if need be."""
        if flow in playing.rows:
            return playing.rows[flow]
        spec, target = playing.spec, find_target(playing.spec, flow, kind, self._sources)
        link = PAYLOAD_ONLY if spec.mode == "ethernet" else link_framing(spec, target, first, kind)
        playing.rows[flow] = row = self.flows.add(self._flow_spec(playing, flow, kind, first), link)
        return row

    def _flow_spec(self, playing: Playing, flow: FlowKey, kind: PacketKind, first: CapturedDatagram) -> FlowSpec:
        """Transmit settings of a recorded flow."""
        spec = playing.spec
        rate_hz = min(playing.replay_source.overview.rate_hz.get(flow, _UNKNOWN_RATE_HZ) / spec.interval_scale, 1e6)
        socket = flow_socket(spec, find_target(spec, flow, kind, self._sources), link_style(first, kind))
        name, path = self._name(playing, flow, kind), f"{spec.name}/{flow}"
        return FlowSpec(name=name, socket=socket, packet_rate_hz=rate_hz, sends_late=spec.late_policy == "postpone", path=path)

    def _name(self, playing: Playing, flow: FlowKey, kind: PacketKind) -> str:
        """Name of a flow: ``<replay>/<flow>``, or ``<replay>/<source>/<flow>`` if the capture has several sources."""
        sensor = playing.spec.name if len(playing.replay_source.overview.sources) == 1 else f"{playing.spec.name}/{flow.source}"
        label = f"port-{flow.destination_port}" if kind is OtherKind.OTHER else kind.facts.stream
        taken = self.flows.rows
        names = [f"{sensor}/{label}", f"{sensor}/{label}-{flow.destination_port}", f"{sensor}/{label}-{flow.source_port}-{flow.destination_port}"]
        return next((name for name in names if name not in taken), f"{sensor}/{flow}")

    def _framing(self, spec: ReplaySpec, track: Track) -> Framing:
        if spec.mode == "udp":
            return PAYLOAD_ONLY
        return link_framing(spec, find_target(spec, track.recorded, track.kind, self._sources), track.first, track.kind)

    # -- at run time -------------------------------------------------------------------------------------------------------------------

    @property
    def playing(self) -> dict[str, Playing]:
        """Replays that play, by name."""
        return dict(self._playing)

    @property
    def has_begun(self) -> bool:
        """Whether each replay that begins at once has sent packets, or has ended."""
        return all(
            playing.spec.offset_s > 0
            or playing.replay_source.state().has_ended
            or any(self.flows.transmitter.last_due_ns(row) > 0 for row in playing.rows.values())
            for playing in self._playing.values()
        )

    @property
    def summary(self) -> str:
        """Text with the number of replays, empty for none."""
        count = len(self.context.rig.spec.part("replay"))
        return f"{count} replay(s)" if count else ""

    def add_reading(self, reading: Reading, now_ns: int) -> Reading:
        """Add the values of every replay, and the scheduling of its thread."""
        del now_ns
        parts = {**reading.parts, "replay": self.readings()}
        return replace(reading, parts=parts, scheduling={**reading.scheduling, **self.scheduling})

    def readings(self) -> tuple[ReplayReading, ...]:
        """Values of the replays for the metrics."""
        return tuple(playing.reading() for playing in self.playing.values())

    def lines(self) -> Iterator[tuple[str, str]]:
        """Recorded source and present destination of each flow."""
        for name, recorded, flow in self.routes:
            yield name, f"{flow.name.rpartition('/')[2]:9} {recorded.source}:{recorded.source_port} {arrow(flow.socket)}"

    @property
    def routes(self) -> tuple[tuple[str, FlowKey, FlowSpec], ...]:
        """Name of the replay, recorded flow and transmit settings of each flow."""
        flows = self.flows.transmitter.flows
        return tuple((name, recorded, flows[row]) for name, playing in self.playing.items() for recorded, row in dict(playing.rows).items())

    @property
    def scheduling(self) -> dict[str, str]:
        """Scheduling that each playing thread obtained."""
        return {f"play-{name}": playing.replay_source.scheduling_mode for name, playing in self.playing.items()}

    def faults(self, now_ns: int) -> tuple[Fault, ...]:
        """Faults of the replays."""
        del now_ns
        found = []
        for name, playing in self.playing.items():
            state = playing.replay_source.state()
            if state.fault:
                found.append(Fault(key="replay_failed", subject=name, text=state.fault))
            elif not playing.replay_source.alive:
                found.append(Fault(key="replay_failed", subject=name, text="the playing thread has ended"))
            elif reason := playing.replay_source.brake_reason:
                found.append(Fault(key="real_time_left", subject=name, text=f"{reason}; the playing thread has left real-time scheduling"))
        return tuple(found)


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplayChange(Change):
    """Prepared change to the replays of another rig.

    Attributes:
        replays: Replays that change.
        kept: Names of the replays that continue.
        prepared: Replays that begin, by name; all others end.
        opened: Flows of the replays that begin.
    """

    replays: Replays
    kept: frozenset[str]
    prepared: dict[str, Playing]
    opened: tuple[FlowSpec, ...]

    @property
    def flows(self) -> tuple[FlowSpec, ...]:
        """Flows of the replays that begin."""
        return self.opened

    @property
    def retired(self) -> tuple[FlowSpec, ...]:
        """Flows of the replays that end."""
        flows = self.replays.flows.transmitter.flows
        return tuple(flows[row] for name, playing in self.replays.playing.items() if name not in self.kept for row in dict(playing.rows).values())

    def make(self, clock: RigClock) -> tuple[str, ...]:
        """End some replays and begin others."""
        return self.replays.become(self, clock)
