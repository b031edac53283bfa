"""``hilsim.testing``: lidars for the tests of others' drivers, in a project of their own."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

import hilsim
import hilsim.testing
from hilsim.api.daemon import DaemonError
from hilsim.compilation import cache as kernel_cache
from hilsim.errors import ConfigError, TransmitError
from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE
from hilsim.testing.starting import warm_starter

pytestmark = pytest.mark.system
pytest_plugins = ["pytester"]

IS_INSTALLED = any(entry.value == "hilsim.testing.plugin" for entry in entry_points(group="pytest11"))
PLUGIN = () if IS_INSTALLED else ("-p", "hilsim.testing.plugin")
"""An environment that was installed before there was the plugin has no entry point of it."""
GONE_S = 60.0

HOW_TO = Path(hilsim.__file__).parent.parent / "docs" / "how-to" / "test-a-driver.md"
TEN_LINES, *_ = re.findall(r"```python\n(.*?)```", HOW_TO.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def project(pytester, monkeypatch):
    """An empty project; kernels are those of this run."""
    directory = kernel_cache.cache_directory()
    if directory is not None:
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(directory.parent))  # pytester has a home of its own
    monkeypatch.setenv("PYTHONPATH", str(Path(hilsim.__file__).parent.parent))
    monkeypatch.setenv("TMPDIR", str(pytester.mkdir("temporary")))
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    return pytester


def files(directory):
    return [path for path in directory.rglob("*") if path.is_file() or path.is_socket()]


def of_this_project(project):
    """Processes that work in a project's directory."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and f"TMPDIR={project.path}/temporary".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes())
        except OSError:
            continue  # it has ended, or is another's
    return found


def await_none_left(project):
    until_s = time.monotonic() + GONE_S
    while left := of_this_project(project):
        assert time.monotonic() < until_s, left
        time.sleep(0.05)


def test_ten_lines_of_a_fresh_project_have_a_sensor_and_leave_nothing(project):
    assert TEN_LINES.rstrip().count("\n") < 10
    project.makepyfile(TEN_LINES)
    project.runpytest_subprocess(*PLUGIN, f"--basetemp={project.path}/kept").assert_outcomes(passed=1)
    await_none_left(project)
    assert files(project.path / "temporary") + files(project.path / "kept") == []


@pytest.mark.extended
def test_a_failed_test_has_its_packets_and_metrics_in_the_report(project):
    project.makepyfile(
        "def test_two(hilsim_lidar):\n    a, b = hilsim_lidar('vlp16'), hilsim_lidar('vlp16', name='rear')\n    a.receive(20), b.receive(20)\n    assert a.port == b.port\n"
    )
    result = project.runpytest_subprocess(*PLUGIN, f"--basetemp={project.path}/kept")
    result.assert_outcomes(failed=1)
    for name in ("lidar", "rear"):
        result.stdout.fnmatch_lines(
            [f"*- hilsim {name} -*", f"vlp16 {name}: 127.0.* to 127.0.0.1:*", f'hilsim_sent_packets_total{{flow="data",sensor="{name}"}} *']
        )
        (capture,) = [Path(found) for found in re.findall(r"sent: (\S+\.pcap)", result.stdout.str()) if f"/{name}-" in found]
        packets = [packet for packet in hilsim.read_capture(capture) if packet.stream == "data"]
        assert len(packets) >= 20
        assert "hilsim_sent_packets_total" in (capture.parent / f"{name}-metrics.txt").read_text()
    await_none_left(project)


