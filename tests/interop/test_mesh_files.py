"""A mesh of every format, from the file to points that an independent decoder reads at the mesh's place."""

import numpy as np
import pytest
import trimesh
from trimesh.exchange.gltf import export_gltf
from velodyne_decoder import Config, Model, read_pcap

from hilsim.config.rig import load_rig
from hilsim.offline.record import record
from tests.support import write_rig

RIG = """
name = "cube"
[[scene.mesh]]
file = "cube.{suffix}"
position_m = [8.0, 0.0, 0.0]
up = "z"
[[sensor]]
name = "lidar"
unit = "ideal"
override = {{ range_noise_m = 0.0, detector = {{}}, signal = {{}} }}
"""


def write_cube(directory, suffix):
    """A cube of 2 m; a ``.gltf`` comes with its buffers beside it."""
    cube = trimesh.creation.box((2.0, 2.0, 2.0))
    if suffix != "gltf":
        cube.export(directory / f"cube.{suffix}")
        return
    for name, data in export_gltf(trimesh.Scene(cube)).items():
        (directory / name.replace("model.gltf", "cube.gltf")).write_bytes(data)


@pytest.mark.parametrize("suffix", ["obj", "ply", "stl", "dae", "glb", "gltf"])
def test_a_cube_is_seen_where_it_is(tmp_path, suffix):
    write_cube(tmp_path, suffix)
    rig = load_rig(write_rig(tmp_path, RIG.format(suffix=suffix)))
    path = tmp_path / "out.pcap"
    record(rig, path, duration_ns=300_000_000, utc_epoch_ns=0, batch_ms=100, threads=1, progress=lambda _: None)
    scans = [points for _, points in read_pcap(str(path), Config(model=Model.VLP16, min_range=0.0), as_pcl_structs=True)]
    points = np.concatenate(scans)
    assert points.size > 500
    # The decoder's x is ahead, y left, z up; the beams meet the face at x = 7 m, half a metre of it above and below, a metre to each side.
    np.testing.assert_allclose(points["x"], 7.0, atol=0.004)
    assert points["y"].min() == pytest.approx(-1.0, abs=0.03)
    assert points["y"].max() == pytest.approx(1.0, abs=0.03)
    assert np.abs(points["z"]).max() <= 1.0
