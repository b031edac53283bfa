"""Third stage, the receiver: hits → the returns that the sensor reports."""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import borrowing_kernel, constant, inlined_kernel, stage_kernel
from hilsim.compilation.lanes import WIDTH, bits_of, first_bit, load_lanes, store_lanes
from hilsim.emulator.breaking.head_and_clock import slipped_turns
from hilsim.emulator.breaking.optics import add_fault_echo, falsify, fault_share
from hilsim.emulator.families.aiming import looks_at
from hilsim.emulator.overlay import OverlayRule
from hilsim.emulator.plan import BeamRow, LidarPlan, Rare
from hilsim.emulator.reception.interference import add_interference, turns_of_sequence
from hilsim.emulator.reception.light import add_false_alarm, takes_light, weaken
from hilsim.emulator.workspace import SOLE_ROWS, SUMMED, EmulatorCount, Workspace
from hilsim.sensor.decimation import reported_firings, withhold_firings
from hilsim.sensor.echoes import (
    BACKGROUND_ALONE,
    ECHO,
    ECHO_CODE,
    ECHO_DRAWS,
    ECHO_ENERGY,
    ECHO_RANGE,
    ECHO_RETRO,
    FALSE_ALARM_RAY,
    INSTANCE,
    RAY,
    EchoChoice,
    Hits,
    chosen_echo,
    group_echoes,
    is_detected,
    sole_echo,
)
from hilsim.sensor.head import head_reading_cdeg
from hilsim.sensor.mirror import Mirror
from hilsim.sensor.optics.false_alarms import has_false_alarms
from hilsim.sensor.optics.window import window_transmission
from hilsim.sensor.response import (
    CHANNELS_PER_STREAM,
    Response,
    ReturnFlag,
    brightness,
    byte_noise,
    distance_code,
    draw_noise,
    is_dropped,
    noise_sd_m,
    range_noise,
)
from hilsim.sensor.signal.empty import own_empty_byte
from hilsim.sensor.signal.losses import (
    empty_byte,
    empty_draws,
    has_losses,
    is_dropped_out,
    is_lost,
    is_lost_at_flaw,
    lambertian_share,
    loss_draws,
    missing_side,
)
from hilsim.sensor.signal.noise import noisy_byte, noisy_bytes, placed_error, placed_errors, ranged_percents, shifted_code
from hilsim.sensor.signal.signal import RANGES, RANGES_PER_M, Signal
from hilsim.sensor.sole_echoes import detected, diffuse_bytes, distance_codes
from hilsim.sensor.unit.warm_up import warm_up_m

_SYNTHETIC_ONLY = constant(OverlayRule.SYNTHETIC_ONLY)
_BLOCKED, _UNFLAGGED = constant(ReturnFlag.BLOCKED), constant(0)
_SOLE_TWICE = constant(EchoChoice.STRONGEST_BESIDE_LAST)
"""Choices up to this one report a sole echo, too, whichever return they are of."""
_RANGE, _ENERGY, _RETRO, _CODE, _BYTE, _HALF, _DRAW = 0, 1, 2, 3, 4, 5, 7
_SHARE = _BYTE  # until the byte is known
_FOUND, _IS_ALARM, _FLAGS, _IS_LOST = 0, 1, 2, 3
_SETTLED, _PASSING, _DIFFUSE = 0, 1, 2
_BIAS, _BEAM_ROWS = constant(BeamRow.BIAS), constant(len(BeamRow))
_GAIN = constant(BeamRow.GAIN)
_NO_LANES = constant(0)
_FAULTED = constant(EmulatorCount.FAULTED)


@borrowing_kernel
def _echo_of(hits: Hits, firing: int, ray: int) -> int:
    """The echo that holds a firing's hit of some ray; -1 where there is none."""
    for at in range(hits.hit_count[firing]):
        if hits.what[firing, at, RAY] == ray:
            return int(hits.what[firing, at, ECHO])
    return -1


