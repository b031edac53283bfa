"""Effect of weather, the window and noise on a firing's hits, before the receiver."""

import numpy as np

from hilsim.compilation.jit import borrowing_kernel, inlined_kernel, kernel
from hilsim.emulator.plan import LidarPlan, Rare
from hilsim.emulator.workspace import Workspace
from hilsim.sensor.echoes import ECHO, ENERGY, FALSE_ALARM_RAY, RANGE, WEATHER_RAY, Hits, mark
from hilsim.sensor.optics.false_alarms import alarm_rate, false_alarm, has_false_alarms, spurious_return
from hilsim.sensor.optics.weather import extinction, weather_echoes
from hilsim.sensor.response import CHANNELS_PER_STREAM


@kernel
def weaken(rare: Rare, plan: LidarPlan, hits: Hits, firing: int, through: float, channel: int, index: int) -> None:
    """Take away what a firing's light loses on its way, and add the echoes of what it loses it to."""
    value, what = hits.value, hits.what
    weather = rare.weather
    count = hits.hit_count[firing]
    nearest_m = np.inf
    for at in range(count):
        nearest_m = min(nearest_m, value[firing, at, RANGE])
        value[firing, at, ENERGY] *= extinction(weather, value[firing, at, RANGE])
    if weather.has_echoes:
        stream = plan.response.stream * CHANNELS_PER_STREAM + channel
        total = weather_echoes(weather, plan.response.seed, stream, index, nearest_m, value[firing, :, RANGE], value[firing, :, ENERGY], count)
        for at in range(count, total):
            mark(hits, firing, at, WEATHER_RAY)
        count = total
    for at in range(count):
        value[firing, at, ENERGY] *= through * through
    hits.hit_count[firing] = count
    what[firing, count:, ECHO] = -1


@inlined_kernel
def takes_light(rare: Rare) -> bool:
    """Whether weather, the window or a fault takes light, or adds echoes."""
    weather, window = rare.weather, rare.window
    return (
        weather.extinction_per_m > 0.0 or weather.has_echoes or window.soiling_transmission < 1.0 or window.sectors.shape[0] > 0 or rare.faults.dims
    )


@borrowing_kernel
def leaves_hits(rare: Rare | None, plan: LidarPlan) -> bool:
    """Whether firings have hits of surfaces alone, with all their light."""
    if rare is None:
        return True
    return not takes_light(rare) and not rare.faults.adds and not has_false_alarms(plan.false_alarms) and rare.interference.sources.size == 0


@kernel
def add_false_alarm(plan: LidarPlan, workspace: Workspace, firing: int, channel: int, index: int) -> bool:
    """Add a false alarm or a spurious return to a firing's hits at random; returns whether one was added. A spurious return replaces all hits."""
    response, alarms, hits, ahead = plan.response, plan.false_alarms, workspace.hits, workspace.rays.direction
    stream = response.stream * CHANNELS_PER_STREAM + channel
    range_m, energy = 0.0, 0.0
    if alarms.spurious_rate > 0.0:
        range_m, energy = spurious_return(alarms, response.seed, stream, index, response.range_min_m, response.range_max_m)
        if range_m > 0.0:
            hits.hit_count[firing] = 0
            hits.what[firing, :, ECHO] = -1
    if range_m <= 0.0:
        ray = firing * plan.beam.share.size
        rate = alarm_rate(alarms, float(ahead[ray, 0]), float(ahead[ray, 1]), float(ahead[ray, 2]))
        range_m, energy = false_alarm(rate, response.seed, stream, index, response.range_max_m, response.threshold_energy)
    at = hits.hit_count[firing]
    if range_m <= 0.0 or at >= hits.value.shape[1]:
        return False
    hits.value[firing, at, RANGE] = range_m
    hits.value[firing, at, ENERGY] = max(energy, 1e-12)
    mark(hits, firing, at, FALSE_ALARM_RAY)
    hits.hit_count[firing] = at + 1
    return True
