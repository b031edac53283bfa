"""Bad input of every kind: a clear message, exit code 1, nothing half-started."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from hilsim.compilation.cache import cache_directory
from hilsim.config.profiles import profiles_directory
from tests import commands
from tests.support import ROOM, write_rig
from tests.system.conftest import SCENE, sensor_table

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

_NOBODY = 65534
COLD_TIMEOUT_S = 800
"""Who may not use the cache compiles everything: minutes on a busy machine."""


def hilsim(*arguments, **environment):
    return commands.run(*arguments, timeout_s=COLD_TIMEOUT_S, environment=environment)


def refused(result, *texts):
    assert result.returncode == 1, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    for text in texts:
        assert text in result.stderr


def test_all_faults_of_a_rig_are_reported_at_once_with_file_and_key(tmp_path):
    text = ROOM.replace('name = "lidar"', 'name = "lidar"\nrotation_rate_rpm = 10\nphase_dge = 3.0').replace("radius_m = 0.3", 'radius_m = "thick"')
    path = write_rig(tmp_path, text)
    refused(
        hilsim("check", path),
        f'{path}: sensor[0].phase_dge: unknown key (did you mean "phase_deg"?)',
        f'{path}: scene.cylinder[0].radius_m must be number, got "thick"',
    )


def test_a_rate_the_model_cannot_turn_at_is_refused(tmp_path):
    path = write_rig(tmp_path, ROOM.replace('name = "lidar"', 'name = "lidar"\nrotation_rate_rpm = 610'))
    refused(hilsim("check", path), "sensor[0].rotation_rate_rpm must be 300 to 1200 in steps of 60 for a VLP-16, got 610")


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_missing_mesh_is_named(tmp_path, command):
    path = write_rig(tmp_path, ROOM + '\n[[scene.mesh]]\nfile = "nowhere.obj"\n')
    refused(hilsim(command, path), "nowhere.obj")


def test_a_broken_mesh_is_named(tmp_path):
    (tmp_path / "broken.glb").write_bytes(b"this is not glTF")
    path = write_rig(tmp_path, ROOM + '\n[[scene.mesh]]\nfile = "broken.glb"\n')
    refused(hilsim("check", path), "broken.glb")


def test_an_empty_scene_is_refused(tmp_path):
    path = write_rig(tmp_path, 'name = "void"\n[[sensor]]\nname = "lidar"\n')
    refused(hilsim("check", path), "scene")


def test_poses_that_are_not_numbers_are_refused(tmp_path):
    (tmp_path / "way.csv").write_text("time_s,x_m,y_m,z_m,qw,qx,qy,qz\n0,0,0,0,1,0,0,0\n1,nan,0,0,1,0,0,0\n")
    path = write_rig(tmp_path, ROOM + '\n[platform]\nkind = "trajectory"\nfile = "way.csv"\n')
    refused(hilsim("check", path), "way.csv", "nan")


def test_a_shipped_rig_that_does_not_exist_lists_those_that_do():
    refused(hilsim("check", "demmo"), "demo")


def test_a_metrics_port_in_use_is_named_and_nothing_is_left_running(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        path = write_rig(tmp_path, SCENE.replace("port = 0", f"port = {port}") + sensor_table("roof", 40_001, 40_002))
        refused(hilsim("run", path, "--duration-s", "5"), f"127.0.0.1:{port}")


def test_a_source_port_in_use_is_named(tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.7.7", 2368))
        table = sensor_table("roof", 40_001, 40_002).replace("127.0.1.201", "127.0.7.7").replace('source_ports = "any"', "")
        refused(hilsim("run", write_rig(tmp_path, SCENE + table), "--duration-s", "5"), "127.0.7.7:2368")


def test_a_source_address_that_is_not_this_hosts_is_named(tmp_path):
    table = sensor_table("roof", 40_001, 40_002).replace("127.0.1.201", "203.0.113.7")
    refused(hilsim("run", write_rig(tmp_path, SCENE + table), "--duration-s", "5"), "203.0.113.7")


def test_raw_frames_on_an_interface_that_is_not_there_are_refused(tmp_path):
    table = sensor_table("roof", 40_001, 40_002, network='mode = "ethernet"\ninterface = "nothere0"\ndestination_mac = "02:00:00:00:00:09"\n')
    refused(hilsim("run", write_rig(tmp_path, SCENE + table), "--duration-s", "5"), "nothere0")


@pytest.fixture(scope="module")
def nobodys_room():
    """A folder that every user can read, with a copy of compiled kernels in it: who is not root can neither read root's nor, where Python is root's own, start the processes that compile them.

    Not one of pytest's own folders: each pytest that starts takes the way into those from other users again.
    """
    with tempfile.TemporaryDirectory(prefix="hilsim-nobody-") as name:
        room = Path(name)
        room.chmod(0o755)
        rig = write_rig(room, SCENE + sensor_table("roof", 40_001, 40_002))
        assert hilsim("warm", rig).returncode == 0
        shutil.copytree(cache_directory(), room / "kernels")
        for path in (room / "kernels", *(room / "kernels").rglob("*")):
            os.chown(path, _NOBODY, _NOBODY)
        yield room


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to start a process without root's rights")
@pytest.mark.parametrize(
    ("network", "transmit", "named"),
    [
        ('mode = "ethernet"\ninterface = "lo"\ndestination_mac = "02:00:00:00:00:09"\n', "", "CAP_NET_RAW"),
        ("", '[transmit]\nscheduling = "fifo"\n', "CAP_SYS_NICE"),
    ],
)
def test_without_the_right_the_message_says_which_one_to_grant(nobodys_room, network, transmit, named):
    path = write_rig(nobodys_room, SCENE + transmit + sensor_table("roof", 40_001, 40_002, network=network))
    result = subprocess.run(
        [
            "setpriv",
            f"--reuid={_NOBODY}",
            f"--regid={_NOBODY}",
            "--clear-groups",
            sys.executable,
            "-m",
            "hilsim",
            "run",
            str(path),
            "--duration-s",
            "5",
        ],
        capture_output=True,
        text=True,
        timeout=COLD_TIMEOUT_S,
        check=False,
        env=os.environ | {"HOME": "/nonexistent", "NUMBA_CACHE_DIR": str(nobodys_room)},
    )
    refused(result, named)


@pytest.mark.extended
def test_an_unwritable_cache_costs_a_compile_and_nothing_else(tmp_path):
    path = write_rig(tmp_path, (profiles_directory() / "rigs" / "rangefinder.toml").read_text())  # a scene and rays, and few kernels for them
    result = hilsim(
        "check", path, HOME="/proc/nowhere", XDG_CACHE_HOME="/proc/nowhere", NUMBA_CACHE_DIR="/proc/nowhere", CACHE_DIRECTORY="/proc/nowhere"
    )
    assert result.returncode == 0, result.stderr


def test_a_command_that_is_not_understood_exits_with_2():
    assert hilsim("verify").returncode == 2
    assert hilsim("record", "demo").returncode == 2
