"""The loop's ears: what the controller sent is passed on to ground stations as it came, and what is meant for hilsim is acted on."""

from hilsim._atomics import store_release
from hilsim._jit import constant, inlined_kernel, kernel
from hilsim.autopilot.loop_context import ControlWord, Craft, Flight, FlightCount, FlightWord, Talk, Watch
from hilsim.autopilot.send_queue import empty, post
from hilsim.autopilot.session import (
    ASKING_NS,
    HIL_FLAG,
    SessionState,
    SessionWord,
    actuators_came,
    heartbeat_came,
    is_back_disarmed,
    lacks_heartbeat,
    link_changed,
    restarted,
)
from hilsim.links.descriptors import Outcome, pass_on, receive, wake
from hilsim.protocols.mavlink.codec import read_payload, write_frame
from hilsim.protocols.mavlink.frames import Frame, FrameState, abandon, clear, next_frame, pending
from hilsim.protocols.mavlink.messages import COMMAND_LONG, HEARTBEAT, HIL_ACTUATOR_CONTROLS, TIMESYNC
from hilsim.transmit.statistics import bin_index
from hilsim.vehicle.multirotor import legs_down

SILENT_NS = 50_000_000
"""A frame that began and did not go on for so long is given up."""
_HEARTBEAT, _CONTROLS, _TIMESYNC = constant(HEARTBEAT.id), constant(HIL_ACTUATOR_CONTROLS.id), constant(TIMESYNC.id)
_NONE, _CHECKED = constant(FrameState.NONE), constant(FrameState.CHECKED)
_DONE, _GONE = constant(Outcome.DONE), constant(Outcome.GONE)
_MOST_READS = 8
"""In a turn: whoever floods a link cannot hold up the physics."""
_INVALID_AUTOPILOT = constant(8)
_ZERO, _HIL = constant(0), constant(HIL_FLAG)
_FLYING, _SILENT = constant(SessionState.FLYING), constant(SessionState.SILENT)


@kernel
def lose_link(flight: Flight, watch: Watch, talk: Talk) -> None:
    """The link is gone: nobody steers, and what waits to be sent must not be obeyed later."""
    flight.word[FlightWord.IS_OPEN] = 0
    clear(talk.stream)
    empty(talk.outbox, watch.to_controller)
    watch.counts[FlightCount.LINK_LOSSES] += 1
    link_changed(watch.session, False)  # noqa: FBT003 - a kernel's positional scalar
    watch.control[ControlWord.CLOSES] = 0
    store_release(watch.control, (1,), -1)


@inlined_kernel
def hear(craft: Craft, flight: Flight, watch: Watch, talk: Talk, descriptor: int, now_ns: int) -> None:
    """Read what came; at the end of a link it is lost."""
    heard = 0
    for _ in range(_MOST_READS):
        before = pending(talk.stream)
        outcome = receive(talk.stream, descriptor, craft.line.is_stream)
        if outcome == _GONE:
            lose_link(flight, watch, talk)
            return
        if outcome != _DONE:
            break
        watch.counts[FlightCount.RECEIVED_BYTES] += pending(talk.stream) - before
        flight.word[FlightWord.HAS_HEARD_NS] = now_ns
        heard += _take_frames(craft, flight, watch, talk, now_ns)
    if pending(talk.stream) > 0 and now_ns - flight.word[FlightWord.HAS_HEARD_NS] > SILENT_NS:
        abandon(talk.stream)
        heard += _take_frames(craft, flight, watch, talk, now_ns)
    if heard > 0 and watch.wakes[1] >= 0:
        wake(talk.waits, watch.wakes[1])


@inlined_kernel
def _take_frames(craft: Craft, flight: Flight, watch: Watch, talk: Talk, now_ns: int) -> int:
    """Pass on every whole frame that came; returns how many."""
    count = 0
    while True:
        frame = next_frame(talk.stream)
        if frame.state == _NONE:
            watch.counts[FlightCount.RECEIVED_FRAMES] += count
            return count
        count += 1
        if not pass_on(talk.stream, frame, watch.to_stations, now_ns):
            watch.counts[FlightCount.UNFORWARDED_FRAMES] += 1
        if frame.state == _CHECKED:
            _act(craft, flight, watch, talk, frame, now_ns)


