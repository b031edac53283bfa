"""The running rig: scenery, lidars, feeders and the transmitter; built, changed and stopped as one."""

import time
from contextlib import ExitStack
from dataclasses import dataclass, field

from hilsim.assembly.build import AssetSignature, Scenery, asset_signature, build_scenery
from hilsim.config.rig import Rig
from hilsim.daemon.flight.vehicle import Aircraft, build_aircraft
from hilsim.daemon.health import HealthMonitor
from hilsim.daemon.serial_devices.rangefinders import Rangefinders, build_rangefinders
from hilsim.daemon.streaming.flow_specs import data_packet_rate_hz, lead_bounds_ns, rendering_priority, ring_slots
from hilsim.daemon.streaming.pacer import LeadBounds, Pacer, Say
from hilsim.daemon.streaming.recorder import Recorder, tape_slots
from hilsim.daemon.streaming.replays import Replays
from hilsim.daemon.streaming.sensors import Sensors
from hilsim.daemon.streaming.stream import STALLED_S, Streaming
from hilsim.errors import ConfigError, TransmitError
from hilsim.protocols.cepton.stdv import POINTS_MAX, packet_size
from hilsim.protocols.ethernet import HEADER_SIZE
from hilsim.protocols.velodyne.data import DATA_PACKET_SIZE
from hilsim.telemetry.clocks import utc_ahead_ns
from hilsim.telemetry.faults import Fault
from hilsim.telemetry.loop import read_flows, read_loop_turn_age_s
from hilsim.telemetry.readings import CommandCounts, Reading
from hilsim.transmit.brake import brake_reason
from hilsim.transmit.kernel_drops import read_kernel_drops
from hilsim.transmit.statistics import Counter
from hilsim.transmit.transmitter import Transmitter

_START_UP_NS = 100_000_000
"""From choosing rig time 0 to it; twice as long at each further try, where the rings could not be filled in time."""
_LONGEST_START_UP_NS = 60_000_000_000
_MARGIN_NS = 30_000_000
"""The rings are full so long before rig time 0: the other threads begin meanwhile."""
_HEADROOM_FLOWS = 16
_TOTALS = {"sent_packets": Counter.PACKETS, "late_packets": Counter.LATE, "dropped_packets": Counter.DROPPED}


