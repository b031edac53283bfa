"""The ICAO standard atmosphere below 11 km (Doc 7488; ISO 2533), from which a barometer computes altitude."""

import math

from hilsim.compilation.jit import kernel

SEA_LEVEL_PA = 101_325.0
_SEA_LEVEL_K = 288.15
_LAPSE_K_PER_M = 0.0065
_EXPONENT = 5.255_88  # g M / (R L)
_GAS_J_PER_KG_K = 287.052_87
_ZERO_CELSIUS_K = 273.15


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
