"""Decimation against the published functions' reference arrays, by properties, and on the firings of a turning sensor."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.families.velodyne.protocol.data import Product, ReturnMode, decode_data_packets, encode_data_packet, factory_bytes
from hilsim.families.velodyne.specs import ChannelSpec, VelodyneSpec
from hilsim.rng import Purpose
from hilsim.sensor.decimation import (
    SPURIOUS_POINT_PURPOSE,
    SpuriousSpec,
    add_spurious_points,
    azimuths_deg,
    build_decimation,
    channel_rings,
    decimate_beams,
    decimate_rays,
    draw_spurious,
    place_spurious,
    reported_firings,
    ring_ids,
    withhold_firings,
)
from hilsim.sensor.head import build_head, head_turns
from hilsim.sensor.specs import DecimationSpec
from hilsim.sensor.unit.encoder import RateJitterSpec

VLP16 = {"lower_fov_deg": -15.0, "upper_fov_deg": 15.0}
PUCK = parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / "vlp16.toml"), "vlp16")
WILD = RateJitterSpec(per_turn_ratio=0.2, drift_ratio=0.2, drift_period_s=0.15)
HOW_TO = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "decimate-a-sensor.md"
BASELINE = np.arange(1, 17, dtype=np.uint8)


@pytest.fixture
def published(reference):
    """The published functions' inputs and outputs."""
    with np.load(reference("subsampling_reference.npz")) as file:
        return {name: file[name] for name in file.files}


def rays_at(elevation_deg, azimuth_deg=0.0, range_m=10.0):
    elevation, azimuth = np.radians(np.atleast_1d(elevation_deg)), np.radians(azimuth_deg)
    level = range_m * np.cos(elevation)
    return np.stack(np.broadcast_arrays(level * np.cos(azimuth), level * np.sin(azimuth), range_m * np.sin(elevation)), axis=1)


# Rings from elevations


@pytest.mark.parametrize("name", ["vlp16", "c32", "c64", "c1", "c2", "fov0", "swapped", "edge", "f32"])
def test_ring_ids_are_the_published_functions(published, name):
    channels, lower, upper = published[f"ring_{name}_par"]
    ring = ring_ids(published[f"ring_{name}_points"], int(channels), lower_fov_deg=lower, upper_fov_deg=upper)
    np.testing.assert_array_equal(ring, published[f"ring_{name}_out"])
    assert ring.dtype == np.int32


@pytest.mark.parametrize("channels", [16, 64, 65_536])
def test_a_field_of_view_of_zero_splits_at_its_elevation_however_many_the_channels(channels):
    # The published function overflows 32 bits here from 25 channels on.
    ring = ring_ids(rays_at([-90.0, -1.0, 0.0, 1.0, 90.0]), channels, lower_fov_deg=0.0, upper_fov_deg=0.0)
    assert ring.tolist() == [0, 0, 0, channels - 1, channels - 1]


# Beams


@pytest.mark.parametrize("step", [1, 2, 3, 4, 16, 17])
def test_thinned_beams_are_the_published_functions(published, step):
    mask, (points, tags) = decimate_beams(published["grid_ring"], step, published["grid_points"], published["grid_tags"])
    np.testing.assert_array_equal(mask, published[f"beam_step{step}_mask"])
    np.testing.assert_array_equal(points, published[f"beam_step{step}_points"])
    np.testing.assert_array_equal(tags, published[f"beam_step{step}_tags"])


# Rays


@pytest.mark.parametrize("step", [1, 2, 3, 5, 24, 25])
def test_thinned_rays_are_the_published_functions(published, step):
    points, ring = published["grid_points"], published["grid_ring"]
    mask, (kept, tags) = decimate_rays(azimuths_deg(points), ring, step, points, published["grid_tags"])
    np.testing.assert_array_equal(mask, published[f"ray_step{step}_mask"])
    np.testing.assert_array_equal(kept, published[f"ray_step{step}_points"])
    np.testing.assert_array_equal(tags, published[f"ray_step{step}_tags"])


def test_azimuths_are_the_published_functions(published):
    azimuth = azimuths_deg(published["az_edge_points"])
    np.testing.assert_array_equal(azimuth, published["az_edge_az"])
    assert not np.signbit(azimuth).any()


def test_points_just_below_azimuth_zero_are_at_zero_not_360():
    assert azimuths_deg(np.array([[1.0, -1e-300, 0.0], [1.0, -0.0, 0.0], [1.0, -1e-9, 0.0]])) == pytest.approx([0.0, 0.0, 360.0], abs=1e-6)
    assert azimuths_deg(np.array([[1.0, -1e-300, 0.0]])).tolist() == [0.0]


