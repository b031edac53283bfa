"""Magnetic field of the Earth at a place and date, from the World Magnetic Model (NOAA/BGS WMM2025) as computed by pygeomag."""

from typing import NamedTuple

import pygeomag
from pygeomag.wmm.wmm_2025 import WMM_2025

from hilsim.errors import require
from hilsim.world.geometry.frames import Vector, ned_from_enu

_GAUSS_PER_NT = 1e-5
FIRST_YEAR, LAST_YEAR = 2025.0, 2030.0
"""Period of validity of the model, in decimal years."""


class MagneticField(NamedTuple):
    """The magnetic field at home, assumed constant over the whole flight.

    Attributes:
        ned_gauss: Field in north, east and down.
        enu_gauss: Field in the world.
    """

    ned_gauss: Vector
    enu_gauss: Vector


def magnetic_field(latitude_deg: float, longitude_deg: float, altitude_m: float, year: float) -> MagneticField:
    """The field at a place; ``year`` is decimal, 2026.5 the middle of 2026.

    Raises:
        ValueError: the date is outside the model's validity.
    """
    require((FIRST_YEAR <= year <= LAST_YEAR, f"year must be {FIRST_YEAR:g} to {LAST_YEAR:g} (WMM2025), got {year}"))
    result = pygeomag.GeoMag(coefficients_data=WMM_2025).calculate(glat=latitude_deg, glon=longitude_deg, alt=altitude_m / 1000.0, time=year)
    north, east, down = float(result.x) * _GAUSS_PER_NT, float(result.y) * _GAUSS_PER_NT, float(result.z) * _GAUSS_PER_NT
    return MagneticField((north, east, down), ned_from_enu((north, east, down)))
