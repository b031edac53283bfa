"""Echoes of one firing: grouping, detection, choice and the byte, on the worked cases of the range equation with exact shares."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.sensor.echoes import (
    ECHO,
    ECHO_COLUMNS,
    ECHO_ENERGY,
    ECHO_RANGE,
    ECHO_RETRO,
    ENERGY,
    RANGE,
    RAY,
    RETRO,
    EchoChoice,
    allocate_hits,
    chosen_echo,
    detection_probability,
    group_echoes,
    is_detected,
)
from hilsim.sensor.response import build_response, noise_sd_m, reflectivity_byte
from hilsim.world.scene.materials import Material
from tests.compiled import compiled_only

THRESHOLD = 5.0e-5
MERGE_M = 1.15
MODES = {"strongest": [EchoChoice.STRONGEST], "last": [EchoChoice.LAST], "dual": [EchoChoice.LAST, EchoChoice.STRONGEST_BESIDE_LAST]}


def energy_of(share, reflectivity, range_m, cosine=1.0, transmission=1.0):
    return share * reflectivity * cosine * transmission / range_m**2


class Firing:
    """Hits of one firing: (range, energy, retro)."""

    def __init__(self, *met):
        self.hits = allocate_hits(1, max(len(met), 1))
        for at, (range_m, energy, *retro) in enumerate(met):
            self.hits.value[0, at, RANGE], self.hits.value[0, at, ENERGY] = range_m, energy
            self.hits.value[0, at, RETRO] = bool(retro)
            self.hits.what[0, at, RAY] = at
        self.hits.hit_count[0] = len(met)
        self.echoes = np.zeros((max(len(met), 1), ECHO_COLUMNS))
        self.found = group_echoes(self.hits.hit_count[0], self.hits.value, self.hits.what, 0, MERGE_M, self.echoes)

    def detected(self):
        return np.array([echo for echo in range(self.found) if self.echoes[echo, ECHO_ENERGY] >= THRESHOLD], np.int64)

    def reported(self, mode):
        """(range in m, byte) of each return."""
        kept = self.detected()
        found = []
        for choice in MODES[mode]:
            echo = chosen_echo(self.echoes, kept, kept.size, choice)
            if echo < 0:
                found.append(None)
                continue
            range_m, energy = self.echoes[echo, ECHO_RANGE], self.echoes[echo, ECHO_ENERGY]
            found.append((pytest.approx(range_m, abs=1e-5), reflectivity_byte(energy, range_m, self.echoes[echo, ECHO_RETRO] > 0.5, 100)))
        return found


def expect(firing, *, strongest, last, dual):
    assert firing.reported("strongest") == [strongest]
    assert firing.reported("last") == [last]
    assert firing.reported("dual") == list(dual)


def test_1_a_wall_at_45_degrees():
    energy = energy_of(1.0, 0.8, 20.0, cosine=np.sqrt(0.5))
    assert energy == pytest.approx(1.414214e-3, rel=1e-6)
    expect(Firing((20.0, energy)), strongest=(20.0, 57), last=(20.0, 57), dual=[(20.0, 57), (20.0, 57)])
    vlp16 = parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / "vlp16.toml"), "vlp16")
    assert 1000 * noise_sd_m(build_response(vlp16, seed=1, stream=0), energy, 20.0) == pytest.approx(5.42, abs=0.005)


def test_2a_an_edge_that_covers_30_percent_of_the_footprint():
    near, far = energy_of(0.3, 0.5, 10.0), energy_of(0.7, 0.5, 20.0)
    assert (near, far) == (pytest.approx(1.5e-3), pytest.approx(8.75e-4))
    expect(Firing((20.0, far), (10.0, near)), strongest=(10.0, 15), last=(20.0, 35), dual=[(20.0, 35), (10.0, 15)])


def test_2b_two_surfaces_nearer_than_the_merge_distance_are_one_echo():
    firing = Firing((10.0, energy_of(0.3, 0.5, 10.0)), (11.0, energy_of(0.7, 0.5, 11.0)))
    assert firing.found == 1
    assert firing.echoes[0, ECHO_ENERGY] == pytest.approx(4.392562e-3, rel=1e-6)
    expect(firing, strongest=(10.65851, 50), last=(10.65851, 50), dual=[(10.65851, 50), (10.65851, 50)])


def test_2c_the_same_edge_seen_by_seven_rays():
    met = [(10.0, energy_of(1 / 7, 0.5, 10.0))] * 2 + [(20.0, energy_of(1 / 7, 0.5, 20.0))] * 5
    firing = Firing(*met)
    assert firing.echoes[: firing.found, ECHO_ENERGY].tolist() == [pytest.approx(1.428571e-3, rel=1e-6), pytest.approx(8.928571e-4, rel=1e-6)]
    expect(firing, strongest=(10.0, 14), last=(20.0, 36), dual=[(20.0, 36), (10.0, 14)])


def fences(*, with_wall):
    energies = [energy_of(0.4, 0.3, 8.0), energy_of(0.24, 0.3, 12.0), energy_of(0.36, 0.5, 30.0)]
    assert energies == [pytest.approx(1.875e-3), pytest.approx(5.0e-4), pytest.approx(2.0e-4)]
    return Firing(*list(zip((8.0, 12.0, 30.0), energies, strict=True))[: 3 if with_wall else 2])


def test_3_of_two_fences_before_a_wall_the_middle_one_vanishes():
    expect(fences(with_wall=True), strongest=(8.0, 12), last=(30.0, 18), dual=[(30.0, 18), (8.0, 12)])
    assert fences(with_wall=False).reported("last") == [(12.0, 7)]


def test_4_glass_before_a_wall():
    glass = energy_of(1.0, 0.02, 10.0, cosine=np.cos(np.radians(30)))
    wall = energy_of(1.0, 0.5, 15.0, transmission=0.85**2)
    assert (glass, wall) == (pytest.approx(1.732051e-4, rel=1e-6), pytest.approx(1.605556e-3, rel=1e-6))
    expect(Firing((10.0, glass), (15.0, wall)), strongest=(15.0, 36), last=(15.0, 36), dual=[(15.0, 36), (10.0, 2)])


@pytest.mark.parametrize(("candela", "byte"), [(250, 250), (70, 221), (500, 255)])
@pytest.mark.parametrize("range_m", [10.0, 50.0])
def test_5_a_retro_reflecting_sign_has_the_same_byte_at_any_range(candela, byte, range_m):
    energy = energy_of(1.0, np.pi * candela, range_m)
    expect(Firing((range_m, energy, True)), strongest=(range_m, byte), last=(range_m, byte), dual=[(range_m, byte)] * 2)


def test_5_the_rigs_sign_material_is_such_a_sign():
    assert Material(name="sign", reflectivity=250).equivalent_reflectivity == pytest.approx(np.pi * 250, rel=0.02)


@pytest.mark.parametrize(("reflectivity", "probability"), [(0.5, 0.015567), (1.0, 0.754671)])
def test_6_fog_of_100_m_hides_a_wall_at_40_m_or_does_not(reflectivity, probability):
    transmission = np.exp(-2 * np.log(20) / 100.0 * 40.0)
    assert transmission == pytest.approx(0.09102821, rel=1e-6)
    energy = energy_of(1.0, reflectivity, 40.0, transmission=transmission)
    assert detection_probability(energy, THRESHOLD, 5.0) == pytest.approx(probability, abs=1e-6)
    lost = reflectivity == 0.5
    assert Firing((40.0, energy)).reported("strongest") == [None if lost else (40.0, 9)]


@pytest.mark.parametrize(("extinction", "byte"), [(2.770706e-3, 38), (6.898648e-2, None)])
def test_7_rain_of_25_mm_an_hour_by_two_models(extinction, byte):
    energy = energy_of(1.0, 0.5, 50.0, transmission=np.exp(-2 * extinction * 50.0))
    assert Firing((50.0, energy)).reported("strongest") == [None if byte is None else (50.0, byte)]
    if byte is not None:
        assert 1.0 - detection_probability(energy, THRESHOLD, 5.0) < 1e-15


@compiled_only
@pytest.mark.parametrize(("ratio", "expected"), [(0.8, 15_866), (1.0, 50_000), (1.2, 84_134)])
def test_8_faint_echoes_drop_out_by_their_energy(ratio, expected):
    detections = sum(is_detected(ratio * THRESHOLD, THRESHOLD, 5.0, np.uint64(4), 3, index) for index in range(100_000))
    share = expected / 100_000
    assert abs(detections - expected) <= 5 * np.sqrt(100_000 * share * (1 - share))


def test_without_a_noise_ratio_the_threshold_is_hard():
    assert [detection_probability(energy, THRESHOLD, 0.0) for energy in (0.999 * THRESHOLD, THRESHOLD)] == [0.0, 1.0]
    assert detection_probability(1e-12, 0.0, 5.0) == 1.0  # no threshold: everything is detected


def test_of_equals_the_nearer_is_the_strongest():
    assert Firing((30.0, 1e-3), (10.0, 1e-3)).reported("strongest")[0][0] == 10.0


def test_surfaces_that_send_nothing_back_make_no_echo():
    firing = Firing((10.0, 0.0), (20.0, 1e-3))
    assert firing.found == 1
    assert firing.hits.what[0, :, ECHO].tolist() == [-1, 0]


@given(st.lists(st.tuples(st.floats(0.5, 100.0), st.floats(1e-6, 1e-1)), min_size=1, max_size=19), st.randoms())
def test_the_order_of_sub_rays_changes_nothing_and_no_energy_is_lost(met, random):
    straight = Firing(*met)
    shuffled = list(met)
    random.shuffle(shuffled)
    other = Firing(*shuffled)
    assert straight.found == other.found
    np.testing.assert_allclose(straight.echoes[: straight.found, :2], other.echoes[: straight.found, :2], rtol=1e-9)
    assert straight.echoes[: straight.found, ECHO_ENERGY].sum() == pytest.approx(sum(energy for _, energy in met))


@given(st.lists(st.tuples(st.floats(0.5, 100.0), st.floats(1e-4, 1e-1)), min_size=2, max_size=19))
def test_no_hit_begins_an_echo_nearer_to_the_one_before_than_the_merge_distance(met):
    firing = Firing(*met)
    value, what = firing.hits.value[0], firing.hits.what[0]
    for at in range(1, len(met)):
        if what[at, ECHO] != what[at - 1, ECHO]:
            before = value[:at][what[:at, ECHO] == what[at - 1, ECHO]]
            centre = np.average(before[:, RANGE], weights=before[:, ENERGY])
            assert value[at, RANGE] - centre >= MERGE_M - 1e-9


@given(st.floats(1.0, 100.0), st.floats(0.05, 1.0), st.floats(0.1, 1.0))
def test_the_byte_takes_the_range_out_and_leaves_the_angle_in(range_m, reflectivity, cosine):
    byte = reflectivity_byte(energy_of(1.0, reflectivity, range_m, cosine), range_m, False, 100)  # noqa: FBT003 - a kernel's positional scalar
    assert abs(byte - 100 * reflectivity * cosine) <= 0.5 + 1e-6
