"""A lidar that stands still casts its rays from lists of what each direction can meet: the same bytes, the same ground truth."""

import dataclasses

import numpy as np
import pytest

from hilsim.config.parse import read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.config.sensor_profiles import parse_profile
from hilsim.emulator.planning import build_beam_cells
from hilsim.emulator.truth import packets_with_truth
from hilsim.geometry.poses import mounting
from hilsim.geometry.tracks import fixed_track
from hilsim.scene.specs import SceneSpec
from hilsim.scene.street.street import street_objects
from hilsim.scene.world import build_world
from hilsim.vehicle.platform import build_platform
from tests.compiled import compiled_only
from tests.unit.emulator.optical_scenes import still_lidar

pytestmark = [pytest.mark.extended, compiled_only]

PLACE = mounting((-3.8, -25.0, 0.0), (1.5, -2.0, 71.0))
MOUNT = {"mount_position_m": (0.3, 0.1, 1.9), "mount_rotation_deg": (0.5, 4.0, 30.0)}


@pytest.fixture(scope="module")
def street():
    return build_world(street_objects(SceneSpec(generator="street")))


def in_street(street, profile, **setting):
    spec = parse_profile(read_toml(profiles_directory() / "sensors" / f"{profile}.toml"), profile)
    lidar = still_lidar([], spec, **MOUNT, **setting)
    return dataclasses.replace(lidar, world=street, platform=build_platform(fixed_track(PLACE)))


@pytest.mark.parametrize(
    ("profile", "setting"),
    [("vlp16", {}), ("vlp16", {"sub_rays": 7, "return_mode": "dual"}), ("hr80w-like", {}), ("hr80t-like", {"sub_rays": 7, "return_mode": "dual"})],
)
def test_packets_and_truth_are_the_same_from_cells_as_from_the_trees(street, profile, setting):
    lidar = in_street(street, profile, **setting)
    quick = dataclasses.replace(lidar, cells=build_beam_cells(lidar.setting, street, PLACE, seed=lidar.seed))
    packets, truth = packets_with_truth(lidar, 3, 150)
    same, same_truth = packets_with_truth(quick, 3, 150)
    np.testing.assert_array_equal(packets.payload, same.payload)
    assert truth.range_m.size > 10_000
    for name, mine, theirs in zip(truth._fields, truth, same_truth, strict=True):
        np.testing.assert_array_equal(mine, theirs, err_msg=name)


def test_every_beam_has_a_cell(street):
    for profile in ("vlp16", "hr80w-like"):
        lidar = in_street(street, profile)
        quick = dataclasses.replace(lidar, cells=build_beam_cells(lidar.setting, street, PLACE, seed=lidar.seed))
        workspace = quick.firings(0, 80, _Nothing())
        assert workspace.rays.cell.size == workspace.rays.range_m.size
        assert workspace.rays.cell.min() >= 0
        assert np.unique(workspace.rays.cell).size > 5000


class _Nothing:
    """A renderer that sees nothing."""

    def cast_rays(self, world, origin_m, direction, time_ns, max_range_m, range_m, instance, triangle):  # noqa: ARG002 - the protocol's
        range_m[:] = np.inf
        instance[:] = triangle[:] = -1
