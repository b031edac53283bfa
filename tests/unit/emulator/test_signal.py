"""The received signal of a whole lidar: in its packets, in its ground truth, and whatever is rendered at a time."""

import dataclasses
import math

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.emulator.truth import packets_with_truth
from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE, decode_data_packets
from hilsim.families.velodyne.stream import stacked_packets
from hilsim.sensor.signal.spec import SignalSpec
from hilsim.sensor.unit.spec import LaserUnitSpec, UnitSpec
from hilsim.sensor.unit.spread import UnitSpread
from hilsim.sensor.unit.warm_up import WarmUpSpec
from tests.compiled import compiled_only
from tests.received_signal import measure_signal
from tests.unit.emulator.optical_scenes import CODE_M, diffuse, level, still_lidar, wall, workspace_of

GPS = "vlp16_strongest_gps.pcap"


@pytest.fixture
def unit(vlp16):
    """A VLP-16 with the signal of its profile."""
    noises = {"range_noise_m": vlp16.range_noise_m, "detector": {"range_noise_weak_m": vlp16.detector.range_noise_weak_m}}
    return lambda **changes: level(vlp16, **noises, signal=dataclasses.replace(vlp16.signal, **changes))


def real_lidar(objects, spec, **setting):
    return still_lidar(objects, spec, is_exact=False, **({"unit": "drawn"} | setting))


def corner():
    """Walls around, two of them apart, at which beams split."""
    return [wall(4.0, diffuse(60), y=(-60.0, 0.0)), wall(9.0, diffuse(35)), wall(-6.0, diffuse(80))]


def codes_of(lidar, packets):
    blocks = decode_data_packets(lidar.data_packets(0, packets).payload)["blocks"]["channels"]
    return blocks["distance"].reshape(-1, 16).astype(int), blocks["reflectivity"].reshape(-1, 16).astype(int)


def test_what_is_rendered_at_a_time_changes_nothing(unit):
    lidar = real_lidar(corner(), unit(), sub_rays=1)
    whole = workspace_of(lidar, 6).returns
    for first, sequences in ((0, 2), (2, 1), (3, 3)):
        part = workspace_of(lidar, sequences, first).returns
        for name in ("distance", "reflectivity", "echo", "correction"):
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[:, first : first + sequences])


@compiled_only
def test_ground_truth_adds_up_to_the_reported_range(unit):
    spec = unit()
    spec = dataclasses.replace(spec, detector=dataclasses.replace(spec.detector, laser_bias_m=0.01))
    _, truth = packets_with_truth(real_lidar(corner(), spec, return_mode="dual"), 0, 60)
    total_m = truth.range_m.astype(np.float64) + truth.noise_m + truth.bias_m + truth.correction_m
    np.testing.assert_allclose(total_m, truth.distance * CODE_M, rtol=0, atol=1e-9)
    assert len(np.unique(truth.bias_m)) == 16
    assert set(np.rint(truth.correction_m / CODE_M).astype(int)) == set(range(-3, 4))
    grid = (truth.distance - np.rint(truth.correction_m / CODE_M)) % 2
    assert not grid.any()
    assert 1.0 < truth.byte_noise[truth.reflectivity > 40].std() < 6.0


@compiled_only
def test_a_cold_sensors_ranges_are_wrong_by_what_the_ground_truth_names_and_less_each_minute(vlp16):
    spec = dataclasses.replace(level(vlp16), units=UnitSpread())
    lidar = real_lidar(corner(), spec, unit="drawn", return_mode="dual", warm_up=WarmUpSpec(range_m=0.2, time_s=60.0))
    at_start_m = lidar.plan.warm_up.range_m
    assert abs(at_start_m) > 0.02
    for first, share in ((0, 1.0), (round(60.0 / (12 * 55_296e-9)), math.exp(-1.0))):
        _, truth = packets_with_truth(lidar, first, 30)
        np.testing.assert_allclose(truth.bias_m, share * at_start_m, rtol=0.002)
        assert (np.abs(truth.noise_m) <= CODE_M / 2 + 1e-5).all()
        assert (truth.echoes > 1).any()


