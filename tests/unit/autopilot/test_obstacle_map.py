"""An obstacle map against sectors that are worked out from the bytes of the packets, decoded; its window, its gaps, and its poses."""

import math

import numpy as np
import pytest

from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.emulator.fused import render_data_packet
from hilsim.emulator.planning import build_lidar_plan
from hilsim.emulator.workspace import allocate_workspace
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.parts.vehicle.obstacle_messages import map_for_messages
from hilsim.parts.vehicle.scan_messages import DistanceSensorSpec, ObstacleSpec
from hilsim.protocols.ethernet import PAYLOAD_ONLY
from hilsim.sensor.specs import DecimationSpec
from hilsim.streaming.obstacle_map import TURN_SLICES, no_obstacle_map, note_packet, sight
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import from_roll_pitch_yaw, matrix_from_quaternion
from hilsim.world.platforms.live import STATE_SIZE, build_live_pose, write_state
from hilsim.world.platforms.platform import live_platform
from hilsim.world.scene.materials import DEFAULTS
from hilsim.world.scene.primitives import box, plane
from hilsim.world.scene.world import SceneObject, build_world
from tests.compiled import compiled_only
from tests.lidars import lidar_setting

PLACE = (3.0, -2.0, 4.0)
TURN_NS = 100_000_000
TURN_PACKETS = 76
OBSTACLE = ObstacleSpec(sensor="top", range_max_m=40.0)
AHEAD = DistanceSensorSpec(sensor="top", orientation="forward", width_deg=6.0, range_max_m=40.0)
MOUNTED = {"mount_position_m": (0.1, 0.0, 0.15), "mount_rotation_deg": (0.0, 0.0, 30.0)}


@pytest.fixture(scope="module")
def world():
    """Ground, a wall 8 m to the east and one 5 m to the south of the vehicle."""
    ground = SceneObject(mesh=plane((200.0, 200.0), DEFAULTS["grass"]))
    east = SceneObject(mesh=box((1.0, 12.0, 20.0), DEFAULTS["concrete"]), placement=Pose(position_m=(PLACE[0] + 8.5, PLACE[1], 0.0)))
    south = SceneObject(mesh=box((6.0, 1.0, 20.0), DEFAULTS["concrete"]), placement=Pose(position_m=(PLACE[0], PLACE[1] - 5.5, 0.0)))
    return build_world([ground, east, south])


