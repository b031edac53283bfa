"""Rays that test their cell's triangles hit what rays that walk the trees hit, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilsim.geometry.poses import Pose, mounting
from hilsim.geometry.rotations import matrix_from_quaternion
from hilsim.render.beams import cast_beams
from hilsim.render.cell_lists import build_cells, build_turning_cells
from hilsim.render.cells import NO_CELL, NO_CELLS, turning_cell
from hilsim.render.cpu import cast_rays
from hilsim.render.packets import NO_COSINE, packets_of
from hilsim.scene.materials import DEFAULTS
from hilsim.scene.mesh import Mesh
from hilsim.scene.primitives import box, plane
from hilsim.scene.specs import SceneSpec
from hilsim.scene.street.street import street_objects, street_platform_track
from hilsim.scene.world import SceneObject, build_world
from hilsim.sensor.optics.beam import build_beam
from hilsim.sensor.specs import BeamSpec
from tests.depth import examples, fewer
from tests.meshes import join_meshes

pytestmark = pytest.mark.extended

SECOND = 1_000_000_000
MAX_RANGE_M = 130.0
ELEVATIONS_DEG = np.arange(-15.0, 16.0, 2.0)
CHANNELS = len(ELEVATIONS_DEG)
RISE_M = np.linspace(-0.011, 0.011, CHANNELS)  # a channel's beam begins above or below the middle
LEVEL = (1.0, 0.0, 0.0, 0.0)
CONCRETE = DEFAULTS["concrete"]
SPOT = BeamSpec(divergence_h_mrad=3.0, divergence_v_mrad=1.5, window_h_mm=9.5, window_v_mm=12.7)


def heading(elevation_deg, azimuth_rad, orientation):
    """Unit directions ``float64[e, a, 3]`` of a sensor that is mounted somehow."""
    elevation, azimuth = np.meshgrid(np.radians(elevation_deg), azimuth_rad, indexing="ij")
    level = np.cos(elevation)
    seen = np.stack([level * np.sin(azimuth), level * np.cos(azimuth), np.sin(elevation)], axis=-1)
    return seen @ matrix_from_quaternion(orientation).T


class Standing:
    """A sensor that turns at one place: its cells, and beams from it."""

    def __init__(self, world, position_m, orientation=LEVEL, *, sub_rays=1, sectors=900, max_range_m=MAX_RANGE_M, spot=SPOT, most=32):
        self.pattern = build_beam(spot, sub_rays)
        self.world, self.orientation, self.sectors, self.max_range_m = world, orientation, sectors, max_range_m
        self.origin_m = np.array(position_m) + RISE_M[:, np.newaxis] * matrix_from_quaternion(orientation)[:, 2]
        footprint = self.pattern.width_m, self.pattern.spread
        self.cells = build_turning_cells(world, self.origin_m, orientation, np.radians(ELEVATIONS_DEG), sectors, max_range_m, *footprint, most=most)

    def beams(self, azimuth_rad):
        """Origins, directions of all channels' beams, and their cells."""
        azimuth = np.asarray(azimuth_rad)
        ahead = heading(ELEVATIONS_DEG, azimuth, self.orientation).reshape(-1, 3)
        cell = np.array([turning_cell(channel, turned, self.sectors) for channel in range(CHANNELS) for turned in azimuth], np.int32)
        begin = np.repeat(self.origin_m, len(azimuth), axis=0)
        across = np.cross(ahead, np.eye(3)[np.argmin(np.abs(ahead), axis=1)])
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        sides = np.stack([across, np.cross(across, ahead)], axis=1)
        origin = begin[:, np.newaxis] + self.pattern.offset_m @ sides
        direction = ahead[:, np.newaxis] + self.pattern.tangent @ sides
        direction /= np.linalg.norm(direction, axis=2, keepdims=True)
        return np.ascontiguousarray(origin.reshape(-1, 3)), direction.reshape(-1, 3).astype(np.float32), cell

    def cast(self, rays, *, time_ns=0, cells=None, world=None, travelled_m=0.0):
        """(range, instance, triangle), from the trees alone when ``cells`` is ``NO_CELLS``."""
        origin, direction, cell = rays
        count = len(origin)
        hits = np.empty(count, np.float32), np.empty(count, np.int32), np.empty(count, np.int32)
        times = np.broadcast_to(np.asarray(time_ns, np.int64), (count,)).copy()
        chosen = (NO_CELLS, NO_CELL) if cells is NO_CELLS else (cells or self.cells, cell)
        travelled = np.broadcast_to(np.asarray(travelled_m, np.float64), (count,)).copy()
        packets = packets_of(np.arange(count))
        cast_beams(
            world or self.world, packets, origin, direction, times, self.max_range_m, self.pattern.share.size, *chosen, travelled, *hits, NO_COSINE
        )
        return hits

    def assert_same(self, azimuth_rad, time_ns=0):
        """Equal hits with and without cells; returns the share of rays that hit something."""
        rays = self.beams(azimuth_rad)
        fast, slow = self.cast(rays, time_ns=time_ns), self.cast(rays, time_ns=time_ns, cells=NO_CELLS)
        for of_cells, of_trees in zip(fast, slow, strict=True):
            np.testing.assert_array_equal(of_cells, of_trees)
        return float(np.isfinite(slow[0]).mean())

    def served(self, azimuth_rad):
        """Share of the rays that hit something static which needed no walk: in a world whose trees are felled they still hit it."""
        rays = self.beams(azimuth_rad)
        nodes = self.world.node_bounds.copy()
        nodes[self.world.tile_root, :12] = 1e17
        felled = self.world._replace(node_bounds=nodes, node_links=nodes.view(np.int32))
        slow, fast = self.cast(rays, cells=NO_CELLS), self.cast(rays, world=felled)
        hit = (slow[1] >= 0) & (slow[1] < self.world.tile_count)
        return float((fast[2] == slow[2])[hit].mean())


