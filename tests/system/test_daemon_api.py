"""``hilsim.api.daemon``: a stream that runs while a block does, and no longer."""

import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from hilsim.api.control import Control
from hilsim.api.daemon import Daemon, DaemonError
from hilsim.config.rig import rig_of_table
from hilsim.errors import ConfigError, TransmitError
from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE
from tests.system.conftest import SCENE, sensor_table

pytestmark = pytest.mark.system


def room(data, position):
    """A rig as tables."""
    return tomllib.loads(SCENE + sensor_table("roof", data.port, position.port))


def is_there(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except FileNotFoundError:
        return False


def await_gone(pid):
    until_s = time.monotonic() + 60
    while is_there(pid):
        assert time.monotonic() < until_s
        time.sleep(0.02)


def private_directories(pid):
    """Those announced to a daemon."""
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return Path(words[words.index("--ready-file") + 1]).parent


def test_packets_flow_in_the_block_and_nothing_is_left_after_it(receiver):
    data, position = receiver(), receiver()
    with Daemon(room(data, position)) as daemon:
        assert {len(payload) for payload, _ in data.take(50)} == {DATA_PACKET_SIZE}
        (sensor,) = daemon.sensors
        assert (sensor.name, sensor.model, sensor.source, dict(sensor.ports)) == (
            "roof",
            "VLP-16",
            "127.0.1.201",
            {"data": data.port, "position": position.port},
        )
        metrics = daemon.metrics()
        assert metrics.total("hilsim_sent_packets_total", sensor="roof", flow="data") >= 50
        assert metrics['hilsim_sent_packets_total{flow="data",sensor="roof"}'] >= 50
        place = private_directories(daemon.pid)
        assert place.is_dir()
    assert daemon.exit_code == 0
    assert not is_there(daemon.pid)
    assert not place.exists()


def test_its_control_is_there_without_a_word_of_it_in_the_rig(receiver):
    data, position = receiver(), receiver()
    with Daemon(room(data, position)) as daemon:
        health = daemon.control.health()
        assert health.level in {"healthy", "degraded"}
        assert daemon.control.status().replays == ()
        with pytest.raises(ConfigError, match="a replay must be one of"):
            daemon.control.pause("roof")


@pytest.mark.extended
def test_control_and_metrics_settings_of_the_rig_apply(receiver, tmp_path, free_port):
    data, position, port = receiver(), receiver(), free_port()
    path = tmp_path / "rig.toml"
    path.write_text(SCENE.replace("port = 0", f"port = {port}") + '[control]\nsocket = "door"\n' + sensor_table("roof", data.port, position.port))
    with Daemon(path) as daemon:
        assert daemon.control.address == str(tmp_path / "door")
        assert Control(tmp_path / "door").health().step_s > 0
        assert daemon.metrics().total("hilsim_sent_packets_total") > 0
        assert f"http://127.0.0.1:{port}/metrics" in daemon.log


@pytest.mark.extended
def test_options_change_the_rig(receiver):
    data, moved, position = receiver(), receiver(), receiver()
    changes = {"sensor.roof.network.source": "127.0.1.77", "sensor.roof.name": "left"}
    with Daemon(room(data, position), to=f"127.0.0.1:{moved.port}", settings=changes) as daemon:
        assert {address for _, (address, _) in moved.take(10)} == {"127.0.1.77"}
        assert daemon.sensors[0].name == "left"


@pytest.mark.extended
@pytest.mark.parametrize("loaded", [False, True])
def test_files_that_a_mapping_names_are_found_from_the_working_directory(receiver, tmp_path, monkeypatch, loaded):
    data, position = receiver(), receiver()
    monkeypatch.chdir(tmp_path)
    rig = room(data, position) | {"platform": {"kind": "trajectory", "file": "path.csv"}}
    (tmp_path / "path.csv").write_text("time_s,x,y,z,roll_deg,pitch_deg,yaw_deg\n0,0,0,0,0,0,0\n1,1,0,0,0,0,0\n")
    with Daemon(rig_of_table(rig, tmp_path / "rig") if loaded else rig) as daemon:
        assert len(data.take(3)) == 3
    assert daemon.exit_code == 0


def test_the_daemons_own_message_is_raised_when_it_does_not_start(receiver, tmp_path):
    data, position = receiver(), receiver()
    rig = room(data, position)
    rig["sensor"][0]["rotation_rate_rpm"] = 1
    log = tmp_path / "log"
    log.write_text("error: of another run\n")
    with (
        pytest.raises(
            DaemonError, match=r"the daemon must run, got exit code 1; its output:\n\S+: sensor\[0\]\.rotation_rate_rpm must be 300 to 1200"
        ),
        Daemon(rig, log=log),
    ):
        pass
    assert "rotation_rate_rpm must be" in log.read_text()


@pytest.mark.extended
def test_a_daemon_that_has_died_is_named_when_it_is_asked(receiver):
    data, position = receiver(), receiver()
    with Daemon(room(data, position)) as daemon:
        os.kill(daemon.pid, signal.SIGKILL)
        await_gone(daemon.pid)
        with pytest.raises(DaemonError, match="the daemon must run, got signal SIGKILL"):
            daemon.metrics()
        with pytest.raises(TransmitError, match="a daemon must listen at"):
            daemon.control.status()


@pytest.mark.extended
def test_it_ends_when_the_block_is_left_by_an_exception(receiver):
    data, position = receiver(), receiver()
    with pytest.raises(KeyError, match="mine"), Daemon(room(data, position)) as daemon:
        raise KeyError("mine")
    assert not is_there(daemon.pid)


def test_a_name_that_is_no_rigs_is_refused_with_those_there_are():
    with (
        pytest.raises(
            ConfigError, match=r'rig must be a \.toml or \.sdf file or one of the shipped ones \(.*demo.*\), got "dmeo"; did you mean "demo"'
        ),
        Daemon("dmeo"),
    ):
        pass


@pytest.mark.extended
def test_it_does_not_outlive_a_process_that_is_killed(receiver, tmp_path):
    data, position = receiver(), receiver()
    program = f"import time; from hilsim.api.daemon import Daemon\nwith Daemon({room(data, position)!r}) as daemon: print(daemon.pid, flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": str(tmp_path)}) as parent:
        pid = int(parent.stdout.readline())
        assert is_there(pid)
        parent.kill()
    await_gone(pid)
