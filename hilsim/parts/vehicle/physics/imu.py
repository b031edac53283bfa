"""Accelerometer and gyroscope, in MAVLink's HIL_SENSOR units and axes: body FRD, m/s^2 and rad/s. At rest and level: (0, 0, -g)."""

import math
from typing import NamedTuple

import numpy as np

from hilsim.compilation.jit import constant, kernel
from hilsim.errors import require
from hilsim.parts.vehicle.physics.noise import drift, key_interval_ns, white
from hilsim.parts.vehicle.physics.sensor_specs import ImuSpec
from hilsim.rng import Purpose
from hilsim.world.geometry.frames import Vector, frd_from_flu

_ACCELEROMETER = constant(Purpose.ACCELEROMETER)
_ACCELEROMETER_DRIFT = constant(Purpose.ACCELEROMETER_DRIFT)
_GYROSCOPE = constant(Purpose.GYROSCOPE)
_GYROSCOPE_DRIFT = constant(Purpose.GYROSCOPE_DRIFT)


class InertialSensor(NamedTuple):
    """Accelerometer or gyroscope for kernels.

    Attributes:
        noise: Standard deviation of the white noise of a reading, on each axis.
        bias: Standard deviation of the drifting bias.
        interval_ns: Time between the keys of the bias.
        limit: Largest reading on an axis.
    """

    noise: float
    bias: float
    interval_ns: int
    limit: float


class Imu(NamedTuple):
    """An IMU for kernels; build with ``build_imu``.

    Attributes:
        seed: Random seed of the rig.
        stream: Number of the vehicle in the rig.
        accelerometer: Accelerometer, in m/s^2.
        gyroscope: Gyroscope, in rad/s.
    """

    seed: np.uint64
    stream: int
    accelerometer: InertialSensor
    gyroscope: InertialSensor


def build_imu(spec: ImuSpec, seed: int, stream: int, period_ns: int) -> Imu:
    """Build the IMU of ``spec``, read every ``period_ns``: for a given noise density, the amplitude grows as the period becomes shorter.

    Raises:
        ValueError: the period is out of range.
    """
    require((100_000 <= period_ns <= 1_000_000_000, f"period_ns must be 100000 to 1000000000, got {period_ns}"))
    band = math.sqrt(1e9 / period_ns)
    return Imu(
        np.uint64(seed),
        int(stream),
        InertialSensor(
            spec.accelerometer_noise_mps2_per_sqrt_hz * band,
            float(spec.accelerometer_drift_mps2),
            key_interval_ns(spec.accelerometer_drift_s),
            float(spec.accelerometer_range_mps2),
        ),
        InertialSensor(
            spec.gyroscope_noise_radps_per_sqrt_hz * band,
            float(spec.gyroscope_drift_radps),
            key_interval_ns(spec.gyroscope_drift_s),
            float(spec.gyroscope_range_radps),
        ),
    )


@kernel
def _within(value: float, limit: float) -> float:
    return min(max(value, -limit), limit)


@kernel
def _reading(sensor: InertialSensor, truth: Vector, noise: Vector, bias: Vector) -> Vector:
    x, y, z = truth
    return (
        _within(x + sensor.noise * noise[0] + sensor.bias * bias[0], sensor.limit),
        _within(y + sensor.noise * noise[1] + sensor.bias * bias[1], sensor.limit),
        _within(z + sensor.noise * noise[2] + sensor.bias * bias[2], sensor.limit),
    )


@kernel
def accelerometer(imu: Imu, time_ns: int, specific_force_mps2: Vector) -> Vector:
    """Accelerometer reading in FRD (m/s^2) for a specific force in body FLU."""
    noise = white(imu.seed, imu.stream, time_ns, _ACCELEROMETER)
    bias = drift(imu.seed, imu.stream, time_ns, imu.accelerometer.interval_ns, _ACCELEROMETER_DRIFT)
    return _reading(imu.accelerometer, frd_from_flu(specific_force_mps2), noise, bias)


@kernel
def gyroscope(imu: Imu, time_ns: int, rates_radps: Vector) -> Vector:
    """Gyroscope reading in FRD (rad/s) for rates in body FLU."""
    noise = white(imu.seed, imu.stream, time_ns, _GYROSCOPE)
    bias = drift(imu.seed, imu.stream, time_ns, imu.gyroscope.interval_ns, _GYROSCOPE_DRIFT)
    return _reading(imu.gyroscope, frd_from_flu(rates_radps), noise, bias)
