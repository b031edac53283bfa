"""Findings from a probe result about hardware in the loop, with the setting that corrects each problem.

Sources: PX4 v1.12 (src/modules/mavlink, ROMFS/px4fmu_common/init.d) and measurements of it; newer PX4 where named.
"""

from hilsim.parts.vehicle.diagnosis.parameters import RESTART, parameter_findings
from hilsim.parts.vehicle.diagnosis.probe_result import ARDUPILOT, PX4, Beat, Link, ProbeResult, Text
from hilsim.parts.vehicle.diagnosis.silence import silence_finding
from hilsim.parts.vehicle.diagnosis.traffic import traffic_findings
from hilsim.telemetry.findings import Finding, Verdict, bad, fair, good
from hilsim.transmit.links.line import LineKind

_AUTOPILOTS = {0: "a generic autopilot", ARDUPILOT: "ArduPilot", PX4: "PX4"}
_TYPES = {
    0: "generic",
    1: "fixed wing",
    2: "quadrotor",
    3: "coaxial",
    4: "helicopter",
    10: "rover",
    13: "hexarotor",
    14: "octorotor",
    15: "tricopter",
}
_MULTIROTORS = {2, 13, 14, 15}
_SENSORS = {0x1: "gyroscope", 0x2: "accelerometer", 0x4: "magnetometer", 0x8: "barometer", 0x10: "airspeed", 0x20: "GPS"}
_ESTIMATES = {
    0x1: "attitude",
    0x2: "horizontal velocity",
    0x4: "vertical velocity",
    0x8: "relative position",
    0x10: "absolute position",
    0x20: "height",
    0x40: "height above ground",
    0x100: "predicted relative position",
    0x200: "predicted absolute position",
}
_READY_FLAGS = 0x37F
_BUSY = 0.9
_ERROR = 3
_MAX_TEXTS = 8
_SYMPTOMS = (  # lower-case parts of texts; the first one found is used
    (
        "navigation failure",
        "physics ran on while the link was down, or another simulator feeds this controller; restart the controller before the next flight",
    ),
    ("stale", "100 equal readings in a row: noise of barometer and magnetometer must be above 0 ([vehicle.sensors])"),
    (
        "timeout",
        "readings were more than 0.3 s apart: another load on this machine, a line that is too slow, or a simulator that stopped; see the budget",
    ),
    ("accelerometer bias", f"the vehicle must be at rest when sensor frames start; {RESTART} with the vehicle at rest"),
    (
        "calibrat",
        f"PX4 checks no calibration while the HIL flag is on; of a version that does: set CAL_ACC0_ID = 1310988, CAL_GYRO0_ID = 1310988, CAL_MAG0_ID = 197388; {RESTART}",
    ),
    ("takeoff denied", "wait until ESTIMATOR_STATUS.flags is 0x37f and HOME_POSITION was received, select Hold, then arm"),
    ("no manual control", "fly with a transmitter or a joystick, or set NAV_RCL_ACT = 0"),
    ("no global position", "the estimate was lost: the link stalled for half a second or more, or positions (HIL_GPS) were missing"),
    ("no local position", "the estimate was lost: sensor frames arrived in bursts (flights succeeded with 8 ms of jitter and crashed with 30 ms)"),
)


def diagnose(link: Link, result: ProbeResult) -> tuple[Finding, ...]:
    """All findings; hardware in the loop can start if none is ``bad``."""
    first = (*_port(link), *_noise(link, result))
    beat = result.beat
    if beat is None:
        return (*_port(link), silence_finding(link, result))
    if beat.autopilot != PX4:
        return (*first, _foreign(beat))
    if beat.is_armed:
        return (*first, _controller(beat), _armed(beat))
    if link.line.kind is LineKind.NETWORK:
        return (*first, _controller(beat), *traffic_findings(link, result), *_texts(result.texts))
    return (
        *first,
        _controller(beat),
        *_others(result),
        _armed(beat),
        _hil(beat, result),
        *parameter_findings(result),
        *traffic_findings(link, result),
        *_sensors(result),
        _estimator(result),
        *_texts(result.texts),
    )


def _port(link: Link) -> tuple[Finding, ...]:
    shown = link.path if link.path == link.device else f"{link.path} ({link.device})"
    if link.line.kind is LineKind.NETWORK:
        return (good("port", f"{shown}: PX4's simulator link"),)
    kind = "USB, where the baud rate is only a number" if link.line.kind is LineKind.USB else f"UART at {link.line.baud} baud"
    if link.lasting_name == link.path:
        return (good("port", f"{shown}: {kind}"),)
    advice = f'port = "{link.lasting_name}": that name stays the same when the controller is plugged in again'
    return (fair("port", f"{shown}: {kind}", advice),)


def _noise(link: Link, result: ProbeResult) -> tuple[Finding, ...]:
    """Finding on bytes between frames; some occur before the first whole frame."""
    if result.skipped_bytes <= max(0.01 * result.received_bytes, 300):
        return ()
    advice = "see that no other program reads the port (it takes a share of the bytes)"
    if link.line.kind is LineKind.UART:
        advice += "\nshorten the cable, join the grounds, and see that both ends have the same baud rate"
    return (fair("noise", f"{result.skipped_bytes} of {result.received_bytes} bytes belong to no MAVLink frame", advice),)


