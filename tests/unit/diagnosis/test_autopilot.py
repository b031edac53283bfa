"""Every finding about a controller, from what was heard to the setting that mends it."""

from dataclasses import replace

import pytest
from pymavlink.dialects.v20 import common

from hilsim.parts.vehicle.diagnosis.autopilot import diagnose
from hilsim.parts.vehicle.diagnosis.probe import PARAMETERS
from hilsim.parts.vehicle.diagnosis.probe_result import Beat, Health, Link, ProbeResult, Stream, Text
from hilsim.parts.vehicle.diagnosis.traffic import Instance, instances
from hilsim.protocols.mavlink.message_names import _NAMES, message_name
from hilsim.transmit.links.line import NETWORK, Line, LineKind

USB = Link(path="/dev/serial/by-id/usb-px4", device="/dev/ttyACM0", lasting_name="/dev/serial/by-id/usb-px4", line=Line(LineKind.USB, 57_600))
UART = Link(path="/dev/ttyUSB0", device="/dev/ttyUSB0", lasting_name="/dev/ttyUSB0", line=Line(LineKind.UART, 921_600))
TCP = Link(path="tcp:127.0.0.1:4560", device="127.0.0.1:40000", lasting_name="tcp:127.0.0.1:4560", line=NETWORK)
BEAT = Beat(system=1, component=1, vehicle_type=2, autopilot=12, base_mode=113)
SETTINGS = {
    "SYS_HITL": 1,
    "SYS_AUTOSTART": 1001,
    "CAL_ACC0_ID": 1_310_988,
    "CAL_GYRO0_ID": 1_310_988,
    "CAL_MAG0_ID": 197_388,
    "COM_RC_IN_MODE": 1,
    "NAV_RCL_ACT": 0,
    "NAV_DLL_ACT": 0,
    "EKF2_REQ_GPS_H": 10.0,
    "EKF2_AID_MASK": 1,
    **{f"MAV_{number}_{what}": 0 for number in range(3) for what in ("CONFIG", "RATE")},
    **{f"SER_TEL{number}_BAUD": 57_600 for number in range(1, 5)},
}
FINE = ProbeResult(
    waited_s=0.1,
    listened_s=8.0,
    beat=BEAT,
    streams=(Stream(id=93, frames=400, bytes=37_200), Stream(id=0, frames=8, bytes=168)),
    received_bytes=40_000,
    frames=408,
    health=Health(enabled=0x2F, healthy=0, load_ratio=0.3),
    asked=PARAMETERS,
    parameters=SETTINGS,
)


def found(subject, link=USB, heard=FINE, **settings):
    """The findings about a subject when some of PX4's settings are others."""
    other = replace(heard, parameters={**heard.parameters, **settings}) if settings else heard
    return [finding for finding in diagnose(link, other) if finding.subject == subject]


def only(subject, link=USB, heard=FINE, **settings):
    (finding,) = found(subject, link, heard, **settings)
    return finding


def silent(link=USB, **heard):
    """The finding where no controller was heard."""
    return only("controller", link, ProbeResult(waited_s=8.0, **heard))


def test_a_controller_that_can_begin_has_nothing_to_mend():
    findings = diagnose(USB, FINE)
    assert {finding.verdict for finding in findings} == {"good"}
    assert {finding.advice for finding in findings} == {""}
    assert [finding.subject for finding in findings] == [
        "port",
        "controller",
        "armed",
        "HIL flag",
        "parameters",
        "SYS_HITL",
        "SYS_AUTOSTART",
        "CAL_ACC0_ID",
        "CAL_GYRO0_ID",
        "CAL_MAG0_ID",
        "manual control",
        "ground station",
        "position",
        "budget",
        "motors",
        "streams",
        "sensors",
        "estimator",
    ]


def test_a_port_is_named_with_what_its_rate_means():
    assert only("port").fact == "/dev/serial/by-id/usb-px4 (/dev/ttyACM0): USB, where the baud rate is only a number"
    assert only("port", UART).fact == "/dev/ttyUSB0: UART at 921600 baud"
    assert only("port", TCP).fact == "tcp:127.0.0.1:4560 (127.0.0.1:40000): PX4's simulator link"


