"""The HTTP interface of a sensor: requests and answers, both families of paths whatever the firmware.

=====================================================  ==============================================================
below ``/api/v1``                                      request
=====================================================  ==============================================================
``sensor/metadata``, ``sensor/metadata/GROUP``         GET
``sensor/config?staging=``                             GET: active settings, or staged ones
``sensor/config?staging=&reinit=&persist=``            POST: an object of settings; all of them or none; DELETE: those
                                                       of the factory
``sensor/cmd/COMMAND?args=``                           GET: ``commands``
``sensor/telemetry``, ``sensor/alerts``                GET
``system/firmware``, ``system/network``                GET
``system/network/ipv4/override``                       GET, PUT, DELETE: stored and shown
``system/restart``                                     POST
``time``, ``time/system``, ``time/sensor``,            GET
``time/ptp``
``time/ptp/profile``                                   GET, PUT
``user/data``                                          GET (``?include_metadata=``), PUT (``?policy=``), DELETE
=====================================================  ==============================================================

A POST without ``staging`` and ``reinit`` reinitialises and persists. With ``reinit=false`` and without ``staging`` destinations act at once, and other keys
are staged. All other paths, zone monitors among them, answer 404, which clients take for "none".

Sources: ouster-sdk 1.0.1 (ouster_sensor/src/sensor_http_imp.cpp); Ouster's HTTP API reference of firmware 3.0 and its page on POST config. The documents of
alerts and of time have been seen in no source to the last key: they hold the names that are known.
"""

import ipaddress
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

from hilsim.families.ouster.interface.answers import (
    NO_CONTENT,
    Answer,
    Conditions,
    Outcome,
    network_document,
    refusal,
    telemetry_document,
    time_documents,
)
from hilsim.families.ouster.interface.commands import command_outcome, group_answer
from hilsim.families.ouster.interface.state import ControlState
from hilsim.families.ouster.protocol.firmware import Firmware

API = "/api/v1/"
PTP_PROFILES = ("default", "default-relaxed", "gptp", "gptp-relaxed", "automotive-slave", "automotive-slave-relaxed")
_KEEP, _CLEAR = "keep_on_config_delete", "clear_on_config_delete"
_SWITCH = {"true": True, "1": True, "false": False, "0": False}
_SHOWN = 80


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request.

    Attributes:
        method: ``GET``, ``POST``, ``PUT`` or ``DELETE``.
        path: Path, as ``/api/v1/sensor/config``.
        query: Query, decoded.
        body: Body.
        peer: IPv4 address of the client.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    peer: str = ""

    def switch(self, name: str, *, default: bool) -> bool:
        """A truth value of the query.

        Raises:
            ValueError: it is none.
        """
        text = self.query.get(name)
        if text is None:
            return default
        if text.lower() not in _SWITCH:
            raise ValueError(f"{name} must be true or false, got {text[:_SHOWN]!r}")
        return _SWITCH[text.lower()]

    def json(self) -> Any:
        """The body.

        Raises:
            ValueError: it is no JSON.
        """
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"body must be JSON, got {self.body[:_SHOWN]!r}: {error}") from error


Handler = Callable[[ControlState, Request, Conditions], Outcome]


def _found(document: Any) -> Answer:
    return Answer(HTTPStatus.OK, document)


def _reading(document: Callable[[ControlState, Conditions], Any]) -> Handler:
    """Handler that changes nothing."""

    def handle(state: ControlState, _request: Request, conditions: Conditions) -> Outcome:
        return Outcome(state, _found(document(state, conditions)))

    return handle


def _get_settings(state: ControlState, request: Request, _conditions: Conditions) -> Outcome:
    return Outcome(state, _found(dict(state.staged if request.switch("staging", default=False) else state.active)))


def _post_settings(state: ControlState, request: Request, _conditions: Conditions) -> Outcome:
    is_staging = request.switch("staging", default=False)
    reinit = request.switch("reinit", default=not is_staging)
    persist = request.switch("persist", default=reinit and not is_staging)
    state = state.stage(request.json(), request.peer)
    if reinit:
        state = state.reinitialize()
    elif not is_staging:
        state = state.redirect()
    return Outcome(state.save() if persist else state, NO_CONTENT)


def _delete_settings(state: ControlState, _request: Request, _conditions: Conditions) -> Outcome:
    return Outcome(state.reset(), NO_CONTENT)


def _restart(state: ControlState, _request: Request, _conditions: Conditions) -> Outcome:
    return Outcome(state.restart(), NO_CONTENT)


def _get_user_data(state: ControlState, request: Request, _conditions: Conditions) -> Outcome:
    if request.switch("include_metadata", default=False):
        return Outcome(state, _found({"policy": _KEEP if state.keeps_user_data else _CLEAR, "value": state.user_data}))
    return Outcome(state, _found(state.user_data))


