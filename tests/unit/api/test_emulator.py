"""A rig stepped without a clock: its packets are a recording's, its points are its packets' and the ground truth's."""

import gc
import threading
from itertools import islice, pairwise

import numpy as np
import pytest

import hilsim
from hilsim.assembly.build import build_lidar, build_scenery
from hilsim.capture.pcap import PcapWriter
from hilsim.emulator.truth import packets_with_truth
from hilsim.offline.epoch import START_UTC, utc_ns
from tests.unit.api.rigs import SWEPT, room, swept_room

SECOND_SENSOR = (
    '[[sensor]]\nname = "second"\nunit = "ideal"\nrotation_rate_rpm = 1200\nstart_delay_us = 333.0\n[sensor.network]\nsource = "127.0.1.202"\n'
)


def written(path, packets, stamps):
    with PcapWriter(path, stamps=stamps) as writer:
        for packet in packets:
            writer.write(utc_ns(START_UTC) + packet.time_ns, packet.frame)
    return path.read_bytes()


@pytest.mark.parametrize("kind", ["strongest", "dual", "two sensors", "swept"])
def test_packets_are_those_of_a_recording_byte_for_byte(tmp_path, kind):
    made = {
        "strongest": lambda: room(tmp_path),
        "dual": lambda: room(tmp_path, mode="dual"),
        "two sensors": lambda: room(tmp_path, more=SECOND_SENSOR),
        "swept": lambda: swept_room(tmp_path, "return_mode = 'dual'\ncepton = { info_packets = true }"),
    }
    rig = made[kind]()
    recording = hilsim.record(rig, tmp_path / "recorded.pcap", duration_s=0.53)
    emulator = hilsim.Emulator(rig)
    packets = [*emulator.packets(0.0, 0.21), *emulator.packets(0.21, 0.53)]
    assert (len(packets), sum(len(packet.frame) for packet in packets)) == (recording.packets, recording.bytes_)
    assert written(tmp_path / "written.pcap", packets, rig.spec.record.stamps) == (tmp_path / "recorded.pcap").read_bytes()


