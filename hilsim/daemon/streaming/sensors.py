"""The sensors of a rig that are rendered: opened, started together without a loss, changed while they stream, stopped.

A change is prepared completely, down to its sockets and its thread, before anything that streams is touched; then the new sensor takes over from the
old one between two packets.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hilsim.assembly.build import build_lidar, flow_framing, network_stack, sensor_flows
from hilsim.assembly.changed import check_script
from hilsim.config.part_kind import sees_scene
from hilsim.config.rig import Rig
from hilsim.daemon.flows import Flows
from hilsim.daemon.parts import Change, Needs, Part, RigClock, RigContext
from hilsim.daemon.streaming.device import RenderDevice
from hilsim.daemon.streaming.flow_specs import (
    data_packet_rate_hz,
    flow_spec,
    largest_data_size,
    lead_bounds,
    render_settings,
    rendering_priority,
    ring_slots,
)
from hilsim.daemon.streaming.pacer import Pacer
from hilsim.daemon.streaming.stream import Streaming
from hilsim.emulator.setting import LidarSetting
from hilsim.protocols.ethernet import HEADER_SIZE, PAYLOAD_ONLY, Framing
from hilsim.streaming.obstacle_map import ObstacleMap
from hilsim.streaming.render_state import RenderCounter, allocate_state
from hilsim.streaming.render_thread import RenderThread
from hilsim.telemetry.faults import Fault
from hilsim.telemetry.readings import Reading
from hilsim.transmit.ring import Rings, allocate_rings, depth
from hilsim.transmit.specs import FlowSpec

PRIMED_NS = 20_000_000
"""Length of stream that the rings hold when rig time begins: the longest stall of the machine at that moment without a lost packet."""

_JOIN_NS = 50_000_000
"""Delay of the first packet of a sensor that is added while packets flow."""
_POLL_S = 0.001


class Sensors(Part):
    """The streaming sensors of a rig.

    Attributes:
        streams: Sensors by name.
        pacer: Pacer that keeps their rendering within the machine.
        device: Device that casts their rays where the cores do not.
        flows: Flows of the rig, from opening on.
    """

    flows: Flows

    def __init__(self, context: RigContext, obstacle_maps: Sequence[Callable[[LidarSetting], ObstacleMap | None]]) -> None:
        """Make nothing yet; ``obstacle_maps`` are the methods ``Part.obstacle_map`` of those that may read what a lidar sees."""
        super().__init__(context)
        self._obstacle_maps = obstacle_maps
        self._clock = RigClock()
        self.streams: dict[str, Streaming] = {}
        rig = context.rig
        self.pacer = Pacer(
            requested=rig.spec.transmit.scheduling,
            real_time_share=rig.spec.render.real_time_share,
            priority=rendering_priority(rig),
            lead=lead_bounds(rig),
            ring_slots=ring_slots(rig),
            say=context.say,
        )
        self.device = RenderDevice(backend=rig.spec.render.backend, say=context.say, lock=self.pacer.lock)

    # -- starting and stopping ---------------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Build the scene, if anything in the rig sees it."""
        rig = self.context.rig
        spec = rig.spec
        if spec.sensor or sees_scene(spec):
            check_script(rig, self.context.scenery(rig))
        else:
            check_script(rig, None)

    def needs(self) -> Needs:
        """Requirements of the sensors: two flows each."""
        rig = self.context.rig
        capacity = HEADER_SIZE + max((largest_data_size(rig, number) for number in range(len(rig.lidars))), default=0)
        return Needs(flows=2 * len(rig.lidars), capacity_bytes=capacity, packet_rate_hz=data_packet_rate_hz(rig))

    def rehearse(self) -> None:
        """Load or compile every kernel that sensors need; no socket is opened."""
        rings = allocate_rings(2, ring_slots(self.context.rig), self.needs().capacity_bytes)
        for number in range(len(self.context.rig.lidars)):
            streaming = self._make(self.context.rig, number, rings, (0, 1))
            streaming.render_thread.warm()
            streaming.reading(now_ns=0)  # metrics call kernels too: for the sensor's clock, and the deadlines of packets
            streaming.fault(last_sent_ns=0, now_ns=0)
            depth(streaming.render_thread.rings, 0)  # as `prime` does

    def open(self, flows: Flows) -> None:
        """Open every sensor's flows; nothing is sent before ``start``.

        Raises:
            TransmitError: a socket cannot be opened.
        """
        rig, self.flows = self.context.rig, flows
        for number, sensor in enumerate(rig.spec.sensor):
            streaming = self._make(rig, number, flows.transmitter.rings)
            self._open_flows(streaming, self._flows(rig, number, streaming), held=True)
            self.streams[sensor.name] = streaming

    def warm(self) -> None:
        """Load every kernel, and measure what a packet of each sensor costs."""
        self.device.settle(self.streams, self.pacer)
        self.pacer.settle(self.streams)

    def prime(self, clock: RigClock, until_ns: int) -> bool:
        """Fill the rings with the first packets, without sending any.

        Args:
            clock: Instant of rig time 0.
            until_ns: CLOCK_MONOTONIC time by which the rings must be filled.

        Returns:
            Whether the rings were filled in time. If not, what was rendered is discarded, and the caller chooses a later epoch.

        Raises:
            TransmitError: the scheduling demanded is not permitted.
        """
        self._clock = clock
        leads_ns = {name: streaming.render_thread.lead_ns for name, streaming in self.streams.items()}
        for streaming in self.streams.values():
            self._set_epoch(streaming)
            estimate_ns = streaming.render_thread.state.counters[RenderCounter.ESTIMATE_NS]
            streaming.render_thread.state = allocate_state()
            streaming.render_thread.state.counters[RenderCounter.ESTIMATE_NS] = estimate_ns
        try:
            for streaming in self.streams.values():
                streaming.render_thread.lead_ns = clock.begin_ns - time.monotonic_ns() + PRIMED_NS
                streaming.render_thread.start(from_ns=clock.begin_ns - clock.epoch_ns)
            while not all(self._is_primed(streaming) for streaming in self.streams.values()):
                if time.monotonic_ns() > until_ns:
                    self._forget()
                    return False
                time.sleep(_POLL_S)
        finally:
            for name, streaming in self.streams.items():
                streaming.render_thread.set_lead_ns(leads_ns[name])
        return time.monotonic_ns() <= until_ns or self._forget()

    def _is_primed(self, streaming: Streaming) -> bool:
        rings = streaming.render_thread.rings
        is_half_full = depth(rings, streaming.rows[0]) >= rings.deadline_ns.shape[1] // 2
        return is_half_full or streaming.render_thread.covered_ns >= self._clock.begin_ns + PRIMED_NS

    def _forget(self) -> bool:
        for streaming in self.streams.values():
            streaming.render_thread.stop()
            for row in streaming.rows:
                self.flows.transmitter.empty_flow(row)
        return False

    def start(self, clock: RigClock) -> None:
        """Make the sending loop serve the sensors' flows."""
        del clock  # that of the packets that are primed
        for streaming in self.streams.values():
            for row in streaming.rows:
                self.flows.transmitter.release_flow(row)

    def stop(self) -> None:
        """End every thread; the transmitter closes the sockets."""
        with self.pacer.lock:
            for streaming in self.streams.values():
                streaming.render_thread.stop()

    def pace(self, now_ns: int) -> None:
        """Keep rendering within the machine."""
        self.device.pace(self.streams)
        self.pacer.step(self.streams, now_ns)

    def leave_real_time(self) -> None:
        """Take rendering off real-time scheduling permanently."""
        self.pacer.leave_real_time(dict(self.streams))

    # -- changing ----------------------------------------------------------------------------------------------------------------------

    def change(self, rig: Rig) -> "SensorChange":
        """Prepare the sensors of another rig while packets flow, without changing anything."""
        requested = {sensor.name: number for number, sensor in enumerate(rig.spec.sensor)}
        same_scenery = self.context.shows(rig)
        is_as_loaded = same_scenery and not self.context.is_changed
        kept = {name for name, streaming in self.streams.items() if name in requested and is_as_loaded and _is_same(streaming, rig)}
        streams = {name: self._make(rig, number, self.flows.transmitter.rings) for name, number in requested.items() if name not in kept}
        for streaming in streams.values():
            self._set_epoch(streaming)
            streaming.render_thread.warm()
        flows = {name: self._flows(rig, requested[name], streaming) for name, streaming in streams.items()}
        return SensorChange(sensors=self, rig=rig, kept=frozenset(kept), streams=streams, opened=flows)

    def become(self, change: "SensorChange") -> tuple[str, ...]:
        """Become the sensors of another rig, whose sockets are held.

        A sensor that keeps its name continues with exactly its next packet, whatever its new world and destination are; if its firing times differ, it
        continues with its first packets after the last ones sent.

        Returns:
            One sentence for each sensor that states what was done.
        """
        with self.pacer.lock:
            done = [f"{name}: unchanged" for name in change.kept]
            for name in [name for name in self.streams if name not in change.kept and name not in change.streams]:
                self._close(self.streams.pop(name))
                done.append(f"{name}: removed")
            for name, streaming in change.streams.items():
                done.append(f"{name}: {self._put_in_place(streaming, change.opened[name])}")
            self.pacer.set_lead(lead_bounds(change.rig))
        return tuple(done)

    def _put_in_place(self, streaming: Streaming, flows: "tuple[_Flow, ...]") -> str:
        """Let a sensor take over from the one of its name, or begin; returns a text that states which."""
        former = self.streams.get(streaming.spec.name)
        if former is not None and len(former.rows) == len(flows):
            streaming.rows = former.rows
            streaming.render_thread.data_flow, streaming.render_thread.position_flow = former.rows[0], former.rows[-1]
            former.render_thread.hand_over_to(streaming.render_thread)
            for row, flow in zip(streaming.rows, flows, strict=True):
                if self.flows.transmitter.flows[row] != flow.spec:
                    self.flows.retarget(row, *flow)
            self.streams[streaming.spec.name] = streaming
            return "goes on with its new settings"
        if former is not None:  # it now has information packets and had none before, or the reverse
            self._close(self.streams.pop(streaming.spec.name))
        self._open_flows(streaming, flows, held=False)
        streaming.render_thread.start(from_ns=time.monotonic_ns() + _JOIN_NS - self._clock.epoch_ns)
        self.streams[streaming.spec.name] = streaming
        return "started" if former is None else "started with its new settings"

    def _close(self, streaming: Streaming) -> None:
        streaming.render_thread.stop()
        for row in streaming.rows:
            self.flows.transmitter.remove_flow(row)

    # -- looking -----------------------------------------------------------------------------------------------------------------------

    @property
    def has_begun(self) -> bool:
        """Whether every sensor has sent data, or is to send none: its interface waits for a host."""
        transmitter, rows = self.flows.transmitter, [streaming.rows[0] for streaming in self.streams.values()]
        return all(transmitter.last_due_ns(row) > 0 or transmitter.is_silent(row) for row in rows)

    @property
    def summary(self) -> str:
        """Text with the number of sensors, empty for none."""
        count = len(self.context.rig.spec.sensor)
        return f"{count} sensor(s)" if count else ""

    def totals(self) -> dict[str, int]:
        """Numbers of packets that were never rendered."""
        columns = [RenderCounter.SKIPPED, RenderCounter.POSITIONS_SKIPPED]
        return {"skipped_packets": sum(int(streaming.render_thread.state.counters[columns].sum()) for streaming in self.streams.values())}

    def add_reading(self, reading: Reading, now_ns: int) -> Reading:
        """Add the values of every sensor, and the scheduling of its thread."""
        streams = dict(self.streams)  # metrics are read in a worker thread, while a reload may change the sensors
        scheduling = {f"render-{name}": streaming.render_thread.scheduling_mode for name, streaming in streams.items()}
        return replace(
            reading,
            sensors=tuple(streaming.reading(now_ns) for streaming in streams.values()),
            scheduling={**reading.scheduling, **scheduling},
        )

    def faults(self, now_ns: int) -> tuple[Fault, ...]:
        """Faults of sensors that are silent, or rendered with fewer rays than the rig requests."""
        found = [self.device.fault()]
        for streaming in dict(self.streams).values():
            is_silent = self.flows.transmitter.is_silent(streaming.rows[0])
            last_ns = now_ns if is_silent else self.flows.transmitter.last_due_ns(streaming.rows[0])
            found.extend((streaming.fault(last_ns, now_ns), streaming.shortfall()))
        return tuple(fault for fault in found if fault is not None)

    # -- one sensor --------------------------------------------------------------------------------------------------------------------

    def _make(self, rig: Rig, number: int, rings: Rings, rows: tuple[int, ...] = (-1, -1)) -> Streaming:
        """Make one sensor with its render thread, which does not run yet.

        Args:
            rig: The rig.
            number: Number of the sensor in the rig.
            rings: Rings of the transmitter.
            rows: Rows of its flows in the transmitter, the data flow first.
        """
        sensor = rig.spec.sensor[number]
        lidar = build_lidar(
            rig,
            number,
            self.context.scenery(rig),
            utc_epoch_ns=self._clock.utc_epoch_ns,
            frames=sensor.network.mode == "ethernet",
        )
        render_thread = RenderThread(
            lidar=lidar,
            rings=rings,
            data_flow=rows[0],
            position_flow=rows[-1],
            epoch_ns=self._clock.epoch_ns,
            lead_ns=lead_bounds(rig).longest_ns,  # until the first step of the pacer: a start stalls more than a run
            settings=render_settings(rig),
            late_limit_ns=round(rig.spec.transmit.late_limit_us * 1000),
            renderer=self.device.of(sensor.name),
            can_change=self.context.can_change,
        )
        render_thread.obstacle_map = next(filter(None, (made(rig.lidars[number]) for made in self._obstacle_maps)), None)
        return Streaming(spec=sensor, lidar=lidar, render_thread=render_thread, rows=rows)

    def _set_epoch(self, streaming: Streaming) -> None:
        streaming.lidar = replace(streaming.lidar, utc_epoch_ns=self._clock.utc_epoch_ns)
        streaming.render_thread.lidar = streaming.lidar
        streaming.lidar.plan  # noqa: B018 - made now (cached), not when the first packet is due
        streaming.render_thread.epoch_ns = self._clock.epoch_ns

    def _flows(self, rig: Rig, number: int, streaming: Streaming) -> "tuple[_Flow, ...]":
        """A sensor's flows, the data flow first."""
        sensor, setting, plan = rig.spec.sensor[number], rig.lidars[number], streaming.lidar.plan
        flows = sensor_flows(sensor, setting)
        infos_hz = float(np.sum(1e9 / plan.position.period_ns))
        wanted = [(flows.data, setting.packet_rate_hz)] + ([(flows.info, infos_hz)] if plan.info_size else [])
        return tuple(
            _Flow(
                spec=flow_spec(each.flow, sensor, each.style, rate_hz),
                framing=PAYLOAD_ONLY if sensor.network.mode == "ethernet" else flow_framing(each, sensor, setting),
                stack=network_stack(sensor, setting),
            )
            for each, rate_hz in wanted
        )

    def _open_flows(self, streaming: Streaming, flows: "tuple[_Flow, ...]", *, held: bool) -> None:
        """Open all of a sensor's flows, or none if one of them fails."""
        rows: list[int] = []
        try:
            rows.extend(self.flows.add(*flow, held=held) for flow in flows)
        except BaseException:
            for row in rows:
                self.flows.transmitter.remove_flow(row)
            raise
        streaming.render_thread.data_flow, streaming.render_thread.position_flow = rows[0], rows[-1]
        streaming.rows = tuple(rows)


