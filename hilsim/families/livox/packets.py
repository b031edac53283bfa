"""Packets of a Livox: directions of its lines, points with tags, and inertial packets."""

import cmath
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import borrowing_kernel, constant, inlined_kernel, kernel, signed, stage_kernel
from hilsim.compilation.lane_math import sines_and_cosines
from hilsim.compilation.lanes import WIDTH, Doubles, load_lanes, store_lanes
from hilsim.emulator.breaking.head_and_clock import falsified_ns
from hilsim.emulator.families.aiming import COSINE, LEVEL, RISE, SINE
from hilsim.emulator.families.own import FIRINGS, family_kernels
from hilsim.emulator.inertial import felt_motion
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.schedule import first_sequence_of
from hilsim.emulator.workspace import SUMMED, Returns, Workspace
from hilsim.families.livox.protocol.imu import write_imu_packet
from hilsim.families.livox.protocol.points import (
    CARTESIAN_CM,
    HEADER_SIZE,
    LOW,
    MEDIUM,
    OBJECT_SHIFT,
    POINTS,
    SPHERICAL,
    WEATHER_SHIFT,
    PacketHead,
    seal,
    write_header,
    write_point,
)
from hilsim.sensor.clock import DeviceClock, rig_from_device, scaled_up
from hilsim.sensor.echoes import ECHO, INSTANCE, RANGE, RAY, TRIANGLE, WEATHER_RAY
from hilsim.units import CDEG_PER_RAD, NS_PER_S, TURN_CDEG
from hilsim.world.platforms.platform import Platform
from hilsim.world.scene.world import World

IMU_NS = 5_000_000
"""Time from inertial packet to inertial packet."""
_IMU, _SECOND, _MICROTURNS = constant(IMU_NS), constant(NS_PER_S), constant(1_000_000)
_FINE = constant(1_000_000 * NS_PER_S)
_POINTS, _HEADER_SIZE, _CM, _SPHERICAL = constant(POINTS), constant(HEADER_SIZE), constant(CARTESIAN_CM), constant(SPHERICAL)
_WEATHER_RAY = constant(WEATHER_RAY)
_WEATHER, _EDGE = constant(LOW << WEATHER_SHIFT), constant(MEDIUM << OBJECT_SHIFT)
_NOTHING, _ONE = constant(0), constant(1)
_APART_M = 0.05
"""Least distance between two objects in one echo that makes it doubtful; chosen, no source gives it."""
_DIFFUSE_MAX, _RETRO_MIN, _RETRO_MAX = 100, 101, 255
_DEG_PER_TURN, _TURN = 360.0, 2.0 * math.pi


@inlined_kernel
def _phase(rate_uhz: int, device_ns: int) -> float:
    """Turns, 0 to 1, of a rotation since device time 0: exact for any length of run, as whole seconds and what is left are counted in whole numbers."""
    second = device_ns // _SECOND
    return (second * rate_uhz) % _MICROTURNS / _MICROTURNS + (device_ns - second * _SECOND) * rate_uhz % _FINE / _FINE


@borrowing_kernel
def aim_lines(
    own: Any,
    plan: LidarPlan,  # noqa: ARG001 - as of any family
    device_ns: int,
    first_channel: int,
    turns: Doubles,  # noqa: ARG001 - no head turns
    aim: npt.NDArray[np.float64],  # noqa: ARG001 - of no use here
) -> tuple[Doubles, Doubles, Doubles, Doubles]:
    """Directions of sixteen channels' beams, by ``patterns``: see ``emulator.families.aiming.aim_by_head_or_mirror``."""
    row, table, reach = first_channel // WIDTH * own.rows, own.table, own.reach
    slow = load_lanes(table, row) + _phase(own.slow_uhz, device_ns)
    fast = load_lanes(table, row + 1) + (_phase(own.fast_uhz, device_ns) + own.phase_turns)
    row += 2
    nothing = slow * 0.0
    elevation, azimuth = nothing, fast * own.advance
    slow_sine, slow_cosine = sines_and_cosines(slow)
    fast_sine, fast_cosine = sines_and_cosines(fast)
    sine_f, cosine_f = nothing, nothing + 1.0
    for order in range(reach.size):
        sine_s, cosine_s = nothing, nothing + 1.0
        for _ in range(reach[order] + 1):
            both, neither, one, other = cosine_f * cosine_s, sine_f * sine_s, sine_f * cosine_s, cosine_f * sine_s
            cosine, sine, cosine_less, sine_less = both - neither, one + other, both + neither, one - other
            elevation = elevation + load_lanes(table, row) * cosine + load_lanes(table, row + 1) * sine
            elevation = elevation + load_lanes(table, row + 2) * cosine_less + load_lanes(table, row + 3) * sine_less
            azimuth = azimuth + load_lanes(table, row + 4) * cosine + load_lanes(table, row + 5) * sine
            azimuth = azimuth + load_lanes(table, row + 6) * cosine_less + load_lanes(table, row + 7) * sine_less
            row += 8
            cosine_s, sine_s = cosine_s * slow_cosine - sine_s * slow_sine, sine_s * slow_cosine + cosine_s * slow_sine
        cosine_f, sine_f = cosine_f * fast_cosine - sine_f * fast_sine, sine_f * fast_cosine + cosine_f * fast_sine
    rise, level = sines_and_cosines(elevation)
    left, ahead = sines_and_cosines(azimuth)
    return 0.0 - left, ahead, level, rise


