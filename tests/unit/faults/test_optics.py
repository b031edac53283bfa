"""Faults of the optics, as another decoder and the bytes show them."""

import numpy as np
import pytest

import hilsim
from tests.unit.faults.rigs import data, decoded, records, room

ROTATION = 76
"""Packets of a turn at 600 rpm."""


@pytest.fixture
def both(tmp_path):
    """Payloads without and with faults."""

    def made(*tables, keys="", stop_s=0.2):
        return data(room(tmp_path, keys=keys), stop_s=stop_s), data(room(tmp_path, *tables, keys=keys), stop_s=stop_s)

    return made


def rings(payloads):
    """Number of points of each ring, by velodyne-decoder."""
    return np.bincount(decoded(payloads)[:, 6].astype(int), minlength=16)


def laser_of_ring(ring):
    """Laser of a ring of a VLP-16: rings rise, lasers alternate between the halves (manual, page 54)."""
    return 2 * ring if ring < 8 else 2 * ring - 15


def test_a_dead_channel_has_no_point_and_the_others_all_of_theirs(both):
    clean, faulty = (rings(payloads) for payloads in both({"kind": "dead_channel", "channels": [4]}))
    ring = next(ring for ring in range(16) if laser_of_ring(ring) == 4)
    assert clean[ring] > 1000
    assert faulty[ring] == 0
    assert np.delete(faulty, ring).tolist() == np.delete(clean, ring).tolist()


def test_a_dead_channel_is_the_byte_of_a_firing_without_a_return(both):
    _, faulty = both({"kind": "dead_channel", "channels": [4]})
    _, distance, reflectivity = records(faulty)
    assert (distance[..., 4] == 0).all()
    assert (reflectivity[..., 4] == 20).mean() > 0.9  # an ideal unit's noise floor


def test_a_weak_channel_sees_less_far_and_reports_less(both):
    clean, faulty = (records(payloads) for payloads in both({"kind": "weak_channel", "channels": [15], "transmission": 0.3}))
    clean_m, faulty_m = clean[1][..., 15], faulty[1][..., 15]
    assert 0.5 < (faulty_m > 0).sum() / (clean_m > 0).sum() < 1.0
    seen = (clean_m > 0) & (faulty_m > 0) & (clean[2][..., 15] > 40)
    ratio = faulty[2][..., 15][seen].mean() / clean[2][..., 15][seen].mean()
    assert ratio == pytest.approx(0.09, abs=0.02)  # the light passes twice: 0.3 squared


def test_an_ageing_channel_loses_its_points_in_the_ramp(both):
    _, faulty = both({"kind": "weak_channel", "channels": [4], "transmission": 0.0, "ramp_s": 0.2})
    _, distance, reflectivity = records(faulty)
    thirds = [part.mean() for part in np.array_split(np.where(distance[..., 4] > 0, reflectivity[..., 4], 0), 3)]
    assert thirds[0] > thirds[1] > thirds[2]


def test_a_blocked_sector_is_empty_and_all_else_as_it_was(both):
    clean, faulty = (decoded(payloads) for payloads in both({"kind": "blocked_sector", "azimuth_deg": [350.0, 40.0]}))
    # velodyne-decoder's x is forward, y left: the azimuth is clockwise from forward
    clean_deg, faulty_deg = (np.degrees(np.arctan2(-points[:, 1], points[:, 0])) % 360.0 for points in (clean, faulty))
    inside = (clean_deg - 350.0) % 360.0 < 50.0
    assert inside.mean() == pytest.approx(50.0 / 360.0, rel=0.3)
    assert ((faulty_deg - 350.2) % 360.0 > 49.5).all()
    assert abs(len(faulty) - (~inside).sum()) < 0.01 * len(clean)


def test_a_sector_of_a_few_lasers_is_a_rectangle(both):
    table = {"kind": "blocked_sector", "azimuth_deg": [100.0, 200.0], "elevation_deg": [-4.0, 4.0]}
    (azimuth, clean, _), (_, faulty, _) = (records(payloads) for payloads in both(table))
    changed = clean != faulty
    lasers = np.unique(np.nonzero(changed)[3])
    elevation_deg = np.where(lasers % 2 == 0, lasers - 15, lasers)
    assert set(np.abs(elevation_deg)) == {1, 3}
    blocks = azimuth[np.nonzero(changed)[0], np.nonzero(changed)[1]]
    assert (blocks.min(), blocks.max()) == pytest.approx((10_000, 20_000), abs=60)


@pytest.mark.parametrize("kind", ["dirty_window", "iced_window"])
def test_dirt_and_ice_take_the_far_and_the_dark_first(both, kind):
    clean, faulty = (records(payloads)[1] for payloads in both({"kind": kind, "transmission": 0.05}))
    near, far = (clean > 0) & (clean < 5.0), clean > 9.0
    assert (faulty[far] == 0).mean() > (faulty[near] == 0).mean()


