"""Lidars that change at rig times: every firing is that of the lidar in force when it leaves."""

from dataclasses import replace

import numpy as np
import pytest

from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.emulator.batch import Flow
from hilsim.emulator.changing.segments import CAPACITY, REFUSED, SegmentTable, SegmentWord, enter_segment, segment_after
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.schedule import packet_start_ns
from hilsim.emulator.truth import packets_with_truth
from hilsim.emulator.workspace import allocate_workspace
from hilsim.families.cepton.specs import CeptonSpec
from hilsim.families.velodyne.protocol.data import DATA_PACKET_DTYPE
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.sensor.optics.weather import WeatherSpec
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import linear_track
from hilsim.world.platforms.platform import build_platform
from hilsim.world.scene.materials import Material
from hilsim.world.scene.primitives import box
from hilsim.world.scene.world import SceneObject, build_world
from tests.compiled import compiled_only
from tests.lidars import lidar_setting

PLASTER = Material(name="plaster", reflectivity=85)
GLASS = Material(name="glass", reflectivity=4, transmission=0.8)
SEQUENCE_NS = 55_296
FIRING_NS = 2_304
PACKET_NS = 24 * SEQUENCE_NS


def world(*distances_m, material=PLASTER):
    """Rings of four walls around the sensor, each at a distance."""
    walls = []
    for distance_m in distances_m:
        for x, y, size in ((1, 0, (0.1, 2.2, 1)), (-1, 0, (0.1, 2.2, 1)), (0, 1, (2.2, 0.1, 1)), (0, -1, (2.2, 0.1, 1))):
            mesh = box((size[0] * distance_m, size[1] * distance_m, 40.0), material)
            walls.append(SceneObject(mesh=mesh, placement=Pose(position_m=(x * distance_m, y * distance_m, 0.0))))
    return build_world(walls)


def lidar(profile="vlp16", kind=VelodyneSpec, seen=None, **setup):
    spec = parse_table(kind, read_toml(profiles_directory() / "sensors" / f"{profile}.toml"), profile)
    flow = Flow(name="lidar/data", source="127.0.1.201", source_port=2368, destination="127.0.0.1", destination_port=2368)
    return LidarEmulator(
        setting=lidar_setting(spec, **setup),
        world=seen or world(8.0),
        platform=build_platform(linear_track(np.array([0, 10**10]), [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)], [(1.0, 0.0, 0.0, 0.0)] * 2, 0)),
        seed=9,
        utc_epoch_ns=0,
        data_flow=flow,
        position_flow=flow,
    )


def changed(base, **setup):
    return replace(base, setting=replace(base.setting, setup=replace(base.setting.setup, **setup)))


def following(base, *changes):
    """The lidar that becomes each of some others at rig times."""
    later, current = [], base
    for at_ns, other in changes:
        later.append(current.followed_by(other, at_ns))
        current = later[-1].lidar
    return replace(base, later=tuple(later))


def blocks(payload):
    return payload.copy().view(DATA_PACKET_DTYPE)["blocks"].reshape(-1)


def firing_ns(packets):
    """Rig time of each record of strongest-return packets: [packet, block, record]."""
    index = np.arange(packets * 12 * 32).reshape(packets, 12, 32)
    return index // 16 * SEQUENCE_NS + index % 16 * FIRING_NS


@compiled_only
def test_each_firing_is_that_of_the_lidar_in_force():
    base = lidar(sub_rays=7)
    fog = replace(base, setting=replace(base.setting, weather=WeatherSpec(fog_visibility_m=15.0)))
    near, glass = replace(base, world=world(4.0)), replace(base, world=world(5.0, 9.0, material=GLASS))
    # Within a packet, twice within one, at a firing's very time, and within the last firing sequence.
    changes = [
        (3 * PACKET_NS + 700_001, near),
        (5 * PACKET_NS + 5, fog),
        (5 * PACKET_NS + 900_000, near),
        (7 * PACKET_NS + 3 * SEQUENCE_NS + 2 * FIRING_NS, glass),
    ]
    got = following(base, *changes).data_packets(0, 12)
    bounds = [-1, *(at_ns for at_ns, _ in changes), 1 << 62]
    time_ns = firing_ns(12)
    records = blocks(got.payload)["channels"].reshape(12, 12, 32)
    seen = np.zeros((12, 12, 32), bool)
    for number, alone in enumerate((base, *(other for _, other in changes))):
        own = (time_ns >= bounds[number]) & (time_ns < bounds[number + 1])
        expected = blocks(alone.data_packets(0, 12).payload)["channels"].reshape(12, 12, 32)
        assert (records[own] == expected[own]).all()
        assert own.any()
        seen |= own
    assert seen.all()
    assert (got.payload != base.data_packets(0, 12).payload).any(axis=1).tolist() == [False] * 3 + [True] * 9


