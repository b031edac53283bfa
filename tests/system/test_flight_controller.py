"""The real daemon with a flight controller at its link: whole flights, and all that may happen to a link. Outcomes alone are asserted: no figure of time."""

import signal
import subprocess
import time
from contextlib import closing
from itertools import groupby

import numpy as np
import pytest

from hilsim_flight_controller.wire import Splitter, system_of
from tests.compiled import compiled_only
from tests.system.conftest import sensor_table
from tests.system.flying import WHOLE, Nuisance, await_figure, events, faults, figures, first_bytes, order, report_of, serious, stopped, vehicle_rig
from tests.system.reception import unsent
from tests.system.sitl import Sitl

pytestmark = [pytest.mark.system, compiled_only]


def serial_rig(link, *stations, more=""):
    return vehicle_rig(f'kind = "serial"\nport = "{link}"\n{more}', *stations)


@pytest.mark.alone
def test_a_controller_flies_over_a_serial_port_beside_a_lidar_that_loses_no_packet(daemon, rig, programs, lidar, receiver, tmp_path):
    position = receiver()
    running = daemon(rig(sensor_table("roof", lidar.port, position.port), scene=serial_rig(tmp_path / "px4")))
    report = report_of(programs.start("px4", "--pty", tmp_path / "px4", "--script", "hover", "--for", 90))
    assert serious(report, running) == {}
    assert order(report, *WHOLE)[-len(WHOLE) :] == WHOLE
    assert report["figures"]["hover_level_m"] < 0.5
    assert report["figures"]["hover_height_m"] < 0.3
    missing, said = lidar.missing, figures(running)  # in this order: packets go on being dropped
    assert missing <= unsent(said, "roof")
    assert said["hilsim_vehicle_crashed"] == 0
    assert said["hilsim_link_garbage_bytes_total"] == 0
    assert faults(running) == set()
    states = [row["state"] for row in events(running, "session.changed")]
    if report["figures"]["longest_turn_us"] > 100_000 or "gap" in report["broken"]:  # the controller or the daemon stood still: 0.2 s are a silence
        states = [state for state, _ in groupby(state for state in states if state != "silent")]
    assert states[states.index("flying") :] in (["flying"], ["flying", "unplugged"])  # the controller's process has ended by now
    assert set(states[: states.index("flying")]) <= {"unplugged", "calling"}  # what lasts for less than a look is not logged


def test_a_controller_flies_over_tcp_in_lockstep(daemon, rig, programs, free_port):
    address = f"127.0.0.1:{free_port()}"
    running = daemon(rig(scene=vehicle_rig(f'kind = "tcp"\naddress = "{address}"\nlockstep = true')))
    report = report_of(programs.start("px4", "--tcp", address, "--lockstep", "--script", "hop", "--for", 240), timeout_s=270)
    assert serious(report, running) == {}
    assert order(report, *WHOLE)[-len(WHOLE) :] == WHOLE
    said = figures(running)
    assert said["hilsim_vehicle_crashed"] == 0
    frames = said["hilsim_link_sensor_frames_total"]
    assert said["hilsim_link_actuator_frames_total"] == pytest.approx(frames, abs=60)  # but for those before the first


@pytest.mark.alone
@pytest.mark.extended
def test_a_controller_flies_by_datagrams(daemon, rig, programs, free_port):
    port = free_port()
    running = daemon(rig(scene=vehicle_rig(f'kind = "udp"\naddress = "127.0.0.1:{port}"')))
    report = report_of(programs.start("px4", "--udp", port, "--script", "hop", "--for", 60))
    assert serious(report, running) == {}
    assert order(report, *WHOLE)[-len(WHOLE) :] == WHOLE
    assert figures(running)["hilsim_vehicle_crashed"] == 0