@borrowing_kernel
def _background_echo(hits: Hits, firing: int) -> int:
    """The echo that holds the captured background; -1 where there is none."""
    for at in range(hits.hit_count[firing]):
        if hits.what[firing, at, INSTANCE] <= BACKGROUND_ALONE:
            return int(hits.what[firing, at, ECHO])
    return -1


@borrowing_kernel
def read_encoder(mirror: Mirror | None, plan: LidarPlan, sequence_index: npt.NDArray[np.int64], azimuth_cdeg: npt.NDArray[np.int64]) -> None:
    """Write the azimuth that the head's encoder reads at the start of each firing sequence; a mirror has no encoder."""
    if mirror is None:
        for sequence in range(sequence_index.size):
            index = sequence_index[sequence]
            slipped = slipped_turns(plan.rare, plan, index * plan.sequence_ns)
            azimuth_cdeg[sequence] = head_reading_cdeg(plan.head, plan.encoder, index * plan.sequence_ns, index, slipped)


@borrowing_kernel
def _sum_up(rare: Rare | None, plan: LidarPlan, workspace: Workspace) -> None:  # noqa: C901, PLR0912, PLR0915 - one loop over firings: a call with arrays costs as much as the rest of a firing
    """Add up what each firing met, after weather, window and false alarms, and mark the firings whose hits all make one echo."""
    hits, response, sequence_index = workspace.hits, plan.response, workspace.sequence
    sequences, first_stream = sequence_index.size, response.stream * CHANNELS_PER_STREAM
    hit_count, value, what, flaw, azimuth_cdeg = hits.hit_count, hits.value, hits.what, hits.flaw, workspace.returns.azimuth_cdeg
    sums, marks, bits = workspace.sole.sums, workspace.sole.marks, workspace.sole.bits
    channels, groups, sub_rays = plan.baseline.size, workspace.noise.shape[1] // WIDTH, plan.beam.share.size
    is_weak = has_alarms = has_pulses = is_disturbed = is_alarm = False
    is_plain, turns, signal, receiver, drop_out = True, (0.0, 0.0), plan.signal, plan.beam.receiver, plan.drop_out_ratio
    if rare is not None:
        is_weak, has_alarms, is_plain = takes_light(rare), has_false_alarms(plan.false_alarms), rare.overlay.rule == _SYNTHETIC_ONLY
        has_pulses = rare.interference.sources.size > 0
    is_lossy = is_plain and has_losses(signal, receiver)  # a captured background has its own losses
    for sequence in range(sequence_index.size):
        index = sequence_index[sequence]
        if rare is not None and has_pulses:
            turns = turns_of_sequence(plan, index)
        for group in range(groups):
            of_group = sequence * groups + group
            row, summed = of_group * SOLE_ROWS, bits[of_group, SUMMED]
            reported = summed if response.drop_out_ratio <= 0.0 else _NO_LANES
            if is_lossy:
                draws = loss_draws(response.seed, first_stream + group * WIDTH, index)
                store_lanes(sums, row + _CODE, draws)
                reported &= ~bits_of(draws < signal.loss_ratio)
            among = reported
            for channel in range(group * WIDTH, min(group * WIDTH + WIDTH, channels)):
                firing, lane = channel * sequences + sequence, channel - group * WIDTH
                if reported >> lane & 1 != 0:
                    marks[firing, _FOUND], marks[firing, _IS_ALARM], marks[firing, _FLAGS], marks[firing, _IS_LOST] = 1, 0, _UNFLAGGED, 0
                    continue
                found, blocked, moment, energy, retro, through = 0, _UNFLAGGED, 0.0, 0.0, 0.0, 1.0
                is_summed = summed >> lane & 1 != 0
                if rare is not None:
                    if is_weak or rare.faults.adds:
                        rig_ns, stream = workspace.rays.time_ns[firing * sub_rays], first_stream + channel
                        ahead_cdeg, ahead_deg = looks_at(plan.own, plan, azimuth_cdeg[sequence], channel, index)
                    if is_weak:
                        through = window_transmission(rare.window, ahead_cdeg, ahead_deg)
                        if rare.faults.dims:
                            left = fault_share(rare.faults, channel, ahead_cdeg, ahead_deg, stream, index, rig_ns)
                            through, workspace.counts[_FAULTED] = through * left, workspace.counts[_FAULTED] + (1 if left < 1.0 else 0)
                        blocked = _BLOCKED if through <= 0.0 else _UNFLAGGED
                        weaken(rare, plan, hits, firing, through, channel, index)
                    is_disturbed = has_pulses and add_interference(rare.interference, plan, hits, firing, channel, index, through, turns)
                    is_alarm = has_alarms and add_false_alarm(plan, workspace, firing, channel, index)
                    if rare.faults.adds:
                        is_added = add_fault_echo(rare.faults, response, workspace, firing, channel, ahead_cdeg, ahead_deg, index, rig_ns)
                        is_alarm, workspace.counts[_FAULTED] = is_alarm or is_added, workspace.counts[_FAULTED] + (1 if is_added else 0)
                lost, count = False, hit_count[firing]
                if count > 0 and not is_dropped(response, channel, index):
                    is_flawed = flaw[firing] > 0.0 and not is_alarm
                    lost = is_flawed and is_lost_at_flaw(flaw[firing], response.seed, first_stream + channel, index, count, value, firing)
                    if is_lossy and not lost and not is_alarm and not is_disturbed:
                        draw, stream = sums[row + _CODE, lane], first_stream + channel
                        if draw < signal.loss_ratio:  # few draws are: what the others met is not summed up for it
                            share = sums[row + _SHARE, lane] if is_summed else lambertian_share(count, value, firing)
                            lost = is_dropped_out(drop_out, draw, share)
                        if not lost and not is_summed:
                            lost = is_lost(
                                signal, receiver, response.merge_distance_m, draw, response.seed, stream, index, count, value, what, firing
                            )
                    if is_summed:
                        found, moment, energy, retro = 1, sums[row + _RANGE, lane], sums[row + _ENERGY, lane], sums[row + _RETRO, lane]
                    else:
                        found, moment, energy, retro = sole_echo(count, value, what, firing, response.merge_distance_m)
                    found = 0 if lost else found
                sums[row + _RANGE, lane], sums[row + _ENERGY, lane], sums[row + _RETRO, lane] = moment, energy, retro
                marks[firing, _FOUND], marks[firing, _IS_ALARM], marks[firing, _FLAGS], marks[firing, _IS_LOST] = found, is_alarm, blocked, lost
                if found == 1 and is_plain and not is_alarm:
                    among |= 1 << lane
            bits[of_group, _SETTLED] = among