def test_a_point_without_azimuth_comes_last():
    azimuth = azimuths_deg(np.array([[np.nan, 1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0]]))
    assert decimate_rays(azimuth, np.zeros(3, int), 2).mask.tolist() == [True, False, True]
    assert decimate_rays(azimuth, np.zeros(3, int), 3).mask.tolist() == [False, False, True]


def test_float32_points_have_float32_azimuths_below_360():
    azimuth = azimuths_deg(np.array([[1.0, -1e-30, 0.0], [1.0, -1e-7, 0.0], [-1.0, 0.0, 0.0]], np.float32))
    assert azimuth.dtype == np.float32
    assert azimuth.tolist() == [0.0, 0.0, 180.0]


def test_no_points_thin_to_none(published):
    none = np.zeros((0, 3))
    ring = ring_ids(none, 16, **VLP16)
    mask, (points,) = decimate_rays(azimuths_deg(none), ring, 2, none)
    assert (ring.shape, mask.shape, points.shape) == (published["empty_ring"].shape, published["empty_ray_mask"].shape, (0, 3))
    assert (ring.dtype, mask.dtype) == (published["empty_ring"].dtype, published["empty_ray_mask"].dtype)
    assert decimate_beams(ring, 2, none).mask.shape == (0,)


CLOUDS = st.integers(0, 60).flatmap(
    lambda n: st.tuples(
        arrays(np.float64, n, elements=st.integers(0, 30).map(lambda tenths: tenths / 10)),  # few azimuths, so that there are ties
        arrays(np.int32, n, elements=st.integers(-2, 4)),
    )
)


# Spurious points


@pytest.mark.parametrize("seed", [0, 1])
def test_the_published_draws_are_placed_as_published_with_x_to_the_front(published, seed):
    # Theirs has -x in the code and +x in the text; ours is the text's. The tolerance is for another CPU's cosine.
    of_seed = f"cosmic_seed{seed}"
    ours = place_spurious(published[f"{of_seed}_az_deg"], published[f"{of_seed}_el_deg"], published[f"{of_seed}_r"])
    np.testing.assert_allclose(ours * [-1, 1, 1], published[f"{of_seed}_fake_points"], rtol=1e-14)
    np.testing.assert_allclose(azimuths_deg(ours), published[f"{of_seed}_az_deg"] % 360, rtol=1e-12)


@pytest.mark.parametrize("seed", [0, 1])
def test_as_many_are_added_and_tagged_as_published(published, seed):
    max_range, hfov, upper, lower, rate, n = published[f"cosmic_seed{seed}_par"]
    spec = SpuriousSpec(max_range_m=max_range, hfov_deg=hfov, lower_fov_deg=lower, upper_fov_deg=upper, rate=rate)
    spurious, points, tags = add_spurious_points(np.zeros((int(n), 3)), np.zeros(int(n), np.int32), spec, seed=seed)
    theirs = published[f"cosmic_seed{seed}_fake_tags"]
    np.testing.assert_array_equal(tags[spurious], theirs)
    assert tags.dtype == published[f"cosmic_seed{seed}_tag_dtype"]
    assert spurious.tolist() == [False] * int(n) + [True] * len(theirs)
    assert points.shape == (int(n) + len(theirs), 3)


def spurious_spec(**override):
    return SpuriousSpec(**{"max_range_m": 100.0, "lower_fov_deg": -15.0, "upper_fov_deg": 15.0, "rate": 0.01} | override)


def test_counts_are_truncated_after_the_error_of_floats():
    assert spurious_spec(rate=0.29).count(100) == 28


def test_without_one_spurious_point_the_same_arrays_come_back(published):
    points, tags = published["grid_points"], published["grid_tags"]
    result = add_spurious_points(points, tags, spurious_spec(rate=0.001), seed=1)
    assert [len(points), len(result.points)] == published["cosmic_zero_n"].tolist()
    assert published["cosmic_zero_same_object"]
    assert result.points is points
    assert result.tags is tags
    assert not result.spurious.any()


