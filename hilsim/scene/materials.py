"""Materials of surfaces: their properties for a lidar at 903 nm.

Defaults are the middle of published ranges (ECOSTRESS/ASTER spectral library, vendors' paint tables), not measurements of one surface;
a rig can define its own values.
"""

from dataclasses import dataclass

from hilsim.errors import require

DIFFUSE_MAX = 100
"""Highest reflectivity code of a diffuse surface, in percent; 101 to 255 are retro-reflectors (VLP-16 manual 63-9243, reflectivity)."""


@dataclass(frozen=True, kw_only=True)
class Material:
    """Optical properties of a surface.

    Attributes:
        name: Name of the material.
        reflectivity: The calibrated code of the sensor's manual: 0 to 100 percent of a white diffuse surface; 101 (retro-reflector behind
            a translucent cover) to 255 (ideal retro-reflector).
        porosity: Share of open area, 0 to 1: this share of a beam's footprint passes, the rest hits the surface (foliage, fences).
        transmission: Share of the light that the closed area transmits, one way, 0 to 1 (glass).
        gap_m: Size of the openings of a static porous surface: a beam narrower than this passes or hits as a whole. 0: openings are so fine
            that every ray is split by its share.
    """

    name: str
    reflectivity: int
    porosity: float = 0.0
    transmission: float = 0.0
    gap_m: float = 0.0

    def __post_init__(self) -> None:
        require(
            (bool(self.name), "name must not be empty"),
            (0 <= self.reflectivity <= 255, f"reflectivity must be 0 to 255, got {self.reflectivity}"),
            (0.0 <= self.porosity <= 1.0, f"porosity must be 0 to 1, got {self.porosity}"),
            (0.0 <= self.transmission <= 1.0, f"transmission must be 0 to 1, got {self.transmission}"),
            (0.0 <= self.gap_m <= 10.0, f"gap_m must be 0 to 10, got {self.gap_m}"),
        )

    @property
    def equivalent_reflectivity(self) -> float:
        """Reflectivity relative to a white Lambertian surface, towards the sensor: above 1 for retro-reflectors.

        The manual's scale above 100 is assumed to be logarithmic over a factor of 1000 (recommended, unproven: the mapping is not published).
        """
        if self.is_retro:
            return float(1000.0 ** ((self.reflectivity - 101) / 154.0))
        return self.reflectivity / 100.0

    @property
    def is_retro(self) -> bool:
        """Whether the surface reflects light back to its source at any angle."""
        return self.reflectivity > DIFFUSE_MAX


DEFAULTS: dict[str, Material] = {
    name: Material(name=name, reflectivity=reflectivity)
    for name, reflectivity in {
        "asphalt": 17,
        "asphalt_new": 8,
        "concrete": 35,
        "grass": 50,
        "soil": 25,
        "gravel": 25,
        "snow": 85,
        "water": 2,
        "paint_white": 70,
        "paint_silver": 40,
        "paint_black": 5,
        "brick": 45,
        "plaster": 85,
        "road_marking": 60,
        "wood": 50,
        "rubber": 4,
        # High-intensity sheet, 250 cd/lx/m2, equals about 785 times a white diffuse surface; 101 + 154 ln(785)/ln(1000), see sensor.response.
        "retro_sign": 250,
    }.items()
} | {"leaves": Material(name="leaves", reflectivity=50, porosity=0.5, gap_m=0.15)}
"""Materials by name; reflectivity at 905 nm. Ranges: asphalt 5-25 %, concrete 25-45, grass 40-65, soil 15-40, snow 70-95, brick 30-60. Half of a tree crown's layer is open (recommended,
unproven), in gaps as wide as a leaf's length."""
