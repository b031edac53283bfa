"""What a lidar measures over a heightmap, against each ray met with each triangle that Bullet would make, one by one."""

import math

import numpy as np

from tests.unit.assets.test_heightmaps import GREY, save, stated
from tests.unit.gazebo.worlds import lidars_of, scanner, thing

SIZE = (40.0, 20.0, 8.0)


def triangles(at):
    """Bullet's, zigzag: the first row of cells is in the south, and cut from south-west to north-east."""
    south_up, found = at[::-1], []
    for j in range(len(at) - 1):
        for x in range(len(at) - 1):
            sw, se, nw, ne = south_up[j, x], south_up[j, x + 1], south_up[j + 1, x], south_up[j + 1, x + 1]
            found += [(sw, se, ne), (sw, ne, nw)] if j % 2 == 0 else [(sw, se, nw), (se, ne, nw)]
    return found


def met(start, direction, corners):
    """Along a ray to a plane through three points, where that lies between them; else infinity."""
    a, b, c = corners
    solved = np.linalg.solve(np.column_stack([-direction, b - a, c - a]), start - a)
    inside = solved[0] > 0 and solved[1] >= 0 and solved[2] >= 0 and solved[1] + solved[2] <= 1
    return solved[0] if inside else math.inf


def test_rays_meet_the_ground_that_gazebos_physics_has(tmp_path):
    save(tmp_path / "ground.png", GREY, np.uint8)
    ground = thing("ground", f"<heightmap><uri>ground.png</uri><size>{' '.join(map(str, SIZE))}</size></heightmap>", "1 2 3 0 0 0")
    robot = thing("robot", "", "3 1 14 0 0.9 0.3", inner=scanner(columns=15, rows=9, azimuth=(-1.2, 1.2), elevation=(-0.8, 0.5), span=(0.1, 60.0)))
    [lidar] = lidars_of(tmp_path / "world.sdf", ground, robot)
    cut = triangles(stated(GREY / 255, GREY.max() / 255, SIZE, 1) + np.array([1.0, 2.0, 3.0]))
    cp, sp, cy, sy = math.cos(0.9), math.sin(0.9), math.cos(0.3), math.sin(0.3)
    turn = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]]) @ np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    expected = []
    for elevation in np.linspace(-0.8, 0.5, 9):
        for azimuth in np.linspace(-1.2, 1.2, 15):
            ray = turn @ (math.cos(elevation) * math.cos(azimuth), math.cos(elevation) * math.sin(azimuth), math.sin(elevation))
            expected.append(min(met(np.array([3.0, 1.0, 14.0]), ray, corners) for corners in cut))
    assert 60 < np.isfinite(expected).sum() < 135
    np.testing.assert_allclose(lidar.true_ranges_m(0), expected, atol=1e-3)
