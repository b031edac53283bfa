"""Worlds of Gazebo's through the command line: checked, drawn, recorded, and seen by a VLP-16 too."""

import json

import numpy as np
import pytest
from PIL import Image

import hilsim
from hilsim.capture.pcap import CaptureFile
from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE, decode_data_packets
from hilsim.protocols.protobuf import fields
from tests import commands
from tests.unit.gazebo.worlds import box, scanner, thing, world_text

pytestmark = pytest.mark.system


def call(*arguments, cwd, status=0):
    done = commands.run(*arguments, cwd=cwd)
    assert done.returncode == status, done.stderr
    return done


@pytest.fixture
def yard(tmp_path):
    """Walls around a robot whose scanner is within its own body."""
    rows = scanner(columns=361, rows=16, azimuth=(-3.14159265, 3.14159265), elevation=(-0.2617993878, 0.2617993878), span=(0.5, 60.0))
    low = scanner(columns=11, topic="", name="low", rate=30)
    robot = thing("robot", box(0.6, 0.6, 0.6), "1 2 1 0 0 0.5", inner=rows + low)
    walls = [thing(f"wall{number}", box(1, 60, 60), pose) for number, pose in enumerate(("10.5 0 0 0 0 0", "-8.5 0 0 0 0 0"))]
    sides = [thing(f"side{number}", box(60, 1, 60), pose) for number, pose in enumerate(("0 12.5 0 0 0 0", "0 -9.5 0 0 0 0"))]
    path = tmp_path / "yard.sdf"
    path.write_text(world_text(*walls, *sides, robot))
    return path


def test_check_says_what_each_lidar_measures_and_where(yard):
    said = call("check", yard, "--no-cost", cwd=yard.parent)
    assert "robot::link::scanner: 361 x 16 rays, 0.5 to 60 m, 10 Hz at /scan" in said.stderr
    assert "robot::link::low: 11 x 1 rays, 0.1 to 30 m, 30.3 Hz at /world/yard/model/robot/link/link/sensor/low/lidar" in said.stderr
    assert "sound" in said.stderr
    assert "2 lidar(s) for Gazebo" in said.stderr


@pytest.mark.extended
def test_a_picture_shows_a_lidar_by_its_name(yard):
    call("picture", yard, "--sensor", "robot::link::low", "-o", "low.png", cwd=yard.parent)
    said = call("picture", yard, "-o", "scan.png", cwd=yard.parent)
    assert "5,776 rays, 5,776 returns" in said.stdout
    for name in ("low.png", "scan.png"):
        pixels = np.asarray(Image.open(yard.parent / name).convert("L"))
        assert pixels.std() > 20
    assert (
        'sensor must be one of robot::link::scanner, robot::link::low, got "roof"'
        in call("picture", yard, "--sensor", "roof", "-o", "x.png", cwd=yard.parent, status=1).stderr
    )


