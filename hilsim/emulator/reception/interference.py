"""Light of the rig's other sensors in a firing's receiver: off what both light, and straight from one window into the other.

A pulse of another sensor is an echo like any other, at the range that the receiving sensor's clock makes of its arrival. The energy of light off a surface is
that of the sensor's own light off the same place, times the ratio of both densities there; one ray from the other sensor to the place would show
whether something is in between, and is not cast.
"""

import math
from collections.abc import Sequence

import numpy as np

from hilsim.compilation.jit import constant, kernel
from hilsim.compilation.lanes import WIDTH
from hilsim.emulator.plan import BeamRow, LidarPlan
from hilsim.sensor.clock import lost_ns, rig_from_device, scaled_down, scaled_up
from hilsim.sensor.echoes import ENERGY, INTERFERENCE_RAY, MIRRORED, RANGE, RAY, RETRO, Hits, mark
from hilsim.sensor.head import head_turns
from hilsim.sensor.interference.pulses import (
    SOURCE_DTYPE,
    Frame,
    Interference,
    beam_frame,
    distance_m,
    light_at,
    no_interference,
    source_frame,
    source_widths,
    spin_fields,
    spot_widths,
    swept_aim,
    turned_aim,
)
from hilsim.sensor.mirror import Mirror, no_mirror
from hilsim.sensor.specs import BeamSpec
from hilsim.world.geometry.frames import Vector

_M_PER_NS = 0.299792458
_ROUNDING_NS = 2.0
_SURELY_RETRO = 0.5
_RAY = constant(INTERFERENCE_RAY)
_SINE_ELEVATION, _COSINE_ELEVATION, _BEAM_ROWS = constant(BeamRow.SINE_ELEVATION), constant(BeamRow.COSINE_ELEVATION), constant(len(BeamRow))


def build_interference(own: LidarPlan, own_beam: BeamSpec, others: Sequence[tuple[LidarPlan, BeamSpec]]) -> Interference:
    """Build the pulses that reach a lidar.

    Args:
        own: Plan of the receiving lidar.
        own_beam: Its model's beam.
        others: Plans of the rig's other lidars, with their models' beams. Those whose families aim themselves reach no other one.
    """
    others = [(plan, beam) for plan, beam in others if not plan.own.aims_itself]
    if not others:
        return no_interference()
    sources, first = np.zeros(len(others), SOURCE_DTYPE), 0
    for source, (plan, beam) in zip(sources, others, strict=True):
        apart_m = np.linalg.norm(plan.channel_origin_m[:, np.newaxis] - own.channel_origin_m, axis=2).max()
        fields = spin_fields(plan.head, plan.mirror or no_mirror()) | {
            "start_ns": plan.clock.start_ns,
            "oscillator_ppb": plan.clock.oscillator_ppb,
            "sequence_ns": plan.sequence_ns,
            "first": first,
            "stop": first + plan.firing_offset_ns.size,
            "is_swept": plan.mirror is not None,
            "apart_m": apart_m,
        }
        fields |= dict(zip(("half_h_m", "tangent_h", "half_v_m", "tangent_v"), spot_widths(beam), strict=True))
        fields |= dict(zip(("mount_w", "mount_x", "mount_y", "mount_z"), plan.mount_orientation, strict=True))
        for name, value in fields.items():
            source[name] = value
        first = int(source["stop"])
    plans = [plan for plan, _ in others]
    return Interference(
        sources=sources,
        offset_ns=np.concatenate([plan.firing_offset_ns for plan in plans]),
        level=np.cos(np.radians(np.concatenate([plan.elevation_deg for plan in plans]))),
        rise=np.sin(np.radians(np.concatenate([plan.elevation_deg for plan in plans]))),
        azimuth_rad=np.concatenate([plan.azimuth_offset_rad for plan in plans]),
        origin_m=np.concatenate([plan.channel_origin_m for plan in plans]),
        segment=np.concatenate([plan.mirror.segment if plan.mirror is not None else np.zeros((plan.firing_offset_ns.size, 6)) for plan in plans]),
        own=spot_widths(own_beam),
    )


@kernel
def turns_of_sequence(plan: LidarPlan, index: int) -> tuple[float, float]:
    """Turns of a receiving sensor's head at the start of a firing sequence, and how far it turns within it; linear in between, as rays are fired."""
    start_ns = index * plan.sequence_ns
    turns = head_turns(plan.head, start_ns)
    travelled = head_turns(plan.head, start_ns + plan.sequence_ns) - turns
    return turns, travelled - math.floor(travelled + 0.5)


@kernel
def _own_aim(mirror: Mirror | None, plan: LidarPlan, channel: int, device_ns: int, turns: tuple[float, float]) -> tuple[float, float, float, float]:
    """Sine and cosine of azimuth, cosine and sine of elevation, of the receiving sensor's beam."""
    if mirror is not None:
        return swept_aim(mirror, channel, device_ns)
    share, table = plan.firing_offset_ns[channel] / plan.sequence_ns, channel // WIDTH * _BEAM_ROWS
    sine, cosine = turned_aim(turns[0] + share * turns[1], plan.azimuth_offset_rad[channel])
    return sine, cosine, plan.beam_lanes[table + _COSINE_ELEVATION, channel % WIDTH], plan.beam_lanes[table + _SINE_ELEVATION, channel % WIDTH]


@kernel
def _own_frame(plan: LidarPlan, channel: int, device_ns: int, turns: tuple[float, float]) -> Frame:
    """The receiving sensor's beam."""
    sine, cosine, level, rise = _own_aim(plan.mirror, plan, channel, device_ns, turns)
    mount = (plan.mount_orientation[0], plan.mount_orientation[1], plan.mount_orientation[2], plan.mount_orientation[3])
    origin = plan.channel_origin_m
    return beam_frame(mount, (origin[channel, 0], origin[channel, 1], origin[channel, 2]), sine, cosine, level, rise)


