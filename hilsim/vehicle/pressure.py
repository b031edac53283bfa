"""Barometer and pitot tube, in MAVLink's HIL_SENSOR units: hPa (not Pa), metres, degrees Celsius."""

from typing import NamedTuple

import numpy as np

from hilsim.compilation.jit import constant, kernel
from hilsim.geometry.frames import Vector
from hilsim.rng import Purpose
from hilsim.vehicle.atmosphere import density_kgpm3, pressure_altitude_m, pressure_pa, temperature_c
from hilsim.vehicle.noise import drift, key_interval_ns, white
from hilsim.vehicle.sensor_specs import BarometerSpec, PitotSpec

_BAROMETER = constant(Purpose.BAROMETER)
_DRIFT = constant(Purpose.BAROMETER_DRIFT)
_PITOT = constant(Purpose.PITOT)
_HPA_PER_PA = 0.01


class PressureSensors(NamedTuple):
    """Barometer and pitot tube for kernels; build with ``build_pressure_sensors``.

    Attributes:
        seed: Random seed of the rig.
        stream: Number of the vehicle in the rig.
        noise_pa: White noise of the barometer.
        drift_pa: Drift of the weather.
        interval_ns: Time between the keys of the weather.
        pitot_noise_pa: White noise of the pitot tube.
    """

    seed: np.uint64
    stream: int
    noise_pa: float
    drift_pa: float
    interval_ns: int
    pitot_noise_pa: float


def build_pressure_sensors(barometer_spec: BarometerSpec, pitot_spec: PitotSpec, seed: int, stream: int) -> PressureSensors:
    """Build the sensors of two specifications."""
    return PressureSensors(
        np.uint64(seed),
        int(stream),
        float(barometer_spec.noise_pa),
        float(barometer_spec.drift_pa),
        key_interval_ns(barometer_spec.drift_s),
        float(pitot_spec.noise_pa),
    )


@kernel
def barometer(sensors: PressureSensors, time_ns: int, altitude_m: float) -> Vector:
    """Pressure (hPa), pressure altitude (m), and temperature (degrees Celsius) at an altitude above mean sea level."""
    noise, _, _ = white(sensors.seed, sensors.stream, time_ns, _BAROMETER)
    weather, _, _ = drift(sensors.seed, sensors.stream, time_ns, sensors.interval_ns, _DRIFT)
    pressure = pressure_pa(altitude_m) + sensors.noise_pa * noise + sensors.drift_pa * weather
    return pressure * _HPA_PER_PA, pressure_altitude_m(pressure), temperature_c(altitude_m)


@kernel
def differential_pressure(sensors: PressureSensors, time_ns: int, altitude_m: float, air_mps: Vector) -> float:
    """Dynamic pressure (hPa) of a forward-facing tube, negative from behind; ``air_mps``: the body's velocity through the air, in body axes."""
    noise, _, _ = white(sensors.seed, sensors.stream, time_ns, _PITOT)
    forward = air_mps[0]
    return _HPA_PER_PA * (0.5 * density_kgpm3(altitude_m) * forward * abs(forward) + sensors.pitot_noise_pa * noise)