def test_spurious_points_lie_uniformly_in_range_and_both_angles_within_the_field_of_view():
    spec = spurious_spec(max_range_m=50.0, hfov_deg=90.0, lower_fov_deg=-30.0, upper_fov_deg=10.0)
    n = 20_000
    within = [(-45.0, 45.0), (-30.0, 10.0), (0.1, 50.0)]
    drawn = draw_spurious(spec, n, seed=3)
    for values, (low, high) in zip(drawn, within, strict=True):
        share = np.sort((values - low) / (high - low))
        assert share[0] >= 0.0
        assert share[-1] <= 1.0
        assert np.abs(share - (np.arange(n) + 0.5) / n).max() < 1.95 / np.sqrt(n)  # Kolmogorov: exceeded by one seed in a thousand
    assert np.abs(np.corrcoef(drawn) - np.eye(3)).max() < 4 / np.sqrt(n)
    points = place_spurious(*drawn)
    assert points[:, 0].min() > 0.0  # all ahead
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), drawn[2], rtol=1e-12)
    assert np.bincount(ring_ids(points, 16, lower_fov_deg=-30.0, upper_fov_deg=10.0), minlength=16).min() > 0.8 * n / 30


def test_spurious_point_k_is_the_same_whatever_the_count_and_differs_by_seed_sensor_and_scan():
    def draw(count=40, **which):
        return np.array(draw_spurious(spurious_spec(), count, **{"seed": 1, "stream": 2, "scan": 3} | which))

    np.testing.assert_array_equal(draw(7), draw()[:, :7])
    for other in ({"seed": 2}, {"stream": 0}, {"scan": 4}, {"seed": 2**64 - 1, "stream": 2**32 - 1, "scan": 2**31 - 1}):
        assert not np.intersect1d(draw(), draw(**other)).size


def test_spurious_points_share_no_draws_with_a_sensors_noise():
    assert SPURIOUS_POINT_PURPOSE not in set(Purpose)


# Refusals

