"""Requests to a sensor and its answers, and what it pushes: functions of its state.

=======  ==================  ============================================================================================
command  request             answer
=======  ==================  ============================================================================================
0x0000   search              return code, model, serial number, address, port of commands
0x0100   write keys          return code, first key that is refused; all keys are written or none
0x0101   read keys           return code, keys and values; none of them if the model lacks one
0x0200   reboot              return code
0x0201   factory reset       return code
0x0202   time of a receiver  return code: OK if the rig's receiver gives the clock, else "not now"
others                       return code "failed"
=======  ==================  ============================================================================================

Requests with a wrong checksum, and answers, are not answered. Not established: the answers of a real unit to wrong requests.
"""

from dataclasses import replace
from typing import NamedTuple

from hilsim.families.livox.interface.keys import address_bytes
from hilsim.families.livox.interface.state import Conditions, LidarState
from hilsim.families.livox.protocol.commands import (
    Command,
    ControlFrame,
    ReturnCode,
    counted,
    query_answer,
    read_keys,
    read_pairs,
    search_answer,
    write_answer,
)
from hilsim.families.livox.protocol.points import GPS_TIME

_DELAY_BYTES = 2
_NS_PER_MS = 1_000_000


class Outcome(NamedTuple):
    """Result of a request.

    Attributes:
        state: State of the sensor then.
        data: Data of the answer.
    """

    state: LidarState
    data: bytes


def outcome_of(state: LidarState, request: ControlFrame, conditions: Conditions) -> Outcome:
    """Result of a host's request."""
    now_ns, code, then = conditions.now_ns, ReturnCode.FAILED, state
    match request.command:
        case Command.SEARCH:
            unit = state.unit
            address, port = address_bytes(unit.address), unit.ports.command
            return Outcome(state, search_answer(device_type=unit.device_type, serial=unit.serial, address=address, command_port=port))
        case Command.SET:
            return _written(state, request.data, now_ns)
        case Command.QUERY:
            return Outcome(state, _read(state, request.data, conditions))
        case Command.REBOOT if len(request.data) == _DELAY_BYTES:
            code, then = ReturnCode.OK, state.restarted(now_ns + int.from_bytes(request.data, "little") * _NS_PER_MS)
        case Command.FACTORY_RESET:
            code, then = ReturnCode.OK, replace(state, values=state.factory).restarted(now_ns)
        case Command.SET_TIME:
            code = ReturnCode.OK if conditions.time_type == GPS_TIME else ReturnCode.NOT_NOW
    return Outcome(then, bytes([code]))


def _written(state: LidarState, data: bytes, now_ns: int) -> Outcome:
    try:
        pairs = read_pairs(data)
    except ValueError:
        return Outcome(state, write_answer(ReturnCode.KEY_COUNT))
    then, code, key = state.written(pairs, now_ns)
    return Outcome(then, write_answer(code, key))


def _read(state: LidarState, data: bytes, conditions: Conditions) -> bytes:
    try:
        numbers = read_keys(data)
    except ValueError:
        return write_answer(ReturnCode.KEY_COUNT)
    if not set(numbers) <= state.unit.keys.keys():
        return write_answer(ReturnCode.UNKNOWN_KEY)
    return query_answer([(number, state.value(number, conditions)) for number in dict.fromkeys(numbers)])


def push_message(state: LidarState, sequence: int, conditions: Conditions) -> ControlFrame:
    """Push message with all keys of the model, in the order of their numbers."""
    pairs = [(number, state.value(number, conditions)) for number in sorted(state.unit.keys)]
    return ControlFrame(command=Command.PUSH, sequence=sequence, data=counted(pairs), is_from_sensor=True)
