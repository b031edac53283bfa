"""Packets of a VLS-128, whose four banks of lasers share a firing sequence: what each return mode fills, and the ground truth of each record."""

import numpy as np
import pytest

from hilsim.api.labelled import points_with_rows
from hilsim.assembly.build import build_lidar, build_scenery
from hilsim.config.rig import load_rig
from hilsim.emulator.truth import packets_with_truth
from hilsim.families.velodyne.protocol.data import DATA_PACKET_DTYPE
from tests.compiled import compiled_only
from tests.support import ROOM, write_rig

TURN = 1809
"""Dual packets of a turn at 600 rpm."""
FLAGS = [0xEEFF, 0xDDFF, 0xCCFF, 0xBBFF]


@pytest.fixture
def rendered(tmp_path):
    """Lidar, payloads and ground truth of a room: 40 packets, or a whole turn of dual ones, in which some beams meet two surfaces."""

    def make(mode):
        text = ROOM.replace("sub_rays = 1\n", "").replace(
            'name = "lidar"', f'name = "lidar"\nprofile = "vls128"\nsub_rays = 7\nreturn_mode = "{mode}"'
        )
        rig = load_rig(write_rig(tmp_path, text))
        lidar = build_lidar(rig, 0, build_scenery(rig), utc_epoch_ns=0, frames=False)
        batch, truth = packets_with_truth(lidar, 0, TURN if mode == "dual" else 40)
        return lidar, np.ascontiguousarray(batch.payload[:, : DATA_PACKET_DTYPE.itemsize]), truth

    return make


@compiled_only
def test_a_dual_packet_holds_one_firing_sequence_in_pairs_of_blocks_and_padding(rendered):
    lidar, payloads, _ = rendered("dual")
    packets = payloads.view(DATA_PACKET_DTYPE)[:, 0]
    blocks = packets["blocks"]
    assert (blocks["flag"] == [*np.repeat(FLAGS, 2), 0, 0, 0, 0]).all()
    assert (blocks["azimuth"] == blocks["azimuth"][:, :1]).all()
    assert not blocks["channels"][:, 8:]["distance"].any()
    assert not blocks["channels"][:, 8:]["reflectivity"].any()
    assert set(np.diff(packets["timestamp"].astype(int)).tolist()) <= {55, 56}
    assert lidar.setting.packet_rate_hz == pytest.approx(1e6 / 55.296)
    last, strongest = blocks["channels"]["distance"][:, 0:8:2].astype(int), blocks["channels"]["distance"][:, 1:8:2].astype(int)
    assert (last >= strongest).all()
    assert 0 < (last != strongest).mean() < 0.5


@compiled_only
@pytest.mark.parametrize("mode", ["strongest", "last", "dual"])
def test_every_point_of_each_bank_has_its_row_of_ground_truth(rendered, mode):
    lidar, payloads, truth = rendered(mode)
    points, row = points_with_rows(lidar, 0, payloads, truth)
    assert points.size > 1000
    spec = lidar.setting.spec
    ring = np.argsort(spec.geometry.elevation_order)[truth.channel[row]]
    assert (points["ring"] == ring).all()
    np.testing.assert_allclose(points["range"], truth.distance[row] * 0.004, atol=1e-4)
    assert set(points["ring"].tolist()) == set(range(128))
