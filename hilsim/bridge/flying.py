"""The loop that flies a vehicle under a flight controller: physics at 1 kHz, sensors on the beat, motors as they come; one thread, without the GIL.

Each turn reads what the controller sent, makes the steps that are due, sends the sensors that are due, and sleeps until the next step. A machine that stood still for longer than
``STALL_NS`` loses that time: the vehicle did not fly in it, and no frame is sent twice as fast afterwards. While no controller steers the vehicle it does not move.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim._atomics import load_acquire
from hilsim._jit import constant, kernel
from hilsim.bridge.cable import Cable, CableCount, flush, send
from hilsim.bridge.codec import read_payload, write_frame
from hilsim.bridge.frames import FrameState, append, make_room, next_frame
from hilsim.bridge.instruments import RESET_FIELD, Instruments, fill_gps, fill_sensor
from hilsim.bridge.messages import HEARTBEAT, HIL_ACTUATOR_CONTROLS, HIL_GPS, HIL_SENSOR, TIMESYNC, Draft, Origin
from hilsim.bridge.session import (
    Session,
    SessionState,
    SessionWord,
    actuators_came,
    heartbeat_came,
    link_changed,
    time_passed,
)
from hilsim.bridge.surroundings import LOOK_NS, Surroundings, look_around
from hilsim.geometry.tracks import PoseTrack
from hilsim.scene.world import World
from hilsim.transmit.libc import monotonic_ns, read_bytes, sleep_until
from hilsim.transmit.statistics import bin_index
from hilsim.transmit.tape import Tape, put, release, waiting
from hilsim.vehicle.hold import Hold, HoldState, hold_command
from hilsim.vehicle.live import LivePose, write_state
from hilsim.vehicle.multirotor import Multirotor, MultirotorState, step
from hilsim.vehicle.wind import Wind, WindState, wind_at

STALL_NS = 20_000_000
LOCKSTEP_NS = 1_000_000_000
"""A controller in lockstep that does not answer for so long is not waited for any more (AirSim's figure)."""
_MOST_FROM_STATIONS = 16
_FRAME = constant(280)
_FLYING = constant(SessionState.FLYING)
_UNPLUGGED = constant(SessionState.UNPLUGGED)
_STATE, _RESET, _ACTUATOR_NS = constant(SessionWord.STATE), constant(SessionWord.RESET), constant(SessionWord.ACTUATOR_NS)
_LOCKSTEP, _SYSTEM = constant(SessionWord.LOCKSTEP), constant(SessionWord.SYSTEM)
_CHECKED, _NO_FRAME = constant(FrameState.CHECKED), constant(FrameState.NONE)
_ZERO, _INVALID_AUTOPILOT, _HIL = constant(0), constant(8), constant(0x20)
_RECEIVED_FRAMES, _RECEIVED_BYTES = constant(CableCount.RECEIVED_FRAMES), constant(CableCount.RECEIVED_BYTES)
_REPLACED, _SKIPPED, _STALLS = constant(CableCount.REPLACED_SENSORS), constant(CableCount.SKIPPED_SENSORS), constant(CableCount.STALLS)
_UNFORWARDED, _FORWARDED = constant(CableCount.UNFORWARDED_FRAMES), constant(CableCount.FORWARDED_TO_CONTROLLER)
_LINK_LOSSES, _SENSORS, _POSITIONS = constant(CableCount.LINK_LOSSES), constant(CableCount.SENSOR_FRAMES), constant(CableCount.GPS_FRAMES)
_ACTUATORS, _LOOKS, _TIMEOUTS = constant(CableCount.ACTUATOR_FRAMES), constant(CableCount.LOOKS), constant(CableCount.LOCKSTEP_TIMEOUTS)


class Craft(NamedTuple):
    """What flies; constants.

    Attributes:
        multirotor: The vehicle.
        wind: About it.
        instruments: On it.
        is_held: The built-in position hold steers it, no controller.
        hold: The position hold.
        track: Where the hold flies.
        is_lockstep: The controller's clock is the sensors' time (PX4's simulator link): physics waits for its answers.
        heartbeat_ns: Between heartbeats; 0: none (PX4's simulator link needs none).
    """

    multirotor: Multirotor
    wind: Wind
    instruments: Instruments
    is_held: bool
    hold: Hold
    track: PoseTrack
    is_lockstep: bool
    heartbeat_ns: int


class Flight(NamedTuple):
    """What changes; the loop's own.

    Attributes:
        state: Of the vehicle, in its own time, which stands still with it.
        start: ``float64[13]``, motion that it begins with, also after a controller's restart.
        wind_state: Of the gusts.
        hold_state: Of the position hold.
        command: ``float64[n]``, of the rotors.
        felt: ``float64[8]``: sums of specific force and rates since the sensor frame before, and how many.
        around: What it can touch.
        word: ``int64[16]``, columns below.
    """

    state: MultirotorState
    start: npt.NDArray[np.float64]
    wind_state: WindState
    hold_state: HoldState
    command: npt.NDArray[np.float64]
    felt: npt.NDArray[np.float64]
    around: Surroundings
    word: npt.NDArray[np.int64]


_NEXT_STEP, _NEXT_SENSOR, _NEXT_GPS, _NEXT_HEARTBEAT, _NEXT_LOOK, _FRAMES, _SENT_NS, _AWAITED, _IS_OPEN, _GPS_WAITS = range(10)


class Talk(NamedTuple):
    """Messages in the making, and who sends them."""

    origin: Origin
    heartbeat: Draft
    sensor: Draft
    gps: Draft
    timesync: Draft
    heard_heartbeat: Draft
    heard_controls: Draft
    heard_timesync: Draft
    frame: npt.NDArray[np.uint8]


class Watch(NamedTuple):
    """What is told of the loop to the rest of the daemon; histograms have the bins of ``transmit.statistics``.

    Attributes:
        control: ``int64[8]``: column 0: 1 ends the loop; column 1: the link's descriptor, -1 for none; written by others.
        session: See there.
        cable: See there; its counts.
        lateness: ``int64[BINS]``, of sensor frames.
        round_trip: ``int64[BINS]``, from a sensor frame to the next motor command.
        gap: ``int64[BINS]``, between motor commands.
        to_stations: Frames of the controller.
        to_controller: Frames of ground stations.
    """

    control: npt.NDArray[np.int64]
    session: Session
    cable: Cable
    lateness: npt.NDArray[np.int64]
    round_trip: npt.NDArray[np.int64]
    gap: npt.NDArray[np.int64]
    to_stations: Tape
    to_controller: Tape


@kernel
def _count(watch: Watch, column: int, amount: int) -> None:
    watch.cable.counts[column] += amount


@kernel
def _lose(flight: Flight, watch: Watch) -> None:
    """The link is gone: nobody steers, and half a frame is of no use."""
    flight.word[_IS_OPEN] = 0
    watch.cable.out.place[:] = 0
    watch.cable.stream.place[:] = 0
    watch.cable.counts[_LINK_LOSSES] += 1
    watch.control[1] = -1
    link_changed(watch.session, False)  # noqa: FBT003 - a kernel's positional scalar


@kernel
def _tell(watch: Watch, flight: Flight, descriptor: int, talk: Talk, message: Any, draft: Draft) -> bool:
    """Send a message; returns whether it went."""
    size = write_frame(message, draft.payload, talk.origin, talk.frame)
    went = send(watch.cable, descriptor, talk.frame, size)
    if went < 0:
        _lose(flight, watch)
    elif went == 0:
        talk.origin.sequence[0] -= 1  # the number was not used
    return went == 1


@kernel
def _hear(craft: Craft, flight: Flight, watch: Watch, talk: Talk, descriptor: int, now_ns: int) -> None:
    """Read what the controller sent, act on what is meant for us, pass everything on."""
    stream = watch.cable.stream
    while True:
        make_room(stream)
        got = read_bytes(descriptor, watch.cable.heard, _ZERO, watch.cable.heard.size)
        if got < 0:
            _lose(flight, watch)
            return
        if got == 0:
            return
        _count(watch, _RECEIVED_BYTES, got)
        append(stream, watch.cable.heard[:got])
        while True:
            frame = next_frame(stream)
            if frame.state == _NO_FRAME:
                break
            _count(watch, _RECEIVED_FRAMES, 1)
            if not put(watch.to_stations, frame.id, now_ns, frame.state, stream.buffer[frame.start : frame.start + frame.size], frame.size):
                _count(watch, _UNFORWARDED, 1)
            if frame.state == _CHECKED:
                _act(craft, flight, watch, talk, descriptor, frame, now_ns)
            if flight.word[_IS_OPEN] == 0:
                return


@kernel
def _act(craft: Craft, flight: Flight, watch: Watch, talk: Talk, descriptor: int, frame: Any, now_ns: int) -> None:
    """Act on a frame that is meant for us."""
    stream, session = watch.cable.stream, watch.session
    if frame.id == HEARTBEAT.id:
        read_payload(stream.buffer, frame, talk.heard_heartbeat.payload)
        said = talk.heard_heartbeat.record[0]
        if said.autopilot != _INVALID_AUTOPILOT:  # a companion's or camera's heartbeat on the same link says nothing of the controller
            heartbeat_came(session, frame.system, frame.component, said.base_mode | (_HIL if craft.is_lockstep else _ZERO), now_ns)
    elif frame.id == HIL_ACTUATOR_CONTROLS.id:
        read_payload(stream.buffer, frame, talk.heard_controls.payload)
        said = talk.heard_controls.record[0]
        before_ns = session.word[_ACTUATOR_NS]
        if before_ns > 0:
            watch.gap[bin_index(now_ns - before_ns)] += 1
        if flight.word[_AWAITED] == 1:
            watch.round_trip[bin_index(now_ns - flight.word[_SENT_NS])] += 1
            flight.word[_AWAITED] = 0
        _count(watch, _ACTUATORS, 1)
        if actuators_came(session, said.controls, said.mode, said.time_usec, said.flags, now_ns):
            begin_anew(flight)
    elif frame.id == TIMESYNC.id:
        read_payload(stream.buffer, frame, talk.heard_timesync.payload)
        if talk.heard_timesync.record[0].tc1 == 0:
            talk.timesync.record[0].tc1 = now_ns
            talk.timesync.record[0].ts1 = talk.heard_timesync.record[0].ts1
            _tell(watch, flight, descriptor, talk, TIMESYNC, talk.timesync)


@kernel
def begin_anew(flight: Flight) -> None:
    """Put the vehicle where it began, at rest."""
    flight.state.motion[:] = flight.start
    flight.state.rotor_radps[:] = 0.0
    flight.state.impulse_ns[:] = 0.0
    flight.state.crashed[0] = 0
    flight.command[:] = 0.0
    flight.felt[:] = 0.0


@kernel
def _pass_on(flight: Flight, watch: Watch, descriptor: int) -> None:
    """Send frames of ground stations to the controller, as long as the line takes them."""
    tape = watch.to_controller
    for _ in range(_MOST_FROM_STATIONS):
        if waiting(tape) == 0:
            return
        slot = tape.head[0] % tape.time_ns.size
        went = send(watch.cable, descriptor, tape.payload[slot], tape.size[slot])
        if went < 0:
            _lose(flight, watch)
            return
        if went == 0:
            return
        release(tape, 1)
        _count(watch, _FORWARDED, 1)


@kernel
def _fly_step(craft: Craft, flight: Flight, watch: Watch) -> None:
    """One step of the vehicle, steered by the controller or the position hold."""
    state = flight.state
    if craft.is_held:
        if state.time_ns[0] % craft.hold.period_ns == 0:
            hold_command(craft.hold, flight.hold_state, craft.multirotor, state, craft.track, flight.command)
    else:
        for motor in range(flight.command.size):
            flight.command[motor] = watch.session.control[motor]
    for part in range(3):
        flight.felt[3 + part] += 0.5 * state.motion[10 + part]
    step(
        craft.multirotor,
        state,
        flight.command,
        wind_at(craft.wind, flight.wind_state, state.time_ns[0]),
        flight.around.ground,
        flight.around.obstacles,
    )
    for part in range(3):
        flight.felt[part] += state.specific_force_mps2[part]
        flight.felt[3 + part] += 0.5 * state.motion[10 + part]
    flight.felt[6] += 1.0


@kernel
def _say_sensors(craft: Craft, flight: Flight, watch: Watch, talk: Talk, descriptor: int, due_ns: int, now_ns: int, utc_epoch_ns: int) -> None:
    """Send the sensor frame that is due."""
    count = max(flight.felt[6], 1.0)
    for part in range(6):
        flight.felt[part] /= count
    wind = wind_at(craft.wind, flight.wind_state, flight.state.time_ns[0])
    frame = flight.word[_FRAMES]
    fill_sensor(craft.instruments, flight.state, wind, flight.felt, frame, flight.state.time_ns[0] // 1000, talk.sensor.record)
    if watch.session.word[_RESET] == 1:
        talk.sensor.record[0].fields_updated |= RESET_FIELD
    flight.felt[:] = 0.0
    flight.word[_FRAMES] = frame + 1
    if _tell(watch, flight, descriptor, talk, HIL_SENSOR, talk.sensor):
        watch.session.word[_RESET] = 0
        watch.lateness[bin_index(max(now_ns - due_ns, 0))] += 1
        _count(watch, _SENSORS, 1)
        if flight.word[_AWAITED] == 0:
            flight.word[_AWAITED] = 1
            flight.word[_SENT_NS] = now_ns
    elif flight.word[_IS_OPEN] == 1:
        _count(watch, _REPLACED, 1)


@kernel
def _say_rest(craft: Craft, flight: Flight, watch: Watch, talk: Talk, live: LivePose, descriptor: int, now_ns: int, utc_epoch_ns: int) -> None:
    """Heartbeats and positions that are due; what finds the line full goes next time."""
    word = flight.word
    if craft.heartbeat_ns > 0 and now_ns >= word[_NEXT_HEARTBEAT] and _tell(watch, flight, descriptor, talk, HEARTBEAT, talk.heartbeat):
        word[_NEXT_HEARTBEAT] = now_ns + craft.heartbeat_ns
    if watch.session.word[_STATE] != _FLYING or now_ns < word[_NEXT_GPS] or flight.word[_IS_OPEN] == 0:
        return
    if word[_GPS_WAITS] == 0:
        fill_gps(craft.instruments, live, now_ns, flight.state.time_ns[0], utc_epoch_ns, talk.gps.record)
        word[_GPS_WAITS] = 1
    if _tell(watch, flight, descriptor, talk, HIL_GPS, talk.gps):
        word[_GPS_WAITS] = 0
        word[_NEXT_GPS] += craft.instruments.gps_ns
        if word[_NEXT_GPS] < now_ns:
            word[_NEXT_GPS] = now_ns + craft.instruments.gps_ns
        _count(watch, _POSITIONS, 1)


@kernel
def _note_pose(flight: Flight, live: LivePose, rig_ns: int, is_moving: bool, pose: npt.NDArray[np.float64]) -> None:  # noqa: FBT001 - as above
    """Tell the sensors' threads where the vehicle is."""
    pose[:] = flight.state.motion
    if not is_moving:
        pose[3:6] = 0.0
        pose[10:13] = 0.0
    write_state(live, rig_ns, pose)


@kernel
def fly(craft: Craft, flight: Flight, world: World, live: LivePose, watch: Watch, talk: Talk, epoch_ns: int, utc_epoch_ns: int) -> None:
    """Fly until told to stop.

    Args:
        craft: What flies.
        flight: Its state.
        world: What there is to touch.
        live: Where its poses go, for the sensors that it carries.
        watch: Shared with the daemon.
        talk: Messages in the making.
        epoch_ns: CLOCK_MONOTONIC time of rig time 0.
        utc_epoch_ns: UTC of rig time 0.
    """
    word, session = flight.word, watch.session
    step_ns, frame_ns = craft.multirotor.step_ns, craft.instruments.frame_ns
    pose = np.empty(13)
    word[_NEXT_STEP] = monotonic_ns() - epoch_ns
    word[_NEXT_SENSOR] = word[_NEXT_STEP]
    while load_acquire(watch.control, (0,)) == 0:
        now_ns = monotonic_ns() - epoch_ns
        descriptor = load_acquire(watch.control, (1,))
        if descriptor >= 0 and word[_IS_OPEN] == 0:
            word[_IS_OPEN] = 1
            word[_NEXT_HEARTBEAT] = now_ns
            word[_AWAITED] = 0
            link_changed(session, True)  # noqa: FBT003 - a kernel's positional scalar
        elif descriptor < 0 and word[_IS_OPEN] == 1:
            _lose(flight, watch)
        if word[_IS_OPEN] == 1:
            _hear(craft, flight, watch, talk, descriptor, now_ns)
            time_passed(session, now_ns)
        if now_ns - word[_NEXT_STEP] > STALL_NS:
            _count(watch, _STALLS, 1)
            _count(watch, _SKIPPED, (now_ns - word[_NEXT_STEP]) // frame_ns)
            word[_NEXT_STEP] = now_ns
            word[_NEXT_SENSOR] = now_ns
        is_steered = craft.is_held or session.word[_STATE] == _FLYING
        due_ns = -1
        while word[_NEXT_STEP] <= now_ns:
            is_waiting = craft.is_lockstep and session.word[_LOCKSTEP] == 1 and word[_AWAITED] == 1
            if is_waiting and now_ns - word[_SENT_NS] > LOCKSTEP_NS:
                word[_AWAITED] = 0
                _count(watch, _TIMEOUTS, 1)
            elif is_waiting:
                word[_NEXT_STEP] = now_ns + step_ns // 4
                word[_NEXT_SENSOR] = max(word[_NEXT_SENSOR], word[_NEXT_STEP])
                break
            if word[_NEXT_STEP] >= word[_NEXT_LOOK]:
                look_around(world, craft.multirotor, flight.state, word[_NEXT_STEP], flight.around)
                word[_NEXT_LOOK] = word[_NEXT_STEP] + LOOK_NS
                _count(watch, _LOOKS, 1)
            if is_steered:
                _fly_step(craft, flight, watch)
            _note_pose(flight, live, word[_NEXT_STEP], is_steered, pose)
            if word[_NEXT_STEP] >= word[_NEXT_SENSOR]:
                if due_ns >= 0:
                    _count(watch, _SKIPPED, 1)
                due_ns = word[_NEXT_SENSOR]
                word[_NEXT_SENSOR] += frame_ns
            word[_NEXT_STEP] += step_ns
            if craft.is_lockstep and due_ns >= 0:
                break
        if word[_IS_OPEN] == 1:
            if session.word[_STATE] == _FLYING and due_ns >= 0:
                _say_sensors(craft, flight, watch, talk, descriptor, due_ns, monotonic_ns() - epoch_ns, utc_epoch_ns)
            if word[_IS_OPEN] == 1:
                _say_rest(craft, flight, watch, talk, live, descriptor, now_ns, utc_epoch_ns)
            if word[_IS_OPEN] == 1:
                _pass_on(flight, watch, descriptor)
            if word[_IS_OPEN] == 1 and flush(watch.cable, descriptor) < 0:
                _lose(flight, watch)
        sleep_until(epoch_ns + word[_NEXT_STEP])