@pytest.fixture(scope="module")
def street():
    return build_world(street_objects(SceneSpec(generator="street")))


def street_places(rng, count):
    """Places of a lidar in the street: over its lanes, and anywhere about them."""
    track = street_platform_track(SceneSpec(generator="street")).position_m
    place = track[rng.integers(0, len(track), count)] + rng.uniform(-6.0, 6.0, (count, 3)) * [1.0, 1.0, 0.0]
    return place + [0.0, 0.0, 1.0] * rng.uniform(0.3, 4.0, (count, 1))


def evenly(count=1800, first_deg=0.0):
    return np.radians(first_deg) + np.arange(count) * (2.0 * np.pi / count)


@pytest.mark.parametrize("sub_rays", [1, 7, 19])
def test_in_the_demo_street_all_hits_are_those_of_the_trees(street, sub_rays):
    rng = np.random.default_rng(sub_rays)
    for place in street_places(rng, {1: 12, 7: 4, 19: fewer(1, 4)}[sub_rays]):
        tilt = mounting((0.0, 0.0, 0.0), tuple(rng.uniform(-1.0, 1.0, 3) * [25.0, 25.0, 180.0])).orientation
        sensor = Standing(street, place, tilt, sub_rays=sub_rays)
        azimuth = rng.uniform(0.0, 2.0 * np.pi, 1800)
        time_ns = np.repeat(rng.integers(0, 60 * SECOND, CHANNELS * 1800), sub_rays)
        assert sensor.assert_same(azimuth, time_ns) > 0.2


@pytest.mark.parametrize("sub_rays", [1, 7])
def test_movers_are_met_before_and_behind_what_is_listed(random_world, sub_rays):
    for seed in range(fewer(3, 6)):
        world = random_world(seed, movers=8)
        sensor = Standing(world, (0.0, 0.0, 0.0), sub_rays=sub_rays)
        rng = np.random.default_rng(seed)
        time_ns = np.repeat(rng.integers(-SECOND, 3 * SECOND, CHANNELS * 1800), sub_rays)
        sensor.assert_same(evenly(first_deg=0.03), time_ns)
        instance = sensor.cast(sensor.beams(evenly()), time_ns=time_ns)[1]
        assert (instance >= world.tile_count).any()


def poles(rng, count):
    parts = []
    for _ in range(count):
        post = box((*rng.uniform(0.01, 0.1, 2), 6.0), CONCRETE)
        parts.append(Mesh(post.vertices_m + rng.uniform(-40.0, 40.0, 3) * [1.0, 1.0, 0.05], post.triangles, post.material, post.materials))
    return join_meshes(tuple(parts))


def fence(openings, gap_m, bar_m):
    """Bars like blades along y = 0, from x = 0 on."""
    parts = []
    for number in range(openings):
        bar = box((bar_m, 0.001, 4.0), CONCRETE)
        parts.append(Mesh(bar.vertices_m + np.array([number * (gap_m + bar_m), 0.0, 0.0]), bar.triangles, bar.material, bar.materials))
    return join_meshes(tuple(parts))


