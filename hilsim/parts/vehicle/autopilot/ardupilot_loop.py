"""The flight loop for ArduPilot's simulation over its JSON link: each of its frames advances the physics by a step and gets one answer.

The simulation waits for the answer, so it sets the pace; a Python thread is fast enough for its few hundred to thousand frames a second, and no other thread waits for it.
Any other datagram is counted and reported once, without further effect: one peer controls the vehicle until it has been silent for ``SILENT_NS``.
"""

import math
import socket
import time
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.errors import PacketError
from hilsim.parts.vehicle.autopilot.change_table import Effect, wind_now
from hilsim.parts.vehicle.autopilot.loop import attend_changes, commands_now, look_now
from hilsim.parts.vehicle.autopilot.loop_context import Flight, FlightCount, LoopContext, SharedTelemetry
from hilsim.parts.vehicle.autopilot.receive import reset
from hilsim.parts.vehicle.autopilot.session import COMMAND_SILENT_NS, Reason, SessionState, SessionWord
from hilsim.parts.vehicle.physics.multirotor import build_multirotor, orientation_of, position_of, rates_of, step, velocity_of
from hilsim.parts.vehicle.physics.specs import VehicleSpec
from hilsim.parts.vehicle.physics.surroundings import LOOK_NS, carry_planes
from hilsim.parts.vehicle.physics.touching import note_touch
from hilsim.protocols.ardupilot_json import (
    USUAL_RATE_HZ,
    FrameOrder,
    ServoFrame,
    VehicleReport,
    decode_servos,
    encode_report,
    frame_order,
    motor_commands,
)
from hilsim.world.geometry.frames import Vector
from hilsim.world.geometry.rotations import multiply
from hilsim.world.platforms.live import LivePose, write_state
from hilsim.world.scene.world import World

LONGEST_STEP_NS = 1_000_000
SILENT_NS = 2_000_000_000
"""A simulation silent for this long is considered ended: another one may replace it."""
_PATIENCE_S = 0.1

Address = tuple[str, int]
_LARGEST_DATAGRAM = 2048
_NED_FROM_ENU = (0.0, math.sqrt(0.5), math.sqrt(0.5), 0.0)
_FLU_FROM_FRD = (0.0, 1.0, 0.0, 0.0)