def _put_user_data(state: ControlState, request: Request, _conditions: Conditions) -> Outcome:
    text, policy = request.json(), request.query.get("policy", _CLEAR)
    if not isinstance(text, str):
        raise ValueError(f"user data must be a text, got {json.dumps(text)[:_SHOWN]}")  # noqa: TRY004 - what a client has sent
    if policy not in {_KEEP, _CLEAR}:
        raise ValueError(f"policy must be {_KEEP} or {_CLEAR}, got {policy[:_SHOWN]!r}")
    return Outcome(replace(state, user_data=text, keeps_user_data=policy == _KEEP), NO_CONTENT)


def _delete_user_data(state: ControlState, _request: Request, _conditions: Conditions) -> Outcome:
    return Outcome(replace(state, user_data="", keeps_user_data=False), NO_CONTENT)


def _put_address(state: ControlState, request: Request, _conditions: Conditions) -> Outcome:
    given = request.json()
    address = given.get("addr") if isinstance(given, dict) else given
    try:
        if not isinstance(address, str) or "/" not in address:
            raise ValueError  # noqa: TRY301 - one message for both faults
        ipaddress.IPv4Interface(address)
    except ValueError as error:
        raise ValueError(f"address must be like 10.0.0.2/24, got {json.dumps(address)[:_SHOWN]}") from error
    return Outcome(replace(state, static_address=address), _found(address))


def _delete_address(state: ControlState, _request: Request, _conditions: Conditions) -> Outcome:
    return Outcome(replace(state, static_address=None), NO_CONTENT)


def _put_ptp_profile(state: ControlState, request: Request, _conditions: Conditions) -> Outcome:
    profile = request.json()
    if profile not in PTP_PROFILES:
        raise ValueError(f"profile must be one of {', '.join(PTP_PROFILES)}, got {json.dumps(profile)[:_SHOWN]}")
    return Outcome(replace(state, ptp_profile=profile), _found(profile))


_HANDLERS: Mapping[str, Mapping[str, Handler]] = {
    "sensor/metadata": {"GET": _reading(lambda state, _: state.document())},
    "sensor/config": {"GET": _get_settings, "POST": _post_settings, "DELETE": _delete_settings},
    "sensor/telemetry": {"GET": _reading(telemetry_document)},
    "sensor/alerts": {"GET": _reading(lambda _state, _: {"active": [], "log": [], "next_cursor": 0})},
    "system/firmware": {"GET": _reading(lambda state, _: {"fw": state.unit.image_rev})},
    "system/network": {"GET": _reading(network_document)},
    "system/network/ipv4/override": {
        "GET": _reading(lambda state, _: state.static_address),
        "PUT": _put_address,
        "DELETE": _delete_address,
    },
    "system/restart": {"POST": _restart},
    "time": {"GET": _reading(time_documents)},
    "time/system": {"GET": _reading(lambda state, now: time_documents(state, now)["system"])},
    "time/sensor": {"GET": _reading(lambda state, now: time_documents(state, now)["sensor"])},
    "time/ptp": {"GET": _reading(lambda state, now: time_documents(state, now)["ptp"])},
    "time/ptp/profile": {"GET": _reading(lambda state, _: state.ptp_profile), "PUT": _put_ptp_profile},
    "user/data": {"GET": _get_user_data, "PUT": _put_user_data, "DELETE": _delete_user_data},
}
_METADATA, _COMMANDS = "sensor/metadata/", "sensor/cmd/"


def has_user_data(firmware: Firmware) -> bool:
    """Whether a firmware keeps user data: 2.5, and from 3.1 on (ouster-sdk does not ask others)."""
    return Firmware(2, 5) <= firmware < Firmware(3, 0) or firmware >= Firmware(3, 1)


def outcome_of(state: ControlState, request: Request, conditions: Conditions) -> Outcome:
    """Result of a request.

    Args:
        state: State before it.
        request: The request.
        conditions: Address, times and clock of the sensor.
    """
    path = request.path.removeprefix(API).rstrip("/") if request.path.startswith(API) else ""
    if request.method == "GET" and path.startswith(_METADATA):
        return Outcome(state, group_answer(state, path.removeprefix(_METADATA)))
    if request.method == "GET" and path.startswith(_COMMANDS):
        return command_outcome(state, f"{path.removeprefix(_COMMANDS)} {request.query.get('args', '')}", request.peer)
    handlers = _HANDLERS.get(path, {}) if path != "user/data" or has_user_data(state.firmware) else {}
    handler = handlers.get(request.method)
    if handler is not None:
        try:
            return handler(state, request, conditions)
        except ValueError as error:
            return Outcome(state, refusal(HTTPStatus.BAD_REQUEST, str(error)))
    if handlers:
        reason = f"method must be {' or '.join(handlers)} at {request.path}, got {request.method[:_SHOWN]}"
        return Outcome(state, refusal(HTTPStatus.METHOD_NOT_ALLOWED, reason))
    return Outcome(state, refusal(HTTPStatus.NOT_FOUND, f"path must be one that firmware {state.firmware} has, got {request.path[:_SHOWN]}"))
