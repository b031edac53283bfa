"""From captures to maps: sensors distinguished, sensors that moved refused, many captures in any order to the same bits, live streams."""

import asyncio
import dataclasses
import gzip
import struct

import numpy as np
import pytest

from hilsim.config.parse import read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.config.sensor_profiles import parse_profile
from hilsim.errors import CaptureError, ConfigError
from hilsim.families.velodyne.protocol.geometry import HDL_32E_GEOMETRY
from hilsim.read.background import job as job_module
from hilsim.read.background.generator import generate, generate_live, prepare
from hilsim.read.background.job import Motion, Stretch, map_capture
from hilsim.read.background.part import GridSetting
from hilsim.read.background.partial import merge
from hilsim.read.background.pool import map_here, mapper
from hilsim.read.background.surface import SurfaceRule
from hilsim.world.geometry.poses import Pose, extrinsics
from hilsim.world.geometry.tracks import linear_track
from tests.unit.background.recordings import BEGIN_NS, PACKET_NS, batch, stdv_payload, vlp16_payloads, write_capture

TURN_PACKETS = 75  # 40 cdeg a block


def made(paths, rule=None, run=map_here, setting=None, **more):
    job, found = prepare(paths[0], setting or GridSetting(), **more)
    return generate(job, found, paths, rule or SurfaceRule(), run, lambda _: None)


def room(azimuth_cdeg, laser, packet):
    """Raw distances of a room with a car that passes in the middle third of four turns."""
    is_car = 9000 <= azimuth_cdeg < 12_000 and 100 <= packet < 200 and laser < 8
    return 1500 if is_car else 4000 + azimuth_cdeg // 20 + 8 * laser


def test_a_car_that_passes_is_not_in_the_map(tmp_path):
    path = write_capture(tmp_path / "room.pcap", vlp16_payloads(4 * TURN_PACKETS, distance=room))
    empty = write_capture(tmp_path / "empty.pcap", vlp16_payloads(4 * TURN_PACKETS, distance=lambda a, laser, _: room(a, laser, 0)))
    with_car, without = made([path]), made([empty])
    np.testing.assert_array_equal(with_car.map.distance_mm, without.map.distance_mm)
    assert with_car.map.confidence.min() < 0.8
    assert with_car.map.model == "VLP-16"
    assert (with_car.sensor.source.product, round(with_car.sensor.source.rate_rpm)) == (0x22, 603)


def moving(azimuth_cdeg, _, packet):
    """Walls that come nearer in front and fall back behind."""
    return 4000 + (2 * packet if 9000 < azimuth_cdeg < 27_000 else -2 * packet)


def test_a_sensor_that_moved_is_refused_and_a_short_stretch_of_it_is_not(tmp_path):
    path = write_capture(tmp_path / "drive.pcap", vlp16_payloads(4 * TURN_PACKETS, distance=moving))
    with pytest.raises(CaptureError, match=r"drive.pcap: from its first to its last third: 50.1% of .* the sensor must not move"):
        made([path])
    found = made([path], stretch=Stretch(start_s=0.01, duration_s=0.12))
    assert found.partial.packets == 90
    assert found.partial.captures[0].first_ns == BEGIN_NS + 8 * PACKET_NS


def test_captures_of_different_places_and_models_are_refused_by_name(tmp_path):
    here = write_capture(tmp_path / "here.pcap", vlp16_payloads(2 * TURN_PACKETS, distance=room))
    there = write_capture(tmp_path / "there.pcap", vlp16_payloads(2 * TURN_PACKETS, distance=lambda a, *_: 1000 if a < 18_000 else 9000))
    hdl = write_capture(tmp_path / "hdl.pcap", vlp16_payloads(100, product=0x28))
    with pytest.raises(CaptureError, match=r"there.pcap: since .*here.pcap: .* the sensor must not move"):
        made([here, there])
    with pytest.raises(CaptureError, match=r"hdl.pcap: must be of a VLP-16, as the captures before, got 192.168.1.201 \(VLP-32C\)"):
        made([here, hdl])


