"""What is written in the formats of other tools, read back by other programs' libraries."""

import json
import math
import re
import sys

import laspy
import numpy as np
import pytest
import trimesh
from click.testing import CliRunner
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from mcap.reader import make_reader
from rosbags.highlevel import AnyReader

import hilsim
from hilsim.api.packet import Packet, read_capture
from hilsim.cli import cli
from hilsim.config.tables.classes import NUSCENES_NAMES
from hilsim.errors import CaptureError, ConfigError
from hilsim.families.ouster.recognition import OusterKind
from hilsim.limits import VIEWED_SENSORS
from hilsim.show.outputs.bag import PacketBag, RosBag
from hilsim.show.outputs.classes import NUSCENES, SEMANTIC_KITTI, classes_of
from hilsim.show.outputs.clouds import CloudFiles
from hilsim.show.outputs.events import OUTPUT_DTYPE, OutputScan, SourceInfo, first_time_ns, output_points
from hilsim.show.outputs.kitti import KittiFolder
from hilsim.show.outputs.making import make_output
from hilsim.show.outputs.nuscenes import NuscenesFolder
from hilsim.show.outputs.packets import read_packets
from hilsim.show.outputs.ros import ros_typestore
from hilsim.show.outputs.sources import utc_ns
from hilsim.world.assets.street.street import StreetLabel
from hilsim.world.geometry.poses import Pose
from tests.fuzz.corpus import ros2_bags
from tests.support import write_rig
from tests.unit.replays.streams import SENSOR, Recording

