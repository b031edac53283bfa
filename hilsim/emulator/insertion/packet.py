"""Objects in one recorded data packet: what of each firing's echoes the unit would have reported, written over the bytes that differ.

A recorded echo loses the light that objects before it take. An object's echo has the light that is left where it is: all of it before the nearest recorded
echo, behind a nearer one of two recorded echoes the share of the farther one (both surfaces taken as equally reflective), and none behind the farthest.
A firing whose recorded echoes lose nothing, and which no echo of an object joins, keeps its bytes.
"""

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import by_reference, constant, kernel, stage_kernel
from hilsim.emulator.insertion.rays import FiringRays, allocate_firing_rays, cast_firings, find_objects, place_firings
from hilsim.emulator.insertion.unit import RANGE_CLASSES_M, RETURNS, RecordedFirings, RecordedUnit, allocate_recorded_firings, read_firings
from hilsim.emulator.truth import Truth, describe_echo
from hilsim.sensor.echoes import (
    ECHO_DRAWS,
    ECHO_ENERGY,
    ECHO_RANGE,
    ECHO_RETRO,
    ENERGY,
    RANGE,
    EchoChoice,
    chosen_echo,
    group_echoes,
    is_detected,
    return_type,
)
from hilsim.sensor.response import CHANNELS_PER_STREAM, brightness, distance_code, range_noise
from hilsim.sensor.signal.losses import is_lost_at_flaw
from hilsim.world.geometry.tracks import PoseTrack
from hilsim.world.scene.world import World

_RETURNS = constant(RETURNS)
_LAST_BESIDE_STRONGEST = constant(EchoChoice.LAST_BESIDE_STRONGEST)
_FROM_OBJECT, _NO_GROUP, _NO_CODE = constant(-1), constant(-1), constant(0)
_FIRST_RANGE_M, _LAST_CLASS = RANGE_CLASSES_M[0], constant(len(RANGE_CLASSES_M))
_NO_LIGHT = 1e-6
"""Share of its light below which a recorded echo is gone."""


class InsertionCount(IntEnum):
    """Columns of ``InsertionWorkspace.counts``."""

    FIRINGS = 0
    """Firings of which a byte was rewritten."""
    INSERTED = 1
    """Returns that an object made."""
    HIDDEN = 2
    """Recorded returns that are reported no more."""


_FIRINGS, _INSERTED, _HIDDEN = constant(InsertionCount.FIRINGS), constant(InsertionCount.INSERTED), constant(InsertionCount.HIDDEN)


@by_reference
class Found(NamedTuple):
    """Echoes of one firing, ``m``, nearest first.

    Attributes:
        echo: ``float64[m, 4]``, as ``group_echoes`` gives them.
        record: ``int64[m]``, place of the recorded return that the echo is, or has joined; -1: it is an object's alone.
        group: ``int64[m]``, number of the objects' echo in ``Hits.what``; -1: there is none.
        object_share: ``float64[m]``, share of its energy that comes from objects.
        code: ``int64[m]``, distance code in the packet.
        kept: ``int64[m]``, numbers of the detected ones.
    """

    echo: npt.NDArray[np.float64]
    record: npt.NDArray[np.int64]
    group: npt.NDArray[np.int64]
    object_share: npt.NDArray[np.float64]
    code: npt.NDArray[np.int64]
    kept: npt.NDArray[np.int64]


@by_reference
class InsertionWorkspace(NamedTuple):
    """Working arrays of one recorded unit.

    Attributes:
        recorded: Firings of the packet.
        rays: Rays of the firings.
        found: Echoes of one firing.
        light: ``float64[2]``, share of its light that each recorded return keeps.
        choice: ``int64[2]``, an ``EchoChoice`` for each return of a firing.
        counts: ``int64[3]``, columns by ``InsertionCount``; they only grow.
        reported: ``int64[F, 2]``, number of the objects' echo that each return reports; -1 for a recorded echo, or none.
        reported_m: ``float64[F, 2]``, range of that echo.
    """

    recorded: RecordedFirings
    rays: FiringRays
    found: Found
    light: npt.NDArray[np.float64]
    choice: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    reported: npt.NDArray[np.int64]
    reported_m: npt.NDArray[np.float64]