@kernel
def _line_looks_at(own: Any, plan: LidarPlan, reading_cdeg: int, channel: int, index: int) -> tuple[float, float]:  # noqa: ARG001 - as of any family
    """Azimuth in hundredths of a degree, clockwise from ahead, and elevation in degrees, as ``aim_lines`` has them."""
    device_ns, row, lane, table, reach = index * plan.sequence_ns, channel // WIDTH * own.rows, channel % WIDTH, own.table, own.reach
    fast = _phase(own.fast_uhz, device_ns) + own.phase_turns + table[row + 1, lane]
    by_slow, by_fast = cmath.rect(1.0, _TURN * (_phase(own.slow_uhz, device_ns) + table[row, lane])), cmath.rect(1.0, _TURN * fast)
    elevation, azimuth, of_fast = 0.0, own.advance * fast, complex(1.0)
    row += 2
    for order in range(reach.size):
        of_slow = complex(1.0)
        for _ in range(reach[order] + 1):
            for phases in (of_fast * of_slow, of_fast * of_slow.conjugate()):
                elevation += table[row, lane] * phases.real + table[row + 1, lane] * phases.imag
                azimuth += table[row + 4, lane] * phases.real + table[row + 5, lane] * phases.imag
                row += 2
            row += 4
            of_slow *= by_slow
        of_fast *= by_fast
    return -TURN_CDEG * azimuth % TURN_CDEG, _DEG_PER_TURN * elevation


@inlined_kernel
def _put_aim(own: Any, plan: LidarPlan, device_ns: int, first_channel: int, aim: npt.NDArray[np.float64]) -> None:
    """Write directions of sixteen channels' beams to ``aim``."""
    nothing = load_lanes(aim, SINE)
    sine, cosine, level, rise = own.aim(own, plan, device_ns, first_channel, nothing, aim)
    store_lanes(aim, SINE, sine)
    store_lanes(aim, COSINE, cosine)
    store_lanes(aim, LEVEL, level)
    store_lanes(aim, RISE, rise)


@kernel
def own_clock_ns(clock: DeviceClock, device_ns: int) -> int:
    """Time that the sensor's clock shows: since 1970 where it follows time from outside, else since power-up."""
    if clock.follows_pulse:
        return clock.utc_epoch_ns + rig_from_device(clock, device_ns)
    return clock.stamp_offset_ns + scaled_up(device_ns, clock.stamp_ppb)


@kernel
def _stamp_ns(plan: LidarPlan, device_ns: int) -> int:
    """Stamp of a packet, with what faults make of it."""
    return max(falsified_ns(plan.rare, plan, own_clock_ns(plan.clock, device_ns), device_ns), 0)


@kernel
def byte_of(engine_byte: int) -> int:
    """Reflectivity on Livox's scale, 0 to 150 for diffuse surfaces up to white, 151 to 255 for retro-reflectors, from the engine's, 0 to 100 and 101 to 255."""
    if engine_byte <= _DIFFUSE_MAX:
        return (3 * engine_byte + 1) // 2
    return 151 + (engine_byte - _RETRO_MIN) * 104 // (_RETRO_MAX - _RETRO_MIN)


