"""Packets of a Cepton-style sensor: returns → points, and sensor information."""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel, stage_kernel
from hilsim.emulator.breaking.head_and_clock import falsified_ns
from hilsim.emulator.families.own import FIRINGS, family_kernels
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.schedule import first_sequence_of
from hilsim.emulator.workspace import EmulatorCount, Returns
from hilsim.families.cepton.protocol.info import write_sync_offset
from hilsim.families.cepton.protocol.stdv import COUNT_MAX, POINT_SIZE, POINT_UNIT_M, PointFlag, write_stdv_header, write_stdv_point
from hilsim.sensor.clock import counter_us, utc_lead_us
from hilsim.sensor.mirror import image_point, scan_number
from hilsim.world.platforms.platform import Platform

_PARITY, _SECOND, _NO_RETURN = constant(PointFlag.FRAME_PARITY), constant(PointFlag.SECOND_RETURN), constant(PointFlag.NO_RETURN)
_UNREPRESENTABLE = constant(EmulatorCount.UNREPRESENTABLE)
_OF_ECHO, _NOTHING = constant(PointFlag.SATURATED | PointFlag.NOISE), constant(0)
_COUNT_MAX, _Y_MAX, _COUNT_MIN = constant(COUNT_MAX), constant(2 * COUNT_MAX + 1), constant(-COUNT_MAX - 1)


@kernel
def _previous_point_us(plan: LidarPlan, first_ns: int) -> int:
    """Counter at the firing before a packet's first one; for the very first packet, at its start."""
    before_ns = first_ns - plan.sequence_ns + plan.firing_offset_ns[plan.firing_offset_ns.size - 1]
    return counter_us(plan.clock, max(before_ns, 0))


@kernel
def _point_counts(plan: LidarPlan, distance: int, image_x: float, image_z: float) -> tuple[int, int, int]:
    """x, y and z of a return, in counts of 5 mm."""
    ahead = distance * plan.response.unit_m / POINT_UNIT_M / math.sqrt(1.0 + image_x * image_x + image_z * image_z)
    return math.floor(ahead * image_x + 0.5), math.floor(ahead + 0.5), math.floor(ahead * image_z + 0.5)


@kernel
def fits_point(x: int, y: int, z: int) -> bool:
    """Whether a point can represent these counts."""
    return _COUNT_MIN <= x <= _COUNT_MAX and 0 <= y <= _Y_MAX and _COUNT_MIN <= z <= _COUNT_MAX


@kernel
def _fits_packet(own: Any, plan: LidarPlan, channel: int, firing_ns: int, distance: int) -> bool:  # noqa: ARG001 - as of any family
    """Whether a packet can represent a return of a firing at device time ``firing_ns``."""
    image_x, image_z = image_point(plan.mirror, channel, firing_ns)  # type: ignore[arg-type] # it has a mirror
    x, y, z = _point_counts(plan, distance, image_x, image_z)
    return fits_point(x, y, z)


@stage_kernel
def _encode_points(
    own: Any, plan: LidarPlan, packet: int, returns: Returns, counts: npt.NDArray[np.int64], offset: int, payload: npt.NDArray[np.uint8]
) -> None:
    """Write point packet ``packet`` to ``payload[offset:]``.

    Returns that the format cannot represent (``|x|`` or ``|z|`` above 163.8 m; y is above 0 in any image, and range limits keep it below 327.7 m) are sent as no return, and counted. In two-return mode both points of each
    firing are sent, so that a packet does not depend on those before it; where there is no second echo, the second point is no return.
    """
    sequences, channels = plan.sequences_per_packet, plan.firing_offset_ns.size
    first_ns = first_sequence_of(plan, packet) * plan.sequence_ns
    before_us = _previous_point_us(plan, first_ns)
    shown_us = falsified_ns(plan.rare, plan, before_us * 1000, first_ns) // 1000  # of all points alike: they are counted from each other
    points = sequences * channels * plan.choice.size
    at = offset + write_stdv_header(own.header_version, shown_us, points, packet, payload[offset:])
    for sequence in range(sequences):
        for channel in range(channels):
            firing_ns = first_ns + sequence * plan.sequence_ns + plan.firing_offset_ns[channel]
            image_x, image_z = image_point(plan.mirror, channel, firing_ns)  # type: ignore[arg-type] # it has a mirror
            parity = _PARITY if scan_number(plan.mirror, firing_ns) & 1 else _NOTHING  # type: ignore[arg-type]
            now_us = counter_us(plan.clock, firing_ns)
            for return_number in range(plan.choice.size):
                flags = parity | returns.flags[return_number, sequence, channel] | (_SECOND if return_number > 0 else _NOTHING)
                distance = returns.distance[return_number, sequence, channel]
                x, y, z = _point_counts(plan, distance, image_x, image_z)
                fits = fits_point(x, y, z)
                reflectivity = int(returns.reflectivity[return_number, sequence, channel])
                if distance == 0 or not fits:
                    counts[_UNREPRESENTABLE] += 0 if fits else 1
                    flags = flags & ~_OF_ECHO | _NO_RETURN
                    x = y = z = reflectivity = 0
                write_stdv_point(x, y, z, reflectivity, now_us - before_us, channel, flags, payload, at)
                before_us = now_us
                at += POINT_SIZE


@kernel
def _write_information(own: Any, plan: LidarPlan, platform: Platform, device_ns: int, payload: npt.NDArray[np.uint8]) -> None:  # noqa: ARG001 - as of any family
    """Write the sensor information assembled at ``device_ns`` to ``payload[: plan.info_size]``."""
    for place in range(plan.info_size):  # a loop: Numba compiles half a second at each copy of a slice to a slice
        payload[place] = own.info[place]
    if plan.clock.follows_pulse:
        write_sync_offset(utc_lead_us(plan.clock, device_ns), payload)


@kernel
def _by_firings(own: Any) -> int:  # noqa: ARG001 - argument of a family's own
    return FIRINGS


@family_kernels(encode=_encode_points, encode_info=_write_information, fits=_fits_packet, returns_order=_by_firings)
class CeptonPlan(NamedTuple):
    """Kernel-side part of a Cepton-style sensor.

    Attributes:
        header_version: Header version of point packets.
        info: ``uint8[88]``, the information packet; empty where there is none.
    """

    header_version: int
    info: npt.NDArray[np.uint8]

    def allocate_returns(self, shape: tuple[int, int, int]) -> None:
        """Nothing: it reports ranges and reflectivities alone."""
