"""The flight loop: physics at 1 kHz, sensor frames at their rate, motor commands on arrival; one thread, without the GIL.

Each turn reads the controller's bytes, makes the steps that are due, sends the sensor frames that are due, and waits for the next step or for bytes. After the machine stalled for more than
``STALL_NS``, that time is skipped: the vehicle did not fly in it, and frames are not sent at a higher rate afterwards. Without a controller in command the vehicle does not move; while a controller that was in
command before is woken, the vehicle is held in place and its sensors report that.
"""

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import load_acquire
from hilsim.compilation.jit import constant, inlined_kernel, kernel, stage_kernel
from hilsim.compilation.pins import tuple_at
from hilsim.parts.vehicle.autopilot.breaking import weakened
from hilsim.parts.vehicle.autopilot.change_table import FAULTS, WORLD, Effect, begin_changes, wind_now
from hilsim.parts.vehicle.autopilot.loop_context import Flight, FlightCount, FlightWord, LinkBuffers, LoopContext, SharedTelemetry
from hilsim.parts.vehicle.autopilot.receive import on_disconnect, receive_frames, reset
from hilsim.parts.vehicle.autopilot.send import make_rest, make_sensors, send_frames
from hilsim.parts.vehicle.autopilot.send_queue import empty
from hilsim.parts.vehicle.autopilot.session import (
    ASKING_NS,
    Reason,
    SessionState,
    SessionWord,
    is_free,
    link_changed,
    port_is_full,
    stood_still,
    time_passed,
    wants_sensors,
)
from hilsim.parts.vehicle.physics.hold import hold_command
from hilsim.parts.vehicle.physics.multirotor import orientation_of, step
from hilsim.parts.vehicle.physics.surroundings import LOOK_NS, carry_planes, look_around
from hilsim.parts.vehicle.physics.touching import note_touch
from hilsim.transmit.libc import monotonic_ns
from hilsim.transmit.links.descriptors import Outcome, Readiness, await_input, clear_wake, discard_output
from hilsim.world.geometry.rotations import conjugate, rotate
from hilsim.world.platforms.live import LivePose, write_state
from hilsim.world.scene.world import World

STALL_NS = 20_000_000
LOCKSTEP_NS = 1_000_000_000
"""Longest wait for the answer of a controller in lockstep (AirSim's value)."""
DRAIN_NS = 100_000_000
"""Time after a controller's first answer in lockstep, or its first one after a silence: several earlier sensor frames may be unanswered, because time advances also for a controller that
boots or stands still. All are answered by then."""
_FLYING = constant(SessionState.FLYING)
_SILENT, _UNPLUGGED = constant(SessionState.SILENT), constant(SessionState.UNPLUGGED)
_GONE, _FULL, _WOKEN = constant(Outcome.GONE), constant(Outcome.FULL), constant(Readiness.WOKEN)
_SILENCE = constant(Reason.SILENCE)
_NONE, _LEAP = constant(Effect.NONE), constant(Effect.LEAP)
_NOT_DUE = constant(-1)


class Motion(IntEnum):
    """Motion of the vehicle in a step."""

    STILL = 0
    """No step: the controller's own time stops as well."""
    FREE = 1
    """The vehicle flies, falls, or rests."""
    HELD = 2
    """Time advances, and the sensors measure a vehicle held in place."""


_STILL, _FREE, _HELD = constant(Motion.STILL), constant(Motion.FREE), constant(Motion.HELD)


@kernel
def commands_now(context: LoopContext, flight: Flight, shared: SharedTelemetry, rig_ns: int) -> npt.NDArray[np.float64]:
    """Commands ``float64[n]`` that the motors follow, with their faults at a rig time."""
    address = shared.changes.words[FAULTS]
    faults = context.no_faults if address == 0 else tuple_at(address, context.no_faults)
    return weakened(faults, context.multirotor, flight.command, rig_ns) if faults.effect.size > 0 else flight.command


