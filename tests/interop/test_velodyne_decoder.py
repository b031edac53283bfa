"""An independent decoder reads what hilsim records, and every range is the true one."""

import numpy as np
import pytest
from velodyne_decoder import Config, Model, read_pcap

import hilsim
from hilsim.assembly.build import build_lidar, build_scenery
from hilsim.config.rig import load_rig
from hilsim.offline.record import record
from tests.depth import fewer
from tests.renderers import CpuRenderer
from tests.support import ROOM, write_rig

UTC_EPOCH_NS = 1_767_225_600_000_000_000
DURATION_S = 1.5


def recorded(tmp_path, text):
    rig = load_rig(write_rig(tmp_path, text))
    path = tmp_path / "out.pcap"
    record(rig, path, duration_ns=round(DURATION_S * 1e9), utc_epoch_ns=UTC_EPOCH_NS, batch_ms=100, threads=1, progress=lambda _: None)
    return rig, path


def decoded(path, model=Model.VLP16):
    config = Config(model=model, min_range=0.0, max_range=200.0)
    return read_pcap(str(path), config, as_pcl_structs=True)


def test_the_decoder_finds_the_right_number_of_scans(tmp_path):
    _, path = recorded(tmp_path, ROOM)
    scans = list(decoded(path))
    assert len(scans) == pytest.approx(DURATION_S * 10, abs=1)
    whole = [len(points) for _, points in scans[1:-1]]
    assert min(whole) > 0.95 * max(whole)


@pytest.mark.parametrize("noise_m", [0.0, 0.006])
def test_every_decoded_range_is_the_true_one_within_noise_and_one_code(tmp_path, noise_m):
    text = ROOM.replace('name = "lidar"', f'name = "lidar"\noverride = {{ range_noise_m = {noise_m}, detector = {{}}, signal = {{}} }}')
    rig, path = recorded(tmp_path, text)
    lidar = build_lidar(rig, 0, build_scenery(rig), utc_epoch_ns=UTC_EPOCH_NS, frames=False)
    rays = lidar.firings(0, lidar.first_data_packet(round(DURATION_S * 1e9)), CpuRenderer()).rays
    true_m = rays.range_m.reshape(16, -1)
    points = np.concatenate([points for _, points in decoded(path)])
    assert points.size == np.count_nonzero(np.isfinite(true_m))
    # The decoder adds each laser's vertical offset to z after the conversion, as the manual says: take it off to get the range back.
    by_elevation = np.argsort([channel.elevation_deg for channel in lidar.setting.spec.channels])
    for ring, channel in enumerate(by_elevation):
        of_ring = points[points["ring"] == ring]
        offset_m = lidar.setting.spec.channels[channel].vertical_offset_mm / 1000
        coordinates = np.stack([of_ring["x"], of_ring["y"], of_ring["z"] - offset_m], axis=-1).astype(float)
        truth = true_m[channel][np.isfinite(true_m[channel])]
        np.testing.assert_allclose(np.linalg.norm(coordinates, axis=1), truth, atol=0.002 + 6 * noise_m, err_msg=f"ring {ring}")


def test_every_decoded_point_of_an_hdl32e_is_as_far_away_as_the_true_one(tmp_path):
    text = ROOM.replace('name = "lidar"', 'name = "lidar"\nprofile = "hdl32e"\noverride = { range_noise_m = 0.0, detector = {}, signal = {} }')
    rig, path = recorded(tmp_path, text)
    lidar = build_lidar(rig, 0, build_scenery(rig), utc_epoch_ns=UTC_EPOCH_NS, frames=False)
    rays = lidar.firings(0, lidar.first_data_packet(round(DURATION_S * 1e9)), CpuRenderer()).rays
    true_m = rays.range_m.reshape(32, -1)
    points = np.concatenate([points for _, points in decoded(path, Model.HDL32E)])
    assert points.size == np.count_nonzero(np.isfinite(true_m))
    elevation_deg = np.array(lidar.setting.spec.geometry.elevation_deg)
    for ring, channel in enumerate(np.argsort(elevation_deg)):
        of_ring = points[points["ring"] == ring]
        # On the level alone: the decoder raises each laser by a height of its own, of which no manual of the HDL-32E speaks.
        level_m = np.hypot(of_ring["x"].astype(float), of_ring["y"].astype(float))
        truth = true_m[channel][np.isfinite(true_m[channel])] * np.cos(np.radians(elevation_deg[channel]))
        np.testing.assert_allclose(level_m, truth, atol=0.002, err_msg=f"ring {ring}")


@pytest.mark.extended
@pytest.mark.parametrize(
    ("profile", "model", "settings"),
    [
        ("puck-hi-res", Model.PuckHiRes, ""),
        ("vlp32c", Model.VLP32C, ""),
        ("vlp32c", Model.VLP32C, "field_of_view_deg = [270, 90]\n"),
        *fewer([], [("vls128", Model.AlphaPrime, "")]),
        ("vls128", Model.AlphaPrime, 'return_mode = "dual"\n'),
    ],
)
def test_every_decoded_point_of_a_model_is_where_hilsims_own_decoder_and_the_truth_have_it(tmp_path, profile, model, settings):
    noiseless = f'name = "lidar"\nprofile = "{profile}"\n{settings}override = {{ range_noise_m = 0.0, detector = {{}}, signal = {{}} }}'
    rig, path = recorded(tmp_path, ROOM.replace('name = "lidar"', noiseless))
    lidar = build_lidar(rig, 0, build_scenery(rig), utc_epoch_ns=UTC_EPOCH_NS, frames=False)
    rays = lidar.firings(0, lidar.first_data_packet(round(DURATION_S * 1e9)), CpuRenderer()).rays
    lasers = lidar.setting.spec.laser_count
    true_m = rays.range_m.reshape(lasers, -1)
    points, own = np.concatenate([points for _, points in decoded(path, model)]), hilsim.decode(path)
    assert points.size == own.size == np.count_nonzero(np.isfinite(true_m))
    for ring, channel in enumerate(lidar.setting.spec.geometry.elevation_order):
        of_ring, of_own = points[points["ring"] == ring], own[own["ring"] == ring]
        truth = true_m[channel][np.isfinite(true_m[channel])]
        np.testing.assert_allclose(of_own["range"], truth, atol=0.002 * (1 if lasers == 16 else 2) / 2 + 1e-4, err_msg=f"ring {ring}")
        # On the level alone: the decoder raises each laser of some models by a height of its own. At the ends of packets it takes another
        # rate of the head.
        own_m, decoder_m = np.stack([of_own["x"], of_own["y"]], axis=1), np.stack([-of_ring["y"], of_ring["x"]], axis=1)
        away_m = np.linalg.norm(own_m - decoder_m, axis=1)
        assert (away_m < 0.00025 * np.linalg.norm(own_m, axis=1)).mean() > 0.8, ring  # 0.014 degrees: of a VLS-128 it has the slots of rest elsewhere
        is_near = away_m < 0.0075 * np.linalg.norm(own_m, axis=1)
        assert is_near.all() or (settings and is_near.mean() > 0.97), ring  # beside a gap it interpolates across the gap
