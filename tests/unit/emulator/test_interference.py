"""Pulses of a rig's other sensors before hand-placed walls: ranges by the difference of firing times, and only where both beams meet."""

import dataclasses
import math

import numpy as np
import pytest

from hilsim.emulator.truth import Cause, packets_with_truth
from hilsim.sensor.specs import ClockSetting
from hilsim.sensor.unit.encoder import RateJitterSpec
from tests.cepton_models import STARING, mirror_spec, row_of_eight
from tests.compiled import compiled_only
from tests.lidars import lidar_setting
from tests.unit.emulator.optical_scenes import Return, ahead, diffuse, level, still_lidar, wall, workspace_of
from tests.unit.emulator.swept_scenes import swept_lidar

LIGHT_M_PER_US = 299.792458
APART_M, AIM_DEG = 0.5, math.degrees(math.atan(0.5 / 20.0))
"""Place of another sensor to the left, and the azimuth at which it looks where this one does: straight ahead on the wall."""
WALL = wall(20.0, diffuse(50))


def reached_by(lidar, *others):
    return dataclasses.replace(lidar, others=others)


def beside(spec, **setup):
    """Another sensor half a metre to the left, whose head starts towards the place that this one's starts towards."""
    return lidar_setting(spec, stream=1, **{"mount_position_m": (0.0, APART_M, 0.0), "phase_deg": AIM_DEG} | setup)


@pytest.mark.parametrize(("own_us", "others_us"), [(0.0, 0.1), (0.0, 0.6), (0.05, 0.0)])
def test_another_sensors_light_off_the_same_place_is_an_echo_at_the_range_that_the_difference_of_times_gives(vlp16, own_us, others_us):
    spec = level(vlp16)
    lidar = still_lidar([WALL], spec, interference=True, return_mode="dual", start_delay_us=own_us)
    last, strongest = sorted(workspace_of(reached_by(lidar, beside(spec, start_delay_us=others_us))).returns.range_m[:, 0, 0])
    false_m = (LIGHT_M_PER_US * (others_us - own_us) + 20.0 + math.hypot(20.0, APART_M)) / 2.0
    np.testing.assert_allclose(sorted([last, strongest]), sorted([20.0, false_m]), atol=1e-4)


def test_its_reflectivity_is_that_of_the_surface_at_the_wrong_range(vlp16):
    spec = level(vlp16)
    lidar = still_lidar([wall(20.0, diffuse(20))], spec, interference=True, return_mode="dual")
    far, near = ahead(reached_by(lidar, beside(spec, start_delay_us=0.04)))
    # (11.9917 + 20 + 20.0062) / 2 = 25.9990 m, 12999.5 codes; 20 % times (25.999 / 20)^2, less 0.06 % because the other spot is larger.
    assert (near, far) == (Return(20.0, 20), Return(25.998, 34))


def test_a_nearer_sensors_light_is_denser_and_its_echo_stronger(vlp16):
    spec = level(vlp16)
    lidar = still_lidar([wall(20.0, diffuse(20))], spec, interference=True, return_mode="last", unit="ideal")
    other = lidar_setting(spec, stream=1, mount_position_m=(10.0, 0.0, 0.0), start_delay_us=0.12)
    [found] = ahead(reached_by(lidar, other))
    range_m = (LIGHT_M_PER_US * 0.12 + 10.0 + 20.0) / 2.0
    ratio = ((9.5 + 3.0 * 20.0) * (12.7 + 1.2 * 20.0)) / ((9.5 + 3.0 * 10.0) * (12.7 + 1.2 * 10.0))
    assert found == Return(round(range_m / 0.002) * 0.002, round(min(20.0 * ratio * (range_m / 20.0) ** 2, 100.0)))


def test_light_that_falls_elsewhere_does_not_reach_the_receiver(vlp16):
    spec = level(vlp16)
    lidar = still_lidar([WALL], spec, interference=True, return_mode="dual")
    for aim_deg in (0.0, AIM_DEG + 0.2):
        workspace = workspace_of(reached_by(lidar, beside(spec, start_delay_us=0.1, phase_deg=aim_deg)))
        np.testing.assert_allclose(workspace.returns.range_m, 20.0, atol=1e-3)


