"""Multirotors as data: mass, rotors, drag, and contact points. Frames: body FLU about the centre of mass."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from hilsim.errors import require, within
from hilsim.parts.vehicle.physics.sensor_specs import SensorsSpec
from hilsim.world.geometry.frames import Vector


def _is_finite(vector: Vector) -> bool:
    return all(map(math.isfinite, vector))


@dataclass(frozen=True, kw_only=True)
class RotorSpec:
    """Position and orientation of a rotor.

    Attributes:
        position_m: Position of the hub; each component -10 to 10.
        spin: Sense of rotation seen from above, ``ccw`` or ``cw``.
        axis: Unit vector of the thrust.
    """

    position_m: Vector
    spin: Literal["ccw", "cw"]
    axis: Vector = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        length = math.hypot(*self.axis)
        require(
            (all(abs(part) <= 10.0 for part in self.position_m), f"position_m must be -10 to 10 in each part, got {self.position_m}"),
            (abs(length - 1.0) <= 1e-6, f"axis must be a unit vector, got length {length:.9g}"),
        )


@dataclass(frozen=True, kw_only=True)
class PropulsionSpec:
    """Common parameters of all rotors of the vehicle.

    Thrust is ``thrust_n_per_radps2 * speed**2`` minus the loss by inflow; ``docs/reference/vehicle.md`` has the equations.

    Attributes:
        thrust_n_per_radps2: Ratio of thrust to the square of the speed, in still air of 1.225 kg/m^3.
        torque_ratio_m: Ratio of the aerodynamic torque to the thrust.
        top_speed_radps: Speed at command 1.
        idle_speed_radps: Speed just above command 0; at 0 a rotor stops.
        response: Quantity that is linear in the command between idle and top: ``speed`` or ``thrust``.
        spin_up_s: Time constant of a rising speed; 0.0005 to 1.
        spin_down_s: Time constant of a falling speed.
        inertia_kgm2: Moment of inertia of a rotor about its axis.
        drag_n_per_mps_radps: Ratio of the force against the air from the side to its speed times the rotor's.
        rolling_nm_per_mps_radps: Ratio of the torque of that air to the same product.
        inflow_limit_mps: Inflow along the axis at which the thrust is 0; infinite: thrust does not depend on inflow.
        rotor_radius_m: Distance from the hub to the tip of a blade; 0: unknown. Only blades without guards need it.
    """

    thrust_n_per_radps2: float
    torque_ratio_m: float
    top_speed_radps: float
    idle_speed_radps: float = 0.0
    response: Literal["speed", "thrust"] = "speed"
    spin_up_s: float
    spin_down_s: float
    inertia_kgm2: float = 0.0
    drag_n_per_mps_radps: float = 0.0
    rolling_nm_per_mps_radps: float = 0.0
    inflow_limit_mps: float = math.inf
    rotor_radius_m: float = 0.0

    def __post_init__(self) -> None:
        require(
            *within(self, torque_ratio_m=(0, 1), spin_up_s=(0.0005, 1), spin_down_s=(0.0005, 1), inertia_kgm2=(0, 1), drag_n_per_mps_radps=(0, 1)),
            *within(self, rolling_nm_per_mps_radps=(0, 1), rotor_radius_m=(0, 10)),
            (0.0 < self.thrust_n_per_radps2 <= 1.0, f"thrust_n_per_radps2 must be above 0 and at most 1, got {self.thrust_n_per_radps2}"),
            (0.0 < self.top_speed_radps <= 10_000.0, f"top_speed_radps must be above 0 and at most 10000, got {self.top_speed_radps}"),
            (
                0.0 <= self.idle_speed_radps < self.top_speed_radps,
                f"idle_speed_radps must be 0 to less than top_speed_radps of {self.top_speed_radps}, got {self.idle_speed_radps}",
            ),
            (self.inflow_limit_mps >= 5.0, f"inflow_limit_mps must be at least 5, got {self.inflow_limit_mps}"),
        )

    @property
    def top_thrust_n(self) -> float:
        """Thrust of one rotor at command 1, in still air of 1.225 kg/m^3."""
        return self.thrust_n_per_radps2 * self.top_speed_radps**2

    def command_for(self, thrust_n: float) -> float:
        """Steady-state command for a rotor's thrust; 0 to 1 where the rotor can produce it."""
        square = thrust_n / self.thrust_n_per_radps2
        top, idle = self.top_speed_radps, self.idle_speed_radps
        if self.response == "speed":
            return (math.sqrt(square) - idle) / (top - idle)
        return (square - idle**2) / (top**2 - idle**2)


