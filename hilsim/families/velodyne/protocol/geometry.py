"""Table of the direction and firing time of each laser of a model, for emulated sensors and for captures."""

from dataclasses import dataclass

from hilsim.errors import require, within


@dataclass(frozen=True, kw_only=True)
class FiringGeometry:
    """One model's lasers, in the order of a block's records.

    Attributes:
        model: Its name.
        elevation_deg: Elevation of each laser.
        azimuth_offset_deg: Azimuth offset of each laser, added to the block's azimuth (clockwise).
        delay_ns: Time of each laser's firing from the start of its firing sequence.
        sequence_ns: Time between firing sequences.
        distance_unit_mm: Unit of the raw distance.
        vertical_offset_mm: Height of each laser's origin above the sensor's; empty where it is not known.
    """

    model: str
    elevation_deg: tuple[float, ...]
    azimuth_offset_deg: tuple[float, ...]
    delay_ns: tuple[int, ...]
    sequence_ns: int
    distance_unit_mm: float
    vertical_offset_mm: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        lasers = len(self.elevation_deg)
        require(
            (lasers in {16, 32, 128}, f"elevation_deg must name 16, 32 or 128 lasers, got {lasers}"),
            (len(set(self.elevation_deg)) == lasers, "elevation_deg must differ from laser to laser"),
            (len(self.azimuth_offset_deg) == lasers, f"azimuth_offset_deg must name {lasers} lasers, got {len(self.azimuth_offset_deg)}"),
            (len(self.delay_ns) == lasers, f"delay_ns must name {lasers} lasers, got {len(self.delay_ns)}"),
            (
                min(self.delay_ns, default=0) >= 0 and max(self.delay_ns, default=0) <= self.sequence_ns,
                f"delay_ns must be 0 to the firing sequence's {self.sequence_ns}",
            ),
            (
                len(self.vertical_offset_mm) in {0, lasers},
                f"vertical_offset_mm must name {lasers} lasers or none, got {len(self.vertical_offset_mm)}",
            ),
            *within(self, distance_unit_mm=(0.1, 100)),
        )

    @property
    def rows_deg(self) -> tuple[float, ...]:
        """Elevations from the lowest laser to the highest."""
        return tuple(sorted(self.elevation_deg))

    @property
    def elevation_order(self) -> tuple[int, ...]:
        """Lasers from the lowest to the highest."""
        return tuple(sorted(range(len(self.elevation_deg)), key=lambda laser: self.elevation_deg[laser]))

    @property
    def lasers_per_firing(self) -> int:
        """Lasers that fire at once."""
        return self.delay_ns.count(0)

    @property
    def firing_ns(self) -> int:
        """Time between two firings of a sequence."""
        return min(delay_ns for delay_ns in self.delay_ns if delay_ns > 0)