def allocate_insertion_workspace(sub_rays: int, most_objects: int) -> InsertionWorkspace:
    """Allocate working arrays for beams of ``sub_rays`` rays and worlds of up to ``most_objects`` objects."""
    recorded, rays = allocate_recorded_firings(), allocate_firing_rays(sub_rays, most_objects)
    most = rays.blocked.shape[1] + RETURNS
    found = Found(
        np.zeros((most, 4)), np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most), np.zeros(most, np.int64), np.zeros(most, np.int64)
    )
    return InsertionWorkspace(
        recorded=recorded,
        rays=rays,
        found=found,
        light=np.zeros(RETURNS),
        choice=np.zeros(RETURNS, np.int64),
        counts=np.zeros(len(InsertionCount), np.int64),
        reported=np.full(recorded.place.shape, -1, np.int64),
        reported_m=np.zeros(recorded.place.shape),
    )


@kernel
def _recorded_energy(unit: RecordedUnit, recorded: RecordedFirings, firing: int, number: int) -> float:
    """Energy of a recorded return, by its reflectivity byte and its range."""
    range_m = float(recorded.range_m[firing, number])
    return float(unit.ratio[recorded.byte[firing, number]]) / (range_m * range_m)


@kernel
def _is_copy(recorded: RecordedFirings, firing: int) -> bool:
    """Whether both returns of a firing report one echo."""
    return bool(recorded.range_m[firing, 0] == recorded.range_m[firing, 1])


@kernel
def _dim(unit: RecordedUnit, firing: int, workspace: InsertionWorkspace) -> bool:
    """Weigh the hits of a firing with the light that reaches them, and the recorded returns with what hits leave; returns whether hits remain.

    ``light`` is written. Hits behind the farthest recorded echo are removed.
    """
    recorded, rays, light = workspace.recorded, workspace.rays, workspace.light
    hits, blocked = rays.hits, rays.blocked
    near, far = (0, 1) if recorded.range_m[firing, 0] <= recorded.range_m[firing, 1] else (1, 0)
    near_m, far_m = recorded.range_m[firing, near], recorded.range_m[firing, far]
    beyond, behind_m = 0.0, near_m
    if near_m < far_m < np.inf:
        near_energy, far_energy = _recorded_energy(unit, recorded, firing, near), _recorded_energy(unit, recorded, firing, far)
        at_near, at_far = near_energy * near_m * near_m, far_energy * far_m * far_m
        beyond, behind_m = at_far / (at_near + at_far), far_m
    light[0], light[1] = 1.0, 1.0
    left = 0
    for at in range(hits.hit_count[firing]):
        hit_m = hits.value[firing, at, RANGE]
        if hit_m >= behind_m:
            continue
        share = 1.0 if hit_m < near_m else beyond
        for number in range(_RETURNS):
            if hit_m < recorded.range_m[firing, number]:
                light[number] -= blocked[firing, at]
        for column in range(4):
            hits.value[firing, left, column] = hits.value[firing, at, column]
            hits.what[firing, left, column] = hits.what[firing, at, column]
        hits.value[firing, left, ENERGY] *= share
        left += 1
    hits.hit_count[firing] = left
    return left > 0


@kernel
def _lose(unit: RecordedUnit, firing: int, index: int, workspace: InsertionWorkspace) -> None:
    """Take the light that a firing loses at a flaw: a share of it, or all."""
    hits, response = workspace.rays.hits, unit.response
    stream = response.stream * CHANNELS_PER_STREAM + workspace.recorded.channel[firing]
    if is_lost_at_flaw(hits.flaw[firing], response.seed, stream, index, hits.hit_count[firing], hits.value, firing):
        for at in range(hits.hit_count[firing]):
            hits.value[firing, at, ENERGY] = 0.0


@kernel
def _join(found: Found, count: int, number: int, range_m: float, energy: float, retro: float, merge_distance_m: float) -> int:
    """Let a recorded return join an echo that is nearer to it than the merge distance, or put it among the echoes; returns their number."""
    for at in range(count):
        if abs(found.echo[at, ECHO_RANGE] - range_m) < merge_distance_m and found.record[at] < 0:
            of_object = found.echo[at, ECHO_ENERGY]
            total = of_object + energy
            found.echo[at, ECHO_RANGE] = (of_object * found.echo[at, ECHO_RANGE] + energy * range_m) / total
            found.echo[at, ECHO_RETRO] = (of_object * found.echo[at, ECHO_RETRO] + energy * retro) / total
            found.echo[at, ECHO_ENERGY] = total
            found.object_share[at] = of_object / total
            found.record[at] = number
            return count
    at = count
    while at > 0 and found.echo[at - 1, ECHO_RANGE] > range_m:
        for column in range(4):
            found.echo[at, column] = found.echo[at - 1, column]
        found.record[at], found.group[at], found.object_share[at] = found.record[at - 1], found.group[at - 1], found.object_share[at - 1]
        at -= 1
    found.echo[at, ECHO_RANGE], found.echo[at, ECHO_ENERGY], found.echo[at, ECHO_RETRO] = range_m, energy, retro
    found.record[at], found.group[at], found.object_share[at] = number, _NO_GROUP, 0.0
    return count + 1