def test_a_port_whose_number_changes_is_reported_its_lasting_name():
    finding = only("port", replace(USB, path="/dev/ttyACM0"))
    assert (finding.verdict, finding.advice.split(":")[0]) == ("fair", 'port = "/dev/serial/by-id/usb-px4"')


@pytest.mark.parametrize("link", [USB, UART], ids=lambda link: link.line.kind.value)
def test_a_port_without_a_byte_says_what_to_look_at_in_order(link):
    finding = silent(link)
    steps = finding.advice.splitlines()
    assert (finding.verdict, finding.fact) == ("bad", "no byte in 8.0 s, although heartbeats were sent each second")
    assert [step.split(":")[0] for step in steps] == {
        LineKind.USB: ["1. the cable", "2. MAVLink on USB", "3. other programs"],
        LineKind.UART: ["1. the cable", "2. the wires", "3. the baud rate of both ends", "4. MAVLink on that port", "5. other programs"],
    }[link.line.kind]
    assert "ls /dev/serial/by-id" in steps[0]


def test_a_silent_simulation_is_reported_with_how_to_start_it():
    assert silent(TCP).advice == "start PX4's simulation for an external simulator (make px4_sitl none_iris)"


def test_bytes_without_a_frame_on_a_uart_point_at_the_baud_rate():
    finding = silent(UART, received_bytes=900, sample=bytes(range(128, 256)))
    assert (finding.verdict, finding.fact) == ("bad", "900 bytes in 8.0 s, but no MAVLink frame in them")
    assert finding.advice.startswith("1. the baud rate of both ends: PX4's TELEM 1 begins with 57600")
    assert "hilsim doctor --link /dev/ttyUSB0 --baud 57600" in finding.advice


def test_bytes_without_a_frame_on_usb_point_at_the_device():
    finding = silent(received_bytes=900, sample=bytes(range(128, 256)))
    assert finding.advice.startswith("1. what is at the other end: a GPS, a lidar or a board in its bootloader speaks no MAVLink")
    assert "baud" not in finding.advice


def test_plain_text_is_a_console():
    finding = silent(UART, received_bytes=300, sample=b"nsh> help\r\nhelp usage: help [-v]\r\n" * 5)
    assert (finding.verdict, finding.fact) == ("bad", '300 bytes of plain text were received ("nsh> help"): a console or a sensor, not MAVLink')
    assert "not its debug console" in finding.advice


def test_an_echo_is_reported_as_one():
    finding = silent(UART, received_bytes=168, frames=8, has_echo=True)
    assert (finding.verdict, finding.fact.split(":")[0]) == ("bad", "only hilsim's own heartbeats are received")
    assert finding.advice.startswith("1. disconnect TX from RX")


def test_frames_of_others_alone_are_no_controller():
    camera = Beat(system=1, component=100, vehicle_type=30, autopilot=8, base_mode=0)
    finding = silent(received_bytes=168, frames=8, others=(camera,))
    assert finding.fact == "8 MAVLink frames in 8.0 s, but no flight controller's heartbeat, only system 1 component 100"
    assert finding.advice.startswith("1. name the controller's own port")
    assert ("MAV_0_CONFIG" in finding.advice, "MAV_0_CONFIG" in silent(UART, frames=8).advice) == (False, True)


def test_noise_between_frames_is_distinguished_from_the_first_bytes():
    assert found("noise", heard=replace(FINE, skipped_bytes=300)) == []
    finding = only("noise", UART, replace(FINE, skipped_bytes=5000))
    assert (finding.verdict, finding.fact) == ("fair", "5000 of 40000 bytes belong to no MAVLink frame")
    assert ("no other program" in finding.advice, "shorten the cable" in finding.advice) == (True, True)
    assert "cable" not in only("noise", heard=replace(FINE, skipped_bytes=5000)).advice


def test_ardupilot_is_sent_to_its_json_link():
    findings = diagnose(USB, replace(FINE, beat=replace(BEAT, autopilot=3)))
    assert [finding.subject for finding in findings] == ["port", "controller"]
    assert findings[1].verdict == "bad"
    assert findings[1].fact == "ArduPilot, system 1 component 1: ArduPilot's hardware in the loop was removed in 2021 (pull request 17721)"
    assert 'kind = "ardupilot" in [vehicle.controller]' in findings[1].advice


