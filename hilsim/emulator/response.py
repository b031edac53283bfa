"""Third stage: hits → what the sensor reports."""

import math

import numpy as np

from hilsim._jit import inlined_kernel, kernel
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.shots import Shots
from hilsim.sensor.echoes import (
    COSINE,
    ECHO,
    ECHO_CODE,
    ECHO_DRAWS,
    ECHO_ENERGY,
    ECHO_RANGE,
    ECHO_RETRO,
    ENERGY,
    FALSE_ALARM_RAY,
    INSTANCE,
    RANGE,
    RAY,
    RETRO,
    TRIANGLE,
    WEATHER_RAY,
    Hits,
    chosen_echo,
    group_echoes,
    is_detected,
)
from hilsim.sensor.false_alarms import false_alarm
from hilsim.sensor.head import head_reading_cdeg
from hilsim.sensor.response import CHANNELS_PER_STREAM, distance_code, is_dropped, noise_sd_m, reflectivity_byte
from hilsim.sensor.thinning import reported_firings, withhold_firings
from hilsim.sensor.weather import extinction, weather_echoes
from hilsim.sensor.window import window_transmission

_CDEG_PER_RAD = 18_000.0 / math.pi
_CDEG_PER_NS_PER_CRPM = 6e-9


@inlined_kernel
def _mark(hits: Hits, firing: int, at: int, ray: int) -> None:
    """Say of a hit that no surface made it."""
    hits.value[firing, at, COSINE] = 1.0
    hits.value[firing, at, RETRO] = 0.0
    hits.what[firing, at, RAY] = ray
    hits.what[firing, at, INSTANCE] = -1
    hits.what[firing, at, TRIANGLE] = -1


@inlined_kernel
def _weaken(plan: LidarPlan, hits: Hits, firing: int, azimuth_cdeg: float, channel: int, index: int) -> None:
    """Take away what a firing's light loses on its way, and add the echoes of what it loses it to."""
    value, what = hits.value, hits.what
    weather = plan.weather
    count = hits.hit_count[firing]
    nearest_m = np.inf
    for at in range(count):
        nearest_m = min(nearest_m, value[firing, at, RANGE])
        value[firing, at, ENERGY] *= extinction(weather, value[firing, at, RANGE])
    if weather.has_echoes:
        stream = plan.response.stream * CHANNELS_PER_STREAM + channel
        total = weather_echoes(weather, plan.response.seed, stream, index, nearest_m, value[firing, :, RANGE], value[firing, :, ENERGY], count)
        for at in range(count, total):
            _mark(hits, firing, at, WEATHER_RAY)
        count = total
    through = window_transmission(plan.window, azimuth_cdeg, channel)
    for at in range(count):
        value[firing, at, ENERGY] *= through * through
    hits.hit_count[firing] = count
    what[firing, count:, ECHO] = -1


@inlined_kernel
def _add_false_alarm(plan: LidarPlan, hits: Hits, firing: int, channel: int, index: int) -> bool:
    """Let noise be taken for an echo, now and then; returns whether it was."""
    response = plan.response
    stream = response.stream * CHANNELS_PER_STREAM + channel
    range_m, energy = false_alarm(plan.false_alarms, response.seed, stream, index, response.range_max_m, response.threshold_energy)
    at = hits.hit_count[firing]
    if range_m <= 0.0 or at >= hits.value.shape[1]:
        return False
    hits.value[firing, at, RANGE] = range_m
    hits.value[firing, at, ENERGY] = max(energy, 1e-12)
    _mark(hits, firing, at, FALSE_ALARM_RAY)
    hits.hit_count[firing] = at + 1
    return True


@inlined_kernel
def _echo_of(hits: Hits, firing: int, ray: int) -> int:
    """The echo that holds a firing's hit of some ray; -1 where there is none."""
    for at in range(hits.hit_count[firing]):
        if hits.what[firing, at, RAY] == ray:
            return int(hits.what[firing, at, ECHO])
    return -1


