"""A compass, in MAVLink's HIL_SENSOR units and axes: gauss, body FRD."""

from typing import NamedTuple

import numpy as np

from hilsim._jit import constant, kernel
from hilsim.geometry.frames import Quaternion, Vector, frd_from_flu
from hilsim.geometry.rotations import conjugate, rotate
from hilsim.rng import Purpose
from hilsim.vehicle.magnetism import MagneticField
from hilsim.vehicle.noise import key_interval_ns, wander, white
from hilsim.vehicle.sensor_specs import MagnetometerSpec

_READING = constant(Purpose.MAGNETOMETER)
_WANDER = constant(Purpose.MAGNETOMETER_WANDER)


class Magnetometer(NamedTuple):
    """A magnetometer for kernels; build with ``build_magnetometer``.

    Attributes:
        seed: Of the rig.
        stream: Which vehicle of the rig.
        field_gauss: Of the Earth, in the world.
        noise_gauss: As in ``MagnetometerSpec``.
        wander_gauss: As in ``MagnetometerSpec``.
        interval_ns: Between the bias's keys.
    """

    seed: np.uint64
    stream: int
    field_gauss: Vector
    noise_gauss: float
    wander_gauss: float
    interval_ns: int


def build_magnetometer(spec: MagnetometerSpec, seed: int, stream: int, field: MagneticField) -> Magnetometer:
    """The magnetometer of ``spec`` in a field."""
    return Magnetometer(
        np.uint64(seed), int(stream), field.enu_gauss, float(spec.noise_gauss), float(spec.wander_gauss), key_interval_ns(spec.wander_s)
    )


@kernel
def magnetometer(sensor: Magnetometer, time_ns: int, orientation: Quaternion) -> Vector:
    """Reading in FRD (gauss) of a body with ``orientation`` (world from body)."""
    x, y, z = frd_from_flu(rotate(conjugate(orientation), sensor.field_gauss))
    noise = white(sensor.seed, sensor.stream, time_ns, _READING)
    bias = wander(sensor.seed, sensor.stream, time_ns, sensor.interval_ns, _WANDER)
    return (
        x + sensor.noise_gauss * noise[0] + sensor.wander_gauss * bias[0],
        y + sensor.noise_gauss * noise[1] + sensor.wander_gauss * bias[1],
        z + sensor.noise_gauss * noise[2] + sensor.wander_gauss * bias[2],
    )