def test_another_autopilot_cannot_begin():
    finding = only("controller", heard=replace(FINE, beat=replace(BEAT, autopilot=5)))
    assert (finding.verdict, finding.advice) == ("bad", "put PX4 on this board")
    assert finding.fact == "autopilot 5, system 1 component 1: hilsim knows hardware in the loop of PX4 only"


@pytest.mark.parametrize(("kind", "name"), [(1, "fixed wing"), (22, "vehicle type 22")])
def test_a_vehicle_that_is_not_a_multirotor_is_advised_the_airframe(kind, name):
    finding = only("controller", heard=replace(FINE, beat=replace(BEAT, vehicle_type=kind)))
    assert (finding.verdict, finding.fact) == ("fair", f"PX4, {name}, system 1 component 1")
    assert "SYS_AUTOSTART = 1001" in finding.advice


def test_of_an_armed_controller_nothing_else_is_reported():
    findings = diagnose(USB, replace(FINE, beat=replace(BEAT, base_mode=189)))
    assert [finding.subject for finding in findings] == ["port", "controller", "armed"]
    assert (findings[2].verdict, findings[2].fact.split(";")[0]) == ("bad", "base_mode 189: the controller is armed")
    assert "disarm it" in findings[2].advice


def test_other_speakers_are_reported():
    camera, second = (Beat(system=system, component=1, vehicle_type=2, autopilot=pilot, base_mode=0) for system, pilot in ((9, 8), (2, 12)))
    findings = found("others", heard=replace(FINE, others=(camera, second)))
    assert [finding.verdict for finding in findings] == ["good", "fair"]
    assert findings[1].fact == "system 2 component 1: a second flight controller (PX4)"


@pytest.mark.parametrize(
    ("hitl", "advice"),
    [
        (0, "remove the propellers\nset SYS_HITL = 1 and SYS_AUTOSTART = 1001 (HIL Quadcopter X)\nrestart the controller"),
        (1, "restart the controller: SYS_HITL is read at its start"),
    ],
)
def test_without_the_flag_it_cannot_begin(hitl, advice):
    finding = only("HIL flag", heard=replace(FINE, beat=replace(BEAT, base_mode=81)), SYS_HITL=hitl)
    assert (finding.verdict, finding.advice) == ("bad", advice)
    assert finding.fact.startswith("base_mode 81 lacks it (32)")


@pytest.mark.parametrize(
    ("mode", "value", "verdict", "advice"),
    [
        (113, 1, "good", ""),
        (113, 0, "fair", "set SYS_HITL = 1"),
        (81, 0, "bad", "set SYS_HITL = 1; restart the controller"),
        (81, 2, "bad", "set SYS_HITL = 1 and SYS_AUTOSTART = 1001; restart the controller"),
    ],
)
def test_the_setting_of_hardware_in_the_loop_is_judged_with_the_flag(mode, value, verdict, advice):
    finding = only("SYS_HITL", heard=replace(FINE, beat=replace(BEAT, base_mode=mode)), SYS_HITL=value)
    assert (finding.verdict, finding.advice) == (verdict, advice)


@pytest.mark.parametrize(
    ("value", "verdict", "fact"),
    [
        (1001, "good", "1001: HIL Quadcopter X"),
        (1003, "good", "1003: a HIL airframe"),
        (1100, "fair", "1100: an airframe that the board simulates itself (SIH)"),
        (4001, "fair", "4001: no HIL airframe"),
    ],
)
def test_the_airframe_is_judged(value, verdict, fact):
    finding = only("SYS_AUTOSTART", SYS_AUTOSTART=value)
    assert (finding.verdict, finding.fact) == (verdict, fact)
    assert ("set SYS_AUTOSTART = 1001" in finding.advice) == (verdict == "fair")


@pytest.mark.parametrize("name", ["CAL_ACC0_ID", "CAL_GYRO0_ID", "CAL_MAG0_ID"])
@pytest.mark.parametrize("value", [0, 2_424_852])
def test_calibrations_keep_no_controller_in_the_loop_from_arming_as_px4_checks_none_then(name, value):
    finding = only(name, **{name: value})
    assert (finding.verdict, finding.advice) == ("good", "")
    assert finding.fact == f"{value}: not the simulated sensor, which PX4 does not check while the HIL flag is on"


