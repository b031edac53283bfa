"""Requests by HTTP, which act as PTC's do: ``/pandar.cgi?action=ACTION&object=OBJECT&key=KEY&value=VALUE``.

======  =============  ==================  ==========================================
action  object         key                 value
======  =============  ==================  ==========================================
get     lidar_monitor                      current, voltage, power and phase, as texts
set     lidar          spin_speed          1, 2 or 3: 300, 600 or 1200 rpm
set     lidar          clock_source        as 0x1f
set     lidar          trigger_method      as 0x1b
set     lidar_data     lidar_mode          as 0x1e
set     lidar_data     standbymode         as 0x1c
======  =============  ==================  ==========================================

An answer is an object with ``Head`` and ``Body``; its ``ErrorCode`` is 0, 1 for a wrong value, and 3 for what a unit does not support.
Sources: nebula (nebula_hesai_hw_interfaces, hw_monitor_wrapper); what users of a Pandar40P and an XT16 have published of its answers.
"""

from collections.abc import Mapping
from typing import Any

from hilsim.families.hesai.interface.requests import CURRENT_CMA, POWER_CW, VOLTAGE_CV
from hilsim.families.hesai.interface.state import HesaiState
from hilsim.families.hesai.protocol.ptc import Command, ReturnCode

PATH = "/pandar.cgi"
_WRONG_VALUE, _UNSUPPORTED = 1, 3
_MONITOR = {
    "lidarInCur": f"{CURRENT_CMA / 100:.2f} mA",
    "lidarInVol": f"{VOLTAGE_CV / 100:.2f} V",
    "lidarInPower": f"{POWER_CW / 100:.2f} W",
    "phaseoffset": "0",
}
_SPEEDS_RPM = {"1": 300, "2": 600, "3": 1200}
_KEYS = {
    ("lidar", "spin_speed"): Command.SPIN_RATE,
    ("lidar", "clock_source"): Command.CLOCK_SOURCE,
    ("lidar", "trigger_method"): Command.TRIGGER,
    ("lidar_data", "lidar_mode"): Command.RETURN_MODE,
    ("lidar_data", "standbymode"): Command.STANDBY,
}


def document_of(code: int = 0, message: str = "Success", body: Mapping[str, str] | None = None) -> dict[str, Any]:
    """An answer."""
    return {"Head": {"ErrorCode": str(code), "Message": message}, "Body": dict(body or {})}


def page_outcome(state: HesaiState, query: Mapping[str, str]) -> tuple[HesaiState, dict[str, Any]]:
    """State after a request by its query, the same object if nothing changes, and the answer, once packets follow."""
    action, thing, value = (query.get(name, "") for name in ("action", "object", "value"))
    command = _KEYS.get((thing, query.get("key", "")))
    if (action, thing) == ("get", "lidar_monitor"):
        return state, document_of(body=_MONITOR)
    if action != "set" or command is None:
        return state, document_of(_UNSUPPORTED, "not support yet")
    payload = _SPEEDS_RPM.get(value, 0).to_bytes(2, "big") if command == Command.SPIN_RATE else _byte(value)
    then, code = state.written(command, payload)
    return then, document_of() if code is ReturnCode.OK else document_of(_WRONG_VALUE, "invalid value")


def _byte(text: str) -> bytes:
    return bytes([int(text)]) if text.isascii() and text.isdigit() and len(text) == 1 else b""