@kernel
def _write_return(
    data_type: int, distance: int, aim: npt.NDArray[np.float64], lane: int, reflectivity: int, tag: int, payload: npt.NDArray[np.uint8], at: int
) -> int:
    """Write a point; ``distance`` in millimetres. Returns the byte after it."""
    if data_type == _SPHERICAL:
        zenith = math.floor(math.atan2(aim[LEVEL, lane], aim[RISE, lane]) * CDEG_PER_RAD + 0.5)
        azimuth = math.floor(math.atan2(-aim[SINE, lane], aim[COSINE, lane]) * CDEG_PER_RAD % TURN_CDEG + 0.5)
        return write_point(data_type, distance, zenith, azimuth, reflectivity, tag, payload, at)
    counts = distance * 0.1 if data_type == _CM else distance * 1.0
    x = math.floor(counts * aim[LEVEL, lane] * aim[COSINE, lane] + 0.5)
    y = math.floor(0.5 - counts * aim[LEVEL, lane] * aim[SINE, lane])
    return write_point(data_type, x, y, math.floor(counts * aim[RISE, lane] + 0.5), reflectivity, tag, payload, at)


@stage_kernel
def _encode_points(
    own: Any,
    plan: LidarPlan,
    packet: int,
    returns: Returns,
    counts: npt.NDArray[np.int64],  # noqa: ARG001 - as of any family
    offset: int,
    payload: npt.NDArray[np.uint8],
) -> None:
    """Write point packet ``packet`` to ``payload[offset:]``."""
    first_ns = first_sequence_of(plan, packet) * plan.sequence_ns
    write_header(PacketHead(own.interval, _POINTS, packet, own.data_type, own.time_type, _stamp_ns(plan, first_ns)), plan.data_size, payload, offset)
    at, aim, channels = offset + _HEADER_SIZE, returns.own.directions, plan.firing_offset_ns.size
    for sequence in range(plan.sequences_per_packet):
        for group in range(0, channels, WIDTH):
            _put_aim(own, plan, first_ns + sequence * plan.sequence_ns, group, aim)
            for channel in range(group, min(group + WIDTH, channels)):
                distance, lane = signed(returns.distance[0, sequence, channel]), channel - group
                if distance == 0:
                    at = write_point(own.data_type, _NOTHING, _NOTHING, _NOTHING, _NOTHING, _NOTHING, payload, at)
                else:
                    reflectivity, tag = int(returns.reflectivity[0, sequence, channel]), int(returns.own.tag[sequence, channel])
                    at = _write_return(own.data_type, distance, aim, lane, reflectivity, tag, payload, at)
    seal(plan.data_size, payload, offset)


@kernel
def _is_outside(own: Any, plan: LidarPlan, channel: int, index: int) -> bool:
    """Whether a shot is in none of the windows that are enabled."""
    clockwise_cdeg, elevation_deg = _line_looks_at(own, plan, _NOTHING, channel, index)
    azimuth_deg, windows = (TURN_CDEG - clockwise_cdeg) / 100.0 % _DEG_PER_TURN, own.windows_deg
    for window in range(windows.shape[0]):
        begin, end = windows[window, 0], windows[window, 1]
        is_within = begin <= azimuth_deg <= end if begin <= end else azimuth_deg >= begin or azimuth_deg <= end
        if is_within and windows[window, 2] <= elevation_deg <= windows[window, 3]:
            return False
    return True


@kernel
def _tag(world: World, workspace: Workspace, firing: int, echo: int) -> int:
    """Tag of an echo: of rain or fog, or of objects one behind the other."""
    value, what, tag = workspace.hits.value, workspace.hits.what, _NOTHING
    first, nearest_m, farthest_m, are_several = -1, np.inf, 0.0, False
    for hit in range(workspace.hits.hit_count[firing]):
        if what[firing, hit, ECHO] != echo:
            continue
        if what[firing, hit, RAY] == _WEATHER_RAY:
            tag |= _WEATHER
        elif what[firing, hit, RAY] >= 0 and what[firing, hit, INSTANCE] >= 0:
            instance = what[firing, hit, INSTANCE]
            thing = world.owner[what[firing, hit, TRIANGLE]] if instance < world.tile_count else world.instance_object[instance]
            are_several = are_several or (first >= 0 and thing != first)
            first = thing
            nearest_m, farthest_m = min(nearest_m, value[firing, hit, RANGE]), max(farthest_m, value[firing, hit, RANGE])
    return tag | _EDGE if are_several and farthest_m - nearest_m > _APART_M else tag