@borrowing_kernel
def _judge(plan: LidarPlan, workspace: Workspace) -> None:
    """Draw the errors of all firings' first echoes, and choose what is reported of those that have no other: sixteen channels at a time."""
    response, beams, sequence_index, signal = plan.response, plan.beam_lanes, workspace.sequence, plan.signal
    noise, byte_errors = workspace.noise.reshape(-1, WIDTH), workspace.byte_noise.reshape(-1, WIDTH)
    sums, bits, groups = workspace.sole.sums, workspace.sole.bits, workspace.noise.shape[1] // WIDTH
    ripple, period = plan.ripple_lanes, plan.ripple_lanes.shape[0] // groups
    own_noise, reported, range_gain, place_noise = plan.lasers.byte_noise, plan.lasers.reported, plan.lasers.range_gain, plan.lasers.place_noise
    for sequence in range(sequence_index.size):
        index = sequence_index[sequence]
        warming_m = warm_up_m(plan.warm_up, index * plan.sequence_ns)
        for group in range(groups):
            of_group = sequence * groups + group
            row, among = of_group * SOLE_ROWS, bits[of_group, _SETTLED]
            error, byte_error = draw_noise(response, group * WIDTH, index)
            store_lanes(noise, of_group, error)
            store_lanes(byte_errors, of_group, byte_error)
            if among == 0:
                continue
            energy = load_lanes(sums, row + _ENERGY)
            range_m, retro = load_lanes(sums, row + _RANGE) / energy, load_lanes(sums, row + _RETRO) / energy
            passing, undecided = detected(response, among, energy, group * WIDTH, index)
            diffuse, is_other = diffuse_bytes(response, range_m, energy, retro)
            half = diffuse * 2.0
            if signal.has_bytes:
                percent = energy * range_m * range_m * 100.0
                if signal.has_range_gain:
                    percent = ranged_percents(percent, range_m, range_gain)
                if place_noise.shape[0] > 1:
                    byte_error = placed_errors(byte_error, range_m, place_noise, group * WIDTH)
                gain = load_lanes(beams, group * _BEAM_ROWS + _GAIN)
                diffuse, half = noisy_bytes(percent, gain, own_noise, reported, group * WIDTH, byte_error, response.diffuse_max)
            store_lanes(sums, row + _RANGE, range_m)
            store_lanes(sums, row + _RETRO, retro)
            bias_m = load_lanes(beams, group * _BEAM_ROWS + _BIAS) + load_lanes(ripple, index % period * groups + group) + warming_m
            store_lanes(sums, row + _CODE, distance_codes(response, range_m, energy, bias_m, error))
            store_lanes(sums, row + _BYTE, diffuse)
            store_lanes(sums, row + _HALF, half)
            bits[of_group, _SETTLED], bits[of_group, _PASSING] = among & ~undecided, passing
            bits[of_group, _DIFFUSE] = among & ~undecided & ~bits_of(is_other)


