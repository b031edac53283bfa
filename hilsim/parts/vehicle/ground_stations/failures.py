"""Failures that ground stations ask a flight controller to inject (``MAV_CMD_INJECT_FAILURE``), made by hilsim's own faults and answered by hilsim.

The command is not forwarded: PX4 would answer it a second time, refuse it by default (``SYS_FAILURE_EN``), or break its reading of a sensor that
hilsim has broken already. As in PX4, an instance has at most one failure, the newest, and ``ok`` ends all of a unit. Commands to others than the controller pass.

Source: common.xml (``FAILURE_UNIT``, ``FAILURE_TYPE``); PX4 ``src/modules/failure_injection_manager``.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import numpy as np
import structlog

from hilsim.config.script import ChangeSpec, ClearChange, FaultChange
from hilsim.errors import HilsimError
from hilsim.faults.specs import FAULT_SPECS
from hilsim.parts.vehicle.autopilot.passing_state import read_message
from hilsim.protocols.mavlink.codec import write_frame
from hilsim.protocols.mavlink.frames import LARGEST_FRAME, MAVLINK_2
from hilsim.protocols.mavlink.messages import COMMAND_ACK, COMMAND_LONG, COMMAND_LONG_DTYPE, build_draft, build_origin

log = structlog.get_logger("hilsim")

INJECT_FAILURE = 420
ACCEPTED, TEMPORARILY_REJECTED, UNSUPPORTED = 0, 1, 3
"""``MAV_RESULT`` of an answer."""
_OK, _OFF, _STUCK, _GARBAGE, _WRONG, _DRIFT = 0, 1, 2, 3, 4, 8
_RANGE, _MOTOR = 7, 101
_UNITS = {0: "gyroscope", 1: "accelerometer", 2: "compass", 3: "barometer", 4: "gps", _RANGE: "range", _MOTOR: "motor"}
_ENDINGS = {_OFF: "off", _STUCK: "stuck", _GARBAGE: "noisy", _WRONG: "biased"}
FAILURES: dict[tuple[int, int], str] = {
    **{(unit, kind): f"{_UNITS[unit]}_{ending}" for unit in range(4) for kind, ending in _ENDINGS.items()},
    (4, _OFF): "gps_off",
    (4, _STUCK): "gps_stuck",
    (4, _GARBAGE): "gps_garbage",
    (4, _WRONG): "gps_jump",
    (4, _DRIFT): "gps_smooth_drift",
    **{(_RANGE, kind): f"range_{ending}" for kind, ending in ((_OFF, "off"), (_STUCK, "stuck"), (_WRONG, "wrong"))},
    (_MOTOR, _OFF): "motor_dead",
    (_MOTOR, _WRONG): "motor_weak",
}
"""Kinds of faults by ``FAILURE_UNIT`` and ``FAILURE_TYPE``."""


def changes_of(command: Any, motors: int, ranges: Sequence[str] = ()) -> list[ChangeSpec] | None:
    """Changes that a command, a record of ``COMMAND_LONG``, asks for; None: it is not supported.

    Args:
        command: The command.
        motors: Number of the vehicle's motors; it has one of each other unit.
        ranges: Names of the rig's range sensors.
    """
    if not (math.isfinite(command["param1"]) and math.isfinite(command["param2"])):
        return None
    unit, failure = int(command["param1"]), int(command["param2"])
    most = {_MOTOR: motors, _RANGE: len(ranges)}.get(unit, 1)
    instances = [each for each in _instances(command) if each <= most]
    kind = FAILURES.get((unit, failure))
    if unit not in _UNITS or not instances or (failure != _OK and kind is None):
        return None
    if failure == _OK:
        return [ClearChange(name=f"injected-{_UNITS[unit]}-*")]
    changes: list[ChangeSpec] = []
    for instance in instances:
        name = f"injected-{_UNITS[unit]}-{instance}"
        keys: dict[str, Any] = {"motors": (instance,)} if unit == _MOTOR else {"on": ranges[instance - 1]} if unit == _RANGE else {}
        changes += [ClearChange(name=name), FaultChange(fault=FAULT_SPECS[str(kind)](name=name, **keys))]
    return changes


def _instances(command: Any) -> Iterator[int]:
    """Instances of a command, from 1: the third parameter, 0 for all; where it is not a number, the bits of the fourth."""
    chosen, mask = float(command["param3"]), float(command["param4"])
    for instance in range(1, 17):
        if chosen in (0.0, instance) or (math.isnan(chosen) and math.isfinite(mask) and int(mask) >> (instance - 1) & 1):
            yield instance


class FailureInjector:
    """Taker of commands of ground stations.

    Args:
        controller: Gives system and component of the present flight controller; (0, 0) without one.
        motors: Number of the vehicle's motors.
        ranges: Names of the rig's range sensors.
        make_change: Makes a timed change at once.
        answer: Sends a frame to all ground stations.
    """

    def __init__(
        self,
        *,
        controller: Callable[[], tuple[int, int]],
        motors: int,
        ranges: Sequence[str] = (),
        make_change: Callable[[ChangeSpec], Awaitable[object]],
        answer: Callable[[bytes], None],
    ) -> None:
        self._controller, self._make_change, self._answer = controller, make_change, answer
        self._motors, self._ranges = motors, ranges
        self._one_by_one = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, frame: bytes) -> bool:
        """Carry out a frame if it is such a command to the flight controller; False: it is to be forwarded."""
        is_2 = frame[0] == MAVLINK_2
        identity = int.from_bytes(frame[7:10], "little") if is_2 else frame[5]
        if identity != COMMAND_LONG.id:
            return False
        command = read_message(frame, COMMAND_LONG_DTYPE)
        system, component = self._controller()
        is_meant = system > 0 and command["target_system"] in (0, system) and command["target_component"] in (0, component)
        if command["command"] != INJECT_FAILURE or not is_meant:
            return False
        sender = (frame[5], frame[6]) if is_2 else (frame[3], frame[4])
        task = asyncio.get_running_loop().create_task(self._carry_out(command, sender, (system, component)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _carry_out(self, command: Any, sender: tuple[int, int], controller: tuple[int, int]) -> None:
        changes, result, reason = changes_of(command, self._motors, self._ranges), ACCEPTED, ""
        if changes is None:
            result, reason = UNSUPPORTED, "the vehicle cannot fail so"
        async with self._one_by_one:
            try:
                for change in changes or ():
                    await self._make_change(change)
            except HilsimError as error:
                result, reason = TEMPORARILY_REJECTED, str(error)
        parameters = [float(command[f"param{number}"]) for number in range(1, 5)]
        log.info("failure.injected", parameters=parameters, result=result, reason=reason)
        self._answer(_acknowledgement(result, sender, controller))

    def close(self) -> None:
        """End what is not yet carried out."""
        for task in self._tasks:
            task.cancel()


def _acknowledgement(result: int, sender: tuple[int, int], controller: tuple[int, int]) -> bytes:
    """Frame in which a controller acknowledges a sender's command."""
    draft, frame = build_draft(COMMAND_ACK), np.zeros(LARGEST_FRAME, np.uint8)
    record = draft.record
    record["command"], record["result"] = INJECT_FAILURE, result
    record["target_system"], record["target_component"] = sender
    return frame[: write_frame(COMMAND_ACK, draft.payload, build_origin(*controller), frame)].tobytes()
