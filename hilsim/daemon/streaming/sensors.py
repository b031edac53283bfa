"""The sensors of a rig that are rendered: opened, started together without a loss, changed while they stream, stopped.

A change is made ready aside, down to its sockets and its thread, before anything that streams is touched; then the new takes over from the old
between two packets.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from hilsim.assembly.build import Scenery, build_lidar, flow_framing, sensor_flows
from hilsim.config.rig import Rig
from hilsim.daemon.serial_devices.rangefinders import Rangefinders
from hilsim.daemon.streaming.flow_specs import feeder_settings, flow_spec, lead_bounds_ns
from hilsim.daemon.streaming.recorder import Recorder
from hilsim.daemon.streaming.render_state import FeederCounter, allocate_state
from hilsim.daemon.streaming.render_thread import Feeder
from hilsim.daemon.streaming.stream import Streaming
from hilsim.protocols.ethernet import PAYLOAD_ONLY, Framing
from hilsim.transmit.ring import depth
from hilsim.transmit.specs import FlowSpec
from hilsim.transmit.transmitter import Transmitter

PRIMED_NS = 20_000_000
"""What stands in the rings when rig time begins: as long as a machine may stand still then without a loss."""

_JOIN_NS = 50_000_000
"""A sensor that joins while packets flow sends its first packet this much later."""
_POLL_S = 0.001


@dataclass(kw_only=True, eq=False)
class Sensors:
    """What streams of a rig's sensors.

    Attributes:
        rows: Of the station: names of the transmitter's rows, ``"<sensor>/<flow>"``.
        streams: By the sensor's name.
    """

    rows: dict[int, str]
    streams: dict[str, Streaming] = field(default_factory=dict)
    _transmitter: Transmitter | None = None
    _recorder: Recorder | None = None
    _rangefinders: Rangefinders | None = None
    _epoch_ns: int = 0
    _utc_epoch_ns: int = 0

    # -- starting and stopping ---------------------------------------------------------------------------------------------------------

    def rehearse(self, rig: Rig, scenery: Scenery, transmitter: Transmitter, *, stages: bool) -> None:
        """Load or compile every kernel that sensors need, or only the stages that follow the casting of rays; no socket is opened."""
        self._transmitter = transmitter
        for number in range(len(rig.lidars)):
            feeder = self._make(rig, number, scenery, (0, 1)).feeder
            if stages:
                feeder.warm_stages()
            else:
                feeder.warm()

    def open(
        self, rig: Rig, scenery: Scenery | None, transmitter: Transmitter, *, recorder: Recorder | None, rangefinders: Rangefinders | None
    ) -> None:
        """Open every sensor's flows; nothing is sent before ``release``.

        Raises:
            TransmitError: a socket cannot be had.
        """
        self._transmitter, self._recorder, self._rangefinders = transmitter, recorder, rangefinders
        for number, sensor in enumerate(rig.spec.sensor):
            streaming = self._make(rig, number, _needed(scenery), (-1, -1))
            self._open_flows(streaming, self._flows(rig, number, streaming), held=True)
            self.streams[sensor.name] = streaming

    def warm(self) -> None:
        """Load every kernel, and find out what a packet of each sensor costs."""
        for streaming in self.streams.values():
            streaming.feeder.warm()
            streaming.feeder.measure()

    def prime(self, *, epoch_ns: int, utc_epoch_ns: int, until_ns: int) -> bool:
        """Fill the rings with what is due first; what is due then stands ready, and nothing is sent yet.

        Args:
            epoch_ns: CLOCK_MONOTONIC time of rig time 0.
            utc_epoch_ns: UTC of it: packets carry it, so another epoch needs other packets.
            until_ns: CLOCK_MONOTONIC time by which the rings must be filled.

        Returns:
            Whether they were. If not, what was rendered is forgotten, and the caller chooses a later epoch.

        Raises:
            TransmitError: the scheduling demanded is not permitted.
        """
        self._epoch_ns, self._utc_epoch_ns = epoch_ns, utc_epoch_ns
        leads_ns = {name: streaming.feeder.lead_ns for name, streaming in self.streams.items()}
        for streaming in self.streams.values():
            self._set_epoch(streaming)
            estimate_ns = streaming.feeder.state.counters[FeederCounter.ESTIMATE_NS]
            streaming.feeder.state = allocate_state()
            streaming.feeder.state.counters[FeederCounter.ESTIMATE_NS] = estimate_ns
        try:
            for streaming in self.streams.values():
                streaming.feeder.lead_ns = epoch_ns - time.monotonic_ns() + PRIMED_NS
                streaming.feeder.start()
            while not all(self._is_primed(streaming) for streaming in self.streams.values()):
                if time.monotonic_ns() > until_ns:
                    self._forget()
                    return False
                time.sleep(_POLL_S)
        finally:
            for name, streaming in self.streams.items():
                streaming.feeder.set_lead_ns(leads_ns[name])
        return time.monotonic_ns() <= until_ns or self._forget()

    def _is_primed(self, streaming: Streaming) -> bool:
        rings = streaming.feeder.rings
        is_half_full = depth(rings, streaming.rows[0]) >= rings.deadline_ns.shape[1] // 2
        return is_half_full or streaming.feeder.covered_ns >= self._epoch_ns + PRIMED_NS

    def _forget(self) -> bool:
        for streaming in self.streams.values():
            streaming.feeder.stop()
            for row in streaming.rows:
                self._open_transmitter().empty_flow(row)
        return False

    def release(self) -> None:
        """Let the sending loop serve the sensors' flows."""
        for streaming in self.streams.values():
            for row in streaming.rows:
                self._open_transmitter().release_flow(row)

    def stop(self) -> None:
        """End every thread; the transmitter closes the sockets."""
        for streaming in self.streams.values():
            streaming.feeder.stop()

    @property
    def skipped_packets(self) -> int:
        """Packets that were never rendered."""
        columns = [FeederCounter.SKIPPED, FeederCounter.POSITIONS_SKIPPED]
        return sum(int(streaming.feeder.state.counters[columns].sum()) for streaming in self.streams.values())

    # -- changing ----------------------------------------------------------------------------------------------------------------------

    def prepare(self, rig: Rig, scenery: Scenery | None, *, keeps: Callable[[Streaming], bool]) -> "SensorChange":
        """Make ready what another rig's sensors need, while packets flow; nothing is changed by it.

        Args:
            rig: The new rig.
            scenery: What its sensors see.
            keeps: Whether a sensor that streams is the same in the new rig, and sees the same.
        """
        wanted = {sensor.name: number for number, sensor in enumerate(rig.spec.sensor)}
        kept = {name for name, streaming in self.streams.items() if name in wanted and keeps(streaming)}
        made = {name: self._make(rig, number, _needed(scenery), (-1, -1)) for name, number in wanted.items() if name not in kept}
        for streaming in made.values():
            self._set_epoch(streaming)
            streaming.feeder.warm()
        flows = {name: self._flows(rig, wanted[name], streaming) for name, streaming in made.items()}
        return SensorChange(kept=frozenset(kept), made=made, flows=flows)

    def change(self, change: "SensorChange") -> tuple[str, ...]:
        """Become the sensors of another rig.

        A sensor that goes on under its name goes on with its very next packet, in whatever world, with whatever destination; where it fires at other
        times, with its first packets after that. Every socket is held before anything is changed.

        Returns:
            What was done, one sentence a sensor.

        Raises:
            TransmitError: a socket or the scheduling cannot be had; nothing was changed.
        """
        flows_now = self._open_transmitter().flows
        retired = [flows_now[row] for name, streaming in self.streams.items() if name not in change.kept for row in streaming.rows]
        with self._open_transmitter().reserved([flow.spec for each in change.flows.values() for flow in each], retired):
            done = [f"{name}: unchanged" for name in change.kept]
            for name in [name for name in self.streams if name not in change.kept and name not in change.made]:
                self._close(self.streams.pop(name))
                done.append(f"{name}: removed")
            for name, streaming in change.made.items():
                done.append(f"{name}: {self._put_in_place(streaming, change.flows[name])}")
        return tuple(done)

    def _put_in_place(self, streaming: Streaming, flows: "tuple[_Flow, ...]") -> str:
        """Let a sensor take over from the one of its name, or begin; returns which."""
        transmitter, former = self._open_transmitter(), self.streams.get(streaming.spec.name)
        if former is not None and len(former.rows) == len(flows):
            streaming.rows = former.rows
            streaming.feeder.data_flow, streaming.feeder.position_flow = former.rows[0], former.rows[-1]
            former.feeder.hand_over_to(streaming.feeder)
            for row, flow in zip(streaming.rows, flows, strict=True):
                if transmitter.flows[row] != flow.spec:
                    transmitter.retarget_flow(row, flow.spec, self._introduced(flow.framing))
            self.streams[streaming.spec.name] = streaming
            return "goes on with its new settings"
        if former is not None:  # it has information packets now, or has them no longer
            self._close(self.streams.pop(streaming.spec.name))
        self._open_flows(streaming, flows, held=False)
        streaming.feeder.start(from_ns=time.monotonic_ns() + _JOIN_NS - self._epoch_ns)
        self.streams[streaming.spec.name] = streaming
        return "started" if former is None else "started with its new settings"

    def _introduced(self, framing: Framing) -> Callable[[int], None]:
        """What tells the recorder of a flow's number, if there is one."""
        recorder = self._recorder
        return lambda number: recorder.add_flow(number, framing) if recorder is not None else None

    def _close(self, streaming: Streaming) -> None:
        streaming.feeder.stop()
        for row in streaming.rows:
            self._open_transmitter().remove_flow(row)
            del self.rows[row]

    # -- parts -------------------------------------------------------------------------------------------------------------------------

    def _make(self, rig: Rig, number: int, scenery: Scenery, rows: tuple[int, ...]) -> Streaming:
        """One sensor with its feeder, which does not run yet.

        Args:
            rig: The rig.
            number: Which of its sensors.
            scenery: What it sees.
            rows: Of its flows in the transmitter, the data first.
        """
        sensor = rig.spec.sensor[number]
        lidar = build_lidar(rig, number, scenery, utc_epoch_ns=self._utc_epoch_ns, frames=sensor.network.mode == "ethernet", is_for_long=True)
        feeder = Feeder(
            lidar=lidar,
            rings=self._open_transmitter().rings,
            data_flow=rows[0],
            position_flow=rows[-1],
            epoch_ns=self._epoch_ns,
            lead_ns=lead_bounds_ns(rig)[0],
            settings=feeder_settings(rig),
            late_limit_ns=round(rig.spec.transmit.late_limit_us * 1000),
        )
        if self._rangefinders is not None:
            feeder.lookout = self._rangefinders.lookout(rig.lidars[number])
        return Streaming(spec=sensor, lidar=lidar, feeder=feeder, rows=rows)

    def _set_epoch(self, streaming: Streaming) -> None:
        streaming.lidar = replace(streaming.lidar, utc_epoch_ns=self._utc_epoch_ns)
        streaming.feeder.lidar = streaming.lidar
        streaming.lidar.plan  # noqa: B018 - made now (cached), not when the first packet is due
        streaming.feeder.epoch_ns = self._epoch_ns

    def _flows(self, rig: Rig, number: int, streaming: Streaming) -> "tuple[_Flow, ...]":
        """A sensor's flows, the data first."""
        sensor, setting, plan = rig.spec.sensor[number], rig.lidars[number], streaming.lidar.plan
        flows = sensor_flows(sensor, setting)
        infos_hz = float(np.sum(1e9 / plan.position.period_ns))
        wanted = [(flows.data, setting.packet_rate_hz)] + ([(flows.info, infos_hz)] if plan.info_size else [])
        return tuple(
            _Flow(
                spec=flow_spec(each.flow, sensor, each.style, rate_hz),
                framing=PAYLOAD_ONLY if sensor.network.mode == "ethernet" else flow_framing(each, sensor, setting),
            )
            for each, rate_hz in wanted
        )

    def _open_flows(self, streaming: Streaming, flows: "tuple[_Flow, ...]", *, held: bool) -> None:
        """Open a sensor's flows; either all of them, or none."""
        transmitter = self._open_transmitter()
        rows: list[int] = []
        try:
            rows.extend(transmitter.add_flow(flow.spec, held=held) for flow in flows)
        except BaseException:
            for row in rows:
                transmitter.remove_flow(row)
            raise
        for row, flow in zip(rows, flows, strict=True):
            self.rows[row] = flow.spec.name
            if self._recorder is not None:
                self._recorder.add_flow(transmitter.flow_number(row), flow.framing)
        streaming.feeder.data_flow, streaming.feeder.position_flow = rows[0], rows[-1]
        streaming.rows = tuple(rows)

    def _open_transmitter(self) -> Transmitter:
        if self._transmitter is None:
            raise AssertionError("sensors are opened before they are used")
        return self._transmitter


class _Flow(NamedTuple):
    """A flow to be opened: how it is sent, and the headers that a recording puts before its datagrams."""

    spec: FlowSpec
    framing: Framing


@dataclass(frozen=True, kw_only=True, eq=False)
class SensorChange:
    """What another rig changes, made ready.

    Attributes:
        kept: Names of sensors that stream on untouched.
        made: Sensors that begin or take over, by name; all others end.
        flows: Of these.
    """

    kept: frozenset[str]
    made: dict[str, Streaming]
    flows: "dict[str, tuple[_Flow, ...]]"


def _needed(scenery: Scenery | None) -> Scenery:
    if scenery is None:
        raise AssertionError("scenery is built before sensors are")
    return scenery
