"""Findings on PX4's parameters for hardware in the loop.

Sources: PX4 v1.12 src/modules/mavlink/mavlink_receiver.cpp (the simulated sensors' ids), ROMFS/px4fmu_common/init.d/airframes/*.hil, its parameter reference, and
src/modules/commander/Arming/PreFlightCheck/checks/*Check.cpp: every calibration counts as valid while the HIL flag is on.
"""

from collections.abc import Mapping

from hilsim.parts.vehicle.diagnosis.probe_result import ProbeResult
from hilsim.telemetry.findings import Finding, bad, fair, good

RESTART = "restart the controller"
_SIMULATED_IDS = {"CAL_ACC0_ID": 1_310_988, "CAL_GYRO0_ID": 1_310_988, "CAL_MAG0_ID": 197_388}
_AIRFRAMES = {1000: "HIL fixed wing", 1001: "HIL Quadcopter X", 1002: "HIL Standard VTOL"}
_HIL_AIRFRAMES, _SIH_AIRFRAMES = range(1000, 1100), range(1100, 1200)
_MANUAL = {0: "a transmitter at the board's own receiver", 1: "a joystick at the ground station"}


def parameter_findings(result: ProbeResult) -> tuple[Finding, ...]:
    """Findings on each answered setting that matters, and on unanswered ones."""
    values = result.parameters
    has_flag = result.beat is not None and result.beat.has_hil
    return (
        *_answers(result),
        *(_hitl(int(values["SYS_HITL"]), has_flag=has_flag) if "SYS_HITL" in values else ()),
        *(_airframe(int(values["SYS_AUTOSTART"])) if "SYS_AUTOSTART" in values else ()),
        *(_calibration(name, int(values[name]), wanted) for name, wanted in _SIMULATED_IDS.items() if name in values),
        *_manual_control(values),
        *_station(values),
        *_position(values),
        *_aiding(values),
    )


def _answers(result: ProbeResult) -> tuple[Finding, ...]:
    missing = [name for name in result.asked if name not in result.parameters]
    if not result.asked:
        return ()
    if not result.parameters:
        fact = f"none of {len(result.asked)} was answered"
        advice = (
            "run it again with --seconds 20; if it stays so, the controller does not receive from us: look at TX, and at the baud rate of both ends"
        )
        return (fair("parameters", fact, advice),)
    shown = f"; not there or not answered: {', '.join(missing)}" if missing else ""
    fact = f"{len(result.parameters)} of {len(result.asked)} answered{shown}"
    essential = {"SYS_HITL", *_SIMULATED_IDS} & set(missing)
    if essential:
        return (fair("parameters", fact, "run it again with --seconds 20; firmware without SYS_HITL cannot do it"),)
    return (good("parameters", fact),)


def _hitl(value: int, *, has_flag: bool) -> tuple[Finding, ...]:
    subject = "SYS_HITL"
    if value == 1:
        return (good(subject, "1: hardware in the loop"),)
    if value == 2:
        advice = f"set SYS_HITL = 1 and SYS_AUTOSTART = 1001; {RESTART}"
        return (bad(subject, "2: the board simulates itself (SIH) and takes no sensors", advice),)
    if has_flag:
        fact = f"{value}, though the HIL flag is on: it is gone after the next restart"
        return (fair(subject, fact, "set SYS_HITL = 1"),)
    return (bad(subject, f"{value}: hardware in the loop is off", f"set SYS_HITL = 1; {RESTART}"),)


def _airframe(value: int) -> tuple[Finding, ...]:
    subject = "SYS_AUTOSTART"
    if value in _HIL_AIRFRAMES:
        return (good(subject, f"{value}: {_AIRFRAMES.get(value, 'a HIL airframe')}"),)
    kind = "an airframe that the board simulates itself (SIH)" if value in _SIH_AIRFRAMES else "no HIL airframe"
    advice = f"set SYS_AUTOSTART = 1001 (HIL Quadcopter X: right for USB without battery and safety switch) and SYS_AUTOCONFIG = 1; {RESTART}"
    return (fair(subject, f"{value}: {kind}", advice),)


def _calibration(name: str, value: int, wanted: int) -> Finding:
    if value == wanted:
        return good(name, f"{value}: the simulated sensor")
    return good(name, f"{value}: not the simulated sensor, which PX4 does not check while the HIL flag is on")


def _manual_control(values: Mapping[str, float]) -> tuple[Finding, ...]:
    """Finding on manual control: without a transmitter or joystick PX4 enters a failsafe as soon as it flies."""
    if "NAV_RCL_ACT" not in values:
        return ()
    action, source = int(values["NAV_RCL_ACT"]), int(values.get("COM_RC_IN_MODE", 0))
    fact = f"NAV_RCL_ACT {action}, COM_RC_IN_MODE {source}"
    if action == 0:
        return (good("manual control", f"{fact}: flies without"),)
    return (
        fair(
            "manual control",
            f"{fact}: a flight without {_MANUAL.get(source, 'a transmitter or a joystick')} ends in a failsafe",
            "have one, or set NAV_RCL_ACT = 0 (newer PX4: COM_RCL_EXCEPT = 7); COM_RC_IN_MODE = 1 takes a joystick instead of a transmitter",
        ),
    )


def _station(values: Mapping[str, float]) -> tuple[Finding, ...]:
    if "NAV_DLL_ACT" not in values:
        return ()
    action = int(values["NAV_DLL_ACT"])
    if action == 0:
        return (good("ground station", "NAV_DLL_ACT 0: flies without"),)
    fact = f"NAV_DLL_ACT {action}: a flight without a ground station ends in a failsafe"
    return (fair("ground station", fact, "have one behind hilsim ([[vehicle.ground_station]]), or set NAV_DLL_ACT = 0"),)


def _position(values: Mapping[str, float]) -> tuple[Finding, ...]:
    if "EKF2_REQ_GPS_H" not in values:
        return ()
    wait_s = values["EKF2_REQ_GPS_H"]
    fact = f"EKF2_REQ_GPS_H {wait_s:g}: a position about {wait_s + 7.0:.0f} s after the first sensors; arm after that"
    return (good("position", fact),)


def _aiding(values: Mapping[str, float]) -> tuple[Finding, ...]:
    """Finding on an estimator that makes no use of GPS, by the parameter of PX4 before 1.14 or of later versions."""
    return tuple(
        bad(
            "GPS aiding",
            f"{name} {int(values[name])}: the estimator makes no use of GPS, so there is never a position",
            f"set {name} = {default}; {RESTART}",
        )
        for name, bits, default in (("EKF2_AID_MASK", 0x1, 1), ("EKF2_GPS_CTRL", 0x7, 7))
        if name in values and not int(values[name]) & bits
    )
