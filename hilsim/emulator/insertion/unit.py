"""A recorded unit as kernels take it: where its firings look, and what it makes of an echo."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import by_reference
from hilsim.families.velodyne.protocol.firing import RecordFirings, build_record_firings
from hilsim.families.velodyne.protocol.geometry import FiringGeometry
from hilsim.geometry.poses import Pose
from hilsim.sensor.optics.beam import Beam
from hilsim.sensor.response import Response, cepton_ratios, velodyne_ratios

_CHANNELS = 256
_NOISE_MARGIN_SIGMAS = 8.0
BYTE_CLASSES = (2, 4, 8, 16, 32, 64)
"""First reflectivity bytes of the classes of noise behind the first one."""
RANGE_CLASSES_M = (5.0, 10.0, 20.0, 40.0, 80.0)
"""First ranges of the classes of noise behind the first one."""


class PacketFormat(IntEnum):
    """Format of a recorded unit's packets; kernels choose by it."""

    VELODYNE = 0
    CEPTON = 1


@by_reference
class RecordedUnit(NamedTuple):
    """Kernel-side recorded unit; build with ``build_velodyne_unit`` or ``build_cepton_unit``.

    Attributes:
        packet_format: A ``PacketFormat``.
        is_swept: Whether a mirror swept its beams, whose directions are those of its points; otherwise a head turned.
        response: Detection, limits and noise of the returns of objects.
        beam: Rays of a firing and their shares.
        firings: Directions and times of a Velodyne's records.
        record_channel: ``int64[r]``, laser of each record of a group.
        origin_height_m: ``float64[r]``, height of each record's laser above the sensor's origin.
        highest_m: Largest distance of a laser's origin from the sensor's.
        stamps_last_firing: A data packet's stamp is the time of its last firing.
        noise_m: ``float64[256, r]``, standard deviation of a range, by reflectivity byte and by class of ranges.
        no_return: ``uint8[256]``, reflectivity byte of a record without a return, by laser.
        ratio: ``float64[256]``, share of a white diffuse target for each reflectivity byte.
        mount_position_m: ``float64[3]``, sensor's origin in the frame of the carrier.
        mount_orientation: ``float64[4]``, carrier from sensor.
        cast_range_m: Range to which rays are cast.
    """

    packet_format: int
    is_swept: bool
    response: Response
    beam: Beam
    firings: RecordFirings
    record_channel: npt.NDArray[np.int64]
    origin_height_m: npt.NDArray[np.float64]
    highest_m: float
    stamps_last_firing: bool
    noise_m: npt.NDArray[np.float64]
    no_return: npt.NDArray[np.uint8]
    ratio: npt.NDArray[np.float64]
    mount_position_m: npt.NDArray[np.float64]
    mount_orientation: npt.NDArray[np.float64]
    cast_range_m: float


def _cast_range_m(response: Response) -> float:
    return response.range_max_m + _NOISE_MARGIN_SIGMAS * response.noise_m


def _by_byte(noise_m: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Noise by reflectivity byte, of noise by class of bytes."""
    return np.ascontiguousarray(noise_m[np.searchsorted(BYTE_CLASSES, np.arange(_CHANNELS), side="right")])


def build_velodyne_unit(
    geometry: FiringGeometry,
    response: Response,
    beam: Beam,
    mount: Pose,
    noise_m: npt.NDArray[np.float64],
    *,
    stamps_last_firing: bool,
    no_return: npt.NDArray[np.uint8],
) -> RecordedUnit:
    """Build the kernel-side unit of a Velodyne.

    Args:
        geometry: Geometry of its model.
        response: Response to an object's echo.
        beam: Beam of each laser.
        mount: Carrier from sensor.
        noise_m: ``float64[b, r]``, standard deviation of a range, by class of reflectivity bytes and of ranges.
        stamps_last_firing: A data packet's stamp is the time of its last firing.
        no_return: ``uint8[c]``, reflectivity byte of a record without a return, by laser.
    """
    firings, lasers = build_record_firings(geometry), len(geometry.elevation_deg)
    channel = np.arange(firings.share.size, dtype=np.int64) % lasers
    height_m = 1e-3 * np.array(geometry.vertical_offset_mm or (0.0,) * lasers)
    return RecordedUnit(
        packet_format=int(PacketFormat.VELODYNE),
        is_swept=False,
        response=response,
        beam=beam,
        firings=firings,
        record_channel=channel,
        origin_height_m=height_m[channel],
        highest_m=float(np.abs(height_m).max()),
        stamps_last_firing=stamps_last_firing,
        noise_m=_by_byte(noise_m),
        no_return=np.pad(no_return, (0, _CHANNELS - no_return.size)),
        ratio=velodyne_ratios(),
        mount_position_m=np.array(mount.position_m, np.float64),
        mount_orientation=np.array(mount.orientation, np.float64),
        cast_range_m=_cast_range_m(response),
    )


def build_cepton_unit(response: Response, beam: Beam, mount: Pose, noise_m: npt.NDArray[np.float64]) -> RecordedUnit:
    """Build the kernel-side unit of a Cepton, whose points contain their directions; arguments as of ``build_velodyne_unit``."""
    nothing = np.zeros(0)
    return RecordedUnit(
        packet_format=int(PacketFormat.CEPTON),
        is_swept=True,
        response=response,
        beam=beam,
        firings=RecordFirings(1, 1, nothing.astype(np.int64), nothing, nothing, nothing, 5.0),
        record_channel=nothing.astype(np.int64),
        origin_height_m=nothing,
        highest_m=0.0,
        stamps_last_firing=False,
        noise_m=_by_byte(noise_m),
        no_return=np.zeros(_CHANNELS, np.uint8),
        ratio=cepton_ratios(),
        mount_position_m=np.array(mount.position_m, np.float64),
        mount_orientation=np.array(mount.orientation, np.float64),
        cast_range_m=_cast_range_m(response),
    )