def grid_town(sensor_m=(0.0, 0.0, 0.0)):
    """Boxes on whole metres, on exact diagonals from the sensor, touching each other and the ground."""
    x, y, _ = sensor_m
    ground = SceneObject(mesh=plane((200.0, 200.0), CONCRETE), placement=Pose(position_m=(x, y, -2.0)))
    places = [(i, j) for i in range(-6, 7) for j in range(-6, 7) if abs(i) + abs(j) > 1]
    blocks = [
        SceneObject(mesh=box((2.0, 2.0, 1.0 + (i * j) % 3), CONCRETE), placement=Pose(position_m=(x + 4.0 * i, y + 4.0 * j, -1.0))) for i, j in places
    ]
    return build_world([ground, *blocks])


def hills(cells, width_m):
    line = np.linspace(-0.5 * width_m, 0.5 * width_m, cells + 1)
    x, y = np.meshgrid(line, line, indexing="ij")
    z = 3.0 * np.sin(x / 17.0) * np.cos(y / 23.0) + 0.3 * np.sin(x / 1.7 + y)
    first = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
    halves = [np.stack([first, first + cells + 1, first + 1], axis=1), np.stack([first + 1, first + cells + 1, first + cells + 2], axis=1)]
    return Mesh.uniform(np.stack([x, y, z], axis=-1).reshape(-1, 3), np.concatenate(halves), DEFAULTS["grass"])


def test_a_world_without_anything_static_has_empty_cells():
    assert Standing(build_world([]), (0.0, 0.0, 0.0)).assert_same(evenly()) == 0.0
    only_movers = build_world([SceneObject(mesh=box((4.0, 2.0, 1.5), CONCRETE), placement=street_platform_track(SceneSpec(generator="street")))])
    sensor = Standing(only_movers, (-3.8, -25.0, 1.0), sub_rays=7)
    assert len(sensor.cells.row) == 0
    time_ns = np.repeat(np.arange(CHANNELS * 1800) * 5_000_000, 7)
    assert 0.0 < sensor.assert_same(evenly(), time_ns) < 1.0


@pytest.mark.parametrize("most", [1, 4])
def test_short_lists_change_how_many_rays_walk_but_no_hit(street, most):
    short, long = (Standing(street, (-3.8, -25.0, 1.9), sectors=450, most=bound) for bound in (most, 64))
    assert np.diff(short.cells.first).max() <= most
    assert short.assert_same(evenly()) > 0.5
    assert short.served(evenly()) < long.served(evenly()) - 0.005


def test_rays_that_go_farther_than_their_cells_walk(street):
    sensor = Standing(street, (-3.8, -25.0, 1.9), max_range_m=20.0)
    sensor.max_range_m = MAX_RANGE_M
    sensor.assert_same(evenly())
    assert sensor.served(evenly()) == 0.0


def test_beams_without_a_cell_walk(street):
    sensor = Standing(street, (-3.8, -25.0, 1.9))
    origin, direction, cell = sensor.beams(evenly(360))
    cell[::3] = -1
    for of_cells, of_trees in zip(sensor.cast((origin, direction, cell)), sensor.cast((origin, direction, cell), cells=NO_CELLS), strict=True):
        np.testing.assert_array_equal(of_cells, of_trees)


def test_rays_that_go_on_behind_a_surface_are_served_by_the_same_cells(street):
    sensor = Standing(street, (-3.8, -25.0, 1.9), sectors=3750)
    origin, direction, cell = sensor.beams(evenly())
    range_m = sensor.cast((origin, direction, cell))[0].astype(np.float64)
    for share in (0.4, 1.0):
        hit = np.flatnonzero(np.isfinite(range_m))
        travelled_m = share * range_m[hit] + 1e-3
        beyond = origin[hit] + travelled_m[:, np.newaxis] * direction[hit], direction[hit], cell[hit]
        fast, slow = sensor.cast(beyond, travelled_m=travelled_m), sensor.cast(beyond, cells=NO_CELLS)
        for of_cells, of_trees in zip(fast, slow, strict=True):
            np.testing.assert_array_equal(of_cells, of_trees)