@pytest.mark.extended
def test_workers_beside_each_other_have_ports_and_addresses_of_their_own(project):
    project.makepyfile(
        "import pathlib, pytest\n"
        "@pytest.mark.parametrize('number', range(4))\n"
        "def test_sensors(hilsim_lidar, number):\n"
        "    sensors = [hilsim_lidar('vlp16') for _ in range(2)]\n"
        "    for sensor in sensors:\n"
        "        assert {len(payload) for payload in sensor.receive(200)} == {1206}\n"
        "    report = ''.join(f'{sensor.port} {sensor.position_port} {sensor.address}\\n' for sensor in sensors)\n"
        f"    pathlib.Path({str(project.path)!r}, f'report-{{number}}').write_text(report)\n"
    )
    project.runpytest_subprocess(*PLUGIN, "-n", "2").assert_outcomes(passed=4)
    said = [word for path in project.path.glob("report-*") for word in path.read_text().split()]
    assert len(said) == 24
    await_none_left(project)


def test_a_suite_without_sensors_imports_and_starts_nothing(project):
    project.makepyfile(
        "import sys\ndef test_nothing():\n    assert not {'numba', 'numpy', 'hilsim.testing.starting', 'hilsim.testing.factory'} & set(sys.modules)\n"
    )
    project.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=1)