@stage_kernel
def fly_step(context: LoopContext, flight: Flight, shared: SharedTelemetry, rig_ns: int) -> None:
    """Make one step of the vehicle, controlled by the controller or the position hold."""
    state = flight.state
    if context.is_held:
        if state.time_ns[0] % context.hold.period_ns == 0:
            hold_command(context.hold, flight.hold_state, context.multirotor, state, context.track, flight.command)
    else:
        for motor in range(flight.command.size):
            flight.command[motor] = shared.session.control[motor]
    for part in range(3):
        flight.imu_sums[3 + part] += 0.5 * state.motion[10 + part]
    command = commands_now(context, flight, shared, rig_ns)
    wind_mps = wind_now(shared.changes, context.wind, flight.wind_state, state.time_ns[0])
    step(context.multirotor, state, command, wind_mps, flight.around.ground, flight.around.obstacles)
    note_touch(context.multirotor, state, flight.around.ground, flight.around.obstacles, shared.touch, rig_ns)
    carry_planes(flight.around, 1e-9 * context.multirotor.step_ns)
    for part in range(3):
        flight.imu_sums[part] += state.specific_force_mps2[part]
        flight.imu_sums[3 + part] += 0.5 * state.motion[10 + part]
    flight.imu_sums[6] += 1.0


@kernel
def _hold_step(context: LoopContext, flight: Flight) -> None:
    """Make one step of a vehicle held in place; its velocity on release does not matter."""
    flight.state.time_ns[0] += context.multirotor.step_ns
    w, x, y, z = orientation_of(flight.state)
    fx, fy, fz = rotate(conjugate((w, x, y, z)), (0.0, 0.0, context.multirotor.airframe.gravity_mps2))
    flight.imu_sums[0] += fx
    flight.imu_sums[1] += fy
    flight.imu_sums[2] += fz
    flight.imu_sums[6] += 1.0


@kernel
def attend_changes(context: LoopContext, flight: Flight, shared: SharedTelemetry, rig_ns: int) -> int:
    """Make the timed changes whose time has come with the step of ``rig_ns``; returns their ``Effect``."""
    return begin_changes(shared.changes, context.wind, flight.state, flight.start, flight.wind_state, flight.hold_state, flight.command, rig_ns)


@kernel
def look_now(context: LoopContext, flight: Flight, world: World, shared: SharedTelemetry, rig_ns: int) -> None:
    """Find what the vehicle can touch, in ``world`` or in the one that has replaced it."""
    address = shared.changes.words[WORLD]
    if address == 0:
        look_around(world, context.multirotor, flight.state, rig_ns, flight.around)
    else:
        look_around(tuple_at(address, world), context.multirotor, flight.state, rig_ns, flight.around)


@inlined_kernel
def _motion(context: LoopContext, shared: SharedTelemetry, now_ns: int) -> int:
    """``Motion`` of the steps that are due."""
    if context.is_held or is_free(shared.session):
        return _FREE
    return _HELD if wants_sensors(shared.session, context.line.is_simulator, now_ns) else _STILL


@inlined_kernel
def _attend_change(flight: Flight, shared: SharedTelemetry, buffers: LinkBuffers, descriptor: int) -> None:
    """When the controller has lost command, discard the frames queued for it, so that the next one does not receive them."""
    state = shared.session.word[SessionWord.STATE]
    was = flight.word[FlightWord.SEEN_STATE]
    if state == was:
        return
    flight.word[FlightWord.SEEN_STATE] = state
    if was in {_FLYING, _SILENT} and state not in {_FLYING, _UNPLUGGED}:
        empty(buffers.outbox, shared.to_controller)
        discard_output(descriptor)


@inlined_kernel
def _note_pose(flight: Flight, live: LivePose, rig_ns: int, is_moving: bool, pose: npt.NDArray[np.float64]) -> None:  # noqa: FBT001 - a kernel takes plain positional scalars
    """Publish the vehicle's pose for the sensors' threads."""
    pose[:] = flight.state.motion
    if not is_moving:
        pose[3:6] = 0.0
        pose[10:13] = 0.0
    write_state(live, rig_ns, pose)


