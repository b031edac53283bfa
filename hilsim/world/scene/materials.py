"""Materials of surfaces: their properties for a lidar at 903 nm.

Defaults are the middle of published ranges (ECOSTRESS/ASTER spectral library, vendors' paint tables), not measurements of one surface;
a rig can define its own values.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

from hilsim.errors import require, within

DIFFUSE_MAX = 100
"""Highest reflectivity code of a diffuse surface, in percent; 101 to 255 are retro-reflectors (VLP-16 manual 63-9243, reflectivity)."""


class Optic(IntEnum):
    """Columns of ``World.optics``: the properties of a ``Material`` that kernels take."""

    REFLECTIVITY = 0
    """``Material.equivalent_reflectivity``."""
    RETRO = 1
    """1 for a retro-reflector."""
    POROSITY = 2
    TRANSMISSION = 3
    GAP = 4
    TEXTURE = 5
    TEXTURE_SIZE = 6
    GLOSS = 7
    MIRROR = 8
    FLAW = 9
    FLAW_SIZE = 10
    RELIEF = 11


@dataclass(frozen=True, kw_only=True)
class MaterialSpec:
    """Reflection of the pulse by a surface.

    Attributes:
        reflectivity: Velodyne's calibrated scale: 0 to 100 for a diffuse surface in percent, 101 (a retro-reflector behind a translucent cover) to 255 (an
            ideal retro-reflector).
        porosity: Share of open area, 0 to 1: foliage 0.4 to 0.5 a layer, chain-link fence 0.9.
        transmission: Share of light that the closed area transmits, one way, 0 to 1: a window pane 0.85.
        gap_m: Size of the openings of a static porous surface: a beam narrower than this passes or hits as a whole. 0: so fine that every ray is split.
        texture: Standard deviation of the reflectivity over the surface, relative to its mean.
        texture_m: Size of the larger patches of that texture; the smaller ones are a quarter of it.
        relief_m: Standard deviation of the depth of the smaller patches, along the ray; seen only with a texture.
        gloss: Share of the diffuse light that is reflected in a lobe about the mirror's direction: it comes back where the beam meets the surface squarely.
        mirror: Share of the light that is reflected as by a mirror where the beam meets the surface squarely, more at a flat angle (Schlick's
            approximation of Fresnel's law): a pane of glass 0.08, calm water 0.02, a metal mirror 0.9.
        flaw_ratio: Share of the surface that is flawed. At a flaw, always the same one, a share of the light is lost, and a firing whose axis meets it
            returns nothing with that probability. Each flaw has its own share: few lose all, most lose little.
        flaw_m: Size of the flaws.
    """

    reflectivity: int
    porosity: float = 0.0
    transmission: float = 0.0
    gap_m: float = 0.0
    texture: float = 0.0
    texture_m: float = 0.4
    relief_m: float = 0.0
    gloss: float = 0.0
    mirror: float = 0.0
    flaw_ratio: float = 0.0
    flaw_m: float = 0.05

    def __post_init__(self) -> None:
        require(*self.rules())

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule as a condition and its error message."""
        yield from within(self, reflectivity=(0, 255), porosity=(0, 1), transmission=(0, 1), gap_m=(0, 10), texture=(0, 0.5), texture_m=(0.01, 100))
        yield from within(self, relief_m=(0, 0.1), gloss=(0, 1), mirror=(0, 1), flaw_ratio=(0, 1), flaw_m=(0.001, 10))


@dataclass(frozen=True, kw_only=True)
class Material(MaterialSpec):
    """Optical properties of a surface that has a name.

    Attributes:
        name: Name of the material.
    """

    name: str

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Yield each rule as a condition and its error message."""
        yield bool(self.name), "name must not be empty"
        yield from super().rules()

    @property
    def lets_light_on(self) -> bool:
        """Whether light goes on from the surface: through it, or by its mirror image."""
        return max(self.porosity, self.transmission, self.mirror) > 0.0

    @property
    def optics(self) -> tuple[float, ...]:
        """The material's row of ``World.optics``, columns by ``Optic``."""
        return (
            self.equivalent_reflectivity,
            self.is_retro,
            self.porosity,
            self.transmission,
            self.gap_m,
            self.texture,
            self.texture_m,
            self.gloss,
            self.mirror,
            self.flaw_ratio,
            self.flaw_m,
            self.relief_m if self.texture > 0.0 else 0.0,
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
    material.name: material
    for material in (
        Material(name="asphalt", reflectivity=17, texture=0.04, texture_m=0.1, relief_m=0.004),
        Material(name="asphalt_new", reflectivity=8, texture=0.08, texture_m=0.1, relief_m=0.003),
        Material(name="concrete", reflectivity=35, texture=0.12, texture_m=0.2, relief_m=0.004),
        Material(name="grass", reflectivity=50, texture=0.15, texture_m=0.2, relief_m=0.012),
        Material(name="soil", reflectivity=25, texture=0.2, texture_m=0.1, relief_m=0.006),
        Material(name="gravel", reflectivity=25, texture=0.25, texture_m=0.1, relief_m=0.008),
        Material(name="snow", reflectivity=85, texture=0.04, texture_m=0.8, relief_m=0.005),
        Material(name="water", reflectivity=2, mirror=0.02),
        Material(name="paint_white", reflectivity=70, texture=0.03, texture_m=1.0, gloss=0.3, relief_m=0.001),
        Material(name="paint_silver", reflectivity=40, texture=0.03, texture_m=1.0, gloss=0.5, relief_m=0.001),
        Material(name="paint_black", reflectivity=5, texture=0.05, texture_m=0.2, gloss=0.5, relief_m=0.001),
        Material(name="brick", reflectivity=45, texture=0.06, texture_m=0.1, relief_m=0.004),
        Material(name="plaster", reflectivity=85, texture=0.04, texture_m=0.2, relief_m=0.0035),
        Material(name="road_marking", reflectivity=60, texture=0.1, texture_m=0.2, relief_m=0.003),
        Material(name="wood", reflectivity=50, texture=0.08, texture_m=0.1, relief_m=0.0035),
        Material(name="rubber", reflectivity=4, texture=0.06, texture_m=0.1, relief_m=0.004),
        # High-intensity sheet, 250 cd/lx/m2, equals about 785 times a white diffuse surface; 101 + 154 ln(785)/ln(1000), see sensor.response.
        Material(name="retro_sign", reflectivity=250),
        Material(name="leaves", reflectivity=50, porosity=0.5, gap_m=0.15, texture=0.25, texture_m=0.1, relief_m=0.012),
    )
}
"""Materials by name; reflectivity at 905 nm. Ranges: asphalt 5-25 %, concrete 25-45, grass 40-65, soil 15-40, snow 70-95, brick 30-60. Half of a tree crown's layer is open (recommended,
unproven), in gaps as wide as a leaf's length. Gloss is hilsim's default, no measurement.
Texture: twelve neighbouring returns of real surfaces vary by 8 to 15 % at bytes 3 to 9 and above 40, noise included, and by a fifth at 10 to 40 (captures of five VLP-16s, six Ousters). Water: Fresnel's 0.02 for n = 1.33."""

_WETTABLE = frozenset({"asphalt", "asphalt_new", "concrete", "gravel", "road_marking", "soil", "tiles"})
_FILM = 0.02
"""Share of the light that water reflects where it meets it squarely (n = 1.33)."""


def wet(material: Material, wetness: float) -> Material:
    """A ground's material under a film of water that covers ``wetness`` of it; any other as it is.

    Wet, it returns half of the diffuse light (recommended, unproven; published ratios of wet to dry asphalt lie about there) and mirrors what stands on it.
    """
    if wetness == 0.0 or material.name not in _WETTABLE:
        return material
    return replace(material, reflectivity=round(material.reflectivity * (1.0 - 0.5 * wetness)), mirror=max(material.mirror, _FILM * wetness))