@pytest.mark.extended
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_interrupted_leaves_nothing(project, number):
    project.makepyfile(
        "import pathlib, time\n"
        "def test_for_long(hilsim_lidar):\n"
        "    sensor = hilsim_lidar('vlp16')\n"
        "    sensor.receive()\n"
        f"    pathlib.Path({str(project.path)!r}, 'begun').touch()\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-m", "pytest", *PLUGIN, f"--basetemp={project.path}/kept"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        until_s = time.monotonic() + 280
        while not (project.path / "begun").exists():
            assert running.poll() is None
            assert time.monotonic() < until_s
            time.sleep(0.02)
        assert of_this_project(project)
        running.send_signal(number)
    await_none_left(project)
    assert files(project.path / "temporary") == []


@pytest.mark.extended
def test_a_daemon_that_does_not_start_says_why(project):
    project.makepyfile("def test_it(hilsim_lidar):\n    hilsim_lidar('vlp16', rotation_rate_rpm=1)\n")
    result = project.runpytest_subprocess(*PLUGIN)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*DaemonError: the daemon must run, got exit code 1; its output:", "*rotation_rate_rpm must be 300 to 1200*"])


def test_a_lidar_sends_from_its_address_what_a_decoder_makes_the_room_of():
    with hilsim.testing.lidar("vlp16", override={"range_noise_m": 0.0}) as sensor:
        points = sensor.points(80)
        _, (address, _) = sensor.socket().recvfrom(2000)
    assert address == sensor.address
    assert 11.9 < points["range"].max() < 12.1  # a corner, or the floor far out
    level = points[np.abs(points["z"]) < 0.5]
    assert np.abs(level["x"]).max() == pytest.approx(6.0, abs=0.1)
    assert np.abs(level["y"]).max() == pytest.approx(10.0, abs=0.1)


def test_the_truth_of_what_it_sees_can_be_had():
    with hilsim.testing.lidar("vlp16") as sensor:
        truth = sensor.truth(0.0, 0.1)
    assert truth.size > 20_000
    assert set(truth["instance"].tolist()) >= {0, 1, 2, 3, 4, 5}


@pytest.mark.extended
def test_a_program_that_holds_the_port_is_heard_of_and_its_packets_are_counted():
    with hilsim.testing.lidar("vlp16") as sensor, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as driver:
        driver.bind(("0.0.0.0", sensor.port))  # noqa: S104 - as drivers do
        sensor.wait_packets(100)
        driver.settimeout(10)
        assert len(driver.recv(2000)) == DATA_PACKET_SIZE
        with pytest.raises(
            TransmitError, match=f"port {sensor.port} of 127.0.0.1 must be free for the test itself to read it, got Address already in use"
        ):
            sensor.receive()


def test_a_cepton_style_sensor_has_one_port_and_its_control_answers():
    with hilsim.testing.lidar("hr80w-like", scene="street") as sensor:
        assert sensor.position_port is None
        assert len(sensor.receive(3)) == 3
        assert sensor.control.health().step_s > 0
    with (
        pytest.raises(ConfigError, match="position_port must not be given for a hr80w-like, got 5000"),
        hilsim.testing.lidar("hr80w-like", position_port=5000),
    ):
        pass


def test_a_daemon_that_dies_is_named_instead_of_packets_that_do_not_come():
    with hilsim.testing.lidar("vlp16") as sensor:
        os.kill(sensor.daemon.pid, signal.SIGKILL)
        with pytest.raises(DaemonError, match="the daemon must run, got signal SIGKILL"):
            sensor.receive(10_000, timeout_s=2)


@pytest.mark.extended
def test_a_starter_that_was_killed_is_replaced_and_its_daemons_end():
    with hilsim.testing.lidar("vlp16") as sensor:
        os.kill(warm_starter()._process.pid, signal.SIGKILL)
        warm_starter()._process.wait()
        assert sensor.daemon.exit_code == -signal.SIGKILL
        with hilsim.testing.lidar("vlp16") as another:
            assert another.receive()


@pytest.fixture
def driver():
    """A socket as a driver's, with what it has received until the block was left and no more came."""

    def read(sock, taken, pause_s, left):
        while True:
            try:
                taken.append(sock.recv(2000))
            except TimeoutError:
                if left.is_set():
                    return
            time.sleep(pause_s)

    @contextlib.contextmanager
    def run(port, pause_s=0.0, buffer_bytes=0):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            if buffer_bytes:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
            sock.bind(("0.0.0.0", port))  # noqa: S104 - as drivers do
            sock.settimeout(0.5)
            taken, left = [], threading.Event()
            reading = threading.Thread(target=read, args=(sock, taken, pause_s, left))
            reading.start()
            try:
                yield taken
            finally:
                left.set()
                reading.join()

    return run


def test_without_a_clock_a_slow_driver_gets_every_packet_and_the_bytes_are_always_the_same(driver):
    with hilsim.testing.lidar("vlp16", real_time=False) as sensor:
        with driver(sensor.port, pause_s=0.0005) as taken:
            sent = sensor.send(0.5)
        assert len(taken) == sent == pytest.approx(377, abs=1)
        assert sensor.time_s == pytest.approx(0.5)
    with hilsim.testing.lidar("vlp16", real_time=False) as again:
        assert again.receive(len(taken)) == taken
        assert again.truth(0.0, 0.1).size > 20_000


def test_without_a_clock_a_receiver_that_is_not_there_or_does_not_read_is_named():
    with hilsim.testing.lidar("vlp16", real_time=False) as sensor:
        with pytest.raises(TransmitError, match=rf"port {sensor.port} of 127\.0\.0\.1 must be bound by a receiver on this host within 0\.1 s"):
            sensor.send(0.1, timeout_s=0.1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind(("127.0.0.1", sensor.port))
            with pytest.raises(TransmitError, match=f"port {sensor.port} of 127.0.0.1 must be read within 0.2 s"):
                sensor.send(0.5, timeout_s=0.2)


def test_without_a_clock_a_packet_that_a_small_buffer_loses_is_an_error(driver):
    lost = pytest.raises(TransmitError, match=r"must have a buffer of 32 KiB or more \(SO_RCVBUF\), got \d+ packets dropped at it")
    with hilsim.testing.lidar("vlp16", real_time=False) as sensor, driver(sensor.port, pause_s=0.02, buffer_bytes=4096), lost:
        sensor.send(0.1)


@pytest.mark.extended
def test_a_failed_test_without_a_clock_has_its_packets_too(project):
    project.makepyfile("def test_it(hilsim_lidar):\n    assert not hilsim_lidar('vlp16', real_time=False).receive(20)\n")
    result = project.runpytest_subprocess(*PLUGIN, f"--basetemp={project.path}/kept")
    result.assert_outcomes(failed=1)
    (capture,) = re.findall(r"sent: (\S+\.pcap)", result.stdout.str())
    assert len([packet for packet in hilsim.read_capture(capture) if packet.stream == "data"]) == 20