@inlined_kernel
def _attend_link(context: LoopContext, flight: Flight, shared: SharedTelemetry, buffers: LinkBuffers, now_ns: int) -> int:
    """Handle a link that was opened or must be closed; returns its descriptor, -1 for none."""
    descriptor = load_acquire(shared.control, (1,))
    if descriptor < 0:
        return descriptor
    if flight.word[FlightWord.IS_OPEN] == 0:
        flight.word[FlightWord.IS_OPEN] = 1
        flight.word[FlightWord.NEXT_SECOND_NS] = now_ns
        flight.word[FlightWord.NEXT_GPS_NS] = now_ns
        flight.word[FlightWord.IS_AWAITED] = 0
        flight.word[FlightWord.ASKED_NS] = now_ns - ASKING_NS
        flight.word[FlightWord.RECEIVED_NS] = now_ns
        shared.session.word[SessionWord.ACTUATOR_NS] = 0
        shared.session.word[SessionWord.UNANSWERED_NS] = 0
        shared.session.word[SessionWord.LOCKSTEP] = 0
        flight.word[FlightWord.DRAINING_NS] = 0
        empty(buffers.outbox, shared.to_controller)  # commands that ground stations sent in the meantime must not be executed now
        if context.line.is_simulator and flight.word[FlightWord.FRAMES] > 0:
            reset(flight)  # PX4's simulation was restarted; its clock is hilsim's and does not show it
            shared.session.word[SessionWord.RESET] = 1
            shared.session.word[SessionWord.HAS_STEERED] = 0
        link_changed(shared.session, True)  # noqa: FBT003 - a kernel's positional scalar
    if load_acquire(shared.control, (2,)) == 1:
        on_disconnect(flight, shared, buffers)
        return -1
    return descriptor


@inlined_kernel
def _skip_lost_time(context: LoopContext, flight: Flight, shared: SharedTelemetry, now_ns: int) -> None:
    """After a stall of the machine: continue from now."""
    lost_ns = now_ns - flight.word[FlightWord.NEXT_STEP_NS]
    if lost_ns > STALL_NS:
        shared.counts[FlightCount.STALLS] += 1
        shared.counts[FlightCount.SKIPPED_SENSORS] += lost_ns // context.instruments.frame_ns
        flight.word[FlightWord.NEXT_STEP_NS] = now_ns
        flight.word[FlightWord.NEXT_SENSOR_NS] = now_ns
        stood_still(shared.session, lost_ns)


@inlined_kernel
def _awaits_answer(context: LoopContext, flight: Flight, shared: SharedTelemetry, now_ns: int) -> bool:
    """Whether a controller in lockstep, or one that stands still on PX4's simulator link, has yet to answer the last sensor frame."""
    word, session = flight.word, shared.session.word
    is_stopped = session[SessionWord.STATE] == _SILENT and session[SessionWord.REASON] == _SILENCE and session[SessionWord.HAS_STEERED] == 1
    if not is_stopped and (not context.is_lockstep or session[SessionWord.LOCKSTEP] == 0):
        return False
    if word[FlightWord.DRAINING_NS] > 0:
        if now_ns - word[FlightWord.DRAINING_NS] < DRAIN_NS:
            return True
        word[FlightWord.DRAINING_NS] = 0
        word[FlightWord.IS_AWAITED] = 0
    if word[FlightWord.IS_AWAITED] == 0:
        return False
    if now_ns - word[FlightWord.SENT_NS] > LOCKSTEP_NS:
        word[FlightWord.IS_AWAITED] = 0
        shared.counts[FlightCount.LOCKSTEP_TIMEOUTS] += 1
        return False
    return True


@stage_kernel
def make_steps(
    context: LoopContext,
    flight: Flight,
    world: World,
    live: LivePose,
    shared: SharedTelemetry,
    motion: int,
    now_ns: int,
    pose: npt.NDArray[np.float64],
) -> int:
    """Make the steps that are due; returns the due time of the sensor frame to send now, ``_NOT_DUE`` for none."""
    word = flight.word
    due_ns = _NOT_DUE
    while word[FlightWord.NEXT_STEP_NS] <= now_ns:
        if _awaits_answer(context, flight, shared, now_ns):
            waited_ns = now_ns + context.multirotor.step_ns - word[FlightWord.NEXT_STEP_NS]
            word[FlightWord.NEXT_STEP_NS] += waited_ns
            word[FlightWord.NEXT_SENSOR_NS] += waited_ns  # the number of steps between frames is constant, however slow the controller is
            break
        step_ns = word[FlightWord.NEXT_STEP_NS]
        pose[:] = flight.state.motion
        effect = attend_changes(context, flight, shared, step_ns)
        if effect == _LEAP:
            pose[3:6] = 0.0
            pose[10:13] = 0.0
            write_state(live, step_ns - 1, pose)  # the pose leaps within a nanosecond, not within a step
        if effect != _NONE or step_ns >= word[FlightWord.NEXT_LOOK_NS]:
            look_now(context, flight, world, shared, step_ns)
            word[FlightWord.NEXT_LOOK_NS] = step_ns + LOOK_NS
            shared.counts[FlightCount.LOOKS] += 1
        if motion == _FREE:
            fly_step(context, flight, shared, step_ns)
        elif motion == _HELD:
            _hold_step(context, flight)
        _note_pose(flight, live, step_ns, motion == _FREE, pose)
        word[FlightWord.NEXT_STEP_NS] = step_ns + context.multirotor.step_ns
        if step_ns >= word[FlightWord.NEXT_SENSOR_NS]:
            if due_ns != _NOT_DUE:
                shared.counts[FlightCount.SKIPPED_SENSORS] += 1
            due_ns = word[FlightWord.NEXT_SENSOR_NS]
            word[FlightWord.NEXT_SENSOR_NS] += context.instruments.frame_ns
            if context.is_lockstep:
                break
    return due_ns


