"""The session with a flight controller: what it may be sent, and why; decided in the flight loop, read by everybody else.

Heartbeats alone go out until the controller's own heartbeat has come, because a board starts MAVLink on USB only after it has read one, and sensors hide it. Sensors go out
only while heartbeats carry the flag of hardware in the loop: without it the controller may be in a real aircraft. What flies stands still whenever no controller steers it.

A controller that steers is one whose motor commands come. When they stop while the port stays open (it has crashed, it has been restarted, its wire was pulled), the vehicle
and its sensors stand still after ``COMMAND_SILENT_NS``. A controller commands motors only when sensors come, so each of its heartbeats is answered by sensors of a vehicle that is held,
for ``WAKING_NS``; nothing is sent to a silent one, lest what it did not read be the first that the next one reads. One that sends frames but has sent no heartbeat yet is asked for it.

A controller that was lost and comes back disarmed is another one, or the same started anew: who steers a vehicle in the air does not disarm it because its cable was out.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import shared_words
from hilsim.compilation.jit import by_reference, constant, kernel

HIL_FLAG, ARMED_FLAG = 0x20, 0x80
"""Bits of ``HEARTBEAT.base_mode`` and of ``HIL_ACTUATOR_CONTROLS.mode``."""
HEARTBEAT_PERIOD_NS = 1_000_000_000
SILENT_NS = 3_000_000_000
"""A controller that has sent no heartbeat for so long has gone or starts anew (jMAVSim's figure)."""
COMMAND_SILENT_NS = 200_000_000
"""A controller that has steered and has sent no motor command for so long steers no more. PX4 sends them at 200 Hz; gazebo-classic's bridge gives up at the same age."""
WAKING_NS = 1_500_000_000
"""How long sensors go after the heartbeat of a controller that does not steer (yet); heartbeats come once a second."""
ASKING_NS = 200_000_000
"""How often a controller that sends frames without a heartbeat is asked for one. PX4 on Linux sends the first one a second after its first byte; where a sensor frame of before was read in between and no other
followed, its inertial driver takes that second for the sensor's period and never publishes."""
LOST_NS = 500_000_000
"""A controller that has commanded no motors for so long may be another one when it is back: longer than hosts stand still for, shorter than PX4 takes to start."""
REBOOT_US = 1_000_000
"""A controller whose clock has gone back by more has started anew."""
MOST_CONTROLS = 16


class SessionState(IntEnum):
    """Where a session is."""

    UNPLUGGED = 0
    """There is no link."""
    CALLING = 1
    """Heartbeats go out, none has come."""
    REFUSED = 2
    """The controller's heartbeat lacks the flag of hardware in the loop."""
    FLYING = 3
    """Sensors go out, motors come in."""
    SILENT = 4
    """Motor commands have stopped: the vehicle and its sensors stand still."""


class Reason(IntEnum):
    """Why a session is where it is."""

    STARTED = 0
    LINK_LOST = 1
    LINK_OPENED = 2
    HEARTBEAT = 3
    NO_HIL_FLAG = 4
    SILENCE = 5
    REBOOT = 6
    NO_COMMANDS = 7
    COMMANDS = 8
    RESTART = 9


REASONS = {
    Reason.STARTED: "the daemon has started",
    Reason.LINK_LOST: "the link is gone (unplugged, or its other end closed)",
    Reason.LINK_OPENED: "the link is open; waiting for the controller's heartbeat",
    Reason.HEARTBEAT: "the controller's heartbeat has the flag of hardware in the loop",
    Reason.NO_HIL_FLAG: "the controller's heartbeat lacks the flag of hardware in the loop (32): it may be in a real aircraft; PX4 sets it with SYS_HITL = 1 and a restart",
    Reason.SILENCE: "no heartbeat of the controller for 3 s (ArduPilot: no frame for 2 s)",
    Reason.REBOOT: "the controller has started anew: its clock went back",
    Reason.NO_COMMANDS: "no motor command of the controller for 0.2 s: the vehicle and its sensors stand still until one comes",
    Reason.COMMANDS: "motor commands come again",
    Reason.RESTART: "the controller has started anew: it was lost and has come back disarmed; the vehicle is back where it began",
}


@by_reference
class Session(NamedTuple):
    """A session as arrays; written by the flight loop alone.

    Attributes:
        word: ``int64[n]``, columns by ``SessionWord``.
        control: ``float64[MOST_CONTROLS]``, commands to the motors: 0 to 1, 0 unless armed.
    """

    word: npt.NDArray[np.int64]
    control: npt.NDArray[np.float64]


class SessionWord(IntEnum):
    """Columns of ``Session.word``."""

    STATE = 0
    REASON = 1
    CHANGES = 2
    """Transitions so far."""
    SYSTEM = 3
    """Of the controller."""
    COMPONENT = 4
    BASE_MODE = 5
    HEARTBEAT_NS = 6
    """Rig time of its latest heartbeat."""
    ACTUATOR_NS = 7
    """Rig time of its latest motor command; 0 before the first."""
    ACTUATOR_US = 8
    """Its clock then."""
    ARMED = 9
    RESET = 10
    """1: the next sensor frame reports a restart of the simulation."""
    LOCKSTEP = 11
    """1: the latest motor command answered a sensor frame."""
    IS_STEERED = 12
    """1: motor commands have come since sensors began to go."""
    HAS_STEERED = 13
    """1: motor commands have come before, so the vehicle may be in the air."""
    UNANSWERED_NS = 14
    """Rig time at which the controller fell silent, or its port was full before it steered: only a later heartbeat has sensors sent."""
    SILENCES = 15
    """Times that motor commands stopped."""
    IS_LOST = 16
    """1: the controller has been gone for so long that another one may come back."""
    WAS_ARMED = 17
    """1: the latest motor commands that were flown were of an armed controller."""
    STOOD_NS = 18
    """How long hilsim itself stood still since the latest motor command: no silence of the controller's."""


_STATE, _REASON, _CHANGES = constant(SessionWord.STATE), constant(SessionWord.REASON), constant(SessionWord.CHANGES)
_SYSTEM, _COMPONENT, _BASE_MODE = constant(SessionWord.SYSTEM), constant(SessionWord.COMPONENT), constant(SessionWord.BASE_MODE)
_HEARTBEAT_NS, _ACTUATOR_NS, _ACTUATOR_US = constant(SessionWord.HEARTBEAT_NS), constant(SessionWord.ACTUATOR_NS), constant(SessionWord.ACTUATOR_US)
_ARMED, _RESET, _LOCKSTEP = constant(SessionWord.ARMED), constant(SessionWord.RESET), constant(SessionWord.LOCKSTEP)
_UNPLUGGED, _CALLING = constant(SessionState.UNPLUGGED), constant(SessionState.CALLING)
_REFUSED, _FLYING = constant(SessionState.REFUSED), constant(SessionState.FLYING)
_OPENED, _LOST, _HEARTBEAT = constant(Reason.LINK_OPENED), constant(Reason.LINK_LOST), constant(Reason.HEARTBEAT)
_NO_FLAG, _SILENCE, _REBOOT = constant(Reason.NO_HIL_FLAG), constant(Reason.SILENCE), constant(Reason.REBOOT)
_SILENT, _NO_COMMANDS, _COMMANDS = constant(SessionState.SILENT), constant(Reason.NO_COMMANDS), constant(Reason.COMMANDS)
_IS_STEERED, _HAS_STEERED, _UNANSWERED_NS = constant(SessionWord.IS_STEERED), constant(SessionWord.HAS_STEERED), constant(SessionWord.UNANSWERED_NS)
_SILENCES, _STOOD_NS, _RESTART = constant(SessionWord.SILENCES), constant(SessionWord.STOOD_NS), constant(Reason.RESTART)
_IS_LOST, _WAS_ARMED = constant(SessionWord.IS_LOST), constant(SessionWord.WAS_ARMED)


def allocate_session() -> Session:
    """Unplugged."""
    return Session(shared_words(SessionWord), np.zeros(MOST_CONTROLS))


@kernel
def _enter(session: Session, state: int, reason: int) -> None:
    if session.word[_STATE] != state or session.word[_REASON] != reason:
        session.word[_STATE] = state
        session.word[_REASON] = reason
        session.word[_CHANGES] += 1
    if state not in {_FLYING, _SILENT}:
        session.control[:] = 0.0
        session.word[_ARMED] = 0
        session.word[_IS_STEERED] = 0


@kernel
def link_changed(session: Session, is_open: bool) -> None:  # noqa: FBT001 - a kernel takes plain positional scalars
    """The link was opened, or is gone."""
    if is_open:
        _enter(session, _CALLING, _OPENED)
    else:
        session.word[_IS_LOST] = 1
        _enter(session, _UNPLUGGED, _LOST)


@kernel
def heartbeat_came(session: Session, system: int, component: int, base_mode: int, now_ns: int) -> None:
    """The controller's heartbeat came."""
    session.word[_SYSTEM] = system
    session.word[_COMPONENT] = component
    session.word[_BASE_MODE] = base_mode
    session.word[_HEARTBEAT_NS] = now_ns
    if base_mode & HIL_FLAG:
        if session.word[_STATE] not in {_FLYING, _SILENT}:
            _enter(session, _FLYING, _HEARTBEAT)
    else:
        _enter(session, _REFUSED, _NO_FLAG)


@kernel
def lacks_heartbeat(session: Session) -> bool:
    """Whether a controller that sends frames now has yet to send its heartbeat: it is called, or has sent none since it fell silent."""
    word = session.word
    return bool(word[_STATE] == _CALLING or (word[_STATE] == _SILENT and word[_HEARTBEAT_NS] < word[_UNANSWERED_NS]))


@kernel
def is_back_disarmed(session: Session, mode: int) -> bool:
    """Whether what came is the first of a controller that was lost, and disarmed; to be asked before ``heartbeat_came`` and ``actuators_came``, once.

    Args:
        session: Changed.
        mode: ``base_mode`` of its heartbeat, which has the flag of hardware in the loop, or ``mode`` of its motor commands.
    """
    if session.word[_IS_LOST] == 0:
        return False
    session.word[_IS_LOST] = 0
    return mode & ARMED_FLAG == 0


@kernel
def restarted(session: Session) -> None:
    """The vehicle was put back for a controller that has started anew; to be called after ``heartbeat_came`` or ``actuators_came``."""
    word = session.word
    session.control[:] = 0.0  # those of the one before
    word[_ARMED] = 0
    word[_WAS_ARMED] = 0
    word[_HAS_STEERED] = word[_IS_STEERED]
    word[_ACTUATOR_US] = 0  # or a clock that restarts would trigger it again
    word[_RESET] = 1
    _enter(session, _FLYING, _RESTART)


@kernel
def actuators_came(session: Session, controls: npt.NDArray[np.float32], mode: int, time_us: int, flags: int, now_ns: int) -> bool:
    """Motor commands came; returns whether the controller has started anew since the ones before.

    Args:
        session: Changed.
        controls: ``float32[16]``, -1 to 1.
        mode: As in a heartbeat's base mode; bit 7 armed.
        time_us: The controller's clock.
        flags: Bit 0: lockstep (PX4's simulator link).
        now_ns: Rig time.
    """
    word = session.word
    is_reboot: bool = time_us + REBOOT_US < word[_ACTUATOR_US]  # also over a new link: a board on USB takes its port with it
    word[_ACTUATOR_NS] = now_ns
    word[_STOOD_NS] = 0
    word[_ACTUATOR_US] = time_us
    word[_LOCKSTEP] = flags & 1
    if word[_STATE] == _SILENT:
        _enter(session, _FLYING, _COMMANDS)
    if word[_STATE] == _FLYING:
        word[_IS_STEERED] = 1
        word[_HAS_STEERED] = 1
        word[_WAS_ARMED] = 1 if mode & ARMED_FLAG else 0
    is_armed = word[_STATE] == _FLYING and (mode & ARMED_FLAG) != 0
    word[_ARMED] = 1 if is_armed else 0
    for motor in range(MOST_CONTROLS):
        value = np.float64(controls[motor])
        session.control[motor] = min(value, 1.0) if is_armed and value > 0.0 else 0.0  # what is no number is 0 too
    if is_reboot:
        word[_RESET] = 1
        word[_REASON] = _REBOOT
        word[_CHANGES] += 1
    return is_reboot


@kernel
def stood_still(session: Session, lost_ns: int) -> None:
    """The machine ran nothing of hilsim's for ``lost_ns``: the controller may have stood still with it, and could not be heard."""
    session.word[_STOOD_NS] += lost_ns


@kernel
def time_passed(session: Session, now_ns: int) -> None:
    """Look whether the controller has fallen silent."""
    word = session.word
    is_waiting = word[_STATE] == _FLYING or word[_STATE] == _REFUSED or word[_STATE] == _SILENT
    unsteered_ns = now_ns - word[_ACTUATOR_NS] - word[_STOOD_NS]
    if is_waiting and now_ns - word[_HEARTBEAT_NS] > SILENT_NS:
        word[_IS_LOST] = 1
        _enter(session, _CALLING, _SILENCE)
    elif word[_STATE] == _FLYING and word[_IS_STEERED] == 1 and unsteered_ns > COMMAND_SILENT_NS:
        word[_IS_STEERED] = 0
        word[_UNANSWERED_NS] = now_ns
        word[_SILENCES] += 1
        _enter(session, _SILENT, _NO_COMMANDS)
    elif word[_STATE] == _SILENT and unsteered_ns > LOST_NS:
        word[_IS_LOST] = 1


@kernel
def wants_sensors(session: Session, is_simulator: bool, now_ns: int) -> bool:  # noqa: FBT001 - a kernel takes plain positional scalars
    """Whether sensor frames go to the controller now.

    Args:
        session: Of the controller.
        is_simulator: PX4's simulator link, whose end is known when it comes: one that does not steer yet is sent sensors all the time.
        now_ns: Rig time.
    """
    word = session.word
    if word[_STATE] not in {_FLYING, _SILENT}:
        return False
    if word[_IS_STEERED] == 1 or is_simulator:
        return True
    return bool(word[_HEARTBEAT_NS] >= word[_UNANSWERED_NS] and now_ns - word[_HEARTBEAT_NS] <= WAKING_NS)


@kernel
def is_free(session: Session) -> bool:
    """Whether the vehicle moves: a controller steers it, or none has yet, so that it drops to the ground and lies there."""
    return bool(session.word[_STATE] == _FLYING and (session.word[_IS_STEERED] == 1 or session.word[_HAS_STEERED] == 0))


@kernel
def port_is_full(session: Session, now_ns: int) -> None:
    """The controller's port takes no more: whoever does not steer gets no more sensors before its next heartbeat."""
    if session.word[_IS_STEERED] == 0:
        session.word[_UNANSWERED_NS] = now_ns
