"""Objects put into a recording against the recording of the same objects: what a unit would have recorded is known here, because hilsim recorded both."""

import numpy as np
import pytest

import hilsim
from hilsim.capture.pcap import CaptureFile
from hilsim.config.rig import load_rig
from hilsim.config.script import load_script
from hilsim.errors import HilsimError
from hilsim.families.cepton.protocol.stdv import PointFlag, decode_stdv_points
from hilsim.offline.record import record as record_offline
from tests.compiled import compiled_only

pytestmark = compiled_only

ROOM = """
name = "room"
seed = 3
[platform]
kind = "fixed"
position_m = [0.0, 0.0, 1.6]
rotation_deg = [1.0, -2.0, 30.0]
[[scene.plane]]
name = "floor"
size_m = [60.0, 60.0]
position_m = [0.0, 0.0, 0.0]
[[scene.box]]
name = "back"
material = "concrete"
size_m = [40.0, 0.2, 5.0]
position_m = [0.0, 12.0, 2.5]
[[scene.box]]
name = "side"
material = "concrete"
size_m = [0.2, 24.0, 5.0]
position_m = [14.0, 0.0, 2.5]
"""
ADDED = """
# Without texture: a recorded azimuth is that of the encoder, which is off by some patches.
[scene.materials]
flat_red = { reflectivity = 55 }
flat_cloth = { reflectivity = 40 }
flat_grey = { reflectivity = 35 }
[[scene.box]]
name = "crate"
material = "flat_red"
size_m = [1.0, 1.5, 2.0]
position_m = [5.0, 4.0, 1.0]
rotation_deg = [0.0, 0.0, 20.0]
[[scene.cylinder]]
name = "walker"
material = "flat_cloth"
radius_m = 0.3
height_m = 1.8
[scene.cylinder.motion]
waypoints = [{ time_s = 0.0, position_m = [3.0, -2.0, 0.9] }, { time_s = 2.0, position_m = [7.0, 6.0, 0.9] }]
[[scene.box]]
name = "hidden"
material = "flat_grey"
size_m = [2.0, 2.0, 2.0]
position_m = [20.0, 3.0, 1.0]
"""
SENSOR = """
[[sensor]]
name = "lidar"
unit = "ideal"
profile = "{profile}"
return_mode = "{mode}"
sub_rays = {sub_rays}
mount_position_m = [0.2, 0.1, 0.3]
mount_rotation_deg = [0.0, 3.0, -20.0]
[sensor.override]
range_noise_m = 0.0
signal = {{}}
"""
REPLAY = """
[[replay]]
name = "lidar"
file = "recorded.pcap"
overlay = true
retime = "none"
sub_rays = {sub_rays}
mount_position_m = [0.2, 0.1, 0.3]
mount_rotation_deg = [0.0, 3.0, -20.0]
{keys}
"""
VELODYNES = [("vlp16", mode) for mode in ("strongest", "last", "dual")] + [("hdl32e", "strongest")]


def payloads(path, size=None):
    return [
        datagram.payload
        for datagram in CaptureFile(path).datagrams()
        if len(datagram.payload) == size or (size is None and datagram.payload[:4] == b"STDV")
    ]


def record(directory, name, text, duration_s=0.6):
    rig = directory / f"{name}.toml"
    rig.write_text(text)
    hilsim.record(rig, directory / f"{name}.pcap", duration_s=duration_s)
    return directory / f"{name}.pcap"


def overlaid(tmp_path, sensor, replay_keys="", sub_rays=1):
    """Payload files: recorded without the added objects, with them put in, and recorded with them."""
    bare = record(tmp_path, "recorded", ROOM + sensor)
    replay = REPLAY.format(sub_rays=sub_rays, keys=replay_keys)
    room = ROOM.split("[[scene.plane]]", maxsplit=1)[0]
    return bare, record(tmp_path, "overlaid", room + replay + ADDED), record(tmp_path, "true", ROOM + sensor + ADDED)


def velodyne_records(path):
    packets = np.stack([np.frombuffer(payload, np.uint8) for payload in payloads(path, 1206)])
    records = packets[:, :1200].reshape(-1, 12, 100)[:, :, 4:].reshape(len(packets), 12, 32, 3).astype(np.int64)
    return packets, records[..., 0] | records[..., 1] << 8, records[..., 2]


