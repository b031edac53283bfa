"""Vehicles and surroundings that several tests of the vehicle share."""

import dataclasses

import numpy as np

from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.parts.vehicle.physics.contact import no_planes, plane_through
from hilsim.parts.vehicle.physics.multirotor import step
from hilsim.parts.vehicle.physics.specs import PropulsionSpec, RotorSpec, VehicleSpec

G = 9.80665
CALM = (0.0, 0.0, 0.0)
OFF = np.zeros(4)

_ARM = 0.2
_CORNERS = ((_ARM, -_ARM), (-_ARM, _ARM), (_ARM, _ARM), (-_ARM, -_ARM))
PROPULSION = PropulsionSpec(thrust_n_per_radps2=1e-5, torque_ratio_m=0.05, top_speed_radps=1000.0, spin_up_s=0.02, spin_down_s=0.04)
BARE = VehicleSpec(
    model="bare",
    mass_kg=2.0,
    inertia_kgm2=(0.02, 0.03, 0.045),
    rotors=tuple(RotorSpec(position_m=(x, y, 0.05), spin=spin) for (x, y), spin in zip(_CORNERS, ("ccw", "ccw", "cw", "cw"), strict=True)),
    propulsion=PROPULSION,
    legs=tuple((x, y, -0.1) for x, y in _CORNERS),
    hull=tuple((x, y, 0.1) for x, y in _CORNERS),
    collision_radius_m=0.35,
)
"""Two kilograms with no drag of any kind."""
HOVER_RADPS = (BARE.mass_kg * G / 4 / PROPULSION.thrust_n_per_radps2) ** 0.5
HOVER_COMMAND = HOVER_RADPS / PROPULSION.top_speed_radps


def profile(name):
    path = profiles_directory() / "vehicles" / f"{name}.toml"
    return parse_table(VehicleSpec, read_toml(path), str(path))


def changed(spec=BARE, *, rotor=None, **changes):
    """A spec with other figures; ``rotor`` are those of its ``propulsion``."""
    return dataclasses.replace(spec, propulsion=dataclasses.replace(spec.propulsion, **(rotor or {})), **changes)


def ground(multirotor, point_m=(0.0, 0.0, 0.0), normal=(0.0, 0.0, 1.0)):
    return np.tile(plane_through(point_m, normal), (len(multirotor.point), 1))


def run(multirotor, state, steps, *, command=OFF, wind_mps=CALM, planes=None, obstacles=None, each=None):
    """Steps with everything held; ``each(state)`` after every one of them, its answers in an array."""
    planes = no_planes(len(multirotor.point)) if planes is None else planes
    obstacles = no_planes(0) if obstacles is None else obstacles
    command = np.broadcast_to(np.asarray(command, dtype=np.float64), state.rotor_radps.shape).copy()
    seen = []
    for _ in range(steps):
        step(multirotor, state, command, wind_mps, planes, obstacles)
        if each is not None:
            seen.append(each(state))
    return np.array(seen)
