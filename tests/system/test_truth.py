"""hilsim record --truth: the capture is as without it, the file as whole packets have it, whatever the batches and threads."""

import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.families.velodyne.protocol.data import DATA_PORT, decode_data_packets
from tests import commands
from tests.support import ROOM, write_rig

pa = pytest.importorskip("pyarrow", reason="the extra truth is not installed")
pq = pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.system

OPTICS = """sub_rays = 7
return_mode = "dual"
false_alarms = { rate_per_firing = 0.01 }
"""
SECOND = """[[sensor]]
name = "second"
unit = "ideal"
rotation_rate_rpm = 1200
start_delay_us = 333.0
override = { rate_jitter = {}, encoder = [{ rate_rpm = 1200, tick_cdeg = 0.0, noise_cdeg = 0.0 }] }
mount_position_m = [0.0, 1.0, 0.0]
[sensor.network]
source = "127.0.1.202"
"""
ADDRESSES = {"lidar": "127.0.1.201", "second": "127.0.1.202"}


def hilsim(*arguments):
    return commands.run(*arguments)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def two_sensors(tmp_path_factory):
    text = ROOM.replace("seed = 5", "seed = 5\nweather = { fog_visibility_m = 100.0 }")
    text = (
        text.replace("radius_m = 0.5", 'radius_m = 0.5\nlabel = 9\nname = "ball"')
        .replace('name = "lidar"\n', f'name = "lidar"\n{OPTICS}')
        .replace("sub_rays = 1\n", "")
    )
    return write_rig(tmp_path_factory.mktemp("rig"), text + f'[sensor.network]\nsource = "{ADDRESSES["lidar"]}"\n' + SECOND)


@pytest.fixture(scope="module")
def recording(two_sensors, tmp_path_factory):
    directory = tmp_path_factory.mktemp("recording")
    result = hilsim("record", two_sensors, "-o", directory / "a.pcap", "--truth", directory / "a.parquet", "--duration-s", "0.6", "--json")
    assert result.returncode == 0, result.stderr
    summary = json.loads(result.stdout)
    assert summary["returns"] == pq.read_metadata(directory / "a.parquet").num_rows
    return directory / "a.pcap", directory / "a.parquet"


def test_the_capture_is_the_same_with_and_without_ground_truth(two_sensors, recording, tmp_path):
    assert hilsim("record", two_sensors, "-o", tmp_path / "b.pcap", "--duration-s", "0.6").returncode == 0
    assert digest(tmp_path / "b.pcap") == digest(recording[0])


@pytest.mark.extended
@pytest.mark.parametrize(("threads", "batch_ms"), [(1, 7), (3, 1000)])
def test_batches_and_threads_do_not_change_a_byte_of_either_file(two_sensors, recording, tmp_path, threads, batch_ms):
    files = tmp_path / "b.pcap", tmp_path / "b.parquet"
    result = hilsim("record", two_sensors, "-o", files[0], "--truth", files[1], "--duration-s", "0.6", "--threads", threads, "--batch-ms", batch_ms)
    assert result.returncode == 0, result.stderr
    assert [digest(file) for file in files] == [digest(file) for file in recording]


def test_rows_are_the_returns_of_the_capture_sensor_by_sensor(recording):
    table = pq.read_table(recording[1])
    for name, address in ADDRESSES.items():
        payloads = [found.payload for found in CaptureFile(recording[0]) if found.source == address and found.destination_port == DATA_PORT]
        channels = decode_data_packets(np.frombuffer(b"".join(payloads), np.uint8).reshape(len(payloads), -1))["blocks"]["channels"]
        rows = table.filter(pa.compute.equal(table["sensor"], name))
        place = tuple(rows[column].to_numpy() for column in ("packet", "block", "record"))
        assert np.count_nonzero(channels["distance"]) == len(rows) > 100_000
        np.testing.assert_array_equal(channels["distance"][place], rows["distance"])
        np.testing.assert_array_equal(channels["reflectivity"][place], rows["reflectivity"])
        assert (np.diff(np.ravel_multi_index(place, (len(payloads), 12, 32))) > 0).all()


