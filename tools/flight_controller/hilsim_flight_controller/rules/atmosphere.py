"""The standard atmosphere inverted: altitude from pressure (ISO 2533)."""

import math


def altitude_m(pressure_hpa: float) -> float:
    """Altitude above mean sea level for a positive pressure."""
    return 44_330.77 * (1.0 - math.pow(pressure_hpa / 1013.25, 0.190263))


def pressure_hpa(altitude: float) -> float:
    """Pressure for an altitude below 11 km."""
    return 1013.25 * math.pow(1.0 - altitude / 44_330.77, 1.0 / 0.190263)
