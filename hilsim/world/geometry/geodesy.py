"""Location of the world on the Earth: one home for the lidar's receiver, the vehicle's GPS and the scene.

The world is a local map: east and north are lengths along the ellipsoid, z is height. Heights therefore ignore the curvature of the Earth.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from hilsim.compilation.jit import kernel
from hilsim.errors import require, within
from hilsim.world.geometry.frames import Vector

# WGS-84 (NIMA TR8350.2): semi-major axis and first eccentricity squared.
_SEMI_MAJOR_M = 6_378_137.0
_ECCENTRICITY_SQUARED = 6.69437999014e-3


@dataclass(frozen=True, kw_only=True)
class HomeSpec:
    """Location of the world's ``origin_m`` on the Earth.

    Attributes:
        latitude_deg: Latitude, WGS-84, -89 to 89: at the poles east is undefined.
        longitude_deg: Longitude, WGS-84, -180 to 180.
        altitude_m: Altitude above mean sea level, -500 to 9000.
        origin_m: Point of the world with these coordinates.
    """

    latitude_deg: float
    longitude_deg: float
    altitude_m: float = 0.0
    origin_m: Vector = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        require(
            *within(self, latitude_deg=(-89, 89), longitude_deg=(-180, 180), altitude_m=(-500, 9000)),
            (all(map(math.isfinite, self.origin_m)), f"origin_m must be finite, got {self.origin_m}"),
        )


class Home(NamedTuple):
    """A home for kernels; build with ``build_home``. Attributes as in ``HomeSpec``."""

    latitude_deg: float
    longitude_deg: float
    altitude_m: float
    origin_m: Vector


def build_home(spec: HomeSpec) -> Home:
    """Build the home of ``spec``."""
    east, north, up = (float(part) for part in spec.origin_m)
    return Home(float(spec.latitude_deg), float(spec.longitude_deg), float(spec.altitude_m), (east, north, up))


@kernel
def geodetic(latitude_deg: float, longitude_deg: float, east_m: float, north_m: float) -> tuple[float, float]:
    """Latitude and longitude (deg) of a point east and north of a reference, on the WGS-84 radii at the reference.

    The error of the tangent-plane approximation is about d^2 / 12,700 km in the along-track direction: 8 cm at 1 km.
    """
    sine = math.sin(math.radians(latitude_deg))
    root = math.sqrt(1.0 - _ECCENTRICITY_SQUARED * sine * sine)
    prime_vertical_m = _SEMI_MAJOR_M / root
    meridian_m = _SEMI_MAJOR_M * (1.0 - _ECCENTRICITY_SQUARED) / (root * root * root)
    latitude = latitude_deg + math.degrees(north_m / meridian_m)
    longitude = longitude_deg + math.degrees(east_m / (prime_vertical_m * math.cos(math.radians(latitude_deg))))
    return latitude, (longitude + 180.0) % 360.0 - 180.0


@kernel
def geodetic_at(home: Home, position_m: Vector) -> tuple[float, float, float]:
    """Latitude and longitude (deg) and altitude above mean sea level (m) of a point of the world."""
    x, y, z = position_m
    east, north, up = home.origin_m
    latitude, longitude = geodetic(home.latitude_deg, home.longitude_deg, x - east, y - north)
    return latitude, longitude, home.altitude_m + z - up