def test_one_of_several_sensors_is_chosen_by_its_address(tmp_path):
    one = write_capture(tmp_path / "one.pcap", vlp16_payloads(2 * TURN_PACKETS, distance=room))
    other = write_capture(tmp_path / "other.pcap", vlp16_payloads(2 * TURN_PACKETS, distance=lambda *_: 2500), address="192.168.1.77")
    both, later = tmp_path / "both.pcap", tmp_path / "later.pcap"
    both.write_bytes(one.read_bytes() + other.read_bytes()[24:])
    later.write_bytes(one.read_bytes() + one.read_bytes()[24:] + other.read_bytes()[24:])
    with pytest.raises(CaptureError, match=r"one sensor must be chosen with --sensor ADDRESS, got 192.168.1.201 \(VLP-16\), 192.168.1.77 \(VLP-16\)"):
        made([both])
    with pytest.raises(CaptureError, match=r"one sensor must be chosen with --sensor ADDRESS, got 192.168.1.201 \(VLP-16\) and 192.168.1.77"):
        made([later])
    with pytest.raises(CaptureError, match=r"the sensor must be one of 192.168.1.201 \(VLP-16\), 192.168.1.77 \(VLP-16\), got 10.0.0.1"):
        made([both], sensor="10.0.0.1")
    found = made([both], sensor="192.168.1.77")
    assert set(np.unique(found.map.distance_mm)) == {5000}


def test_captures_without_a_sensor_or_without_returns_are_refused(tmp_path):
    position = write_capture(tmp_path / "position.pcap", [bytes(512)] * 50)
    dark = write_capture(tmp_path / "dark.pcap", vlp16_payloads(100, distance=lambda *_: 0))
    unknown = write_capture(tmp_path / "unknown.pcap", [payload[:-1] + b"\xa1" for payload in vlp16_payloads(1)])
    near = write_capture(tmp_path / "near.pcap", vlp16_payloads(100, distance=lambda *_: 20))
    for path, said in (
        (position, "position.pcap: must hold packets of a lidar .* got none"),
        (dark, r"dark.pcap: must hold returns of 192.168.1.201 \(VLP-16\), got none in 100 packets"),
        (unknown, "the model must be one of HDL-32E, Puck Hi-Res, VLP-16, VLP-32C, got .* 0xa1"),
        (near, "at least one cell must have 2 returns between 0.1 and 200 m, got none"),
        (tmp_path / "absent.pcap", "absent.pcap: cannot be opened"),
    ):
        with pytest.raises(CaptureError, match=said):
            made([path])