def test_a_firing_before_a_change_within_a_packet_is_the_former_lidars():
    base = lidar()
    near = replace(base, world=world(4.0))
    got, *alone = (each.data_packets(0, 1).payload for each in (following(base, (600_001, near)), base, near))
    is_early = np.broadcast_to(firing_ns(1)[0] < 600_001, (12, 32))
    assert (blocks(got)["channels"] == np.where(is_early, *(blocks(each)["channels"] for each in alone))).all()


@compiled_only
def test_packets_do_not_depend_on_how_many_are_asked_for_at_once():
    base = lidar()
    lidars = [replace(base, world=world(2.0 + number)) for number in range(5)]
    changing = following(base, *((number * 1_700_003, lidars[number % 5]) for number in range(1, 40)))
    whole = changing.data_packets(0, 60)
    singly = [changing.data_packets(packet, 1) for packet in range(60)]
    assert np.array_equal(np.concatenate([each.payload for each in singly]), whole.payload)
    assert np.array_equal(np.concatenate([each.deadline_ns for each in singly]), whole.deadline_ns)
    assert np.array_equal(base.data_packets(0, 60).deadline_ns, whole.deadline_ns)


@compiled_only
def test_more_segments_than_a_table_holds_are_rendered_in_parts():
    base = lidar()
    lidars = [replace(base, world=world(2.0)), replace(base, world=world(3.0))]
    count = CAPACITY + 100
    changing = following(base, *((number * 4 * FIRING_NS, lidars[number % 2]) for number in range(count)))
    records = blocks(changing.data_packets(0, 4).payload)["channels"]["distance"].reshape(4, 12, 32)
    which = np.minimum(firing_ns(4) // (4 * FIRING_NS), count - 1) % 2
    expected = np.where(which == 0, *(blocks(each.data_packets(0, 4).payload)["channels"]["distance"].reshape(4, 12, 32) for each in lidars))
    assert np.array_equal(records, expected)


@compiled_only
def test_other_returns_begin_with_a_packet_and_packets_go_on_without_a_gap():
    base = lidar(seen=world(5.0, 9.0, material=GLASS), sub_rays=7)
    dual, last = changed(base, return_mode="dual"), changed(base, return_mode="last")
    changing = following(base, (2 * PACKET_NS + 1, dual), (6 * PACKET_NS + 1000, last), (8 * PACKET_NS + 7, base))
    assert [later.begin_ns for later in changing.later] == [3 * PACKET_NS, 6 * PACKET_NS + PACKET_NS // 2, 8 * PACKET_NS + PACKET_NS // 2]
    got = changing.data_packets(0, 18)
    packets = got.payload.view(DATA_PACKET_DTYPE).reshape(-1)
    modes = got.payload[:, 1204].tolist()
    assert [mode for number, mode in enumerate(modes) if number == 0 or modes[number - 1] != mode] == [0x37, 0x39, 0x38, 0x37]
    half_us = PACKET_NS / 2000
    steps = np.round(np.diff(packets["timestamp"].astype(np.int64)) / half_us)
    assert steps.tolist() == [2] * 3 + [1] * 7 + [2] * 7
    azimuth = packets["blocks"]["azimuth"].astype(int)
    dual_rows = slice(3, 10)
    assert np.array_equal(azimuth[dual_rows, ::2], azimuth[dual_rows, 1::2])
    turned = np.concatenate([azimuth[:3].reshape(-1), azimuth[dual_rows, ::2].reshape(-1), azimuth[10:].reshape(-1)])
    assert np.abs(np.diff(turned) - 39.8).max() < 6
    for packet in range(18):
        assert changing.first_data_packet(int(got.deadline_ns[packet])) == packet
        assert changing.first_data_packet(int(got.deadline_ns[packet]) + 1) == packet + 1


@compiled_only
def test_a_head_ramps_to_another_rate_from_where_it_is():
    base = lidar()
    ramped = round(3e9 / PACKET_NS)  # by 600 rpm at 200 rpm a second
    changing = following(base, (20 * PACKET_NS + 333_333, changed(base, rotation_rate_rpm=1200)), ((40 + ramped) * PACKET_NS, base))

    def steps(first, count):
        return np.diff(blocks(changing.data_packets(first, count).payload)["azimuth"].astype(int)) % 36_000

    assert np.abs(steps(0, 30) - 39.8).max() < 6
    assert steps(20 + ramped // 2, 40).mean() == pytest.approx(59.7 + 0.4, abs=0.5)
    assert np.abs(steps(ramped + 25, 20) - 79.6).max() < 8
    assert np.abs(steps(2 * ramped + 42, 20) - 39.8).max() < 6


@compiled_only
def test_ground_truth_is_that_of_the_lidar_in_force():
    base = lidar(sub_rays=7)
    near = replace(base, world=world(4.0))
    changing = following(base, (3 * PACKET_NS + 700_001, near), (6 * PACKET_NS + 1, changed(near, return_mode="dual")), (9 * PACKET_NS, base))
    packets, truth = packets_with_truth(changing, 0, 14)
    assert np.array_equal(packets.payload, changing.data_packets(0, 14).payload)
    is_near = (truth.time_ns >= changing.later[0].begin_ns) & (truth.time_ns < changing.later[2].begin_ns)
    horizontal_m = truth.range_m
    assert horizontal_m[is_near].max() < 7.0 < horizontal_m[~is_near].min()
    returns = sum(int((blocks(payload)["channels"]["distance"] > 0).sum()) for payload in packets.payload)
    assert truth.time_ns.size == returns
    place = truth.packet * 384 + truth.block.astype(int) * 32 + truth.record
    assert (np.diff(place) > 0).all()
    distances = np.stack([blocks(payload)["channels"]["distance"] for payload in packets.payload]).reshape(-1)
    assert np.array_equal(distances[place], truth.distance)


@compiled_only
def test_a_swept_sensor_changes_too():
    base = lidar("hr80w-like", CeptonSpec, seen=world(20.0))
    near = replace(base, world=world(6.0))
    at_ns = int(packet_start_ns(base.plan, 5)) + 100_000
    got = following(base, (at_ns, near)).data_packets(0, 10).payload
    alone = [each.data_packets(0, 10).payload for each in (base, near)]
    assert np.array_equal(got[:5], alone[0][:5])
    assert np.array_equal(got[6:], alone[1][6:])
    mixed = got[5]
    is_first, is_second = mixed == alone[0][5], mixed == alone[1][5]
    assert (is_first | is_second).all()
    assert not is_first.all()
    assert not is_second.all()


def test_a_renderer_refuses_a_lidar_that_changes():
    base = lidar()
    with pytest.raises(ValueError, match="must be rendered by the CPU kernels"):
        following(base, (0, base)).data_packets(0, 1, renderer=object())


# -- the table of a running kernel --------------------------------------------------------------------------------------------------------


def table_of(base):
    table = SegmentTable(base.plan, base.world)
    return table, allocate_workspace(base.plan, base.plan.sequences_per_packet, is_opaque=False)


def test_a_segment_that_was_added_too_late_begins_with_the_next_packet_rendered():
    base = lidar()
    table, workspace = table_of(base)
    assert enter_segment(base.plan, table.segments, -1, 10) == -1
    number = table.add(4 * PACKET_NS, base.plan, base.world, workspace)
    assert table.begun_ns(number) is None
    assert enter_segment(base.plan, table.segments, -1, 11) == 0
    assert table.begun_ns(number) == 11 * PACKET_NS
    table.close()


def test_a_segment_that_was_added_too_late_begins_after_the_newest_position_packet_too():
    base = lidar()
    table, workspace = table_of(base)
    encoded_ns = 11 * PACKET_NS + 700_000
    assert segment_after(base.plan, table.segments, -1, 11, encoded_ns) == -1
    number = table.add(4 * PACKET_NS, base.plan, base.world, workspace)
    assert enter_segment(base.plan, table.segments, -1, 11) == -1  # it begins within the packet
    assert table.begun_ns(number) == encoded_ns + 1
    assert segment_after(base.plan, table.segments, -1, 12, encoded_ns + 1) == 0
    table.close()


def test_other_returns_that_were_added_too_late_are_refused_and_what_was_before_goes_on():
    base = lidar()
    dual = base.followed_by(changed(base, return_mode="dual"), 4 * PACKET_NS).lidar
    table, workspace = table_of(base)
    table.add(-(1 << 62), base.plan, base.world, workspace)
    number = table.add(4 * PACKET_NS, dual.plan, dual.world, allocate_workspace(dual.plan, 12, is_opaque=False))
    at = enter_segment(base.plan, table.segments, -1, 11)
    assert table.begun_ns(number) == REFUSED
    assert table.segments.plan[at % CAPACITY] == table.segments.plan[0]
    table.release_passed()
    following_number = table.add(13 * PACKET_NS, base.plan, world(3.0), workspace)
    assert enter_segment(base.plan, table.segments, at, 12) == at
    assert enter_segment(base.plan, table.segments, at, 13) == following_number
    table.close()


def test_another_rate_that_was_added_too_late_is_refused_because_the_head_would_leap():
    base = lidar()
    fast = base.followed_by(changed(base, rotation_rate_rpm=1200), 4 * PACKET_NS).lidar
    table, workspace = table_of(base)
    table.add(-(1 << 62), base.plan, base.world, workspace)
    number = table.add(4 * PACKET_NS, fast.plan, fast.world, workspace)
    enter_segment(base.plan, table.segments, -1, 11)
    assert table.begun_ns(number) == REFUSED
    table.close()


@pytest.mark.parametrize(("before", "after"), [({"field_of_view_deg": (42, 97)}, {"field_of_view_deg": (0, 359)}), ({}, {"return_mode": "last"})])
def test_what_begins_with_a_packet_does_not_begin_within_it_after_a_position_packet(before, after):
    """As late as by a position packet alone, its first packet begins as the former lidar's, but what it reports is another one's."""
    base = changed(lidar(), **before) if before else lidar()
    begin_ns, later = base.followed_by(changed(base, **after), 40 * PACKET_NS)
    first = int(later.plan.origin_packet)
    assert packet_start_ns(later.plan, first) == packet_start_ns(base.plan, first) == begin_ns
    table, workspace = table_of(base)
    table.add(-(1 << 62), base.plan, base.world, workspace)
    assert segment_after(base.plan, table.segments, -1, first, begin_ns + 100_000) == 0
    number = table.add(begin_ns, later.plan, later.world, workspace)
    assert enter_segment(base.plan, table.segments, 0, first) in {0, number}
    assert table.begun_ns(number) == REFUSED
    table.close()


def test_what_has_begun_makes_room():
    base = lidar()
    table, workspace = table_of(base)
    at = -1
    for packet in range(3 * CAPACITY):
        table.add(packet * PACKET_NS, base.plan, base.world, workspace)
        at = enter_segment(base.plan, table.segments, at, packet)
    assert at == 3 * CAPACITY - 1 == table.segments.words[SegmentWord.AT]
    for _ in range(CAPACITY - 1):
        table.add(1 << 61, base.plan, base.world, workspace)
    with pytest.raises(ValueError, match="at most 255 segments may wait"):
        table.add(1 << 61, base.plan, base.world, workspace)
    table.close()


def test_a_segment_of_other_types_is_refused():
    base = lidar()
    table, workspace = table_of(base)
    other = base.world._replace(owner=base.world.owner.astype(np.int64))
    with pytest.raises(ValueError, match="must be of the types of the first ones"):
        table.add(0, base.plan, other, workspace)
    table.close()