@borrowing_kernel
def _decimate(rare: Rare | None, plan: LidarPlan, workspace: Workspace) -> None:
    """Let a decimated sensor keep back the firings that it does not report."""
    if rare is None or not rare.is_decimated:
        return
    returns, sequence_index = workspace.returns, workspace.sequence
    sequences, begin = sequence_index.size, 0
    for stop in range(1, sequences + 1):
        if stop == sequences or sequence_index[stop] != sequence_index[stop - 1] + 1:
            reported_firings(rare.decimation, plan.head, sequence_index[begin], stop - begin, workspace.reported[:, begin:stop])
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
    ``bias_m`` is the channel's, with its ripple, ``first_noise`` the first echo's ``range_noise``.
    """
    if not is_certain:
        stream = response.stream * CHANNELS_PER_STREAM + channel
        draw = index * ECHO_DRAWS + min(echo, ECHO_DRAWS - 1)
        if not is_detected(energy, response.threshold_energy, response.noise_ratio, response.seed, stream, draw):
            return 0
    error = first_noise if echo == 0 else range_noise(response, channel, index, echo)
    return distance_code(response, range_m + bias_m + error * noise_sd_m(response, energy, range_m))


@inlined_kernel
def _brightness_of(
    response: Response,
    signal: Signal,
    echoes: npt.NDArray[np.float64],
    echo: int,
    gain: float,
    own_noise: npt.NDArray[np.float32],
    reported: npt.NDArray[np.int32],
    range_gain: npt.NDArray[np.float32],
    place_noise: npt.NDArray[np.float32],
    channel: int,
    error: float,
) -> tuple[int, int, int]:
    """Reflectivity byte of an echo, its column of ``LaserSignals.correction``, and its ``ReturnFlag``."""
    energy, range_m = echoes[echo, ECHO_ENERGY], echoes[echo, ECHO_RANGE]
    byte, marked = brightness(response, energy, range_m, echoes[echo, ECHO_RETRO])
    half = 2 * byte
    if signal.has_bytes:
        percent = 100.0 * energy * range_m * range_m * gain
        if signal.has_range_gain:
            percent *= range_gain[int(min(range_m * RANGES_PER_M, RANGES - 1.0)), 0]
        if place_noise.shape[0] > 1:
            error = placed_error(error, range_m, place_noise, channel)
        byte, half = noisy_byte(byte, percent, own_noise, reported, channel, error, response.diffuse_max)
    return byte, half, marked


@borrowing_kernel
def _report(rare: Rare | None, plan: LidarPlan, workspace: Workspace) -> None:  # noqa: C901, PLR0912, PLR0915 - one loop over firings: what it looks into is taken out of it once
    """Write what each firing reports: of those with one echo what was judged, of others each echo judged by itself."""
    hits, response, returns, choice, sequence_index = workspace.hits, plan.response, workspace.returns, plan.choice, workspace.sequence
    sequences = sequence_index.size
    hit_count, value, what, echoes, kept = hits.hit_count, hits.value, hits.what, workspace.echoes, workspace.kept
    distance, reflectivity, flags = returns.distance.reshape(-1), returns.reflectivity.reshape(-1), returns.flags.reshape(-1)
    reported_echo, reported_m = returns.echo.reshape(-1), returns.range_m.reshape(-1)
    sums, marks, bits, noise = workspace.sole.sums, workspace.sole.marks, workspace.sole.bits, workspace.noise
    baseline, bias_m, groups, byte_errors = plan.baseline, plan.bias_m, noise.shape[1] // WIDTH, workspace.byte_noise
    signal, corrected, reported_energy = plan.signal, returns.correction.reshape(-1), returns.energy.reshape(-1)
    is_pair, ripple, period = choice.size > 1, plan.ripple_lanes, plan.ripple_lanes.shape[0] // groups
    gain, empty_step, correction = plan.lasers.gain, plan.lasers.empty_step, plan.lasers.correction
    own_noise, own_bytes, range_gain, place_noise = plan.lasers.byte_noise, plan.lasers.reported, plan.lasers.range_gain, plan.lasers.place_noise
    has_empty_bytes, empty_bytes = plan.lasers.has_empty_bytes, plan.lasers.empty_bytes
    is_plain, has_backdrop = True, False
    if rare is not None:
        is_plain = rare.overlay.rule == _SYNTHETIC_ONLY
        has_backdrop = not is_plain and not takes_light(rare)
    reports_sole = not is_pair or signal.one_sided_ratio <= 0.0
    for return_number in range(choice.size):
        reports_sole = reports_sole and choice[return_number] <= _SOLE_TWICE
    draws_bytes = signal.empty_byte_ratio > 0.0 or signal.lost_byte_ratio > 0.0
    for channel in range(baseline.size):
        draws_bytes = draws_bytes or has_empty_bytes[channel]
    first_stream = response.stream * CHANNELS_PER_STREAM
    for group in range(sequences * groups):
        sequence, first, row = group // groups, group % groups * WIDTH, group * SOLE_ROWS
        index = sequence_index[sequence]
        warming_m, left = warm_up_m(plan.warm_up, index * plan.sequence_ns), (1 << min(baseline.size - first, WIDTH)) - 1
        settled, passing, diffuse = bits[group, _SETTLED], bits[group, _PASSING], bits[group, _DIFFUSE]
        usual = settled & passing & diffuse & bits_of(load_lanes(sums, row + _CODE) > 0.0) if reports_sole else _NO_LANES
        while usual != 0:
            lane = first_bit(usual)
            usual, left, channel = usual & usual - 1, left & ~(1 << lane), first + lane
            code, column = int(sums[row + _CODE, lane]), int(sums[row + _HALF, lane])
            shifted = shifted_code(signal, code, int(correction[channel, column]))
            for return_number in range(choice.size):
                at = (return_number * sequences + sequence) * baseline.size + channel
                reported_echo[at] = 0
                reported_m[at] = sums[row + _RANGE, lane]
                reported_energy[at] = sums[row + _ENERGY, lane]
                corrected[at] = shifted - code
                distance[at] = shifted
                reflectivity[at] = int(sums[row + _BYTE, lane])
                flags[at] = marks[channel * sequences + sequence, _FLAGS]
        if draws_bytes and left != 0:
            store_lanes(sums, row + _DRAW, empty_draws(response.seed, first_stream + first, index))
        while left != 0:
            lane = first_bit(left)
            left, channel, bit = left & left - 1, first + lane, 1 << lane
            firing, stream = channel * sequences + sequence, first_stream + channel
            blocked = marks[firing, _FLAGS]
            is_settled, is_diffuse = settled & bit != 0, False
            count, kept[0] = 0, 0
            is_sole = marks[firing, _FOUND] == 1 and marks[firing, _IS_ALARM] == 0 and is_plain
            if is_sole:
                echoes[0, ECHO_RANGE], echoes[0, ECHO_CODE] = sums[row + _RANGE, lane], sums[row + _CODE, lane]
                echoes[0, ECHO_ENERGY], echoes[0, ECHO_RETRO] = sums[row + _ENERGY, lane], sums[row + _RETRO, lane]
            if is_settled:
                is_diffuse = diffuse & bit != 0
                count = 1 if passing & bit != 0 and sums[row + _CODE, lane] > 0.0 else 0
            elif marks[firing, _FOUND] > 0:
                found = 1 if is_sole else group_echoes(hit_count[firing], value, what, firing, response.merge_distance_m, echoes)
                certain = _echo_of(hits, firing, FALSE_ALARM_RAY) if marks[firing, _IS_ALARM] != 0 else -1
                recorded = _background_echo(hits, firing) if has_backdrop else -1
                error_m = bias_m[channel] + ripple[index % period * groups + first // WIDTH, lane] + warming_m
                for echo in range(found):
                    is_certain = echo in (certain, recorded)
                    range_m, energy = echoes[echo, ECHO_RANGE], echoes[echo, ECHO_ENERGY]
                    code = _distance_of(response, energy, range_m, is_certain, channel, index, echo, error_m, noise[sequence, channel])
                    if code > 0:
                        echoes[echo, ECHO_CODE] = code
                        kept[count] = echo
                        count += 1
            missing = missing_side(signal, response.seed, stream, index) if is_pair and count == 1 else -1
            for return_number in range(choice.size):
                at = (return_number * sequences + sequence) * baseline.size + channel
                echo = -1
                if count == 1 and choice[return_number] <= _SOLE_TWICE and return_number != missing:
                    echo = int(kept[0])
                elif count > 0 and return_number != missing:
                    echo = chosen_echo(echoes, kept, count, choice[return_number])
                reported_echo[at] = echo
                corrected[at] = 0
                if echo < 0:
                    is_lost_firing = marks[firing, _IS_LOST] != 0
                    if has_empty_bytes[channel]:
                        byte = own_empty_byte(empty_bytes, channel, sums[row + _DRAW, lane])
                    else:
                        byte = empty_byte(signal, int(baseline[channel]), empty_step[channel], is_lost_firing, sums[row + _DRAW, lane])
                    distance[at] = 0
                    reflectivity[at] = byte
                    flags[at] = blocked
                    reported_m[at] = np.inf
                    reported_energy[at] = 0.0
                    continue
                reported_m[at] = echoes[echo, ECHO_RANGE]
                reported_energy[at] = echoes[echo, ECHO_ENERGY]
                if is_diffuse:
                    byte, half, marked = int(sums[row + _BYTE, lane]), int(sums[row + _HALF, lane]), _UNFLAGGED
                else:
                    byte_error = byte_errors[sequence, channel] if echo == 0 else byte_noise(response, channel, index, echo)
                    byte, half, marked = _brightness_of(
                        response, signal, echoes, echo, gain[channel], own_noise, own_bytes, range_gain, place_noise, channel, byte_error
                    )
                code = int(echoes[echo, ECHO_CODE])
                shifted = shifted_code(signal, code, int(correction[channel, half]))
                corrected[at] = shifted - code
                distance[at] = shifted
                reflectivity[at] = byte
                flags[at] = blocked | marked


@stage_kernel
def respond(plan: LidarPlan, workspace: Workspace) -> None:
    """Turn what firings met into what the sensor reports.

    Args:
        plan: The lidar.
        workspace: ``sequence`` is given, ``hits`` are sorted and grouped, ``returns`` written.
    """
    read_encoder(plan.mirror, plan, workspace.sequence, workspace.returns.azimuth_cdeg)
    _sum_up(plan.rare, plan, workspace)
    _judge(plan, workspace)
    _report(plan.rare, plan, workspace)
    falsify(plan.rare, plan, workspace)
    _decimate(plan.rare, plan, workspace)