@pytest.fixture(scope="module")
def day(tmp_path_factory):
    """Captures of one place at several times, with different things in the way."""
    folder = tmp_path_factory.mktemp("day")
    paths = []
    for number in range(4):

        def distance(azimuth_cdeg, laser, packet, number=number):
            raw = room(azimuth_cdeg, laser, 0)
            return 1200 + number if (azimuth_cdeg // 3000 + number) % 12 == 0 and packet % 3 == 0 else raw + (azimuth_cdeg * 7 + packet + number) % 3

        paths.append(
            write_capture(folder / f"{number}.pcap", vlp16_payloads(TURN_PACKETS + 20 * number, distance=distance), begin_ns=BEGIN_NS + number)
        )
    return paths


def same(one, other):
    alike = one.partial.is_same(other.partial) and one.map.provenance == other.map.provenance
    return alike and all(
        np.array_equal(getattr(one.map, name), getattr(other.map, name)) for name in ("distance_mm", "intensity", "flags", "hit_count", "confidence")
    )


@pytest.mark.extended
def test_order_of_captures_and_processes_change_no_bit(day):
    here = made(day)
    assert same(made(day[::-1]), here)
    assert same(made(day, run=mapper(2, "")), here)
    assert here.partial.returns == sum(map_capture(prepare(day[0], GridSetting())[0], path).partial.returns for path in day)


@pytest.fixture
def small_parts(monkeypatch):
    """Small captures are read by several threads too."""
    monkeypatch.setattr(job_module, "_MIN_PART_BYTES", 1)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("stretch", [None, Stretch(start_s=0.05), Stretch(start_s=0.02, duration_s=0.25)])
def test_parts_of_one_capture_and_threads_change_no_bit(tmp_path, stretch):
    path = write_capture(tmp_path / "room.pcap", vlp16_payloads(4 * TURN_PACKETS, distance=room))
    one = made([path], stretch=stretch)
    for workers in (2, 3, 8):
        several = made([path], run=mapper(workers, ""), stretch=stretch)
        assert same(several, one)
        assert several.partial.captures == one.partial.captures
        assert several.change == one.change
    assert not one.notes
    assert one.change.is_judged
    # and what a reader of the whole counts is the same
    (tmp_path / "room.pcap.gz").write_bytes(gzip.compress(path.read_bytes()))
    whole = made([tmp_path / "room.pcap.gz"], stretch=stretch)
    np.testing.assert_array_equal(whole.partial.rows, one.partial.rows)
    assert whole.partial.captures[0].first_ns == one.partial.captures[0].first_ns
    assert whole.partial.captures[0].last_ns == one.partial.captures[0].last_ns


@pytest.mark.usefixtures("small_parts")
def test_a_capture_that_cannot_be_read_in_parts_says_so(tmp_path):
    plain = write_capture(tmp_path / "room.pcap", vlp16_payloads(2 * TURN_PACKETS, distance=room))
    data = plain.read_bytes()
    (tmp_path / "room.pcap.gz").write_bytes(gzip.compress(data))
    (tmp_path / "cut.pcap").write_bytes(data[:-7])
    tagged = data[-1264:-1256] + struct.pack("<II", 1252, 1252) + data[-1248:-1236] + b"\x81\x00\x00\x05" + data[-1236:]
    (tmp_path / "tagged.pcap").write_bytes(data + tagged)
    for name in ("room.pcap.gz", "cut.pcap", "tagged.pcap"):
        path, told = tmp_path / name, []
        job, found = prepare(path, GridSetting())
        several = generate(job, found, [path], SurfaceRule(), mapper(4, ""), told.append)
        assert same(several, made([path])), name
        assert any(
            note.endswith("read by one thread, not 4: only plain PCAP files of whole Ethernet frames can be read in parts") for note in several.notes
        ), name
        assert 0 < sum(told) <= path.stat().st_size


@pytest.mark.usefixtures("small_parts")
def test_a_fault_in_a_part_is_reported_for_the_whole_file(tmp_path):
    path = write_capture(tmp_path / "drive.pcap", vlp16_payloads(4 * TURN_PACKETS, distance=moving))
    with pytest.raises(CaptureError, match=r"drive.pcap: from its first to its last third: 50.1% of .* the sensor must not move"):
        made([path], run=mapper(4, ""))
    one = write_capture(tmp_path / "one.pcap", vlp16_payloads(2 * TURN_PACKETS, distance=room))
    other = write_capture(tmp_path / "other.pcap", vlp16_payloads(2 * TURN_PACKETS), address="192.168.1.77")
    later = tmp_path / "later.pcap"
    later.write_bytes(one.read_bytes() + one.read_bytes()[24:] + other.read_bytes()[24:])
    with pytest.raises(CaptureError, match=r"one sensor must be chosen with --sensor ADDRESS, got 192.168.1.201 \(VLP-16\) and 192.168.1.77"):
        made([later], run=mapper(4, ""))


@pytest.mark.extended
@pytest.mark.timeout(240)
@pytest.mark.filterwarnings("ignore")
def test_two_workers_of_a_dask_cluster_change_no_bit(day):
    pytest.importorskip("distributed")
    assert same(made(day, run=mapper(2, "local")), made(day))


def test_a_fault_in_a_worker_is_reported_as_in_this_process(day, tmp_path):
    broken = tmp_path / "broken.pcap"
    broken.write_bytes(b"no capture")
    with pytest.raises(CaptureError, match=r"broken.pcap: must be a PCAP or PCAPNG capture"):
        made([*day[:2], broken], run=mapper(2, ""))


@pytest.mark.extended
@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_is_not_there_is_a_fault_of_the_address(day):
    pytest.importorskip("distributed")
    with pytest.raises(ConfigError, match=r"--cluster must be the address of a Dask scheduler, got tcp://127.0.0.1:9"):
        made(day, run=mapper(2, "tcp://127.0.0.1:9"))


def test_poses_bring_a_moving_sensor_back_to_where_it_began(tmp_path):
    # 10 m/s along +y of the sensor towards a wall of which laser 1 (1 deg up) sees a point ahead at 40 m, then ever nearer
    packets = 2 * TURN_PACKETS

    def distance(azimuth_cdeg, laser, packet):
        ahead_m = 40.0 - 10.0 * packet * PACKET_NS * 1e-9
        is_ahead = laser == 1 and (azimuth_cdeg < 40 or azimuth_cdeg > 35_960)
        return round(ahead_m * 500) if is_ahead else 0

    path = write_capture(tmp_path / "drive.pcap", vlp16_payloads(packets, distance=distance))
    times = np.array([0, 10**9])
    track = linear_track(times, np.array([[0.0, 0.0, 0.0], [10.0, 0.0, 0.0]]), np.tile((1.0, 0.0, 0.0, 0.0), (2, 1)))
    motion = Motion(track=track, is_utc=False, body_from_sensor=extrinsics((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
    found = made([path], SurfaceRule(min_hits=1, min_share=0.0), motion=motion)
    seen = found.map.distance_mm[found.map.flags == 3]
    np.testing.assert_allclose(seen, 40_000, atol=25)  # the packet's own 1.3 ms are 13 mm of it
    assert found.change is None
    short = linear_track(np.array([0, 10**8]), np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]), np.tile((1.0, 0.0, 0.0, 0.0), (2, 1)))
    with pytest.raises(CaptureError, match=r"the poses must cover the packets' times, 0.000 to 0.198 s, got poses from 0.000 to 0.100 s"):
        made([path], motion=Motion(track=short, is_utc=False, body_from_sensor=Pose()))


def test_an_image_grid_spans_what_was_seen_unless_it_is_set(tmp_path):
    path = write_capture(tmp_path / "cepton.pcap", cepton_payloads())
    grid = made([path]).map.grid
    assert (grid.columns, grid.rows) == (320, 160)
    assert (grid.x_min, grid.x_max, grid.z_min, grid.z_max) == (-0.3, 0.3, -0.15, 0.15)
    narrow = made([path], setting=GridSetting(columns=20, rows=10, image_x=(-0.1, 0.1), image_z=(-0.1, 0.1)))
    assert narrow.map.grid.x_max == 0.1
    assert narrow.partial.outside > 0
    with pytest.raises(ValueError, match="rows must be left to a sensor that turns"):
        made([write_capture(tmp_path / "vlp.pcap", vlp16_payloads(100))], setting=GridSetting(rows=10))


def shipped(name):
    return parse_profile(read_toml(profiles_directory() / "sensors" / f"{name}.toml"), name)


def cepton_payloads():
    points = [(x * 10, 2000, z * 10, 40, 4, 0) for x in range(-60, 61, 4) for z in range(-30, 31, 4)]
    return [stdv_payload(points[start : start + 120]) for start in range(0, len(points), 120)] * 6


def test_a_person_says_what_sensor_sent_points(tmp_path):
    path = write_capture(tmp_path / "cepton.pcap", cepton_payloads())
    assert made([path]).map.model == "Cepton STDV"
    found = made([path, write_capture(tmp_path / "later.pcap", cepton_payloads())], named=shipped("x90-generic"))
    assert found.map.model == "X90-generic"
    np.testing.assert_array_equal(found.map.distance_mm, made([path]).map.distance_mm)
    with pytest.raises(CaptureError, match=r'--profile must be of family "cepton" for Cepton packets, got one of a VLP-16 and packets of .*STDV'):
        made([path], named=shipped("vlp16"))


def test_a_turning_sensor_must_be_the_one_that_its_packets_name(tmp_path):
    path = write_capture(tmp_path / "hdl.pcap", vlp16_payloads(2 * TURN_PACKETS, product=0x28))
    for name in ("vlp16", "hr80w-like"):
        with pytest.raises(CaptureError, match=r"--profile must be of the packets' model, got one of a .* and packets of .*VLP-32C"):
            made([path], named=shipped(name))
    assert made([write_capture(tmp_path / "a.pcap", vlp16_payloads(2 * TURN_PACKETS))], named=shipped("vlp16")).map.model == "VLP-16"


def test_lasers_of_a_named_profile_look_where_it_says(tmp_path):
    higher = shipped("vlp16")
    higher = dataclasses.replace(higher, channels=tuple(dataclasses.replace(one, elevation_deg=one.elevation_deg + 1.0) for one in higher.channels))
    found = made([write_capture(tmp_path / "a.pcap", vlp16_payloads(2 * TURN_PACKETS))], named=higher)
    assert found.map.grid.elevation_deg == tuple(np.arange(-14.0, 17.0, 2.0))


def live(batches, seconds, rule=None, named=None):
    async def arriving():
        for some in batches:
            yield some

    return asyncio.run(generate_live(arriving(), GridSetting(), rule or SurfaceRule(), where="127.0.0.1:2368", seconds=seconds, named=named))


def test_a_live_stream_of_points_is_of_the_sensor_that_a_person_says(tmp_path):
    payloads = cepton_payloads() * 8
    batches = [batch(payloads[at : at + 10], begin_ns=BEGIN_NS + at * PACKET_NS) for at in range(0, len(payloads), 10)]
    found = live(batches, 0.1, named=shipped("hr80w-like"))
    assert found.map.model == "HR80W-like"
    np.testing.assert_array_equal(found.map.distance_mm, made([write_capture(tmp_path / "a.pcap", payloads)]).map.distance_mm)


def test_a_live_stream_of_cepton_s_older_packets_is_refused():
    with pytest.raises(CaptureError, match=r"127.0.0.1:2368: Cepton STDT points must come from a capture"):
        live([batch([b"STDT" + bytes(1042)] * 10, begin_ns=BEGIN_NS + at * 10 * PACKET_NS) for at in range(20)], 0.1)


def test_a_live_stream_gives_the_map_that_its_capture_gives(tmp_path):
    payloads = vlp16_payloads(4 * TURN_PACKETS, distance=room)
    batches = [batch(payloads[at : at + 10], begin_ns=BEGIN_NS + at * PACKET_NS) for at in range(0, len(payloads), 10)]
    found = live(batches, 0.4)
    np.testing.assert_array_equal(found.map.distance_mm, made([write_capture(tmp_path / "a.pcap", payloads)]).map.distance_mm)
    assert found.partial.captures[0].packets == len(payloads)
    with pytest.raises(CaptureError, match=r"127.0.0.1:2368: from the first to the last third: .* the sensor must not move"):
        live(
            [batch(vlp16_payloads(4 * TURN_PACKETS, distance=moving)[at : at + 10], begin_ns=BEGIN_NS + at * PACKET_NS) for at in range(0, 300, 10)],
            0.4,
        )
    with pytest.raises(CaptureError, match="must hold packets of a lidar"):
        live([], 0.4)


STANDING = ("vlp16_dual.pcap", "vlp16_strongest_1200rpm.pcap", "vlp16_strongest_gps.pcap", "vlp32c_strongest_fov.pcap")


@pytest.mark.parametrize("name", STANDING)
def test_real_sensors_that_stood_still_are_taken(capture, name):
    found = made([capture(name)])
    assert found.change.ratio < 0.02
    assert found.map.used.mean() > 0.4


def test_the_real_car_that_creeps_is_refused_and_a_fifth_of_a_second_of_it_is_not(capture):
    path = capture("hdl32e_strongest.pcap")
    with pytest.raises(CaptureError, match=r"1\d.\d% of 50,\d+ cells became nearer and 11.\d% farther"):
        made([path])
    found = made([path], stretch=Stretch(duration_s=0.2))
    assert found.map.grid.elevation_deg == HDL_32E_GEOMETRY.rows_deg
    assert found.map.used.mean() > 0.7


def test_a_map_of_several_parts_is_that_of_the_whole(day):
    job, _ = prepare(day[0], GridSetting())
    partials = [map_capture(job, path).partial for path in day]
    assert merge([merge(partials[2:]), merge(partials[:2])]).is_same(merge(partials))