@pytest.mark.alone
@pytest.mark.extended
def test_a_cable_that_is_out_noise_and_half_frames_in_hover_do_not_end_the_flight_and_nothing_else_notices(
    daemon, rig, programs, lidar, receiver, tmp_path, wall_time
):
    position = receiver()
    running = daemon(rig(sensor_table("roof", lidar.port, position.port), scene=serial_rig(tmp_path / "px4")))
    happens = ["--garbage-at", 12, "--cable-out-at", 14.5, "--out-for", 3, "--garbage-at", 19]
    started = programs.start("px4", "--pty", tmp_path / "px4", *happens, "--script", "hover", "--for", 90)
    found = set()
    while started[0].poll() is None:
        found |= faults(running)
        time.sleep(0.5)
    report = report_of(started)
    assert serious(report, running) == {}
    assert order(report, *WHOLE)[-len(WHOLE) :] == WHOLE
    assert order(report, "airborne", "babble", "unplugged", "plugged", "land") == ["airborne", "babble", "unplugged", "plugged", "babble", "land"]
    assert found == set()
    missing, said = lidar.missing, figures(running)
    assert said["hilsim_link_losses_total"] >= 1
    assert said["hilsim_link_garbage_bytes_total"] > 0
    assert said["hilsim_vehicle_crashed"] == 0
    assert missing <= unsent(said, "roof")
    assert lidar.longest_gap_s(wall_time) < 0.5
    reasons = [row["reason"] for row in events(running, "session.changed")]
    assert "the link is gone (unplugged, or its other end closed)" in reasons
    assert "the port must open, got No such file or directory: plug the device in" in running.text()


@pytest.mark.alone
@pytest.mark.extended
def test_a_controller_that_reboots_and_loses_its_cable_on_the_ground_flies_all_the_same(daemon, rig, programs, tmp_path):
    running = daemon(rig(scene=serial_rig(tmp_path / "px4")))
    happens = ["--reboot-at", 2, "--cable-out-at", 5.5, "--out-for", 3]
    report = report_of(programs.start("px4", "--pty", tmp_path / "px4", *happens, "--script", "hop", "--for", 90))
    assert serious(report, running) == {}
    assert order(report, *WHOLE)[-len(WHOLE) :] == WHOLE
    told = order(report, "speaking", "reboot", "unplugged", "plugged")
    assert told == ["speaking", "reboot", "unplugged", "plugged", "speaking", "unplugged", "plugged", "speaking"]
    assert figures(running)["hilsim_link_losses_total"] >= 2


@pytest.mark.alone
def test_a_controller_that_reboots_in_the_air_finds_its_vehicle_where_it_began_and_flies_again(daemon, rig, programs, tmp_path):
    running = daemon(rig(scene=serial_rig(tmp_path / "px4")))
    report = report_of(programs.start("px4", "--pty", tmp_path / "px4", "--reboot-at", 11, "--script", "hop", "--for", 60))
    assert set(serious(report, running)) <= {
        "gps_velocity"
    }  # a first position may still be that of the air: only its motor commands show that it has rebooted
    assert order(report, "airborne", "reboot", "done") == ["airborne", "reboot", "airborne", "done"]
    assert any("was restarted" in row["reason"] for row in events(running, "session.changed"))
    assert figures(running)["hilsim_vehicle_crashed"] == 0


@pytest.mark.alone
@pytest.mark.extended
def test_px4_on_linux_that_is_started_anew_on_the_same_cable_is_asked_for_its_heartbeat_and_flies(daemon, rig, programs, tmp_path):
    """Sensor frames of before are the first that it reads: without a heartbeat soon after, its inertial driver fails for good."""
    running = daemon(rig(scene=serial_rig(tmp_path / "px4")))
    happens = ["--linux", "--reboot-at", 3, "--out-for", 5]
    report = report_of(programs.start("px4", "--pty", tmp_path / "px4", *happens, "--script", "hop", "--for", 60))
    assert serious(report, running) == {}
    assert order(report, *WHOLE)[-len(WHOLE) :] == WHOLE
    assert order(report, "reboot", "armed") == ["reboot", "armed"]
    assert report["received"]["COMMAND_LONG"] >= 1
    assert figures(running)["hilsim_vehicle_crashed"] == 0


@pytest.mark.alone
@pytest.mark.extended
def test_px4_on_linux_that_is_started_anew_while_its_vehicle_is_in_the_air_finds_it_where_it_began_and_flies_again(daemon, rig, programs, tmp_path):
    running = daemon(rig(scene=serial_rig(tmp_path / "px4")))
    happens = ["--linux", "--reboot-at", 11, "--out-for", 5]
    report = report_of(programs.start("px4", "--pty", tmp_path / "px4", *happens, "--script", "hop", "--for", 60))
    assert set(serious(report, running)) <= {"gps_velocity"}  # as above
    assert order(report, "airborne", "reboot", "done") == ["airborne", "reboot", "airborne", "done"]
    assert any("was restarted" in row["reason"] for row in events(running, "session.changed"))
    assert figures(running)["hilsim_vehicle_crashed"] == 0
    assert events(running, "vehicle.crashed") == []


