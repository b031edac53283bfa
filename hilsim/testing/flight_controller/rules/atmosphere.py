"""The standard atmosphere upside down: the altitude of a pressure (ISO 2533)."""

import math


def altitude_m(pressure_hpa: float) -> float:
    """Above mean sea level, of a positive pressure."""
    return 44_330.77 * (1.0 - math.pow(pressure_hpa / 1013.25, 0.190263))


def pressure_hpa(altitude: float) -> float:
    """The other way round, below 11 km."""
    return 1013.25 * math.pow(1.0 - altitude / 44_330.77, 1.0 / 0.190263)