POINTS, RING, AZIMUTH = np.zeros((3, 3)), np.zeros(3, int), np.zeros(3)
TAGS = np.zeros(3, np.int32)
REFUSALS = [
    (lambda: ring_ids(np.zeros((3, 4)), 16, **VLP16), "points must be an array of shape (n, 3), got (3, 4)"),
    (lambda: ring_ids(POINTS, 0, **VLP16), "channels must be a whole number of 1 to 65536, got 0"),
    (lambda: ring_ids(POINTS, 16.0, **VLP16), "channels must be a whole number of 1 to 65536, got 16.0"),
    (lambda: ring_ids(POINTS, 16, lower_fov_deg=np.nan, upper_fov_deg=15.0), "lower_fov_deg must be -90 to 90, got nan"),
    (
        lambda: ring_ids(POINTS, -1, lower_fov_deg=-91.0, upper_fov_deg=np.inf),
        "channels must be a whole number of 1 to 65536, got -1; lower_fov_deg must be -90 to 90, got -91.0; upper_fov_deg must be -90 to 90, got inf",
    ),
    (lambda: azimuths_deg(AZIMUTH), "points must be an array of shape (n, 3), got (3,)"),
    (lambda: decimate_beams(RING, 0), "step must be a whole number of 1 to 2147483647, got 0"),
    (lambda: decimate_beams(RING, -2), "step must be a whole number of 1 to 2147483647, got -2"),
    (lambda: decimate_beams(RING, 2.5), "step must be a whole number of 1 to 2147483647, got 2.5"),
    (lambda: decimate_beams(RING, True), "step must be a whole number of 1 to 2147483647, got True"),  # noqa: FBT003
    (lambda: decimate_beams(AZIMUTH, 2), "ring must be integers of shape (n,), got float64 of shape (3,)"),
    (lambda: decimate_beams(RING, 2, POINTS, np.zeros(4)), "per-point array 1 must have length 3, got shape (4,)"),
    (lambda: decimate_rays(AZIMUTH, RING, 0), "step must be a whole number of 1 to 2147483647, got 0"),
    (lambda: decimate_rays(AZIMUTH, RING, -1), "step must be a whole number of 1 to 2147483647, got -1"),
    (lambda: decimate_rays(np.zeros(2), RING, 2), "azimuth_deg must have the shape of ring, (3,), got (2,)"),
    (lambda: decimate_rays(AZIMUTH, POINTS.astype(int), 2), "ring must be integers of shape (n,), got int64 of shape (3, 3)"),
    (lambda: decimate_rays(AZIMUTH, RING, 2, np.float64(1)), "per-point array 0 must have length 3, got shape ()"),
    (lambda: spurious_spec(rate=-0.1), "rate must be 0 to 1, got -0.1"),
    (lambda: spurious_spec(rate=1.5), "rate must be 0 to 1, got 1.5"),
    (lambda: spurious_spec(rate=np.nan), "rate must be 0 to 1, got nan"),
    (lambda: spurious_spec(max_range_m=0.1), "max_range_m must be above 0.1 and finite, got 0.1"),
    (lambda: spurious_spec(max_range_m=np.inf), "max_range_m must be above 0.1 and finite, got inf"),
    (lambda: spurious_spec(hfov_deg=0.0), "hfov_deg must be above 0 and at most 360, got 0.0"),
    (lambda: spurious_spec(hfov_deg=361.0), "hfov_deg must be above 0 and at most 360, got 361.0"),
    (lambda: spurious_spec(lower_fov_deg=16.0), "lower_fov_deg must be at most upper_fov_deg, got 16.0 and 15.0"),
    (lambda: spurious_spec(upper_fov_deg=90.5), "upper_fov_deg must be -90 to 90, got 90.5"),
    (lambda: draw_spurious(spurious_spec(), -1, seed=1), "count must be a whole number of 0 to 2**31 - 1, got -1"),
    (lambda: draw_spurious(spurious_spec(), 1, seed=2**64), "seed must be a whole number of 0 to 2**64 - 1, got 18446744073709551616"),
    (lambda: draw_spurious(spurious_spec(), 1, seed=1.5), "seed must be a whole number of 0 to 2**64 - 1, got 1.5"),
    (lambda: add_spurious_points(POINTS, TAGS, spurious_spec(), seed=1, stream=-1), "stream must be a whole number of 0 to 2**32 - 1, got -1"),
    (lambda: add_spurious_points(POINTS, TAGS, spurious_spec(), seed=1, scan=2**31), "scan must be a whole number of 0 to 2**31 - 1"),
    (lambda: add_spurious_points(POINTS, TAGS[:2], spurious_spec(), seed=1), "one a point, got int32 of shape (2,)"),
    (lambda: add_spurious_points(POINTS, AZIMUTH, spurious_spec(), seed=1), "tags must be integers that can hold -1, one a point, got float64"),
    (lambda: add_spurious_points(POINTS, TAGS.astype(np.uint64), spurious_spec(), seed=1), "tags must be integers that can hold -1"),
    (lambda: add_spurious_points(POINTS[0], TAGS, spurious_spec(), seed=1), "points must be an array of shape (n, 3), got (3,)"),
    (
        lambda: DecimationSpec(beam_step=0, ray_step=-3),
        "beam_step must be a whole number of 1 to 2147483647, got 0; ray_step must be a whole number of 1 to 2147483647, got -3",
    ),
    (lambda: DecimationSpec(ray_step=1.5), "ray_step must be a whole number of 1 to 2147483647, got 1.5"),
    (
        lambda: build_decimation(DecimationSpec(), sensor(rate_max_rpm=200_000)),
        "a turn at rate_max_rpm must have at least 10 firing sequences for decimation, got 5.43",
    ),
]


@pytest.mark.parametrize(("call", "fault"), REFUSALS, ids=[f"{place}" for place in range(len(REFUSALS))])
def test_nonsense_is_refused_with_the_rule(call, fault):
    with pytest.raises(ValueError, match=re.escape(fault)):
        call()


# A streaming sensor


def sensor(**override):
    return VelodyneSpec(**vars(PUCK) | override)


def uneven(offsets_deg=(1.4, -4.2, 4.2, -1.4)):
    """32 lasers crowded about the horizon with azimuth offsets, firing in pairs, as a VLP-32C's; elevations made up."""
    elevation = np.random.default_rng(8).permutation(np.r_[np.linspace(-25, -5, 8), np.linspace(-4, 1.5, 18), np.linspace(2, 15, 6)])
    channels = tuple(ChannelSpec(elevation_deg=float(up), azimuth_offset_deg=offsets_deg[at % 4]) for at, up in enumerate(elevation))
    return sensor(channels=channels, lasers_per_firing=2)


def test_a_sensors_rings_are_numbered_by_elevation_even_where_they_are_spaced_unevenly():
    assert channel_rings(PUCK).tolist() == ring_ids(rays_at([c.elevation_deg for c in PUCK.channels]), 16, **VLP16).tolist()
    spec = uneven()
    elevation = np.array([channel.elevation_deg for channel in spec.channels])
    assert elevation[np.argsort(channel_rings(spec))].tolist() == sorted(elevation)
    even = ring_ids(rays_at(elevation), 32, lower_fov_deg=-25.0, upper_fov_deg=15.0)
    assert len(np.unique(even)) < 32  # why the even formula would not do
    assert build_decimation(DecimationSpec(beam_step=2), spec).keeps_channel.sum() == 16