@kernel
def advance(context: LoopContext, flight: Flight, world: World, shared: SharedTelemetry, rig_ns: int, steps: int) -> None:
    """Advance the vehicle by some steps with the commands in ``flight``, after the timed changes until ``rig_ns``; surfaces are searched for first, and again after each ``LOOK_NS``."""
    attend_changes(context, flight, shared, rig_ns)
    looks = max(LOOK_NS // context.multirotor.step_ns, 1)
    for number in range(steps):
        if number % looks == 0:
            look_now(context, flight, world, shared, rig_ns)
        wind_mps = wind_now(shared.changes, context.wind, flight.wind_state, flight.state.time_ns[0])
        command = commands_now(context, flight, shared, rig_ns)
        step(context.multirotor, flight.state, command, wind_mps, flight.around.ground, flight.around.obstacles)
        note_touch(context.multirotor, flight.state, flight.around.ground, flight.around.obstacles, shared.touch, rig_ns)
        carry_planes(flight.around, 1e-9 * context.multirotor.step_ns)


@dataclass(kw_only=True, eq=False)
class JsonPilot:
    """Answers ArduPilot's simulation.

    Attributes:
        context: Vehicle, sensors and line; its step is set to the simulation's.
        vehicle: Profile of the vehicle.
        flight: State of the flight.
        world: World of surfaces that the vehicle can touch.
        live: Destination of the vehicle's poses.
        shared: Data shared with the daemon.
        opened: UDP socket that receives the simulation's frames.
        epoch_ns: CLOCK_MONOTONIC time of rig time 0.
        trouble: Latest datagram that was rejected or could not be answered, as a sentence; empty for none.
    """

    context: LoopContext
    vehicle: VehicleSpec
    flight: Flight
    world: World
    live: LivePose
    shared: SharedTelemetry
    opened: socket.socket
    epoch_ns: int
    trouble: str = ""
    _peer: Address | None = None
    _count: int | None = None
    _received_ns: int = 0
    _steps_ns: int = 0
    _noted_ns: int = 0
    _begun_ns: int = 0
    _pose: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(13))

    def run(self) -> None:
        """Run until ``shared`` requests the end."""
        self.opened.settimeout(_PATIENCE_S)
        self._note_pose()
        while self.shared.control[0] == 0:
            try:
                payload, peer = self.opened.recvfrom(_LARGEST_DATAGRAM)
            except TimeoutError:
                self._note_silence()
                if attend_changes(self.context, self.flight, self.shared, time.monotonic_ns() - self.epoch_ns) == Effect.LEAP:
                    self._note_pose()
                continue
            except OSError:
                continue  # error of an answer that no process received
            answer = self.answer(payload, peer)
            if answer:
                self._send(answer, peer)

    def _send(self, answer: bytes, peer: Address) -> None:
        try:
            self.opened.sendto(answer, peer)
        except OSError as error:
            self.shared.counts[FlightCount.UNANSWERED] += 1
            self.trouble = f"{peer[0]}:{peer[1]}: an answer must be sendable, got {error.strerror or error}"

    def _refuse(self, trouble: str) -> bytes:
        self.shared.counts[FlightCount.FOREIGN_DATAGRAMS] += 1
        self.trouble = trouble
        return b""

    def answer(self, payload: bytes, peer: Address) -> bytes:
        """Answer to a datagram; empty unless it is a servo packet of the controlling peer. Other datagrams are counted and reported in ``trouble``."""
        counts = self.shared.counts
        counts[FlightCount.RECEIVED_BYTES] += len(payload)
        try:
            servos = decode_servos(payload)
        except PacketError as error:
            return self._refuse(f"{peer[0]}:{peer[1]}: {error}")
        now_ns = time.monotonic_ns() - self.epoch_ns
        if peer != self._peer:
            if self._peer is not None and now_ns - self._received_ns <= SILENT_NS:
                return self._refuse(
                    f"{peer[0]}:{peer[1]}: the vehicle must have one simulation at a time, got a second one beside {self._peer[0]}:{self._peer[1]}"
                )
            self._peer, self._count = peer, None
        if servos.rate_fault:
            self.trouble = f"{peer[0]}:{peer[1]}: {servos.rate_fault}; frames are answered with steps of 1/{USUAL_RATE_HZ} s until it is set right"
        counts[FlightCount.RECEIVED_FRAMES] += 1
        order, lost = frame_order(self._count, servos.frame_count)
        self._count = servos.frame_count
        self._received_ns = now_ns
        self.shared.session.word[SessionWord.ACTUATOR_NS] = now_ns
        counts[FlightCount.LOST_FRAMES] += lost
        if order is FrameOrder.FIRST:
            reset(self.flight)
            self._begun_ns = int(self.flight.state.time_ns[0])
        self._enter(SessionState.FLYING, Reason.COMMANDS)
        if order is not FrameOrder.RESENT:
            self._step(servos)
            counts[FlightCount.ACTUATOR_FRAMES] += 1
        counts[FlightCount.SENSOR_FRAMES] += 1
        return encode_report(self._report())

    def _step(self, servos: ServoFrame) -> None:
        if servos.step_ns != self._steps_ns:
            self._steps_ns = servos.step_ns
            parts = -(-servos.step_ns // LONGEST_STEP_NS)
            self.context = self.context._replace(multirotor=build_multirotor(self.vehicle, step_ns=servos.step_ns // parts))
        commands = motor_commands(servos.pwm_us)
        motors = self.flight.command.size
        self.flight.command[:] = commands[:motors]
        advance(self.context, self.flight, self.world, self.shared, self._received_ns, max(1, servos.step_ns // self.context.multirotor.step_ns))
        self._note_pose()

    def _note_pose(self) -> None:
        self._pose[:] = self.flight.state.motion
        if self.shared.session.word[SessionWord.STATE] != SessionState.FLYING:
            self._pose[3:6] = 0.0  # the vehicle is at rest, so its pose is not extrapolated
            self._pose[10:13] = 0.0
        self._noted_ns = max(self._received_ns, self._noted_ns + 1)
        write_state(self.live, self._noted_ns, self._pose)

    def _report(self) -> VehicleReport:
        state = self.flight.state
        rates, position, velocity = rates_of(state), position_of(state), velocity_of(state)
        force = state.specific_force_mps2.tolist()
        turn = multiply(multiply(_NED_FROM_ENU, orientation_of(state)), _FLU_FROM_FRD)
        return VehicleReport(
            time_ns=int(state.time_ns[0]) - self._begun_ns,
            gyro_rps=_forward_right_down(rates),
            accel_mps2=_forward_right_down((force[0], force[1], force[2])),
            position_m=_north_east_down(position),
            velocity_mps=_north_east_down(velocity),
            attitude=(turn[0], turn[1], turn[2], turn[3]),
        )

    def _note_silence(self) -> None:
        silent_ns = time.monotonic_ns() - self.epoch_ns - self._received_ns
        state = self.shared.session.word[SessionWord.STATE]
        if state == SessionState.SILENT and silent_ns > SILENT_NS:
            self._enter(SessionState.CALLING, Reason.SILENCE)
        elif state == SessionState.FLYING and silent_ns > COMMAND_SILENT_NS:
            self.shared.session.word[SessionWord.SILENCES] += 1
            self._enter(SessionState.SILENT, Reason.NO_COMMANDS)
            self._note_pose()

    def _enter(self, state: SessionState, reason: Reason) -> None:
        word = self.shared.session.word
        if word[SessionWord.STATE] != state:
            word[SessionWord.STATE] = state
            word[SessionWord.REASON] = reason
            word[SessionWord.CHANGES] += 1


def _forward_right_down(vector: Vector) -> Vector:
    return vector[0], -vector[1], -vector[2]


def _north_east_down(vector: Vector) -> Vector:
    return vector[1], vector[0], -vector[2]