@dataclass(frozen=True, kw_only=True)
class VehicleSpec:
    """Specification of a multirotor.

    Attributes:
        model: Name of the model.
        mass_kg: Mass with payload; 0.01 to 1000.
        inertia_kgm2: Principal moments of inertia about x, y and z.
        rotors: Rotors in the order of the commands; 1 to 16.
        propulsion: Common parameters of the rotors.
        drag_area_m2: Drag coefficient times area of the body along x, y and z.
        legs: Points that touch the ground at rest; 3 to 8, not all collinear.
        hull: Further contact points, such as those that touch when the vehicle is upside down; at most 16.
        friction_ratio: Coefficient of friction at contacts.
        collision_radius_m: Radius of the collision sphere about the centre of mass, which obstacles stop.
        has_propeller_guards: Whether guards keep the blades from obstacles. Without them a blade that turns and reaches an obstacle breaks, and its rotor stops permanently.
        crash_mps: Closing speed at a contact above which the vehicle crashes: its rotors stop permanently; without guards also the speed of a blade's tip above which the
            blade breaks at an obstacle. Infinite: never.
        sensors: Sensors of the vehicle.
    """

    model: str
    mass_kg: float
    inertia_kgm2: Vector
    rotors: tuple[RotorSpec, ...]
    propulsion: PropulsionSpec
    drag_area_m2: Vector = (0.0, 0.0, 0.0)
    legs: tuple[Vector, ...]
    hull: tuple[Vector, ...] = ()
    friction_ratio: float = 0.8
    collision_radius_m: float
    has_propeller_guards: bool = True
    crash_mps: float = math.inf
    sensors: SensorsSpec = field(default_factory=SensorsSpec)

    def __post_init__(self) -> None:
        require(*self._rules())

    def _rules(self) -> Iterator[tuple[bool, str]]:
        low, middle, high = sorted(self.inertia_kgm2)
        yield from within(self, mass_kg=(0.01, 1000))
        yield low > 0.0, f"inertia_kgm2 must be above 0 in each part, got {self.inertia_kgm2}"
        yield high <= low + middle, f"inertia_kgm2 must have no part above the sum of the others, got {self.inertia_kgm2}"
        yield 1 <= len(self.rotors) <= 16, f"rotors must be 1 to 16, got {len(self.rotors)}"
        yield all(0.0 <= area <= 10.0 for area in self.drag_area_m2), f"drag_area_m2 must be 0 to 10 in each part, got {self.drag_area_m2}"
        yield 3 <= len(self.legs) <= 8, f"legs must be 3 to 8, got {len(self.legs)}"
        yield len(self.hull) <= 16, f"hull must be at most 16 points, got {len(self.hull)}"
        for name, points in (("legs", self.legs), ("hull", self.hull)):
            for number, point in enumerate(points):
                yield (
                    _is_finite(point) and math.hypot(*point) <= 10.0,
                    f"{name} must be at most 10 m from the centre of mass, got {point} at number {number}",
                )
        yield from within(self, friction_ratio=(0, 2), collision_radius_m=(0.01, 10))
        if not self.has_propeller_guards:
            radius_m, tip_m = self.propulsion.rotor_radius_m, self.farthest_tip_m
            yield radius_m > 0.0, "rotor_radius_m must be above 0 for a vehicle without propeller guards, got 0"
            yield (
                tip_m <= self.collision_radius_m,
                f"collision_radius_m must reach the farthest blade tip, {tip_m:.4g} m from the centre of mass, without propeller guards, got {self.collision_radius_m}",
            )
        yield self.crash_mps > 0.0, f"crash_mps must be above 0, got {self.crash_mps}"

    @property
    def farthest_tip_m(self) -> float:
        """Largest distance of a hub from the centre of mass, plus the length of a blade."""
        return max(math.hypot(*rotor.position_m) for rotor in self.rotors) + self.propulsion.rotor_radius_m

    @property
    def standing_height_m(self) -> float:
        """Height of the centre of mass above the lowest leg of a level vehicle."""
        return -min(z for _, _, z in self.legs)