def make_head(rate_rpm=600, phase_deg=0.0, rate_jitter=None):
    return build_head(rate_rpm=rate_rpm, phase_deg=phase_deg, rate_jitter=rate_jitter or RateJitterSpec(), seed=1, stream=0)


STREAMED = 3300

STREAMS = {
    "still": (PUCK, RateJitterSpec(), 0.0, 0),
    "real": (PUCK, PUCK.rate_jitter, 359.95, 123_456_789_012),
    "offsets": (uneven(), PUCK.rate_jitter, 3.0, 5),
    "wild": (uneven((180.0, -180.0, 90.0, -90.0)), WILD, 200.0, 1_000_000),
}


@pytest.fixture(scope="module", params=STREAMS.values(), ids=STREAMS)
def stream(request):
    """A model, its head at 1200 rpm, a first firing sequence, and the points [channel, sequence, xyz] of 3300: all at 10 m, x forward, y right.

    So that azimuths from x towards y are the sensor's own, clockwise from forward. Each firing has the head's angle at its own time.
    """
    spec, rate_jitter, phase_deg, first = request.param
    of_head = make_head(rate_rpm=1200, phase_deg=phase_deg, rate_jitter=rate_jitter)
    start_ns = np.arange(first, first + STREAMED) * spec.sequence_ns
    points = []
    for channel, laser in enumerate(spec.channels):
        firing_ns = start_ns + channel // spec.lasers_per_firing * spec.firing_ns
        turns = np.array([head_turns(of_head, time_ns) for time_ns in firing_ns])
        points.append(rays_at(laser.elevation_deg, turns * 360.0 + laser.azimuth_offset_deg))
    return spec, of_head, first, np.array(points)


def whole_turns(azimuth_deg):
    """Which turn each firing ``[channel, sequence]`` lies in, counted by channel; -1 for the parts at the ends that are not whole turns."""
    turn = np.cumsum(np.diff(azimuth_deg, axis=1, prepend=azimuth_deg[:, :1]) < -180.0, axis=1) - 1
    return np.where(turn == turn[:, -1:], -1, turn)


@pytest.mark.parametrize("step", [2, 3, 7, 5000])
def test_a_streams_reported_firings_are_the_array_functions_over_whole_turns(stream, step):
    spec, of_head, first, points = stream
    setting = DecimationSpec(beam_step=3, ray_step=step)
    reported = np.zeros(points.shape[:2], bool)
    reported_firings(build_decimation(setting, spec), of_head, first, STREAMED, reported)

    turn = whole_turns(azimuths_deg(points.reshape(-1, 3)).reshape(points.shape[:2]))
    ring = np.broadcast_to(channel_rings(spec)[:, None], turn.shape)
    assert turn.max() >= 1
    for number in range(turn.max() + 1):
        of_turn = turn == number
        beams = decimate_beams(ring[of_turn], setting.beam_step, points[of_turn], ring[of_turn])
        rays = decimate_rays(azimuths_deg(beams.arrays[0]), beams.arrays[1], step)
        expected = beams.mask.copy()
        expected[beams.mask] = rays.mask
        np.testing.assert_array_equal(reported[of_turn], expected)


def report(setting, *, first, sequences, spec=PUCK, **of_head):
    reported = np.zeros((len(spec.channels), sequences), bool)
    reported_firings(build_decimation(setting, spec), make_head(**of_head), first, sequences, reported)
    return reported


def test_a_turn_begins_at_azimuth_zero_by_hand():
    # 600 rpm from azimuth 0: 100 ms a turn, 1808.45 firing sequences. Channel 0 passes 0 with sequences 0 and 1809; channel 15, 34.56 us later, too
    # (1808.45 - 0.625 = 1807.8 for it: 0 and 1808).
    reported = report(DecimationSpec(ray_step=1000), first=0, sequences=2900)
    assert np.flatnonzero(reported[0]).tolist() == [0, 1000, 1809, 2809]
    assert np.flatnonzero(reported[15]).tolist() == [0, 1000, 1808, 2808]


def test_firings_before_the_sensors_first_passage_are_counted_as_if_the_head_had_turned_before():
    # From azimuth 359.9, at 0.19907 deg a sequence: sequence 0 is number 1807 of its turn, which began at -1807.
    reported = report(DecimationSpec(ray_step=13), first=0, sequences=30, phase_deg=359.9)
    assert np.flatnonzero(reported[0]).tolist() == [0, 1, 14, 27]
    assert 1807 % 13 == 0


