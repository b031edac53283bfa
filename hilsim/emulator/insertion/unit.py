"""A recorded unit as kernels take it, and the firings of its packets: directions, times, and the bytes that hold their returns.

The class of ``RecordedUnit.own``, a named tuple, has the kernels (``jit.with_kernels``) that know the family's packets:

==========================================================================  =========================================================================
kernel                                                                      called
==========================================================================  =========================================================================
``read_firings(own, payload, size, recorded) -> int``                       to read a packet; returns the number of firings, 0 of another packet
``choose_returns(own, payload, choice)``                                    to write an ``EchoChoice`` for each return of its firings, ``int64[2]``
``write_return(own, recorded, firing, code, byte, flags, payload, place)``  to write a return's distance code (0: there is none), byte and flags
``note_return(own, recorded, firing, place, packet, payload, truth, row)``  to write its place, sequence, distance and byte to the ground truth
==========================================================================  =========================================================================
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import by_reference, kernel
from hilsim.sensor.optics.beam import Beam
from hilsim.sensor.response import Response
from hilsim.world.geometry.poses import Pose

MAX_FIRINGS = 384
"""Firings of a packet, at most."""
RETURNS = 2
"""Returns of a firing, at most."""
BYTE_CLASSES = (2, 4, 8, 16, 32, 64)
"""First reflectivity bytes of the classes of noise behind the first one."""
RANGE_CLASSES_M = (5.0, 10.0, 20.0, 40.0, 80.0)
"""First ranges of the classes of noise behind the first one."""
_BYTES = 256
_NOISE_MARGIN_SIGMAS = 8.0


@by_reference
class RecordedFirings(NamedTuple):
    """Firings of a packet: ``F`` rows, ``MAX_FIRINGS``, of which the first ones are used.

    Attributes:
        azimuth_cdeg: ``float64[F]``, azimuth of a turning head's firing, 0.01 deg.
        elevation_rad: ``float64[F]``, elevation of its laser.
        direction: ``float64[F, 3]``, unit vectors in the sensor frame; zeros where a direction is not known. Of a turning head's firings those alone that may
            meet an object get one.
        height_m: ``float64[F]``, height of the laser's origin above the sensor's.
        time_ns: ``int64[F]``, from the packet's stamp to the firing.
        channel: ``int64[F]``, laser.
        place: ``int64[F, 2]``, byte of each return's record or point in the packet, in the packet's order; -1: there is none.
        range_m: ``float64[F, 2]``, range of each return; ``inf`` where there is none.
        byte: ``int64[F, 2]``, its reflectivity byte.
        state: ``int64[4]``: azimuth (0.01 deg) and stamp (us) of the last packet read, 1 once there is one, and the number of its firings.
    """

    azimuth_cdeg: npt.NDArray[np.float64]
    elevation_rad: npt.NDArray[np.float64]
    direction: npt.NDArray[np.float64]
    height_m: npt.NDArray[np.float64]
    time_ns: npt.NDArray[np.int64]
    channel: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    range_m: npt.NDArray[np.float64]
    byte: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]


def allocate_recorded_firings() -> RecordedFirings:
    """Allocate arrays for the firings of one packet."""
    return RecordedFirings(
        azimuth_cdeg=np.zeros(MAX_FIRINGS),
        elevation_rad=np.zeros(MAX_FIRINGS),
        direction=np.zeros((MAX_FIRINGS, 3)),
        height_m=np.zeros(MAX_FIRINGS),
        time_ns=np.zeros(MAX_FIRINGS, np.int64),
        channel=np.zeros(MAX_FIRINGS, np.int64),
        place=np.zeros((MAX_FIRINGS, RETURNS), np.int64),
        range_m=np.zeros((MAX_FIRINGS, RETURNS)),
        byte=np.zeros((MAX_FIRINGS, RETURNS), np.int64),
        state=np.zeros(4, np.int64),
    )


@by_reference
class RecordedUnit(NamedTuple):
    """Kernel-side recorded unit; build with ``build_recorded_unit``.

    Attributes:
        own: What the family's kernels need.
        response: Detection, limits and noise of the returns of objects.
        beam: Rays of a firing and their shares.
        is_swept: Whether a mirror swept its beams, whose directions are those of its points; otherwise a head turned.
        highest_m: Largest distance of a laser's origin from the sensor's.
        byte_offset: Byte of a return, from its first one, that is its reflectivity.
        most_diffuse: Largest reflectivity byte that is not a retro-reflector's.
        noise_m: ``float64[256, r]``, standard deviation of a range, by reflectivity byte and by class of ranges.
        ratio: ``float64[256]``, share of a white diffuse target for each reflectivity byte.
        mount_position_m: ``float64[3]``, sensor's origin in the frame of the carrier.
        mount_orientation: ``float64[4]``, carrier from sensor.
        cast_range_m: Range to which rays are cast.
    """

    own: Any
    response: Response
    beam: Beam
    is_swept: bool
    highest_m: float
    byte_offset: int
    most_diffuse: int
    noise_m: npt.NDArray[np.float64]
    ratio: npt.NDArray[np.float64]
    mount_position_m: npt.NDArray[np.float64]
    mount_orientation: npt.NDArray[np.float64]
    cast_range_m: float


def build_recorded_unit(
    own: Any,
    response: Response,
    beam: Beam,
    mount: Pose,
    noise_m: npt.NDArray[np.float64],
    *,
    ratio: npt.NDArray[np.float64],
    byte_offset: int,
    most_diffuse: int = _BYTES - 1,
    is_swept: bool = False,
    highest_m: float = 0.0,
) -> RecordedUnit:
    """Build the kernel-side unit; ``noise_m`` is ``float64[b, r]``, by class of reflectivity bytes and of ranges, ``mount`` the carrier from the sensor."""
    return RecordedUnit(
        own=own,
        response=response,
        beam=beam,
        is_swept=is_swept,
        highest_m=highest_m,
        byte_offset=byte_offset,
        most_diffuse=most_diffuse,
        noise_m=np.ascontiguousarray(noise_m[np.searchsorted(BYTE_CLASSES, np.arange(_BYTES), side="right")]),
        ratio=ratio,
        mount_position_m=np.array(mount.position_m, np.float64),
        mount_orientation=np.array(mount.orientation, np.float64),
        cast_range_m=response.range_max_m + _NOISE_MARGIN_SIGMAS * response.noise_m,
    )


@kernel
def read_firings(unit: RecordedUnit, payload: npt.NDArray[np.uint8], size: int, recorded: RecordedFirings) -> int:
    """Read the firings of a packet ``payload[:size]`` to ``recorded``; returns their number, 0 of what is no data packet of the unit's family."""
    count: int = unit.own.read_firings(unit.own, payload, size, recorded)
    recorded.state[3] = count
    return count