@kernel
def _find_echoes(unit: RecordedUnit, firing: int, workspace: InsertionWorkspace) -> int:
    """Echoes of a firing: those of objects, and what is left of the recorded ones; returns their number."""
    recorded, hits, found, light = workspace.recorded, workspace.rays.hits, workspace.found, workspace.light
    merge_distance_m = unit.response.merge_distance_m
    count = group_echoes(hits.hit_count[firing], hits.value, hits.what, firing, merge_distance_m, found.echo)
    for at in range(count):
        found.record[at], found.group[at], found.object_share[at] = _FROM_OBJECT, at, 1.0
    for number in range(_RETURNS):
        range_m = recorded.range_m[firing, number]
        if range_m == np.inf or light[number] < _NO_LIGHT or (number == 1 and _is_copy(recorded, firing)):
            continue
        energy = _recorded_energy(unit, recorded, firing, number)
        retro = 1.0 if recorded.byte[firing, number] > unit.most_diffuse else 0.0
        count = _join(found, count, number, range_m, energy * light[number], retro, merge_distance_m)
    return count


@kernel
def _range_class(range_m: float) -> int:
    """Class of a range in ``RANGE_CLASSES_M``: each class is twice as far as the one before."""
    return min(max(math.floor(math.log2(range_m / _FIRST_RANGE_M)) + 1, 0), _LAST_CLASS)


@kernel
def _detect(unit: RecordedUnit, firing: int, index: int, count: int, workspace: InsertionWorkspace) -> int:
    """Write the distance codes of a firing's echoes and the numbers of those that the unit detects; returns how many it does."""
    found, recorded, response = workspace.found, workspace.recorded, unit.response
    channel = recorded.channel[firing]
    stream = response.stream * CHANNELS_PER_STREAM + channel
    kept = 0
    for at in range(count):
        energy, range_m, record = found.echo[at, ECHO_ENERGY], found.echo[at, ECHO_RANGE], found.record[at]
        is_as_recorded = found.object_share[at] == 0.0
        draw = index * ECHO_DRAWS + min(at, ECHO_DRAWS - 1)
        is_whole = is_as_recorded and workspace.light[record] >= 1.0
        if not is_whole and not is_detected(energy, response.threshold_energy, response.noise_ratio, response.seed, stream, draw):
            continue
        if is_as_recorded:
            code = math.floor(range_m / response.unit_m + 0.5)
        else:
            byte, _ = brightness(response, energy, range_m, found.echo[at, ECHO_RETRO])
            error = found.object_share[at] * range_noise(response, channel, index, at) * unit.noise_m[byte, _range_class(range_m)]
            code = distance_code(response, range_m + error)
        if code > 0:
            found.code[at] = code
            found.kept[kept] = at
            kept += 1
    return kept


@kernel
def _report(unit: RecordedUnit, firing: int, index: int, payload: npt.NDArray[np.uint8], workspace: InsertionWorkspace) -> None:
    """Write what a firing reports over the bytes that differ."""
    recorded, found, counts, response = workspace.recorded, workspace.found, workspace.counts, unit.response
    kept = _detect(unit, firing, index, _find_echoes(unit, firing, workspace), workspace)
    returns = 2 if recorded.place[firing, 1] >= 0 else 1
    is_rewritten = False
    for number in range(returns):
        choice, place = workspace.choice[number], recorded.place[firing, number]
        is_only = kept == 1 and choice != _LAST_BESIDE_STRONGEST
        echo = int(found.kept[0]) if is_only else chosen_echo(found.echo, found.kept, kept, choice)
        had_return = recorded.range_m[firing, number] != np.inf
        if echo < 0:
            if not had_return:
                continue
            unit.own.write_return(unit.own, recorded, firing, _NO_CODE, _NO_CODE, _NO_CODE, payload, place)
            counts[_HIDDEN] += 1
            is_rewritten = True
            continue
        record = found.record[echo]
        is_as_recorded = found.object_share[echo] == 0.0
        is_in_place = is_as_recorded and recorded.range_m[firing, record] == recorded.range_m[firing, number]
        if is_in_place and workspace.light[record] >= 1.0:
            continue
        energy, range_m, retro = found.echo[echo, ECHO_ENERGY], found.echo[echo, ECHO_RANGE], found.echo[echo, ECHO_RETRO]
        byte, marked = brightness(response, energy, range_m, retro)
        if is_in_place:
            payload[place + unit.byte_offset] = byte
        else:
            unit.own.write_return(unit.own, recorded, firing, int(found.code[echo]), byte, marked, payload, place)
        is_rewritten = True
        if not is_as_recorded:
            counts[_INSERTED] += 1
            counts[_HIDDEN] += had_return
            workspace.reported[firing, number] = found.group[echo]
            workspace.reported_m[firing, number] = range_m
    counts[_FIRINGS] += is_rewritten