def delimited(path):
    """Messages of a file, by a reader of the tests' own."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        size = shift = 0
        while True:
            byte = data[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        found.append(data[at : at + size])
        at += size
    return found


def test_a_recording_holds_every_message_of_every_topic(yard):
    told = json.loads(call("record", yard, "-o", "scans", "--duration-s", "1", "--json", cwd=yard.parent).stdout)
    assert [(file["topic"], file["messages"]) for file in told["files"]] == [
        ("/scan", 10),
        ("/scan/points", 10),
        ("/world/yard/model/robot/link/link/sensor/low/lidar", 31),
        ("/world/yard/model/robot/link/link/sensor/low/lidar/points", 31),
    ]
    scans = delimited(yard.parent / "scans" / "scan.LaserScan.pb")
    assert len(scans) == 10
    ranges = [np.frombuffer(dict(fields(scan))[14], "<f8") for scan in scans]
    assert all(each.size == 361 * 16 for each in ranges)
    assert min(path.name for path in (yard.parent / "scans").iterdir()) == "scan.LaserScan.pb"


def test_a_recording_with_a_script_sees_what_is_added_from_its_rig_time_on(yard):
    (yard.parent / "script.toml").write_text(
        '[[change]]\nat_s = 0.45\nkind = "add"\nbox = { name = "crate", size_m = [1.0, 60.0, 60.0], position_m = [5.5, 0.0, 0.0] }\n'
    )
    call("record", yard, "-o", "plain", "--duration-s", "1", cwd=yard.parent)
    call("record", yard, "-o", "changed", "--duration-s", "1", "--script", "script.toml", cwd=yard.parent)
    plain, changed = (delimited(yard.parent / folder / "scan.LaserScan.pb") for folder in ("plain", "changed"))
    assert [one == other for one, other in zip(plain, changed, strict=True)] == [True] * 5 + [False] * 5
    nearest = [np.frombuffer(dict(fields(scan))[14], "<f8").reshape(16, 361)[7].max() for scan in (plain[9], changed[9])]
    assert nearest[1] <= nearest[0]


RIG = """
name = "both"
[scene]
sdf = "yard.sdf"
[gazebo]
[[sensor]]
name = "roof"
sdf_sensor = "robot::link::scanner"
unit = "ideal"
sub_rays = 1
override = { range_noise_m = 0.0, detector = { range_noise_weak_m = 0.0 }, signal = {} }
"""


@pytest.mark.extended
def test_a_vlp16_at_the_scanners_place_sees_the_same_ranges_to_a_code(yard):
    (yard.parent / "rig.toml").write_text(RIG)
    call("record", "rig.toml", "-o", "both.pcap", "--duration-s", "0.3", cwd=yard.parent)
    payloads = [datagram.payload for datagram in CaptureFile(yard.parent / "both.pcap").datagrams() if len(datagram.payload) == DATA_PACKET_SIZE]
    blocks = decode_data_packets(np.frombuffer(b"".join(payloads), np.uint8).reshape(-1, DATA_PACKET_SIZE))["blocks"]
    [scan, *_] = delimited(yard.parent / "both.messages" / "scan.LaserScan.pb")
    ranges_m = np.frombuffer(dict(fields(scan))[14], "<f8").reshape(16, 361)
    channels = blocks["channels"].reshape(-1, 12, 2, 16)
    azimuth_deg = blocks["azimuth"].reshape(-1, 12) / 100.0
    errors = []
    elevations_deg = np.array([-15, 1, -13, 3, -11, 5, -9, 7, -7, 9, -5, 11, -3, 13, -1, 15])
    for packet in range(len(azimuth_deg)):
        for block in range(12):
            for laser in range(16):
                seen_deg = azimuth_deg[packet, block] + 360.0 * 10 * laser * 2.304e-6
                left_deg = (-seen_deg + 180.0) % 360.0 - 180.0  # an azimuth is clockwise, Gazebo's angles are not
                column = left_deg + 180.0
                if abs(column - round(column)) > 0.006:
                    continue
                row, at = round((elevations_deg[laser] + 15) / 2), round(column)
                expected_m = ranges_m[row, at % 360]
                steepness_m_per_deg = abs(ranges_m[row, (at + 1) % 360] - ranges_m[row, (at - 1) % 360]) / 2
                errors.append((channels[packet, block, 0, laser]["distance"] * 0.002 - expected_m, steepness_m_per_deg))
    error_m, steep = np.abs(np.array(errors)).T
    assert error_m.size > 100
    assert (error_m < 0.002 + 0.05 * steep).all()  # a code, and what the unit's encoder is off by
    assert np.median(error_m) < 0.001


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ('sdf_sensor = "robot::link::roof"', r"sensor[0].sdf_sensor must be a lidar of scene.sdf (robot::link::scanner, robot::link::low), got "),
        ('sdf_sensor = "robot::link::scanner"\nmount_position_m = [1.0, 0.0, 0.0]', "sensor[0] must have sdf_sensor or a mounting, got both"),
    ],
)
def test_a_sensor_that_cannot_stand_there_is_refused(yard, change, fault):
    (yard.parent / "rig.toml").write_text(RIG.replace('sdf_sensor = "robot::link::scanner"', change))
    assert fault in call("check", "rig.toml", cwd=yard.parent, status=1).stderr


@pytest.mark.extended
def test_a_daemon_of_a_program_runs_a_world_by_its_path_and_as_a_rig(yard):
    for rig in (yard, hilsim.load_rig(yard)):
        with hilsim.Daemon(rig) as daemon:
            assert daemon.metrics()['hilsim_gazebo_scans_total{lidar="robot::link::scanner"}'] == 0.0


def test_a_world_without_a_lidar_is_sound_scenery_that_nothing_runs(tmp_path):
    (tmp_path / "empty.sdf").write_text(world_text(thing("wall", box(1, 1, 1))))
    said = call("check", "empty.sdf", cwd=tmp_path).stderr
    assert "note: empty.sdf has no lidar: it cannot run by itself, but only as the scene of a rig ([scene] sdf)" in said
    assert "empty.sdf: sound; 0 sensor(s), 12 triangles" in said
    for words in (("run", "empty.sdf"), ("record", "empty.sdf", "-o", "scans"), ("picture", "empty.sdf", "-o", "a.png")):
        assert "empty.sdf: must have a lidar" in call(*words, cwd=tmp_path, status=1).stderr
    (tmp_path / "rig.toml").write_text('name = "r"\n[scene]\nsdf = "empty.sdf"\n[gazebo]\n')
    assert "empty.sdf: must have a lidar" in call("check", "rig.toml", cwd=tmp_path, status=1).stderr


def test_a_file_that_is_not_there_is_refused(tmp_path):
    assert "other.sdf: file not found" in call("run", "other.sdf", cwd=tmp_path, status=1).stderr


def test_a_world_with_a_heightmap_is_checked_and_drawn(tmp_path):
    heights = np.add.outer(np.abs(np.arange(-16, 17)), np.abs(np.arange(-16, 17)))
    Image.fromarray(heights.astype(np.uint8)).save(tmp_path / "bowl.png")
    bowl = thing("bowl", "<heightmap><uri>bowl.png</uri><size>33 33 8</size></heightmap>")
    (tmp_path / "bowl.sdf").write_text(world_text(bowl, thing("robot", "", "0 0 1 0 0 0", inner=scanner(columns=91, azimuth=(-3.1, 3.1)))))
    assert "2,048 triangles, 1 lidar(s) for Gazebo" in call("check", "bowl.sdf", "--no-cost", cwd=tmp_path).stderr
    assert "91 rays, 91 returns" in call("picture", "bowl.sdf", "-o", "bowl.png", cwd=tmp_path).stdout
