"""What the profiles of an HDL-32E, a VLP-32C and a VLS-128 say of the received signal is found again in what they send."""

import dataclasses
from functools import cache

import numpy as np
import pytest

from hilsim.capture.pcap import CaptureFile
from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.families.velodyne.protocol.data import DATA_PACKET_DTYPE, DATA_PACKET_SIZE
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.families.velodyne.stream import stacked_packets
from hilsim.sensor.signal.signal import drop_out_ratios
from tests.compiled import compiled_only
from tests.received_losses import drop_outs, empty_bytes, find_edges
from tests.received_signal import measure_signal
from tests.unit.emulator.optical_scenes import diffuse, level, still_lidar, wall

CAPTURES = {"hdl32e": "hdl32e_strongest.pcap", "vlp32c": "vlp32c_strongest_fov.pcap", "vls128": "vls128_strongest.pcap"}
MODELS = list(CAPTURES)
PACKETS = {"hdl32e": 100, "vlp32c": 100, "vls128": 100}
NEAR_LASER = 36
"""Laser of the captured VLS-128 that loses every tenth firing on a surface at its least range, 1.2 m."""


@cache
def profile(name):
    return parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / f"{name}.toml"), name)


def levelled(name, **signal):
    """The profile with all lasers level, which turn evenly."""
    spec = profile(name)
    noises = {"range_noise_m": spec.range_noise_m, "detector": {"range_noise_weak_m": spec.detector.range_noise_weak_m}}
    return level(spec, **noises, signal=dataclasses.replace(spec.signal, **signal))


def columns(payloads, lasers):
    """Distance codes and bytes of consecutive firing sequences."""
    records = payloads["blocks"]["channels"]
    return records["distance"].reshape(-1, lasers).astype(np.int64), records["reflectivity"].reshape(-1, lasers).astype(np.int64)


def sent(name, objects, packets, **changes):
    """What a lidar of the profile sends among these objects, and its unit of distance."""
    spec = levelled(name, **changes.pop("signal", {}))
    lidar = still_lidar(objects, spec, is_exact=False, **({"unit": "drawn", "sub_rays": 1} | changes))
    return (*columns(np.frombuffer(lidar.data_packets(0, packets).payload, DATA_PACKET_DTYPE), spec.laser_count), spec.range_unit_mm / 1000.0)


