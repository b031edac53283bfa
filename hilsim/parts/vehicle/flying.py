"""A rig's flying vehicle: its thread, its link and its readings."""

import os
import socket
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import structlog

from hilsim.assembly.build import Scenery
from hilsim.compilation.atomics import publish
from hilsim.compilation.pins import Pin
from hilsim.config.rig import Rig
from hilsim.errors import LinkError
from hilsim.faults.specs import FaultSpec
from hilsim.parts.vehicle.autopilot.ardupilot_loop import JsonPilot
from hilsim.parts.vehicle.autopilot.breaking import VEHICLE, vehicle_fault_table, vehicle_faults
from hilsim.parts.vehicle.autopilot.change_table import ChangeTable, Kind
from hilsim.parts.vehicle.autopilot.loop import attend_changes, fly
from hilsim.parts.vehicle.autopilot.loop_context import ControlWord, Line
from hilsim.parts.vehicle.autopilot.loop_setup import LoopSetup, build_loop_context, build_loop_setup, open_line
from hilsim.parts.vehicle.autopilot.passing_state import AutopilotStatus, Truth
from hilsim.parts.vehicle.autopilot.send_queue import build_pace
from hilsim.parts.vehicle.autopilot.session import REASONS, Reason, SessionState, SessionWord
from hilsim.parts.vehicle.ground_stations.forwarding import Forwarder
from hilsim.parts.vehicle.physics.specs import VehicleSpec
from hilsim.parts.vehicle.physics.touching import TouchWord
from hilsim.parts.vehicle.platform import profile_of, spec_of
from hilsim.parts.vehicle.pose_log import PoseLog, newest_truth
from hilsim.parts.vehicle.read_flight import read_flight
from hilsim.parts.vehicle.reading import VehicleReading
from hilsim.parts.vehicle.specs import VehicleRigSpec
from hilsim.protocols.ardupilot_json import MAGIC_16, SERVO_16_DTYPE
from hilsim.protocols.mavlink.frames import LARGEST_FRAME
from hilsim.protocols.mavlink.messages import ATTITUDE, GLOBAL_POSITION_INT
from hilsim.transmit.links.addresses import RATES_HZ
from hilsim.transmit.links.broken_line import BrokenLine
from hilsim.transmit.links.budget import LinkBudget
from hilsim.transmit.links.sockets import open_udp
from hilsim.transmit.packet_queue import put, take
from hilsim.transmit.scheduling import ThreadSettings, enter
from hilsim.world.geometry.geodesy import Home
from hilsim.world.platforms.live import LivePose, build_live_pose
from hilsim.world.scene.world import World

log = structlog.get_logger("hilsim")

_IDLE_SERVOS = np.array((MAGIC_16, 400, 1, (1000,) * 16), SERVO_16_DTYPE).tobytes()
_USABLE = 0.95
_PRIORITY_BELOW = 5
"""Priority below sending and above rendering: a step of the vehicle takes some 10 us, rendering a packet 100 us."""
_SLICE_US = 1000.0
_FALLING_MPS = 5.0
"""Faster than an autopilot descends (PX4's MPC_Z_VEL_MAX_DN is 1 to 1.5 m/s) and a drop of a metre ends."""


def paced_line(kind: str, budget: LinkBudget) -> Line:
    """Line with the limits of its budget; ground stations get the rest of the capacity."""
    if budget.line_bytes_per_s is None:
        return open_line(kind)
    left = max(_USABLE * budget.line_bytes_per_s - budget.uplink_bytes_per_s, 0.0)
    share = build_pace(line_bytes_per_s=budget.line_bytes_per_s, station_bytes_per_s=1000.0 + left)
    return Line(pace=share, is_stream=True, is_simulator=False)


def rate_within(budget: LinkBudget) -> int:
    """Highest rate of sensor frames that a budget allows."""
    return max(rate_hz for rate_hz in RATES_HZ if rate_hz <= budget.sensor_hz)