def _controller(beat: Beat) -> Finding:
    kind = _TYPES.get(beat.vehicle_type, f"vehicle type {beat.vehicle_type}")
    fact = f"PX4, {kind}, system {beat.system} component {beat.component}"
    if beat.vehicle_type in _MULTIROTORS:
        return good("controller", fact)
    advice = f"hilsim's vehicles are multirotors: set SYS_AUTOSTART = 1001 (HIL Quadcopter X); {RESTART}"
    return fair("controller", fact, advice)


def _foreign(beat: Beat) -> Finding:
    name = _AUTOPILOTS.get(beat.autopilot, f"autopilot {beat.autopilot}")
    fact = f"{name}, system {beat.system} component {beat.component}"
    if beat.autopilot == ARDUPILOT:
        return Finding(
            subject="controller",
            verdict="bad",
            fact=f"{fact}: ArduPilot's hardware in the loop was removed in 2021 (pull request 17721)",
            advice='fly ArduPilot\'s simulation by its JSON link instead: kind = "ardupilot" in [vehicle.controller], sim_vehicle.py -v ArduCopter -f X --model JSON:127.0.0.1'
            "\nor put PX4 on this board",
        )
    return bad("controller", f"{fact}: hilsim knows hardware in the loop of PX4 only", "put PX4 on this board")


def _armed(beat: Beat) -> Finding:
    if not beat.is_armed:
        return good("armed", "disarmed")
    fact = f"base_mode {beat.base_mode}: the controller is armed; no requests were sent, and no further frames are sent"
    return bad("armed", fact, "check that it is not a real aircraft; disarm it, then run the command again")


def _others(result: ProbeResult) -> tuple[Finding, ...]:
    """Findings on other senders on this link."""
    findings = []
    for beat in result.others:
        who = f"system {beat.system} component {beat.component}"
        if beat.autopilot in _AUTOPILOTS and beat.autopilot:
            fact = f"{who}: a second flight controller ({_AUTOPILOTS[beat.autopilot]})"
            findings.append(fair("others", fact, "leave one controller on this link"))
        else:
            findings.append(good("others", f"{who} sends on this link too, forwarded by the controller"))
    return tuple(findings)


def _hil(beat: Beat, result: ProbeResult) -> Finding:
    if beat.has_hil:
        return good("HIL flag", f"base_mode {beat.base_mode} has it (32)")
    fact = f"base_mode {beat.base_mode} lacks it (32): hilsim sends no sensors to what may be a real aircraft"
    if result.parameters.get("SYS_HITL") == 1:
        return bad("HIL flag", f"{fact}; SYS_HITL is 1 already", f"{RESTART}: SYS_HITL is read at its start")
    advice = f"remove the propellers\nset SYS_HITL = 1 and SYS_AUTOSTART = 1001 (HIL Quadcopter X)\n{RESTART}"
    return bad("HIL flag", fact, advice)


def _sensors(result: ProbeResult) -> tuple[Finding, ...]:
    """Findings from SYS_STATUS; no sensor frames are sent now, so unhealthy sensors are normal."""
    health = result.health
    if health is None:
        return ()
    findings = []
    missing = [name for bit, name in _SENSORS.items() if health.enabled & ~health.healthy & bit]
    shown = f"not healthy: {', '.join(missing)}, as long as no sensors are sent" if missing else "all that are enabled are healthy"
    findings.append(good("sensors", f"{shown} (SYS_STATUS {health.healthy:#x} of {health.enabled:#x})"))
    if health.load_ratio > _BUSY:
        fact = f"{health.load_ratio:.0%} of the controller's processor is used already"
        findings.append(fair("load", fact, "rate_hz = 100 in [vehicle.controller]; more than 250 overloads boards"))
    return tuple(findings)


def _estimator(result: ProbeResult) -> Finding:
    flags = result.estimator_flags
    if flags is None:
        fact = "no ESTIMATOR_STATUS, which starts some seconds after the sensor frames; if it does not, magnetometer or barometer are missing"
    elif flags & _READY_FLAGS == _READY_FLAGS:
        fact = f"ready (flags {flags:#x})"
    else:
        fact = f"flags {flags:#x}, not known yet: {', '.join(name for bit, name in _ESTIMATES.items() if _READY_FLAGS & ~flags & bit)}; ready is {_READY_FLAGS:#x}"
    return good("estimator", fact)


def _texts(texts: tuple[Text, ...]) -> tuple[Finding, ...]:
    """Findings on its latest texts; errors with an explanation if known."""
    findings = []
    for text in texts[-_MAX_TEXTS:]:
        advice = next((advice for symptom, advice in _SYMPTOMS if symptom in text.text.lower()), "")
        verdict: Verdict = "fair" if advice or text.severity <= _ERROR else "good"
        findings.append(Finding(subject="last text", verdict=verdict, fact=text.text, advice=advice))
    return tuple(findings)
