"""Every model: every point against the room that it is in, exact azimuths and wandering times, modes, pairs, dates and what is refused."""

import datetime as dt
import json

import numpy as np
import pytest
from click.testing import CliRunner

import hilsim
from hilsim.cli.export.command import export
from hilsim.errors import ConfigError
from hilsim.families.hesai.points import decode_emulated
from hilsim.families.hesai.protocol.points import read_packet, utc_ns
from hilsim.families.hesai.recognition import HesaiKind, recognise
from hilsim.families.hesai.setting import HesaiSetting
from hilsim.sensor.specs import ClockSetting
from hilsim.world.geometry.poses import Pose
from hilsim.world.scene.materials import Material
from hilsim.world.scene.primitives import box
from hilsim.world.scene.world import SceneObject
from tests.hesai_sensors import hesai, in_room, packets_of
from tests.livox_sensors import PLACE_M, ROOM_M
from tests.support import ROOM, write_rig

POST = SceneObject(mesh=box((0.2, 0.2, 3.0), Material(name="post", reflectivity=90)), placement=Pose(position_m=(3.0, 0.5, -0.5)))


def off_walls_m(points):
    """Distance of points from the wall that they are nearest to, for a sensor at its place in the room."""
    place = np.stack([points["y"], -points["x"], points["z"]], axis=1).astype(float) + np.array(PLACE_M)  # x forward, y left
    return np.abs(np.abs(place) - np.array(ROOM_M) / 2).min(axis=1)


def azimuths_of(packets, returns):
    return packets["blocks"]["azimuth"][:, ::returns].reshape(-1).astype(int)


@pytest.mark.parametrize("model", ["xt32", "xt16", "xt32m", "qt64", "pandar40p", "pandar64"])
@pytest.mark.parametrize(("mode", "rate"), [("strongest", 600), ("dual", 300), ("last", 1200)])
def test_every_point_is_on_a_wall(model, mode, rate):
    lidar = in_room(model, return_mode=mode, rotation_rate_rpm=rate)
    assert int(lidar.plan.own.mode) == {"dual": 0x3B if model == "qt64" else 0x39, "last": 0x38, "strongest": 0x38 if model == "qt64" else 0x37}[mode]
    points = decode_emulated(lidar.data_packets(0, 300).payload[:, : lidar.plan.data_size], lidar.setting)
    rounds = 300 * lidar.setting.sequences_per_packet
    assert points.size == rounds * lidar.setting.spec.laser_count
    assert off_walls_m(points).max() < (0.005 if model == "pandar64" else 0.0035)  # half a count of 4 mm, float32, and what an encoder errs
    assert set(np.unique(points["return_number"]).tolist()) == {0}


def test_noise_is_as_wide_as_the_profile_says():
    lidar = in_room(spec=hesai())
    points = decode_emulated(lidar.data_packets(0, 500).payload, lidar.setting)
    ahead = points["y"] > 4.0
    assert np.std(points["range"]) > 0.5
    assert 0.0035 < np.sqrt((off_walls_m(points[ahead]) ** 2).mean()) < 0.006


@pytest.mark.parametrize(("rate", "step"), [(300, 9), (600, 18), (1200, 36)])
@pytest.mark.parametrize("phase_deg", [0.0, 123.456])
def test_azimuths_are_exact_and_zero_in_every_turn(rate, step, phase_deg):
    packets = packets_of(in_room(rotation_rate_rpm=rate, phase_deg=phase_deg), 0, 600)
    azimuth = azimuths_of(packets, 1)
    assert set((np.diff(azimuth) % 36_000).tolist()) == {step}
    assert (azimuth == 0).sum() == (azimuth.size * step + azimuth[0] - 1) // 36_000 + (azimuth[0] == 0)
    assert set(packets["tail"]["speed_rpm"].tolist()) == {rate}
    if rate == 600:
        assert 0 in packets["blocks"]["azimuth"][:, 0]  # a turn is 250 packets


