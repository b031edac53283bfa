"""Commands in words: lines at TCP port 7501, and the same below ``/api/v1/sensor/cmd`` of HTTP.

    get_sensor_info, get_beam_intrinsics, get_imu_intrinsics, get_lidar_intrinsics,
    get_lidar_data_format, get_calibration_status, get_imu_data_format    a group of the metadata
    get_config_param active | staged [KEY]                                settings
    set_config_param KEY VALUE, set_config_param . JSON                   stages one or several
    set_udp_dest_auto                                                     stages the client's address
    reinitialize                                                          makes staged settings active
    save_config_params, write_config_txt                                  keeps active ones over a restart

A line has words between blanks and ends with a line feed; its answer is one line. At the port a command that changes something repeats its own name; in HTTP
``set_config_param`` answers ``"set_config_param"``, and the others ``{}``: clients compare these texts. A fault is ``error: `` and what is wrong.

Source: ouster-sdk, last version with this port (commit 56d207e, ouster_sensor/src/sensor_tcp_imp.cpp), and 1.0.1 (sensor_http_imp.cpp).
"""

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from hilsim.families.ouster.interface.answers import Answer, Outcome, refusal
from hilsim.families.ouster.interface.settings import AUTO
from hilsim.families.ouster.interface.state import RUNNING_GROUPS, ControlState

_GROUPS = {
    "get_sensor_info": "sensor_info",
    "get_beam_intrinsics": "beam_intrinsics",
    "get_imu_intrinsics": "imu_intrinsics",
    "get_lidar_intrinsics": "lidar_intrinsics",
    "get_lidar_data_format": "lidar_data_format",
    "get_calibration_status": "calibration_status",
    "get_imu_data_format": "imu_data_format",
}
_SHOWN = 80


def group_answer(state: ControlState, name: str) -> Answer:
    """One group of the metadata."""
    document = state.document()
    if name in document:
        return Answer(HTTPStatus.OK, document[name])
    if name in RUNNING_GROUPS and not state.is_sending:
        return refusal(HTTPStatus.SERVICE_UNAVAILABLE, f"status must be RUNNING for {name}, got {state.status}")
    return refusal(HTTPStatus.NOT_FOUND, f"metadata must be one of {', '.join(document)}, got {name[:_SHOWN]}")


def _settings_answer(state: ControlState, words: list[str]) -> Outcome:
    place, *keys = words or [""]
    if place not in {"active", "staged"} or len(keys) > 1:
        raise ValueError(f'get_config_param must have "active" or "staged" and at most one key, got {" ".join(words)[:_SHOWN]!r}')
    settings = state.active if place == "active" else state.staged
    if keys and keys[0] not in settings:
        raise ValueError(f"{keys[0][:_SHOWN]} must be one of {', '.join(settings)}, got an unknown one")
    return Outcome(state, Answer(HTTPStatus.OK, settings[keys[0]] if keys else dict(settings)))


def _value(text: str) -> Any:
    """A value as commands have it: JSON, or a word without quotation marks."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _staged(state: ControlState, text: str, peer: str) -> ControlState:
    key, _, value = text.partition(" ")
    if not value:
        raise ValueError(f"set_config_param must have a key and a value, got {text[:_SHOWN]!r}")
    try:
        given = json.loads(value) if key == "." else {key: _value(value)}
    except (ValueError, RecursionError) as error:
        raise ValueError(f"settings must be JSON, got {value[:_SHOWN]!r}: {error}") from error
    return state.stage(given, peer)


_CHANGES: dict[str, Callable[[ControlState, str], ControlState]] = {
    "set_udp_dest_auto": lambda state, peer: state.stage({"udp_dest": AUTO}, peer),
    "reinitialize": lambda state, _peer: state.reinitialize(),
    "save_config_params": lambda state, _peer: state.save(),
    "write_config_txt": lambda state, _peer: state.save(),
}


def command_outcome(state: ControlState, line: str, peer: str) -> Outcome:
    """Result of a command, with the answer that HTTP has.

    Args:
        state: State before it.
        line: Command and its words.
        peer: Address of the client.
    """
    name, _, rest = line.strip().partition(" ")
    try:
        if name in _GROUPS:
            return Outcome(state, group_answer(state, _GROUPS[name]))
        if name == "get_config_param":
            return _settings_answer(state, rest.split())
        if name == "set_config_param":
            return Outcome(_staged(state, rest.strip(), peer), Answer(HTTPStatus.OK, name))
        if name in _CHANGES:
            return Outcome(_CHANGES[name](state, peer), Answer(HTTPStatus.OK, {}))
    except ValueError as error:
        return Outcome(state, refusal(HTTPStatus.BAD_REQUEST, str(error)))
    known = ", ".join([*_GROUPS, "get_config_param", "set_config_param", *_CHANGES])
    return Outcome(state, refusal(HTTPStatus.NOT_FOUND, f"command must be one of {known}, got {name[:_SHOWN]!r}"))


def line_of(line: str, answer: Answer) -> str:
    """Line at TCP port 7501 for the answer to a command, without the line feed."""
    if answer.is_fault:
        return f"error: {answer.document['error']['description']}"
    name = line.split(maxsplit=1)[0]
    return name if name in _CHANGES or name == "set_config_param" else json.dumps(answer.document)