@pytest.mark.parametrize("rate_jitter", [RateJitterSpec(), PUCK.rate_jitter, WILD], ids=["still", "real", "wild"])
@pytest.mark.parametrize("rate_rpm", [300, 1200])
def test_reported_firings_do_not_depend_on_batches(rate_jitter, rate_rpm):
    setting = DecimationSpec(beam_step=2, ray_step=11)
    of_head = {"rate_rpm": rate_rpm, "rate_jitter": rate_jitter, "phase_deg": 77.0}
    whole = report(setting, first=10**9, sequences=4000, **of_head)
    for size in (1, 24, 1999):
        for begin in range(0, 4000 - size, 797):
            np.testing.assert_array_equal(report(setting, first=10**9 + begin, sequences=size, **of_head), whole[:, begin : begin + size])


@pytest.mark.parametrize("step", [1, 2, 40])
def test_every_whole_turn_reports_a_step_th_rounded_up(step):
    reported = report(DecimationSpec(ray_step=step), first=0, sequences=1809)
    assert reported[0].sum() == math.ceil(1809 / step)


def test_a_sensor_that_is_not_thinned_reports_everything():
    assert report(DecimationSpec(), first=77, sequences=48).all()


def test_beams_alone_keep_whole_channels():
    reported = report(DecimationSpec(beam_step=4), first=77, sequences=48)
    elevation = np.array([channel.elevation_deg for channel in PUCK.channels])
    assert sorted(elevation[reported.all(axis=1)]) == [-15, -7, 1, 9]
    assert reported.any(axis=1).sum() == 4


@pytest.mark.parametrize("mode", [ReturnMode.STRONGEST, ReturnMode.DUAL])
def test_a_thinned_packet_has_the_same_layout_and_no_returns_with_the_baseline_where_nothing_is_reported(mode):
    sequences = 24 // mode.returns
    shape = (mode.returns, sequences, 16)
    random = np.random.default_rng(6)
    distance, reflectivity = random.integers(250, 60_000, shape, np.uint16), random.integers(100, 256, shape, np.uint8)
    azimuth = np.arange(sequences) * 20
    reported = report(DecimationSpec(beam_step=2, ray_step=3), first=0, sequences=sequences)

    def packet(distance, reflectivity):
        payload = np.zeros(1206, np.uint8)
        encode_data_packet(azimuth, distance, reflectivity, 42, factory_bytes(mode, Product.VLP_16), payload)
        return decode_data_packets(payload[None])[0]

    before = packet(distance, reflectivity)
    withhold_firings(reported, BASELINE, distance, reflectivity)
    after = packet(distance, reflectivity)
    for name in ("timestamp", "return_mode", "product"):
        assert after[name] == before[name]
    np.testing.assert_array_equal(after["blocks"]["azimuth"], before["blocks"]["azimuth"])
    # [block, sequence of block, channel], where dual mode has two blocks of the same sequences
    stays = np.repeat(reported.T.reshape(-1, 2, 16), mode.returns, axis=0)
    was, now = (blocks["channels"].reshape(12, 2, 16) for blocks in (before["blocks"], after["blocks"]))
    np.testing.assert_array_equal(now["distance"], np.where(stays, was["distance"], 0))
    np.testing.assert_array_equal(now["reflectivity"], np.where(stays, was["reflectivity"], BASELINE))
    assert np.count_nonzero(now["distance"]) == mode.returns * reported.sum() == mode.returns * 8 * sequences // 3


def test_firings_are_thinned_whether_or_not_anything_comes_back():
    # The array function on a decoded cloud counts only the points there are: where every second firing misses, it keeps other ones.
    reported = report(DecimationSpec(ray_step=2), first=0, sequences=100)[0]
    hit = np.arange(100) % 2 == 1
    azimuth = np.arange(100) * 0.2
    assert (reported & hit).sum() == 0
    assert decimate_rays(azimuth[hit], np.zeros(50, int), 2).mask.sum() == 25


def test_the_how_tos_examples_run_and_give_what_it_says():
    names = {}
    for example_code in re.findall(r"```python\n(.*?)```", HOW_TO.read_text(encoding="utf-8"), re.DOTALL):
        exec(example_code, names)  # noqa: S102
    assert names["spurious"].sum() == 4
    assert len(names["points"]) == 8 * 600 + 4
    assert names["reported"].sum() == 8 * 8