@pytest.mark.parametrize(
    ("name", "value", "mended"), [("EKF2_AID_MASK", 0, 1), ("EKF2_AID_MASK", 24, 1), ("EKF2_GPS_CTRL", 0, 7), ("EKF2_GPS_CTRL", 8, 7)]
)
def test_an_estimator_without_gps_is_reported_with_the_setting_that_mends_it(name, value, mended):
    finding = only("GPS aiding", **{name: value})
    assert (finding.verdict, finding.advice) == ("bad", f"set {name} = {mended}; restart the controller")
    assert finding.fact == f"{name} {value}: the estimator makes no use of GPS, so there is never a position"
    assert "GPS aiding" not in [each.subject for each in diagnose(USB, replace(FINE, parameters=SETTINGS | {name: mended}))]


@pytest.mark.parametrize(
    ("source", "who"), [(0, "a transmitter at the board's own receiver"), (1, "a joystick at the ground station"), (4, "a transmitter or")]
)
def test_a_failsafe_without_manual_control_is_reported_before_it_comes(source, who):
    finding = only("manual control", NAV_RCL_ACT=2, COM_RC_IN_MODE=source)
    assert finding.verdict == "fair"
    assert finding.fact.startswith(f"NAV_RCL_ACT 2, COM_RC_IN_MODE {source}: a flight without {who}")
    assert "set NAV_RCL_ACT = 0" in finding.advice


def test_a_failsafe_without_a_ground_station_is_reported_before_it_comes():
    finding = only("ground station", NAV_DLL_ACT=2)
    assert (finding.verdict, finding.fact) == ("fair", "NAV_DLL_ACT 2: a flight without a ground station ends in a failsafe")
    assert "set NAV_DLL_ACT = 0" in finding.advice


def test_how_long_a_position_takes_is_reported():
    assert only("position").fact == "EKF2_REQ_GPS_H 10: a position about 17 s after the first sensors; arm after that"


def test_parameters_that_were_not_answered_are_named():
    without = {name: value for name, value in SETTINGS.items() if name not in ("SER_TEL4_BAUD", "MAV_2_RATE")}
    finding = only("parameters", heard=replace(FINE, parameters=without))
    assert (finding.verdict, finding.fact) == ("good", "18 of 21 answered; not there or not answered: MAV_2_RATE, SER_TEL4_BAUD, EKF2_GPS_CTRL")


def test_a_missing_parameter_that_decides_is_asked_for_again():
    without = {name: value for name, value in SETTINGS.items() if name != "SYS_HITL"}
    findings = diagnose(USB, replace(FINE, parameters=without))
    assert "SYS_HITL" not in {finding.subject for finding in findings}
    finding = only("parameters", heard=replace(FINE, parameters=without))
    assert (finding.verdict, "--seconds 20" in finding.advice) == ("fair", True)


def test_no_answer_at_all_points_at_our_wire():
    finding = only("parameters", heard=replace(FINE, parameters={}))
    assert (finding.verdict, finding.fact) == ("fair", "none of 21 was answered")
    assert "look at TX" in finding.advice


def test_usb_has_room():
    assert only("budget").fact == "250 Hz of sensors with all else take 20835 bytes/s up: there is room"


def test_921600_baud_have_room():
    finding = only("budget", UART)
    assert (finding.verdict, finding.advice) == ("good", "")
    assert finding.fact.endswith("take 20835 bytes/s up of 92160; down come about 19700 bytes/s with 196 Hz of motor commands")


def test_115200_baud_are_advised_the_rate_that_fits():
    finding = only("budget", replace(UART, line=Line(LineKind.UART, 115_200)))
    assert finding.verdict == "fair"
    assert finding.fact.startswith("at most 119 Hz of sensors fit into 115200 baud (the line must carry 20835 bytes/s")
    assert "set at least 230400 baud on both sides" in finding.fact
    assert finding.fact.endswith("down come about 5760 bytes/s with 57 Hz of motor commands")
    assert finding.advice.startswith("rate_hz = 100 in [vehicle.controller]")


