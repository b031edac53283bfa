"""The control interface of a real daemon's Livox: what hosts set acts on its stream, is kept, and is undone by a reload."""

import signal
import time

import pytest

import hilsim
from hilsim.families.livox.interface.keys import Work
from hilsim.families.livox.protocol.commands import Command, ReturnCode, counted
from hilsim.families.livox.protocol.points import read_header
from tests.livox_units import SENSOR, Host, counted_keys, destination, only_livox, read_answered_pairs  # noqa: F401 - a fixture
from tests.support import write_rig
from tests.system.test_ouster_sensor import arrived, drain, take, until

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("only_livox")]
RIG = """
name = "rig"
seed = 5

[control]
socket = "control"

[[scene.box]]
position_m = [0.0, 0.0, 0.0]
size_m = [14.0, 10.0, 6.0]

[[sensor]]
name = "top"
profile = "mid360"
sub_rays = 1
[sensor.network]
source = "{source}"
data_port = {data_port}
position_port = {position_port}
[sensor.web]
boot_s = {boot_s}
destinations = ["127.0.0.0/8"]
saved_file = "saved.json"
"""


@pytest.fixture
def rig(receiver, tmp_path):
    points, imu = receiver(), receiver()

    def write(boot_s=0.0, more=""):
        return write_rig(tmp_path, RIG.format(source=SENSOR, data_port=points.port, position_port=imu.port, boot_s=boot_s) + more)

    return points, imu, write


def values(host, *keys):
    return dict(read_answered_pairs(host.ask(Command.QUERY, counted_keys(keys))))


def header(receiver):
    drain(receiver)
    return read_header(take(receiver, 30)[-1])


def test_what_a_host_sets_acts_on_the_stream_is_a_timed_change_and_outlasts_the_daemon(daemon, rig, receiver, tmp_path):
    points, imu, write = rig
    running = daemon(write())
    with Host() as host:
        assert header(points).data_type == 1
        assert header(imu).length == 60
        assert host.ask(Command.SET, counted([(0x0000, b"\3"), (0x0012, bytes(23) + b"\1")])) == bytes(3)
        assert header(points).length == 996
        other = receiver()
        assert host.ask(Command.SET, counted([destination(6, other.port, "127.0.0.1")])) == bytes(3)
        assert header(other).data_type == 3
        time.sleep(0.05)
        drain(points)
        assert not arrived(points)
        assert host.ask(Command.SET, counted([destination(6, 56_301, "10.9.9.9")])) == bytes([ReturnCode.FAILED, 0, 0])
        assert host.ask(Command.SET, counted([destination(5, 56_201, "10.9.9.9")])) == bytes([ReturnCode.FAILED, 0, 0])
        script = [change for change in hilsim.connect(tmp_path / "control").script() if change["kind"] == "sensor"]
        assert [change["livox"]["pcl_data_type"] for change in script] == [3]
        assert host.ask(Command.SET, counted([(0x001C, b"\0")])) == bytes(3)
        time.sleep(0.05)
        drain(imu)
        time.sleep(0.05)
        assert not arrived(imu)
        kept = values(host, 0x0000, 0x0006, 0x001C)
    running.process.send_signal(signal.SIGTERM)
    running.process.wait(30)

    running = daemon(write())
    running.await_log(r'"event": "sensor\.livox\.saved_used"')
    with Host() as host:
        assert values(host, 0x0000, 0x0006, 0x001C) == kept
        assert header(other).data_type == 3
        running.process.send_signal(signal.SIGHUP)
        running.await_log(r'"event": "rig\.reloaded"')
        until(lambda: values(host, 0x0000)[0] == b"\1")
        until(lambda: header(points).data_type == 1)
        assert header(imu).length == 60


def test_a_reboot_takes_its_time_and_a_script_changes_what_hosts_read(daemon, rig, tmp_path):
    points, _, write = rig
    running = daemon(write(boot_s=1.6))
    running.await_log(r'"event": "sensor\.livox\.work_state".*"state": "SAMPLING"')
    with Host() as host:
        assert header(points).data_type == 1
        control = hilsim.connect(tmp_path / "control")
        control.change("sensor", sensor="top", livox={"pcl_data_type": 2, "fov_enable": 1, "fov_deg": [[0, 90, -10, 20], [0, 360, -10, 60]]})
        read = values(host, 0x0000, 0x0015, 0x0017)
        assert (read[0x0000], read[0x0017], read[0x0015][4:8]) == (b"\2", b"\1", (90).to_bytes(4, "little"))
        assert host.ask(Command.REBOOT, bytes(2)) == b"\0"
        drain(points)
        states = []
        while Work.SAMPLING not in states:
            states.append(Work(values(host, 0x8006)[0x8006][0]))
        assert list(dict.fromkeys(states)) == [Work.SELFCHECK, Work.MOTOR_STARTUP, Work.READY, Work.SAMPLING]
        assert header(points).data_type == 2
        assert values(host, 0x8008)[0x8008] == (2).to_bytes(4, "little")


@pytest.mark.parametrize("text", ["{", '{"0x0000": "11"}', '{"0x9999": "00"}'])
def test_a_saved_file_that_cannot_be_used_is_reported_and_the_sensor_runs_as_the_rig_says(text, daemon, rig, tmp_path):
    points, _, write = rig
    (tmp_path / "saved.json").write_text(text)
    daemon(write()).await_log(r'"event": "sensor\.livox\.saved_not_used".*saved\.json: must be settings')
    assert header(points).data_type == 1


@pytest.mark.parametrize(
    ("key", "fault"),
    [
        ('serial = "47MDK"', "livox.serial says the number"),
        ("port = 8080", "its UDP ports are fixed"),
    ],
)
def test_keys_of_other_sensors_interfaces_are_refused(key, fault, tmp_path):
    path = write_rig(tmp_path, RIG.format(source=SENSOR, data_port=1, position_port=2, boot_s=1.0) + key)
    with pytest.raises(hilsim.ConfigError, match=fault):
        hilsim.load_rig(path)
    path.write_text(path.read_text().replace(key, "").replace(SENSOR, "127.0.0.1"))
    with pytest.raises(hilsim.ConfigError, match=r"network\.source must not be the destination"):
        hilsim.load_rig(path)