@cache
def second_half(path, lasers):
    """The half of a capture on which nothing was fitted."""
    payloads = [datagram.payload for datagram in CaptureFile(path).datagrams() if len(datagram.payload) == DATA_PACKET_SIZE]
    return columns(stacked_packets(payloads[len(payloads) // 2 :]), lasers)


EXACT_BYTES = {"byte_noise": 0.0, "byte_noise_ratio": 0.0, "byte_step": 0.0, "byte_step_growth": 0.0}


def expected_and_lost(name, distance, byte):
    """Firings that the profile would lose at the even places of a stream, and those that are lost."""
    found = drop_outs(distance, byte, profile(name).range_unit_mm / 1000.0, tuple(np.arange(-0.125, 100.25, 0.25)))
    share = np.interp(np.arange(found.places.size) / 4.0, np.arange(256), drop_out_ratios(profile(name).signal))
    return float((share * found.places).sum()), int(found.lost.sum())


@compiled_only
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("percent", [1, 6, 60])
def test_even_surfaces_lose_as_many_firings_as_the_profile_says_of_their_byte(name, percent):
    walls = [wall(range_m, diffuse(percent)) for range_m in (4.0, -4.0)]
    expected, lost = expected_and_lost(name, *sent(name, walls, 4 * PACKETS[name], signal=EXACT_BYTES)[:2])
    assert expected > 3.0
    assert abs(lost - expected) < 4.0 * np.sqrt(expected)


@pytest.mark.parametrize("name", MODELS)
def test_the_other_half_of_the_capture_loses_as_many_within_a_factor_of_two_and_a_half(name, capture):
    distance, byte = second_half(capture(CAPTURES[name]), profile(name).laser_count)
    if name == "vls128":
        distance = np.delete(distance, NEAR_LASER, axis=1)
        byte = np.delete(byte, NEAR_LASER, axis=1)
    expected, lost = expected_and_lost(name, distance, byte)
    assert 0.4 < lost / expected < 2.5


def comb():
    """Sixteen posts before walls, so that each turn has as many edges of either side."""
    posts = [wall(3.0, diffuse(40), y=(left, left + 0.35)) for left in np.arange(-3.0, 3.0, 0.75)]
    return [*posts, wall(7.0, diffuse(40))]


@compiled_only
@pytest.mark.parametrize("name", MODELS)
def test_edges_lose_firings_of_split_beams_and_where_the_receiver_is_hidden(name, capture):
    lasers = profile(name).laser_count
    real = find_edges(second_half(capture(CAPTURES[name]), lasers)[0], profile(name).range_unit_mm / 1000.0)
    distance, _, unit_m = sent(name, comb(), 4 * PACKETS[name], sub_rays=7)
    emulated = find_edges(distance, unit_m)
    leaving, approach = ((emulated.empty[emulated.is_approach == side] > 0).mean() for side in (False, True))
    assert leaving == pytest.approx((real.empty[~real.is_approach] > 0).mean(), abs=0.1)
    if profile(name).beam.receiver_offset_mm == 0.0:
        assert approach == pytest.approx(leaving, abs=0.05)
    else:
        assert approach > leaving + 0.2
    pencil = find_edges(sent(name, comb(), PACKETS[name])[0], unit_m)
    assert (pencil.empty > 0).mean() < 0.02


@pytest.mark.parametrize(("name", "is_seen"), [("hdl32e", False), ("vlp32c", True), ("vls128", True)])
def test_captures_show_a_receiver_beside_the_beam_where_the_profile_has_one(name, is_seen, capture):
    edges = find_edges(second_half(capture(CAPTURES[name]), profile(name).laser_count)[0], profile(name).range_unit_mm / 1000.0)
    flat, deep = (edges.is_approach & (edges.parallax_per_m >= low) & (edges.parallax_per_m < high) for low, high in ((0.0, 0.05), (0.1, 0.3)))
    assert bool(edges.empty[deep].mean() > edges.empty[flat].mean() + 0.5) is is_seen
    assert (profile(name).beam.receiver_offset_mm > 0.0) is is_seen


@compiled_only
@pytest.mark.parametrize("name", MODELS)
def test_empty_firings_have_other_bytes_between_returns_and_away_from_them(name):
    spec = profile(name)
    distance, byte, _ = sent(name, [wall(4.0, diffuse(40))], 4 * PACKETS[name], signal={"drop_out_ratio": 0.05}, unit="ideal")
    found = empty_bytes(distance, byte, np.array(spec.no_return_reflectivities, np.int64))
    assert found.between_other / found.between == pytest.approx(spec.signal.lost_byte_ratio, abs=0.03)
    assert found.away_other / found.away == pytest.approx(spec.signal.empty_byte_ratio, abs=0.01)


def strips():
    """Grey strips with bytes of 10 to 95."""
    return [
        wall(3.0, diffuse(int(percent)), y=(left, left + 0.2)) for percent, left in zip(np.arange(10, 96, 5), np.arange(-1.8, 1.8, 0.2), strict=True)
    ]


@compiled_only
@pytest.mark.parametrize("name", MODELS)
def test_bytes_and_ranges_are_as_noisy_as_in_the_other_half_of_the_capture(name, capture):
    """Ranges of real surfaces are rougher; bytes of the VLP-32C's at 70 and more too, which do not change from turn to turn."""
    real = measure_signal(*second_half(capture(CAPTURES[name]), profile(name).laser_count), profile(name).range_unit_mm / 1000.0)
    emulated = measure_signal(*sent(name, strips(), 4 * PACKETS[name]))
    assert emulated.odd_step == pytest.approx(real.odd_step, abs=0.02)
    assert emulated.odd_step_of_equal == pytest.approx(real.odd_step_of_equal, abs=0.03)
    assert emulated.same_byte == pytest.approx(real.same_byte, abs=0.1)
    compared = slice(0, 3) if name == "vlp32c" else slice(None)
    assert (np.abs(emulated.byte_noise - real.byte_noise)[compared] < 2.5).all()
    assert (emulated.range_noise_counts <= real.range_noise_counts + 0.7).all()


def test_baselines_of_a_vls_128_are_one_less_than_a_multiple_of_four():
    assert {baseline % 4 for baseline in profile("vls128").no_return_reflectivities} == {3}


@compiled_only
@pytest.mark.parametrize("name", MODELS)
def test_two_sensors_of_a_rig_are_two_units(name):
    one, other = (still_lidar([], profile(name), is_exact=False, unit="drawn", stream=stream) for stream in (0, 1))
    biases_m = one.plan.bias_m, other.plan.bias_m
    assert (biases_m[0] != biases_m[1]).all()
    assert 0.001 < np.std(biases_m[0]) < 0.03
