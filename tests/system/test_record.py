"""Recording offline: the same bytes whatever the batches and threads; what is recorded is what the checker and the picture want."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from hilsim.capture.pcap import CaptureFile
from tests import commands
from tests.support import ROOM, write_rig

pytestmark = pytest.mark.system


def hilsim(*arguments, environment=None):
    return commands.run(*arguments, environment=environment)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def two_sensors(tmp_path_factory):
    second = (
        '[[sensor]]\nname = "second"\nunit = "ideal"\nrotation_rate_rpm = 1200\nstart_delay_us = 333.0\n[sensor.network]\nsource = "127.0.1.202"\n'
    )
    text = ROOM + '[sensor.network]\nsource = "192.168.1.201"\ndestination = "192.168.1.77"\n' + second
    return write_rig(tmp_path_factory.mktemp("rig"), text)


@pytest.fixture(scope="module")
def recording(two_sensors, tmp_path_factory):
    path = tmp_path_factory.mktemp("recording") / "a.pcap"
    result = hilsim("record", two_sensors, "-o", path, "--duration-s", "1.2", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["packets"] > 1000
    return path


@pytest.mark.extended
@pytest.mark.parametrize(("threads", "batch_ms"), [(1, 7), (3, 100), (2, 1200), (5, 1)])
def test_batches_and_threads_do_not_change_a_byte(two_sensors, recording, tmp_path, threads, batch_ms):
    again = tmp_path / "b.pcap"
    result = hilsim("record", two_sensors, "-o", again, "--duration-s", "1.2", "--threads", threads, "--batch-ms", batch_ms)
    assert result.returncode == 0, result.stderr
    assert digest(again) == digest(recording)


@pytest.mark.extended
def test_a_recording_by_the_cuda_backend_has_the_cpus_ranges(two_sensors, tmp_path):
    paths = {backend: tmp_path / f"{backend}.pcap" for backend in ("cpu", "cuda")}
    for backend, path in paths.items():
        result = hilsim("record", two_sensors, "-o", path, "--duration-s", "0.003", "--backend", backend, environment={"NUMBA_ENABLE_CUDASIM": "1"})
        assert result.returncode == 0, result.stderr
    assert paths["cpu"].stat().st_size > 2000
    assert digest(paths["cuda"]) == digest(paths["cpu"])


def test_the_cuda_backend_without_a_gpu_is_a_clear_error(two_sensors, tmp_path):
    result = hilsim("record", two_sensors, "-o", tmp_path / "a.pcap", "--backend", "cuda", environment={"CUDA_VISIBLE_DEVICES": ""})
    assert result.returncode == 2
    assert "--backend: must have an NVIDIA GPU and its driver for cuda, found none" in result.stderr
    assert not list(tmp_path.iterdir())


def test_the_cuda_backend_writes_no_ground_truth(two_sensors, tmp_path):
    result = hilsim("record", two_sensors, "-o", tmp_path / "a.pcap", "--backend", "cuda", "--truth", tmp_path / "a.parquet")
    assert result.returncode == 2
    assert "--backend: must be cpu with --truth, got cuda" in result.stderr


def test_another_seed_gives_other_bytes(two_sensors, recording, tmp_path):
    other = write_rig(tmp_path, two_sensors.read_text().replace("seed = 5", "seed = 6"))
    again = tmp_path / "b.pcap"
    assert hilsim("record", other, "-o", again, "--duration-s", "1.2").returncode == 0
    assert digest(again) != digest(recording)


def test_a_recording_passes_the_checker_with_the_sensors_own_headers(recording):
    result = hilsim("verify", recording, "--json")
    assert result.returncode == 0, result.stdout
    checked = {sensor["source"]: sensor for sensor in json.loads(result.stdout)["sensors"]}
    assert set(checked) == {"192.168.1.201", "127.0.1.202"}
    assert checked["192.168.1.201"]["summary"]["headers"] == "sensor"
    # The first sensor has a receiver, the second none: no default of ours is unusual in either.
    assert [finding for sensor in checked.values() for finding in sensor["findings"] if finding["severity"] != "note"] == []
    assert [sensor["summary"]["pps_states"] for sensor in checked.values()] == [[2], [0]]


@pytest.mark.extended
def test_a_recording_over_the_top_of_the_hour_passes_the_checker(two_sensors, tmp_path):
    path = tmp_path / "hour.pcap"
    assert hilsim("record", two_sensors, "-o", path, "--duration-s", "2", "--start-utc", "2026-01-01T00:59:59Z").returncode == 0
    assert hilsim("verify", path).returncode == 0


@pytest.mark.parametrize("what", ["capture", "rig"])
def test_a_picture_can_be_drawn_of_a_capture_and_of_a_rig(two_sensors, recording, tmp_path, what):
    image = tmp_path / "scan.png"
    result = hilsim("picture", recording if what == "capture" else two_sensors, "-o", image)
    assert result.returncode == 0, result.stderr
    assert image.read_bytes().startswith(b"\x89PNG")


def test_an_unwritable_recording_is_a_clear_error(two_sensors, tmp_path):
    result = hilsim("record", two_sensors, "-o", tmp_path / "nowhere" / "a.pcap", "--duration-s", "0.1")
    assert result.returncode == 1
    assert "nowhere/a.pcap" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.extended
def test_a_recording_that_is_broken_off_keeps_its_name_for_whole_ones_and_says_where_it_is(two_sensors, tmp_path):
    path, part = tmp_path / "long.pcap", tmp_path / "long.pcap.part"
    path.write_bytes(b"former")
    command = [sys.executable, "-m", "hilsim", "record", str(two_sensors), "-o", str(path), "--duration-s", "100000"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        while not (part.exists() and part.stat().st_size > 1_000_000):  # several batches are written
            assert running.poll() is None, running.stderr.read()
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert re.search(rf"interrupted after [0-9.]+ s of 100000 s: the written part is in {part}, and {path} is unchanged", said)
    assert path.read_bytes() == b"former"
    assert sum(1 for _ in CaptureFile(part)) > 500


def test_a_recording_of_a_cepton_style_sensor_has_microseconds_by_default(tmp_path):
    rig = write_rig(tmp_path, 'name = "swept"\n[[scene.box]]\nsize_m = [9.0, 9.0, 9.0]\n[[sensor]]\nname = "front"\nprofile = "hr80w-like"\n')
    magics = []
    for options in ([], ["--stamps", "ns"]):
        assert hilsim("record", rig, "-o", tmp_path / "a.pcap", "--duration-s", "0.05", *options).returncode == 0
        magics.append((tmp_path / "a.pcap").read_bytes()[:4])
    assert magics == [b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"]  # little-endian: 0xa1b2c3d4, 0xa1b23c4d


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full in place of a full disk")  # noqa: PTH110
def test_a_full_disk_is_a_clear_error(two_sensors):
    result = hilsim("record", two_sensors, "-o", "/dev/full", "--duration-s", "1")
    assert result.returncode == 1
    assert "/dev/full" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_effective_configuration_is_json_with_every_default(two_sensors):
    table = json.loads(hilsim("check", two_sensors, "--json").stdout)
    assert table["transmit"]["late_policy"] == "skip"
    assert table["sensor"][0]["model"]["sequence_ns"] == 55_296


def test_the_doctor_says_what_this_machine_can_do():
    result = hilsim("doctor", "--json")
    subjects = {finding["subject"] for finding in json.loads(result.stdout)}
    assert {"real-time scheduling", "memory locking", "CUDA", "compiled-kernel cache", "port 2368"} <= subjects