@pytest.mark.extended
def test_a_controller_without_the_flag_of_hardware_in_the_loop_gets_no_sensor_and_the_log_and_the_metrics_say_why(daemon, rig, programs, tmp_path):
    running = daemon(rig(scene=serial_rig(tmp_path / "px4")))
    started = programs.start("px4", "--pty", tmp_path / "px4", "--no-hil", "--for", 6)
    running.await_log(r'"state": "refused", "reason": "the controller\'s heartbeat lacks the flag of hardware in the loop \(32\)')
    await_figure(running, 'hilsim_link_state{state="refused"}', lambda value: value == 1)
    report = report_of(started)
    assert serious(report, running) == {}
    assert set(report["received"]) <= {"HEARTBEAT", "TIMESYNC"}
    assert report["received"]["HEARTBEAT"] >= 2
    assert figures(running)["hilsim_link_sensor_frames_total"] == 0


def stand_still(bridge, others):
    """As when the whole machine stands still for 0.3 s and the daemon is the first to run again: nothing that it asked was answered meanwhile."""
    for number, processes in ((signal.SIGSTOP, [*others, bridge]), (signal.SIGCONT, [bridge, *others])):
        for process in processes:
            process.send_signal(number)
            time.sleep(0.01)
        time.sleep(0.3)


def stations_of(report, system):
    """Frames of a ground station that reached the controller, in order."""
    return [raw for raw in report["from_ground"] if system_of(bytes.fromhex(raw)) == system]


@pytest.mark.extended
def test_two_ground_stations_get_every_byte_and_are_heard_whatever_others_do(daemon, rig, programs, tmp_path, free_port):
    udp, tcp, flooded, crowded = (free_port() for _ in range(4))
    stations = (
        f'kind = "udp"\naddress = "127.0.0.1:{udp}"',
        f'kind = "tcp"\naddress = "127.0.0.1:{tcp}"',
        f'kind = "udp_server"\naddress = "127.0.0.1:{flooded}"',
        f'kind = "tcp"\naddress = "127.0.0.1:{crowded}"\nactuators = true',
    )
    running = daemon(rig(scene=serial_rig(tmp_path / "px4", *stations)))
    first = programs.start("ground", "--port", udp, "--script", "chatter")
    second = programs.start("ground", "--tcp", f"127.0.0.1:{tcp}", "--script", "chatter", "--system", 254)
    nuisance = Nuisance(flooded, crowded)
    systems = [part for system in (255, 254, 77) for part in ("--ground-system", system)]
    started = programs.start("px4", "--pty", tmp_path / "px4", *systems, "--script", "hop", "--for", 60)
    running.await_log("vehicle.armed")
    silences = [figures(running)["hilsim_link_silences_total"]]
    for _ in range(3):
        stand_still(running.process, [started[0], first[0], second[0]])
        silences.append(figures(running)["hilsim_link_silences_total"])
    assert 0 in np.diff(silences)  # a busy machine may have kept the controller silent meanwhile, though not each time
    nuisance.begin()
    await_figure(
        running, f'hilsim_ground_station_unsent_frames_total{{station="udp_server 127.0.0.1:{flooded}"}}', lambda unsent: unsent > 1000, 60.0
    )
    report = report_of(started)
    said = figures(running)
    nuisance.end()
    assert serious(report, running) == {}
    assert order(report, *WHOLE)[-len(WHOLE) :] == WHOLE
    for system, heard in ((255, stopped(first)), (254, stopped(second))):
        sent, came = stations_of(report, system), set(stations_of(report, system))
        begin, end = heard["sent"].index(sent[0]), heard["sent"].index(sent[-1])
        missing = [raw for raw in heard["sent"][begin : end + 1] if raw not in came]
        assert len(missing) <= 40 * said["hilsim_link_silences_total"]  # a controller that a busy machine did not run for 0.2 s is sent nothing old
        assert sent == [raw for raw in heard["sent"][begin : end + 1] if raw in came]
        assert len(sent) > 500
        begin = report["sent"].index(heard["came"][0])
        assert heard["came"] == report["sent"][begin : begin + len(heard["came"])]
        assert len(heard["came"]) > 400
        assert heard["garbage_bytes"] == 0
    assert said[f'hilsim_ground_station_peers{{station="tcp 127.0.0.1:{crowded}"}}'] <= 1  # one that takes nothing for ten seconds is let go


