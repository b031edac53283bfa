"""Barometer and pitot tube, in MAVLink's HIL_SENSOR units: hPa (not Pa), metres, degrees Celsius.

A barometer computes altitude from the ICAO standard atmosphere below 11 km (Doc 7488; ISO 2533).
"""

import math
from typing import NamedTuple

import numpy as np

from hilsim.compilation.jit import constant, kernel
from hilsim.parts.vehicle.physics.noise import drift, key_interval_ns, white
from hilsim.parts.vehicle.physics.sensor_specs import BarometerSpec, PitotSpec
from hilsim.rng import Purpose
from hilsim.world.geometry.frames import Vector

SEA_LEVEL_PA = 101_325.0
_SEA_LEVEL_K = 288.15
_LAPSE_K_PER_M = 0.0065
_EXPONENT = 5.255_88  # g M / (R L)
_GAS_J_PER_KG_K = 287.052_87
_ZERO_CELSIUS_K = 273.15
_BAROMETER = constant(Purpose.BAROMETER)
_DRIFT = constant(Purpose.BAROMETER_DRIFT)
_PITOT = constant(Purpose.PITOT)
_HPA_PER_PA = 0.01


@kernel
def temperature_c(altitude_m: float) -> float:
    """Degrees Celsius at an altitude above mean sea level."""
    return _SEA_LEVEL_K - _ZERO_CELSIUS_K - _LAPSE_K_PER_M * altitude_m


@kernel
def pressure_pa(altitude_m: float) -> float:
    """Pressure at an altitude above mean sea level."""
    return SEA_LEVEL_PA * math.pow(1.0 - _LAPSE_K_PER_M / _SEA_LEVEL_K * altitude_m, _EXPONENT)


@kernel
def pressure_altitude_m(pressure: float) -> float:
    """Altitude at which the standard atmosphere has a pressure (Pa)."""
    return _SEA_LEVEL_K / _LAPSE_K_PER_M * (1.0 - math.pow(pressure / SEA_LEVEL_PA, 1.0 / _EXPONENT))


@kernel
def density_kgpm3(altitude_m: float) -> float:
    """Density of dry air at an altitude above mean sea level."""
    return pressure_pa(altitude_m) / (_GAS_J_PER_KG_K * (temperature_c(altitude_m) + _ZERO_CELSIUS_K))


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
