"""Faults of the optics: the light of a firing, echoes that are none, and what is falsified of what was measured."""

import math

from hilsim.compilation.jit import borrowing_kernel, constant, kernel
from hilsim.emulator.families.aiming import looks_at
from hilsim.emulator.plan import LidarPlan, Rare
from hilsim.emulator.workspace import EmulatorCount, Returns, Workspace
from hilsim.faults.catalogue import Effect
from hilsim.faults.table import FaultTable, befalls, strength
from hilsim.rng import Purpose, normal, uniform_pair
from hilsim.sensor.clock import device_from_rig
from hilsim.sensor.echoes import ECHO, ENERGY, FALSE_ALARM_RAY, RANGE, mark
from hilsim.sensor.head import head_turns
from hilsim.sensor.response import CHANNELS_PER_STREAM, Response, distance_code
from hilsim.units import TURN_CDEG

_DIM, _DROPS, _ECHO = constant(Effect.DIM), constant(Effect.DROPS), constant(Effect.ECHO)
_ERROR, _BYTE, _ORDER, _READING = constant(Effect.ERROR), constant(Effect.BYTE), constant(Effect.ORDER), constant(Effect.READING)
_DROP, _ECHO_DRAW, _ERROR_DRAW, _LASER = (
    constant(Purpose.FAULT_DROP),
    constant(Purpose.FAULT_ECHO),
    constant(Purpose.FAULT_ERROR),
    constant(Purpose.FAULT_LASER),
)
_BYTE_MAX = 255.0
_FAULTED = constant(EmulatorCount.FAULTED)


@kernel
def _drops_share(faults: FaultTable, row: int, azimuth_cdeg: float, elevation_deg: float, rig_ns: int) -> float:
    """Share of the light that drops on the window let through."""
    count, width_deg, transmission, speed_dps = faults.value[row, 0], faults.value[row, 1], faults.value[row, 2], faults.value[row, 3]
    low, high = max(faults.sector[row, 2], -45.0), min(faults.sector[row, 3], 45.0)
    share = 1.0
    for drop in range(int(count)):
        across, along = uniform_pair(faults.seed[row], 0, drop, _DROP)
        fallen_deg = along * (high - low) + speed_dps * 1e-9 * (rig_ns - faults.begin_ns[row])
        height_deg = high - fallen_deg % (high - low) if high > low else high
        away_cdeg = (azimuth_cdeg - faults.sector[row, 0] - across * faults.sector[row, 1] + 0.5 * TURN_CDEG) % TURN_CDEG - 0.5 * TURN_CDEG
        if math.hypot(away_cdeg / 100.0 * math.cos(math.radians(elevation_deg)), elevation_deg - height_deg) < width_deg / 2.0:
            share *= transmission
    return share


@kernel
def fault_share(faults: FaultTable, channel: int, azimuth_cdeg: float, elevation_deg: float, stream: int, index: int, rig_ns: int) -> float:
    """Share of a firing's light that faults let through, one way; arguments as of ``faults.table.befalls``."""
    share = 1.0
    for row in range(faults.effect.size):
        if faults.effect[row] > _DROPS:
            continue
        acts = strength(faults, row, rig_ns)
        if acts > 0.0 and befalls(faults, row, channel, azimuth_cdeg, elevation_deg, stream, index):
            passing = faults.value[row, 0]
            if faults.effect[row] == _DROPS:
                passing = _drops_share(faults, row, azimuth_cdeg, elevation_deg, rig_ns)
            share *= 1.0 - acts * (1.0 - passing)
    return share


@kernel
def add_fault_echo(
    faults: FaultTable,
    response: Response,
    workspace: Workspace,
    firing: int,
    channel: int,
    azimuth_cdeg: float,
    elevation_deg: float,
    index: int,
    rig_ns: int,
) -> bool:
    """Add the echoes that faults make to a firing's hits; returns whether one was added, or hides the others. A fault that comes comes to more firings."""
    hits, stream, is_changed = workspace.hits, response.stream * CHANNELS_PER_STREAM + channel, False
    for row in range(faults.effect.size):
        if faults.effect[row] != _ECHO:
            continue
        acts = strength(faults, row, rig_ns)
        if acts <= 0.0 or not befalls(faults, row, channel, azimuth_cdeg, elevation_deg, stream, index):
            continue
        place, brightness = uniform_pair(faults.seed[row], stream, 2 * index, _ECHO_DRAW)
        occurs, _ = uniform_pair(faults.seed[row], stream, 2 * index + 1, _ECHO_DRAW)
        if occurs >= acts:
            continue
        nearest_m, farthest_m = faults.value[row, 0], min(faults.value[row, 1], response.range_max_m)
        reflectivity = faults.value[row, 2] + brightness * (faults.value[row, 3] - faults.value[row, 2])
        if faults.value[row, 4] > 0.0:
            hits.hit_count[firing] = 0
            hits.what[firing, :, ECHO] = -1
        at = hits.hit_count[firing]
        range_m = max(nearest_m + (1.0 - place) * (farthest_m - nearest_m), 1e-3)
        if at < hits.value.shape[1]:
            hits.value[firing, at, RANGE] = range_m
            hits.value[firing, at, ENERGY] = max(reflectivity / (range_m * range_m), 1e-12)
            mark(hits, firing, at, FALSE_ALARM_RAY)
            hits.hit_count[firing] = at + 1
        is_changed = True
    return is_changed


