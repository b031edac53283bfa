"""Place of each pixel: from range, column and beam to a point.

The encoder's angle of column m of C is 2 pi (1 - m / C), from lidar +X, which points back to the connector, counter-clockwise seen from above; the head
turns clockwise. A beam fires from its origin beside the axis at azimuth angle - ``azimuth_deg`` and at its elevation, and the range includes the distance n
of that origin from the axis:

    x = (r - n) cos(angle - azimuth) cos(elevation) + D03 cos(angle)
    y = (r - n) sin(angle - azimuth) cos(elevation) + D03 sin(angle)
    z = (r - n) sin(elevation) + D23

in the lidar frame, where D is ``beam_to_lidar`` and n = sqrt(D03^2 + D23^2); ``lidar_to_sensor`` takes it into the sensor frame.

Source: ouster-sdk 1.0.1 (ouster_core/src/xyzlut.cpp), with whose table ``points_m`` agrees to the rounding of floats (tests/interop/test_ouster_sdk.py).
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilsim.errors import require
from hilsim.families.ouster.protocol.headers import ENCODER_COUNTS

Transform = tuple[float, ...]
"""Sixteen numbers: a matrix 4 x 4 row by row, its offsets in millimetres."""
MM_PER_M = 1000.0


def offset_transform(x_mm: float, y_mm: float, z_mm: float, *, is_reversed: bool = False) -> Transform:
    """Transform by an offset, and with ``is_reversed`` by half a turn about z."""
    side = -1.0 if is_reversed else 1.0
    return (side, 0.0, 0.0, x_mm, 0.0, side, 0.0, y_mm, 0.0, 0.0, 1.0, z_mm, 0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class Beams:
    """Beams of one unit, row 0 the top one.

    Attributes:
        elevation_deg: ``beam_altitude_angles``.
        azimuth_deg: ``beam_azimuth_angles``, positive clockwise seen from above.
        beam_to_lidar: ``beam_to_lidar_transform``.
        lidar_to_sensor: ``lidar_to_sensor_transform``.
    """

    elevation_deg: tuple[float, ...]
    azimuth_deg: tuple[float, ...]
    beam_to_lidar: Transform
    lidar_to_sensor: Transform

    def __post_init__(self) -> None:
        beams = len(self.elevation_deg)
        require(
            (beams >= 1, "elevation_deg must name at least 1 beam, got none"),
            (len(self.azimuth_deg) == beams, f"azimuth_deg must name {beams} beams, got {len(self.azimuth_deg)}"),
            (len(self.beam_to_lidar) == 16, f"beam_to_lidar must have 16 numbers, got {len(self.beam_to_lidar)}"),
            (len(self.lidar_to_sensor) == 16, f"lidar_to_sensor must have 16 numbers, got {len(self.lidar_to_sensor)}"),
        )

    @property
    def channels(self) -> int:
        """Number of beams."""
        return len(self.elevation_deg)

    @property
    def origin_mm(self) -> float:
        """``lidar_origin_to_beam_origin_mm``: the part of each range before the beam's origin."""
        return math.hypot(self.beam_to_lidar[3], self.beam_to_lidar[11])


def column_angles_rad(measurement_id: npt.ArrayLike, columns_per_frame: int) -> npt.NDArray[np.float64]:
    """Angle of the encoder at columns of these measurement ids."""
    return 2.0 * math.pi * (1.0 - np.asarray(measurement_id, np.float64) / columns_per_frame)


def encoder_angles_rad(encoder_count: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Angle of the encoder at the encoder counts of LEGACY columns."""
    return column_angles_rad(encoder_count, ENCODER_COUNTS)


def points_m(
    range_mm: npt.NDArray[np.integer], angle_rad: npt.NDArray[np.float64], beams: Beams, *, in_sensor_frame: bool = True
) -> npt.NDArray[np.float64]:
    """Points of pixels.

    Args:
        range_mm: ``[..., column, channel]``.
        angle_rad: ``float64[..., column]``, results of ``column_angles_rad``; its axes are broadcast against those of ``range_mm``.
        beams: Beams of the sensor.
        in_sensor_frame: In the sensor frame, else in the lidar frame.

    Returns:
        ``float64[..., column, channel, 3]``, metres; NaN where there is no return.
    """
    angle = angle_rad[..., None]
    elevation = np.deg2rad(np.array(beams.elevation_deg))
    azimuth = angle - np.deg2rad(np.array(beams.azimuth_deg))
    rest = np.where(range_mm > 0, range_mm - beams.origin_mm, np.nan)
    points = np.stack(
        [
            rest * (np.cos(azimuth) * np.cos(elevation)) + beams.beam_to_lidar[3] * np.cos(angle),
            rest * (np.sin(azimuth) * np.cos(elevation)) + beams.beam_to_lidar[3] * np.sin(angle),
            rest * np.sin(elevation) + beams.beam_to_lidar[11],
        ],
        axis=-1,
    )
    if in_sensor_frame:
        matrix = np.array(beams.lidar_to_sensor).reshape(4, 4)
        points = points @ matrix[:3, :3].T + matrix[:3, 3]
    return points / MM_PER_M