@dataclass(kw_only=True, eq=False)
class Station:
    """A rig and everything that runs for it.

    Attributes:
        rig: What is emulated now.
        epoch_ns: CLOCK_MONOTONIC time of rig time 0.
        utc_epoch_ns: UTC of rig time 0.
        say: Is told what was changed for rendering to keep up: an event and its keys.
        health: Judges readings; it has to be told of them (``HealthReporter``).
        commands: Counts of commands by datagram (``control_datagrams``).
    """

    rig: Rig
    epoch_ns: int = 0
    utc_epoch_ns: int = 0
    say: Say = lambda _event, _keys: None
    health: HealthMonitor = field(default_factory=HealthMonitor)
    commands: CommandCounts = field(default_factory=CommandCounts)
    _pacer: Pacer = field(init=False)
    _scenery: Scenery | None = None
    _signature: AssetSignature = ()
    _transmitter: Transmitter | None = None
    _recorder: Recorder | None = None
    _replays: Replays = field(init=False)
    _aircraft: Aircraft | None = None
    _rangefinders: Rangefinders | None = None
    _open: ExitStack = field(default_factory=ExitStack)
    _sensors: Sensors = field(init=False)
    _rows: dict[int, str] = field(default_factory=dict)
    _has_started: bool = False
    _has_ended: bool = False

    def __post_init__(self) -> None:
        self._replays = Replays(rows=self._rows)
        self._sensors = Sensors(rows=self._rows)
        self._pacer = Pacer(
            wanted=self.rig.spec.transmit.scheduling,
            priority=rendering_priority(self.rig),
            lead=LeadBounds(*lead_bounds_ns(self.rig)),
            ring_slots=ring_slots(self.rig),
            say=self.say,
        )

    # -- starting and stopping ---------------------------------------------------------------------------------------------------------

    def build(self) -> None:
        """Read the rig's files; the slow part of starting.

        Raises:
            AssetError: a file cannot be used.
            CaptureError: the directory of the recording cannot be used.
        """
        if self.rig.spec.record.file:
            self._recorder = Recorder(self.rig.spec.record, self.rig.directory)
            self._recorder.check()
        self._replays.begin(self._replays.prepare(self.rig))
        if self.rig.spec.sensor or self.rig.spec.vehicle:
            self._scenery = build_scenery(self.rig)
            self._aircraft = build_aircraft(self.rig, self._scenery)
            self._rangefinders = build_rangefinders(self._aircraft)
        self._signature = asset_signature(self.rig)

    def rehearse(self, *, stages: bool = False) -> None:
        """Load or compile every kernel that ``open`` and ``start`` need, without a port or a file: for a process that compiles ahead.

        Args:
            stages: Only what follows the casting of rays; another process may compile what comes before meanwhile.
        """
        self.build()
        with self._make_transmitter(flows=2) as transmitter:
            if self._scenery is not None:
                self._sensors.rehearse(self.rig, self._scenery, transmitter, stages=stages)
            if stages:
                return
            self._replays.rehearse(transmitter)
            for part in (self._aircraft, self._rangefinders):
                if part is not None:
                    part.warm()
                    part.stop()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of the files read."""
        return self._scenery.notes if self._scenery else ()

    def open(self) -> None:
        """Open sockets and warm every kernel; nothing is sent yet. Either everything is open afterwards, or nothing.

        Raises:
            TransmitError: a socket or permission cannot be had.
            CaptureError: the recording cannot be created.
        """
        self._transmitter = self._make_transmitter(flows=2 * len(self.rig.lidars) + self._replays.flow_count + _HEADROOM_FLOWS)
        self._open = ExitStack()
        self._open.enter_context(self._transmitter)
        try:
            self._sensors.open(self.rig, self._scenery, self._transmitter, recorder=self._recorder, rangefinders=self._rangefinders)
            if self._aircraft is not None:
                self._aircraft.warm()
            if self._rangefinders is not None:
                self._rangefinders.warm()
            self._sensors.warm()
            self._pacer.settle(self._sensors.streams)
            self._replays.open(self.rig, self._transmitter, self._recorder)
            if self._recorder is not None:
                self._recorder.open(self._transmitter)
        except BaseException:
            self.stop()
            raise

    def _make_transmitter(self, *, flows: int) -> Transmitter:
        slots = tape_slots(data_packet_rate_hz(self.rig) + self._replays.packet_rate_hz) if self._recorder else 1
        capacity = max(HEADER_SIZE + max(DATA_PACKET_SIZE, packet_size(2, POINTS_MAX)), self._replays.capacity)
        self._transmitter = Transmitter(self.rig.spec.transmit, flows=flows, capacity=capacity, slots=ring_slots(self.rig), tape_slots=slots)
        return self._transmitter

    def start(self) -> None:
        """Begin to stream: rig time 0 is a moment from now.

        It is chosen when every thread runs, and it holds only if the rings are full before it. A machine that is too busy for that starts later, and
        loses nothing by it.

        Raises:
            TransmitError: the scheduling demanded is not permitted, or the machine is so busy that nothing can be made ready within a minute.
        """
        self._open_transmitter().start()
        ahead_ns = _START_UP_NS
        while not self._try_to_prime(ahead_ns):
            ahead_ns *= 2
            if ahead_ns > _LONGEST_START_UP_NS:
                raise TransmitError(
                    f"the first packets must be ready within {_LONGEST_START_UP_NS // 10**9} s, got too few: this machine is too busy (hilsim doctor)"
                )
        if self._recorder is not None:
            self._recorder.start(utc_offset_ns=self.utc_epoch_ns - self.epoch_ns)
        if self._aircraft is not None:
            self._aircraft.start(epoch_ns=self.epoch_ns, utc_epoch_ns=self.utc_epoch_ns)
        self._sensors.release()
        if self._rangefinders is not None:
            self._rangefinders.start(epoch_ns=self.epoch_ns)
        self._replays.start(epoch_ns=self.epoch_ns, utc_epoch_ns=self.utc_epoch_ns)
        self._has_started = True

    def _try_to_prime(self, ahead_ns: int) -> bool:
        now_ns = time.monotonic_ns()
        self.epoch_ns = now_ns + ahead_ns
        self.utc_epoch_ns = self.epoch_ns + utc_ahead_ns()
        return self._sensors.prime(epoch_ns=self.epoch_ns, utc_epoch_ns=self.utc_epoch_ns, until_ns=self.epoch_ns - _MARGIN_NS)

    def pace(self) -> None:
        """Keep rendering within the machine; to be called twice a second, by any thread."""
        self._pacer.step(self._sensors.streams, time.monotonic_ns())

    def leave_real_time(self) -> None:
        """Take rendering off real-time scheduling for good; a signal's handler may call it."""
        self._pacer.leave_real_time(self.streams)

    def stop(self) -> dict[str, int]:
        """End every thread and close every socket; returns, when that is done, what was sent and what was not."""
        with self._pacer.lock:
            self._has_ended = True
            self._sensors.stop()
        if self._rangefinders is not None:
            self._rangefinders.stop()
            self._rangefinders = None
        if self._aircraft is not None:
            self._aircraft.stop()
            self._aircraft = None
        self._replays.stop()
        if self._transmitter is not None:
            self._transmitter.stop()
        totals = self._totals()
        self._open.close()
        if self._recorder is not None:
            self._recorder.stop()
            self._recorder = None
        self._transmitter = None
        self._sensors.streams.clear()
        self._rows.clear()
        return totals

    def _totals(self) -> dict[str, int]:
        """Packets sent, sent late, dropped because too late, and never rendered, of all flows that are open."""
        if self._transmitter is None:
            return {}
        rows = sorted(self._rows)
        counted = {name: int(self._transmitter.statistics.counters[rows, column].sum()) for name, column in _TOTALS.items()}
        return counted | {"skipped_packets": self._sensors.skipped_packets}

    # -- changing ----------------------------------------------------------------------------------------------------------------------

    def change(self, rig: Rig) -> tuple[str, ...]:
        """Become another rig; sensors that are the same in both stream on untouched.

        Returns:
            What was done, one sentence a sensor.

        Raises:
            ConfigError: the change needs a restart; nothing was changed.
            AssetError: a file cannot be used; nothing was changed.
            CaptureError: a capture cannot be replayed; nothing was changed.
            TransmitError: a new socket cannot be had; no sensor was changed.
        """
        new, now = rig.spec, self.rig.spec
        if (new.transmit, new.metrics, new.record, new.control) != (now.transmit, now.metrics, now.record, now.control):
            raise ConfigError(
                f"{rig.path}: [transmit], [metrics], [record] and [control] cannot change while packets flow; restart the service for that"
            )
        if now.vehicle is not None or new.vehicle is not None:
            self._check_vehicle_stays(rig)
        scenery = self._scenery
        same_scenery = (rig.spec.scene, rig.spec.carrier, rig.spec.seed) == (self.rig.spec.scene, self.rig.spec.carrier, self.rig.spec.seed)
        new_signature = asset_signature(rig)
        prepared = self._replays.prepare(rig)
        if rig.spec.sensor and (scenery is None or not same_scenery or new_signature != self._signature):
            scenery = build_scenery(rig)
        same_world = scenery is self._scenery
        change = self._sensors.prepare(rig, scenery, keeps=lambda streaming: same_world and _is_same(streaming, rig))
        with self._pacer.lock:
            if self._has_ended:
                raise ConfigError(f"{rig.path}: a rig cannot change while it stops")
            done = self._sensors.change(change)
            self._pacer.set_lead(LeadBounds(*lead_bounds_ns(rig)))
            self.rig, self._scenery, self._signature = rig, scenery, new_signature
            return (*done, *self._replays.change(rig, prepared))

    def _check_vehicle_stays(self, rig: Rig) -> None:
        """Raise ``ConfigError`` where a change touches what flies, or what it flies in."""
        new, now = rig.spec, self.rig.spec
        is_same = (new.vehicle, new.scene, new.carrier, new.seed) == (
            now.vehicle,
            now.scene,
            now.carrier,
            now.seed,
        ) and rig.vehicle == self.rig.vehicle
        if not is_same or asset_signature(rig) != self._signature:
            raise ConfigError(f"{rig.path}: [vehicle], [scene], [carrier] and seed cannot change while a vehicle flies; restart the service for that")

    def _open_transmitter(self) -> Transmitter:
        if self._transmitter is None:
            raise AssertionError("a station is opened before it is used")
        return self._transmitter

    # -- looking -----------------------------------------------------------------------------------------------------------------------

    @property
    def flowing(self) -> bool:
        """Whether every sensor and every replay that begins at once has sent packets."""
        counters = self._open_transmitter().statistics.counters
        sensors_flow = all(counters[streaming.rows[0], Counter.PACKETS] > 0 for streaming in self._sensors.streams.values())
        return sensors_flow and self._replays.has_begun(lambda row: int(counters[row, Counter.PACKETS]))

    @property
    def played_out(self) -> bool:
        """Whether every replay has ended and everything was sent."""
        rings = self._open_transmitter().rings
        return self._replays.have_ended and bool((rings.head[:, 0] == rings.tail[:, 0]).all())

    @property
    def replays(self) -> Replays:
        """What is replayed."""
        return self._replays

    @property
    def aircraft(self) -> Aircraft | None:
        """What flies."""
        return self._aircraft

    @property
    def passes(self) -> int:
        """Turns of the sending loop so far."""
        return int(self._open_transmitter().statistics.passes[0])

    @property
    def obtained(self) -> dict[str, object]:
        """What the kernel gave, for the log: scheduling with the reason for less than asked, locked memory, socket options."""
        transmitter = self._open_transmitter()
        scheduling, lock = transmitter.scheduling, transmitter.memory_lock
        found: dict[str, object] = {"scheduling": scheduling.mode.value if scheduling else "", "memory_locked": bool(lock and lock.locked)}
        if scheduling and scheduling.reason:
            found["scheduling_reason"] = scheduling.reason
        if lock and lock.reason:
            found["memory_reason"] = lock.reason
        if transmitter.shortfalls:
            found["socket_shortfalls"] = list(transmitter.shortfalls)
        return found

    @property
    def transmitter(self) -> Transmitter:
        """The transmitter, for measurements."""
        return self._open_transmitter()

    @property
    def streams(self) -> dict[str, Streaming]:
        """The sensors that stream, by name."""
        return dict(self._sensors.streams)

    def reading(self) -> Reading:
        """Everything a scrape shows; waits for nobody but the kernel, for a fraction of a millisecond."""
        transmitter = self._open_transmitter()
        now_ns = time.monotonic_ns()
        # A scrape runs in a worker thread while a reload may change these: look at copies.
        rows, streams = dict(self._rows), dict(self._sensors.streams)
        names = [rows.get(row, "") for row in range(max(rows, default=-1) + 1)]
        flows = read_flows(names, transmitter.statistics, transmitter.rings, now_ns)
        sensors = tuple(streaming.reading(now_ns) for streaming in streams.values())
        scheduling = {"transmit": transmitter.scheduling.mode.value if transmitter.scheduling else ""} | {
            f"feed-{name}": item.feeder.scheduling_mode for name, item in streams.items()
        }
        scheduling |= self._replays.scheduling
        aircraft = self._aircraft
        if aircraft is not None:
            scheduling["fly"] = aircraft.scheduling_mode
        turn_age_s = read_loop_turn_age_s(transmitter.statistics, now_ns)
        reading = Reading(
            flows=tuple(flow for flow in flows if flow.sensor),
            sensors=sensors,
            replays=self._replays.readings(),
            scheduling={thread: mode for thread, mode in scheduling.items() if mode},
            loop_turn_age_s=turn_age_s,
            memory_locked=transmitter.memory_lock is not None and transmitter.memory_lock.locked,
            recording=self._recorder.reading() if self._recorder else None,
            commands=self.commands if self.rig.spec.control.listen else None,
            vehicle=aircraft.reading() if aircraft else None,
            rangers=self._rangefinders.readings() if self._rangefinders else (),
            drops=read_kernel_drops(flow.socket for flow in transmitter.flows.values()),
            utc_offset_s=(utc_ahead_ns() - (self.utc_epoch_ns - self.epoch_ns)) / 1e9 if self.epoch_ns else None,
            faults=self._faults(streams, turn_age_s, now_ns),
        )
        return self.health.complete(reading, now_ns)

    def _faults(self, streams: dict[str, Streaming], turn_age_s: float | None, now_ns: int) -> tuple[Fault, ...]:
        """What has ended or is silent; losses are judged by ``health``."""
        if not self._has_started:
            return (Fault(key="starting", text="nothing is sent yet"),)
        found: list[Fault | None] = []
        if not self._open_transmitter().running:
            found.append(Fault(key="loop_ended", text="the sending loop has ended: a packet was later than late_limit_us, and late_policy is stop"))
        elif turn_age_s is not None and turn_age_s > STALLED_S:
            found.append(Fault(key="loop_stalled", text=f"the sending loop has not turned for {turn_age_s:.1f} s"))
        if reason := brake_reason(self._open_transmitter().statistics.brake):
            found.append(Fault(key="real_time_left", text=f"{reason}; the sending loop has left real-time scheduling"))
        for streaming in streams.values():
            last_ns = int(self._open_transmitter().statistics.counters[streaming.rows[0], Counter.LAST_SEND_NS])
            found.extend((streaming.fault(last_ns, now_ns), streaming.shortfall()))
        found.extend(self._replays.faults())
        if self._aircraft is not None and not self._aircraft.alive:
            found.append(Fault(key="flight_ended", text="the thread that flies the vehicle has ended"))
        found.extend(self._rangefinders.faults() if self._rangefinders else ())
        if self._recorder is not None and self._recorder.fault:
            found.append(Fault(key="recording_ended", text=f"the recording has ended: {self._recorder.fault}"))
        return tuple(fault for fault in found if fault is not None)


def _is_same(streaming: Streaming, rig: Rig) -> bool:
    """Whether a sensor that streams is in a rig just as it is."""
    setting = streaming.lidar.setting.with_sub_rays(streaming.wanted_rays)  # the machine may not be able to render as many as the rig wants
    return (streaming.spec, setting) in list(zip(rig.spec.sensor, rig.lidars, strict=True))
