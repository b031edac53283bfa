"""Ground truth: a row for each return of the packets, true to what was hit, from where, and whatever the batch or renderer."""

import dataclasses

import numpy as np
import pytest

from hilsim.emulator.truth import Cause, Truth, allocate_truth, note_returns, packets_with_truth
from hilsim.families.velodyne.protocol.data import decode_data_packets
from hilsim.sensor.echoes import ECHO, ENERGY, INSTANCE, RANGE, RAY, TRIANGLE, ReturnType
from hilsim.sensor.optics.false_alarms import FalseAlarmSpec
from hilsim.sensor.optics.weather import WeatherSpec
from hilsim.sensor.specs import DecimationSpec
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import conjugate, from_roll_pitch_yaw, rotate
from tests.compiled import compiled_only
from tests.renderers import CpuRenderer
from tests.unit.emulator.optical_scenes import diffuse, level, still_lidar, wall, workspace_of
from tests.unit.emulator.stages import returns_truth


def truth_of(lidar, sequences=1, edit=None):
    """Rows of the first firing sequences, changed by ``edit`` before they are looked at."""
    workspace = workspace_of(lidar, sequences)
    if edit is not None:
        edit(workspace)
    truth = allocate_truth(2 * 16 * sequences)
    rows = note_returns(lidar.plan, lidar.platform, lidar.world, np.array(lidar.setting.setup.mount_position_m), 0, workspace, truth, 0)
    return Truth._make(column[:rows] for column in truth)


def ahead_truth(lidar):
    """Rows of the firing along +x."""
    truth = truth_of(lidar, 2)
    rows = (truth.sequence == 0) & (truth.channel == 0)
    return Truth._make(column[rows] for column in truth)


def same(one, other):
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(one, other, strict=True))


@pytest.fixture
def furnished(vlp16):
    """A lidar with everything that makes echoes: edges, a fence, glass, fog, noise, decimation, false alarms."""

    def make(**setting):
        objects = [
            wall(25.0, diffuse(60), label=3),
            wall(9.0, diffuse(40), y=(0.5, 8.0), label=4),
            wall(6.0, diffuse(30, porosity=0.6), y=(-3.0, 0.0), label=5),
            wall(4.0, diffuse(2, transmission=0.85), y=(-9.0, -3.0), angle_deg=10.0, label=6),
        ]
        spec = dataclasses.replace(level(vlp16), range_noise_m=0.005, drop_out_ratio=0.05)
        optics = {"weather": WeatherSpec(fog_visibility_m=200.0), "false_alarms": FalseAlarmSpec(rate_per_firing=0.05)}
        return still_lidar(objects, spec, **{"phase_deg": 345.0} | optics | setting)

    return make


def test_a_packet_and_its_rows_come_together_and_one_by_one(vlp16):
    objects = [wall(25.0, diffuse(60), label=3), wall(9.0, diffuse(40), y=(-1.0, 1.0), label=4)]
    lidar = still_lidar(objects, level(vlp16), return_mode="dual", phase_deg=355.0)
    batch, truth = packets_with_truth(lidar, 2, 1)
    alone = lidar.data_packets(2, 1)
    np.testing.assert_array_equal(batch.payload, alone.payload)
    np.testing.assert_array_equal(batch.deadline_ns, alone.deadline_ns)
    np.testing.assert_array_equal(batch.pose_ns, alone.pose_ns)
    assert same(truth, returns_truth(lidar, 2, 1, CpuRenderer()))
    assert truth.packet.size == np.count_nonzero(decode_data_packets(batch.payload)["blocks"]["channels"]["distance"]) > 100


