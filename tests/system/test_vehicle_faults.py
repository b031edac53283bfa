"""The real daemon breaks a vehicle on request, and a ground station's program asks for it, too."""

import signal
import time

import pytest
from pymavlink import mavutil

import hilsim
from tests.compiled import compiled_only
from tests.support import write_rig
from tests.system.flying import await_figure, figures, order, report_of, vehicle_rig

pytestmark = [pytest.mark.extended, pytest.mark.system, compiled_only]
CONTROL = '[control]\nsocket = "control"\n'
WAYPOINT = "[[vehicle.waypoint]]\ntime_s = 0.0\nposition_m = [0.0, 0.0, 1.5]\n"


def await_that(condition, timeout_s=60.0):
    until_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < until_s
        time.sleep(0.02)


def test_a_running_vehicle_loses_thrust_and_gets_it_back(daemon, tmp_path):
    rig = vehicle_rig('kind = "hold"') + WAYPOINT + CONTROL
    running = daemon(write_rig(tmp_path, rig))
    control = hilsim.connect(tmp_path / "control")

    def height_m():
        return control.state()["vehicle"]["truth"]["position_m"][2]

    await_that(lambda: height_m() > 1.3)
    made = control.fault("motor_weak", motors=[1, 2, 3, 4], thrust=0.4)
    assert set(made.sensors) == {"vehicle"}
    assert [fault["name"] for fault in control.faults()] == ["motor_weak"]
    await_that(lambda: height_m() < 0.9)
    control.change("clear")
    assert control.faults() == ()
    await_that(lambda: height_m() > 1.3)
    with pytest.raises(hilsim.ConfigError, match="motors of motor_dead must be 1 to 4, got 6"):
        control.fault("motor_dead", motors=[6])
    with pytest.raises(hilsim.ConfigError, match="must name a vehicle that a flight controller reads"):
        control.fault("compass_off")
    script = control.script()
    assert [change["kind"] for change in script] == ["fault", "clear"]
    assert script[0]["fault"]["thrust"] == 0.4
    write_rig(tmp_path, rig + '[[fault]]\nkind = "motor_dead"\nmotors = [1, 2, 3, 4]\n')
    running.process.send_signal(signal.SIGHUP)
    await_that(lambda: height_m() < 0.3)  # a reload brings the file's faults to the vehicle that flies
    assert running.stop()[0] == 0


def test_a_station_injects_failures_and_each_is_answered_once(daemon, tmp_path, programs, free_port):
    port = free_port()
    station = f'kind = "udp_server"\naddress = "127.0.0.1:{port}"'
    rig = vehicle_rig(f'kind = "serial"\nport = "{tmp_path / "px4"}"', station) + CONTROL
    running = daemon(write_rig(tmp_path, rig))
    programs.start("px4", "--pty", tmp_path / "px4", "--script", "idle", "--for", 120)
    control = hilsim.connect(tmp_path / "control")
    ground = mavutil.mavlink_connection(f"udpout:127.0.0.1:{port}", source_system=255, source_component=190, dialect="common")
    await_that(lambda: ground.mav.heartbeat_send(6, 8, 0, 0, 4) or ground.recv_match(type="HEARTBEAT", blocking=True, timeout=0.5) is not None)
    ground.target_system, ground.target_component = 1, 1

    def inject(unit, failure, instance=0):
        ground.mav.command_long_send(1, 1, mavutil.mavlink.MAV_CMD_INJECT_FAILURE, 0, unit, failure, instance, 0, 0, 0, 0)
        answer = ground.recv_match(type="COMMAND_ACK", blocking=True, timeout=20)
        assert (answer.command, answer.get_srcSystem(), answer.get_srcComponent()) == (420, 1, 1)
        assert ground.recv_match(type="COMMAND_ACK", blocking=True, timeout=0.3) is None
        return answer.result

    def faults():
        return [(fault["name"], fault["kind"]) for fault in control.faults()]

    assert inject(mavutil.mavlink.FAILURE_UNIT_SENSOR_GPS, mavutil.mavlink.FAILURE_TYPE_OFF) == mavutil.mavlink.MAV_RESULT_ACCEPTED
    assert faults() == [("injected-gps-1", "gps_off")]
    assert inject(mavutil.mavlink.FAILURE_UNIT_SENSOR_GPS, mavutil.mavlink.FAILURE_TYPE_STUCK) == mavutil.mavlink.MAV_RESULT_ACCEPTED
    assert inject(mavutil.mavlink.FAILURE_UNIT_SENSOR_MAG, mavutil.mavlink.FAILURE_TYPE_OFF) == mavutil.mavlink.MAV_RESULT_ACCEPTED
    assert inject(mavutil.mavlink.FAILURE_UNIT_SYSTEM_BATTERY, mavutil.mavlink.FAILURE_TYPE_OFF) == mavutil.mavlink.MAV_RESULT_UNSUPPORTED
    assert faults() == [("injected-gps-1", "gps_stuck"), ("injected-compass-1", "compass_off")]
    assert inject(mavutil.mavlink.FAILURE_UNIT_SENSOR_GPS, mavutil.mavlink.FAILURE_TYPE_OK) == mavutil.mavlink.MAV_RESULT_ACCEPTED
    assert faults() == [("injected-compass-1", "compass_off")]
    running.await_log(r"failure\.injected")
    ground.close()
    await_figure(running, 'hilsim_link_state{state="flying"}', lambda value: value == 1)


def test_a_controller_bears_a_bad_line_and_a_cable_that_was_out(daemon, tmp_path, programs):
    running = daemon(write_rig(tmp_path, vehicle_rig(f'kind = "serial"\nport = "{tmp_path / "px4"}"') + CONTROL))
    started = programs.start("px4", "--pty", tmp_path / "px4", "--script", "hop", "--for", 120)
    control = hilsim.connect(tmp_path / "control")
    flying = 'hilsim_link_state{state="flying"}'
    await_figure(running, flying, lambda value: value == 1)
    control.fault("bit_errors", on="vehicle", bit_error_ratio=2e-5, for_s=4.0)
    await_figure(running, "hilsim_link_garbage_bytes_total", lambda value: value > 0)
    control.fault("cable_out", for_s=1.0)
    await_figure(running, flying, lambda value: value == 0)
    running.await_log(r"link\.not_opened.*vehicle: the cable must be in, got it out by the fault cable_out")
    await_figure(running, flying, lambda value: value == 1)
    report = report_of(started)
    assert report["figures"]["sensor_frames"] > 1000
    assert order(report, "armed", "airborne", "touchdown", "disarmed") == ["armed", "airborne", "touchdown", "disarmed"]
    assert figures(running)["hilsim_vehicle_crashed"] == 0
