"""The standard atmosphere upside down: the altitude that a pressure stands for (ISO 2533)."""


def altitude_m(pressure_hpa):
    """Above mean sea level, of a positive pressure."""
    return 44_330.77 * (1.0 - (pressure_hpa / 1013.25) ** 0.190263)


def pressure_hpa(altitude):
    """The other way round, below 11 km."""
    return 1013.25 * (1.0 - altitude / 44_330.77) ** (1.0 / 0.190263)