@pytest.mark.extended
def test_a_used_port_is_reported_with_its_user_and_opened_when_free_also_under_another_name(daemon, rig, cable, tmp_path):
    first = cable(tmp_path / "px4")
    with open(first.device, "rb+", buffering=0) as held:  # noqa: PTH123 - a device
        holder = subprocess.Popen(["sleep", "60"], stdin=held)
    running = daemon(rig(scene=serial_rig(tmp_path / "px4")))
    running.await_log(rf"link\.not_opened.*{tmp_path / 'px4'}: the port must be free, got it in use by sleep \(pid {holder.pid}\): end it")
    assert first.read() == b""
    holder.terminate()
    holder.wait()
    running.await_log(rf'link\.opened", "device": "{first.device}", "sensor_rate_hz": 250')
    second = cable(tmp_path / "px4")
    assert second.device != first.device
    first.pull()
    running.await_log(rf'link\.opened", "device": "{second.device}"')
    assert [frame.identity for frame in Splitter().feed(first_bytes(second))] == [0]


@pytest.mark.extended
@pytest.mark.parametrize(
    ("baud", "said", "rate_hz"),
    [
        (
            57_600,
            r"link\.not_opened.*/dev/pts/\d+: the line must carry 5635 bytes/s \(50 Hz HIL_SENSOR.*got 5472 of 57600 baud.*set at least 115200 baud",
            0,
        ),
        (115_200, r'link\.rate_lowered", "asked_hz": 250, "sensor_rate_hz": 100, "baud": 115200, "line_bytes_per_s": 11520', 100),
    ],
)
def test_a_line_that_is_too_slow_is_refused_or_fed_slower_and_the_figures_are_reported(daemon, rig, programs, tmp_path, baud, said, rate_hz):
    more = f"is_uart = true\nbaud = {baud}"
    running = daemon(rig(scene=serial_rig(tmp_path / "px4", more=more)))
    report = report_of(programs.start("px4", "--pty", tmp_path / "px4", "--for", 5))
    running.await_log(said)
    assert serious(report, running) == {}
    assert figures(running)["hilsim_link_sensor_rate_hertz"] == rate_hz
    sensors = report["received"].get("HIL_SENSOR", 0)
    assert sensors <= rate_hz * 5.5
    assert (sensors > 0) == (rate_hz > 0)


@pytest.mark.extended
def test_ardupilots_link_climbs_hovers_and_lands_steps_no_frame_twice_and_begins_anew_at_a_restart(daemon, rig, free_port):
    port = free_port()
    running = daemon(rig(scene=vehicle_rig(f'kind = "ardupilot"\naddress = "127.0.0.1:{port}"')))
    with closing(Sitl(port)) as sitl:
        first = sitl.send(0.0)
        again = sitl.exchange(sitl.last)
        assert again == first
        assert first["timestamp"] == pytest.approx(1 / 400)
        answer = sitl.fly(14.0, lambda time_s: min(time_s, 3.0) if time_s < 8.0 else max(3.0 - 0.8 * (time_s - 8.0), 0.0))
        hover = sitl.heights_m[6 * 400 : 8 * 400]
        assert max(abs(height_m - 3.0) for height_m in hover) < 0.3
        assert abs(sitl.heights_m[-1]) < 0.05
        assert answer["velocity"] == pytest.approx([0.0, 0.0, 0.0], abs=0.02)
        assert answer["timestamp"] == pytest.approx((sitl.frame) / 400)
        assert answer["imu"]["accel_body"] == pytest.approx([0.0, 0.0, -9.80665], abs=0.05)
        sitl.send(0.9)
        sitl.restart()
        anew = sitl.send(0.0)
        assert anew["timestamp"] == pytest.approx(1 / 400)
        assert anew["position"] == pytest.approx(first["position"], abs=1e-6)
        sitl.socket.send(b"no servo packet")
        assert sitl.send(0.0)["timestamp"] == pytest.approx(2 / 400)
    said = figures(running)
    assert said["hilsim_vehicle_crashed"] == 0
    await_figure(running, 'hilsim_link_state{state="calling"}', lambda value: value == 1)