@inlined_kernel
def _thin(plan: LidarPlan, first_sequence: int, sequences: int, shots: Shots) -> None:
    """Let a thinned sensor keep back the firings that it does not report."""
    if not plan.is_thinned:
        return
    returns = shots.returns
    reported_firings(plan.thinning, plan.head, first_sequence, sequences, shots.reported)
    withhold_firings(shots.reported, plan.response.baseline, returns.distance, returns.reflectivity)
    for channel in range(shots.reported.shape[0]):
        for sequence in range(sequences):
            if not shots.reported[channel, sequence]:
                returns.echo[:, sequence, channel] = -1
                returns.range_m[:, sequence, channel] = np.inf


@kernel
def respond(plan: LidarPlan, first_sequence: int, sequences: int, shots: Shots) -> None:
    """Turn what firings met into what the sensor reports.

    Args:
        plan: The lidar.
        first_sequence: Index of the first firing sequence.
        sequences: How many.
        shots: ``hits`` are sorted and grouped, ``returns`` written.
    """
    hit_count, value, what = shots.hits.hit_count, shots.hits.value, shots.hits.what
    echoes, kept = shots.echoes, shots.kept
    distance, reflectivity, azimuth_cdeg = shots.returns.distance, shots.returns.reflectivity, shots.returns.azimuth_cdeg
    reported_echo, reported_m = shots.returns.echo, shots.returns.range_m
    response, head, hits = plan.response, plan.head, shots.hits
    baseline, seed = response.baseline, response.seed
    is_weak = (
        plan.weather.extinction_per_m > 0.0 or plan.weather.has_echoes or plan.window.dirt_transmission < 1.0 or plan.window.sectors.shape[0] > 0
    )
    has_alarms = plan.false_alarms.rate_per_shot > 0.0
    azimuth_offset_rad = plan.azimuth_offset_rad
    cdeg_per_ns = _CDEG_PER_NS_PER_CRPM * head.rate_crpm
    for sequence in range(sequences):
        index = first_sequence + sequence
        azimuth_cdeg[sequence] = head_reading_cdeg(head, index * plan.sequence_ns, index)
        for channel in range(baseline.size):
            firing = channel * sequences + sequence
            found = 0
            certain = -1
            if is_weak:
                turned_cdeg = cdeg_per_ns * plan.firing_offset_ns[channel] + _CDEG_PER_RAD * azimuth_offset_rad[channel]
                _weaken(plan, hits, firing, azimuth_cdeg[sequence] + turned_cdeg, channel, index)
            is_alarm = has_alarms and _add_false_alarm(plan, hits, firing, channel, index)
            if hit_count[firing] > 0 and not is_dropped(response, channel, index):
                found = group_echoes(hit_count[firing], value, what, firing, response.merge_distance_m, echoes)
                certain = _echo_of(hits, firing, FALSE_ALARM_RAY) if is_alarm else -1
            stream = response.stream * CHANNELS_PER_STREAM + channel
            count = 0
            for echo in range(found):
                draw = index * ECHO_DRAWS + min(echo, ECHO_DRAWS - 1)
                energy, range_m = echoes[echo, ECHO_ENERGY], echoes[echo, ECHO_RANGE]
                if echo != certain and not is_detected(energy, response.threshold_energy, response.noise_ratio, seed, stream, draw):
                    continue
                code = distance_code(response, range_m, noise_sd_m(response, energy, range_m), channel, index, echo)
                if code > 0:
                    echoes[echo, ECHO_CODE] = code
                    kept[count] = echo
                    count += 1
            for which in range(plan.returns):
                echo = chosen_echo(echoes, kept, count, which, plan.returns, plan.reports_last)
                reported_echo[which, sequence, channel] = echo
                if echo < 0:
                    distance[which, sequence, channel] = 0
                    reflectivity[which, sequence, channel] = baseline[channel]
                    reported_m[which, sequence, channel] = np.inf
                    continue
                distance[which, sequence, channel] = int(echoes[echo, ECHO_CODE])
                reported_m[which, sequence, channel] = echoes[echo, ECHO_RANGE]
                reflectivity[which, sequence, channel] = reflectivity_byte(
                    echoes[echo, ECHO_ENERGY], echoes[echo, ECHO_RANGE], 2.0 * echoes[echo, ECHO_RETRO] > 1.0, response.diffuse_max
                )
    _thin(plan, first_sequence, sequences, shots)
