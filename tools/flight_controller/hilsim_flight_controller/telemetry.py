"""Telemetry of a controller and its rates (those of PX4 1.12's NORMAL stream set)."""

import math
from collections.abc import Iterator, Mapping

from hilsim_flight_controller.flying.attitude import euler
from hilsim_flight_controller.flying.commander import Commander
from hilsim_flight_controller.flying.estimator import Estimator
from hilsim_flight_controller.mavlink import Message, common

UNKNOWN_ID = 54_321
_GYRO, _ACC, _MAG, _BARO, _GPS = 1, 2, 4, 8, 0x20
_HIL, _ARMED, _CUSTOM = common.MAV_MODE_FLAG_HIL_ENABLED, common.MAV_MODE_FLAG_SAFETY_ARMED, common.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED
_MANUAL_MODE = _CUSTOM | common.MAV_MODE_FLAG_STABILIZE_ENABLED | common.MAV_MODE_FLAG_MANUAL_INPUT_ENABLED
_AUTO_MODE = _CUSTOM | common.MAV_MODE_FLAG_STABILIZE_ENABLED | common.MAV_MODE_FLAG_GUIDED_ENABLED | common.MAV_MODE_FLAG_AUTO_ENABLED
_CUSTOM_MODES = {"manual": 1 << 16, "takeoff": 4 << 16 | 2 << 24, "hold": 4 << 16 | 3 << 24, "land": 4 << 16 | 6 << 24}
PARAMETERS: dict[str, float] = {
    "SYS_HITL": 1,
    "CAL_ACC0_ID": 1_310_988,
    "CAL_GYRO0_ID": 1_310_988,
    "CAL_MAG0_ID": 197_388,
    "SYS_AUTOSTART": 1001,
    "MAV_TYPE": 2,
}
PARAMETERS |= {"COM_RC_IN_MODE": 1, "NAV_RCL_ACT": 0, "NAV_DLL_ACT": 0, "EKF2_REQ_GPS_H": 10.0}


def base_mode(commander: Commander, *, hil: bool) -> int:
    """HEARTBEAT.base_mode: 113 idle, 61 in Hold, 189 armed in Hold."""
    mode = _MANUAL_MODE if commander.mode == "manual" else _AUTO_MODE
    return int(mode | (_HIL if hil else 0) | (_ARMED if commander.armed else 0))


def heartbeat(commander: Commander, *, serial: bool, hil: bool, autopilot: int = common.MAV_AUTOPILOT_PX4) -> Message:
    """HEARTBEAT. Over PX4's simulator link base_mode contains only the armed flag (its simulator_mavlink.cpp, send_heartbeat)."""
    if not serial:
        return common.MAVLink_heartbeat_message(0, common.MAV_AUTOPILOT_PX4, _ARMED if commander.armed else 0, 0, 0, 3)
    state = common.MAV_STATE_ACTIVE if commander.armed else common.MAV_STATE_STANDBY
    return common.MAVLink_heartbeat_message(
        common.MAV_TYPE_QUADROTOR, autopilot, base_mode(commander, hil=hil), _CUSTOM_MODES[commander.mode], state, 3
    )


class Telemetry:
    """Messages by schedule; none early, none repeated to make up for lost time."""

    def __init__(self, *, extra: bool) -> None:
        self.extra = extra
        self.due_us: dict[str, int] = {}
        self.count = 0

    def messages(self, now_us: int, estimate: Estimator) -> Iterator[tuple[str, Message]]:
        """Messages that are due: pairs of kind (``plain``, ``unknown``, ``signed``) and message; for ``unknown`` its payload."""
        ms = now_us // 1000
        if self._due(now_us, "sys_status", 1_000_000):
            yield "plain", _sys_status(estimate)
        if self._due(now_us, "attitude", 75_000) and estimate.aligned:
            yield "plain", common.MAVLink_attitude_message(ms, *euler(estimate.q), *(float(rate) for rate in estimate.rates))
        if self._due(now_us, "estimator", 2_000_000) and estimate.aligned:
            yield "plain", _estimator_status(now_us, estimate)
        if estimate.knows:
            if self._due(now_us, "position", 220_000):
                yield "plain", _global_position(ms, estimate)
                yield "plain", common.MAVLink_local_position_ned_message(ms, *(float(part) for part in (*estimate.p, *estimate.v)))
            if self._due(now_us, "home", 2_000_000):
                yield "plain", _home(now_us, estimate)
        if self.extra and self._due(now_us, "extra", 500_000):
            self.count += 1
            yield "unknown", self.count.to_bytes(4, "little") + b"\xfd\xfe\x00\x11\x7e"
            yield "signed", common.MAVLink_named_value_int_message(ms, b"signed", self.count)

    def _due(self, now_us: int, name: str, period_us: int) -> bool:
        if now_us < self.due_us.get(name, 0):
            return False
        self.due_us[name] = now_us + period_us
        return True


def _estimator_status(now_us: int, estimate: Estimator) -> Message:
    ratios = [float(estimate.ratios[kind]) for kind in ("vel", "pos_h", "pos_v", "mag")]
    return common.MAVLink_estimator_status_message(now_us, estimate.flags, *ratios, 0.0, 0.0, 0.3, 0.3)


def _sys_status(estimate: Estimator) -> Message:
    have = _GYRO | _ACC | _MAG | _BARO | _GPS
    healthy = (_GYRO | _ACC | _MAG | _BARO if estimate.aligned else 0) | (_GPS if estimate.ready else 0)
    return common.MAVLink_sys_status_message(have, have, healthy, 300, 16_000, 1000, 70, 0, 0, 0, 0, 0, 0)


def _global_position(ms: int, estimate: Estimator) -> Message:
    latitude, longitude, altitude = estimate.geodetic()
    velocity = (int(max(-32_768, min(32_767, 100.0 * part))) for part in estimate.v)
    heading = round(math.degrees(euler(estimate.q)[2]) * 100.0) % 36_000
    relative_mm = round(-1000.0 * float(estimate.p[2]))
    return common.MAVLink_global_position_int_message(
        ms, round(latitude * 1e7), round(longitude * 1e7), round(altitude * 1e3), relative_mm, *velocity, heading
    )


def _home(now_us: int, estimate: Estimator) -> Message:
    latitude, longitude, altitude = estimate.origin or (0.0, 0.0, 0.0)
    place = round(latitude * 1e7), round(longitude * 1e7), round(altitude * 1e3)
    return common.MAVLink_home_position_message(*place, 0.0, 0.0, 0.0, (1.0, 0.0, 0.0, 0.0), 0.0, 0.0, 0.0, now_us)


def parameter(name: str, parameters: Mapping[str, float]) -> Message:
    """PARAM_VALUE; integers as PX4 sends them, byte by byte in a float."""
    index, value = list(parameters).index(name), parameters[name]
    if isinstance(value, float):
        return common.MAVLink_param_value_message(name.encode(), value, common.MAV_PARAM_TYPE_REAL32, len(parameters), index)
    packed = common.MAVLink_param_value_message.unpacker.unpack(value.to_bytes(4, "little") + bytes(21))[0]
    return common.MAVLink_param_value_message(name.encode(), packed, common.MAV_PARAM_TYPE_INT32, len(parameters), index)
