"""Where a firing's beam goes: a head or a mirror directs it, unless the lidar's family does (``emulator.families.own``)."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import borrowing_kernel, constant, kernel
from hilsim.compilation.lane_math import sines_and_cosines
from hilsim.compilation.lanes import WIDTH, Doubles, load_lanes
from hilsim.emulator.plan import BeamRow, LidarPlan
from hilsim.sensor.mirror import Mirror, image_point
from hilsim.units import CDEG_PER_RAD

SINE, COSINE, LEVEL, RISE = 0, 1, 2, 3
"""Rows of a beam's direction: sine and cosine of its azimuth, cosine and sine of its elevation, in the sensor's frame."""
_SINE_ELEVATION, _COSINE_ELEVATION, _BEAM_ROWS = constant(BeamRow.SINE_ELEVATION), constant(BeamRow.COSINE_ELEVATION), constant(len(BeamRow))
_DEG_PER_RAD = 180.0 / math.pi
_CDEG_PER_NS_PER_CRPM = 6e-9


@borrowing_kernel
def _aim(
    mirror: Mirror | None, plan: LidarPlan, device_ns: int, first_channel: int, turns: Doubles, aim: npt.NDArray[np.float64]
) -> tuple[Doubles, Doubles, Doubles, Doubles]:
    if mirror is None:
        table = first_channel // WIDTH * _BEAM_ROWS
        sine, cosine = sines_and_cosines(turns)
        return sine, cosine, load_lanes(plan.beam_lanes, table + _COSINE_ELEVATION), load_lanes(plan.beam_lanes, table + _SINE_ELEVATION)
    for lane in range(WIDTH):
        channel = min(first_channel + lane, plan.firing_offset_ns.size - 1)
        image_x, image_z = image_point(mirror, channel, device_ns + plan.firing_offset_ns[channel])
        ahead = math.sqrt(1.0 + image_x * image_x)
        length = math.sqrt(1.0 + image_x * image_x + image_z * image_z)
        aim[SINE, lane] = image_x / ahead
        aim[COSINE, lane] = 1.0 / ahead
        aim[LEVEL, lane] = ahead / length
        aim[RISE, lane] = image_z / length
    return load_lanes(aim, SINE), load_lanes(aim, COSINE), load_lanes(aim, LEVEL), load_lanes(aim, RISE)


@borrowing_kernel
def aim_by_head_or_mirror(
    own: Any,  # noqa: ARG001 - argument of a family's own
    plan: LidarPlan,
    device_ns: int,
    first_channel: int,
    turns: Doubles,
    aim: npt.NDArray[np.float64],
) -> tuple[Doubles, Doubles, Doubles, Doubles]:
    """Directions of sixteen channels' beams.

    Args:
        own: The plan's.
        plan: The lidar.
        device_ns: Device time of the firing sequence's begin.
        first_channel: First of the channels; lanes beyond the last channel repeat it.
        turns: Azimuths of a head's beams.
        aim: ``float64[>= 4, 16]`` to use.

    Returns:
        Sines and cosines of azimuths, cosines and sines of elevations, in the sensor's frame (x right, y forward, z up; azimuths clockwise from ahead).
    """
    return _aim(plan.mirror, plan, device_ns, first_channel, turns, aim)


@kernel
def _looks_at(mirror: Mirror | None, plan: LidarPlan, reading_cdeg: int, channel: int, index: int) -> tuple[float, float]:
    if mirror is None:
        azimuth_cdeg = reading_cdeg + _CDEG_PER_NS_PER_CRPM * plan.head.rate_crpm * plan.firing_offset_ns[channel]
        azimuth_cdeg += CDEG_PER_RAD * plan.azimuth_offset_rad[channel]
        return azimuth_cdeg, plan.elevation_deg[channel]
    image_x, image_z = image_point(mirror, channel, index * plan.sequence_ns + plan.firing_offset_ns[channel])
    return CDEG_PER_RAD * math.atan(image_x), _DEG_PER_RAD * math.atan(image_z / math.sqrt(1.0 + image_x * image_x))


@kernel
def known_by_head_or_mirror(own: Any, plan: LidarPlan, reading_cdeg: int, channel: int, index: int) -> tuple[float, float]:  # noqa: ARG001 - argument of a family's own
    """``looks_at`` of a sensor with a head or a mirror."""
    return _looks_at(plan.mirror, plan, reading_cdeg, channel, index)


@kernel
def looks_at(own: Any, plan: LidarPlan, reading_cdeg: int, channel: int, index: int) -> tuple[float, float]:
    """Azimuth in hundredths of a degree and elevation in degrees of a firing's beam, as its sensor knows them: without the errors of the encoder's marks."""
    known: tuple[float, float] = own.looks_at(own, plan, reading_cdeg, channel, index)
    return known
