"""The encoder's classes, its curve and its slow noise."""

from dataclasses import replace

import numpy as np
import pytest

from hilsim.compilation.jit import constant, kernel
from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.families.velodyne.unit import drawn_encoder
from hilsim.sensor.head import build_head, head_reading_cdeg
from hilsim.sensor.unit.draws import UnitDraws
from hilsim.sensor.unit.encoder import EncoderSpec, RateJitterSpec, build_encoder, encoder_code
from tests.compiled import compiled_only

PROFILE = parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / "vlp16.toml"), "vlp16")
SEQUENCE_NS = constant(55_296)
SHARES = (*(0.04, 0.06) * 9, 0.01, 0.09)


@kernel
def read_head(head, encoder, azimuth_cdeg):
    """Azimuths of consecutive blocks → ``int64[n]``."""
    for block in range(azimuth_cdeg.size):
        azimuth_cdeg[block] = head_reading_cdeg(head, encoder, 2 * block * SEQUENCE_NS, 2 * block)


@kernel
def read_angles(encoder, angle_cdeg, step, code):
    """Readings of angles, every ``step``-th firing sequence → ``int64[n]``."""
    for place in range(code.size):
        code[place] = encoder_code(encoder, angle_cdeg[place], step * place)


def codes_of(encoder, angle_cdeg, step=0):
    code = np.zeros(angle_cdeg.size, np.int64)
    read_angles(encoder, angle_cdeg, step, code)
    return code


def readings(spec, blocks, rate_rpm=600):
    """Azimuths of a head that turns as fast as the unit that the entry was measured on."""
    encoder = build_encoder(spec, seed=3, stream=1)
    head = build_head(rate_rpm=rate_rpm + spec.rate_offset_rpm, phase_deg=77.7, rate_jitter=RateJitterSpec(per_turn_ratio=0.001), seed=3, stream=1)
    azimuth_cdeg = np.zeros(blocks, np.int64)
    read_head(head, encoder, azimuth_cdeg)
    return azimuth_cdeg


def test_classes_have_their_shares_and_the_mean_error_is_zero():
    encoder = build_encoder(EncoderSpec(rate_rpm=600, tick_cdeg=0.0, noise_cdeg=0.0, class_shares=SHARES), seed=1, stream=0)
    angle = np.arange(0.0, 36_000.0, 0.37)
    code = codes_of(encoder, angle)
    np.testing.assert_allclose(np.bincount(code % 20, minlength=20) / code.size, SHARES, atol=1e-3)
    off = (code - angle + 18_000) % 36_000 - 18_000
    assert off.mean() == pytest.approx(0.0, abs=0.01)
    assert np.abs(off).max() < 2.0
    assert (np.diff(code) >= 0).sum() >= code.size - 2  # an angle that rises is read as one


@compiled_only
def test_azimuths_of_drawn_units_have_one_rare_or_one_frequent_class_modulo_five():
    for entry, least, most in ((PROFILE.units.encoder[1], 0.135, 0.23), (PROFILE.units.encoder[2], 0.16, 0.315)):
        share = np.bincount(readings(entry, 12_000, entry.rate_rpm) % 5) / 12_000
        assert share.min() == pytest.approx(least, abs=0.015)
        assert share.max() == pytest.approx(most, abs=0.015)


@pytest.mark.parametrize(("number", "lags"), [(1, (-0.48, 0.0, -0.02)), (2, (-0.36, -0.02, -0.02))])
def test_increments_are_correlated_as_those_of_real_units(number, lags):
    entry = PROFILE.units.encoder[number]
    step = np.diff(readings(entry, 12_000, entry.rate_rpm)) % 36_000
    off = step - step.mean()
    found = [np.mean(off[lag:] * off[:-lag]) / np.mean(off**2) for lag in (1, 2, 3)]
    np.testing.assert_allclose(found, lags, atol=0.12)