def test_drops_run_down_the_window(both):
    table = {"kind": "wet_window", "drops": 1, "drop_deg": 8.0, "transmission": 0.0, "speed_dps": 10.0, "elevation_deg": [-15.0, 15.0], "seed": 1}
    clean, faulty = (records(payloads)[1] for payloads in both(table, stop_s=0.5))
    gone = (clean > 0) & (faulty == 0)
    lasers = np.arange(16)
    elevation_deg = np.where(lasers % 2 == 0, lasers - 15, lasers)
    heights = [np.repeat(elevation_deg, turn.reshape(-1, 16).sum(axis=0)).mean() for turn in np.array_split(gone[: 4 * ROTATION], 4)]
    assert gone.any(axis=(0, 1, 2)).sum() < 8  # one drop covers a few lasers
    assert np.all(np.diff(heights) < 0.0)
    assert heights[0] - heights[3] == pytest.approx(3.0, abs=1.5)  # 10 degrees a second for 0.3 s


def test_glare_scatters_a_share_of_the_points_and_takes_none(both):
    clean, faulty = (records(payloads)[1] for payloads in both({"kind": "glare", "share": 0.05, "scatter_m": 0.5}))
    seen = (clean > 2.5) & (faulty > 0)
    off = (faulty - clean)[seen]
    assert (np.abs(off) > 1e-3).mean() == pytest.approx(0.05, abs=0.005)
    assert off[np.abs(off) > 1e-3].std() == pytest.approx(0.5, rel=0.1)


def test_crosstalk_is_single_points_anywhere_up_to_a_range(both):
    clean, faulty = (records(payloads)[1] for payloads in both({"kind": "crosstalk", "share": 0.2, "max_range_m": 5.0}))
    changed = np.abs(clean - faulty) > 0.1
    assert 0.05 < changed.mean() < 0.2  # the true echo is stronger in the others
    assert (faulty[changed] < 5.1).mean() > 0.98  # a firing whose echo was lost may show it beside the other pulse
    neighbours = changed[:, :, 0, :][:, 1:] & changed[:, :, 0, :][:, :-1]
    assert neighbours.mean() == pytest.approx(changed.mean() ** 2, rel=0.3)


def test_jamming_hides_every_surface_of_its_sector(both):
    clean, faulty = (records(payloads)[1] for payloads in both({"kind": "jamming", "max_range_m": 50.0}))
    assert (clean == faulty).mean() < 0.02
    ranges = faulty[faulty > 1.0]
    counts, _ = np.histogram(ranges, bins=10, range=(1.0, 50.0))
    assert counts.min() > 0.5 * counts.max()


def test_a_spoofed_surface_is_a_wall_at_one_range(both):
    table = {"kind": "spoofed_surface", "azimuth_deg": [10.0, 30.0], "range_m": 3.0, "reflectivity": 5.0}
    clean, faulty = (records(payloads)[1] for payloads in both(table))
    changed = clean != faulty
    assert changed.mean() == pytest.approx(20.0 / 360.0, rel=0.05)
    assert faulty[changed].mean() == pytest.approx(3.0, abs=0.01)
    assert faulty[changed].std() < 0.05


def test_a_removed_surface_is_no_return(both):
    clean, faulty = (records(payloads)[1] for payloads in both({"kind": "removed_surface", "azimuth_deg": [10.0, 30.0]}))
    assert (faulty[clean != faulty] == 0).all()
    assert (clean != faulty).mean() == pytest.approx(20.0 / 360.0, rel=0.1)


def test_a_range_bias_is_the_same_for_all_and_one_of_its_own_for_each_laser(both):
    clean, faulty = (records(payloads)[1] for payloads in both({"kind": "range_bias", "bias_m": 0.05}))
    assert np.abs((faulty - clean)[clean > 0] - 0.05).max() < 0.003
    clean, faulty = (records(payloads)[1] for payloads in both({"kind": "range_bias", "bias_m": 0.0, "spread_m": 0.05}))
    of_laser = [np.unique(np.round((faulty - clean)[..., laser][(clean > 0)[..., laser]], 3)) for laser in range(16)]
    assert all(np.ptp(each) < 0.003 for each in of_laser if each.size)
    assert len({float(each[0]) for each in of_laser if each.size}) > 8


def test_range_noise_scatters_every_point(both):
    clean, faulty = (records(payloads)[1] for payloads in both({"kind": "range_noise", "scatter_m": 0.1}))
    assert (faulty - clean)[(clean > 1.5) & (faulty > 0)].std() == pytest.approx(0.1, rel=0.05)