def test_light_that_comes_before_or_after_the_receiver_listens_is_not_heard(vlp16):
    spec = level(vlp16)
    lidar = still_lidar([WALL], spec, interference=True, return_mode="dual", start_delay_us=0.2)
    for others_us in (0.0, 1.5):
        workspace = workspace_of(reached_by(lidar, beside(spec, start_delay_us=others_us)))
        np.testing.assert_allclose(workspace.returns.range_m, 20.0, atol=1e-3)


def test_two_sensors_that_look_into_each_other_see_the_others_window_light_up(vlp16):
    spec = level(vlp16)
    lidar = still_lidar([], spec, interference=True)
    facing = lidar_setting(spec, stream=1, mount_position_m=(2.0, 0.0, 0.0), phase_deg=180.0, start_delay_us=0.3)
    assert ahead(reached_by(lidar, facing)) == [Return(round((LIGHT_M_PER_US * 0.3 + 2.0) / 2.0 / 0.002) * 0.002, 100)]
    hidden = dataclasses.replace(lidar, world=still_lidar([wall(1.0, diffuse(50))], spec).world)
    assert ahead(reached_by(hidden, facing)) == [Return(1.0, 50)]


def test_an_oscillator_that_is_faster_draws_the_false_range_nearer_firing_by_firing(vlp16):
    spec = level(vlp16)
    lidar = still_lidar([WALL], spec, interference=True, return_mode="last")
    other = lidar_setting(spec, stream=1, start_delay_us=0.5, clock=ClockSetting(oscillator_ppm=0.1))
    first = 18_084  # about a second later, when both heads look ahead again
    returns = workspace_of(reached_by(lidar, other), sequences=2, first=first).returns
    own_m = workspace_of(still_lidar([WALL], spec), sequences=2, first=first).returns.range_m[0]
    fired_us = (np.arange(first, first + 2)[:, np.newaxis] * 55_296 + np.arange(16) * 2304) / 1000.0
    false_m = own_m + LIGHT_M_PER_US * (0.5 - 1e-7 * fired_us) / 2.0
    np.testing.assert_allclose(returns.range_m[0], false_m, atol=2e-4)  # the other head is 1e-6 turns ahead


def test_a_sensor_behind_a_mirror_reaches_one_behind_a_mirror():
    spec = mirror_spec(row_of_eight(), STARING)
    lidar = swept_lidar([wall(10.0, diffuse(60))], spec, interference=True, return_mode="last")
    other = lidar_setting(spec, stream=1, start_delay_us=0.1)
    own, reached = workspace_of(lidar).returns.range_m, workspace_of(reached_by(lidar, other)).returns.range_m
    np.testing.assert_allclose(reached, own + LIGHT_M_PER_US * 0.1 / 2.0, atol=1e-4)


def test_a_sensor_without_interference_ignores_the_others(vlp16):
    spec = level(vlp16)
    lidar = reached_by(still_lidar([WALL], spec), beside(spec, start_delay_us=0.1))
    assert lidar.plan.rare.interference.sources.size == 0
    assert ahead(lidar) == [Return(20.0, 50)]


@compiled_only
def test_the_ground_truth_names_the_light_of_another_sensor(vlp16):
    spec = level(vlp16)
    lidar = still_lidar([WALL], spec, interference=True, return_mode="last")
    _, truth = packets_with_truth(reached_by(lidar, lidar_setting(spec, stream=1, start_delay_us=0.1)), 0, 1)
    assert (truth.cause == Cause.INTERFERENCE).all()
    assert (truth.label == -1).all()
    assert (truth.object_id == -1).all()
    assert (truth.range_m > 34.0).all()
    assert np.isnan(truth.incidence_deg).all()


@compiled_only
def test_a_packet_with_interference_does_not_depend_on_those_before(vlp16):
    spec = dataclasses.replace(vlp16, rate_jitter=RateJitterSpec())  # both heads keep together
    other = lidar_setting(spec, stream=1, is_exact=False, start_delay_us=0.3)
    lidar = reached_by(still_lidar([WALL], spec, interference=True, is_exact=False, return_mode="last"), other)
    together, alone = lidar.data_packets(5, 3).payload, lidar.data_packets(7, 1).payload
    np.testing.assert_array_equal(together[2], alone[0])
    assert (together != dataclasses.replace(lidar, others=()).data_packets(5, 3).payload).any()