@compiled_only
def test_empty_firings_of_a_unit_have_the_bytes_of_its_file(unit):
    first = LaserUnitSpec(baseline=9, baseline_ratio=0.5, empty_bytes=((5, 0.5),))
    learned = UnitSpec(laser=(first, *[LaserUnitSpec(baseline=9)] * 15))
    lidar = real_lidar([], unit(), unit="drawn")
    lidar = dataclasses.replace(lidar, setting=dataclasses.replace(lidar.setting, unit=learned))
    _, byte = codes_of(lidar, 80)
    assert set(byte[:, 0]) == {5, 9}
    np.testing.assert_allclose((byte[:, 0] == 5).mean(), 0.5, atol=0.07)
    assert not (byte[:, 1:] == 5).any()


def test_only_dual_mode_dims_the_echoes_of_a_split_beam(unit):
    ratios = [real_lidar([], unit(split_light_ratio=0.3), return_mode=mode).plan.signal.split_light_ratio for mode in ("strongest", "last", "dual")]
    assert ratios == [1.0, 1.0, 0.3]


@compiled_only
def test_an_empty_signal_makes_an_exact_sensor(vlp16):
    spec = dataclasses.replace(level(vlp16), signal=SignalSpec())
    _, truth = packets_with_truth(real_lidar([wall(4.0, diffuse(60))], spec, unit="ideal"), 0, 30)
    assert truth.distance.size > 0
    assert not truth.byte_noise.any()
    assert not truth.correction_m.any()
    assert (np.abs(truth.noise_m) <= CODE_M / 2 + 1e-5).all()


@compiled_only
def test_dual_mode_has_pairs_of_which_one_side_is_empty(unit):
    spec = unit(drop_out_ratio=0.0)
    spec = dataclasses.replace(spec, units=dataclasses.replace(spec.units, one_sided_ratio=(0.1, 0.1)))
    lidar = real_lidar([wall(4.0, diffuse(60))], spec, sub_rays=1, return_mode="dual")
    distance = decode_data_packets(lidar.data_packets(0, 60).payload)["blocks"]["channels"]["distance"]
    last, strongest = distance[:, 0::2].reshape(-1), distance[:, 1::2].reshape(-1)
    assert np.mean(strongest[last > 0] == 0) == pytest.approx(0.1, abs=0.02)
    assert np.mean(last[strongest > 0] == 0) == pytest.approx(0.011, abs=0.007)


@compiled_only
def test_parity_and_bytes_are_within_the_range_of_real_units(unit, capture):
    """The constants were fitted on two other units; the range between those and this one is the one that units have."""
    payloads = [datagram.payload for datagram in CaptureFile(capture(GPS)).datagrams() if len(datagram.payload) == DATA_PACKET_SIZE]
    blocks = stacked_packets(payloads)["blocks"]["channels"]
    real = measure_signal(blocks["distance"].reshape(-1, 16).astype(int), blocks["reflectivity"].reshape(-1, 16).astype(int), CODE_M)
    strips = zip(np.arange(10, 96, 5), np.arange(-1.8, 1.8, 0.2), strict=True)
    grey = [wall(3.0, diffuse(int(percent)), y=(left, left + 0.2)) for percent, left in strips]
    emulated = measure_signal(*codes_of(real_lidar(grey, unit(), sub_rays=1), 400), CODE_M)
    assert emulated.odd_step_of_equal <= 0.22
    assert emulated.odd_step == pytest.approx(real.odd_step, abs=0.1)
    assert emulated.odd_code == pytest.approx(0.5, abs=0.05)
    assert emulated.same_byte == pytest.approx(real.same_byte, abs=0.1)
    np.testing.assert_allclose(emulated.byte_noise, real.byte_noise, atol=1.0)
    np.testing.assert_allclose(emulated.range_noise_counts, real.range_noise_counts, atol=0.7)
