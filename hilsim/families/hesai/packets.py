"""Packets of a Hesai: returns → blocks, and what its tail says of time and speed.

An XT fires when its encoder is at an angle, so azimuths are exact and times wander with the rotor. Device time is the rotor's: firing sequences are even steps of it,
and the stamps, by the sensor's own clock, have the wander.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel, stage_kernel
from hilsim.emulator.breaking.head_and_clock import falsified_ns, thermal_status
from hilsim.emulator.families.own import family_kernels
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.schedule import stop_sequence_of
from hilsim.emulator.workspace import Returns
from hilsim.families.hesai.protocol.points import UNSET_UTC_S, Head, Tail, write_block, write_header, write_tail
from hilsim.sensor.clock import DeviceClock, rig_from_device, scaled_up
from hilsim.sensor.head import turn_ns, turned
from hilsim.sensor.unit.wander import stamp_wander_ns
from hilsim.units import NS_PER_S

_UNSET_NS, _SET_NS = constant(UNSET_UTC_S * NS_PER_S), constant(1_000_000_000 * NS_PER_S)
_SIXTHS, _MINUTE_NS = 6.0, 60e9
_ROUNDING = 1e-6


@kernel
def shown_ns(clock: DeviceClock, device_ns: int) -> int:
    """Time since 1970 that the sensor's clock shows, from 2019-07-25 on where nothing has ever set it."""
    wander_ns = stamp_wander_ns(clock.wander, device_ns)
    if clock.follows_pulse:
        return clock.utc_epoch_ns + rig_from_device(clock, device_ns) + wander_ns
    counted_ns = clock.stamp_offset_ns + scaled_up(device_ns, clock.stamp_ppb) + wander_ns
    return counted_ns if counted_ns >= _SET_NS else _UNSET_NS + counted_ns


@kernel
def speed_rpm(plan: LidarPlan, device_ns: int) -> int:
    """Speed that a packet reports: of the last whole sixth of a turn, truncated.

    Measured on recordings of an XT32 and an XT16: the value changes at azimuths 60 degrees apart, and is so for 33 of 41 sixths.
    """
    head = plan.head
    sixth_ns = turn_ns(head) / _SIXTHS
    phase_ns = head.phase_turns * _SIXTHS % 1.0 * sixth_ns
    begin_ns = int((math.floor((device_ns + phase_ns) / sixth_ns) - 1.0) * sixth_ns - phase_ns)
    end_ns = begin_ns + int(sixth_ns)
    wandered_ns = stamp_wander_ns(plan.clock.wander, end_ns) - stamp_wander_ns(plan.clock.wander, begin_ns)
    turns = turned(head, end_ns) - turned(head, begin_ns)
    return int(turns * _MINUTE_NS / (end_ns - begin_ns + wandered_ns) + _ROUNDING)


@stage_kernel
def _encode_blocks(
    own: Any,
    plan: LidarPlan,
    packet: int,
    returns: Returns,
    counts: npt.NDArray[np.int64],  # noqa: ARG001 - any distance fits
    offset: int,
    payload: npt.NDArray[np.uint8],
) -> None:
    """Write packet ``packet`` to ``payload[offset:]``."""
    at = write_header(own.head, payload, offset)
    distance, reflectivity = returns.distance, returns.reflectivity
    for sequence in range(distance.shape[1]):
        for number in range(distance.shape[0]):
            at = write_block(returns.azimuth_cdeg[sequence], distance[number, sequence], reflectivity[number, sequence], payload, at)
    device_ns = (stop_sequence_of(plan, packet) - 1) * plan.sequence_ns
    utc_ns = max(falsified_ns(plan.rare, plan, shown_ns(plan.clock, device_ns), device_ns), 0)
    status, _ = thermal_status(plan.rare, rig_from_device(plan.clock, device_ns))
    write_tail(Tail(own.status, min(status, 1), own.mode, speed_rpm(plan, device_ns), utc_ns, packet + 1), payload, at)


@kernel
def _by_blocks(own: Any) -> int:
    return int(own.head.lasers)


@family_kernels(encode=_encode_blocks, returns_order=_by_blocks)
class HesaiPlan(NamedTuple):
    """Kernel-side part of a Hesai.

    Attributes:
        head: What the header of packets says.
        mode: Return mode.
        status: ``uint8[9]``, bytes of the tail that do not change.
    """

    head: Head
    mode: int
    status: npt.NDArray[np.uint8]

    def allocate_returns(self, shape: tuple[int, int, int]) -> None:
        """Nothing: it reports ranges and reflectivities alone."""
