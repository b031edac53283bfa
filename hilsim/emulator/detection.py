"""Third stage, the receiver: hits → the returns that the sensor reports."""

import math

import numpy as np

from hilsim.compilation.jit import constant, inlined_kernel, kernel, stage_kernel
from hilsim.compilation.lanes import WIDTH, bits_of, load_lanes, store_lanes
from hilsim.emulator.overlay import OverlayRule
from hilsim.emulator.plan import BeamRow, Family, LidarPlan
from hilsim.emulator.workspace import SOLE_ROWS, Workspace
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
    EchoChoice,
    Hits,
    chosen_echo,
    group_echoes,
    is_detected,
    sole_echo,
)
from hilsim.sensor.head import head_reading_cdeg
from hilsim.sensor.mirror import image_point
from hilsim.sensor.optics.false_alarms import alarm_rate, false_alarm, has_false_alarms, spurious_return
from hilsim.sensor.optics.weather import extinction, weather_echoes
from hilsim.sensor.optics.window import window_transmission
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
from hilsim.sensor.sole_echoes import detected, diffuse_bytes, distance_codes
from hilsim.units import CDEG_PER_RAD

_CEPTON = constant(Family.CEPTON)
_SYNTHETIC_ONLY = constant(OverlayRule.SYNTHETIC_ONLY)
_BLOCKED, _UNFLAGGED = constant(ReturnFlag.BLOCKED), constant(0)
_LAST_BESIDE_STRONGEST = constant(EchoChoice.LAST_BESIDE_STRONGEST)
_RANGE, _ENERGY, _RETRO, _CODE, _BYTE = 0, 1, 2, 3, 4
_FOUND, _IS_ALARM, _FLAGS = 0, 1, 2
_SETTLED, _PASSING, _DIFFUSE = 0, 1, 2
_BIAS, _BEAM_ROWS = constant(BeamRow.BIAS), constant(len(BeamRow))
_NO_LANES = constant(0)
_DEG_PER_RAD = 180.0 / math.pi
_CDEG_PER_NS_PER_CRPM = 6e-9


@inlined_kernel
def _mark(hits: Hits, firing: int, at: int, ray: int) -> None:
    """Mark a hit as made by no surface."""
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
def _add_false_alarm(plan: LidarPlan, workspace: Workspace, firing: int, channel: int, index: int) -> bool:
    """Let noise be taken for an echo, now and then; returns whether it was. A spurious return replaces whatever the firing met."""
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


@kernel
def _sum_up(plan: LidarPlan, workspace: Workspace) -> None:
    """Add up what each firing met, after weather, window and false alarms, and mark the firings whose hits all make one echo."""
    hits, response, sequence_index = workspace.hits, plan.response, workspace.sequence
    sequences = sequence_index.size
    hit_count, value, what, azimuth_cdeg = hits.hit_count, hits.value, hits.what, workspace.returns.azimuth_cdeg
    sums, marks, bits = workspace.sole.sums, workspace.sole.marks, workspace.sole.bits
    channels, groups = plan.baseline.size, workspace.noise.shape[1] // WIDTH
    is_weak, has_alarms, is_plain = _takes_light(plan), has_false_alarms(plan.false_alarms), plan.overlay.rule == _SYNTHETIC_ONLY
    is_swept = plan.family == _CEPTON
    for sequence in range(sequence_index.size):
        index = sequence_index[sequence]
        if not is_swept:
            azimuth_cdeg[sequence] = head_reading_cdeg(plan.head, plan.encoder, index * plan.sequence_ns, index)
        for group in range(groups):
            of_group, among = sequence * groups + group, _NO_LANES
            for channel in range(group * WIDTH, min(group * WIDTH + WIDTH, channels)):
                firing, lane = channel * sequences + sequence, channel - group * WIDTH
                found, blocked, moment, energy, retro = 0, _UNFLAGGED, 0.0, 0.0, 0.0
                if is_weak:
                    through = _window_share(plan, azimuth_cdeg[sequence], channel, index)
                    blocked = _BLOCKED if through <= 0.0 else _UNFLAGGED
                    _weaken(plan, hits, firing, through, channel, index)
                is_alarm = has_alarms and _add_false_alarm(plan, workspace, firing, channel, index)
                if hit_count[firing] > 0 and not is_dropped(response, channel, index):
                    found, moment, energy, retro = sole_echo(hit_count[firing], value, what, firing, response.merge_distance_m)
                row = of_group * SOLE_ROWS
                sums[row + _RANGE, lane], sums[row + _ENERGY, lane], sums[row + _RETRO, lane] = moment, energy, retro
                marks[firing, _FOUND], marks[firing, _IS_ALARM], marks[firing, _FLAGS] = found, is_alarm, blocked
                if found == 1 and is_plain and not is_alarm:
                    among |= 1 << lane
            bits[of_group, _SETTLED] = among


@kernel
def _judge(plan: LidarPlan, workspace: Workspace) -> None:
    """Draw the range errors of all firings' first echoes, and choose what is reported of those that have no other: sixteen channels at a time."""
    response, beams, noise, sequence_index = plan.response, plan.beam_lanes, workspace.noise.reshape(-1, WIDTH), workspace.sequence
    sums, bits, groups = workspace.sole.sums, workspace.sole.bits, workspace.noise.shape[1] // WIDTH
    for sequence in range(sequence_index.size):
        index = sequence_index[sequence]
        for group in range(groups):
            of_group = sequence * groups + group
            row, among = of_group * SOLE_ROWS, bits[of_group, _SETTLED]
            error = draw_range_noise(response, group * WIDTH, index)
            store_lanes(noise, of_group, error)
            if among == 0:
                continue
            energy = load_lanes(sums, row + _ENERGY)
            range_m, retro = load_lanes(sums, row + _RANGE) / energy, load_lanes(sums, row + _RETRO) / energy
            passing, undecided = detected(response, among, energy, group * WIDTH, index)
            diffuse, is_other = diffuse_bytes(response, range_m, energy, retro)
            store_lanes(sums, row + _RANGE, range_m)
            store_lanes(sums, row + _RETRO, retro)
            bias_m = load_lanes(beams, group * _BEAM_ROWS + _BIAS)
            store_lanes(sums, row + _CODE, distance_codes(response, range_m, energy, bias_m, error))
            store_lanes(sums, row + _BYTE, diffuse)
            bits[of_group, _SETTLED], bits[of_group, _PASSING] = among & ~undecided, passing
            bits[of_group, _DIFFUSE] = among & ~undecided & ~bits_of(is_other)