def loose_triangles(seed, count, size_m):
    """Triangles without order, of which some are slivers, some coincide, and some share edges."""
    rng = np.random.default_rng(seed)
    corners = rng.uniform(-20.0, 20.0, (count, 1, 3)) * [1.0, 1.0, 0.3] + rng.uniform(-size_m, size_m, (count, 3, 3))
    slivers = corners[: count // 5]
    slivers[:, 2] = slivers[:, 1] + rng.normal(0.0, 1e-3, (len(slivers), 3))
    shared = corners[count // 5 : count // 2].copy()
    shared[:, 0] += rng.uniform(-size_m, size_m, (len(shared), 3))
    everything = np.concatenate([corners, shared, corners[-count // 10 :]])
    return Mesh.uniform(everything.reshape(-1, 3), np.arange(3 * len(everything)).reshape(-1, 3), CONCRETE)


@given(
    seed=st.integers(0, 1_000_000),
    count=st.sampled_from([10, 100, 1000]),
    size_m=st.sampled_from([0.02, 0.3, 3.0, 40.0]),
    sub_rays=st.sampled_from([1, 7, 19]),
    divergence_mrad=st.sampled_from([0.0, 3.0, 50.0]),
    sectors=st.sampled_from([60, 900]),
    max_range_m=st.sampled_from([4.0, 25.0, 130.0]),
)
@settings(max_examples=examples(100))
def test_in_any_soup_all_hits_are_those_of_the_trees(seed, count, size_m, sub_rays, divergence_mrad, sectors, max_range_m):
    spot = BeamSpec(divergence_h_mrad=divergence_mrad, divergence_v_mrad=0.4 * divergence_mrad, window_h_mm=9.5, window_v_mm=12.7)
    world = build_world([SceneObject(mesh=loose_triangles(seed, count, size_m))])
    rng = np.random.default_rng(seed)
    tilt = mounting((0.0, 0.0, 0.0), tuple(rng.uniform(-180.0, 180.0, 3))).orientation
    sensor = Standing(world, rng.uniform(-5.0, 5.0, 3), tilt, sub_rays=sub_rays, sectors=sectors, max_range_m=max_range_m, spot=spot)
    sensor.assert_same(rng.uniform(0.0, 2.0 * np.pi, 150))


@given(seed=st.integers(0, 1_000_000), size_m=st.sampled_from([0.1, 3.0, 40.0]), half_angle_rad=st.sampled_from([1e-5, 1e-3, 0.02, 0.3]))
@settings(max_examples=examples(40))
def test_a_list_holds_what_rays_up_to_the_rim_of_the_cell_meet(seed, size_m, half_angle_rad):
    world = build_world([SceneObject(mesh=loose_triangles(seed, 300, size_m))])
    rng = np.random.default_rng(seed)
    origin_m, axis = rng.uniform(-5.0, 5.0, (1, 3)), rng.normal(size=(200, 3))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    cells = build_cells(world, origin_m, axis, 0, half_angle_rad, MAX_RANGE_M, most=1000)
    across = np.cross(axis, np.roll(axis, 1, axis=1))
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    up = np.cross(across, axis)
    for turn in rng.uniform(0.0, 2.0 * np.pi, 16):
        aside = np.cos(turn) * across + np.sin(turn) * up
        direction = (np.cos(half_angle_rad) * axis + np.sin(half_angle_rad) * aside).astype(np.float32)
        hits = np.empty(200, np.float32), np.empty(200, np.int32), np.empty(200, np.int32)
        begin = np.repeat(origin_m, 200, axis=0)
        cast_rays(world, begin, direction, np.zeros(200, np.int64), MAX_RANGE_M, *hits)
        for cell in np.flatnonzero((hits[2] >= 0) & (hits[0] < cells.reach_m)):
            assert hits[2][cell] in cells.row[cells.first[cell] : cells.first[cell + 1]]


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"axis": [[1.0, 1.0, 0.0]]}, r"row 0: axis must be a unit vector, got \[1.0, 1.0, 0.0\]"),
        ({"group": 1}, "row 0: group must be 0 to 0, got 1"),
        ({"origin_m": [[0.0, np.nan, 0.0]]}, "origin_m must be finite"),
        ({"half_angle_rad": 1.0}, "half_angle_rad must be 0 to below 1"),
        ({"max_range_m": np.inf}, "max_range_m must be at least 0 and finite, got inf"),
        ({"width_m": -0.1}, "width_m must be at least 0 and finite, got -0.1"),
        ({"most": 0}, "most must be at least 1, got 0"),
    ],
)
def test_cells_that_make_no_sense_are_refused(changed, fault):
    good = {"origin_m": [[0.0, 0.0, 0.0]], "axis": [[1.0, 0.0, 0.0]], "group": 0, "half_angle_rad": 0.001, "max_range_m": 100.0}
    with pytest.raises(ValueError, match=fault):
        build_cells(build_world([]), **{**good, **changed})


def cast_from_origin(world, cells, direction, travelled_m=0.0):
    """(range, instance, triangle) of single rays of cell 0 that begin ``travelled_m`` from the origin; from the trees where there are no cells."""
    count = len(direction)
    hits = np.empty(count, np.float32), np.empty(count, np.int32), np.empty(count, np.int32)
    chosen = cells, NO_CELL if cells is NO_CELLS else np.zeros(count, np.int32)
    begin = travelled_m * direction.astype(np.float64)
    packets = packets_of(np.arange(count))
    cast_beams(world, packets, begin, direction, np.zeros(count, np.int64), MAX_RANGE_M, 1, *chosen, np.full(count, travelled_m), *hits, NO_COSINE)
    return hits


def upright(corners_xy, half_height_m=5.0):
    """A wall of two triangles over a line on the ground."""
    (x0, y0), (x1, y1) = corners_xy
    vertices = [[x0, y0, -half_height_m], [x1, y1, -half_height_m], [x1, y1, half_height_m], [x0, y0, half_height_m]]
    return SceneObject(mesh=Mesh.uniform(np.array(vertices), np.array([[0, 1, 2], [0, 2, 3]]), CONCRETE))


def test_a_ray_just_past_a_long_walls_end_sees_behind_it_where_the_trees_do():
    # A triangle's tolerance of 1e-6 is 0.2 mm on a wall of 200 m, the room in its box 4 um: in between only the box keeps a ray from it.
    behind = [upright([(60.0, -20.0 * number), (60.0, 20.0 - 20.0 * number)]) for number in range(4)]  # enough for leaves of their own
    world = build_world([upright([(50.0, 0.0), (50.0, 200.0)]), *behind])
    cells = build_cells(world, [[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]], 0, 1e-3, MAX_RANGE_M)
    aim = np.stack([np.full(200, 50.0), np.linspace(-2e-4, 2e-5, 200), np.linspace(-0.03, 0.03, 200)], axis=1)
    direction = (aim / np.linalg.norm(aim, axis=1, keepdims=True)).astype(np.float32)
    fast, slow = cast_from_origin(world, cells, direction), cast_from_origin(world, NO_CELLS, direction)
    np.testing.assert_array_equal(fast[0], slow[0])
    assert np.count_nonzero(slow[0] > 59.0) > 100


def test_behind_the_surface_that_bounds_a_list_the_list_is_not_believed_beyond_its_reach():
    # Before everything a wall at 10 m; behind it one that slants from 10.03 to 20 m and is listed, and before its far end one that is not.
    front, slanting, hidden = upright([(10.0, -2.0), (10.0, 2.0)]), upright([(10.03, 0.5), (20.0, -1.0)]), upright([(14.0, -2.0), (14.0, -0.3)])
    world = build_world([front, slanting, hidden])
    cells = build_cells(world, [[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]], 0, 0.05, MAX_RANGE_M)
    listed = set(world.owner[cells.row].tolist())
    assert listed == {0, 1}
    aim = np.stack([np.full(21, 10.0), np.linspace(-0.45, -0.25, 21), np.zeros(21)], axis=1)
    direction = (aim / np.linalg.norm(aim, axis=1, keepdims=True)).astype(np.float32)
    fast, slow = cast_from_origin(world, cells, direction, 10.2), cast_from_origin(world, NO_CELLS, direction, 10.2)
    assert (world.owner[slow[2]] == 2).sum() > 10
    for of_cells, of_trees in zip(fast, slow, strict=True):
        np.testing.assert_array_equal(of_cells, of_trees)


def test_every_azimuth_has_a_cell_of_its_channel():
    assert turning_cell(2, 0.0, 100) == 200
    assert turning_cell(2, 0.99 * 2.0 * np.pi + 1e-9, 100) == 299
    assert turning_cell(2, -1e-20, 100) == 299
    assert turning_cell(0, 7.0 * 2.0 * np.pi + 1e-9, 100) == 0


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"sectors": 7}, "sectors must be at least 8, got 7"),
        ({"elevation_rad": [0.0]}, r"elevation_rad must be one for each of 2 origins, got shape \(1,\)"),
    ],
)
def test_turning_cells_that_make_no_sense_are_refused(changed, fault):
    good = {"origin_m": np.zeros((2, 3)), "elevation_rad": [0.0, 0.1], "sectors": 100, "max_range_m": 100.0}
    with pytest.raises(ValueError, match=fault):
        build_turning_cells(build_world([]), world_from_sensor=LEVEL, **{**good, **changed})
