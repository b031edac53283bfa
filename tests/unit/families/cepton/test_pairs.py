"""Two-return mode of a Cepton-style lidar through whole packets, and the ground truth of its returns."""

import dataclasses

import numpy as np
import pytest

from hilsim.emulator.truth import Cause, packets_with_truth
from hilsim.families.cepton.protocol.stdv import FRAME_PARITY, POINT_DTYPE, PointFlag, decode_stdv_points
from hilsim.families.cepton.setting import CeptonSetting
from hilsim.sensor.echoes import ReturnType
from hilsim.sensor.mirror import SegmentSpec
from hilsim.sensor.optics.false_alarms import FalseAlarmSpec
from hilsim.sensor.optics.weather import WeatherSpec
from hilsim.sensor.optics.window import WindowSectorSpec, WindowSpec
from hilsim.sensor.specs import BeamSpec
from tests.cepton_models import MIDDLE, STARING, mirror_spec, row_of_eight
from tests.compiled import compiled_only
from tests.renderers import CpuRenderer
from tests.unit.emulator.optical_scenes import diffuse, wall
from tests.unit.emulator.stages import returns_truth
from tests.unit.emulator.swept_scenes import firings, metres, payloads, points_of, returned, swept_lidar

SECOND, NO_RETURN, BLOCKED = PointFlag.SECOND_RETURN, PointFlag.NO_RETURN, PointFlag.BLOCKED
WIDE = BeamSpec(divergence_h_mrad=3.0, divergence_v_mrad=1.2, window_h_mm=9.5, window_v_mm=12.7)
STRONGEST, LAST, BOTH, SECOND_STRONGEST = ReturnType.STRONGEST, ReturnType.LAST, ReturnType.BOTH, ReturnType.SECOND_STRONGEST
# Three of seven sub-rays meet what is at the right, four go past it.
EDGE = (-60.0, -0.005)


def staring(objects, *, beam=WIDE, **setting):
    """A lidar of 72 lasers that all look straight ahead, its whole packets of one kind of firing."""
    spec = dataclasses.replace(mirror_spec([MIDDLE] * 72, STARING, sequence_ns=576_000), beam=beam)
    return swept_lidar(objects, spec, **{"return_mode": "dual", "sub_rays": 7} | setting)


def pairs_of(lidar, first=1):
    """``[n, 2]`` records; all firings of the packet see the same, so the first pair represents all."""
    points = points_of(lidar, first).reshape(-1, 2)
    for field in ("x", "y", "z", "reflectivity", "flags"):
        np.testing.assert_array_equal(points[field], np.broadcast_to(points[field][0], points.shape))
    return points


@pytest.mark.parametrize(
    ("far_percent", "ahead_m"),
    [(10, (10.0, 15.0)), (90, (15.0, 10.0))],  # 3 * 20 / 100 against 4 * 10 / 225, 3 * 20 / 100 against 4 * 90 / 225
)
def test_both_points_of_each_firing_are_sent_the_strongest_first(far_percent, ahead_m):
    pairs = pairs_of(staring([wall(10.0, diffuse(20), y=EDGE), wall(15.0, diffuse(far_percent))]))
    assert pairs.size == 144
    np.testing.assert_allclose(pairs["y"][0] * 0.005, ahead_m, atol=0.0026)
    np.testing.assert_array_equal(pairs["flags"][0], [0, SECOND])
    np.testing.assert_array_equal(pairs["channel"], np.repeat(np.arange(72)[:, None], 2, axis=1))


def test_the_second_point_comes_at_the_time_of_the_first():
    pairs = pairs_of(staring([wall(10.0, diffuse(20), y=EDGE), wall(15.0, diffuse(90))]))
    np.testing.assert_array_equal(pairs["step_us"], np.tile([8, 0], (72, 1)))


def test_where_there_is_no_second_echo_the_second_point_is_no_return():
    pairs = pairs_of(staring([wall(10.0, diffuse(50))]))
    assert pairs[0].tolist() == [(0, 2000, 0, 50, 8, 0, 0), (0, 0, 0, 0, 0, 0, SECOND | NO_RETURN)]


def test_where_there_is_no_echo_neither_point_is_a_return():
    pairs = pairs_of(staring([]))
    assert pairs[0].tolist() == [(0, 0, 0, 0, 8, 0, NO_RETURN), (0, 0, 0, 0, 0, 0, SECOND | NO_RETURN)]


def test_behind_a_blocked_window_both_points_say_so():
    window = WindowSpec(sectors=(WindowSectorSpec(azimuth_from_deg=0.0, azimuth_to_deg=360.0, transmission=0.0),))
    pairs = pairs_of(staring([wall(10.0, diffuse(50))], window=window))
    np.testing.assert_array_equal(pairs["flags"][0], [NO_RETURN | BLOCKED, SECOND | NO_RETURN | BLOCKED])


def test_of_three_echoes_the_strongest_and_the_last_are_sent():
    objects = [wall(5.0, diffuse(1), y=EDGE), wall(10.0, diffuse(90, transmission=0.7)), wall(30.0, diffuse(50))]
    pairs = pairs_of(staring(objects))
    np.testing.assert_allclose(pairs["y"][0] * 0.005, (10.0, 30.0), atol=0.0026)