@stage_kernel
def insert_objects(
    unit: RecordedUnit,
    track: PoseTrack,
    world: World,
    capture_ns: int,
    rig_ns: int,
    begin_ns: int,
    stop_ns: int,
    key: int,
    payload: npt.NDArray[np.uint8],
    size: int,
    workspace: InsertionWorkspace,
) -> int:
    """Put a world's objects into a recorded data packet.

    Args:
        unit: The unit that recorded it.
        track: World from carrier, over capture time.
        world: World of which every object is a mover.
        capture_ns: Capture time of the packet's stamp.
        rig_ns: Rig time of the packet's stamp.
        begin_ns: Rig time of the first firings that see this world.
        stop_ns: Rig time of the first firings that do not.
        key: A number of its own for each packet of a replay: random draws are keyed by it.
        payload: ``uint8[>= size]``, the packet, rewritten.
        size: Bytes of the packet.
        workspace: Working arrays.

    Returns:
        Number of firings that may have met an object.
    """
    recorded, rays = workspace.recorded, workspace.rays
    workspace.reported[:] = -1
    count = read_firings(unit, payload, size, recorded)
    if count == 0 or world.key_first.size == 0:
        return 0
    objects = find_objects(unit, track, world, capture_ns, rig_ns, recorded, count, rays)
    if objects == 0:
        return 0
    place_firings(unit, track, capture_ns, recorded, count, objects, rays)
    cast_firings(unit, world, rig_ns, recorded, count, objects, begin_ns, stop_ns, rays)
    unit.own.choose_returns(unit.own, payload, workspace.choice)
    met = 0
    for firing in range(count):
        if rays.hits.hit_count[firing] > 0 and _dim(unit, firing, workspace):
            if rays.hits.flaw[firing] > 0.0:
                _lose(unit, firing, key + firing, workspace)
            _report(unit, firing, key + firing, payload, workspace)
            met += 1
    return met


@kernel
def note_inserted(
    unit: RecordedUnit, world: World, rig_ns: int, packet: int, payload: npt.NDArray[np.uint8], workspace: InsertionWorkspace, truth: Truth, row: int
) -> int:
    """Write a row of ground truth for each return that an object made in a packet.

    The index of the firing sequence is -1 where packets do not show it. A mixed echo, of an object and a recorded surface, has a row too: its range is that of
    both.

    Args:
        unit: The unit that recorded the packet.
        world: World that was put into it.
        rig_ns: Rig time of the packet's stamp.
        packet: Index of the packet since the replay started.
        payload: The packet.
        workspace: After ``insert_objects``.
        truth: Written from ``row`` on.
        row: First row to write.

    Returns:
        The row after the last.
    """
    recorded, rays = workspace.recorded, workspace.rays
    for firing in range(recorded.state[3]):
        returns = 2 if recorded.place[firing, 1] >= 0 else 1
        for number in range(returns):
            echo = int(workspace.reported[firing, number])
            if echo < 0:
                continue
            place, other = recorded.place[firing, number], workspace.reported[firing, 1 - number] if returns == _RETURNS else -1
            truth.packet[row], truth.channel[row], truth.time_ns[row] = packet, recorded.channel[firing], rig_ns + recorded.time_ns[firing]
            unit.own.note_return(unit.own, recorded, firing, place, packet, payload, truth, row)
            truth.range_m[row] = workspace.reported_m[firing, number]
            truth.noise_m[row] = truth.distance[row] * unit.response.unit_m - truth.range_m[row]
            describe_echo(world, rays.hits, firing, echo, truth, row)
            truth.return_type[row] = return_type(workspace.choice[:returns], number, rays.hits, firing, echo, other)
            for axis in range(3):
                truth.position_m[row, axis] = rays.start_m[firing, axis]
            for part in range(4):
                truth.orientation[row, part] = rays.turn[firing, part]
            row += 1
    return row