@pytest.mark.parametrize("model", ["xt32", "xt16"])
def test_times_of_a_drawn_unit_wander_as_those_of_recordings(model):
    shares, residuals, speeds = [], [], set()
    for seed in range(6):
        lidar = in_room(model, unit="drawn", seed=seed, return_mode="dual", sub_rays=1)
        packets = packets_of(lidar, 0, 2000)
        assert set((np.diff(azimuths_of(packets, 2)) % 36_000).tolist()) == {18}
        times_us = utc_ns(packets["tail"]) // 1000
        steps = np.diff(times_us)
        assert set(steps.tolist()) <= {198, 199, 200, 201, 202}
        shares.append([(steps == step).mean() for step in (199, 200, 201)])
        packet = np.arange(times_us.size)
        residuals.append(np.std(times_us - np.polyval(np.polyfit(packet, times_us - times_us[0], 1), packet) - times_us[0]))
        speeds |= set(packets["tail"]["speed_rpm"].tolist())
    assert speeds == {599, 600}
    assert np.mean(shares, axis=0) == pytest.approx(
        [0.08, 0.84, 0.08], abs=0.025
    )  # 9, 80 and 11 % in a recording of an XT32, 7, 88 and 5 % of an XT16
    assert 2.4 < np.mean(residuals) < 3.4  # 2.5 and 3.2 us in the two recordings


def test_a_qt64_steps_by_60_and_wanders_as_that_of_a_recording():
    residuals = []
    for seed in range(6):
        packets = packets_of(in_room("qt64", unit="drawn", seed=seed, return_mode="dual"), 0, 1200)
        azimuth, times_us = azimuths_of(packets, 2), utc_ns(packets["tail"]) // 1000
        assert set((np.diff(azimuth) % 36_000).tolist()) == {60}
        assert (azimuth == 0).sum() == 4
        assert set(np.diff(times_us).tolist()) <= {331, 332, 333, 334, 335, 336}
        assert set(packets["tail"]["speed_rpm"].tolist()) == {600}
        packet = np.arange(times_us.size)
        residuals.append(np.std(times_us - times_us[0] - np.polyval(np.polyfit(packet, times_us - times_us[0], 1), packet)))
    assert 4.0 < np.mean(residuals) < 9.0  # 6.9 us in the recording


@pytest.mark.parametrize(
    ("model", "period_us", "shares"),
    [("pandar40p", 277.8, [0.004, 0.012, 0.956, 0.022, 0.007]), ("pandar64", 166.68, [0.005, 0.035, 0.916, 0.038, 0.006])],
)
def test_a_clock_fires_a_pandar_exactly_and_its_azimuths_jitter_as_those_of_recordings(model, period_us, shares):
    found, speeds = [], set()
    for seed in range(4):
        packets = packets_of(in_room(model, unit="drawn", seed=seed, return_mode="dual"), 0, 2400)
        steps = np.diff(azimuths_of(packets, 2)) % 36_000
        found.append([(steps == step).mean() for step in range(18, 23)])
        times_us = utc_ns(packets["tail"]) // 1000
        packet = np.arange(times_us.size)
        line = np.polyfit(packet, times_us - times_us[0], 1)
        assert line[0] == pytest.approx(period_us, abs=1e-3)
        assert np.std(times_us - times_us[0] - np.polyval(line, packet)) < 0.32  # 0.31 and 0.30 us
        speeds |= set(packets["tail"]["speed_rpm"].tolist())
    assert np.sum(found) == pytest.approx(len(found), abs=0.002)
    assert np.mean(found, axis=0) == pytest.approx(shares, abs=0.015)
    assert {598, 599, 600, 601} >= speeds >= {599, 600}


def test_the_status_of_a_pandar_takes_turns_and_a_64_is_numbered():
    first, second = (packets_of(in_room(model, return_mode=mode), 0, 140)["tail"] for model, mode in (("pandar40p", "dual"), ("pandar64", "last")))
    assert first["status"][:8, 2].tolist() == [0, 1, 2, 2, 3, 4, 4, 5]  # a turn is seven rounds
    assert set(first["status"][:, 2].tolist()) == set(range(23))
    assert {tuple(each) for each in first["status"][:, 3:].tolist()} == {(0x72, 0x71)}
    assert second["sequence"].tolist() == list(range(1, 141))
    assert (first["utc"][0].tolist()[:3], second["utc"][0].tolist()[:3]) == ([17, 9, 6], [120, 6, 25])
    assert (first["mode"][0], second["mode"][0]) == (0x39, 0x38)
    counted = packets_of(in_room(spec=hesai("pandar40p", is_counted=True)), 0, 3)
    assert counted["tail"]["sequence"].tolist() == [1, 2, 3]