@dataclass(kw_only=True, eq=False)
class FlyingVehicle:
    """A rig's vehicle and its thread.

    Attributes:
        spec: Table of the vehicle in the rig.
        profile: Profile of the vehicle.
        seed: Random seed of the rig.
        faults: Faults that it has, or will have soon.
        world: World that the vehicle can touch.
        live: Ring of the vehicle's poses.
        settings: Scheduling of the thread.
        scheduling_mode: Scheduling that the thread obtained.
        problem: Known reason for a missing link, else empty.
        device: Device of the present link; empty without a link.
        rate_hz: Sensor frames a second; 0 if the line is too slow for any.
        forwarder: Forwarder to ground stations; None if there are none yet.
        truth_path: File for the vehicle's truth; None: no file.
        autopilot: Status that the controller reports about itself.
        loop_setup: Arguments of the flight loop.
        table: Timed changes of the vehicle.
        line: Line of its controller's serial port.
    """

    spec: VehicleRigSpec
    profile: VehicleSpec
    seed: int
    world: World
    live: LivePose
    settings: ThreadSettings
    faults: tuple[FaultSpec, ...] = ()
    scheduling_mode: str = ""
    problem: str = ""
    device: str = ""
    rate_hz: int = 0
    forwarder: Forwarder | None = None
    truth_path: Path | None = None
    autopilot: AutopilotStatus = field(default_factory=AutopilotStatus)
    loop_setup: LoopSetup = field(init=False)
    table: ChangeTable = field(init=False)
    line: BrokenLine = field(init=False)
    _epoch_ns: int = 0
    _utc_epoch_ns: int = 0
    _thread: threading.Thread | None = None
    _socket: socket.socket | None = None
    _pilot: JsonPilot | None = None
    _log: PoseLog | None = None

    def __post_init__(self) -> None:
        controller = self.spec.controller
        self.rate_hz = controller.rate_hz
        self.autopilot.is_carried = controller.kind in ("serial", "udp")
        self.loop_setup = build_loop_setup(self.spec, self.profile, open_line(controller.kind), seed=self.seed, rate_hz=controller.rate_hz)
        self.table = ChangeTable(self.loop_setup.shared.changes)
        self.line = BrokenLine(VEHICLE, self.seed)
        if self.faults:
            self.break_later(0, self.faults)

    def warm(self) -> None:
        """Load or compile the flight loop, and open its ports, without flying.

        Raises:
            CaptureError: the file for the vehicle's truth cannot be created.
            LinkError: ArduPilot's port cannot be opened.
        """
        shared = self.loop_setup.shared
        for value in (self.loop_setup.context.wind, self.world, self.loop_setup.context.no_faults):
            Pin(value).release()
        if self.spec.controller.kind == "ardupilot":
            self._socket = open_udp(*self.spec.controller.endpoint)
            self._warm_pilot(self._socket)
        else:
            shared.control[ControlWord.ENDS] = 1
            self._fly(0, 0)
            shared.control[ControlWord.ENDS] = 0
            self._warm_forwarding()
        for column in range(2):
            shared.wakes[column] = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        if self.truth_path is not None:
            self._log = PoseLog(self.truth_path, self.spec.truth_hz, self)

    def start(self, *, epoch_ns: int, utc_epoch_ns: int) -> None:
        """Start flying; rig time 0 is CLOCK_MONOTONIC ``epoch_ns``."""
        self._epoch_ns, self._utc_epoch_ns = epoch_ns, utc_epoch_ns
        self.line.begin(epoch_ns)
        self._begin()

    def stop(self) -> None:
        """End the thread and close its sockets; the link's descriptor belongs to its opener."""
        self._end()
        if self._log is not None:
            self._log.close()
            self._log = None
        shared = self.loop_setup.shared
        for column in range(2):
            if shared.wakes[column] >= 0:
                os.close(int(shared.wakes[column]))
                shared.wakes[column] = -1
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def state(self) -> SessionState:
        """State of the session with the controller."""
        return SessionState(int(self.loop_setup.shared.session.word[SessionWord.STATE]))

    @property
    def reason(self) -> str:
        """Reason for the session's state."""
        return REASONS[Reason(int(self.loop_setup.shared.session.word[SessionWord.REASON]))]

    @property
    def is_armed(self) -> bool:
        """Whether the controller has armed the vehicle."""
        return bool(self.loop_setup.shared.session.word[SessionWord.ARMED])

    @property
    def is_crashed(self) -> bool:
        """Whether the vehicle cannot fly until it is reset, after an impact or because blades are broken."""
        state = self.loop_setup.flight.state
        return bool(state.crashed[0] or state.broken.any())

    @property
    def is_falling(self) -> bool:
        """Whether the vehicle moves downwards at more than ``_FALLING_MPS``."""
        return bool(self.loop_setup.flight.state.motion[5] < -_FALLING_MPS)

    @property
    def damage(self) -> str:
        """Cause of a crash; empty for an undamaged vehicle."""
        state = self.loop_setup.flight.state
        broken = int(state.broken.sum())
        if broken:
            return f"blades of {broken} of {state.broken.size} rotors struck an obstacle"
        return "an impact faster than crash_mps" if state.crashed[0] else ""

    @property
    def position_m(self) -> list[float]:
        """Position of the centre of mass in the world, rounded to centimetres."""
        return [round(value, 2) for value in self.loop_setup.flight.state.motion[:3].tolist()]

    @property
    def home(self) -> Home:
        """Home position of the world on the Earth."""
        return self.loop_setup.context.instruments.home

    @property
    def truth(self) -> Truth:
        """Present true state."""
        return newest_truth(self.live)

    @property
    def contacts(self) -> tuple[int, int]:
        """Number of contacts begun so far, and the ``Touching`` of the present one, 0 for none."""
        word = self.loop_setup.shared.touch.word
        return int(word[TouchWord.COUNT]), int(word[TouchWord.KINDS])

    def note_frame(self, message_id: int, frame: bytes, came_ns: int) -> None:
        """Read the controller's status from a frame on its way to ground stations."""
        del came_ns  # at most some milliseconds ago, less than the autopilot's own delay
        self.autopilot.note_frame(message_id, frame, self.home, self.truth)

    @property
    def changes(self) -> int:
        """Number of changes of the session so far."""
        return int(self.loop_setup.shared.session.word[SessionWord.CHANGES])

    @property
    def is_linked(self) -> bool:
        """Whether the flight loop has a link."""
        return int(self.loop_setup.shared.control[ControlWord.LINK]) >= 0

    def link(self, descriptor: int, line: Line, rate_hz: int) -> None:
        """Pass the flight loop a link, which it keeps until ``is_linked`` is False.

        Raises:
            LinkError: the flight loop already has a link.
        """
        if self.is_linked:
            raise LinkError("a vehicle must have one link at a time, got a second one")
        if (line, rate_hz) != (self.loop_setup.context.line, self.rate_hz):
            self._refit(line, rate_hz)
        publish(self.loop_setup.shared.control, ControlWord.LINK, descriptor)

    def break_later(self, from_ns: int, faults: tuple[FaultSpec, ...]) -> int:
        """Let the vehicle have other faults from a rig time on; returns the change's number in ``table``."""
        self.faults = faults
        return self.table.add(Kind.FAULTS, from_ns, vehicle_fault_table(faults, self.seed))

    def release_link(self) -> None:
        """Make the flight loop release its link."""
        publish(self.loop_setup.shared.control, ControlWord.CLOSES, 1)

    def reading(self) -> VehicleReading:
        """Values for the metrics; wait-free."""
        reading = read_flight(
            self.loop_setup,
            rate_hz=self.rate_hz,
            now_ns=time.monotonic_ns() - self._epoch_ns,
            truth=self.truth,
            autopilot=self.autopilot,
            stations=self.forwarder.readings() if self.forwarder else (),
        )
        return replace(reading, is_ready=False, obstacle="the vehicle falls") if self.is_falling else reading

    def _refit(self, line: Line, rate_hz: int) -> None:
        """Continue with another line and rate; the vehicle rests on the ground meanwhile."""
        self.rate_hz = rate_hz
        context = build_loop_context(self.spec, self.profile, line, seed=self.seed, rate_hz=rate_hz)
        was_alive = self.alive
        self._end()
        self.loop_setup = LoopSetup(context=context, flight=self.loop_setup.flight, shared=self.loop_setup.shared, buffers=self.loop_setup.buffers)
        if was_alive:
            self._begin()

    def _begin(self) -> None:
        publish(self.loop_setup.shared.control, ControlWord.ENDS, 0)
        self._thread = threading.Thread(target=self._run, name="fly", daemon=True)
        self._thread.start()

    def _end(self) -> None:
        shared = self.loop_setup.shared
        publish(shared.control, ControlWord.ENDS, 1)
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        self.scheduling_mode = enter(self.settings).mode.value
        if self.spec.controller.kind == "ardupilot":
            self._answer()
        else:
            self._fly(self._epoch_ns, self._utc_epoch_ns)

    def _fly(self, epoch_ns: int, utc_epoch_ns: int) -> None:
        setup = self.loop_setup
        fly(setup.context, setup.flight, self.world, self.live, setup.shared, setup.buffers, epoch_ns, utc_epoch_ns)

    def _warm_forwarding(self) -> None:
        """Load what Python calls at the controller's and the stations' first frames: loading it then delayed packets and sensor frames of the first second."""
        shared, status = self.loop_setup.shared, AutopilotStatus()
        for message in (ATTITUDE, GLOBAL_POSITION_INT):
            status.note_frame(message.id, bytes(LARGEST_FRAME), self.home, self.truth)
        take(shared.to_stations, 0)
        put(shared.to_controller, 0, 0, 0, np.zeros(1, np.uint8), LARGEST_FRAME + 1)  # too large: it has no effect

    def _warm_pilot(self, opened: socket.socket) -> None:
        """Answer one frame, and wait for one, with a separate vehicle, which no sensor sees."""
        controller = self.spec.controller
        setup = build_loop_setup(self.spec, self.profile, open_line(controller.kind), seed=self.seed, rate_hz=controller.rate_hz)
        self._piloted(setup, build_live_pose(), opened).answer(_IDLE_SERVOS, ("", 0))
        attend_changes(setup.context, setup.flight, setup.shared, 0)  # as while no frame comes

    def _piloted(self, setup: LoopSetup, live: LivePose, opened: socket.socket) -> JsonPilot:
        return JsonPilot(
            context=setup.context,
            vehicle=self.profile,
            flight=setup.flight,
            world=self.world,
            live=live,
            shared=setup.shared,
            opened=opened,
            epoch_ns=self._epoch_ns,
        )

    @property
    def trouble(self) -> str:
        """Latest refused input from ArduPilot's link, empty for none."""
        return self._pilot.trouble if self._pilot else ""

    def _answer(self) -> None:
        if self._socket is None:
            raise AssertionError("ArduPilot's socket is opened before the vehicle flies")
        self._pilot = self._piloted(self.loop_setup, self.live, self._socket)
        while self.loop_setup.shared.control[ControlWord.ENDS] == 0:
            try:
                self._pilot.run()
            except Exception:
                log.exception("flight.pilot_failed", advice="an error of hilsim; the vehicle continues with the next frame")


def build_vehicle(rig: Rig, scenery: Scenery) -> FlyingVehicle:
    """Build the vehicle of a rig that has one."""
    spec, profile, transmit = spec_of(rig), profile_of(rig), rig.spec.transmit
    if scenery.live is None:
        raise AssertionError("a vehicle moves live poses")
    vehicle = FlyingVehicle(
        spec=spec,
        profile=profile,
        seed=rig.spec.seed,
        faults=vehicle_faults(rig.spec.fault),
        world=scenery.world,
        live=scenery.live,
        truth_path=rig.directory / spec.truth_file if spec.truth_file else None,
        settings=ThreadSettings(scheduling=transmit.scheduling, priority=max(transmit.priority - _PRIORITY_BELOW, 1), slice_us=_SLICE_US),
    )
    vehicle.line.set_faults(0, rig.spec.fault)
    return vehicle