@inlined_kernel
def _decimate(plan: LidarPlan, workspace: Workspace) -> None:
    """Let a decimated sensor keep back the firings that it does not report."""
    if not plan.is_decimated:
        return
    returns, sequence_index = workspace.returns, workspace.sequence
    sequences, begin = sequence_index.size, 0
    for stop in range(1, sequences + 1):
        if stop == sequences or sequence_index[stop] != sequence_index[stop - 1] + 1:
            reported_firings(plan.decimation, plan.head, sequence_index[begin], stop - begin, workspace.reported[:, begin:stop])
            begin = stop
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


@kernel
def _report(plan: LidarPlan, workspace: Workspace) -> None:
    """Write what each firing reports: of those with one echo what was judged, of others each echo judged by itself."""
    hits, response, returns, choice, sequence_index = workspace.hits, plan.response, workspace.returns, plan.choice, workspace.sequence
    sequences = sequence_index.size
    hit_count, value, what, echoes, kept = hits.hit_count, hits.value, hits.what, workspace.echoes, workspace.kept
    distance, reflectivity, flags, reported_echo, reported_m = returns.distance, returns.reflectivity, returns.flags, returns.echo, returns.range_m
    sums, marks, bits, noise = workspace.sole.sums, workspace.sole.marks, workspace.sole.bits, workspace.noise
    baseline, bias_m, groups = plan.baseline, plan.bias_m, noise.shape[1] // WIDTH
    has_backdrop = plan.overlay.rule != _SYNTHETIC_ONLY and not _takes_light(plan)
    for sequence in range(sequences):
        for channel in range(baseline.size):
            firing, of_group, lane = channel * sequences + sequence, sequence * groups + channel // WIDTH, channel % WIDTH
            bit, row, blocked = 1 << lane, of_group * SOLE_ROWS, marks[firing, _FLAGS]
            is_settled, is_diffuse = bits[of_group, _SETTLED] & bit != 0, False
            count, kept[0] = 0, 0
            if is_settled:
                echoes[0, ECHO_RANGE], echoes[0, ECHO_CODE] = sums[row + _RANGE, lane], sums[row + _CODE, lane]
                echoes[0, ECHO_ENERGY], echoes[0, ECHO_RETRO] = sums[row + _ENERGY, lane], sums[row + _RETRO, lane]
                is_diffuse = bits[of_group, _DIFFUSE] & bit != 0
                count = 1 if bits[of_group, _PASSING] & bit != 0 and sums[row + _CODE, lane] > 0.0 else 0
            elif marks[firing, _FOUND] > 0:
                found = group_echoes(hit_count[firing], value, what, firing, response.merge_distance_m, echoes)
                certain = _echo_of(hits, firing, FALSE_ALARM_RAY) if marks[firing, _IS_ALARM] != 0 else -1
                recorded = _background_echo(hits, firing) if has_backdrop else -1
                index = sequence_index[sequence]
                for echo in range(found):
                    is_certain = echo in (certain, recorded)
                    range_m, energy = echoes[echo, ECHO_RANGE], echoes[echo, ECHO_ENERGY]
                    code = _distance_of(response, energy, range_m, is_certain, channel, index, echo, bias_m[channel], noise[sequence, channel])
                    if code > 0:
                        echoes[echo, ECHO_CODE] = code
                        kept[count] = echo
                        count += 1
            for return_number in range(choice.size):
                is_only = count == 1 and choice[return_number] != _LAST_BESIDE_STRONGEST
                echo = int(kept[0]) if is_only else chosen_echo(echoes, kept, count, choice[return_number])
                reported_echo[return_number, sequence, channel] = echo
                if echo < 0:
                    distance[return_number, sequence, channel] = 0
                    reflectivity[return_number, sequence, channel] = baseline[channel]
                    flags[return_number, sequence, channel] = blocked
                    reported_m[return_number, sequence, channel] = np.inf
                    continue
                distance[return_number, sequence, channel] = int(echoes[echo, ECHO_CODE])
                reported_m[return_number, sequence, channel] = echoes[echo, ECHO_RANGE]
                if is_diffuse:
                    reflectivity[return_number, sequence, channel] = int(sums[row + _BYTE, lane])
                    flags[return_number, sequence, channel] = blocked
                else:
                    byte, marked = brightness(response, echoes[echo, ECHO_ENERGY], echoes[echo, ECHO_RANGE], echoes[echo, ECHO_RETRO])
                    reflectivity[return_number, sequence, channel] = byte
                    flags[return_number, sequence, channel] = blocked | marked


@stage_kernel
def respond(plan: LidarPlan, workspace: Workspace) -> None:
    """Turn what firings met into what the sensor reports.

    Args:
        plan: The lidar.
        workspace: ``sequence`` is given, ``hits`` are sorted and grouped, ``returns`` written.
    """
    _sum_up(plan, workspace)
    _judge(plan, workspace)
    _report(plan, workspace)
    _decimate(plan, workspace)
