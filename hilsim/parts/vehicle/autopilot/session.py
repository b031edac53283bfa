"""Session with a flight controller: which frames it may receive, and why; the flight loop decides, other threads read.

Until the controller's own heartbeat is received, only heartbeats are sent, because a board starts MAVLink on USB only after reading one, and sensor frames would hide it. Sensor frames are sent
only while the controller's heartbeats have the HIL flag: without it the controller may be in a real aircraft. The vehicle does not move while no controller is in command.

A controller is in command while its motor commands arrive. When they stop while the port stays open (crash, restart, broken wire), the vehicle
and its sensors stop after ``COMMAND_SILENT_NS``. A controller sends motor commands only when it receives sensor frames, so each of its heartbeats is answered by sensor frames of a held vehicle,
for ``WAKING_NS``; a silent controller gets nothing, so that the next one does not read outdated frames first. A controller that sends frames but no heartbeat yet gets a request for it.
On PX4's simulator link sensor frames never wait for a heartbeat: they are the clock of PX4's heartbeats, and the end of PX4 ends the connection.

A lost controller that returns disarmed is another one or was restarted: a controller in flight does not disarm because of a disconnection.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import shared_words
from hilsim.compilation.jit import by_reference, constant, kernel
from hilsim.protocols.mavlink.messages import ARMED_FLAG, HIL_FLAG

SILENT_NS = 3_000_000_000
"""Silence of the heartbeat after which the controller is considered gone or restarting (jMAVSim's value)."""
COMMAND_SILENT_NS = 200_000_000
"""Silence of the motor commands after which the controller is no longer in command. PX4 sends them at 200 Hz; gazebo-classic's bridge has the same timeout."""
WAKING_NS = 1_500_000_000
"""Duration of sensor frames after the heartbeat of a controller that is not in command (yet); heartbeats have a period of one second."""
ASKING_NS = 200_000_000
"""Interval of requests for a heartbeat from a controller that sends frames without one. PX4 on Linux sends the first one a second after its first byte; if it read an earlier sensor frame in between and no other
followed, its inertial driver assumes that second as the sensor's period and never publishes."""
LOST_NS = 500_000_000
"""Silence of the motor commands after which a returning controller may be another one: longer than stalls of a host, shorter than PX4's start."""
REBOOT_US = 1_000_000
"""A controller whose clock jumps back by more than this was restarted."""
MAX_CONTROLS = 16


class SessionState(IntEnum):
    """State of a session."""

    UNPLUGGED = 0
    """There is no link."""
    CALLING = 1
    """Heartbeats are sent, none was received."""
    REFUSED = 2
    """The controller's heartbeat lacks the HIL flag."""
    FLYING = 3
    """Sensor frames are sent, motor commands are received."""
    SILENT = 4
    """Motor commands have stopped: the vehicle and its sensors are stopped."""


class Reason(IntEnum):
    """Reason of a session's latest transition."""

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
    Reason.REBOOT: "the controller was restarted: its clock jumped back",
    Reason.NO_COMMANDS: "no motor command of the controller for 0.2 s: the vehicle and its sensors are stopped until one arrives",
    Reason.COMMANDS: "motor commands have resumed",
    Reason.RESTART: "the controller was restarted: it was lost and has returned disarmed; the vehicle was reset to its initial pose",
}


@by_reference
class Session(NamedTuple):
    """A session as arrays; written by the flight loop alone.

    Attributes:
        word: ``int64[n]``, columns by ``SessionWord``.
        control: ``float64[MAX_CONTROLS]``, commands to the motors: 0 to 1, 0 unless armed.
    """

    word: npt.NDArray[np.int64]
    control: npt.NDArray[np.float64]


class SessionWord(IntEnum):
    """Columns of ``Session.word``."""

    STATE = 0
    REASON = 1
    CHANGES = 2
    """Number of transitions."""
    SYSTEM = 3
    """System id of the controller."""
    COMPONENT = 4
    BASE_MODE = 5
    HEARTBEAT_NS = 6
    """Rig time of the controller's latest heartbeat."""
    ACTUATOR_NS = 7
    """Rig time of the controller's latest motor command; 0 before the first."""
    ACTUATOR_US = 8
    """Controller's clock in that command."""
    ARMED = 9
    RESET = 10
    """1: the next sensor frame reports a restart of the simulation."""
    LOCKSTEP = 11
    """1: the latest motor command answered a sensor frame."""
    IS_STEERED = 12
    """1: motor commands were received since sensor frames are sent."""
    HAS_STEERED = 13
    """1: motor commands were received before, so the vehicle may be in the air."""
    UNANSWERED_NS = 14
    """Rig time at which the controller fell silent, or its port was full before it was in command: only a later heartbeat enables sensor frames."""
    SILENCES = 15
    """Number of times that motor commands stopped."""
    IS_LOST = 16
    """1: the controller was gone so long that another one may return."""
    WAS_ARMED = 17
    """1: the latest motor commands in flight were from an armed controller."""
    STOOD_NS = 18
    """Total stall of hilsim since the latest motor command, which does not count as the controller's silence."""


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
    """Allocate a session in state UNPLUGGED."""
    return Session(shared_words(SessionWord), np.zeros(MAX_CONTROLS))


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
    """Record that the link was opened or is gone."""
    if is_open:
        _enter(session, _CALLING, _OPENED)
    else:
        session.word[_IS_LOST] = 1
        _enter(session, _UNPLUGGED, _LOST)