def test_a_qt64_sends_the_first_return_in_the_first_block():
    lidar = in_room(spec=hesai("qt64", range_noise_m=0.0, range_max_m=20.0), objects=[POST], return_mode="dual", sub_rays=19, is_exact=False)
    packets = packets_of(lidar, 0, 300)
    distance = packets["blocks"]["units"]["distance"].astype(int)
    differs = distance[:, ::2] != distance[:, 1::2]
    assert 5 < differs.sum() < 0.05 * differs.size
    assert (distance[:, ::2] < distance[:, 1::2])[differs].all()
    assert set(packets["tail"]["mode"].tolist()) == {0x3B}
    assert [int(byte) for byte in packets["header"][0]] == [0xEE, 0xFF, 3, 1, 0, 0, 64, 4, 1, 4, 2, 1]


def test_the_strongest_beside_the_first_is_the_second_strongest_where_they_are_one():
    near = SceneObject(mesh=box((0.2, 2.0, 3.0), Material(name="near", reflectivity=90)), placement=Pose(position_m=(2.0, 0.8, -0.5)))
    lidar = in_room("xt16", objects=[near], return_mode="dual", sub_rays=19, is_exact=False, hesai=HesaiSetting(pair="first_strongest"))
    units = packets_of(lidar, 0, 500)["blocks"]["units"]["distance"].astype(int)
    first, second = units[:, ::2], units[:, 1::2]
    assert (first <= second).all()
    assert (first < second).sum() > 20


def test_an_unset_clock_begins_in_2019_and_packets_are_counted_from_one():
    lidar = in_room(clock=ClockSetting(offset_s=3.5))
    tail = packets_of(lidar, 0, 3)["tail"]
    begin = dt.datetime(2019, 7, 25, 0, 0, 3, 500_000, tzinfo=dt.UTC)
    assert tail["utc"][0].tolist() == [119, 7, 25, 0, 0, 3]
    assert (utc_ns(tail) - int(begin.timestamp()) * 1_000_000_000 - 500_000_000).tolist() == [350_000, 750_000, 1_150_000]  # of the last block
    assert tail["sequence"].tolist() == [1, 2, 3]


def test_a_set_clock_says_utc_across_a_new_year():
    lidar = in_room(clock=ClockSetting(sync="pps"))
    tail = packets_of(lidar, 249, 4)["tail"]
    assert lidar.utc_epoch_ns + 100_000_000 == dt.datetime(2026, 1, 1, 1, tzinfo=dt.UTC).timestamp() * 1e9
    assert (utc_ns(tail) - lidar.utc_epoch_ns).tolist() == [400_000 * packet + 350_000 for packet in range(249, 253)]
    assert tail["utc"][0].tolist() == [126, 1, 1, 0, 59, 59]
    assert (tail["utc"][2].tolist(), int(tail["us"][2])) == ([126, 1, 1, 1, 0, 0], 750)


