"""Answers of the control interface: status codes with documents, the state after a request, and documents of the sensor's condition."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple

from hilsim.families.ouster.interface.state import ControlState

NOTHING = object()
"""Document of an answer without a body."""
_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Address, times and clock of a sensor: values that it reports beside its settings.

    Attributes:
        address: The sensor's IPv4 address.
        mac: The sensor's MAC address, as ``bc:0f:a7:00:00:01``.
        uptime_ns: Time since the start.
        device_ns: Time stamp that packets have now.
        utc_ns: UTC.
        is_phase_locked: Whether the phase is locked.
        has_master: Whether the clock follows a master of PTP.
    """

    address: str
    mac: str
    uptime_ns: int = 0
    device_ns: int = 0
    utc_ns: int = 0
    is_phase_locked: bool = False
    has_master: bool = False


class Answer(NamedTuple):
    """An answer.

    Attributes:
        status: Status code of HTTP.
        document: Object for JSON, or ``NOTHING``.
    """

    status: int
    document: Any = NOTHING

    @property
    def is_fault(self) -> bool:
        """Whether the request was refused."""
        return self.status >= HTTPStatus.BAD_REQUEST


NO_CONTENT = Answer(HTTPStatus.NO_CONTENT)


class Outcome(NamedTuple):
    """Result of a request.

    Attributes:
        state: State after it; the same object if nothing changes.
        answer: Answer, once packets follow the state.
    """

    state: ControlState
    answer: Answer


def refusal(status: HTTPStatus, reason: str) -> Answer:
    """Answer to a request that changes nothing: title and description, as the vendor's stand-in of a sensor has them, and each fault apart."""
    return Answer(status, {"error": {"title": f"{status.value} {status.phrase}", "description": reason, "faults": reason.split("; ")}})


def network_document(state: ControlState, conditions: Conditions) -> dict[str, Any]:
    """``/system/network``: what is unset is null, which clients rely on."""
    address = conditions.address
    is_link_local = address.startswith("169.254.")
    # An address that the user gave is reported as both, as it acts only after a restart: here the rig decides it.
    return {
        "carrier": True,
        "duplex": "full",
        "ethaddr": conditions.mac,
        "hostname": f"os-{state.unit.serial}",
        "ipv4": {
            "addr": None if is_link_local else f"{address}/{8 if address.startswith('127.') else 24}",
            "link_local": f"{address}/16" if is_link_local else None,
            "override": state.static_address,
        },
        "ipv6": {"addr": None, "link_local": None, "override": None},
        "speed": 1000,
        "speed_override": None,
    }


def telemetry_document(state: ControlState, conditions: Conditions) -> dict[str, Any]:
    """``/sensor/telemetry``; current, voltage and temperature are plausible and constant."""
    locked = "LOCKED" if conditions.is_phase_locked else "UNLOCKED"
    return {
        "input_current_ma": 690 if state.is_sending else 380,
        "input_voltage_mv": 23_900,
        "internal_temperature_deg_c": 48,
        "phase_lock_status": locked if state.active["phase_lock_enable"] else "DISABLED",
        "timestamp_ns": conditions.device_ns,
    }


def time_documents(state: ControlState, conditions: Conditions) -> Mapping[str, Any]:
    """Documents below ``/time`` by their last name: the clocks that there are, and the state of its PTP port."""
    mode, device_s = state.active["timestamp_mode"], conditions.device_ns / _NS_PER_S
    uptime_s = conditions.uptime_ns / _NS_PER_S
    return {
        "system": {"monotonic": uptime_s, "realtime": conditions.utc_ns / _NS_PER_S},
        "sensor": {
            "timestamp": {
                "mode": mode,
                "time": device_s,
                "time_options": {
                    "internal_osc": int(uptime_s),
                    "ptp_1588": int(device_s) if mode == "TIME_FROM_PTP_1588" else 0,
                    "sync_pulse_in": int(device_s) if mode == "TIME_FROM_SYNC_PULSE_IN" else 0,
                },
            },
            "multipurpose_io": {"mode": state.active["multipurpose_io_mode"]},
        },
        "ptp": {"profile": state.ptp_profile, "port_data_set": {"port_state": "SLAVE" if conditions.has_master else "LISTENING"}},
    }