@pytest.mark.extended
@pytest.mark.parametrize(("profile", "mode"), VELODYNES)
def test_a_velodyne_recording_with_objects_put_in_is_the_recording_of_a_scene_with_them(profile, mode, tmp_path):
    sensor = SENSOR.format(profile=profile, mode=mode, sub_rays=1)
    bare, put_in, true = (velodyne_records(path) for path in overlaid(tmp_path, sensor))
    count = min(len(bare[0]), len(put_in[0]), len(true[0]))
    old, new, expected = (each[1][:count] for each in (bare, put_in, true))
    assert (bare[0][:count, 1200:] == put_in[0][:count, 1200:]).all()
    is_added = (old != expected) & (np.abs(old - expected) > 25)
    assert is_added.sum() > 2000
    is_right = np.abs(new - expected) <= 12
    assert (
        is_right[is_added].mean() > 0.975
    )  # the rest are outlines: packets carry the encoder's azimuth, which is noisy, and the walker moves on for 2 ms
    assert (old == new)[~is_added].mean() > 0.998
    assert abs(np.median((new - expected)[is_added & is_right])) <= 1
    bytes_ = np.abs(put_in[2][:count] - true[2][:count])
    assert (bytes_[is_added & is_right] <= 1).mean() > 0.95


@pytest.mark.extended
def test_objects_stay_in_place_in_the_recording_of_a_sensor_that_drove(tmp_path):
    (tmp_path / "drive.csv").write_text(
        "time_s,x_m,y_m,z_m,roll_deg,pitch_deg,yaw_deg\n"
        + "".join(f"{t / 10},{0.8 * t},{0.1 * t},1.6,{0.3 * t},-2.0,{30 + 4 * t}\n" for t in range(12))
    )
    fixed = ROOM[ROOM.index("[platform]") : ROOM.index("[[scene.plane]]")]
    driving = ROOM.replace(fixed, '[platform]\nkind = "trajectory"\nfile = "drive.csv"\n')
    still = ADDED.replace("[scene.cylinder.motion]", "#").replace("waypoints = [{ time_s = 0.0, position_m = [3.0, -2.0, 0.9] }", "#")
    sensor = SENSOR.format(profile="vlp16", mode="strongest", sub_rays=1)
    bare, true = record(tmp_path, "recorded", driving + sensor), record(tmp_path, "true", driving + sensor + still)
    replay = REPLAY.format(sub_rays=1, keys='trajectory = "drive.csv"')
    put_in = record(tmp_path, "overlaid", 'name = "room"\nseed = 3\n' + replay + still)
    (_, old, _), (_, new, _), (_, expected, _) = (velodyne_records(path) for path in (bare, put_in, true))
    count = min(len(old), len(new), len(expected))
    is_added = np.abs(old[:count] - expected[:count]) > 25
    assert is_added.sum() > 1000
    assert (np.abs(new[:count] - expected[:count]) <= 25)[is_added].mean() > 0.97  # the rest are outlines
    assert (new[:count] == old[:count])[~is_added].mean() > 0.995


@pytest.mark.extended
@pytest.mark.parametrize("mode", ["strongest", "dual"])
def test_a_cepton_recording_with_objects_put_in_is_the_recording_of_a_scene_with_them(mode, tmp_path):
    sensor = SENSOR.format(profile="hr80w-like", mode=mode, sub_rays=1)
    bare, put_in, true = (
        np.concatenate([decode_stdv_points(payload) for payload in payloads(path)]) for path in overlaid(tmp_path, sensor, 'profile = "hr80w-like"')
    )
    count = min(bare.size, put_in.size, true.size)
    old, new, expected = bare[:count], put_in[:count], true[:count]
    for name in ("step_us", "channel"):
        assert (old[name] == new[name]).all()
    range_of = [np.sqrt(sum(each[axis].astype(float) ** 2 for axis in "xyz")) for each in (old, new, expected)]
    had_return = (old["flags"] & int(PointFlag.NO_RETURN)) == 0
    is_added = had_return & (np.abs(range_of[0] - range_of[2]) > 30)
    assert is_added.sum() > 500
    apart = np.stack([new[axis].astype(float) - expected[axis] for axis in "xyz"])
    is_right = np.abs(apart).max(axis=0) <= 6
    assert is_right[is_added].mean() > 0.97
    untouched = had_return & ~is_added
    assert (old[untouched] == new[untouched]).mean() > 0.995