@pytest.mark.parametrize(
    ("setup", "mode", "first_return", "returns"),
    [
        ({"return_mode": "strongest"}, 0x37, 0, 1),
        ({"return_mode": "last"}, 0x38, 0, 1),
        ({"hesai": HesaiSetting(first_return=True)}, 0x33, 0, 1),
        ({"return_mode": "dual"}, 0x39, 1, 2),
        ({"return_mode": "dual", "hesai": HesaiSetting(pair="last_first")}, 0x3B, 1, 2),
        ({"return_mode": "dual", "hesai": HesaiSetting(pair="first_strongest")}, 0x3C, 1, 2),
    ],
)
def test_every_mode_says_what_it_is(setup, mode, first_return, returns):
    lidar = in_room("xt16", **setup)
    packets = packets_of(lidar, 0, 4)
    assert set(packets["tail"]["mode"].tolist()) == {mode}
    assert packets["header"][0].tolist() == [0xEE, 0xFF, 6, 1, 0, 0, 16, 8, first_return, 4, returns, 1]
    assert (packets["blocks"]["units"]["confidence"] == 0xFF).all()
    assert packets["blocks"]["azimuth"][0].tolist() == [18 * (block // returns) for block in range(8)]
    assert lidar.setting.packet_rate_hz == pytest.approx(2500.0 * returns)
    assert set(np.diff(lidar.data_packets(0, 9).deadline_ns).tolist()) == {400_000 // returns}


def test_an_xt32m_has_six_blocks_and_the_bytes_of_a_recorded_one():
    packets = packets_of(in_room("xt32m", return_mode="dual"), 0, 3)
    assert packets["header"][0].tolist() == [0xEE, 0xFF, 6, 1, 0, 0, 32, 6, 5, 4, 3, 1]
    assert azimuths_of(packets, 2).tolist() == [18 * number for number in range(9)]


@pytest.mark.parametrize(("model", "is_farther_first"), [("xt32", False), ("xt16", True)])
def test_pairs_are_copies_or_two_echoes_in_the_order_that_the_profile_says(model, is_farther_first):
    spec = hesai(model, range_noise_m=0.0, has_later_first=is_farther_first)
    lidar = in_room(spec=spec, objects=[POST], return_mode="dual", sub_rays=19, is_exact=False)
    units = packets_of(lidar, 0, 500)["blocks"]["units"]
    first, second = units[:, ::2]["distance"].astype(int), units[:, 1::2]["distance"].astype(int)
    assert ((first > 0) == (second > 0)).all()
    is_different = first != second
    assert 20 < is_different.sum() < 0.05 * first.size
    farther = first[is_different] > second[is_different]
    assert farther.all() if is_farther_first else not farther.any()
    assert np.abs(first - second)[is_different].min() * 0.004 >= spec.detector.merge_distance_m - 0.01


def test_what_is_not_emulated_is_refused():
    for setup, text in (
        ({"rotation_rate_rpm": 900}, "rotation_rate_rpm must be 300, 600 or 1200 for a XT32, got 900"),
        ({"hesai": HesaiSetting(pair="last_first"), "model": "pandar64"}, "hesai.pair must be last_strongest for a Pandar64, got last_first"),
        ({"model": "pandar40p", "hesai": HesaiSetting(first_return=True)}, "hesai.first_return must not be given for a Pandar40P"),
        ({"clock": ClockSetting(stamps="utc")}, "clock.stamps must not be given for a XT32"),
    ):
        with pytest.raises(ValueError, match=text):
            in_room(**setup)
    with pytest.raises(ValueError, match="elevation_deg must be of the 32 lasers of a XT32, got 1"):
        hesai(elevation_deg=(1.0,))


def rig(tmp_path, profile="xt32", **changes):
    text = ROOM.replace('name = "lidar"', f'name = "lidar"\nprofile = "{profile}"').replace("gps =", "# gps =")
    return hilsim.load_rig(write_rig(tmp_path, text, **changes))


def test_settings_of_others_are_refused_in_a_rig(tmp_path):
    with pytest.raises(ConfigError, match="livox must not be given for a XT32"):
        rig(tmp_path, **{"sub_rays = 1": "sub_rays = 1\nlivox = { pcl_data_type = 1 }"})


@pytest.mark.parametrize(("model", "span"), [("xt32", 144), ("qt64", 240)])
def test_a_field_of_view_leaves_out_whole_packets(model, span):
    packets = packets_of(in_room(model, return_mode="last", field_of_view_deg=(90, 179)), 0, 260)
    first = packets["blocks"]["azimuth"][:, 0].astype(int)
    assert ((first >= 9000) & (first < 18_000)).all()
    assert set((np.diff(azimuths_of(packets, 1).reshape(len(packets), -1), axis=1) % 36_000).reshape(-1).tolist()) == {
        span // (8 if model == "xt32" else 4)
    }
    assert packets["tail"]["sequence"].tolist() == list(range(1, 261))
    turned_ns = (np.diff(first) % 36_000) * (1e9 / 360_000)
    assert np.abs(np.diff(utc_ns(packets["tail"])) - turned_ns).max() <= 1200  # each stamp is of its own packet
    assert (np.diff(first) % 36_000 > span).sum() >= 3


@pytest.mark.parametrize("model", ["xt32", "qt64", "pandar64"])
def test_a_locked_head_passes_its_angle_at_each_second(model):
    clock = ClockSetting(sync="pps", oscillator_ppm=80.0)
    lidar = in_room(model, return_mode="last", phase_lock_deg=123.45, clock=clock, start_delay_us=4321.0)
    rate_hz = lidar.setting.packet_rate_hz
    for second in (1, 20):
        packets = packets_of(lidar, round((second - 0.9 - 0.004321) * rate_hz) - 20, 40)  # rig time 0 is a tenth of a second before a second of UTC
        since_ns = utc_ns(packets["tail"]) - lidar.utc_epoch_ns - 100_000_000 - (second - 1) * 1_000_000_000
        known = lidar.setting.spec.known
        begin_ns = since_ns + known.block_ns(1)[0] + known.azimuth_ns
        azimuth = packets["blocks"]["azimuth"][:, 0].astype(float) - begin_ns * 36_000 / 1e8
        assert np.abs(azimuth - 12_345).max() < {"xt32": 9.5, "qt64": 30.5, "pandar64": 7.0}[model]
    if model != "pandar64":
        assert (packets["blocks"]["azimuth"] % {"xt32": 18, "qt64": 60}[model] == 0).all()


def test_azimuths_are_exact_again_after_a_change_of_the_rate(tmp_path):
    script = tmp_path / "s.jsonl"
    script.write_text(json.dumps({"at_s": 0.05, "kind": "sensor", "sensor": "lidar", "rotation_rate_rpm": 300}) + "\n")
    emulator = hilsim.Emulator(rig(tmp_path), script=script)
    packets = [read_packet(packet.payload) for packet in emulator.packets(11.0, 11.1)]
    azimuth = np.concatenate([packet["blocks"]["azimuth"] for packet in packets]).astype(int)
    assert set((np.diff(azimuth) % 36_000).tolist()) == {9}
    assert (azimuth % 9 == 0).all()
    assert {int(packet["tail"]["speed_rpm"]) for packet in packets} == {300}


def test_a_field_of_view_and_a_lock_can_be_set_while_it_runs(tmp_path):
    script = tmp_path / "s.jsonl"
    changes = [{"field_of_view_deg": [0, 89]}, {"field_of_view_deg": [0, 359]}, {"phase_lock": True, "phase_lock_deg": 90.0}]
    script.write_text(
        "".join(json.dumps({"at_s": 0.1 * (row + 1), "kind": "sensor", "sensor": "lidar", **each}) + "\n" for row, each in enumerate(changes))
    )
    emulator = hilsim.Emulator(rig(tmp_path, **{"sub_rays = 1": 'sub_rays = 1\nclock = { sync = "pps" }'}), script=script)
    packets = [read_packet(packet.payload) for packet in emulator.packets(0.0, 0.4)]
    assert [int(packet["tail"]["sequence"]) for packet in packets] == list(range(1, len(packets) + 1))
    azimuth = np.array([packet["blocks"]["azimuth"][0] for packet in packets]).astype(int)
    assert (azimuth[255:310] < 9000).all()
    assert len(packets) == pytest.approx(812, abs=6)
    late = [read_packet(packet.payload) for packet in emulator.packets(11.0, 11.01)]
    utc = utc_ns(np.array([packet["tail"] for packet in late]))
    begin = (utc - 350_000) % 1_000_000_000 * 36_000 / 1e8
    off = (np.array([packet["blocks"]["azimuth"][0] for packet in late]) - begin - 9000 + 18_000) % 36_000 - 18_000
    assert np.abs(off).max() < 9.5


@pytest.mark.parametrize(("profile", "room", "has_us"), [("xt32", 100, False), ("pandar64", 84, True)])
def test_gps_packets_come_each_second_from_a_receiver(tmp_path, profile, room, has_us):
    text = ROOM.replace('name = "lidar"', f'name = "lidar"\nprofile = "{profile}"')
    emulator = hilsim.Emulator(hilsim.load_rig(write_rig(tmp_path, text)))
    sent = [packet.payload for packet in emulator.packets(0.0, 2.05) if len(packet.payload) == 512]
    assert [recognise(payload) for payload in sent] == [HesaiKind.GPS] * 3
    payload = sent[2]
    sentence = payload[18:].split(b"\0")[0].split(b"\xdf")[0].decode()
    assert sentence.startswith("$GPRMC,")
    assert sentence[-5] == "*"
    assert payload[18 + room : 506] == b"\xdf" * (488 - room)
    assert payload[506:] == b"A\1\0\0\0\0"
    digits = payload[2:14].decode()
    day, month, year = (sentence.split(",")[9][at : at + 2] for at in (0, 2, 4))
    assert [digits[at : at + 2][::-1] for at in (0, 2, 4)] == [year, month, day]
    assert int.from_bytes(payload[14:18], "little") < 1_000_000
    assert (int.from_bytes(payload[14:18], "little") > 0) == has_us or has_us


def test_overheating_is_in_the_tail(tmp_path):
    emulator = hilsim.Emulator(rig(tmp_path), faults=[{"kind": "overheated", "at_s": 0.05}])
    flags = [int(read_packet(packet.payload)["tail"]["shutdown"]) for packet in emulator.packets(0.0, 0.1)]
    assert flags[:120] == [0] * 120
    assert set(flags[126:]) == {1}


def test_points_of_the_emulator_are_those_of_packets_with_their_origin(tmp_path):
    for profile in ("xt32", "xt16"):
        emulator = hilsim.Emulator(rig(tmp_path, profile, **{"sub_rays = 1": 'sub_rays = 7\nreturn_mode = "dual"'}))
        points = emulator.points(0.0, 0.1)
        assert (points["instance"] >= 0).all()
        assert 0 < (points["return"] == 1).sum() < 0.1 * points.size
        decoded = hilsim.decode(packet.payload for packet in emulator.packets(0.0, 0.1))
        for field in ("x", "y", "z", "ring", "return"):
            np.testing.assert_array_equal(decoded[field], points[field][: decoded.size])
        assert np.abs(decoded["time"] - 1_564_012_800_000_000_000 - points["time"][: decoded.size]).max() < 1000  # stamps are whole microseconds


def test_a_capture_is_recognised_and_read_turn_by_turn(tmp_path):
    found = rig(tmp_path)
    hilsim.record(found, tmp_path / "x.pcap", duration_s=0.45)
    turns = list(hilsim.Emulator(found).scans(0.0, 0.45))
    assert [(turn.start_ns, turn.stop_ns) for turn in turns[:4]] == [(100_000_000 * turn, 100_000_000 * (turn + 1)) for turn in range(4)]
    assert all(63_900 < turn.points.size <= 64_000 for turn in turns[:4])
    payload = next(iter(hilsim.Emulator(found).packets(0.0, 0.01))).payload
    assert recognise(payload) is HesaiKind.POINTS
    assert recognise(payload[:-1]) is None
    result = CliRunner().invoke(export, [str(tmp_path / "x.pcap"), "-o", str(tmp_path / "scans"), "--format", "npz"])
    assert result.exit_code == 0, result.output
    assert len(list((tmp_path / "scans").rglob("*.npz"))) >= 3


@pytest.mark.parametrize(("name", "turns"), [("hesai/hesai_xt32_dual_600rpm.pcap", 4), ("hesai/hesai_xt16_dual_600rpm.pcap", 3)])
def test_recordings_are_read_as_points(name, turns, capture):
    points = hilsim.decode(capture(name))
    assert points.size > 20_000 * turns
    assert points["range"].min() < 0.2
    assert np.abs(np.diff(points["time"].astype(np.int64))).max() < 10_000_000


def test_changes_of_a_running_sensor_keep_numbers_and_steps(tmp_path):
    changes = [
        {"return_mode": "dual"},
        {"hesai": {"pair": "last_first"}},
        {"rotation_rate_rpm": 1200},
        {"hesai": {"first_return": True}, "return_mode": "last"},
    ]
    script = tmp_path / "s.jsonl"
    script.write_text(
        "".join(json.dumps({"at_s": 0.1 * (row + 1), "kind": "sensor", "sensor": "lidar", **each}) + "\n" for row, each in enumerate(changes))
    )
    emulator = hilsim.Emulator(rig(tmp_path), script=script)
    packets = [read_packet(packet.payload) for packet in emulator.packets(0.0, 0.5)]
    modes = [int(packet["tail"]["mode"]) for packet in packets]
    assert list(dict.fromkeys(modes)) == [0x37, 0x39, 0x3B, 0x33]
    assert [int(packet["tail"]["sequence"]) for packet in packets] == [*range(1, len(packets) + 1)]
    azimuth = np.concatenate([packet["blocks"]["azimuth"][:: 1 if packet["tail"]["mode"] < 0x39 else 2] for packet in packets[:900]]).astype(int)
    assert set((np.diff(azimuth) % 36_000).tolist()) == {18}
    assert packets[-1]["tail"]["speed_rpm"] > 610  # the motor takes its time
    times = utc_ns(np.array([packet["tail"] for packet in packets]))
    assert set(np.diff(times).tolist()) <= {200_000, 400_000, 250_000, 300_000, 350_000, 150_000, 100_000}
