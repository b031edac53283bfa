"""Weather against the formulas integrated here, the published figures, and a slow plain reference."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from hilsim.rng import Purpose, uniform, uniform_pair
from hilsim.sensor.optics.weather import WeatherSpec, build_weather, extinction, weather_echoes
from hilsim.sensor.optics.weather_tables import OVERLAP_FROM_M, soft_echo_energy, soft_table, visibility_extinction_per_m
from tests.depth import examples

THRESHOLD = 5e-5
PULSE_M = 0.299792458 * 5.0 / 2.0
VLP16_BEAM = {"pulse_ns": 5.0, "divergence_h_mrad": 3.0, "divergence_v_mrad": 1.2, "window_h_mm": 9.5, "window_v_mm": 12.7}
SEED, STREAM = 11, 5


def made(**spec):
    return build_weather(WeatherSpec(**spec), threshold_energy=THRESHOLD, **VLP16_BEAM)


def echoes(weather, sequence, hard_range_m=math.inf, *, room=32, start=0, seed=SEED, stream=STREAM):
    range_m, energy = np.zeros(room, np.float32), np.zeros(room, np.float32)
    count = weather_echoes(weather, seed, stream, sequence, hard_range_m, range_m, energy, start)
    return range_m[start:count], energy[start:count]


def many(weather, firings, hard_range_m=math.inf):
    """Numbers of echoes, and all their ranges and energies."""
    each = [echoes(weather, sequence, hard_range_m) for sequence in range(firings)]
    return (
        np.array([len(ranges) for ranges, _ in each]),
        np.concatenate([ranges for ranges, _ in each]),
        np.concatenate([energies for _, energies in each]),
    )


# Extinction


@pytest.mark.parametrize(
    ("rain_mm_per_h", "mie", "closed_form", "goodin"),
    [(2.5, 6.53e-4, 6.50e-4, 1.73e-2), (10.0, 1.56e-3, 1.56e-3, 3.98e-2), (25.0, 2.78e-3, 2.77e-3, 6.90e-2), (50.0, 4.30e-3, 4.29e-3, 1.05e-1)],
)
def test_rain_takes_what_the_two_models_say(rain_mm_per_h, mie, closed_form, goodin):
    ours = made(rain_mm_per_h=rain_mm_per_h).extinction_per_m
    assert ours == pytest.approx(closed_form, rel=0.004)  # printed with three digits
    assert ours == pytest.approx(mie, rel=0.01)
    assert made(rain_mm_per_h=rain_mm_per_h, rain_model="goodin").extinction_per_m == pytest.approx(goodin, rel=0.005)


@pytest.mark.parametrize(("snow_mm_per_h", "expected"), [(0.5, 9.7e-4), (1.0, 1.44e-3), (2.5, 2.43e-3), (5.0, 3.6e-3)])
def test_snow_takes_what_its_flakes_cover(snow_mm_per_h, expected):
    ours = made(snow_mm_per_h=snow_mm_per_h).extinction_per_m
    assert ours == pytest.approx(expected, rel=0.003)
    number, decay = 7.6e3 * snow_mm_per_h**-0.87, 2.55 * snow_mm_per_h**-0.48
    covered, _ = integrate.quad(lambda d: number * math.exp(-decay * d) * math.pi / 4 * d * d * 1e-6, 0, 100 / decay)
    assert ours == pytest.approx(2 * covered, rel=1e-6)


def test_dust_of_visibility_95_m_is_the_example_of_10_um_particles():
    radius_m, per_m3 = 10e-6, 1e8
    assert made(dust_visibility_m=95.0).extinction_per_m == pytest.approx(math.pi * radius_m**2 * per_m3, rel=0.005)


def test_fog_leaves_a_twentieth_of_the_contrast_at_its_visibility():
    foggy = made(fog_visibility_m=100.0)
    assert foggy.extinction_per_m == pytest.approx(0.02995732, rel=1e-6)
    assert extinction(foggy, 50.0) == pytest.approx(0.05)  # there and back


def test_case_6_fog_hides_a_grey_wall_at_40_m_and_not_a_white_one():
    through = extinction(made(fog_visibility_m=100.0), 40.0)
    assert through == pytest.approx(0.09102821, rel=1e-6)
    assert 0.5 * through / 40**2 == pytest.approx(2.844632e-5, rel=1e-6)
    assert 1.0 * through / 40**2 == pytest.approx(5.689263e-5, rel=1e-6)


def test_case_7_rain_takes_a_quarter_at_50_m_and_the_other_model_nearly_all():
    rainy, goodin = made(rain_mm_per_h=25.0), made(rain_mm_per_h=25.0, rain_model="goodin")
    assert rainy.extinction_per_m == pytest.approx(2.770706e-3, rel=2e-5)  # the sheet computes with 3.6466e-4, rounded
    assert extinction(rainy, 50.0) == pytest.approx(0.7580010, rel=5e-6)
    assert 0.5 * extinction(rainy, 50.0) / 50**2 == pytest.approx(1.516002e-4, rel=5e-6)
    assert goodin.extinction_per_m == pytest.approx(6.898648e-2, rel=1e-6)
    assert extinction(goodin, 50.0) == pytest.approx(1.009149e-3, rel=1e-6)


@pytest.mark.parametrize(
    ("spec", "farthest_m"),
    [
        ({}, (44.7, 100.0, 126.5)),
        ({"rain_mm_per_h": 25.0}, (40.0, 80.1, 96.7)),
        ({"fog_visibility_m": 50.0}, (16.6, 23.9, 26.2)),
        ({"fog_visibility_m": 100.0}, (22.7, 35.0, 39.1)),
        ({"fog_visibility_m": 200.0}, (29.0, 48.4, 55.3)),
        ({"fog_visibility_m": 500.0}, (36.0, 67.0, 78.9)),
        ({"fog_visibility_m": 1000.0}, (39.7, 78.9, 95.1)),
        ({"rain_mm_per_h": 25.0, "rain_model": "goodin"}, (None, 22.0, None)),
    ],
)
def test_walls_are_seen_as_far_as_the_sheet_computes(spec, farthest_m):
    air = made(**spec)
    for reflectivity, expected in zip((0.1, 0.5, 0.8), farthest_m, strict=True):
        if expected is not None:
            near, far = (reflectivity * extinction(air, at) / at**2 for at in (expected - 0.1, expected + 0.1))
            assert far < THRESHOLD < near


def test_kinds_of_weather_given_together_add_up():
    together = made(fog_visibility_m=200.0, dust_visibility_m=300.0, rain_mm_per_h=10.0, snow_mm_per_h=1.0)
    alone = [made(fog_visibility_m=200.0), made(dust_visibility_m=300.0), made(rain_mm_per_h=10.0), made(snow_mm_per_h=1.0)]
    assert together.extinction_per_m == pytest.approx(sum(air.extinction_per_m for air in alone))
    assert together.rain.mean > 0.0
    assert together.snow.mean > 0.0
    assert together.has_soft_echo


@given(st.floats(5.0, 5000.0), st.floats(0.1, 100.0), st.floats(0.1, 10.0), st.floats(0.0, 150.0), st.floats(0.0, 50.0))
@settings(max_examples=examples(50))
def test_more_weather_and_longer_ways_never_leave_more(visibility_m, rain_mm_per_h, snow_mm_per_h, range_m, farther_m):
    for less, more in [
        (made(fog_visibility_m=visibility_m), made(fog_visibility_m=visibility_m / 2)),
        (made(rain_mm_per_h=rain_mm_per_h), made(rain_mm_per_h=2 * rain_mm_per_h)),
        (made(snow_mm_per_h=snow_mm_per_h), made(snow_mm_per_h=2 * snow_mm_per_h)),
    ]:
        assert 1.0 >= extinction(less, range_m) >= extinction(more, range_m) >= extinction(more, range_m + farther_m) >= 0.0


def test_clear_air_takes_nothing_and_sends_nothing():
    point_beam = dict.fromkeys(("divergence_h_mrad", "divergence_v_mrad", "window_h_mm", "window_v_mm"), 0.0)
    for air in (build_weather(WeatherSpec(), threshold_energy=5e-5, pulse_ns=5.0, **point_beam), made()):
        assert not air.has_echoes
        assert [extinction(air, range_m) for range_m in (0.5, 100.0, math.inf)] == [1.0] * 3
        assert all(len(echoes(air, sequence)[0]) == 0 for sequence in range(200))


# The echo of fog and dust


def soft(range_m, visibility_m, *, near_gain_m=0.0, hard_range_m=math.inf):
    alpha = visibility_extinction_per_m(visibility_m)
    return soft_echo_energy(
        np.asarray(range_m), extinction_per_m=alpha, soft_extinction_per_m=alpha, pulse_ns=5.0, near_gain_m=near_gain_m, hard_range_m=hard_range_m
    )


def integrated_soft_echo(range_m, visibility_m, hard_range_m=math.inf):
    alpha = math.log(20.0) / visibility_m
    start, stop = range_m - PULSE_M / 2, min(range_m + PULSE_M / 2, hard_range_m)
    pieces = [(max(start, low), min(stop, high)) for low, high in ((0.9, 1.0), (1.0, math.inf))]
    power = [
        integrate.quad(lambda r: min((r - 0.9) / 0.1, 1.0) * math.exp(-2 * alpha * r) / r**2, *piece)[0] for piece in pieces if piece[0] < piece[1]
    ]
    return math.pi * 0.046 / visibility_m * sum(power)


@pytest.mark.parametrize("range_m", [0.7, 1.0, 1.3, 1.8, 4.0])
def test_the_soft_echo_is_the_integral_over_the_pulse_before_the_hard_hit(range_m):
    for hard_range_m in (math.inf, range_m + 0.05):
        assert soft([range_m], 100.0, hard_range_m=hard_range_m)[0] == pytest.approx(integrated_soft_echo(range_m, 100.0, hard_range_m), rel=1e-4)
    gained = soft([range_m], 100.0, near_gain_m=3.0)[0]
    assert gained == pytest.approx(integrated_soft_echo(range_m, 100.0) * min(1.0, (range_m / 3.0) ** 2), rel=1e-4)


@pytest.mark.parametrize(
    ("visibility_m", "peak", "seen_to_m"),
    [(20.0, 2.26e-3, 5.4), (50.0, 1.13e-3, 5.3), (100.0, 6.08e-4, 4.5), (200.0, 3.15e-4, 3.5), (500.0, 1.29e-4, 2.5)],
)
def test_fog_peaks_at_1_30_m_and_fades_below_the_threshold_as_the_sheet_computes(visibility_m, peak, seen_to_m):
    dense = made(fog_visibility_m=visibility_m, near_gain_m=0.0)
    assert dense.table[0, -1] == pytest.approx(peak, rel=0.003)
    assert dense.table[1, -1] == pytest.approx(1.30, abs=0.006)
    at = np.arange(1.0, 8.0, 0.001)
    last = at[soft(at, visibility_m) > THRESHOLD][-1]
    assert last + PULSE_M / 2 == pytest.approx(seen_to_m, abs=0.06)  # of the pulse's far edge; 5.35 m is printed as 5.4


def test_the_near_gain_turns_the_ring_that_light_fog_would_make_down():
    assert made(fog_visibility_m=500.0, near_gain_m=0.0).table[0, -1] > 2 * THRESHOLD
    assert made(fog_visibility_m=500.0).table[0, -1] == pytest.approx(0.51 * THRESHOLD, rel=0.02)
    assert made(fog_visibility_m=200.0).table[0, -1] > THRESHOLD
    assert made(fog_visibility_m=200.0).table[1, -1] == pytest.approx(1.37, abs=0.01)


@pytest.mark.parametrize("near_gain_m", [0.0, 3.0, 10.0])
def test_a_hard_hit_clips_the_soft_peak(near_gain_m):
    air = made(fog_visibility_m=100.0, near_gain_m=near_gain_m)
    hard = 0.9 + air.soft_step_m * np.arange(air.table.shape[1])
    energy, range_m = air.table[:2]
    assert energy[0] == 0.0
    assert (np.diff(energy) >= 0.0).all()
    assert (range_m <= hard).all()
    for entry in (20, 60, 100):
        before = np.arange(0.9, hard[entry], 0.0005)
        assert energy[entry] == pytest.approx(soft(before, 100.0, near_gain_m=near_gain_m, hard_range_m=hard[entry]).max(), rel=2e-3)


def test_dust_and_fog_of_one_visibility_send_back_the_same():
    fog, dust = made(fog_visibility_m=100.0), made(dust_visibility_m=100.0)
    np.testing.assert_array_equal(fog.table, dust.table)
    assert echoes(fog, 3) == echoes(dust, 3)


def test_the_soft_echo_scatters_by_a_beta_distribution_and_speckles_exponentially():
    firings = 5000
    air = made(fog_visibility_m=100.0)
    number, range_m, energy = many(air, firings)
    assert (number == 1).all()
    assert stats.kstest((range_m - air.table[1, -1]) / 10.0, stats.beta(2, 20).cdf).pvalue > 1e-3
    assert range_m.mean() - air.table[1, -1] == pytest.approx(0.909, abs=4 * 0.6 / math.sqrt(firings))
    assert stats.kstest(energy / air.table[0, -1], stats.expon.cdf).pvalue > 1e-3
    assert abs(np.corrcoef(range_m, energy)[0, 1]) < 4 / math.sqrt(firings)


def test_the_soft_echo_is_left_out_where_its_scatter_would_put_it_behind_the_hard_hit():
    air = made(fog_visibility_m=100.0)
    peak_m = air.table[1, -1]
    hard_range_m = 2.0
    number, range_m, _ = many(air, 4000, hard_range_m)
    expected = stats.beta(2, 20).cdf((hard_range_m - peak_m) / 10.0)
    assert number.mean() == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / 4000))
    assert range_m.max() < hard_range_m


# Drops and flakes

RAIN_SHEET = [
    (2.5, 0.018, 1.16, 1.7, 2.4),
    (10.0, 0.052, 1.25, 2.0, 2.9),
    (25.0, 0.099, 1.31, 2.2, 3.2),
    (50.0, 0.156, 1.39, 2.3, 3.4),
]
SNOW_SHEET = [(0.5, 1.07, 2.5, 5.0, 7.5), (1.0, 1.28, 3.0, 6.1, 9.1), (2.5, 1.58, 4.0, 8.0, 11.8)]
DROP_REFLECTANCE = ((1.328 - 1) / (1.328 + 1)) ** 2


def particle_density(range_m, number, decay, reflectance, alpha, near_gain_m=0.0):
    """Detectable particles per metre of beam, written down once more."""
    section = (9.5 + 3.0 * range_m) * (12.7 + 1.2 * range_m)
    filled = reflectance * np.exp(-2 * alpha * range_m) / range_m**2 * (np.minimum(1.0, (range_m / near_gain_m) ** 2) if near_gain_m else 1.0)
    least = np.sqrt(THRESHOLD / filled * section)
    return np.where(filled >= THRESHOLD, np.pi / 4 * section * 1e-6 * number / decay * np.exp(-decay * least), 0.0)


def rain_law(rain_mm_per_h):
    return 8000.0, 4.1 * rain_mm_per_h**-0.21, DROP_REFLECTANCE


def snow_law(snow_mm_per_h):
    return 7.6e3 * snow_mm_per_h**-0.87, 2.55 * snow_mm_per_h**-0.48, 0.9


def quantiles(particles, share):
    return np.interp((0.5, 0.9, 0.99), share, 0.9 + particles.step_m * np.arange(share.size))


def density_of(range_m, kind, amount, near_gain_m):
    air = made(**{kind: amount})
    return particle_density(range_m, *(rain_law if kind == "rain_mm_per_h" else snow_law)(amount), air.extinction_per_m, near_gain_m)


@pytest.mark.parametrize("near_gain_m", [0.0, 3.0])
@pytest.mark.parametrize(("kind", "amount"), [("rain_mm_per_h", row[0]) for row in RAIN_SHEET] + [("snow_mm_per_h", row[0]) for row in SNOW_SHEET])
def test_tables_of_particles_are_the_integral_of_their_density(kind, amount, near_gain_m):
    air = made(**{kind: amount}, near_gain_m=near_gain_m)
    particles, share = (air.rain, air.table[2]) if kind == "rain_mm_per_h" else (air.snow, air.table[3])
    mean, _ = integrate.quad(density_of, 0.9, 40.0, args=(kind, amount, near_gain_m), limit=500, points=[3.0])
    assert particles.mean == pytest.approx(mean, rel=1e-5)
    assert particles.none_ratio == math.exp(-particles.mean)
    assert (share[0], share[-1]) == (0.0, 1.0)
    for end_m in quantiles(particles, share):
        part, _ = integrate.quad(density_of, 0.9, end_m, args=(kind, amount, near_gain_m), limit=500, points=[min(3.0, end_m)])
        inside = np.interp((end_m - 0.9) / particles.step_m, np.arange(share.size), share)
        assert part / mean == pytest.approx(inside, abs=5e-4)


@pytest.mark.parametrize(("rain_mm_per_h", "mean", "median_m", "most_m", "nearly_all_m"), RAIN_SHEET)
def test_drops_at_full_sensitivity_are_as_many_and_as_far_as_the_sheet_computes(rain_mm_per_h, mean, median_m, most_m, nearly_all_m):
    air = made(rain_mm_per_h=rain_mm_per_h, near_gain_m=0.0)
    assert air.rain.mean == pytest.approx(mean, rel=0.045)  # the sheet's are 1 to 4 % high, as the next test shows
    np.testing.assert_allclose(quantiles(air.rain, air.table[2]), (median_m, most_m, nearly_all_m), atol=0.06)


@pytest.mark.parametrize(("rain_mm_per_h", "mean"), [row[:2] for row in RAIN_SHEET])
def test_the_sheets_numbers_of_drops_are_sums_of_20_mm_steps_from_their_near_end(rain_mm_per_h, mean):
    steps = density_of(np.arange(0.9, 20.0, 0.02), "rain_mm_per_h", rain_mm_per_h, 0.0)
    assert round(steps.sum() * 0.02, 3) == mean
    assert made(rain_mm_per_h=rain_mm_per_h, near_gain_m=0.0).rain.mean == pytest.approx(
        (steps.sum() - steps[0] / 2) * 0.02, rel=1e-3
    )  # the trapezium


@pytest.mark.parametrize(("snow_mm_per_h", "mean", "median_m", "most_m", "nearly_all_m"), SNOW_SHEET)
def test_flakes_at_full_sensitivity_are_as_many_and_as_far_as_the_sheet_computes(snow_mm_per_h, mean, median_m, most_m, nearly_all_m):
    air = made(snow_mm_per_h=snow_mm_per_h, near_gain_m=0.0)
    assert air.snow.mean == pytest.approx(mean, abs=0.006)
    np.testing.assert_allclose(quantiles(air.snow, air.table[3]), (median_m, most_m, nearly_all_m), atol=0.06)


def test_dimmer_flakes_and_near_gain_make_fewer_echoes():
    full = made(snow_mm_per_h=1.0, near_gain_m=0.0).snow.mean
    assert made(snow_mm_per_h=1.0, near_gain_m=0.0, flake_reflectivity=0.2).snow.mean < 0.5 * full
    assert made(snow_mm_per_h=1.0).snow.mean < full
    assert made(rain_mm_per_h=25.0).rain.mean == pytest.approx(0.0139, rel=0.01)  # of 0.098: most drops that are seen are nearer than 3 m


@pytest.mark.parametrize(("kind", "amount"), [("rain_mm_per_h", 500.0), ("snow_mm_per_h", 2.5)])
def test_particles_are_drawn_as_their_tables_say(kind, amount):
    firings = 8000
    air = made(**{kind: amount}, near_gain_m=0.0)
    particles, share = (air.rain, air.table[2]) if kind == "rain_mm_per_h" else (air.snow, air.table[3])
    number, range_m, energy = many(air, firings)
    assert number.mean() == pytest.approx(particles.mean, abs=4 * math.sqrt(particles.mean / firings))
    assert number.var() == pytest.approx(particles.mean, rel=0.1)
    at = 0.9 + particles.step_m * np.arange(share.size)
    assert stats.kstest(range_m, lambda r: np.interp(r, at, share)).pvalue > 1e-3
    assert (energy >= THRESHOLD * (1 - 1e-6)).all()
    filled = particles.reflectance * np.exp(-2 * air.extinction_per_m * range_m) / range_m**2
    assert (energy <= filled * (1 + 1e-5)).all()
    # Given its range, a particle's diameter beyond the least detectable is exponential: undo the energy, leaving out those that fill the beam.
    section = (9.5 + 3.0 * range_m) * (12.7 + 1.2 * range_m)
    least, most = np.sqrt(THRESHOLD / filled * section), np.sqrt(section)
    quantile = -np.expm1(-(np.sqrt(energy / filled * section) - least) / particles.mean_excess_mm)
    fills = energy >= filled * (1 - 1e-5)
    room = -np.expm1(-(most - least) / particles.mean_excess_mm)
    assert fills.mean() == pytest.approx((1 - room).mean(), abs=4 * math.sqrt(0.25 / range_m.size))
    assert stats.kstest((quantile / room)[~fills], stats.uniform.cdf).pvalue > 1e-3


def test_the_drawn_echoes_are_those_of_a_slow_reference():
    air = made(rain_mm_per_h=500.0, snow_mm_per_h=2.5, fog_visibility_m=300.0)
    for sequence in range(60):
        expected = []
        a, b = uniform_pair(SEED, STREAM, sequence, Purpose.SOFT_ECHO_RANGE)
        speckle = -math.log(1 - uniform(SEED, STREAM, sequence, Purpose.SOFT_ECHO_ENERGY))
        expected.append((air.table[1, -1] + 10 * (1 - (1 - a) ** (1 / 21) * (1 - b) ** (1 / 20)), air.table[0, -1] * speckle))
        draws = uniform_pair(SEED, STREAM, sequence, Purpose.WEATHER_COUNT)
        kinds = [(air.rain, air.table[2], Purpose.RAIN_DROP), (air.snow, air.table[3], Purpose.SNOW_FLAKE)]
        for draw, (particles, share, purpose) in zip(draws, kinds, strict=True):
            for which in range(int(stats.poisson.ppf(draw, particles.mean))):
                u, v = uniform_pair(SEED, STREAM, sequence * 65_536 + which, purpose)
                at = float(np.interp(u, share, 0.9 + particles.step_m * np.arange(share.size)))
                filled = particles.reflectance * extinction(air, at) / at**2 * min(1.0, (at / 3.0) ** 2)
                section = (9.5 + 3.0 * at) * (12.7 + 1.2 * at)
                diameter = math.sqrt(THRESHOLD / filled * section) - particles.mean_excess_mm * math.log(1 - v)
                expected.append((at, filled * min(1.0, diameter**2 / section)))
        np.testing.assert_allclose(np.column_stack(echoes(air, sequence)), expected, rtol=2e-6)


# All echoes

ALL_AT_ONCE = made(fog_visibility_m=200.0, rain_mm_per_h=200.0, snow_mm_per_h=5.0, near_gain_m=0.0)


@given(st.integers(0, 2**40), st.floats(0.3, 40.0), st.integers(0, 6), st.integers(0, 3))
@settings(max_examples=examples(200))
def test_no_echo_lies_at_or_behind_the_hard_hit_nor_beyond_the_arrays(sequence, hard_range_m, room, start):
    range_m, energy = np.full(room, -1, np.float32), np.full(room, -1, np.float32)
    count = weather_echoes(ALL_AT_ONCE, SEED, STREAM, sequence, hard_range_m, range_m, energy, min(start, room))
    assert min(start, room) <= count <= room
    assert (range_m[: min(start, room)] == -1).all()
    assert (range_m[count:] == -1).all()
    assert (range_m[min(start, room) : count] < hard_range_m).all()
    assert (energy[min(start, room) : count] >= 0).all()
    unbounded = echoes(ALL_AT_ONCE, sequence, hard_range_m)[0]
    np.testing.assert_array_equal(range_m[min(start, room) : count], unbounded[: room - min(start, room)])


@pytest.mark.parametrize("hard_range_m", [0.5, 0.89, 0.9])
def test_a_hard_hit_before_the_receiver_sees_the_beam_leaves_no_echo(hard_range_m):
    assert all(len(echoes(ALL_AT_ONCE, sequence, hard_range_m)[0]) == 0 for sequence in range(100))


def test_a_hard_hit_takes_away_the_drops_and_flakes_behind_it_and_no_others():
    air = made(rain_mm_per_h=500.0, snow_mm_per_h=5.0, near_gain_m=0.0)
    for sequence in range(300):
        open_range_m, open_energy = echoes(air, sequence)
        range_m, energy = echoes(air, sequence, 3.0)
        np.testing.assert_array_equal(range_m, open_range_m[open_range_m < 3.0])
        np.testing.assert_array_equal(energy, open_energy[open_range_m < 3.0])


def test_echoes_depend_on_their_firing_only():
    forwards = [echoes(ALL_AT_ONCE, sequence) for sequence in range(200)]
    for sequence in reversed(range(200)):
        np.testing.assert_array_equal(echoes(ALL_AT_ONCE, sequence, start=2), forwards[sequence])


def test_channels_seeds_and_firings_differ():
    keys = [(0, SEED, STREAM), (1, SEED, STREAM), (0, SEED + 1, STREAM), (0, SEED, STREAM + 1)]
    nearest = {float(echoes(ALL_AT_ONCE, sequence, seed=seed, stream=stream)[0][0]) for sequence, seed, stream in keys}
    assert len(nearest) == len(keys)


# Rules


def test_a_spec_names_every_broken_rule_at_once():
    with pytest.raises(
        ValueError,
        match=r"rain_mm_per_h must be 0 to 500, got nan; snow_mm_per_h must be 0 to 50, got -1; near_gain_m must be 0 to 50, got -3; "
        r"fog_visibility_m must be 1 to 100000, or 0 for no fog, got -5; rain_model must be marshall_palmer or goodin, got wet; "
        r"dust_visibility_m must be 1 to 100000, or 0 for no dust, got 0.5; flake_reflectivity must be above 0 and at most 1, got 0",
    ):
        WeatherSpec(
            fog_visibility_m=-5,
            rain_mm_per_h=math.nan,
            rain_model="wet",
            snow_mm_per_h=-1,
            dust_visibility_m=0.5,
            near_gain_m=-3,
            flake_reflectivity=0,
        )


def test_rain_needs_a_threshold_and_one_that_leaves_a_number_that_can_be_drawn():
    with pytest.raises(ValueError, match=r"threshold_energy must be above 0 where it rains or snows .* got 0"):
        build_weather(WeatherSpec(rain_mm_per_h=5.0), threshold_energy=0.0, **VLP16_BEAM)
    with pytest.raises(ValueError, match=r"drops or flakes above threshold_energy must be at most 500 a firing, got"):
        build_weather(WeatherSpec(snow_mm_per_h=50.0), threshold_energy=1e-9, **VLP16_BEAM)
    assert build_weather(WeatherSpec(fog_visibility_m=50.0), threshold_energy=0.0, **VLP16_BEAM).has_echoes


def test_a_pencil_beam_meets_no_drops():
    pencil = VLP16_BEAM | {"divergence_h_mrad": 0.0, "divergence_v_mrad": 0.0, "window_h_mm": 0.0, "window_v_mm": 0.0}
    air = build_weather(WeatherSpec(rain_mm_per_h=50.0, snow_mm_per_h=2.5), threshold_energy=THRESHOLD, **pencil)
    assert air.rain.mean == air.snow.mean == 0.0
    assert not air.has_echoes


@settings(max_examples=examples(10))
@given(
    visibility_m=st.floats(2.0, 5000.0),
    further_per_m=st.floats(0.0, 0.05),
    pulse_ns=st.floats(1.0, 20.0),
    near_gain_m=st.just(0.0) | st.floats(0.1, 20.0),
)
def test_each_entry_of_the_table_is_the_peak_of_the_echo_that_its_hard_hit_clips(visibility_m, further_per_m, pulse_ns, near_gain_m):
    soft_per_m = visibility_extinction_per_m(visibility_m)
    step_m, energy, range_m = soft_table(soft_per_m + further_per_m, soft_per_m, pulse_ns, near_gain_m)
    at = np.arange(OVERLAP_FROM_M, range_m.max() + 2.0 * PULSE_M * pulse_ns, 0.001)
    for entry in (0, 1, 40, 90, 127, 128):
        hard_range_m = OVERLAP_FROM_M + entry * step_m
        expected = soft_echo_energy(
            at[at <= hard_range_m + 1e-9],
            extinction_per_m=soft_per_m + further_per_m,
            soft_extinction_per_m=soft_per_m,
            pulse_ns=pulse_ns,
            near_gain_m=near_gain_m,
            hard_range_m=hard_range_m,
        )
        assert energy[entry] == pytest.approx(expected.max(), rel=1e-6)
        assert expected[np.argmin(np.abs(at - range_m[entry]))] == pytest.approx(expected.max(), rel=1e-6)
