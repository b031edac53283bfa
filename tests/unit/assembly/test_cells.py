"""Cells of directions of standing sensors: made where the CPU gains by them, and without an effect on bytes."""

import pytest

from hilsim.assembly import build
from hilsim.config.rig import load_rig
from tests.compiled import compiled_only
from tests.support import write_rig

RIG = """
name = "yard"
seed = 4
[[scene.box]]
position_m = [8.0, 0.0, 0.0]
size_m = [1.0, 30.0, 6.0]
[[sensor]]
name = "roof"
profile = "vlp16"
"""


def lidar(tmp_path, **more):
    rig = load_rig(write_rig(tmp_path, RIG))
    return build.build_lidar(rig, 0, build.build_scenery(rig), utc_epoch_ns=0, frames=False, **more)


@compiled_only
@pytest.mark.parametrize("is_fast", [True, False])
def test_a_standing_sensor_has_cells_only_where_packets_of_rays_are_not_faster(tmp_path, monkeypatch, is_fast):
    monkeypatch.setattr(build, "fit_one_register", lambda: is_fast)
    standing = lidar(tmp_path, is_for_long=True)
    assert (standing.plan.beam_cells.cells.first.size > 1) is not is_fast
    assert standing.data_packets(0, 20).payload.tobytes() == lidar(tmp_path).data_packets(0, 20).payload.tobytes()
