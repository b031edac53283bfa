"""A compass, in MAVLink's HIL_SENSOR units and axes: gauss, body FRD."""

from typing import NamedTuple

import numpy as np

from hilsim.compilation.jit import constant, kernel
from hilsim.parts.vehicle.physics.magnetism import MagneticField
from hilsim.parts.vehicle.physics.noise import drift, key_interval_ns, white
from hilsim.parts.vehicle.physics.sensor_specs import MagnetometerSpec
from hilsim.rng import Purpose
from hilsim.world.geometry.frames import Quaternion, Vector, frd_from_flu
from hilsim.world.geometry.rotations import conjugate, rotate

_READING = constant(Purpose.MAGNETOMETER)
_DRIFT = constant(Purpose.MAGNETOMETER_DRIFT)


class Magnetometer(NamedTuple):
    """A magnetometer for kernels; build with ``build_magnetometer``.

    Attributes:
        seed: Random seed of the rig.
        stream: Number of the vehicle in the rig.
        field_gauss: The Earth's field in the world.
        noise_gauss: ``MagnetometerSpec.noise_gauss``.
        drift_gauss: ``MagnetometerSpec.drift_gauss``.
        interval_ns: Time between the keys of the bias.
    """

    seed: np.uint64
    stream: int
    field_gauss: Vector
    noise_gauss: float
    drift_gauss: float
    interval_ns: int


def build_magnetometer(spec: MagnetometerSpec, seed: int, stream: int, field: MagneticField) -> Magnetometer:
    """Build the magnetometer of ``spec`` in a field."""
    return Magnetometer(
        np.uint64(seed), int(stream), field.enu_gauss, float(spec.noise_gauss), float(spec.drift_gauss), key_interval_ns(spec.drift_s)
    )


@kernel
def magnetometer(sensor: Magnetometer, time_ns: int, orientation: Quaternion) -> Vector:
    """Reading in FRD (gauss) of a body with ``orientation`` (world from body)."""
    x, y, z = frd_from_flu(rotate(conjugate(orientation), sensor.field_gauss))
    noise = white(sensor.seed, sensor.stream, time_ns, _READING)
    bias = drift(sensor.seed, sensor.stream, time_ns, sensor.interval_ns, _DRIFT)
    return (
        x + sensor.noise_gauss * noise[0] + sensor.drift_gauss * bias[0],
        y + sensor.noise_gauss * noise[1] + sensor.drift_gauss * bias[1],
        z + sensor.noise_gauss * noise[2] + sensor.drift_gauss * bias[2],
    )