def test_57600_baud_cannot_begin():
    finding = only("budget", replace(UART, line=Line(LineKind.UART, 57_600)))
    assert (finding.verdict, "got 5472 of 57600 baud, which fits 47 Hz: set at least 115200 baud" in finding.fact) == ("bad", True)


TELEM = {"MAV_0_CONFIG": 101, "MAV_0_RATE": 1200, "SER_TEL1_BAUD": 921_600}


def test_px4s_own_rate_of_telemetry_1_cannot_begin():
    finding = only("budget", UART, **TELEM)
    assert finding.verdict == "bad"
    assert "must be above 5000 bytes/s, or PX4 does not switch hardware-in-the-loop on, got 1200 at 921600 baud" in finding.fact
    assert finding.advice == "set MAV_0_RATE = 0; restart the controller"
    port = only("PX4's port", UART, **TELEM)
    assert (port.verdict, port.fact) == ("fair", "MAV_0 is at TEL1 with 921600 baud and sends at most 1200 bytes/s")


def test_a_slow_port_is_advised_to_send_as_fast_as_the_line():
    slow = replace(UART, line=Line(LineKind.UART, 115_200))
    assert only("budget", slow, **TELEM | {"SER_TEL1_BAUD": 115_200}).advice == "set MAV_0_RATE = 11520; restart the controller"


def test_of_two_ports_that_may_be_it_none_decides():
    both = TELEM | {"MAV_1_CONFIG": 102, "SER_TEL2_BAUD": 921_600}
    assert only("budget", UART, **both).verdict == "good"
    ports = found("PX4's port", UART, **both)
    assert [port.verdict for port in ports] == ["fair", "good"]
    assert ports[0].advice == "if this is the port: set MAV_0_RATE = 0; restart the controller"
    assert ports[1].fact == "MAV_1 is at TEL2 with 921600 baud and sends half of the line"


def test_telemetry_ports_say_nothing_of_usb_or_of_another_rate():
    assert found("PX4's port", **TELEM) == []
    assert found("PX4's port", UART, **TELEM | {"SER_TEL1_BAUD": 57_600}) == []


def test_instances_are_read_from_the_parameters():
    values = {"MAV_0_CONFIG": 102, "SER_TEL2_BAUD": 57_600, "MAV_1_CONFIG": 201, "MAV_2_CONFIG": 104, "MAV_2_RATE": 800}
    assert instances(values) == (
        Instance(number=0, port="TEL2", baud=57_600, bytes_per_s=0),
        Instance(number=2, port="TEL4", baud=None, bytes_per_s=800),
    )


def test_motor_commands_are_counted():
    assert only("motors").fact == "HIL_ACTUATOR_CONTROLS 50.0 Hz; more with sensor frames"


@pytest.mark.parametrize("link", [USB, UART], ids=["usb", "uart"])
def test_motor_commands_that_do_not_come_as_long_as_no_sensors_are_sent_are_no_warning(link):
    finding = only("motors", link, replace(FINE, streams=()))
    assert (finding.verdict, finding.advice) == ("good", "")
    assert finding.fact.startswith("no HIL_ACTUATOR_CONTROLS without sensor frames")
    assert ("MAV_n_RATE = 0" in finding.fact) == (link is UART)


def test_motor_commands_are_not_missed_without_the_flag_or_over_the_network():
    assert found("motors", heard=replace(FINE, streams=(), beat=replace(BEAT, base_mode=81))) == []
    network = only("motors", TCP, replace(FINE, streams=(), beat=replace(BEAT, base_mode=0)))
    assert (network.verdict, network.fact) == ("good", "no HIL_ACTUATOR_CONTROLS yet: they answer sensors")


def test_streams_are_listed_with_the_share_of_the_line():
    assert only("streams").fact == "4671 bytes/s: HIL_ACTUATOR_CONTROLS 50.0 Hz, HEARTBEAT 1.0 Hz"
    assert only("streams", UART).fact.startswith("5% of the line; 4671 bytes/s")


def test_a_full_line_is_reported():
    finding = only("streams", replace(UART, line=Line(LineKind.UART, 57_600)), replace(FINE, streams=(Stream(id=30, frames=800, bytes=44_000),)))
    assert (finding.verdict, finding.fact.split(";")[0]) == ("fair", "95% of the line")
    assert "higher baud rate" in finding.advice


