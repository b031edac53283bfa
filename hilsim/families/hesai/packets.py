"""Packets of a Hesai: returns → blocks, and what its tail says of time and speed.

An XT or a QT64 fires when its encoder is at an angle, so azimuths are exact and times wander with the rotor. Device time is the rotor's: firing sequences are even steps
of it, and the stamps, by the sensor's own clock, have the wander. A Pandar40P and a Pandar64 fire by a clock, and the encoder reads what it finds.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel, stage_kernel
from hilsim.emulator.breaking.head_and_clock import falsified_ns, thermal_status, write_received
from hilsim.emulator.families.own import family_kernels
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.schedule import stop_sequence_of
from hilsim.emulator.workspace import Returns
from hilsim.families.hesai.protocol.gps import write_gps
from hilsim.families.hesai.protocol.points import Layout, Tail, write_block, write_header, write_tail
from hilsim.protocols.nmea import SENTENCE_CAPACITY
from hilsim.sensor.clock import DeviceClock, rig_from_device, scaled_up
from hilsim.sensor.head import head_turns, turn_ns, turned
from hilsim.sensor.unit.wander import stamp_wander_ns
from hilsim.units import NS_PER_S, TURN_CDEG
from hilsim.world.platforms.platform import Platform

_SET_NS, _TURN, _CAPACITY = constant(1_000_000_000 * NS_PER_S), constant(TURN_CDEG), constant(SENTENCE_CAPACITY)
_MINUTE_NS = 60e9
_ROUNDING, _HALF = 1e-6, 0.5


@kernel
def shown_ns(clock: DeviceClock, unset_ns: int, device_ns: int) -> int:
    """Time since 1970 that the sensor's clock shows, from ``unset_ns`` on where nothing has ever set it."""
    wander_ns = stamp_wander_ns(clock.wander, device_ns)
    if clock.follows_pulse:
        return clock.utc_epoch_ns + rig_from_device(clock, device_ns) + wander_ns
    counted_ns = clock.stamp_offset_ns + scaled_up(device_ns, clock.stamp_ppb) + wander_ns
    return counted_ns if counted_ns >= _SET_NS else unset_ns + max(counted_ns, 0)


@kernel
def speed_rpm(plan: LidarPlan, parts: int, device_ns: int) -> int:
    """Speed that a packet reports: of the last whole part of a turn, truncated, or of the last turn, rounded.

    Measured on recordings: of an XT32 and an XT16 the value changes at azimuths 60 degrees apart, of a 40P and a 64 120 degrees; a QT64's does not.
    """
    head = plan.head
    part_ns = turn_ns(head) / parts
    phase_ns = head.phase_turns * parts % 1.0 * part_ns
    begin_ns = int((math.floor((device_ns + phase_ns) / part_ns) - 1.0) * part_ns - phase_ns)
    end_ns = begin_ns + int(part_ns)
    wandered_ns = stamp_wander_ns(plan.clock.wander, end_ns) - stamp_wander_ns(plan.clock.wander, begin_ns)
    swung = head_turns(head, end_ns) - head_turns(head, begin_ns)
    turns = swung + math.floor(turned(head, end_ns) - turned(head, begin_ns) - swung + _HALF)
    return int(turns * _MINUTE_NS / (end_ns - begin_ns + wandered_ns) + (_ROUNDING if parts > 1 else _HALF))


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
    at = write_header(own.layout, payload, offset)
    distance, reflectivity = returns.distance, returns.reflectivity
    for sequence in range(distance.shape[1]):
        azimuth_cdeg = (returns.azimuth_cdeg[sequence] + own.lead_cdeg) % _TURN
        for number in range(distance.shape[0]):
            at = write_block(own.layout, azimuth_cdeg, distance[number, sequence], reflectivity[number, sequence], payload, at)
    last = stop_sequence_of(plan, packet) - 1
    device_ns = last * plan.sequence_ns + own.stamp_ns
    utc_ns = max(falsified_ns(plan.rare, plan, shown_ns(plan.clock, own.unset_ns, device_ns), device_ns), 0)
    hot, _ = thermal_status(plan.rare, rig_from_device(plan.clock, device_ns))
    status = own.status[last // own.status_rounds % own.status.shape[0]]
    write_tail(own.layout, Tail(status, min(hot, 1), own.mode, speed_rpm(plan, own.speed_parts, device_ns), utc_ns, packet + 1), payload, at)


@kernel
def _write_gps(own: Any, plan: LidarPlan, platform: Platform, device_ns: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write the GPS packet of ``device_ns`` to ``payload[:512]``."""
    sentence = np.empty(_CAPACITY, np.uint8)
    size = write_received(plan.rare, plan, platform, rig_from_device(plan.clock, device_ns), sentence)
    utc_ns = max(falsified_ns(plan.rare, plan, shown_ns(plan.clock, own.unset_ns, device_ns), device_ns), 0)
    write_gps(utc_ns, own.gps_room, plan.gps.valid, plan.clock.follows_pulse, sentence, size, payload)


@kernel
def _by_blocks(own: Any) -> int:
    return int(own.channels)


@family_kernels(encode=_encode_blocks, encode_info=_write_gps, returns_order=_by_blocks)
class HesaiPlan(NamedTuple):
    """Kernel-side part of a Hesai.

    Attributes:
        layout: Layout of its packets.
        channels: Lasers.
        mode: Return mode.
        lead_cdeg: What the head turns from the begin of a round to the time of its block's azimuth.
        stamp_ns: Time of the stamp after the begin of the packet's last round.
        unset_ns: Time since 1970 at which a clock that nothing sets begins.
        speed_parts: Parts of a turn of which the speed is the last one's.
        status: ``uint8[n, s]``, begins of tails that take turns.
        status_rounds: Rounds in which each has its turn.
        gps_room: Bytes for the sentence in GPS packets.
    """

    layout: Layout
    channels: int
    mode: int
    lead_cdeg: int
    stamp_ns: int
    unset_ns: int
    speed_parts: int
    status: npt.NDArray[np.uint8]
    status_rounds: int
    gps_room: int

    def allocate_returns(self, shape: tuple[int, int, int]) -> None:
        """Nothing: it reports ranges and reflectivities alone."""