@stage_kernel
def _sense_tags(own: Any, plan: LidarPlan, world: World, workspace: Workspace) -> None:
    """Write the tags of returns, put their reflectivities on Livox's scale, and leave out those outside of the windows that are enabled."""
    returns, sequences, bits = workspace.returns, workspace.sequence.size, workspace.sole.bits
    channels = plan.firing_offset_ns.size
    groups = -(-channels // WIDTH)
    for sequence in range(sequences):
        for channel in range(channels):
            returns.own.tag[sequence, channel] = 0
            if returns.distance[0, sequence, channel] == 0:
                continue
            if own.windows_deg.shape[0] > 0 and _is_outside(own, plan, channel, workspace.sequence[sequence]):
                returns.distance[0, sequence, channel] = 0
                returns.reflectivity[0, sequence, channel] = 0
                returns.echo[0, sequence, channel] = -1
                returns.range_m[0, sequence, channel] = np.inf
                continue
            returns.reflectivity[0, sequence, channel] = byte_of(int(returns.reflectivity[0, sequence, channel]))
            if bits[sequence * groups + channel // WIDTH, SUMMED] >> channel % WIDTH & 1 == 0:  # others met one surface
                returns.own.tag[sequence, channel] = _tag(world, workspace, channel * sequences + sequence, int(returns.echo[0, sequence, channel]))


@kernel
def _copy_tag(own: Any, source: Returns, source_sequence: int, target: Returns, target_sequence: int, channel: int) -> None:  # noqa: ARG001 - as of any family
    target.own.tag[target_sequence, channel] = source.own.tag[source_sequence, channel]


@stage_kernel
def _write_inertial(own: Any, plan: LidarPlan, platform: Platform, device_ns: int, payload: npt.NDArray[np.uint8]) -> None:
    """Write the inertial packet assembled at ``device_ns`` to ``payload[:60]``."""
    place = own.imu_place_m
    (right_g, forward_g, up_g), (pitch_dps, roll_dps, yaw_dps) = felt_motion(
        plan, platform, rig_from_device(plan.clock, device_ns), (place[0], place[1], place[2])
    )
    head = PacketHead(_NOTHING, _ONE, device_ns // _IMU, _NOTHING, own.time_type, _stamp_ns(plan, device_ns))
    rates = math.radians(roll_dps), -math.radians(pitch_dps), math.radians(yaw_dps)
    write_imu_packet(head, rates, (forward_g, -right_g, up_g), payload)


@kernel
def _by_firings(own: Any) -> int:  # noqa: ARG001 - argument of a family's own
    return FIRINGS


class LivoxReturns(NamedTuple):
    """What a Livox reports beside ranges and reflectivities, for ``s`` firing sequences, and room for directions.

    Attributes:
        tag: ``uint8[s, c]``.
        directions: ``float64[4, 16]``.
    """

    tag: npt.NDArray[np.uint8]
    directions: npt.NDArray[np.float64]


@family_kernels(
    encode=_encode_points,
    encode_info=_write_inertial,
    sense=_sense_tags,
    reads_hits=False,
    copy_return=_copy_tag,
    returns_order=_by_firings,
    aim=aim_lines,
    looks_at=_line_looks_at,
)
class LivoxPlan(NamedTuple):
    """Kernel-side part of a Livox.

    Attributes:
        slow_uhz: Turns of the pattern's slow rotation in a million seconds.
        fast_uhz: Turns of its fast rotation, likewise.
        phase_turns: Phase of the fast rotation at device time 0.
        advance: Turns of azimuth in a turn of the fast rotation.
        reach: ``int64[n]``, of each order of the pattern.
        rows: Rows of ``table`` for each sixteen channels.
        table: ``float64[n, 16]`` of ``patterns.table_of``.
        interval: Time from a packet's first point to its last one, 0.1 us.
        data_type: 1 to 3.
        time_type: 0 none, 1 PTP, 2 GPS.
        windows_deg: ``float64[n, 4]``, windows that are enabled: azimuths counter-clockwise from ahead, elevations.
        imu_place_m: ``float64[3]``, place of the inertial sensors in the platform's body frame.
    """

    slow_uhz: int
    fast_uhz: int
    phase_turns: float
    advance: float
    reach: npt.NDArray[np.int64]
    rows: int
    table: npt.NDArray[np.float64]
    interval: int
    data_type: int
    time_type: int
    windows_deg: npt.NDArray[np.float64]
    imu_place_m: npt.NDArray[np.float64]

    def allocate_returns(self, shape: tuple[int, int, int]) -> LivoxReturns:
        """Arrays for returns ``[return, sequence, channel]``."""
        return LivoxReturns(tag=np.zeros(shape[1:], np.uint8), directions=np.zeros((4, WIDTH)))
