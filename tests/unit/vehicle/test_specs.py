"""Vehicle specifications: the shipped ones are what their sources say, others name their faults."""

import math

import pytest

from hilsim.parts.vehicle.physics.specs import PropulsionSpec, RotorSpec
from tests.unit.vehicle.vehicles import BARE, G, changed, profile


def test_the_iris_is_that_of_gazebo():
    spec = profile("iris")
    assert spec.mass_kg == pytest.approx(1.5 + 0.015 + 0.010 + 4 * 0.005)
    assert [(*rotor.position_m[:2], rotor.spin) for rotor in spec.rotors] == [
        (0.13, -0.22, "ccw"),
        (-0.13, 0.20, "ccw"),
        (0.13, 0.22, "cw"),
        (-0.13, -0.20, "cw"),
    ]
    hubs = [rotor.position_m for rotor in spec.rotors]
    expected = (
        0.029125 + 0.005 * sum(y * y + z * z for _, y, z in hubs),
        0.029125 + 0.005 * sum(x * x + z * z for x, _, z in hubs),
        0.055225 + 0.005 * sum(x * x + y * y for x, y, _ in hubs),
    )
    assert spec.inertia_kgm2 == pytest.approx(expected, abs=1e-6)
    assert 4 * spec.propulsion.top_thrust_n / (spec.mass_kg * G) == pytest.approx(1.87, abs=0.01)


def test_airsims_quad_has_the_thrust_torque_and_drag_of_its_propellers():
    spec = profile("airsim-quad")
    turns_hz, diameter_m = 6396.667 / 60.0, 0.2286
    thrust_n = 0.109919 * 1.225 * turns_hz**2 * diameter_m**4
    torque_nm = 0.040164 * 1.225 * turns_hz**2 * diameter_m**5 / (2 * math.pi)
    assert spec.propulsion.top_thrust_n == pytest.approx(thrust_n, rel=1e-5)
    assert spec.propulsion.torque_ratio_m == pytest.approx(torque_nm / thrust_n, rel=1e-4)
    edge, disc = 4 * math.pi * diameter_m * 0.01, 4 * math.pi * diameter_m**2
    areas = (0.11 * 0.04 + edge, 0.18 * 0.04 + edge, 0.18 * 0.11 + disc)
    assert spec.drag_area_m2 == pytest.approx([1.3 / 4 * area for area in areas], rel=1e-4)
    arm = 0.2275 / math.sqrt(2)
    box, motors = 0.78 / 12, 4 * 0.055
    expected = (
        box * (0.11**2 + 0.04**2) + motors * (arm**2 + 0.025**2),
        box * (0.18**2 + 0.04**2) + motors * (arm**2 + 0.025**2),
        box * (0.18**2 + 0.11**2) + motors * 2 * arm**2,
    )
    assert spec.inertia_kgm2 == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", ["iris", "airsim-quad"])
def test_the_collision_sphere_reaches_beyond_every_hub(name):
    spec = profile(name)
    assert all(math.hypot(*rotor.position_m) < spec.collision_radius_m for rotor in spec.rotors)
    assert all(math.hypot(*leg) < spec.collision_radius_m for leg in spec.legs)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: changed(mass_kg=0.0), "mass_kg must be 0.01 to 1000, got 0.0"),
        (lambda: changed(inertia_kgm2=(0.1, 0.1, 0.3)), "inertia_kgm2 must have no part above the sum of the others"),
        (lambda: changed(inertia_kgm2=(0.0, 0.1, 0.1)), "inertia_kgm2 must be above 0 in each part"),
        (lambda: changed(rotors=()), "rotors must be 1 to 16, got 0"),
        (lambda: changed(legs=BARE.legs[:2]), "legs must be 3 to 8, got 2"),
        (lambda: changed(hull=((11.0, 0.0, 0.0),)), r"hull must be at most 10 m from the centre of mass, got \(11.0, 0.0, 0.0\) at number 0"),
        (lambda: changed(drag_area_m2=(-1.0, 0.0, 0.0)), "drag_area_m2 must be 0 to 10 in each part"),
        (lambda: changed(friction_ratio=3.0, crash_mps=0.0), "friction_ratio must be 0 to 2, got 3.0; crash_mps must be above 0, got 0.0"),
        (lambda: changed(collision_radius_m=0.0), "collision_radius_m must be 0.01 to 10, got 0.0"),
        (lambda: changed(has_propeller_guards=False), "rotor_radius_m must be above 0 for a vehicle without propeller guards, got 0"),
        (
            lambda: changed(has_propeller_guards=False, rotor={"rotor_radius_m": 0.1}),
            "collision_radius_m must reach the farthest blade tip, 0.3872 m from the centre of mass, without propeller guards, got 0.35",
        ),
        (lambda: changed(rotor={"rotor_radius_m": -0.1}), "rotor_radius_m must be 0 to 10, got -0.1"),
        (lambda: changed(rotor={"thrust_n_per_radps2": 0.0}), "thrust_n_per_radps2 must be above 0 and at most 1, got 0.0"),
        (lambda: changed(rotor={"idle_speed_radps": 1000.0}), "idle_speed_radps must be 0 to less than top_speed_radps of 1000.0, got 1000.0"),
        (
            lambda: changed(rotor={"spin_up_s": 0.0, "inflow_limit_mps": 1.0}),
            "spin_up_s must be 0.0005 to 1, got 0.0; inflow_limit_mps must be at least 5, got 1.0",
        ),
        (lambda: RotorSpec(position_m=(0.0, 0.0, 20.0), spin="cw"), "position_m must be -10 to 10 in each part"),
        (lambda: RotorSpec(position_m=(0.0, 0.0, 0.0), spin="cw", axis=(0.0, 0.0, 2.0)), "axis must be a unit vector, got length 2"),
    ],
)
def test_a_vehicle_names_each_fault(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_command_for_a_thrust_of_zero_is_below_idle():
    propulsion = PropulsionSpec(
        thrust_n_per_radps2=1e-5, torque_ratio_m=0.05, top_speed_radps=1100.0, idle_speed_radps=100.0, spin_up_s=0.02, spin_down_s=0.02
    )
    assert propulsion.command_for(0.0) == pytest.approx(-0.1)
    assert propulsion.command_for(propulsion.top_thrust_n) == pytest.approx(1.0)
    assert BARE.standing_height_m == pytest.approx(0.1)