@kernel
def heartbeat_came(session: Session, system: int, component: int, base_mode: int, now_ns: int) -> None:
    """Record a heartbeat of the controller."""
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
    """Whether a controller that sends frames has not sent its heartbeat yet: first contact, or none since it fell silent."""
    word = session.word
    return bool(word[_STATE] == _CALLING or (word[_STATE] == _SILENT and word[_HEARTBEAT_NS] < word[_UNANSWERED_NS]))


@kernel
def is_back_disarmed(session: Session, mode: int) -> bool:
    """Whether this is the first message of a lost controller, and it is disarmed; call once, before ``heartbeat_came`` and ``actuators_came``.

    Args:
        session: Session, updated.
        mode: ``base_mode`` of its heartbeat, which has the HIL flag, or ``mode`` of its motor commands.
    """
    if session.word[_IS_LOST] == 0:
        return False
    session.word[_IS_LOST] = 0
    return mode & ARMED_FLAG == 0


@kernel
def restarted(session: Session) -> None:
    """Record that the vehicle was reset for a restarted controller; call after ``heartbeat_came`` or ``actuators_came``."""
    word = session.word
    session.control[:] = 0.0  # those of the previous controller
    word[_ARMED] = 0
    word[_WAS_ARMED] = 0
    word[_HAS_STEERED] = word[_IS_STEERED]
    word[_ACTUATOR_US] = 0  # otherwise a clock that restarts would trigger it again
    word[_RESET] = 1
    _enter(session, _FLYING, _RESTART)


@kernel
def actuators_came(session: Session, controls: npt.NDArray[np.float32], mode: int, time_us: int, flags: int, now_ns: int) -> bool:
    """Record motor commands; returns whether the controller was restarted since the previous ones.

    Args:
        session: Session, updated.
        controls: ``float32[16]``, commands, -1 to 1.
        mode: Mode with the bits of a heartbeat's base mode; bit 7: armed.
        time_us: Controller's clock.
        flags: Flags; bit 0: lockstep (PX4's simulator link).
        now_ns: Current rig time.
    """
    word = session.word
    is_reboot: bool = time_us + REBOOT_US < word[_ACTUATOR_US]  # also over a new link: a board on USB closes its port when it restarts
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
    for motor in range(MAX_CONTROLS):
        value = np.float64(controls[motor])
        session.control[motor] = min(value, 1.0) if is_armed and value > 0.0 else 0.0  # NaN becomes 0 as well
    if is_reboot:
        word[_RESET] = 1
        word[_REASON] = _REBOOT
        word[_CHANGES] += 1
    return is_reboot


@kernel
def stood_still(session: Session, lost_ns: int) -> None:
    """Record a stall of the machine of ``lost_ns``: the controller may have stalled as well, and could not be received."""
    session.word[_STOOD_NS] += lost_ns


@kernel
def time_passed(session: Session, is_simulator: bool, now_ns: int) -> None:  # noqa: FBT001 - a kernel takes plain positional scalars
    """Check whether the controller has fallen silent.

    Args:
        session: Session, updated.
        is_simulator: Whether it is PX4's simulator link, whose controller is stopped, not lost, while the connection lasts.
        now_ns: Current rig time.
    """
    word = session.word
    is_waiting = word[_STATE] == _FLYING or word[_STATE] == _REFUSED or word[_STATE] == _SILENT
    unsteered_ns = now_ns - word[_ACTUATOR_NS] - word[_STOOD_NS]
    if is_waiting and now_ns - word[_HEARTBEAT_NS] > SILENT_NS:
        word[_IS_LOST] = 1
        _enter(session, _SILENT if is_simulator else _CALLING, _SILENCE)
    elif word[_STATE] == _FLYING and word[_IS_STEERED] == 1 and unsteered_ns > COMMAND_SILENT_NS:
        word[_IS_STEERED] = 0
        word[_UNANSWERED_NS] = now_ns
        word[_SILENCES] += 1
        _enter(session, _SILENT, _NO_COMMANDS)
    elif word[_STATE] == _SILENT and unsteered_ns > LOST_NS:
        word[_IS_LOST] = 1


@kernel
def wants_sensors(session: Session, is_simulator: bool, now_ns: int) -> bool:  # noqa: FBT001 - a kernel takes plain positional scalars
    """Whether sensor frames are sent to the controller now.

    Args:
        session: Session of the controller.
        is_simulator: Whether it is PX4's simulator link, which detects a disconnection: a controller not yet in command is sent sensor frames all the time.
        now_ns: Current rig time.
    """
    word = session.word
    if word[_STATE] not in {_FLYING, _SILENT}:
        return False
    if word[_IS_STEERED] == 1 or is_simulator:
        return True
    return bool(word[_HEARTBEAT_NS] >= word[_UNANSWERED_NS] and now_ns - word[_HEARTBEAT_NS] <= WAKING_NS)


@kernel
def is_free(session: Session) -> bool:
    """Whether the vehicle moves: a controller is in command, or none has been yet, so that it drops to the ground and rests there."""
    return bool(session.word[_STATE] == _FLYING and (session.word[_IS_STEERED] == 1 or session.word[_HAS_STEERED] == 0))


@kernel
def port_is_full(session: Session, now_ns: int) -> None:
    """Record that the controller's port is full: a controller not in command gets no more sensor frames before its next heartbeat."""
    if session.word[_IS_STEERED] == 0:
        session.word[_UNANSWERED_NS] = now_ns
