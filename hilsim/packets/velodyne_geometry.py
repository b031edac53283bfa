"""Where each laser of a model looks and when it fires after its block's azimuth was read: what it takes to place returns without a profile of the model."""

from dataclasses import dataclass

from hilsim.errors import require
from hilsim.packets.velodyne_models import HDL_32E, PUCK_HI_RES, VLP_32C


@dataclass(frozen=True, kw_only=True)
class FiringGeometry:
    """One model's lasers, in the order of a block's records.

    Attributes:
        model: Its name.
        elevation_deg: Of each laser.
        azimuth_offset_deg: Of each laser, added to the block's azimuth (clockwise).
        delay_ns: Of each laser, from the start of its firing sequence.
        sequence_ns: Time between firing sequences.
        distance_unit_mm: Of the raw distance.
    """

    model: str
    elevation_deg: tuple[float, ...]
    azimuth_offset_deg: tuple[float, ...]
    delay_ns: tuple[int, ...]
    sequence_ns: int
    distance_unit_mm: float

    def __post_init__(self) -> None:
        lasers = len(self.elevation_deg)
        require(
            (lasers in {16, 32}, f"elevation_deg must name 16 or 32 lasers, got {lasers}"),
            (len(set(self.elevation_deg)) == lasers, "elevation_deg must differ from laser to laser"),
            (len(self.azimuth_offset_deg) == lasers, f"azimuth_offset_deg must name {lasers} lasers, got {len(self.azimuth_offset_deg)}"),
            (len(self.delay_ns) == lasers, f"delay_ns must name {lasers} lasers, got {len(self.delay_ns)}"),
            (
                min(self.delay_ns, default=0) >= 0 and max(self.delay_ns, default=0) <= self.sequence_ns,
                f"delay_ns must be 0 to the firing sequence's {self.sequence_ns}",
            ),
            (0.1 <= self.distance_unit_mm <= 100.0, f"distance_unit_mm must be 0.1 to 100, got {self.distance_unit_mm}"),
        )

    @property
    def rows_deg(self) -> tuple[float, ...]:
        """Elevations from the lowest laser to the highest."""
        return tuple(sorted(self.elevation_deg))


_NO_OFFSETS_16 = (0.0,) * 16
_NO_OFFSETS_32 = (0.0,) * 32
# id: elevation, rot_correction as decoders tabulate it (azimuth = block's - rot_correction)
# fmt: off
_VLP_32C_TABLE = (
    (-25.0, -1.4), (-1.0, 4.2), (-1.667, -1.4), (-15.639, 1.4), (-11.31, -1.4), (0.0, 1.4), (-0.667, -4.2), (-8.843, 1.4),
    (-7.254, -1.4), (0.333, 4.2), (-0.333, -1.4), (-6.148, 1.4), (-5.333, -4.2), (1.333, 1.4), (0.667, -4.2), (-4.0, 1.4),
    (-4.667, -1.4), (1.667, 4.2), (1.0, -1.4), (-3.667, 4.2), (-3.333, -4.2), (3.333, 1.4), (2.333, -1.4), (-2.667, 1.4),
    (-3.0, -1.4), (7.0, 1.4), (4.667, -1.4), (-2.333, 4.2), (-2.0, -4.2), (15.0, 1.4), (10.333, -1.4), (-1.333, 1.4),
)
# HDL-32E manual, as in PCL: a degree and a third apart, lasers of the lower and the upper half in turn
_HDL_32E_ELEVATIONS = (
    -30.67, -9.33, -29.33, -8.0, -28.0, -6.67, -26.67, -5.33, -25.33, -4.0, -24.0, -2.67, -22.67, -1.33, -21.33, 0.0,
    -20.0, 1.33, -18.67, 2.67, -17.33, 4.0, -16.0, 5.33, -14.67, 6.67, -13.33, 8.0, -12.0, 9.33, -10.67, 10.67,
)
# fmt: on

HDL_32E_GEOMETRY = FiringGeometry(
    model=HDL_32E.name,
    elevation_deg=_HDL_32E_ELEVATIONS,
    azimuth_offset_deg=_NO_OFFSETS_32,  # manual page 23: no horizontal or rotational correction exists
    delay_ns=tuple(1152 * laser for laser in range(32)),  # manual page 9: slots of 1.152 us, 40 a sequence; the azimuth is the first shot's
    sequence_ns=HDL_32E.sequence_ns,
    distance_unit_mm=HDL_32E.distance_unit_mm,
)
VLP_32C_GEOMETRY = FiringGeometry(
    model=VLP_32C.name,
    elevation_deg=tuple(elevation for elevation, _ in _VLP_32C_TABLE),
    # manual 63-9325 page 66 for the columns; the sign measured on a public capture: 23 of 23 neighbouring lasers agree with minus rot_correction
    azimuth_offset_deg=tuple(-correction for _, correction in _VLP_32C_TABLE),
    delay_ns=tuple(2304 * (laser // 2) for laser in range(32)),  # manual 63-9325 page 51: pairs of lasers
    sequence_ns=VLP_32C.sequence_ns,
    distance_unit_mm=VLP_32C.distance_unit_mm,
)
PUCK_HI_RES_GEOMETRY = FiringGeometry(
    model=PUCK_HI_RES.name,
    # manual 63-9243 page 54: steps of a degree and a third, in the VLP-16's order
    elevation_deg=tuple(round(-10.0 + 4.0 / 3.0 * row, 3) for row in (0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15)),
    azimuth_offset_deg=_NO_OFFSETS_16,
    delay_ns=tuple(2304 * laser for laser in range(16)),
    sequence_ns=PUCK_HI_RES.sequence_ns,
    distance_unit_mm=PUCK_HI_RES.distance_unit_mm,
)
GEOMETRIES = {geometry.model: geometry for geometry in (HDL_32E_GEOMETRY, VLP_32C_GEOMETRY, PUCK_HI_RES_GEOMETRY)}
"""By the model's name; models with a profile have theirs there."""
