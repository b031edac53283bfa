"""Third stage, the receiver: hits → the returns that the sensor reports."""

import math

import numpy as np
import numpy.typing as npt

from hilsim._jit import constant, inlined_kernel, kernel, stage_kernel
from hilsim._lanes import WIDTH, store_lanes
from hilsim.emulator.overlay import OverlayRule
from hilsim.emulator.plan import Family, LidarPlan
from hilsim.emulator.workspace import Workspace
from hilsim.sensor.decimation import reported_firings, withhold_firings
from hilsim.sensor.echoes import (
    BACKGROUND_ALONE,
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
from hilsim.sensor.mirror import image_point
from hilsim.sensor.response import (
    CHANNELS_PER_STREAM,
    Response,
    ReturnFlag,
    brightness,
    distance_code,
    draw_range_noise,
    is_dropped,
    noise_sd_m,
    range_noise,
)
from hilsim.sensor.weather import extinction, weather_echoes
from hilsim.sensor.window import window_transmission
from hilsim.units import CDEG_PER_RAD

_CEPTON = constant(Family.CEPTON)
_SYNTHETIC_ONLY = constant(OverlayRule.SYNTHETIC_ONLY)
_BLOCKED, _UNFLAGGED = constant(ReturnFlag.BLOCKED), constant(0)
_DEG_PER_RAD = 180.0 / math.pi
_CDEG_PER_NS_PER_CRPM = 6e-9


@inlined_kernel
def _mark(hits: Hits, firing: int, at: int, ray: int) -> None:
    """Say of a hit that no surface made it."""
    hits.value[firing, at, COSINE] = 1.0
    hits.value[firing, at, RETRO] = 0.0
    hits.what[firing, at, RAY] = ray
    hits.what[firing, at, INSTANCE] = -1
    hits.what[firing, at, TRIANGLE] = -1


@kernel
def _weaken(plan: LidarPlan, hits: Hits, firing: int, through: float, channel: int, index: int) -> None:
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
    for at in range(count):
        value[firing, at, ENERGY] *= through * through
    hits.hit_count[firing] = count
    what[firing, count:, ECHO] = -1


@inlined_kernel
def _takes_light(plan: LidarPlan) -> bool:
    """Whether weather or the window takes light or adds echoes."""
    weather, window = plan.weather, plan.window
    return weather.extinction_per_m > 0.0 or weather.has_echoes or window.soiling_transmission < 1.0 or window.sectors.shape[0] > 0


@inlined_kernel
def _window_share(plan: LidarPlan, reading_cdeg: int, channel: int, index: int) -> float:
    """Share of a firing's light that the window lets through, one way."""
    if plan.family == _CEPTON:
        image_x, image_z = image_point(plan.mirror, channel, index * plan.sequence_ns + plan.firing_offset_ns[channel])
        azimuth_cdeg = CDEG_PER_RAD * math.atan(image_x)
        elevation_deg = _DEG_PER_RAD * math.atan(image_z / math.sqrt(1.0 + image_x * image_x))
    else:
        azimuth_cdeg = reading_cdeg + _CDEG_PER_NS_PER_CRPM * plan.head.rate_crpm * plan.firing_offset_ns[channel]
        azimuth_cdeg += CDEG_PER_RAD * plan.azimuth_offset_rad[channel]
        elevation_deg = plan.elevation_deg[channel]
    return window_transmission(plan.window, azimuth_cdeg, elevation_deg)


@kernel
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


@kernel
def _echo_of(hits: Hits, firing: int, ray: int) -> int:
    """The echo that holds a firing's hit of some ray; -1 where there is none."""
    for at in range(hits.hit_count[firing]):
        if hits.what[firing, at, RAY] == ray:
            return int(hits.what[firing, at, ECHO])
    return -1


@kernel
def _background_echo(hits: Hits, firing: int) -> int:
    """The echo that holds the captured background; -1 where there is none."""
    for at in range(hits.hit_count[firing]):
        if hits.what[firing, at, INSTANCE] <= BACKGROUND_ALONE:
            return int(hits.what[firing, at, ECHO])
    return -1


@inlined_kernel
def _draw_noise(plan: LidarPlan, first_sequence: int, sequences: int, noise: npt.NDArray[np.float64]) -> None:
    """Draw the range errors of all firings' first echoes, sixteen channels at a time: few firings have a second one."""
    rows = noise.reshape(-1, WIDTH)
    groups = noise.shape[1] // WIDTH
    response = plan.response
    for sequence in range(sequences):
        for group in range(groups):
            store_lanes(rows, sequence * groups + group, draw_range_noise(response, group * WIDTH, first_sequence + sequence))


@inlined_kernel
def _decimate(plan: LidarPlan, first_sequence: int, sequences: int, workspace: Workspace) -> None:
    """Let a decimated sensor keep back the firings that it does not report."""
    if not plan.is_decimated:
        return
    returns = workspace.returns
    reported_firings(plan.decimation, plan.head, first_sequence, sequences, workspace.reported)
    withhold_firings(workspace.reported, plan.baseline, returns.distance, returns.reflectivity)
    for channel in range(workspace.reported.shape[0]):
        for sequence in range(sequences):
            if not workspace.reported[channel, sequence]:
                returns.echo[:, sequence, channel] = -1
                returns.range_m[:, sequence, channel] = np.inf


@inlined_kernel
def _distance_of(
    response: Response,
    energy: float,
    range_m: float,
    is_certain: bool,  # noqa: FBT001 - kernels take their arguments by place
    channel: int,
    index: int,
    echo: int,
    bias_m: float,
    first_noise: float,
) -> int:
    """The packet's distance of an echo, 0 where it is not detected or not within limits.

    ``is_certain``: it passes the threshold whatever its energy, as noise that was taken for an echo does, and what a real sensor has detected.
    ``bias_m`` is the channel's, ``first_noise`` the first echo's ``range_noise``.
    """
    if not is_certain:
        stream = response.stream * CHANNELS_PER_STREAM + channel
        draw = index * ECHO_DRAWS + min(echo, ECHO_DRAWS - 1)
        if not is_detected(energy, response.threshold_energy, response.noise_ratio, response.seed, stream, draw):
            return 0
    error = first_noise if echo == 0 else range_noise(response, channel, index, echo)
    return distance_code(response, range_m + bias_m + error * noise_sd_m(response, energy, range_m))


@stage_kernel
def respond(plan: LidarPlan, first_sequence: int, sequences: int, workspace: Workspace) -> None:
    """Turn what firings met into what the sensor reports.

    Args:
        plan: The lidar.
        first_sequence: Index of the first firing sequence.
        sequences: How many.
        workspace: ``hits`` are sorted and grouped, ``returns`` written.
    """
    hit_count, value, what = workspace.hits.hit_count, workspace.hits.value, workspace.hits.what
    echoes, kept = workspace.echoes, workspace.kept
    distance, reflectivity, azimuth_cdeg = workspace.returns.distance, workspace.returns.reflectivity, workspace.returns.azimuth_cdeg
    flags, is_swept = workspace.returns.flags, plan.family == _CEPTON
    reported_echo, reported_m = workspace.returns.echo, workspace.returns.range_m
    response, head, hits = plan.response, plan.head, workspace.hits
    baseline, bias_m, noise = plan.baseline, plan.bias_m, workspace.noise
    choice = plan.choice
    is_weak = _takes_light(plan)
    is_plain = plan.overlay.rule == _SYNTHETIC_ONLY
    has_alarms = plan.false_alarms.rate_per_firing > 0.0
    _draw_noise(plan, first_sequence, sequences, noise)
    for sequence in range(sequences):
        index = first_sequence + sequence
        if not is_swept:
            azimuth_cdeg[sequence] = head_reading_cdeg(head, index * plan.sequence_ns, index)
        for channel in range(baseline.size):
            firing = channel * sequences + sequence
            found, certain, blocked = 0, -1, _UNFLAGGED
            if is_weak:
                through = _window_share(plan, azimuth_cdeg[sequence], channel, index)
                blocked = _BLOCKED if through <= 0.0 else _UNFLAGGED
                _weaken(plan, hits, firing, through, channel, index)
            is_alarm = has_alarms and _add_false_alarm(plan, hits, firing, channel, index)
            if hit_count[firing] > 0 and not is_dropped(response, channel, index):
                found = group_echoes(hit_count[firing], value, what, firing, response.merge_distance_m, echoes)
                certain = _echo_of(hits, firing, FALSE_ALARM_RAY) if is_alarm else -1
            recorded = -1 if is_weak or is_plain else _background_echo(hits, firing)
            count = 0
            for echo in range(found):  # not a function of its own: arrays that are its arguments would be counted, by atomic instructions
                is_certain = echo in (certain, recorded)
                range_m, energy = echoes[echo, ECHO_RANGE], echoes[echo, ECHO_ENERGY]
                code = _distance_of(response, energy, range_m, is_certain, channel, index, echo, bias_m[channel], noise[sequence, channel])
                if code > 0:
                    echoes[echo, ECHO_CODE] = code
                    kept[count] = echo
                    count += 1
            for return_number in range(choice.size):
                echo = chosen_echo(echoes, kept, count, choice[return_number])
                reported_echo[return_number, sequence, channel] = echo
                if echo < 0:
                    distance[return_number, sequence, channel] = 0
                    reflectivity[return_number, sequence, channel] = baseline[channel]
                    flags[return_number, sequence, channel] = blocked
                    reported_m[return_number, sequence, channel] = np.inf
                    continue
                distance[return_number, sequence, channel] = int(echoes[echo, ECHO_CODE])
                reported_m[return_number, sequence, channel] = echoes[echo, ECHO_RANGE]
                byte, marks = brightness(response, echoes[echo, ECHO_ENERGY], echoes[echo, ECHO_RANGE], echoes[echo, ECHO_RETRO])
                reflectivity[return_number, sequence, channel] = byte
                flags[return_number, sequence, channel] = blocked | marks
    _decimate(plan, first_sequence, sequences, workspace)