class Bench:
    """A lidar on a vehicle at rest, and everything it has sent."""

    def __init__(self, world, orientation, *, profile="vlp16", **setting):
        path = profiles_directory() / "sensors" / f"{profile}.toml"
        spec = parse_table(VelodyneSpec, read_toml(path), str(path))
        self.setting = lidar_setting(spec, name="top", **(MOUNTED | setting))
        self.plan = build_lidar_plan(self.setting, seed=4, utc_epoch_ns=0)
        self.live, self.world, self.orientation = build_live_pose(), world, orientation
        state = np.zeros(STATE_SIZE)
        state[:3], state[6:10] = PLACE, orientation
        write_state(self.live, 0, state)
        self.workspace = allocate_workspace(self.plan, self.plan.sequences_per_packet, is_opaque=True)
        self.payloads = []

    def send(self, obstacle_map, packets):
        for packet in packets:
            payload = np.zeros(self.plan.data_size, np.uint8)
            render_data_packet(self.plan, live_platform(self.live), self.world, PAYLOAD_ONLY, packet, self.workspace, payload)
            note_packet(obstacle_map, self.plan, self.live, self.workspace)
            self.payloads.append(payload.tobytes())

    def points(self):
        """Direction in the body and range of each record of a VLP-16's packets, by its manual; range ``inf`` for no return."""
        elevations = [-15, 1, -13, 3, -11, 5, -9, 7, -7, 9, -5, 11, -3, 13, -1, 15]
        mount = self.setting.setup.body_from_sensor
        turn = matrix_from_quaternion(mount.orientation)
        for payload in self.payloads:
            for block in range(12):
                at = block * 100
                assert payload[at : at + 2] == b"\xff\xee"
                first = int.from_bytes(payload[at + 2 : at + 4], "little")
                for record in range(32):
                    place = at + 4 + 3 * record
                    distance = int.from_bytes(payload[place : place + 2], "little")
                    azimuth = math.radians(first / 100.0 + 360.0 * 10 * (55.296e-6 * (record // 16) + 2.304e-6 * (record % 16)))
                    elevation = math.radians(elevations[record % 16])
                    level = math.cos(elevation)
                    direction = turn @ (level * math.sin(azimuth), level * math.cos(azimuth), math.sin(elevation))
                    yield direction, distance * 0.002 if distance else math.inf


def sectors_of(points, orientation, origin=MOUNTED["mount_position_m"], spec=OBSTACLE):
    """Level distance of the nearest return of each sector, the slow way."""
    turn = matrix_from_quaternion(orientation)
    yaw = math.atan2(turn[1, 0], turn[0, 0])
    found = np.full(72, np.nan)
    for direction, reach in points:
        if reach < spec.range_min_m:
            continue
        east, north, up = turn @ direction
        start = turn @ origin
        level, where = math.inf, (east, north)
        if math.isfinite(reach):
            x, y, z = start + reach * np.array([east, north, up])
            if spec.low_m <= z <= spec.high_m and math.hypot(x, y) <= spec.range_max_m:
                level, where = math.hypot(x, y), (x, y)
        clockwise_deg = math.degrees(yaw - math.atan2(where[1], where[0]))
        sector = math.floor((clockwise_deg + 2.5) / 5.0) % 72
        found[sector] = level if not found[sector] <= level else found[sector]
    return found


@pytest.mark.extended
@compiled_only
@pytest.mark.parametrize("tilt_deg", [(0.0, 0.0, 0.0), (10.0, 12.0, 75.0)])
def test_observed_values_equal_the_packets_bytes(world, tilt_deg):
    bench = Bench(world, from_roll_pitch_yaw(*tilt_deg))
    obstacle_map = map_for_messages(OBSTACLE, [AHEAD], turn_ns=TURN_NS)
    bench.send(obstacle_map, range(2 * TURN_PACKETS))
    seen = sight(obstacle_map)
    points = list(bench.points())
    theirs = sectors_of(points, bench.orientation)
    assert not np.isnan(seen.sectors).any()
    known = np.isfinite(theirs)
    np.testing.assert_array_equal(np.isfinite(seen.sectors), known)
    # The azimuth of a record is sent in steps of 0.01 degrees, interpolated by a rate that wavers: at 20 m and a slant, centimetres.
    np.testing.assert_allclose(seen.sectors[known], theirs[known], atol=0.02)
    assert known.sum() > 20
    half = math.cos(math.radians(0.5 * AHEAD.width_deg))
    in_cone = [reach for direction, reach in points if direction[0] >= half and 0.5 <= reach <= 40.0]
    np.testing.assert_allclose(seen.cones, [min(in_cone)], atol=0.02)


@pytest.mark.extended
@compiled_only
def test_the_wall_on_the_right_is_in_sector_18_whichever_way_the_lidar_is_mounted(world):
    bench = Bench(world, from_roll_pitch_yaw(0.0, 0.0, 0.0), mount_rotation_deg=(0.0, 0.0, 130.0), mount_position_m=(0.0, 0.0, 0.0))
    obstacle_map = map_for_messages(OBSTACLE, [], turn_ns=TURN_NS)
    bench.send(obstacle_map, range(2 * TURN_PACKETS))
    seen = sight(obstacle_map).sectors
    assert (seen[18], seen[0]) == (pytest.approx(5.0, abs=0.1), pytest.approx(8.0, abs=0.1))
    assert np.isinf(seen[[36, 54]]).all()


@compiled_only
def test_ground_ahead_of_a_vehicle_that_leans_is_no_obstacle(world):
    bench = Bench(world, from_roll_pitch_yaw(0.0, 20.0, 90.0), mount_rotation_deg=(0.0, 0.0, 0.0))
    obstacle_map = map_for_messages(OBSTACLE, [AHEAD], turn_ns=TURN_NS)
    bench.send(obstacle_map, range(2 * TURN_PACKETS))
    seen = sight(obstacle_map)
    assert math.isinf(seen.sectors[0])
    assert seen.cones[0] == pytest.approx(PLACE[2] / math.sin(math.radians(20.0)), rel=0.2)  # the beam leans with the vehicle, and meets it


@compiled_only
def test_nothing_is_shown_before_a_whole_turn_and_then_each_sixteenth_of_one(world):
    bench = Bench(world, from_roll_pitch_yaw(0.0, 0.0, 0.0))
    obstacle_map = map_for_messages(OBSTACLE, [], turn_ns=TURN_NS)
    seen = []
    for packet in range(4 * TURN_PACKETS):
        bench.send(obstacle_map, [packet])
        seen.append(sight(obstacle_map))
    first = next(place for place, one in enumerate(seen) if one is not None)
    assert TURN_PACKETS <= first <= TURN_PACKETS * (1 + 2 / TURN_SLICES)
    assert seen[-1].number == pytest.approx((4 * TURN_PACKETS - first) / TURN_PACKETS * TURN_SLICES, abs=2.0)
    assert seen[-1].time_ns == pytest.approx(4 * TURN_NS, abs=2 * TURN_NS / TURN_SLICES)


@compiled_only
def test_an_obstacle_that_has_gone_is_forgotten_within_a_turn_and_an_eighth(world):
    bench = Bench(world, from_roll_pitch_yaw(0.0, 0.0, 0.0))
    obstacle_map = map_for_messages(OBSTACLE, [], turn_ns=TURN_NS)
    bench.send(obstacle_map, range(2 * TURN_PACKETS))
    assert sight(obstacle_map).sectors[18] < 6.0
    bench.world = build_world([SceneObject(mesh=plane((200.0, 200.0), DEFAULTS["grass"]))])
    bench.send(obstacle_map, range(2 * TURN_PACKETS, math.ceil((3 + 2 / TURN_SLICES) * TURN_PACKETS)))
    assert np.isinf(sight(obstacle_map).sectors).all()


@compiled_only
def test_after_packets_that_were_never_rendered_a_whole_turn_must_come_first(world):
    bench = Bench(world, from_roll_pitch_yaw(0.0, 0.0, 0.0))
    obstacle_map = map_for_messages(OBSTACLE, [], turn_ns=TURN_NS)
    bench.send(obstacle_map, range(2 * TURN_PACKETS))
    before = sight(obstacle_map).number
    bench.send(obstacle_map, range(3 * TURN_PACKETS, 4 * TURN_PACKETS - 1))
    assert sight(obstacle_map).number == before
    bench.send(obstacle_map, range(4 * TURN_PACKETS - 1, 5 * TURN_PACKETS))
    assert sight(obstacle_map).number > before


@compiled_only
def test_directions_that_a_thinned_sensor_leaves_out_are_unknown(world):
    bench = Bench(world, from_roll_pitch_yaw(0.0, 0.0, 0.0), mount_rotation_deg=(0.0, 0.0, 0.0), decimation=DecimationSpec(ray_step=100))
    obstacle_map = map_for_messages(OBSTACLE, [], turn_ns=TURN_NS)
    bench.send(obstacle_map, range(2 * TURN_PACKETS))
    known = np.flatnonzero(~np.isnan(sight(obstacle_map).sectors))
    assert set(known) == set(range(0, 72, 4))  # a firing in 20 degrees


def test_an_obstacle_map_without_consumers_stays_empty():
    assert not no_obstacle_map().is_on
    assert sight(no_obstacle_map()) is None


@compiled_only
@pytest.mark.parametrize("gap_m", [0.02, 0.1])
def test_a_lidar_nearer_to_the_ground_than_it_can_see_reports_nothing_below(gap_m):
    ground = SceneObject(mesh=plane((200.0, 200.0), DEFAULTS["asphalt"]), placement=Pose(position_m=(0.0, 0.0, PLACE[2] - gap_m)))
    level, on_edge = from_roll_pitch_yaw(0.0, 0.0, 0.0), {"mount_position_m": (0.0, 0.0, 0.0), "mount_rotation_deg": (0.0, 90.0, 0.0)}
    down = DistanceSensorSpec(sensor="top", orientation="down", width_deg=10.0, range_max_m=40.0)
    bench = Bench(build_world([ground]), level, **on_edge)
    obstacle_map = map_for_messages(None, (down,), turn_ns=TURN_NS)
    bench.send(obstacle_map, range(3 * TURN_PACKETS))
    assert math.isnan(sight(obstacle_map).cones[0])