def test_a_script_brings_weather_to_a_rig_whose_file_has_no_changes(tmp_path):
    script = tmp_path / "fog.toml"
    script.write_text('[[change]]\nkind = "weather"\nat_s = 0.1\nweather = { fog_visibility_m = 20.0 }\n')
    clear, foggy = ([packet.payload for packet in hilsim.Emulator(room(tmp_path), script=each).packets(0.0, 0.2)] for each in (None, script))
    same = [one == other for one, other in zip(clear, foggy, strict=True)]
    assert all(same[: len(same) // 3])
    assert not all(same)


def test_a_packet_says_what_it_is_and_where_it_goes(tmp_path):
    rig = room(tmp_path, more="[sensor.network]\nsource = '192.168.1.201'\ndestination = '192.168.1.77'\n")
    packets = {packet.stream: packet for packet in hilsim.Emulator(rig).packets(0.0, 0.1)}
    assert {(packet.sensor, stream, len(packet.payload)) for stream, packet in packets.items()} == {
        ("lidar", "data", 1206),
        ("lidar", "position", 512),
    }
    assert (packets["data"].source, packets["data"].destination) == (("192.168.1.201", 2368), ("192.168.1.77", 2368))
    assert packets["data"].frame == packets["data"].headers + packets["data"].payload


def test_a_replay_in_a_rig_is_a_stream_of_packets(tmp_path):
    hilsim.record(room(tmp_path), tmp_path / "a.pcap", duration_s=0.3)
    replay = f'[[replay]]\nname = "again"\nfile = "{tmp_path / "a.pcap"}"\n'
    rig = room(tmp_path, more=replay)
    recording = hilsim.record(rig, tmp_path / "both.pcap", duration_s=0.25)
    emulator = hilsim.Emulator(rig)
    packets = [*emulator.packets(0.0, 0.11), *emulator.packets(0.11, 0.25)]
    assert {packet.sensor for packet in packets} == {"lidar", "again"}
    assert len(packets) == recording.packets
    assert written(tmp_path / "written.pcap", packets, "ns") == (tmp_path / "both.pcap").read_bytes()


def test_a_rig_of_replays_alone_has_packets_and_no_points(tmp_path):
    hilsim.record(room(tmp_path), tmp_path / "a.pcap", duration_s=0.1)
    emulator = hilsim.Emulator({"name": "again", "replay": [{"name": "again", "file": str(tmp_path / "a.pcap")}]})
    assert len(list(emulator.packets(0.0, 1.0))) == len(list(hilsim.read_capture(tmp_path / "a.pcap")))
    for ask in (lambda: emulator.points(0.0, 1.0), lambda: emulator.scans(0.0, 1.0), lambda: emulator.sensor_pose(0.0)):
        with pytest.raises(ValueError, match="rig must have a lidar to be asked for, got none in again"):
            ask()


def test_a_vehicle_flown_by_a_controller_cannot_be_stepped():
    with pytest.raises(hilsim.ConfigError, match=r'vehicle\.controller\.kind must be "hold" where nothing runs in real time, got "serial"'):
        list(hilsim.Emulator("px4").packets(0.0, 1.0))


def test_snow_has_no_label_and_is_no_object(tmp_path):
    points = hilsim.Emulator(room(tmp_path, more="[weather]\nsnow_mm_per_h = 20.0\n")).points(0.0, 0.3)
    of_snow = points[points["instance"] < 0]
    assert of_snow.size > 10
    assert set(of_snow["label"]) == {-1}


def true_rows(rig, stop_ns):
    """Ground truth of the rig's only sensor, of firings before ``stop_ns``."""
    lidar = build_lidar(rig, 0, build_scenery(rig), utc_epoch_ns=utc_ns(START_UTC), frames=False)
    _, truth = packets_with_truth(lidar, 0, lidar.first_data_packet(stop_ns) + 5)
    return truth, truth.time_ns < stop_ns


@pytest.mark.parametrize("kind", ["strongest", "last", "swept"])
def test_of_single_returns_each_point_is_one_row_of_the_ground_truth(tmp_path, kind):
    rig = swept_room(tmp_path) if kind == "swept" else room(tmp_path, mode=kind)
    points = hilsim.Emulator(rig).points(0.0, 0.15)
    truth, within = true_rows(rig, 150_000_000)
    assert points.size == np.count_nonzero(within) > 10_000
    for field, column in (("time", truth.time_ns), ("label", truth.label), ("instance", truth.object_id), ("intensity", truth.reflectivity)):
        np.testing.assert_array_equal(points[field], column[within], err_msg=field)
    range_m = np.linalg.norm([points["x"], points["y"], points["z"]], axis=0)
    # 5 sd of the weakest echoes' noise, and a VLP-16's lasers leave up to 11 mm above or below the origin
    assert np.abs(range_m - truth.range_m[within]).max() < 0.12
    assert set(np.unique(points["label"])) >= ({7} if kind == "swept" else {7, 9})  # what it looks at


def test_of_dual_returns_a_pair_of_one_echo_is_one_point_and_the_others_are_two(tmp_path):
    rig = room(tmp_path, mode="dual", keys="sub_rays = 7\noverride = { signal = {} }")
    points = hilsim.Emulator(rig).points(0.0, 0.15)
    truth, within = true_rows(rig, 150_000_000)
    by_firing = {}
    for row in np.flatnonzero(within):
        by_firing.setdefault((truth.time_ns[row], truth.channel[row]), []).append(row)
    pairs = [
        rows
        for rows in by_firing.values()
        if truth.distance[rows[0]] != truth.distance[rows[1]] or truth.reflectivity[rows[0]] != truth.reflectivity[rows[1]]
    ]
    assert len(pairs) > 1000
    assert points.size == len(by_firing) + len(pairs)
    assert np.count_nonzero(points["return"]) == len(pairs)
    expected = sorted((truth.time_ns[row], truth.object_id[row], truth.reflectivity[row]) for rows in pairs for row in rows[1:])
    second = points[points["return"] == 1]
    assert sorted(zip(second["time"], second["instance"], second["intensity"], strict=True)) == expected


def test_points_are_what_the_decoder_makes_of_the_packets(tmp_path):
    emulator = hilsim.Emulator(room(tmp_path))
    points, decoded = emulator.points(0.0, 0.1), hilsim.decode(emulator.packets(0.0, 0.2))
    for field in ("x", "y", "z", "intensity", "ring", "return"):
        np.testing.assert_array_equal(points[field], decoded[field][: points.size], err_msg=field)


def test_stretches_of_points_that_follow_each_other_give_each_point_once(tmp_path):
    emulator = hilsim.Emulator(room(tmp_path))
    parts = [emulator.points(0.1 + begin, 0.1 + end) for begin, end in pairwise((0.0, 0.0331, 0.034, 0.2))]
    np.testing.assert_array_equal(np.concatenate(parts), emulator.points(0.1, 0.3))


def test_a_scan_is_a_turn_from_azimuth_zero(tmp_path):
    emulator = hilsim.Emulator(room(tmp_path))
    scans = list(emulator.scans(0.0, 0.35))
    assert len(scans) == 4
    for scan in scans:
        azimuth = np.degrees(np.arctan2(scan.points["x"], scan.points["y"])) % 360
        ordered = azimuth[np.argsort(scan.points["time"], kind="stable")]
        assert ordered[0] < 0.5
        assert ordered[-1] > 359.5
        assert (np.diff(ordered) > -0.1).all()
        assert scan.stop_ns - scan.start_ns == pytest.approx(100_000_000, rel=1e-3)
        np.testing.assert_array_equal(scan.points, emulator.points(scan.start_ns / 1e9, scan.stop_ns / 1e9))
    assert [scan.stop_ns for scan in scans[:-1]] == [scan.start_ns for scan in scans[1:]]


def test_stretches_of_scans_that_follow_each_other_give_each_scan_once(tmp_path):
    emulator = hilsim.Emulator(room(tmp_path))
    begins = [scan.start_ns for begin, end in pairwise((0.0, 0.15, 0.151, 0.42)) for scan in emulator.scans(begin, end)]
    assert begins == [scan.start_ns for scan in emulator.scans(0.0, 0.42)]
    just_after_s = (begins[1] + 1000) / 1e9
    assert next(emulator.scans(just_after_s, 0.42)).start_ns == begins[2]


def test_a_scan_of_a_swept_sensor_has_one_frame_parity(tmp_path):
    rig = swept_room(tmp_path)
    emulator = hilsim.Emulator(rig)
    scans = list(emulator.scans(0.0, 0.3))
    assert [scan.stop_ns for scan in scans[:-1]] == [scan.start_ns for scan in scans[1:]]
    assert scans[0].stop_ns - scans[0].start_ns == pytest.approx(rig.lidars[0].family.scan_ns, rel=0.02)
    assert min(scan.points.size for scan in scans) > 1000
    assert 0 < scans[0].start_ns < rig.lidars[0].family.scan_ns  # its mirror begins within a scan, which is not whole


def test_scans_of_several_sensors_come_as_they_end(tmp_path):
    emulator = hilsim.Emulator(room(tmp_path, more=SECOND_SENSOR + SWEPT.format(keys="")))
    scans = list(emulator.scans(0.0, 0.15))
    assert {scan.sensor for scan in scans} == {"lidar", "second", "swept"}
    assert [scan.stop_ns for scan in scans] == sorted(scan.stop_ns for scan in scans)
    assert [scan.stop_ns - scan.start_ns for scan in scans if scan.sensor == "second"] == pytest.approx([50_000_000] * 2, rel=0.01)


def test_points_of_several_sensors_are_not_mixed(tmp_path):
    emulator = hilsim.Emulator(room(tmp_path, more=SECOND_SENSOR))
    with pytest.raises(ValueError, match=r"sensor must be named in a rig of several \(lidar, second\), got None"):
        emulator.points(0.0, 0.1)
    with pytest.raises(ValueError, match='sensor must be one of the rig\'s \\(lidar, second\\), got "third"'):
        emulator.points(0.0, 0.1, "third")
    assert emulator.points(0.0, 0.01, "second").size > 1000


@pytest.mark.parametrize(("start_s", "stop_s"), [(-1.0, 1.0), (1.0, 0.5), (0.0, float("inf")), (0.0, float("nan"))])
def test_times_must_be_in_order(tmp_path, start_s, stop_s):
    with pytest.raises(ValueError, match="must"):
        list(hilsim.Emulator(room(tmp_path)).packets(start_s, stop_s))


def test_streams_begin_at_0_and_have_no_end_by_default(tmp_path):
    emulator = hilsim.Emulator(room(tmp_path, more=SECOND_SENSOR))
    assert list(islice(emulator.packets(), 300)) == list(islice(emulator.packets(0.0, 5.0), 300))
    scans, expected = islice(emulator.scans(), 6), islice(emulator.scans(0.0, 5.0), 6)
    assert [(scan.sensor, scan.start_ns) for scan in scans] == [(scan.sensor, scan.start_ns) for scan in expected]
    points = np.concatenate(list(islice(emulator.points(sensor="second"), 3)))
    assert points["time"][-1] > 250_000_000
    np.testing.assert_array_equal(points, emulator.points(0.0, 0.5, "second")[: points.size])
    assert next(emulator.packets(2.0)).time_ns >= 2_000_000_000
    with pytest.raises(ValueError, match="sensor must be named in a rig of several"):
        emulator.points()


@pytest.mark.extended
def test_a_flight_without_an_end_is_flown_a_stretch_at_a_time(monkeypatch):
    monkeypatch.setattr("hilsim.api.emulator._FIRST_NS", 100_000_000)
    emulator = hilsim.Emulator("flight")
    packets = list(islice(emulator.packets(), 250))
    assert packets[-1].time_ns > 200_000_000
    assert packets == list(islice(hilsim.Emulator("flight").packets(0.0, 1.0), 250))
    assert [scan.start_ns for scan in islice(emulator.scans(), 3)] == [scan.start_ns for scan in islice(emulator.scans(0.0, 1.0), 3)]


def test_the_pose_takes_points_to_the_world(tmp_path):
    keys = "sub_rays = 1\nmount_position_m = [0.0, 0.0, 1.0]\nmount_rotation_deg = [0.0, 0.0, 90.0]"
    emulator = hilsim.Emulator(room(tmp_path, keys=keys))
    pose = emulator.sensor_pose(0.0)
    np.testing.assert_allclose(pose.position_m, (0.0, 0.0, 1.0))
    points = emulator.points(0.0, 0.1)
    floor = points[points["instance"] == 4]  # the fifth box: its top is 1 m below the world's zero
    height_m = [pose.transform((float(point["x"]), float(point["y"]), float(point["z"])))[2] for point in floor[::50]]
    np.testing.assert_allclose(height_m, -1.0, atol=0.1)


def test_threads_change_nothing(tmp_path):
    rig = room(tmp_path)
    one, several = (hilsim.Emulator(rig, threads=threads) for threads in (1, 3))
    assert list(one.packets(0.0, 0.35)) == list(several.packets(0.0, 0.35))
    np.testing.assert_array_equal(one.points(0.0, 0.35), several.points(0.0, 0.35))
    with pytest.raises(ValueError, match="threads must be 1 or more, got 0"):
        hilsim.Emulator(rig, threads=0)


def test_a_generator_that_is_abandoned_leaves_no_thread(tmp_path):
    before = set(threading.enumerate())
    for stream in (hilsim.Emulator(room(tmp_path)).packets(), hilsim.Emulator(room(tmp_path)).scans()):
        next(stream)
        del stream
    gc.collect()
    assert not set(threading.enumerate()) - before


def test_a_flight_does_not_depend_on_how_far_it_was_flown():
    short, long = hilsim.Emulator("flight"), hilsim.Emulator("flight")
    long.sensor_pose(4.0)
    assert list(short.packets(3.0, 3.05)) == list(long.packets(3.0, 3.05))
    assert short.sensor_pose(3.9) == long.sensor_pose(3.9)
    assert short.sensor_pose(3.9).position_m[2] > short.sensor_pose(0.5).position_m[2] + 2.0
