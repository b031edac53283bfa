"""Receive path of the flight loop: the controller's frames are forwarded unchanged to ground stations; hilsim processes those meant for it."""

from hilsim.compilation.atomics import store_release
from hilsim.compilation.jit import constant, inlined_kernel, kernel, stage_kernel
from hilsim.parts.vehicle.autopilot.change_table import restore
from hilsim.parts.vehicle.autopilot.loop_context import ControlWord, Flight, FlightCount, FlightWord, LinkBuffers, LoopContext, SharedTelemetry
from hilsim.parts.vehicle.autopilot.send_queue import empty, post
from hilsim.parts.vehicle.autopilot.session import (
    ASKING_NS,
    SessionState,
    SessionWord,
    actuators_came,
    heartbeat_came,
    is_back_disarmed,
    lacks_heartbeat,
    link_changed,
    restarted,
)
from hilsim.parts.vehicle.physics.multirotor import is_damaged, legs_down
from hilsim.protocols.mavlink.codec import read_payload, write_frame
from hilsim.protocols.mavlink.frames import Frame, FrameState, abandon, clear, next_frame, pending
from hilsim.protocols.mavlink.messages import COMMAND_LONG, HEARTBEAT, HIL_ACTUATOR_CONTROLS, HIL_FLAG, TIMESYNC
from hilsim.transmit.links.descriptors import Outcome, pass_on, receive, wake
from hilsim.transmit.packet_queue import waiting
from hilsim.transmit.statistics import bin_index

SILENT_NS = 50_000_000
"""Timeout of an incomplete frame, which is then discarded."""
_HEARTBEAT, _CONTROLS, _TIMESYNC = constant(HEARTBEAT.id), constant(HIL_ACTUATOR_CONTROLS.id), constant(TIMESYNC.id)
_LOG_DATA = constant(120)
_NONE, _CHECKED = constant(FrameState.NONE), constant(FrameState.CHECKED)
_DONE, _GONE = constant(Outcome.DONE), constant(Outcome.GONE)
_MAX_READS = 8
"""Maximum number of reads per turn, so that a flooded link cannot delay the physics."""
_INVALID_AUTOPILOT = constant(8)
_ZERO, _HIL = constant(0), constant(HIL_FLAG)
_FLYING, _SILENT = constant(SessionState.FLYING), constant(SessionState.SILENT)


@kernel
def on_disconnect(flight: Flight, shared: SharedTelemetry, buffers: LinkBuffers) -> None:
    """Handle a lost link: there is no controller, and queued commands must not be executed later."""
    flight.word[FlightWord.IS_OPEN] = 0
    clear(buffers.stream)
    empty(buffers.outbox, shared.to_controller)
    shared.counts[FlightCount.LINK_LOSSES] += 1
    link_changed(shared.session, False)  # noqa: FBT003 - a kernel's positional scalar
    shared.control[ControlWord.CLOSES] = 0
    store_release(shared.control, (1,), -1)


@stage_kernel
def receive_frames(context: LoopContext, flight: Flight, shared: SharedTelemetry, buffers: LinkBuffers, descriptor: int, now_ns: int) -> None:
    """Read available bytes; if the link has ended, disconnect."""
    frames = 0
    for _ in range(_MAX_READS):
        before = pending(buffers.stream)
        outcome = receive(buffers.stream, descriptor, context.line.is_stream)
        if outcome == _GONE:
            on_disconnect(flight, shared, buffers)
            return
        if outcome != _DONE:
            break
        shared.counts[FlightCount.RECEIVED_BYTES] += pending(buffers.stream) - before
        flight.word[FlightWord.RECEIVED_NS] = now_ns
        frames += _take_frames(context, flight, shared, buffers, now_ns)
    if pending(buffers.stream) > 0 and now_ns - flight.word[FlightWord.RECEIVED_NS] > SILENT_NS:
        abandon(buffers.stream)
        frames += _take_frames(context, flight, shared, buffers, now_ns)
    if frames > 0 and shared.wakes[1] >= 0:
        wake(buffers.waits, shared.wakes[1])


@inlined_kernel
def _take_frames(context: LoopContext, flight: Flight, shared: SharedTelemetry, buffers: LinkBuffers, now_ns: int) -> int:
    """Forward every whole frame received; returns their number."""
    count = 0
    while True:
        frame = next_frame(buffers.stream)
        if frame.state == _NONE:
            shared.counts[FlightCount.RECEIVED_FRAMES] += count
            return count
        count += 1
        is_crowded = frame.id == _LOG_DATA and waiting(shared.to_stations) >= shared.to_stations.size.size * 7 // 8  # room for all else
        if is_crowded or not pass_on(buffers.stream, frame, shared.to_stations, now_ns):
            shared.counts[FlightCount.UNFORWARDED_FRAMES] += 1
        if frame.state == _CHECKED:
            _act(context, flight, shared, buffers, frame, now_ns)