def even_delays_ns(lasers: int, firing_ns: int, lasers_per_firing: int = 1) -> tuple[int, ...]:
    """``delay_ns`` of lasers of which so many fire at once, without a pause between them."""
    return tuple(laser // lasers_per_firing * firing_ns for laser in range(lasers))


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
# VLS-128, as the vendor's viewer and decoders tabulate it: ids 0 to 31 are block FF EE, 32 to 63 FF DD, then FF CC and FF BB
_VLS_128_ELEVATIONS = (
    -11.742, -1.99, 3.4, -5.29, -0.78, 4.61, -4.08, 1.31, -6.5, -1.11, 4.28, -4.41, 0.1, 6.48, -3.2, 2.19,
    -3.86, 1.53, -9.244, -1.77, 2.74, -5.95, -0.56, 4.83, -2.98, 2.41, -6.28, -0.89, 3.62, -5.07, 0.32, 7.58,
    -0.34, 5.18, -3.64, 1.75, -25.0, -2.43, 2.96, -5.73, 0.54, 9.7, -2.76, 2.63, -7.65, -1.55, 3.84, -4.85,
    3.18, -5.51, -0.12, 5.73, -4.3, 1.09, -16.042, -2.21, 4.06, -4.63, 0.76, 15.0, -3.42, 1.97, -6.85, -1.33,
    -5.62, -0.23, 5.43, -3.53, 0.98, -19.582, -2.32, 3.07, -4.74, 0.65, 11.75, -2.65, 1.86, -7.15, -1.44, 3.95,
    -2.1, 3.29, -5.4, -0.01, 4.5, -4.19, 1.2, -13.565, -1.22, 4.17, -4.52, 0.87, 6.08, -3.31, 2.08, -6.65,
    1.42, -10.346, -1.88, 3.51, -6.06, -0.67, 4.72, -3.97, 2.3, -6.39, -1.0, 4.39, -5.18, 0.21, 6.98, -3.09,
    4.98, -3.75, 1.64, -8.352, -2.54, 2.85, -5.84, -0.45, 8.43, -2.87, 2.52, -6.17, -1.66, 3.73, -4.96, 0.43,
)
_VLS_128_CORRECTIONS = (-6.354, -4.548, -2.732, -0.911, 0.911, 2.732, 4.548, 6.354)
# fmt: on


HDL_32E_GEOMETRY = FiringGeometry(
    model="HDL-32E",
    elevation_deg=_HDL_32E_ELEVATIONS,
    azimuth_offset_deg=_NO_OFFSETS_32,  # manual page 23: no horizontal or rotational correction exists
    delay_ns=even_delays_ns(32, 1152),  # manual page 9: slots of 1.152 us, 40 a sequence; the azimuth is the first firing's
    sequence_ns=46_080,  # manual page 9
    distance_unit_mm=2.0,
)
VLP_32C_GEOMETRY = FiringGeometry(
    model="VLP-32C",
    elevation_deg=tuple(elevation for elevation, _ in _VLP_32C_TABLE),
    # manual 63-9325 page 66 for the columns; the sign measured on a public capture: 23 of 23 neighbouring lasers agree with minus rot_correction
    azimuth_offset_deg=tuple(-correction for _, correction in _VLP_32C_TABLE),
    delay_ns=even_delays_ns(32, 2304, lasers_per_firing=2),  # manual 63-9325 page 51: pairs of lasers
    sequence_ns=55_296,  # manual 63-9325 page 51
    distance_unit_mm=4.0,
)
PUCK_HI_RES_GEOMETRY = FiringGeometry(
    model="Puck Hi-Res",
    # manual 63-9243 page 54: steps of a degree and a third, in the VLP-16's order
    elevation_deg=tuple(round(-10.0 + 4.0 / 3.0 * row, 3) for row in (0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15)),
    azimuth_offset_deg=_NO_OFFSETS_16,
    delay_ns=even_delays_ns(16, 2304),  # manual 63-9243 page 49, as the VLP-16
    sequence_ns=55_296,
    distance_unit_mm=2.0,
    # page 54 for lasers 7 to 15; 0 to 6 by the antisymmetry that 7 and 8 show
    vertical_offset_mm=(7.4, -0.9, 6.5, -1.8, 5.5, -2.7, 4.6, -3.7, 3.7, -4.6, 2.7, -5.5, 1.8, -6.5, 0.9, -7.4),
)
VLP_16_GEOMETRY = FiringGeometry(
    model="VLP-16",
    # manual 63-9243 page 54: steps of two degrees, every other first
    elevation_deg=(-15.0, 1.0, -13.0, 3.0, -11.0, 5.0, -9.0, 7.0, -7.0, 9.0, -5.0, 11.0, -3.0, 13.0, -1.0, 15.0),
    azimuth_offset_deg=_NO_OFFSETS_16,
    delay_ns=even_delays_ns(16, 2304),  # manual 63-9243 page 49: 2.304 us between firings
    sequence_ns=55_296,  # page 49: 16 firings and 18.43 us recharge
    distance_unit_mm=2.0,  # page 55
    # page 54 for lasers 7 to 15; 0 to 6 by the antisymmetry that 7 and 8 show (the nine published values follow -41.9 mm * tan(elevation))
    vertical_offset_mm=(11.2, -0.7, 9.7, -2.2, 8.1, -3.7, 6.6, -5.1, 5.1, -6.6, 3.7, -8.1, 2.2, -9.7, 0.7, -11.2),
)


def vls_128_geometry(sequence_ns: int) -> FiringGeometry:
    """The VLS-128's, of which several firing sequences are known."""
    return FiringGeometry(
        model="VLS-128",
        elevation_deg=_VLS_128_ELEVATIONS,
        azimuth_offset_deg=tuple(-_VLS_128_CORRECTIONS[laser % 8] for laser in range(128)),
        # manual 63-9483 pages 49 to 50: 20 slots, sixteen groups of eight, a slot of rest behind the eighth and three behind the last
        delay_ns=tuple((laser // 8 + laser // 64) * sequence_ns // 20 for laser in range(128)),
        sequence_ns=sequence_ns,
        distance_unit_mm=4.0,
    )