def test_of_many_streams_the_largest_are_named():
    streams = tuple(Stream(id=number, frames=8, bytes=number) for number in range(1, 12))
    assert only("streams", heard=replace(FINE, streams=streams)).fact.endswith("and 3 more")


def test_sensors_without_a_simulator_are_no_fault():
    finding = only("sensors", heard=replace(FINE, health=Health(enabled=0x2F, healthy=0x23, load_ratio=0.3)))
    assert (finding.verdict, finding.fact) == (
        "good",
        "not healthy: magnetometer, barometer, as long as no sensors are sent (SYS_STATUS 0x23 of 0x2f)",
    )
    whole = only("sensors", heard=replace(FINE, health=Health(enabled=0x2F, healthy=0x2F, load_ratio=0.3)))
    assert whole.fact == "all that are enabled are healthy (SYS_STATUS 0x2f of 0x2f)"
    assert found("sensors", heard=replace(FINE, health=None)) == []


def test_a_busy_processor_is_advised_a_lower_rate():
    finding = only("load", heard=replace(FINE, health=Health(enabled=0, healthy=0, load_ratio=0.95)))
    assert (finding.verdict, finding.fact) == ("fair", "95% of the controller's processor is used already")
    assert finding.advice.startswith("rate_hz = 100")


@pytest.mark.parametrize(
    ("flags", "fact"),
    [
        (None, "no ESTIMATOR_STATUS, which starts some seconds after the sensor frames"),
        (0x37F, "ready (flags 0x37f)"),
        (0x37B, "flags 0x37b, not known yet: vertical velocity; ready is 0x37f"),
    ],
)
def test_the_estimator_is_fed_without_judging(flags, fact):
    finding = only("estimator", heard=replace(FINE, estimator_flags=flags))
    assert (finding.verdict, finding.fact.startswith(fact)) == ("good", True)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("BARO #0 failed: STALE!", "noise of barometer and magnetometer must be above 0"),
        ("MAG #0 failed: TIMEOUT!", "more than 0.3 s apart"),
        ("Preflight Fail: Compass #0 uncalibrated", "set CAL_ACC0_ID = 1310988"),
        ("Preflight Fail: High Accelerometer Bias", "must be at rest"),
        ("Takeoff denied! Please disarm and retry", "0x37f"),
        ("Failsafe enabled: No manual control stick input", "set NAV_RCL_ACT = 0"),
        ("Failsafe enabled: no global position", "stalled for half a second"),
        ("Failsafe enabled: no local position", "sensor frames arrived in bursts"),
        ("Navigation failure! Land and recalibrate", "physics ran on"),
    ],
)
def test_warnings_of_the_autopilot_are_explained(text, advice):
    finding = only("last text", heard=replace(FINE, texts=(Text(severity=4, text=text),)))
    assert (finding.verdict, finding.fact) == ("fair", text)
    assert advice in finding.advice


def test_other_texts_are_shown_by_their_severity_the_last_eight():
    texts = tuple(Text(severity=severity, text=f"text {severity}") for severity in range(8, -1, -1))
    findings = found("last text", heard=replace(FINE, texts=texts))
    assert [finding.fact for finding in findings] == [f"text {severity}" for severity in range(7, -1, -1)]
    assert [finding.verdict for finding in findings] == ["good"] * 4 + ["fair"] * 4
    assert {finding.advice for finding in findings} == {""}


def test_the_simulator_link_is_not_asked_for_what_it_cannot_say():
    findings = diagnose(TCP, replace(FINE, beat=replace(BEAT, base_mode=0), asked=(), parameters={}))
    assert [finding.subject for finding in findings] == ["port", "controller", "budget", "motors", "streams"]
    assert {finding.verdict for finding in findings} == {"good"}


def test_messages_are_named_as_the_set_has_them():
    names = {number: kind.msgname for number, kind in common.mavlink_map.items()}
    assert {number: name for number, name in _NAMES.items() if names.get(number) != name} == {8: "LINK_NODE_STATUS"}  # PX4 sends it, the set lacks it
    assert message_name(54_321) == "message 54321"