class _Flow(NamedTuple):
    """A flow to be opened: its transmit settings, the headers that a recording puts before its datagrams, and ``SinkFlow.stack``."""

    spec: FlowSpec
    framing: Framing
    stack: str


@dataclass(frozen=True, kw_only=True, eq=False)
class SensorChange(Change):
    """Prepared change to the sensors of another rig.

    Attributes:
        sensors: Sensors that change.
        rig: The other rig.
        kept: Names of sensors that continue unchanged.
        streams: Sensors that begin or take over, by name; all others end.
        opened: Flows of the sensors that begin or take over.
    """

    sensors: Sensors
    rig: Rig
    kept: frozenset[str]
    streams: dict[str, Streaming]
    opened: "dict[str, tuple[_Flow, ...]]"

    @property
    def flows(self) -> tuple[FlowSpec, ...]:
        """Flows of the sensors that begin or take over."""
        return tuple(flow.spec for flows in self.opened.values() for flow in flows)

    @property
    def retired(self) -> tuple[FlowSpec, ...]:
        """Flows of all sensors that do not continue unchanged."""
        flows = self.sensors.flows.transmitter.flows
        return tuple(flows[row] for name, streaming in self.sensors.streams.items() if name not in self.kept for row in streaming.rows)

    def make(self, clock: RigClock) -> tuple[str, ...]:
        """Let the new sensors take over."""
        del clock  # that of the packets that they have made ready
        return self.sensors.become(self)


def _is_same(streaming: Streaming, rig: Rig) -> bool:
    """Whether a rig contains a streaming sensor unchanged."""
    setting = streaming.lidar.setting.with_sub_rays(streaming.wanted_rays)  # the machine may render fewer than the rig requests
    requested = [lidar.with_sub_rays(lidar.sub_rays) for lidar in rig.lidars]  # one that leaves them to its profile asks for the profile's
    return (streaming.spec, setting) in list(zip(rig.spec.sensor, requested, strict=True))
