"""What a vehicle touches in a scene: pushed, stopped, run over; each contact is counted with its kind."""

import dataclasses

import numpy as np
import pytest

from hilsim.parts.vehicle.autopilot.loop import fly_step
from hilsim.parts.vehicle.autopilot.loop_setup import build_loop_setup, open_line
from hilsim.parts.vehicle.autopilot.session import SessionWord
from hilsim.parts.vehicle.physics.contact import MAX_PUSH_MPS2
from hilsim.parts.vehicle.physics.surroundings import LOOK_NS, look_around
from hilsim.parts.vehicle.physics.touching import PART_NS, Touching, TouchWord
from hilsim.parts.vehicle.specs import ControllerSpec, VehicleRigSpec
from hilsim.world.assets.street.street import street_objects
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import linear_track
from hilsim.world.scene.materials import DEFAULTS
from hilsim.world.scene.primitives import box, plane
from hilsim.world.scene.specs import SceneSpec
from hilsim.world.scene.world import SceneObject, build_world
from tests.compiled import compiled_only
from tests.unit.vehicle.vehicles import G, profile

pytestmark = compiled_only
MS = 1_000_000
STEP_S = 1e-3
GRASS = DEFAULTS["grass"]
FLOOR = SceneObject(mesh=plane((100.0, 100.0), GRASS))
STANDING_M = 0.055
IMU_G, IMU_RADPS = 16.0, np.radians(2000.0)


GUARDED = dataclasses.replace(profile("iris"), has_propeller_guards=True)


def vehicle(position_m, shape=GUARDED):
    spec = VehicleRigSpec(position_m=position_m, yaw_deg=0.0, controller=ControllerSpec(kind="serial", port="/dev/null"))
    return build_loop_setup(spec, shape, open_line("serial"), seed=1, rate_hz=250)


def flown(made, world, milliseconds, *, begin_ns=0):
    """Motions after each step, ``float64[n, 13]``, closing speeds, and whether it has crashed."""
    rows, closing, crashed = [], [], []
    for number in range(milliseconds):
        rig_ns = begin_ns + number * MS
        if rig_ns % LOOK_NS == 0:
            look_around(world, made.context.multirotor, made.flight.state, rig_ns, made.flight.around)
        fly_step(made.context, made.flight, made.shared, rig_ns)
        rows.append(made.flight.state.motion.copy())
        closing.append(made.flight.state.closing_mps.copy())
        crashed.append(made.flight.state.crashed[0])
    return np.array(rows), np.array(closing), np.array(crashed)


def kinds(made):
    return Touching(int(made.shared.touch.word[TouchWord.KINDS]))


def contacts(made):
    return int(made.shared.touch.word[TouchWord.COUNT])


def test_standing_on_its_legs_and_a_drop_from_a_hand_are_no_contacts_and_a_fall_from_a_metre_is_one():
    world = build_world([FLOOR])
    made = vehicle((0.0, 0.0, 0.3))
    flown(made, world, 1000)
    assert (contacts(made), kinds(made)) == (0, Touching(0))
    made = vehicle((0.0, 0.0, 1.0))
    flown(made, world, 600)
    assert contacts(made) == 1
    assert kinds(made) == Touching.HARD_LANDING
    assert made.shared.touch.closing_mps[0] == pytest.approx(np.sqrt(2.0 * G), rel=0.02)
    flown(made, world, 700, begin_ns=600 * MS)
    assert (contacts(made), kinds(made)) == (1, Touching(0))
    assert made.flight.state.crashed[0] == 0