@kernel
def _place(plan: LidarPlan, own: Frame, ray: int, range_m: float) -> Vector:
    """Where a sub-ray ends, in the body frame."""
    (ox, oy, oz), (ax, ay, az), (hx, hy, hz), (vx, vy, vz) = own
    u, v = plan.beam.tangent[ray, 0], plan.beam.tangent[ray, 1]
    length_m = range_m / math.sqrt(1.0 + u * u + v * v)
    h_m, v_m = plan.beam.offset_m[ray, 0] + length_m * u, plan.beam.offset_m[ray, 1] + length_m * v
    return ox + length_m * ax + h_m * hx + v_m * vx, oy + length_m * ay + h_m * hy + v_m * vy, oz + length_m * az + h_m * hz + v_m * vz


@kernel
def _add(plan: LidarPlan, hits: Hits, firing: int, range_m: float, energy: float) -> None:
    """Add a hit, if the receiver listens at that time and there is room for one."""
    at = hits.hit_count[firing]
    if at >= hits.value.shape[1] or energy <= 0.0 or range_m < plan.response.range_min_m or range_m > plan.response.range_max_m:
        return
    hits.value[firing, at, RANGE] = range_m
    hits.value[firing, at, ENERGY] = energy
    mark(hits, firing, at, _RAY)
    hits.hit_count[firing] = at + 1


@kernel
def _receive(
    interference: Interference,
    plan: LidarPlan,
    hits: Hits,
    firing: int,
    count: int,
    own: Frame,
    number: int,
    other: Frame,
    delay_m: float,
    through: float,
) -> None:
    """Add what reaches a firing's receiver of one pulse.

    Args:
        interference: Pulses of the others.
        plan: The receiving lidar.
        hits: Its hits.
        firing: Row of the firing.
        count: Number of its hits that are its own.
        own: Its beam.
        number: Number of the other sensor.
        other: That sensor's beam.
        delay_m: Delay of the pulse after the firing's own, as a distance of light.
        through: Share of light that the receiving sensor's window lets through, one way.
    """
    value, what = hits.value, hits.what
    widths, nearest_m, (_, (ax, ay, az), _, _), (_, (bx, by, bz), _, _) = source_widths(interference, number), np.inf, own, other
    lights_faces = ax * bx + ay * by + az * bz > 0.0  # what both meet from opposite sides is lit from behind
    for at in range(count):
        ray, range_m, energy = what[firing, at, RAY], value[firing, at, RANGE], value[firing, at, ENERGY]
        if ray < 0 or ray >= MIRRORED or energy <= 0.0:
            continue
        nearest_m = min(nearest_m, range_m)
        if not lights_faces or value[firing, at, RETRO] > _SURELY_RETRO:  # a retro-reflector returns light to where it came from
            continue
        place = _place(plan, own, ray, range_m)
        light = light_at(other, widths, place)
        if light > 0.0:
            ratio = light / max(light_at(own, interference.own, place), 1.0)
            _add(plan, hits, firing, 0.5 * (delay_m + distance_m(other, place) + range_m), energy * ratio)
    apart_m = distance_m(own, other[0])
    if apart_m < nearest_m and light_at(own, interference.own, other[0]) > 0.0:
        _add(plan, hits, firing, 0.5 * (delay_m + apart_m), through * light_at(other, widths, own[0]))


@kernel
def add_interference(
    interference: Interference, plan: LidarPlan, hits: Hits, firing: int, channel: int, index: int, through: float, turns: tuple[float, float]
) -> bool:
    """Add to a firing's hits the light of the rig's other sensors; returns whether there was any.

    Args:
        interference: Pulses of the others.
        plan: The receiving lidar.
        hits: Its hits, after weather and window.
        firing: Row of the firing.
        channel: Channel of the firing.
        index: Index of its firing sequence.
        through: Share of light that the window lets through, one way.
        turns: The sequence's, from ``turns_of_sequence``.
    """
    count, farthest_m = hits.hit_count[firing], 0.0
    device_ns = index * plan.sequence_ns + plan.firing_offset_ns[channel]
    fired_ns, own = rig_from_device(plan.clock, device_ns), _own_frame(plan, channel, device_ns, turns)
    for at in range(count):
        farthest_m = max(farthest_m, hits.value[firing, at, RANGE])
    for number in range(interference.sources.size):
        source = interference.sources[number]
        start_ns, gain_ppb, sequence_ns = source["start_ns"], source["oscillator_ppb"], source["sequence_ns"]
        earliest_ns = fired_ns - int((2.0 * farthest_m + source["apart_m"]) / _M_PER_NS + _ROUNDING_NS)
        latest_ns = fired_ns + int(2.0 * plan.response.range_max_m / _M_PER_NS + _ROUNDING_NS)
        first_ns, last_ns = scaled_up(earliest_ns - start_ns, gain_ppb), scaled_up(latest_ns - start_ns, gain_ppb)
        for sequence in range(max(first_ns // sequence_ns, 0), last_ns // sequence_ns + 1):
            for row in range(source["first"], source["stop"]):
                other_ns = sequence * sequence_ns + interference.offset_ns[row]
                if other_ns < first_ns or other_ns > last_ns:
                    continue
                delay_ns = start_ns + scaled_down(other_ns, gain_ppb) - fired_ns
                delay_ns += lost_ns(other_ns, gain_ppb) - lost_ns(device_ns, plan.clock.oscillator_ppb)
                other = source_frame(interference, number, row, other_ns)
                _receive(interference, plan, hits, firing, count, own, number, other, _M_PER_NS * delay_ns, through)
    return bool(hits.hit_count[firing] > count)
