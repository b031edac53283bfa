"""The sensor's window: soiling, and dirtier or blocked sectors.

Soiling only attenuates. Backscatter from it is not modelled: no source gives an amount for a Velodyne's window, and echoes of the window itself are below
the VLP-16's minimum range of 0.5 m.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.errors import require, within
from hilsim.units import TURN_CDEG


@dataclass(frozen=True, kw_only=True)
class WindowSectorSpec:
    """A sector of the window with lower transmission, in the sensor's frame.

    Attributes:
        azimuth_from_deg: Start of the sector, clockwise, 0 to less than 360.
        azimuth_to_deg: End of the sector (exclusive), 0 to 360; below the start for a sector across 0. 0 to 360 is the whole turn.
        elevation_from_deg: Lowest elevation, inclusive.
        elevation_to_deg: Highest elevation, inclusive.
        transmission: Transmission, one way, 0 to 1; 0 is blocked.
    """

    azimuth_from_deg: float
    azimuth_to_deg: float
    elevation_from_deg: float = -90.0
    elevation_to_deg: float = 90.0
    transmission: float

    def __post_init__(self) -> None:
        require(
            *within(self, azimuth_to_deg=(0, 360), transmission=(0, 1)),
            (0.0 <= self.azimuth_from_deg < 360.0, f"azimuth_from_deg must be 0 to less than 360, got {self.azimuth_from_deg}"),
            (
                self.azimuth_from_deg != self.azimuth_to_deg,
                f"azimuth_from_deg and azimuth_to_deg must differ (0 and 360 for a whole turn), got {self.azimuth_from_deg} for both",
            ),
            (
                -90.0 <= self.elevation_from_deg <= self.elevation_to_deg <= 90.0,
                f"elevation_from_deg and elevation_to_deg must be -90 <= from <= to <= 90, got {self.elevation_from_deg} and {self.elevation_to_deg}",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class WindowSpec:
    """The sensor's window; by default it is fully transparent.

    Attributes:
        soiling_transmission: Transmission of an even layer of dirt, one way, above 0 to 1.
        sectors: Sectors with lower transmission; where they overlap, their transmissions multiply.
    """

    moved_keys: ClassVar[Mapping[str, str]] = {"dirt_transmission": "soiling_transmission"}

    soiling_transmission: float = 1.0
    sectors: tuple[WindowSectorSpec, ...] = ()

    def __post_init__(self) -> None:
        require((0.0 < self.soiling_transmission <= 1.0, f"soiling_transmission must be above 0 and at most 1, got {self.soiling_transmission}"))


class Window(NamedTuple):
    """Kernel-side window with ``s`` sectors.

    Attributes:
        soiling_transmission: ``WindowSpec.soiling_transmission``.
        sectors: ``float64[s, 5]``: start azimuth and width (0.01 deg), lowest and highest elevation (deg), transmission.
    """

    soiling_transmission: float
    sectors: npt.NDArray[np.float64]


def build_window(spec: WindowSpec) -> Window:
    """Build the kernel-side window."""
    sectors = np.zeros((len(spec.sectors), 5))
    for at, sector in enumerate(spec.sectors):
        width_deg = sector.azimuth_to_deg - sector.azimuth_from_deg
        if width_deg < 0.0:
            width_deg += 360.0
        sectors[at] = 100.0 * sector.azimuth_from_deg, 100.0 * width_deg, sector.elevation_from_deg, sector.elevation_to_deg, sector.transmission
    return Window(float(spec.soiling_transmission), sectors)


@kernel
def window_transmission(window: Window, azimuth_cdeg: float, elevation_deg: float) -> float:
    """Transmission of the window, one way, 0 to 1; square it for the way out and back.

    Args:
        window: The window.
        azimuth_cdeg: Azimuth of the beam in the sensor's frame, clockwise (the head's angle plus the channel's offset), 0.01 deg, in any turn.
        elevation_deg: Elevation of the beam in the sensor's frame.
    """
    share = window.soiling_transmission
    for sector in range(window.sectors.shape[0]):
        is_level = window.sectors[sector, 2] <= elevation_deg <= window.sectors[sector, 3]
        if is_level and (azimuth_cdeg - window.sectors[sector, 0]) % TURN_CDEG < window.sectors[sector, 1]:
            share *= window.sectors[sector, 4]
    return share