def test_rows_follow_the_packets_deadlines(recording):
    rows = pq.read_table(recording[1], columns=["sensor", "sequence"])
    # The deadline of a packet is 0.1 ms after its last firing sequence; the second sensor's begin 0.333 ms later.
    is_second = np.asarray(rows["sensor"].to_pylist()) == "second"
    of_packet = np.where(is_second, 24, 12)
    deadline_ns = (rows["sequence"].to_numpy() // of_packet + 1) * of_packet * 55_296 + np.where(is_second, 333_000, 0)
    assert (np.diff(deadline_ns) >= 0).all()
    assert np.count_nonzero(np.diff(is_second.astype(int))) > 100


def test_names_are_beside_the_numbers(recording):
    table = pq.read_table(recording[1])
    tables = json.loads(table.schema.metadata[b"hilsim.truth"])
    assert tables["seed"] == 5
    assert tables["sensors"] == list(ADDRESSES)
    some = table.select(["object_id", "object", "label", "material", "cause"]).take(np.arange(0, len(table), 97))
    rows = some.to_pydict()
    materials = {material["name"] for material in tables["materials"]}
    causes = set()
    for at in range(len(some)):
        number, name, label, material, cause = (rows[column][at] for column in ("object_id", "object", "label", "material", "cause"))
        causes.add(cause)
        if number < 0:
            assert (name, label, material) == (None, -1, None)
            assert cause != "surface"
        else:
            assert (name, label, cause) == (tables["objects"][number]["name"], tables["objects"][number]["label"], "surface")
            assert material in materials
    assert causes == {"surface", "weather", "false_alarm"}
    ball = [number for number, thing in enumerate(tables["objects"]) if thing["name"] == "ball"]
    of_ball = table.filter(pa.compute.equal(table["object_id"], ball[0]))
    assert set(of_ball["label"].to_pylist()) == {9}
    assert set(of_ball["material"].to_pylist()) == {"retro_sign"}
    np.testing.assert_array_equal(table["utc"].cast("int64").to_numpy() - table["time_ns"].to_numpy(), 1_767_225_600_000_000_000)


def test_points_put_into_the_world_by_their_pose_lie_on_what_they_are_of(recording):
    table = pq.read_table(recording[1])
    table = table.filter(pa.compute.and_(pa.compute.equal(table["sensor"], "second"), pa.compute.equal(table["material"], "plaster")))
    # The room's plaster wall is the plane x = 10 m; level channels see it along their azimuth, 20 turns a second.
    column = {name: table[name].to_numpy() for name in ("channel", "time_ns", "range_m", "position_x_m")}
    level = column["channel"] == 1  # 1 degree up
    assert level.sum() > 1000
    azimuth = 2 * np.pi * 20.0 * (column["time_ns"] - 333_000) / 1e9
    x = column["position_x_m"] + column["range_m"] * np.cos(np.radians(1.0)) * np.cos(azimuth)
    assert np.quantile(np.abs(x[level] - 10.0), 0.99) < 0.001  # a few echoes are drawn nearer by fog just before the wall


def test_a_full_disk_is_a_clear_error_and_leaves_no_half_file(two_sensors, tmp_path):
    result = hilsim("record", two_sensors, "-o", tmp_path / "a.pcap", "--truth", "/dev/full", "--duration-s", "0.2")
    assert result.returncode == 2
    assert "must end in .parquet, got /dev/full" in result.stderr
    link = tmp_path / "a.parquet"
    link.symlink_to("/dev/full")
    result = hilsim("record", two_sensors, "-o", tmp_path / "a.pcap", "--truth", link, "--duration-s", "0.2")
    assert result.returncode == 1
    assert "a.parquet: cannot be written: No space left on device" in result.stderr
    assert "Traceback" not in result.stderr


def test_ground_truth_over_the_capture_is_refused(two_sensors, tmp_path):
    result = hilsim("record", two_sensors, "-o", tmp_path / "a.parquet", "--truth", tmp_path / "a.parquet", "--duration-s", "0.1")
    assert result.returncode == 2
    assert "must be another file than the capture" in result.stderr


@pytest.mark.extended
def test_without_pyarrow_the_error_says_what_to_install(two_sensors, tmp_path):
    (tmp_path / "pyarrow.py").write_text('raise ImportError("not here")\n')
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from hilsim.cli import main; main()"
    arguments = ["record", two_sensors, "-o", tmp_path / "a.pcap", "--truth", tmp_path / "a.parquet", "--duration-s", "0.1"]
    result = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=180, check=False)
    assert result.returncode == 1
    assert 'pip install pyarrow (in a checkout: pip install -e ".[truth]")' in result.stderr
    assert not (tmp_path / "a.pcap").exists()


def test_a_rig_that_only_replays_has_no_ground_truth(recording, tmp_path):
    flow = '[[replay.flow]]\nmatch = ">:2368"\nsend = ">127.0.0.1:2368"\n'
    rig = write_rig(tmp_path, f'name = "again"\n[[replay]]\nname = "one"\nfile = "{recording[0]}"\n{flow}')
    result = hilsim("record", rig, "-o", tmp_path / "b.pcap", "--truth", tmp_path / "b.parquet", "--duration-s", "0.2")
    assert result.returncode == 1
    assert "a rig must have a [[sensor]], or a [[replay]] with overlay = true, for ground truth to be written, got none" in result.stderr
    assert not (tmp_path / "b.pcap").exists()