def test_every_model_that_is_not_known_and_every_wrong_key_is_refused_with_a_sentence(tmp_path):
    sensor = SENSOR.format(profile="hr80w-like", mode="strongest", sub_rays=1)
    record(tmp_path, "recorded", ROOM + sensor, duration_s=0.2)
    room = ROOM.split("[[scene.plane]]", maxsplit=1)[0] + ADDED
    with pytest.raises(HilsimError, match=r"replay\[0\]\.profile must be given for an overlay of a Cepton's points, got none"):
        record(tmp_path, "overlaid", room + REPLAY.format(sub_rays=1, keys=""))
    with pytest.raises(HilsimError, match=r"replay\[0\]\.profile must be a path ending in \.toml or one of the shipped ones"):
        record(tmp_path, "overlaid", room + REPLAY.format(sub_rays=1, keys='profile = "hr90"'))
    with pytest.raises(HilsimError, match="overlay must be true for sub_rays, got false"):
        record(tmp_path, "overlaid", room + REPLAY.format(sub_rays=1, keys="").replace("overlay = true", "").replace("mount_", "# "))
    moving = room.replace('kind = "fixed"', 'kind = "street"').replace("position_m = [0.0, 0.0, 1.6]\nrotation_deg = [1.0, -2.0, 30.0]", "")
    with pytest.raises(HilsimError, match=r"replay\[0\]\.trajectory must be given for an overlay of a rig whose platform moves, got none"):
        record(tmp_path, "overlaid", moving + '[scene]\ngenerator = "street"\n' + REPLAY.format(sub_rays=1, keys='profile = "hr80w-like"'))


@pytest.mark.extended
@pytest.mark.parametrize("mode", ["strongest", "dual"])
def test_ground_truth_of_put_in_returns_names_their_objects_and_their_bytes(mode, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    record(tmp_path, "recorded", ROOM + SENSOR.format(profile="vlp16", mode=mode, sub_rays=1))
    rig = tmp_path / "overlaid.toml"
    rig.write_text(ROOM.split("[[scene.plane]]", maxsplit=1)[0] + REPLAY.format(sub_rays=7, keys="") + ADDED)
    hilsim.record(rig, tmp_path / "overlaid.pcap", duration_s=0.6, truth=tmp_path / "truth.parquet")
    rows = parquet.read_table(tmp_path / "truth.parquet").drop_columns(["utc"]).to_pydict()
    assert set(rows["sensor"]) == {"lidar"}
    assert set(rows["object"]) == {"crate", "walker"}
    _, distance, byte = velodyne_records(tmp_path / "overlaid.pcap")
    _, recorded, _ = velodyne_records(tmp_path / "recorded.pcap")
    at = tuple(np.array(rows[name]) for name in ("packet", "block", "record"))
    assert (distance[at] == rows["distance"]).all()
    assert (byte[at] == rows["reflectivity"]).all()
    error_m = distance[at] * 0.002 - rows["range_m"]  # the profile's noise of weak echoes: 25 mm at a reflectivity of 0, 4 mm at 40
    assert np.abs(error_m).max() < 0.08
    assert error_m.std() < 0.01
    changed = np.zeros(distance.shape, bool)
    changed[at] = True
    is_same = distance == recorded[: len(distance)]
    assert is_same[~changed].mean() == 1.0  # what no object made keeps its range: nothing is hidden without a return here
    times_s = np.array(rows["time_ns"]) / 1e9
    walker = np.array(rows["object"]) == "walker"
    assert np.ptp(times_s[walker]) > 0.4
    where = np.stack([rows[f"position_{axis}_m"] for axis in "xyz"], 1)
    assert np.abs(where - where[0]).max() < 0.03  # lasers' origins


CHANGES = """
[[change]]
at_s = 0.4003
kind = "move"
name = "crate"
position_m = [4.0, 3.0, 1.0]
[[change]]
at_s = 0.4007
kind = "move"
name = "crate"
position_m = [3.0, 3.5, 1.0]
[[change]]
at_s = 1.2
kind = "remove"
name = "walker"
"""
SEEK = '[[change]]\nat_s = 0.9\nkind = "replay"\nreplay = "lidar"\nseek_s = 0.1\n'


@pytest.mark.extended
@pytest.mark.parametrize(("profile", "mode"), [("vlp16", "dual"), ("hdl32e", "strongest")])
@pytest.mark.parametrize("script", ["", CHANGES, CHANGES + SEEK])
def test_any_number_of_threads_puts_the_same_objects_into_recorded_packets(profile, mode, script, tmp_path):
    record(tmp_path, "recorded", ROOM + SENSOR.format(profile=profile, mode=mode, sub_rays=1))
    room = ROOM.split("[[scene.plane]]", maxsplit=1)[0]
    rig = tmp_path / "overlaid.toml"
    rig.write_text(room + REPLAY.format(sub_rays=1, keys='loop = "plain"\n') + ADDED)
    changes = tmp_path / "script.toml"
    changes.write_text(script)
    found = set()
    for number, (threads, batch_ms) in enumerate([(1, 100), (1, 700), (2, 700), (3, 1300)]):
        path = tmp_path / f"{number}.pcap"
        record_offline(
            load_rig(rig),
            path,
            duration_ns=2_000_000_000,
            utc_epoch_ns=0,
            batch_ms=batch_ms,
            threads=threads,
            progress=lambda _: None,
            script=load_script(changes) if script else None,
        )
        found.add(path.read_bytes())
    assert len(found) == 1
    assert len(found.pop()) > 1_000_000