@kernel
def fly(
    context: LoopContext,
    flight: Flight,
    world: World,
    live: LivePose,
    shared: SharedTelemetry,
    buffers: LinkBuffers,
    epoch_ns: int,
    utc_epoch_ns: int,
) -> None:
    """Fly until ``shared`` requests the end.

    Args:
        context: Vehicle, sensors and line; constants.
        flight: State of the flight.
        world: World of surfaces that the vehicle can touch.
        live: Destination of the vehicle's poses, for its sensors.
        shared: Data shared with the daemon.
        buffers: Buffers of the link.
        epoch_ns: CLOCK_MONOTONIC time of rig time 0.
        utc_epoch_ns: UTC of rig time 0.
    """
    word, session = flight.word, shared.session
    pose = np.empty(13)
    word[FlightWord.NEXT_STEP_NS] = monotonic_ns() - epoch_ns
    word[FlightWord.NEXT_SENSOR_NS] = word[FlightWord.NEXT_STEP_NS]
    while load_acquire(shared.control, (0,)) == 0:
        now_ns = monotonic_ns() - epoch_ns
        _skip_lost_time(context, flight, shared, now_ns)
        descriptor = _attend_link(context, flight, shared, buffers, now_ns)
        if descriptor >= 0:
            receive_frames(context, flight, shared, buffers, descriptor, now_ns)
            time_passed(session, context.line.is_simulator, now_ns)
            if word[FlightWord.IS_OPEN] == 1:
                _attend_change(flight, shared, buffers, descriptor)
        due_ns = make_steps(context, flight, world, live, shared, _motion(context, shared, now_ns), now_ns, pose)
        if word[FlightWord.IS_OPEN] == 1:
            if due_ns != _NOT_DUE and wants_sensors(session, context.line.is_simulator, now_ns):
                make_sensors(context, flight, shared, buffers, due_ns)
            make_rest(context, flight, shared, buffers, live, descriptor, now_ns, utc_epoch_ns)
            outcome = send_frames(context, flight, shared, buffers, descriptor, epoch_ns)
            if outcome == _GONE:
                on_disconnect(flight, shared, buffers)
            elif outcome == _FULL:
                port_is_full(session, now_ns)
        rest_ns = epoch_ns + word[FlightWord.NEXT_STEP_NS] - monotonic_ns()
        listens = descriptor if word[FlightWord.IS_OPEN] == 1 else -1
        if rest_ns > 0 and await_input(buffers.waits, listens, shared.wakes[0], rest_ns) & _WOKEN:
            clear_wake(buffers.waits, shared.wakes[0])


@kernel
def fly_ahead(
    context: LoopContext,
    flight: Flight,
    world: World,
    shared: SharedTelemetry,
    begin_ns: int,
    time_ns: npt.NDArray[np.int64],
    motion: npt.NDArray[np.float64],
) -> None:
    """Fly without a controller and without waiting, controlled by the position hold.

    Args:
        context: Vehicle, sensors and line; constants.
        flight: State at ``begin_ns``.
        world: World of surfaces that the vehicle can touch.
        shared: Telemetry, used by no other thread.
        begin_ns: Rig time at which it begins, a multiple of the step.
        time_ns: ``int64[m]``, rig times of the rows, multiples of the step.
        motion: ``float64[m, 13]``, output: motions.
    """
    rig_ns = begin_ns
    for row in range(time_ns.size):
        while rig_ns < time_ns[row]:
            if rig_ns % LOOK_NS == 0 or rig_ns == begin_ns:
                look_now(context, flight, world, shared, rig_ns)
            fly_step(context, flight, shared, rig_ns)
            rig_ns += context.multirotor.step_ns
        motion[row] = flight.state.motion