def test_a_wall_that_is_met_at_four_and_a_half_metres_a_second_is_one_contact_as_long_as_the_vehicle_leans_on_it():
    wall = SceneObject(mesh=box((1.0, 20.0, 20.0), GRASS), placement=Pose(position_m=(3.5, 0.0, 0.0)))
    world = build_world([FLOOR, wall])
    made = vehicle((2.3, 0.0, 5.0))
    made.flight.state.motion[3] = 4.5
    made.shared.session.control[:4] = 0.7
    made.shared.session.word[SessionWord.ARMED] = 1
    made.flight.state.rotor_radps[:] = 800.0
    rows, closing, crashed = flown(made, world, 1000)
    assert closing[:, 1].max() == pytest.approx(4.5, rel=0.1)
    assert rows[:, 0].max() <= 3.0 - 0.40 + 4.5**2 / (2.0 * MAX_PUSH_MPS2) + 5e-3
    assert not crashed.any()
    assert contacts(made) == 1
    assert made.shared.touch.closing_mps[0] == pytest.approx(4.5, rel=0.1)
    begun_ns, last_ns = made.shared.touch.word[TouchWord.BEGAN_NS], made.shared.touch.word[TouchWord.LAST_NS]
    assert 0 < begun_ns <= last_ns


def test_a_vehicle_without_guards_loses_blades_at_that_wall_and_falls_and_that_is_one_contact_with_blades():
    wall = SceneObject(mesh=box((1.0, 20.0, 20.0), GRASS), placement=Pose(position_m=(3.5, 0.0, 0.0)))
    made = vehicle((2.3, 0.0, 5.0), profile("iris"))
    made.flight.state.motion[3] = 1.0
    made.shared.session.control[:4] = 0.7
    made.flight.state.rotor_radps[:] = 800.0
    flown(made, build_world([FLOOR, wall]), 500)
    assert (made.flight.state.crashed[0], contacts(made)) == (0, 1)
    assert kinds(made) == Touching.OBSTACLE | Touching.BLADES
    assert int(made.shared.touch.word[TouchWord.BROKEN]) == made.flight.state.broken.sum() == 2
    np.testing.assert_array_equal(made.flight.state.broken, [1, 0, 1, 0])  # those in front
    rows, _, _ = flown(made, build_world([FLOOR, wall]), 1500, begin_ns=500 * MS)
    assert rows[:, 2].min() < 0.3


def test_a_vehicle_on_its_back_lies_on_its_hull_and_that_is_one_contact_however_long():
    made = vehicle((0.0, 0.0, 0.1))
    made.flight.state.motion[6:10] = (0.0, 1.0, 0.0, 0.0)
    flown(made, build_world([FLOOR]), 2000)
    assert contacts(made) == 1
    assert kinds(made) == Touching.HULL


@pytest.mark.parametrize("lane_m", [-25.0, -24.2])
def test_a_car_that_runs_over_a_parked_vehicle_pushes_it_with_forces_an_inertial_sensor_measures_and_breaks_it(lane_m):
    world = build_world(street_objects(SceneSpec(generator="street")))
    made = vehicle((0.0, lane_m, 0.0))
    rows, closing, crashed = flown(made, world, 10_600)
    hit = int(np.argmax(closing[:, 1] > 1.0))
    assert closing[:, 1].max() > 7.0
    assert 9_000 < hit < 10_550
    assert crashed[hit]
    before = np.vstack([rows[:1], rows[:-1]])
    speeds, pushed = np.linalg.norm(rows[:, 3:6], axis=1), slice(hit - 5, hit + 60)
    changes_g = np.linalg.norm(rows[:, 3:6] - before[:, 3:6], axis=1) / STEP_S / G
    jumps_m = np.linalg.norm(rows[:, :3] - before[:, :3] - STEP_S * rows[:, 3:6], axis=1)
    assert changes_g[pushed].max() < IMU_G
    assert speeds[pushed].max() > 2.0
    assert np.abs(rows[1000:, 10:13]).max() < IMU_RADPS
    assert jumps_m.max() <= 1.01e-4
    assert np.degrees(np.arccos(np.clip((rows[pushed, 6:10] * before[pushed, 6:10]).sum(axis=1), -1.0, 1.0)) * 2.0).max() < 2000.0 * STEP_S
    assert contacts(made) == 1
    assert kinds(made) & (Touching.OBSTACLE | Touching.MOVING) == Touching.OBSTACLE | Touching.MOVING
    np.testing.assert_allclose(rows[hit - 1000 : hit - 20, 2], STANDING_M, atol=1e-4)  # nothing lifts it before