@kernel
def _falsify_return(
    faults: FaultTable, row: int, acts: float, plan: LidarPlan, returns: Returns, at: tuple[int, int, int], stream: int, index: int
) -> None:
    """Change the distance or reflectivity of a return, or take it away where its distance is beyond what the sensor reports."""
    if faults.effect[row] == _BYTE:
        factor = faults.value[row, 1] * max(1.0 + faults.value[row, 0] * normal(faults.seed[row], stream, 0, _LASER), 0.0)
        byte = returns.reflectivity[at] * (1.0 + acts * (factor - 1.0))
        returns.reflectivity[at] = int(min(byte + 0.5, _BYTE_MAX))
        return
    error_m = faults.value[row, 0] + faults.value[row, 2] * normal(faults.seed[row], stream, 0, _LASER)
    error_m += faults.value[row, 1] * normal(faults.seed[row], stream, index, _ERROR_DRAW)
    range_m = returns.distance[at] * plan.response.unit_m + acts * error_m
    returns.distance[at] = distance_code(plan.response, range_m)


@kernel
def _exchange(returns: Returns, spare: Returns, sequence: int, by: int) -> None:
    """Put the records of a firing sequence into the places of other channels."""
    channels = returns.distance.shape[2]
    for number in range(returns.distance.shape[0]):
        spare.distance[number, sequence] = returns.distance[number, sequence]
        spare.reflectivity[number, sequence] = returns.reflectivity[number, sequence]
        for channel in range(channels):
            returns.distance[number, sequence, channel] = spare.distance[number, sequence, (channel + by) % channels]
            returns.reflectivity[number, sequence, channel] = spare.reflectivity[number, sequence, (channel + by) % channels]


@kernel
def _reading(faults: FaultTable, row: int, plan: LidarPlan, reading_cdeg: int) -> int:
    """The encoder's reading as a fault falsifies it."""
    if faults.value[row, 0] > 0.0:
        return int(head_turns(plan.head, device_from_rig(plan.clock, faults.begin_ns[row])) * TURN_CDEG) % TURN_CDEG
    if faults.value[row, 2] > 0.0:
        return reading_cdeg + TURN_CDEG if reading_cdeg < faults.value[row, 2] else reading_cdeg
    return int((reading_cdeg + faults.value[row, 1]) % TURN_CDEG)


@kernel
def _falsify_returns(faults: FaultTable, row: int, plan: LidarPlan, workspace: Workspace, sequence: int, true_cdeg: int) -> None:
    """Change the returns of a firing sequence; ``true_cdeg`` is what the encoder read at its start."""
    returns, ray_ns, sub_rays = workspace.returns, workspace.rays.time_ns, plan.beam.share.size
    index, sequences = workspace.sequence[sequence], workspace.sequence.size
    for channel in range(plan.baseline.size):
        acts = strength(faults, row, ray_ns[(channel * sequences + sequence) * sub_rays])
        stream = plan.response.stream * CHANNELS_PER_STREAM + channel
        azimuth_cdeg, elevation_deg = looks_at(plan.own, plan, true_cdeg, channel, index)
        if not befalls(faults, row, channel, azimuth_cdeg, elevation_deg, stream, index):
            continue
        workspace.counts[_FAULTED] += 1
        for number in range(returns.distance.shape[0]):
            if returns.distance[number, sequence, channel] > 0:
                _falsify_return(faults, row, acts, plan, returns, (number, sequence, channel), stream, index)


@kernel
def _falsify(faults: FaultTable, plan: LidarPlan, workspace: Workspace) -> None:
    returns, channels = workspace.returns, plan.baseline.size
    for sequence in range(workspace.sequence.size):
        true_cdeg = returns.azimuth_cdeg[sequence]
        for row in range(faults.effect.size):
            effect = faults.effect[row]
            if effect < _ERROR or effect > _READING or strength(faults, row, workspace.rays.time_ns[sequence * plan.beam.share.size]) <= 0.0:
                continue
            if effect in (_ORDER, _READING):
                workspace.counts[_FAULTED] += channels
            if effect == _ORDER:
                _exchange(returns, workspace.earlier, sequence, int(faults.value[row, 0]))
            elif effect == _READING:
                returns.azimuth_cdeg[sequence] = _reading(faults, row, plan, returns.azimuth_cdeg[sequence])
            else:
                _falsify_returns(faults, row, plan, workspace, sequence, true_cdeg)


@borrowing_kernel
def falsify(rare: Rare | None, plan: LidarPlan, workspace: Workspace) -> None:
    """Falsify what a sensor measured, in the order of the table."""
    if rare is not None and rare.faults.falsifies:
        _falsify(rare.faults, plan, workspace)