def test_lost_calibration_is_stripes_of_reflectivity(both):
    (_, clean_m, clean), (_, faulty_m, faulty) = (records(payloads) for payloads in both({"kind": "reflectivity_lost", "spread": 0.4}))
    assert np.array_equal(clean_m, faulty_m)
    bright = (clean > 20) & (clean < 90) & (faulty < 255)
    ratios = [(faulty[..., laser][bright[..., laser]] / clean[..., laser][bright[..., laser]]) for laser in range(16)]
    means = np.array([each.mean() for each in ratios if each.size > 100])
    assert max(each.std() for each in ratios if each.size > 100) < 0.03
    assert means.std() > 0.1


def test_mixed_firmware_puts_records_into_the_places_of_other_lasers(both):
    clean, faulty = (records(payloads) for payloads in both({"kind": "mixed_firmware", "channels_by": 3}))
    assert np.array_equal(np.roll(clean[1], -3, axis=-1), faulty[1])
    assert np.array_equal(np.roll(clean[2], -3, axis=-1), faulty[2])


@pytest.mark.parametrize("kind", ["encoder_stuck", "encoder_jump", "encoder_overflow"])
def test_an_encoder_falsifies_azimuths_alone(both, kind):
    (clean, *returns), (faulty, *same) = (records(payloads) for payloads in both({"kind": kind, "at_s": 0.1}, stop_s=0.35))
    assert all(map(np.array_equal, returns, same))
    before, after = clean[:74], clean[77:]
    assert np.array_equal(before, faulty[:74])
    faulty = faulty[77:]
    if kind == "encoder_stuck":
        assert len(np.unique(faulty)) == 1
        assert (abs(faulty[0, 0] - 0) + 18_000) % 36_000 - 18_000 == pytest.approx(0, abs=60)  # where it was at 0.1 s, a turn after the start
    if kind == "encoder_jump":
        assert ((faulty - after) % 36_000 == 200).all()
    if kind == "encoder_overflow":
        assert set(np.unique(faulty - after)) == {0, 36_000}
        assert 36_000 <= faulty.max() < 36_100


def test_a_fault_ends_and_packets_are_those_without_it(both):
    tables = [{"kind": kind, "at_s": 0.05, "for_s": 0.05} for kind in ("jamming", "range_noise", "encoder_jump", "wet_window")]
    clean, faulty = both(*tables)
    same = [one == other for one, other in zip(clean, faulty, strict=True)]
    first, last = same.index(False), len(same) - 1 - same[::-1].index(False)
    assert all(same[:first] + same[last + 1 :])
    assert (first * 1_327_104 / 1e9, (last + 1) * 1_327_104 / 1e9) == pytest.approx((0.05, 0.1), abs=0.003)
    assert not any(same[first : last + 1])


def test_faults_compose_in_one_order_whatever_their_order_in_the_file(tmp_path):
    tables = [{"kind": kind} for kind in ("range_noise", "mixed_firmware", "reflectivity_lost", "dirty_window", "crosstalk", "encoder_jump")]
    assert data(room(tmp_path, *tables)) == data(room(tmp_path, *reversed(tables)))


def test_a_share_of_the_firings_is_befallen_each_by_itself(both):
    clean, faulty = (records(payloads)[1] for payloads in both({"kind": "blocked_sector", "share": 0.25}))
    seen = clean > 0
    assert (faulty[seen] == 0).mean() == pytest.approx(0.25, abs=0.005)


def ranges(points):
    return np.sqrt(points["x"] ** 2 + points["y"] ** 2 + points["z"] ** 2)


@pytest.mark.parametrize(("profile", "ports"), [("os1-64", {"data_port": 7502, "position_port": 7503}), ("hr80w-like", {})])
def test_other_families_are_broken_alike(profile, ports):
    sensor = {"name": "lidar", "profile": profile, "sub_rays": 1, **({"network": ports} if ports else {})}
    rig = {"name": "rig", "scene": {"box": [{"position_m": [9.0, 0.0, 0.0], "size_m": [1.0, 30.0, 9.0]}]}, "sensor": [sensor]}
    clean = hilsim.Emulator(rig).points(0.0, 0.2)
    blocked = hilsim.Emulator(rig, faults=[{"kind": "blocked_sector", "azimuth_deg": [0.0, 90.0]}]).points(0.0, 0.2)
    biased = hilsim.Emulator(rig, faults=[{"kind": "range_bias", "bias_m": 0.5}]).points(0.0, 0.2)
    assert 0 < len(blocked) < len(clean)
    assert len(biased) == len(clean)
    assert np.mean(ranges(biased) - ranges(clean)) == pytest.approx(0.5, abs=0.01)