@compiled_only
@pytest.mark.parametrize("mode", ["strongest", "last", "dual"])
def test_rows_are_the_packets_returns_in_the_order_of_their_bytes(furnished, mode):
    lidar = furnished(return_mode=mode, sub_rays=7, decimation=DecimationSpec(ray_step=3))
    batch, truth = packets_with_truth(lidar, 3, 30)
    np.testing.assert_array_equal(batch.payload, lidar.data_packets(3, 30).payload)
    records = decode_data_packets(batch.payload)["blocks"]["channels"]
    packet, block, record = np.nonzero(records["distance"])
    assert packet.size > 1000
    np.testing.assert_array_equal(truth.packet, packet + 3)
    np.testing.assert_array_equal(truth.block, block)
    np.testing.assert_array_equal(truth.record, record)
    np.testing.assert_array_equal(truth.distance, records["distance"][packet, block, record])
    np.testing.assert_array_equal(truth.reflectivity, records["reflectivity"][packet, block, record])
    returns = 2 if mode == "dual" else 1
    of_packet = block // returns * 2 + record // 16
    np.testing.assert_array_equal(truth.sequence, truth.packet * (24 // returns) + of_packet)
    np.testing.assert_array_equal(truth.channel, record % 16)
    np.testing.assert_array_equal(truth.time_ns, truth.sequence * 55_296 + truth.channel.astype(int) * 2304)
    assert np.abs(truth.distance * 0.002 - truth.range_m).max() < 0.001 + 6 * 0.03


@compiled_only
def test_rows_do_not_depend_on_how_they_are_asked_for_nor_on_the_renderer(furnished):
    lidar = furnished(return_mode="dual", sub_rays=7)
    _, whole = packets_with_truth(lidar, 0, 20)
    parts = [packets_with_truth(lidar, first, count)[1] for first, count in ((0, 1), (1, 12), (13, 7))]
    assert same(whole, [np.concatenate(columns) for columns in zip(*parts, strict=True)])
    for threads in (1, 3):
        renderer = CpuRenderer(threads)
        assert same(whole, returns_truth(lidar, 0, 20, renderer))
        renderer.close()


def test_a_wall_at_an_angle_is_named_with_its_label_incidence_and_exact_range(vlp16):
    objects = [wall(60.0, diffuse(20), label=1), wall(20.0, diffuse(80), angle_deg=45.0, label=200)]
    spec = dataclasses.replace(level(vlp16), range_noise_m=0.05, range_unit_mm=2.0)
    truth = ahead_truth(still_lidar(objects, spec))
    assert truth.range_m[0] == pytest.approx(20.0, abs=1e-5)
    assert truth.distance[0] != 10_000  # what is reported has its noise
    assert truth.incidence_deg[0] == pytest.approx(45.0, abs=0.01)
    assert (truth.object_id[0], truth.label[0], truth.material[0], truth.cause[0]) == (1, 200, 1, Cause.SURFACE)
    assert (truth.echo[0], truth.echoes[0], truth.sub_rays[0]) == (0, 1, 1)


@pytest.mark.parametrize(("reflectivity", "expected"), [(50, 1), (60, 0)])
def test_a_merged_echo_is_of_the_object_that_sent_most_of_its_energy(vlp16, reflectivity, expected):
    # Three of seven sub-rays see the nearer wall: 3 * 60 > 4 * 40, 3 * 50 < 4 * 40.
    near, far = wall(10.0, diffuse(reflectivity), y=(-60.0, -0.005)), wall(10.2, diffuse(40))
    truth = ahead_truth(still_lidar([near, far], level(vlp16), sub_rays=7))
    assert (truth.echoes[0], int(truth.sub_rays[0]).bit_count()) == (1, 7)
    assert truth.object_id[0] == expected
    assert truth.material[0] == expected


def test_of_equals_the_lower_id_is_named(vlp16):
    def two_alike(workspace):
        # The firing along +x met both objects with the same energy, the higher id first.
        workspace.hits.hit_count[0] = 2
        workspace.hits.value[0, :2, RANGE], workspace.hits.value[0, :2, ENERGY] = 10.0, 0.25
        workspace.hits.what[0, :2, RAY] = [0, 1]
        workspace.hits.what[0, :2, INSTANCE] = 0
        workspace.hits.what[0, :2, TRIANGLE] = [int(np.argmax(lidar.world.owner == thing)) for thing in (2, 1)]
        workspace.hits.what[0, :2, ECHO] = 0

    lidar = still_lidar([wall(10.0 + place, diffuse(50)) for place in range(3)], level(vlp16))
    assert truth_of(lidar, 2, two_alike).object_id[0] == 1


@pytest.mark.parametrize(
    ("far_percent", "pair"), [(10, (ReturnType.LAST, ReturnType.STRONGEST)), (90, (ReturnType.BOTH, ReturnType.SECOND_STRONGEST))]
)
def test_a_pair_says_which_is_last_strongest_or_second_strongest(vlp16, far_percent, pair):
    objects = [wall(10.0, diffuse(20), y=(-60.0, -0.005)), wall(15.0, diffuse(far_percent))]
    truth = ahead_truth(still_lidar(objects, level(vlp16), sub_rays=7, return_mode="dual"))
    assert tuple(truth.return_type) == pair
    np.testing.assert_array_equal(truth.block, [0, 1])
    np.testing.assert_array_equal(truth.object_id, [1, 0])
    np.testing.assert_array_equal(truth.echo, [1, 0])
    np.testing.assert_array_equal(truth.echoes, [2, 2])
    assert int(truth.sub_rays[0]) & int(truth.sub_rays[1]) == 0
    assert int(truth.sub_rays[0] | truth.sub_rays[1]) == 0b1111111


def test_a_single_echo_is_both_and_is_in_both_blocks(vlp16):
    truth = ahead_truth(still_lidar([wall(10.0, diffuse(50))], level(vlp16), return_mode="dual"))
    np.testing.assert_array_equal(truth.return_type, [ReturnType.BOTH] * 2)
    np.testing.assert_array_equal(truth.distance, [5000, 5000])


@pytest.mark.parametrize(("mode", "expected"), [("strongest", ReturnType.STRONGEST), ("last", ReturnType.LAST)])
def test_single_returns_are_what_the_sensor_was_set_to_report(vlp16, mode, expected):
    truth = ahead_truth(still_lidar([wall(10.0, diffuse(50))], level(vlp16), return_mode=mode))
    np.testing.assert_array_equal(truth.return_type, [expected])


def test_echoes_of_fog_are_nobodys(vlp16):
    truth = truth_of(still_lidar([], level(vlp16), weather=WeatherSpec(fog_visibility_m=20.0, near_gain_m=0.0)), 2)
    assert truth.packet.size > 10
    assert (truth.range_m < 20.0).all()
    assert (truth.cause == Cause.WEATHER).all()
    for column in (truth.object_id, truth.label, truth.material):
        assert (column == -1).all()
    assert (truth.sub_rays == 0).all()
    assert np.isnan(truth.incidence_deg).all()


def test_false_alarms_belong_to_no_object_and_are_marked(vlp16):
    lidar = still_lidar([wall(20.0, diffuse(50), label=7)], level(vlp16), false_alarms=FalseAlarmSpec(rate_per_firing=0.1), return_mode="last")
    truth = truth_of(lidar, 8)
    false = truth.cause == Cause.FALSE_ALARM
    assert 1 <= false.sum() < 40
    assert (truth.label[false] == -1).all()
    assert (truth.label[~false] == 7).all()
    assert (truth.range_m[false] > 20.0 + 1.15).all()  # what is nearer is not the last, what is nearer than that is part of the wall's echo


def test_the_pose_is_the_sensors_at_the_firing(vlp16):
    mount = {"mount_position_m": (0.3, -0.2, 1.5), "mount_rotation_deg": (3.0, -4.0, 30.0)}
    at = Pose(position_m=(500_000.0, 4_000_000.0, 30.0), orientation=from_roll_pitch_yaw(1.0, 2.0, -30.0))
    # All channels have their own elevation and offset again.
    lidar = still_lidar(
        [wall(500_040.0, diffuse(60), y=(3_999_900.0, 4_000_100.0), z=(0.0, 99.0))], level(vlp16, channels=vlp16.channels), at=at, **mount
    )
    workspace = workspace_of(lidar, 2)
    truth = truth_of(lidar, 2)
    assert truth.packet.size == 32
    for row in range(truth.packet.size):
        firing = int(truth.channel[row]) * 2 + int(truth.sequence[row])
        turn = tuple(map(float, truth.orientation[row]))
        channel = lidar.setting.spec.channels[truth.channel[row]]
        x, y, z = rotate(conjugate(turn), tuple(map(float, workspace.rays.direction[firing])))
        assert z == pytest.approx(np.sin(np.radians(channel.elevation_deg)), abs=1e-6)
        azimuth_deg = 360.0 * 10.0 * (55_296e-9 * truth.sequence[row] + 2304e-9 * truth.channel[row]) + channel.azimuth_offset_deg
        assert np.degrees(np.arctan2(x, y)) == pytest.approx(azimuth_deg, abs=1e-3)
        begin = np.array(rotate(turn, (0.0, 0.0, channel.vertical_offset_mm / 1000))) + truth.position_m[row]
        np.testing.assert_allclose(workspace.rays.origin_m[firing], begin, rtol=0.0, atol=1e-6)


@compiled_only
def test_on_the_move_each_firing_has_its_own_pose(make_lidar):
    lidar = make_lidar(mount_position_m=(0.0, 0.0, 1.0))
    _, truth = packets_with_truth(lidar, 100, 4)
    workspace = lidar.firings(100, 4, CpuRenderer())
    firing = truth.channel.astype(int) * 96 + truth.sequence - 2400
    np.testing.assert_array_equal(truth.time_ns, workspace.rays.time_ns[firing])
    away = np.linalg.norm(workspace.rays.origin_m[firing] - truth.position_m, axis=1)
    offset_m = np.abs([channel.vertical_offset_mm / 1000 for channel in lidar.setting.spec.channels])
    np.testing.assert_allclose(away, offset_m[truth.channel], atol=1e-6)
    assert np.linalg.norm(np.diff(truth.position_m, axis=0), axis=1).max() > 0.0
    np.testing.assert_allclose(np.linalg.norm(truth.orientation, axis=1), 1.0, atol=1e-6)