@compiled_only
@pytest.mark.parametrize("seed", range(20))
def test_increments_of_a_drawn_unit_scatter_as_those_of_a_real_one(seed):
    """Six units at 600 rpm: a standard deviation of 0.784 to 0.869; 5.9 to 9.0, 49 to 60 and 1.9 to 3.0 % of 27,000 increments are 38, 40 and 42, none is beyond."""
    entry = drawn_encoder(PROFILE.units.encoder[1], PROFILE.units, UnitDraws(seed, 0))
    step = np.diff(readings(entry, 12_000)) % 36_000
    assert 0.784 < step.std() < 0.869
    assert (np.abs(step - 40) > 2).mean() < 0.001
    assert 0.0586 < (step == 38).mean() < 0.0901
    assert 0.49 < (step == 40).mean() < 0.604
    assert 0.0189 < (step == 42).mean() < 0.03


def test_a_counting_encoder_is_exact_after_an_edge_and_waits_for_the_next_one():
    """Counts that seem to last a whole tick each: the reading goes on by the gain of the counts before, and never beyond the last hundredth."""
    exact = EncoderSpec(rate_rpm=600, tick_cdeg=5.0, noise_cdeg=0.0, counts_cdeg=(5.0, 5.0, 5.0, 5.0))
    fast = replace(exact, count_gain=2.0, count_zero_cdeg=3)
    angle, encoder = np.arange(0.0, 36_000.0, 0.25), build_encoder(exact, seed=1, stream=0)
    off = codes_of(encoder, angle) - angle
    assert np.abs((off + 18_000) % 36_000 - 18_000).max() <= 0.5
    encoder = build_encoder(fast, seed=1, stream=0)
    code = codes_of(encoder, angle)
    np.testing.assert_allclose(np.bincount((code - 3) % 5, minlength=5) / code.size, (0.1, 0.1, 0.1, 0.1, 0.6), atol=1e-3)


@compiled_only
def test_a_counting_encoder_has_no_mean_error_and_reads_worst_just_before_an_edge():
    spec = PROFILE.units.encoder[1]
    encoder = build_encoder(replace(spec, noise_cdeg=0.0, curve=()), seed=5, stream=2)
    angle = np.random.default_rng(2).uniform(0.0, 36_000.0, 40_000)
    off = (codes_of(encoder, angle, 1) - angle + 18_000) % 36_000 - 18_000
    assert off.mean() == pytest.approx(0.0, abs=0.02)
    place = (angle - encoder.begin_cdeg) % 20 - 10.0
    early, late = off[(place > 0.1) & (place < 0.4)], off[(place > 4.8) & (place < 5.2)]
    assert early.std() < 0.2
    assert late.std() > 0.45


def test_a_curve_is_the_same_in_each_turn():
    curve = ((5.0, 30.0), (0.0, 0.0), (2.0, -50.0))
    spec = EncoderSpec(rate_rpm=600, tick_cdeg=0.0, noise_cdeg=0.0, curve=curve)
    plain = EncoderSpec(rate_rpm=600, tick_cdeg=0.0, noise_cdeg=0.0)
    true, read = readings(plain, 2000), readings(spec, 2000)
    turn = np.radians(true / 100.0)
    expected = 5.0 * np.sin(2 * turn + np.radians(30.0)) + 2.0 * np.sin(4 * turn - np.radians(50.0))
    np.testing.assert_allclose((read - true + 18_000) % 36_000 - 18_000, expected, atol=1.1)


def test_shares_and_curves_beyond_their_limits_are_faults():
    with pytest.raises(
        ValueError, match=r"class_shares must be 20 numbers .*; counts_cdeg must be 4 numbers of 1 to 10, .*; curve must have amplitudes of 0 to 100"
    ):
        EncoderSpec(rate_rpm=600, tick_cdeg=1.0, noise_cdeg=0.0, class_shares=(0.5, 0.5), counts_cdeg=(5.0, 5.0), curve=((-1.0, 0.0),))