@pytest.mark.parametrize(("crashed", "moves_m"), [(1, 0.0), (0, 2.0)])
def test_a_pedestrian_pushes_a_vehicle_along_and_steps_over_a_wreck_at_rest(crashed, moves_m):
    track = linear_track(np.array([0, 4_000_000_000]), [(-2.0, 0.0, 0.9), (3.2, 0.0, 0.9)], [(1.0, 0.0, 0.0, 0.0)] * 2)
    walker = SceneObject(mesh=box((0.4, 0.5, 1.8), GRASS), placement=track)
    made = vehicle((0.0, 0.0, 0.0))
    made.flight.state.crashed[0] = crashed
    rows, _, _ = flown(made, build_world([FLOOR, walker]), 4000)
    assert rows[-1, 0] - rows[0, 0] == pytest.approx(moves_m, abs=1e-3) if crashed else rows[-1, 0] - rows[0, 0] > moves_m


def test_a_fall_is_reported_with_the_speed_that_its_height_gives_and_the_leg_that_slaps_down_after_it_is_the_fastest():
    made = vehicle((0.0, 0.0, 5.0))
    tilt = np.radians(3.0)
    made.flight.state.motion[6:10] = (np.cos(tilt / 2), np.sin(tilt / 2), 0.0, 0.0)
    flown(made, build_world([FLOOR]), 1200)
    fallen_mps = np.sqrt(2.0 * G * 5.0)
    fastest_mps, began_mps = made.shared.touch.closing_mps
    assert began_mps == pytest.approx(fallen_mps, rel=0.01)
    assert 1.1 * fallen_mps < fastest_mps <= 1.5 * fallen_mps  # a rod that lands on one end: the other comes down half as fast again
    assert contacts(made) == 1


def test_contacts_half_a_second_apart_are_two():
    world = build_world([FLOOR])
    made = vehicle((0.0, 0.0, 1.0))
    flown(made, world, 2000)
    made.flight.state.motion[2] = 1.0 + STANDING_M
    flown(made, world, 2000, begin_ns=2000 * MS)
    assert contacts(made) == 2
    assert PART_NS == 500 * MS


def without_friction(made):
    return dataclasses.replace(made, context=made.context._replace(multirotor=made.context.multirotor._replace(friction_ratio=0.0)))


def test_along_a_wall_of_many_parts_no_seam_stops_a_vehicle_that_is_pressed_to_it_whose_planes_are_ten_milliseconds_old():
    parts = [SceneObject(mesh=box((1.0, 1.0, 20.0), GRASS), placement=Pose(position_m=(0.9, 0.5 + y_m, 0.0))) for y_m in range(-2, 12)]
    made = without_friction(vehicle((0.0, 0.0, 5.0)))
    made.flight.state.motion[3:5] = 0.5, 8.0
    rows, closing, _ = flown(made, build_world(parts), 1000)
    assert closing[:, 1].max() == pytest.approx(0.5, rel=0.01)
    np.testing.assert_allclose(rows[:, 4], 8.0, atol=1e-3)
    assert np.abs(rows[100:, 3]).max() < 1e-3


def test_beside_a_wall_and_under_a_roof_it_falls_as_far_as_gravity_takes_it():
    wall = SceneObject(mesh=box((1.0, 20.0, 20.0), GRASS), placement=Pose(position_m=(0.9, 0.0, 0.0)))
    roof = SceneObject(mesh=box((20.0, 20.0, 1.0), GRASS), placement=Pose(position_m=(0.0, 0.0, 5.95)))
    made = vehicle((0.0, 0.0, 5.0))
    begin_m = made.flight.state.motion[2]
    rows, _, _ = flown(made, build_world([FLOOR, wall, roof]), 500)
    assert rows[-1, 2] == pytest.approx(begin_m - 0.5 * G * 0.5**2, abs=5e-3)