@kernel
def _act(craft: Craft, flight: Flight, watch: Watch, talk: Talk, frame: Frame, now_ns: int) -> None:
    """Act on a frame if it is meant for us."""
    if frame.id == _HEARTBEAT:
        read_payload(talk.stream.buffer, frame, talk.heard_heartbeat.payload)
        said = talk.heard_heartbeat.record[0]
        if said.autopilot != _INVALID_AUTOPILOT:  # a companion's or camera's heartbeat on the same link says nothing of the controller
            flags = said.base_mode | (_HIL if craft.line.is_simulator else _ZERO)
            is_restart = flags & _HIL != 0 and _is_restart(craft, flight, watch, flags)
            heartbeat_came(watch.session, frame.system, frame.component, flags, now_ns)
            if is_restart:
                begin_anew(flight)
                restarted(watch.session)
    elif frame.id == _CONTROLS:
        read_payload(talk.stream.buffer, frame, talk.heard_controls.payload)
        _steer(craft, flight, watch, talk, now_ns)
    elif frame.id == _TIMESYNC:
        read_payload(talk.stream.buffer, frame, talk.heard_timesync.payload)
        if talk.heard_timesync.record[0].tc1 == 0:  # a request
            talk.timesync.record[0].tc1 = now_ns
            talk.timesync.record[0].ts1 = talk.heard_timesync.record[0].ts1
            post(talk.outbox, talk.frame, write_frame(TIMESYNC, talk.timesync.payload, talk.origin, talk.frame))
    if frame.id != _HEARTBEAT and not craft.line.is_simulator and lacks_heartbeat(watch.session):
        _ask(flight, talk, frame, now_ns)


@kernel
def _ask(flight: Flight, talk: Talk, frame: Frame, now_ns: int) -> None:
    """Ask who sent a frame for its heartbeat, not too often; hilsim's own frames may come back as an echo."""
    is_echo = frame.system == talk.origin.system and frame.component == talk.origin.component
    if is_echo or now_ns - flight.word[FlightWord.ASKED_NS] < ASKING_NS:
        return
    flight.word[FlightWord.ASKED_NS] = now_ns
    talk.request.record[0].target_system = frame.system
    talk.request.record[0].target_component = frame.component
    post(talk.outbox, talk.frame, write_frame(COMMAND_LONG, talk.request.payload, talk.origin, talk.frame))


@kernel
def _is_restart(craft: Craft, flight: Flight, watch: Watch, mode: int) -> bool:
    """Whether a controller that was lost has come back disarmed to a vehicle that it cannot fly: one in the air, or one that has crashed. One that stands where it landed stays there."""
    if not is_back_disarmed(watch.session, mode):
        return False
    was_flown = watch.session.word[SessionWord.WAS_ARMED] == 1 and legs_down(craft.multirotor, flight.state) == 0
    return bool(was_flown or flight.state.crashed[0] == 1)


@inlined_kernel
def _steer(craft: Craft, flight: Flight, watch: Watch, talk: Talk, now_ns: int) -> None:
    """Take motor commands, and note how they were timed."""
    said, session, word = talk.heard_controls.record[0], watch.session, flight.word
    before_ns = session.word[SessionWord.ACTUATOR_NS]
    if before_ns > 0:
        watch.gap[bin_index(now_ns - before_ns)] += 1
        watch.sums_ns[2] += now_ns - before_ns
    if word[FlightWord.IS_AWAITED] == 1:
        watch.round_trip[bin_index(now_ns - word[FlightWord.SENT_NS])] += 1
        watch.sums_ns[1] += now_ns - word[FlightWord.SENT_NS]
        word[FlightWord.IS_AWAITED] = 0
    watch.counts[FlightCount.ACTUATOR_FRAMES] += 1
    if craft.line.is_simulator:
        session.word[SessionWord.HEARTBEAT_NS] = now_ns  # a controller in lockstep may send heartbeats by a clock that stands still
    if craft.is_lockstep and (session.word[SessionWord.LOCKSTEP] == 0 or word[FlightWord.DRAINING_NS] > 0):
        word[FlightWord.DRAINING_NS] = now_ns
    is_flying = session.word[SessionWord.STATE] == _FLYING or session.word[SessionWord.STATE] == _SILENT
    is_restart = is_flying and _is_restart(craft, flight, watch, said.mode)
    is_reboot = actuators_came(session, said.controls, said.mode, said.time_usec, said.flags, now_ns)
    if is_restart and not is_reboot:
        restarted(session)
    if is_restart or is_reboot:
        begin_anew(flight)


@kernel
def begin_anew(flight: Flight) -> None:
    """Put the vehicle where it began, at rest."""
    flight.state.motion[:] = flight.start
    flight.state.rotor_radps[:] = 0.0
    flight.state.impulse_ns[:] = 0.0
    flight.state.crashed[0] = 0
    flight.command[:] = 0.0
    flight.felt[:] = 0.0
    flight.word[FlightWord.NEXT_LOOK_NS] = flight.word[FlightWord.NEXT_STEP_NS]  # what it may touch is another thing there