SECONDS = 0.45
RIG = """
name = "bench"
[platform]
position_m = [100.0, 50.0, 1.0]
rotation_deg = [0.0, 0.0, 10.0]
[[sensor]]
name = "left"
mount_position_m = [0.0, 0.5, 0.2]
mount_rotation_deg = [0.0, 0.0, 40.0]
gps = { latitude_deg = -36.8, longitude_deg = 2.4 }
unit = "ideal"
sub_rays = 1
override = { range_noise_m = 0.0, detector = {}, signal = {} }
[[sensor]]
name = "right"
profile = "x90-generic"
mount_position_m = [0.0, -0.5, 0.2]
unit = "ideal"
sub_rays = 1
override = { range_noise_m = 0.0, detector = {} }
network = { source = "127.0.1.202" }
[[scene.box]]
name = "wall"
label = 7
position_m = [110.5, 50.0, 2.0]
size_m = [1.0, 60.0, 12.0]
material = "plaster"
"""
WALL_X_M = 110.0
MOVER = """
[[scene.box]]
name = "cart"
size_m = [1.0, 1.0, 1.0]
[scene.box.motion]
waypoints = [{ time_s = 0.0, position_m = [105.0, 50.0, 0.0] }, { time_s = 1.0, position_m = [115.0, 50.0, 0.0] }]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("outputs")


@pytest.fixture(scope="module")
def rig(folder):
    return write_rig(folder, RIG)


@pytest.fixture(scope="module")
def capture(folder, rig):
    path = folder / "drive.pcap"
    ran("record", rig, "-o", path, "--duration-s", SECONDS, "--stamps", "ns")
    return path


@pytest.fixture(scope="module")
def scans(rig):
    """Scans of each sensor, by the Python API."""
    emulator = hilsim.Emulator(rig)
    return {name: list(emulator.scans(0.0, SECONDS, name)) for name in emulator.sensors}


def ran(*arguments):
    done = CliRunner().invoke(cli, [str(word) for word in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def refused(*arguments):
    done = CliRunner().invoke(cli, [str(word) for word in arguments])
    assert done.exit_code != 0
    return done.output + str(done.exception)


def in_ros(points):
    return np.stack([points["y"], -points["x"], points["z"]], axis=1)


def read_pcd(path):
    head, _, body = path.read_bytes().partition(b"DATA binary\n")
    keys = dict(line.split(" ", 1) for line in head.decode().splitlines() if not line.startswith("#"))
    names, sizes, kinds = keys["FIELDS"].split(), keys["SIZE"].split(), keys["TYPE"].split()
    points = np.frombuffer(body, [(name, f"<{kind.lower()}{size}") for name, size, kind in zip(names, sizes, kinds, strict=True)])
    assert points.size == int(keys["POINTS"]) == int(keys["WIDTH"])
    return points


def read_npz(path):
    with np.load(path) as file:
        return dict(file)


def read_las(path):
    file = laspy.read(path)
    assert file.header.global_encoding.gps_time_type == laspy.header.GpsTimeType.STANDARD
    utc_s = np.asarray(file.gps_time) + 1e9 + 315_964_800 - 18  # of 2017 and later
    return {"x": file.x, "y": file.y, "z": file.z, "intensity": file.intensity, "ring": file.ring, "label": file.label, "time": utc_s}


def read_ply(path):
    cloud = trimesh.load(path)
    return dict(zip("xyz", np.asarray(cloud.vertices).T, strict=True)) | {
        name: cloud.metadata["_ply_raw"]["vertex"]["data"][name] for name in ("intensity", "ring", "label", "time")
    }


READERS = {
    "pcd": read_pcd,
    "npz": read_npz,
    "csv": lambda path: np.genfromtxt(path, delimiter=",", names=True),
    "ply": read_ply,
    "las": read_las,
    "laz": read_las,
}


@pytest.mark.parametrize("kind", READERS)
def test_a_file_a_scan_has_its_points(folder, rig, scans, kind):
    ran("export", rig, "-o", folder / f"clouds-{kind}", "--format", kind, "--duration-s", SECONDS)
    for name, expected in scans.items():
        files = sorted((folder / f"clouds-{kind}" / name).iterdir())
        assert len(files) == len(expected) > 2
        points = READERS[kind](files[1])
        scan = expected[1]
        np.testing.assert_allclose(np.stack([points[axis] for axis in "xyz"], axis=1), in_ros(scan.points), atol=6e-4)
        for field in ("intensity", "ring", "label"):
            np.testing.assert_array_equal(np.asarray(points[field]), scan.points[field])
        epoch_s = 1_767_225_600
        np.testing.assert_allclose(np.asarray(points["time"]) - epoch_s, scan.points["time"] / 1e9, atol=1e-6)


def test_one_file_has_all_scans_in_the_world(folder, rig, scans):
    ran("export", rig, "-o", folder / "all.npz", "--duration-s", SECONDS)
    points = read_npz(folder / "all.npz")
    assert points["x"].size == sum(scan.points.size for found in scans.values() for scan in found)
    wall = points["label"] == 7
    assert wall.mean() > 0.9
    assert np.abs(points["x"][wall] - WALL_X_M).max() < 0.02


def test_a_labelled_sequence_has_kittis_layout(folder, rig, scans):
    ran("export", rig, "-o", folder / "kitti", "--format", "kitti", "--duration-s", SECONDS)
    by_name = dict(reversed(line.split()) for line in (folder / "kitti" / "sensors.txt").read_text().splitlines())
    for name, expected in scans.items():
        sequence = folder / "kitti" / "sequences" / by_name[name]
        for number, scan in enumerate(expected):
            points = np.fromfile(sequence / "velodyne" / f"{number:06d}.bin", "<f4").reshape(-1, 4)
            labels = np.fromfile(sequence / "labels" / f"{number:06d}.label", "<u4")
            np.testing.assert_array_equal(points[:, :3], in_ros(scan.points))
            np.testing.assert_array_equal(labels & 0xFFFF, np.where(scan.points["instance"] >= 0, scan.points["label"], 0))
            np.testing.assert_array_equal((labels >> 16) - 1, np.where(scan.points["instance"] >= 0, scan.points["instance"], -1).astype("<u4"))
        poses = np.loadtxt(sequence / "poses.txt").reshape(-1, 3, 4)
        assert (folder / "kitti" / "poses" / f"{by_name[name]}.txt").read_text() == (sequence / "poses.txt").read_text()
        assert len(poses) == len(np.loadtxt(sequence / "times.txt")) == len(expected)
        np.testing.assert_allclose(poses, np.broadcast_to(np.eye(3, 4), poses.shape), atol=1e-9)
        assert set((sequence / "calib.txt").read_text().split()[::13]) == {"P0:", "P1:", "P2:", "P3:", "Tr:"}
    assert "must not exist yet" in refused("export", rig, "-o", folder / "kitti", "--format", "kitti", "--duration-s", SECONDS)


def test_a_data_set_has_nuscenes_tables_whose_tokens_lead_to_each_other(folder, rig, scans):
    ran("export", rig, "-o", folder / "nuscenes", "--format", "nuscenes", "--duration-s", SECONDS)
    tables = {path.stem: json.loads(path.read_text()) for path in (folder / "nuscenes" / "v1.0-mini").iterdir()}
    by_token = {name: {row["token"]: row for row in rows} for name, rows in tables.items()}
    (scene,) = tables["scene"]
    token, seen = scene["first_sample_token"], 0
    while token:
        seen, last, token = seen + 1, token, by_token["sample"][token]["next"]
    assert (last, seen) == (scene["last_sample_token"], scene["nbr_samples"])
    assert len(tables["sample_data"]) == sum(map(len, scans.values())) == len(tables["lidarseg"])
    for row in tables["sample_data"]:
        assert row["sample_token"] in by_token["sample"]
        assert row["ego_pose_token"] in by_token["ego_pose"]
        sensor = by_token["sensor"][by_token["calibrated_sensor"][row["calibrated_sensor_token"]]["sensor_token"]]
        points = np.fromfile(folder / "nuscenes" / row["filename"], "<f4").reshape(-1, 5)
        (labels,) = (each for each in tables["lidarseg"] if each["sample_data_token"] == row["token"])
        found = np.fromfile(folder / "nuscenes" / labels["filename"], np.uint8)
        assert found.size == len(points) > 1000
        assert set(np.unique(found)) <= {0, 7}
        pose, mount = by_token["ego_pose"][row["ego_pose_token"]], by_token["calibrated_sensor"][row["calibrated_sensor_token"]]
        np.testing.assert_allclose(pose["translation"], [100.0, 50.0, 1.0], atol=1e-9)
        assert sensor["channel"] in {"LIDAR_TOP", "LIDAR_LEFT", "LIDAR_RIGHT"}
        assert abs(mount["translation"][1]) == 0.5
    assert [row["index"] for row in tables["category"]] == list(range(32))


CARS = """
[classes]
9 = { name = "car", nuscenes = "vehicle.car" }
7 = { name = "wall", nuscenes = "static.manmade" }
"""


def test_a_sample_of_nuscenes_has_a_box_about_the_points_of_each_object(tmp_path):
    from_0_to_1_s = "waypoints = [{ time_s = 0.0, position_m = [106.0, 47.0, 1.0] }, { time_s = 1.0, position_m = [106.0, 53.0, 1.0] }]"
    cart = f'[[scene.box]]\nname = "cart"\nlabel = 9\nsize_m = [1.0, 2.0, 3.0]\n[scene.box.motion]\n{from_0_to_1_s}\n'
    ran("export", write_rig(tmp_path, RIG + cart + CARS), "-o", tmp_path / "cars", "--format", "nuscenes", "--duration-s", SECONDS)
    tables = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "cars" / "v1.0-mini").iterdir()}
    by_token = {name: {row["token"]: row for row in rows} for name, rows in tables.items()}
    (cart_instance,) = tables["instance"]
    assert by_token["category"][cart_instance["category_token"]]["name"] == "vehicle.car"
    token, chain = cart_instance["first_annotation_token"], []
    while token:
        chain.append(by_token["sample_annotation"][token])
        token = chain[-1]["next"]
    assert len(chain) == len(tables["sample_annotation"]) == cart_instance["nbr_annotations"] == len(tables["sample"]) > 3
    begin_us = tables["sample"][0]["timestamp"]
    for box in chain:
        sample = by_token["sample"][box["sample_token"]]
        x, y, z = box["translation"]
        assert (x, z, box["size"]) == (pytest.approx(106.0), pytest.approx(1.0), pytest.approx([2.0, 1.0, 3.0]))
        assert y - chain[0]["translation"][1] == pytest.approx(6e-6 * (sample["timestamp"] - begin_us), abs=1e-5)
        inside = 0
        for row in tables["sample_data"]:
            if row["sample_token"] == sample["token"]:
                points = np.fromfile(tmp_path / "cars" / row["filename"], "<f4").reshape(-1, 5)[:, :3].astype(float)
                for table in ("calibrated_sensor", "ego_pose"):
                    frame = by_token[table][row[f"{table}_token"]]
                    pose = Pose(position_m=tuple(frame["translation"]), orientation=tuple(frame["rotation"]))
                    points = np.array([pose.transform(tuple(point)) for point in points.tolist()])
                inside += int((np.abs(points - [x, y, z]) <= [0.6, 2.3, 1.6]).all(axis=1).sum())  # 6 m/s for the 0.2 s of a sample
        assert inside >= box["num_lidar_pts"] > 50


def test_a_scan_across_the_full_hour_begins_before_it():
    hour_ns = 3_600_000_000_000
    points = np.zeros(4, [(name, "<f4") for name in "xyz"] + [("intensity", "u1"), ("ring", "<u2"), ("time", "<i8")])
    points["time"] = [hour_ns - 40_000_000, hour_ns - 1_000_000, 1_000_000, 30_000_000]
    first_ns = first_time_ns(points, cycle_ns=hour_ns)
    assert utc_ns(first_ns, 1000 * hour_ns + 50_000_000, cycle_ns=hour_ns) == (1000 * hour_ns - 40_000_000, True)
    assert output_points(points, first_ns, np.zeros(1, np.uint8))["offset_ns"].tolist() == [0, 39_000_000, 41_000_000, 70_000_000]
    assert first_time_ns(points, cycle_ns=0) == 1_000_000


def test_labels_of_the_street_become_the_classes_of_published_data_sets():
    labels = np.array([0, StreetLabel.GROUND, StreetLabel.CAR, StreetLabel.PERSON, 25], np.int16)
    assert classes_of(labels, SEMANTIC_KITTI).tolist() == [0, 40, 10, 30, 25]
    names = [NUSCENES_NAMES[number] for number in classes_of(labels, NUSCENES)]
    assert names == ["noise", "flat.driveable_surface", "vehicle.car", "human.pedestrian.adult", "flat.other"]
    assert set(SEMANTIC_KITTI) == set(NUSCENES) == set(StreetLabel)


def test_a_label_beyond_nuscenes_classes_gets_a_category_of_its_own(tmp_path):
    path = write_rig(tmp_path, RIG.replace("label = 7", "label = 40"))
    ran("export", path, "-o", tmp_path / "many", "--format", "nuscenes", "--duration-s", "0.15")
    last = json.loads((tmp_path / "many" / "v1.0-mini" / "category.json").read_text())[-1]
    assert (last["index"], last["name"]) == (40, "label.40")


def test_a_recording_of_the_street_has_semantic_kittis_classes(tmp_path):
    ran("export", "demo", "-o", tmp_path / "town", "--format", "kitti", "--duration-s", "0.15", "--set", "sensor.roof.sub_rays=1")
    labels = np.fromfile(tmp_path / "town" / "sequences" / "00" / "labels" / "000000.label", "<u4") & 0xFFFF
    assert {10, 40, 48, 50} <= set(np.unique(labels)) <= {0, *SEMANTIC_KITTI.values()}


def bag_messages(path):
    store = ros_typestore()
    with AnyReader([path], default_typestore=store) as reader:
        return [
            (connection.topic, connection.msgtype, time_ns, reader.deserialize(raw, connection.msgtype))
            for connection, time_ns, raw in reader.messages()
        ]


def matrix(transform):
    q, t = transform.rotation, transform.translation
    w, x, y, z = q.w, q.x, q.y, q.z
    turn = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.array(turn), np.array([t.x, t.y, t.z])


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize(("layout", "size"), [("xyzirt", 22), ("xyzircaedt", 32)])
def test_a_bag_has_clouds_in_frames_in_which_a_wall_is_one_for_all_sensors(folder, rig, scans, storage, layout, size):
    path = folder / f"bag-{storage}-{layout}"
    ran("export", rig, "-o", path, "--format", "ros2", "--storage", storage, "--layout", layout, "--laser-scan", "--duration-s", SECONDS)
    messages = bag_messages(path)
    frames = {}
    for topic, _, _, message in messages:
        if topic in {"/tf", "/tf_static"}:
            frames |= {each.child_frame_id: (each.header.frame_id, each.transform) for each in message.transforms}
    assert {name: parent for name, (parent, _) in frames.items()} == {"base_link": "map", "left": "base_link", "right": "base_link"}
    for name, expected in scans.items():
        clouds = [message for topic, _, _, message in messages if topic == f"/{name}/points"]
        assert len(clouds) == len(expected)
        for cloud, scan in zip(clouds, expected, strict=True):
            assert (cloud.point_step, cloud.width, cloud.height, cloud.header.frame_id) == (size, scan.points.size, 1, name)
            kinds = {2: "u1", 4: "<u2", 6: "<u4", 7: "<f4"}
            dtype = np.dtype(
                {
                    "names": [field.name for field in cloud.fields],
                    "formats": [kinds[field.datatype] for field in cloud.fields],
                    "offsets": [field.offset for field in cloud.fields],
                    "itemsize": cloud.point_step,
                }
            )
            points = cloud.data.view(dtype)
            np.testing.assert_array_equal(np.stack([points[axis] for axis in "xyz"], axis=1), in_ros(scan.points))
            stamp_ns = cloud.header.stamp.sec * 1_000_000_000 + cloud.header.stamp.nanosec
            assert stamp_ns == 1_767_225_600_000_000_000 + scan.start_ns
            turn, place = matrix(frames[name][1])
            body_turn, body = matrix(frames["base_link"][1])
            world = (np.stack([points[axis] for axis in "xyz"], axis=1).astype(float) @ turn.T + place) @ body_turn.T + body
            assert np.abs(world[scan.points["label"] == 7, 0] - WALL_X_M).max() < 0.02
    topics = {topic for topic, *_ in messages}
    assert {"/clock", "/odom", "/imu", "/left/velodyne_packets", "/left/scan"} <= topics
    (imu, *_) = [message for topic, _, _, message in messages if topic == "/imu"]
    assert imu.linear_acceleration.z == pytest.approx(9.80665)


def test_a_level_scan_shows_the_wall(folder, rig):
    path = folder / "level"
    ran("export", rig, "-o", path, "--format", "ros2", "--laser-scan", "--duration-s", SECONDS)
    scan = next(message for topic, _, _, message in bag_messages(path) if topic == "/left/scan")
    angle = scan.angle_min + scan.angle_increment * np.arange(scan.ranges.size)
    ahead = np.isfinite(scan.ranges)
    yaw = math.radians(50.0)  # 40 of the mounting, 10 of the platform
    x = 100.0 - 0.5 * math.sin(math.radians(10.0)) + scan.ranges[ahead] * np.cos(angle[ahead] + yaw)
    assert ahead.sum() > 300
    assert np.median(np.abs(x - WALL_X_M)) < 0.05


def test_an_mcap_file_has_each_packet_and_the_bytes_of_each_cloud(folder, rig, capture, scans):
    path = folder / "drive.mcap"
    ran("export", rig, "-o", path, "--duration-s", SECONDS)
    with path.open("rb") as file:
        every = list(make_reader(file).iter_messages())
    messages = [(channel, message) for _, channel, message in every]
    read = [(channel, decoded(channel, schema, message.data)) for schema, channel, message in every]
    frames = [message.data for channel, message in read if "/packets/" in channel.topic]
    assert sorted(frames) == sorted(packet.frame for packet in read_capture(capture))
    for name, expected in scans.items():
        clouds = [message.data for channel, message in messages if channel.topic == f"/{name}/points"]
        assert len(clouds) == len(expected)
        for cloud, scan in zip(clouds, expected, strict=True):
            assert in_ros(scan.points)[0].astype("<f4").tobytes() in cloud
            assert len(cloud) > 24 * scan.points.size


def decoded(channel, schema, data):
    """A message of an MCAP file, by the schema in it."""
    files = FileDescriptorSet.FromString(schema.data)
    pool = DescriptorPool()
    for file in files.file:
        pool.Add(file)
    assert channel.message_encoding == "protobuf"
    return GetMessageClass(pool.FindMessageTypeByName(schema.name)).FromString(data)


def test_an_mcap_file_shows_each_object_once_and_again_where_it_has_moved(folder):
    path, moving = folder / "scene.mcap", folder / "moving"
    moving.mkdir()
    rig = write_rig(moving, RIG + MOVER)
    ran("export", rig, "-o", path, "--duration-s", 0.25, "--no-packets", "--foxglove-layout", moving / "layout.json")
    with path.open("rb") as file:
        updates = [decoded(channel, schema, message.data) for schema, channel, message in make_reader(file).iter_messages(topics=["/scene"])]
    assert [[entity.id for entity in update.entities] for update in updates] == [["wall", "cart"], ["cart"], ["cart"]]
    for step, update in enumerate(updates):
        surface = update.entities[-1].triangles[0]
        assert surface.pose.position.x == pytest.approx(105.0 + step)
        assert len(surface.indices) == 36
    layout = json.loads((moving / "layout.json").read_text())
    with path.open("rb") as file:
        topics = {channel.topic for channel in make_reader(file).get_summary().channels.values()}
    (shown,) = [config["topics"] for panel, config in layout["configById"].items() if panel.startswith("3D!")]
    assert {topic for topic, state in shown.items() if state["visible"]} == topics - {"/tf", "/pose"} == {"/scene", "/left/points", "/right/points"}
    assert {layout["layout"][side] for side in ("first", "second")} == set(layout["configById"])
    wall = updates[0].entities[0].triangles[0]
    assert {wall.pose.position.x + point.x for point in wall.points} == {110.0, 111.0}


def two_of_a_kind(folder, name, networks):
    """Capture of two VLP-16 that turn at different rates."""
    sensors = "".join(
        f"[[sensor]]\nname = '{sensor}'\nsub_rays = 1\nrotation_rate_rpm = {rpm}\nnetwork = {{ {network} }}\n"
        for sensor, rpm, network in zip("ab", (1200, 600), networks, strict=True)
    )
    (folder / name).mkdir()
    rig = write_rig(folder / name, f"name = 'two'\n{sensors}[[scene.plane]]\nname = 'floor'\nsize_m = [50.0, 50.0]\nposition_m = [0.0, 0.0, -1.0]\n")
    ran("record", rig, "-o", folder / f"{name}.pcap", "--duration-s", 0.55, "--stamps", "ns")
    return folder / f"{name}.pcap"


def exported(capture, folder, *options):
    """Points of each scan in CSV, by the sensor."""
    ran("export", capture, "-o", folder, "--format", "npz", *options)
    return [(path.parent.name, read_npz(path)["x"].tolist()) for path in sorted(folder.rglob("*.npz"))]


def test_two_sensors_behind_one_address_are_told_apart_by_their_ports(tmp_path):
    ports = two_of_a_kind(tmp_path, "ports", ("data_port = 2368, position_port = 8308", "data_port = 2369, position_port = 8309"))
    apart = two_of_a_kind(tmp_path, "apart", ("source = '127.0.1.201'", "source = '127.0.1.202'"))
    scans = exported(ports, tmp_path / "all")
    assert [points for _, points in scans] == [points for _, points in exported(apart, tmp_path / "others")]
    assert len(scans) > 10
    second = [points for _, points in exported(ports, tmp_path / "second", "--sensor", "127.0.1.201:2369")]
    assert second == [points for _, points in exported(apart, tmp_path / "alone", "--sensor", "127.0.1.202")]
    result = json.loads(ran("verify", ports, "--json"))
    assert [(each["source"], each["summary"]["position_packets"] > 20) for each in result["sensors"]] == [
        ("127.0.1.201", True),
        ("127.0.1.201:2369", True),
    ]
    assert "--sensor must name one of several, got packets of 127.0.1.201" in refused("map", ports, "-o", tmp_path / "map.ply")
    for command in ("map", "picture"):
        found = [
            ran(command, each, "-o", tmp_path / f"{command}.{'ply' if command == 'map' else 'png'}", "--sensor", sensor).split(":", 1)[1]
            for each, sensor in ((ports, "127.0.1.201:2369"), (apart, "127.0.1.202"))
        ]
        assert found[0] == found[1]


def test_topics_of_a_bag_become_sensors_with_their_own_addresses(tmp_path):
    bag = tmp_path / "bag"
    output = PacketBag(bag, SourceInfo(name="two"))
    for number, name in enumerate(["left", "right"] * 3):
        payload = bytes.fromhex("ffee") + bytes([number]) + bytes(1203)
        output.write(Packet(time_ns=number, sensor=name, stream="data", source=("9.9.9.9", 1), destination=("9.9.9.9", 1), payload=payload))
    output.close()
    said = ran("convert", bag, tmp_path / "out.pcap")
    assert "sensors: left at 192.168.1.201, right at 192.168.1.202" in said
    found = {(packet.source[0], packet.destination[1], packet.payload[2] % 2) for packet in read_capture(tmp_path / "out.pcap")}
    assert found == {("192.168.1.201", 2368, 0), ("192.168.1.202", 2368, 1)}


def test_the_first_sensor_of_a_rig_is_the_first_of_a_data_set_whichever_scan_ends_first(tmp_path):
    info = SourceInfo(name="two", mounts={"slow": Pose(), "quick": Pose(), "Slow": Pose()})
    outputs = (NuscenesFolder(tmp_path / "nuscenes", info), KittiFolder(tmp_path / "kitti", sensors=tuple(info.mounts)))
    for output in outputs:
        for number, sensor in enumerate(("quick", "slow", "Slow", "quick")):
            output.write(
                OutputScan(sensor=sensor, number=0, stamp_ns=10**9 * number, is_sensor_time=True, points=np.zeros(1, OUTPUT_DTYPE), pose=Pose())
            )
        output.close()
    channels = [row["channel"] for row in json.loads((tmp_path / "nuscenes" / "v1.0-mini" / "sensor.json").read_text())]
    assert channels == ["LIDAR_QUICK", "LIDAR_TOP", "LIDAR_SLOW"]
    assert (tmp_path / "kitti" / "sensors.txt").read_text() == "00 slow\n01 quick\n02 Slow\n"
    assert len(list((tmp_path / "kitti" / "sequences" / "01" / "velodyne").iterdir())) == 2


def test_one_file_of_several_sensors_has_the_further_fields_of_each(tmp_path):
    output = CloudFiles(tmp_path / "all.npz", ".npz", in_one=True)
    for sensor, further in (("plain", None), ("livox", np.array([(8,), (0,)], [("tag", "u1")]))):
        points = np.zeros(2, OUTPUT_DTYPE)
        points["x"] = 1.0, 2.0
        output.write(OutputScan(sensor=sensor, number=0, stamp_ns=0, is_sensor_time=True, points=points, further=further))
    output.close()
    with np.load(tmp_path / "all.npz") as file:
        assert (file["x"].tolist(), file["tag"].tolist()) == ([1.0, 2.0, 1.0, 2.0], [0, 0, 8, 0])


@pytest.mark.parametrize("kind", ["ros2", "mcap"])
def test_sensors_whose_topics_would_be_one_are_refused(tmp_path, kind):
    info = SourceInfo(name="two", mounts={"front-left": Pose(), "front_left": Pose()})
    with pytest.raises(ConfigError, match="names that differ in a letter or digit, for their topics, got front-left and front_left"):
        make_output(kind, tmp_path / "out.mcap", info)


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 3 // 4])


@pytest.mark.parametrize(
    ("storage", "damage"), [("mcap", "no yaml"), ("mcap", "storage file"), ("mcap", "cut"), ("sqlite3", "no yaml"), ("sqlite3", "storage file")]
)
def test_a_bag_is_read_by_its_storage_where_its_index_is_missing(tmp_path, capture, storage, damage):
    bag = tmp_path / "bag"
    ran("export", capture, "-o", bag, "--format", "ros2", "--storage", storage)
    whole = [(packet.time_ns, packet.payload) for packet in read_packets(bag)]
    (stored,) = (file for file in bag.iterdir() if file.suffix != ".yaml")
    if damage == "cut":
        cut(stored)
    elif damage == "no yaml":
        (bag / "metadata.yaml").unlink()
    notes = []
    found = [(packet.time_ns, packet.payload) for packet in read_packets(stored if damage == "storage file" else bag, notes.append)]
    assert found == whole[: len(found)]
    assert len(found) > 100
    assert (len(found) < len(whole)) == (damage == "cut")
    assert [note.partition(": ")[2].partition(":")[0] for note in notes] == {
        "no yaml": ["metadata.yaml is missing"],
        "storage file": [],
        "cut": ["the file was cut"],
    }[damage]


def test_a_cut_mcap_file_gives_the_whole_packets_that_it_has_also_of_its_last_chunk(tmp_path, capture):
    path = tmp_path / "x.mcap"
    ran("convert", capture, path)
    whole = list(read_packets(path))
    cut(path)
    said = ran("convert", path, tmp_path / "out.pcap")
    found = [(packet.time_ns, packet.payload) for packet in read_capture(tmp_path / "out.pcap")]
    assert found == [(packet.time_ns, packet.payload) for packet in whole[: len(found)]]
    assert len(whole) > len(found) > 0.6 * len(whole)
    assert f"the file was cut: {len(found):,} whole messages of what is there are read" in said


@pytest.mark.parametrize("between", ["x.mcap", "bag"])
def test_packets_are_converted_there_and_back_byte_for_byte(tmp_path, capture, between):
    ran("convert", capture, tmp_path / between)
    ran("convert", tmp_path / between, tmp_path / "back.pcap")
    before, after = list(read_capture(capture)), list(read_capture(tmp_path / "back.pcap"))
    if between == "bag":
        before = [packet for packet in before if packet.stream == "data" and packet.source[1] == 2368]
        assert [(packet.time_ns, packet.payload) for packet in after] == [(packet.time_ns, packet.payload) for packet in before]
    else:
        assert after == before
    assert len(after) > 200


def test_a_bag_of_a_capture_has_a_turn_a_message_and_all_stamps_by_the_packets_clock(tmp_path):
    capture = Recording().add_turning(160).write(tmp_path / "turning.pcap")
    summary = json.loads(ran("export", capture, "-o", tmp_path / "bag", "--format", "ros2", "--json"))
    assert summary["packets"] == 160
    assert next(note for note in summary["remarks"] if "turns or frames that are not whole" in note).endswith(
        ": 1 turns or frames that are not whole, as at an end of a capture, are left out"
    )
    with AnyReader([tmp_path / "bag"], default_typestore=ros_typestore()) as reader:
        messages = [(each.topic.rpartition("/")[2], reader.deserialize(raw, each.msgtype)) for each, _, raw in reader.messages()]
    turns = [message.packets for topic, message in messages if topic == "velodyne_packets"]
    assert [len(packets) for packets in turns] == [76, 75, 9]
    clouds = [message.header.stamp for topic, message in messages if topic == "points"]
    first = [packet.time_ns for packet in read_capture(capture)]
    assert [stamp.sec * 10**9 + stamp.nanosec for stamp in clouds] == [first[0], first[75]]


def test_packets_of_an_ouster_are_its_drivers_messages_and_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr("hilsim.show.outputs.ros.recognise", {b"l": OusterKind.LIDAR, b"i": OusterKind.IMU}.get)
    bag = RosBag(tmp_path / "bag", SourceInfo(name="a"))
    for payload, stream in ((b"l", "lidar"), (b"i", "imu")):
        address = ("127.0.0.1", 7502)
        bag.write(Packet(time_ns=5, sensor="top", stream=stream, source=address, destination=address, payload=payload))
    bag.close()
    assert bag.packets == 2
    found = {(each.time_ns, each.sensor, each.stream, each.destination[1], each.payload) for each in read_packets(tmp_path / "bag")}
    assert found == {(5, "top", "lidar", 7502, b"l"), (5, "top", "imu", 7503, b"i")}


def test_a_capture_becomes_what_its_rig_becomes(folder, capture, scans):
    """Clouds of the capture alone are those of the rig, and its fixes those of the receiver."""
    path = folder / "of-capture"
    ran("export", capture, "-o", path, "--format", "ros2")
    messages = bag_messages(path)
    clouds = [message for topic, _, _, message in messages if topic == "/lidar_127_0_1_201/points"]
    emulated = {row.tobytes() for scan in scans["left"] if scan.stop_ns < SECONDS * 1e9 for row in in_ros(scan.points)}
    recorded = {cloud.data.reshape(-1, 22)[row, :12].tobytes() for cloud in clouds for row in range(cloud.width)}
    assert len(recorded & emulated) > 0.98 * len(emulated) > 20_000
    fixes = [message for topic, _, _, message in messages if topic == "/lidar_127_0_1_201/fix"]
    assert len(fixes) > 10
    north_deg, east_deg = 50.0 / 110_950.0, 100.0 / (111_320.0 * math.cos(math.radians(36.8)))  # the platform's place, on a sphere near enough
    assert (fixes[0].latitude, fixes[0].longitude) == (pytest.approx(-36.8 + north_deg, abs=1e-5), pytest.approx(2.4 + east_deg, abs=1e-5))


@pytest.mark.parametrize(
    ("sensor_ns", "host_ns", "expected"),
    [
        (10_000_000_000, 1_700_000_010_000_000_000, (1_699_999_210_000_000_000, False)),
        (1_999_000_000_000, 1_699_999_200_000_000_000 + 2_000_000_000_000, (1_699_999_200_000_000_000 + 1_999_000_000_000, True)),
        (3_599_999_000_000, 1_699_999_200_000_000_000 + 500_000_000, (1_699_999_199_999_000_000, True)),
    ],
    ids=["counts from power-up", "in the hour", "of the hour before"],
)
def test_the_hour_of_a_velodynes_stamp_is_the_nearest_and_a_clock_that_does_not_count_utc_is_left_out(sensor_ns, host_ns, expected):
    found = utc_ns(sensor_ns, host_ns, cycle_ns=3_600_000_000_000)
    assert found[1] == expected[1]
    assert found[0] == (expected[0] if expected[1] else host_ns)


def test_what_cannot_be_written_is_refused_with_the_reason(folder, rig, capture, monkeypatch):
    assert "--format must be given" in refused("export", rig, "-o", folder / "x.xyz")
    assert "must exist" in refused("export", rig, "-o", folder / "none" / "x.pcd")
    assert "--set is for rigs" in refused("export", capture, "-o", folder / "x.pcd", "--set", "seed=1")
    assert "must be a capture (.pcap), an MCAP file (.mcap) or a folder for a bag" in refused("convert", capture, folder / "x.zip")
    (folder / "empty.mcap").write_bytes(b"nothing")
    assert "cannot be read as MCAP" in refused("convert", folder / "empty.mcap", folder / "y.pcap")
    for module, extra, arguments in (
        ("foxglove", "foxglove", ("export", capture, "-o", folder / "y.mcap")),
        ("rosbags.typesys", "ros", ("export", capture, "-o", folder / "y", "--format", "ros2")),
        ("rclpy", "ros2", ("publish", capture, "--ros2")),
    ):
        with monkeypatch.context() as patched:
            patched.setitem(sys.modules, module, None)
            if module == "foxglove":
                patched.setitem(sys.modules, "foxglove.channels", None)
            assert f"pip install 'hilsim-lidar[{extra}]'" in refused(*arguments)


def test_a_bag_whose_messages_are_damaged_is_refused(tmp_path):
    whole, encapsulation = ros2_bags("mcap", tmp_path)[0], b"\x00\x01\x00\x00"
    reasons = []
    for place in re.finditer(re.escape(encapsulation), whole):
        (tmp_path / "damaged.mcap").write_bytes(whole[: place.start() + 1] + b"\x77" + whole[place.start() + 2 :])
        try:
            list(read_packets(tmp_path / "damaged.mcap"))
        except CaptureError as error:
            reasons.append(str(error))
    assert any("cannot be read as a ROS bag: Invalid or unsupported CDR encapsulation" in reason for reason in reasons)


def test_packets_of_more_sensors_than_are_decoded_are_counted(tmp_path):
    recording = Recording().add_turning(160)
    for host in range(VIEWED_SENSORS.bound + 1):
        recording.add_turning(1, flow=SENSOR._replace(source=f"10.0.0.{host}"))
    summary = json.loads(ran("export", recording.write(tmp_path / "many.pcap"), "-o", tmp_path / "out", "--format", "pcd", "--json"))
    assert "2 packets of further sensors are left out: at most 64 sensors are decoded" in summary["remarks"]