@pytest.mark.parametrize(("mode", "ahead_m", "kind"), [("strongest", 10.0, STRONGEST), ("last", 15.0, LAST)])
def test_in_single_return_modes_one_point_a_firing_is_sent(mode, ahead_m, kind):
    lidar = staring([wall(10.0, diffuse(60), y=EDGE), wall(15.0, diffuse(10))], return_mode=mode)
    points = points_of(lidar, 1)
    np.testing.assert_allclose(points["y"] * 0.005, ahead_m, atol=0.0026)
    assert not (points["flags"] & SECOND).any()
    _, truth = packets_with_truth(lidar, 1, 1)
    np.testing.assert_array_equal(truth.return_type, [kind] * 144)


@pytest.mark.parametrize(("far_percent", "types"), [(10, (STRONGEST, LAST)), (90, (BOTH, SECOND_STRONGEST))])
def test_the_ground_truth_says_which_is_strongest_last_or_both(far_percent, types):
    objects = [wall(10.0, diffuse(20), y=EDGE, label=3), wall(15.0, diffuse(far_percent), label=4)]
    _, truth = packets_with_truth(staring(objects), 1, 1)
    assert truth.packet.size == 144
    np.testing.assert_array_equal(truth.return_type.reshape(-1, 2)[0], types)
    strongest_is_far = types[0] is BOTH
    np.testing.assert_array_equal(truth.label.reshape(-1, 2)[0], (4, 3) if strongest_is_far else (3, 4))
    np.testing.assert_array_equal(truth.echo.reshape(-1, 2)[0], (1, 0) if strongest_is_far else (0, 1))


def test_a_single_echo_is_both_and_has_one_row():
    _, truth = packets_with_truth(staring([wall(10.0, diffuse(50))]), 1, 1)
    np.testing.assert_array_equal(truth.return_type, [BOTH] * 72)
    np.testing.assert_array_equal(truth.record, np.arange(0, 144, 2))


def test_returns_that_a_packet_cannot_represent_have_no_row():
    spec = mirror_spec([SegmentSpec(image_x=1.0, image_z=0.0), MIDDLE], STARING)
    lidar = swept_lidar([wall(170.0, diffuse(60), y=(-900.0, 900.0))], spec)
    points = points_of(lidar)
    np.testing.assert_array_equal(returned(points), np.tile([False, True], 72))
    for truth in (packets_with_truth(lidar, 0, 1)[1], returns_truth(lidar, 0, 1, CpuRenderer())):
        np.testing.assert_array_equal(truth.record, np.arange(1, 144, 2))


@compiled_only
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("mode", ["strongest", "last", "dual"])
def test_rows_are_the_packets_returns_in_the_order_of_their_points(mode, version):
    objects = [
        wall(25.0, diffuse(60), label=3),
        wall(9.0, diffuse(40), y=(0.5, 8.0), label=4),
        wall(6.0, diffuse(30, porosity=0.6), y=(-3.0, 0.0), label=5),
    ]
    spec = dataclasses.replace(mirror_spec(row_of_eight(), range_noise_m=0.005, drop_out_ratio=0.05), beam=WIDE)
    optics = {"weather": WeatherSpec(fog_visibility_m=200.0), "false_alarms": FalseAlarmSpec(rate_per_firing=0.05)}
    lidar = swept_lidar(objects, spec, return_mode=mode, sub_rays=7, cepton=CeptonSetting(header_version=version), **optics)
    first, count = 3, 30
    batch, truth = packets_with_truth(lidar, first, count)
    np.testing.assert_array_equal(batch.payload, lidar.data_packets(first, count).payload)
    points = np.stack([decode_stdv_points(payload) for payload in payloads(batch)])
    packet, record = np.nonzero(returned(points))
    said = points[packet, record]
    assert packet.size > 1000
    np.testing.assert_array_equal(truth.packet, packet + first)
    np.testing.assert_array_equal(truth.block, 0)
    np.testing.assert_array_equal(truth.record, record)
    np.testing.assert_array_equal(truth.channel, said["channel"])
    np.testing.assert_array_equal(truth.reflectivity, said["reflectivity"])
    np.testing.assert_allclose(np.linalg.norm(metres(said), axis=1), truth.distance * 0.001, atol=0.0044)  # half a count on each axis
    channel, device_ns = firings(lidar, first, count)
    of_point = packet * points.shape[1] + record
    np.testing.assert_array_equal(truth.channel, channel[of_point])
    np.testing.assert_array_equal(truth.time_ns, device_ns[of_point])
    np.testing.assert_array_equal(truth.sequence, device_ns[of_point] // 64_000)
    assert Cause.SURFACE in truth.cause
    assert len(set(truth.cause.tolist())) > 1
    second = truth.record % 2 == 1
    if mode == "dual":
        assert set(truth.return_type[~second].tolist()) == {STRONGEST, BOTH}
        assert set(truth.return_type[second].tolist()) == {LAST, SECOND_STRONGEST}
    assert truth.distance.max() > 24_000
    stages = returns_truth(lidar, first, count, CpuRenderer())
    assert all(np.array_equal(one, other, equal_nan=one.dtype.kind == "f") for one, other in zip(truth, stages, strict=True))


def test_a_pair_keeps_its_frame_parity_together():
    points = points_of(staring([wall(10.0, diffuse(50))], beam=BeamSpec()), 1)
    assert points.dtype == POINT_DTYPE
    parity = (points["flags"] & FRAME_PARITY).reshape(-1, 2)
    np.testing.assert_array_equal(parity[:, 0], parity[:, 1])