@stage_kernel
def _act(context: LoopContext, flight: Flight, shared: SharedTelemetry, buffers: LinkBuffers, frame: Frame, now_ns: int) -> None:
    """Process a frame if it is meant for hilsim."""
    if frame.id == _HEARTBEAT:
        read_payload(buffers.stream.buffer, frame, buffers.received_heartbeat.payload)
        heartbeat = buffers.received_heartbeat.record[0]
        if heartbeat.autopilot != _INVALID_AUTOPILOT:  # the heartbeat of a companion or camera on the same link is not the controller's
            flags = heartbeat.base_mode | (_HIL if context.line.is_simulator else _ZERO)
            is_restart = flags & _HIL != 0 and _is_restart(context, flight, shared, flags)
            heartbeat_came(shared.session, frame.system, frame.component, flags, now_ns)
            if is_restart:
                reset(flight)
                restarted(shared.session)
    elif frame.id == _CONTROLS:
        read_payload(buffers.stream.buffer, frame, buffers.received_controls.payload)
        _steer(context, flight, shared, buffers, now_ns)
    elif frame.id == _TIMESYNC:
        read_payload(buffers.stream.buffer, frame, buffers.received_timesync.payload)
        if buffers.received_timesync.record[0].tc1 == 0:  # a request
            buffers.timesync.record[0].tc1 = now_ns
            buffers.timesync.record[0].ts1 = buffers.received_timesync.record[0].ts1
            post(buffers.outbox, buffers.frame, write_frame(TIMESYNC, buffers.timesync.payload, buffers.origin, buffers.frame))
    if frame.id != _HEARTBEAT and not context.line.is_simulator and lacks_heartbeat(shared.session):
        _ask(flight, buffers, frame, now_ns)


@kernel
def _ask(flight: Flight, buffers: LinkBuffers, frame: Frame, now_ns: int) -> None:
    """Request a heartbeat from the sender of a frame, at a limited rate; hilsim's own frames may return as an echo."""
    is_echo = frame.system == buffers.origin.system and frame.component == buffers.origin.component
    if is_echo or now_ns - flight.word[FlightWord.ASKED_NS] < ASKING_NS:
        return
    flight.word[FlightWord.ASKED_NS] = now_ns
    buffers.request.record[0].target_system = frame.system
    buffers.request.record[0].target_component = frame.component
    post(buffers.outbox, buffers.frame, write_frame(COMMAND_LONG, buffers.request.payload, buffers.origin, buffers.frame))


@kernel
def _is_restart(context: LoopContext, flight: Flight, shared: SharedTelemetry, mode: int) -> bool:
    """Whether a lost controller has returned disarmed to a vehicle that it cannot fly, in the air, crashed or without blades. A landed vehicle stays in place."""
    if not is_back_disarmed(shared.session, mode):
        return False
    was_flown = shared.session.word[SessionWord.WAS_ARMED] == 1 and legs_down(context.multirotor, flight.state) == 0
    return was_flown or is_damaged(flight.state)


@inlined_kernel
def _steer(context: LoopContext, flight: Flight, shared: SharedTelemetry, buffers: LinkBuffers, now_ns: int) -> None:
    """Apply motor commands and record their timing."""
    controls, session, word = buffers.received_controls.record[0], shared.session, flight.word
    before_ns = session.word[SessionWord.ACTUATOR_NS]
    if before_ns > 0:
        shared.gap[bin_index(now_ns - before_ns)] += 1
        shared.sums_ns[2] += now_ns - before_ns
    if word[FlightWord.IS_AWAITED] == 1:
        shared.round_trip[bin_index(now_ns - word[FlightWord.SENT_NS])] += 1
        shared.sums_ns[1] += now_ns - word[FlightWord.SENT_NS]
        word[FlightWord.IS_AWAITED] = 0
    shared.counts[FlightCount.ACTUATOR_FRAMES] += 1
    if context.line.is_simulator:
        session.word[SessionWord.HEARTBEAT_NS] = now_ns  # in lockstep, the clock of the controller's heartbeats may be stopped
    is_late = session.word[SessionWord.LOCKSTEP] == 0 or session.word[SessionWord.STATE] == _SILENT or word[FlightWord.DRAINING_NS] > 0
    if context.is_lockstep and is_late:
        word[FlightWord.DRAINING_NS] = now_ns
    is_flying = session.word[SessionWord.STATE] == _FLYING or session.word[SessionWord.STATE] == _SILENT
    is_restart = is_flying and _is_restart(context, flight, shared, controls.mode)
    is_reboot = actuators_came(session, controls.controls, controls.mode, controls.time_usec, controls.flags, now_ns)
    if is_restart and not is_reboot:
        restarted(session)
    if is_restart or is_reboot:
        reset(flight)


@stage_kernel
def reset(flight: Flight) -> None:
    """Reset the vehicle to its initial state, at rest."""
    restore(flight.state, flight.start, flight.command)
    flight.imu_sums[:] = 0.0
    flight.word[FlightWord.NEXT_LOOK_NS] = flight.word[FlightWord.NEXT_STEP_NS]  # the surfaces around the initial position are different
