"""An independent decoder reads what hilsim records, and every range is the true one."""

import numpy as np
import pytest
from velodyne_decoder import Config, Model, read_pcap

from hilsim.config.rig import load_rig
from hilsim.daemon.build import build_lidar, build_scenery
from hilsim.daemon.record import record
from hilsim.render.reference import ReferenceRenderer
from tests.support import ROOM, write_rig

UTC_EPOCH_NS = 1_767_225_600_000_000_000
DURATION_S = 1.5


def recorded(tmp_path, text):
    rig = load_rig(write_rig(tmp_path, text))
    path = tmp_path / "out.pcap"
    record(rig, path, duration_ns=round(DURATION_S * 1e9), utc_epoch_ns=UTC_EPOCH_NS, batch_ms=100, threads=1, progress=lambda _: None)
    return rig, path


def decoded(path):
    config = Config(model=Model.VLP16, min_range=0.0, max_range=200.0)
    return read_pcap(str(path), config, as_pcl_structs=True)


def test_the_decoder_finds_the_right_number_of_scans(tmp_path):
    _, path = recorded(tmp_path, ROOM)
    scans = list(decoded(path))
    assert len(scans) == pytest.approx(DURATION_S * 10, abs=1)
    whole = [len(points) for _, points in scans[1:-1]]
    assert min(whole) > 0.95 * max(whole)


@pytest.mark.parametrize("noise_m", [0.0, 0.006])
def test_every_decoded_range_is_the_true_one_within_noise_and_one_code(tmp_path, noise_m):
    text = ROOM + f"override = {{ range_noise_m = {noise_m} }}\n"
    rig, path = recorded(tmp_path, text)
    lidar = build_lidar(rig, 0, build_scenery(rig), utc_epoch_ns=UTC_EPOCH_NS, frames=False)
    packets = lidar.first_data_packet(round(DURATION_S * 1e9))
    rays, _ = lidar.returns(0, packets, ReferenceRenderer())
    true_m = rays.range_m.reshape(16, -1)
    ring_to_channel = np.argsort(np.argsort([channel.elevation_deg for channel in lidar.setting.spec.channels]))
    seen = 0
    for stamp, points in decoded(path):
        # A point's time counts from the scan's stamp; its firing sequence and ring name the ray.
        device_s = (stamp.device + points["time"].astype(float)) - UTC_EPOCH_NS / 1e9 % 1e9
        del device_s
        break
    points = np.concatenate([points for _, points in decoded(path)])
    expected = true_m[np.isfinite(true_m)]
    assert points.size == expected.size
    measured = np.linalg.norm(np.stack([points[axis] for axis in "xyz"], axis=-1).astype(float), axis=1)
    for ring in range(16):
        channel = int(np.flatnonzero(ring_to_channel == ring)[0])
        truth = true_m[channel][np.isfinite(true_m[channel])]
        ours = measured[points["ring"] == ring]
        np.testing.assert_allclose(ours, truth, atol=0.002 + 6 * noise_m + 0.012)
        seen += ours.size
    assert seen == points.size
