"""Response to firings with a single echo, sixteen channels at a time: most firings hit one surface.

The formulas are those of ``sensor.echoes`` and ``sensor.response``, operation by operation, so the results are bit-identical (tested). Where a formula
requires an exponential, it is bounded instead, and echoes within the bounds are left to those modules.
"""

import math

import numpy as np

from hilsim.compilation.jit import constant, kernel
from hilsim.compilation.lanes import Doubles, Mask, bits_of, floor_lanes, greater_lanes, lane_numbers, magnitudes, mask_of, roots, select, spread
from hilsim.rng import Purpose, uniforms
from hilsim.sensor.echoes import CERTAIN_SIGMAS, ECHO_DRAWS
from hilsim.sensor.response import CHANNELS_PER_STREAM, LINEAR_TOP, Response

_DETECTION = constant(Purpose.DETECTION)
_ROOT_HALF = math.sqrt(0.5)
_DOUBT = 1e-6
"""Bound above the error of ``_passing_chances``."""
_NONE = constant(0)


@kernel
def _passing_chances(sigmas: Doubles) -> Doubles:
    """Probability that a standard normal number is below each, within 5e-7 (Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.28: 3e-7 of erf)."""
    x = magnitudes(sigmas) * _ROOT_HALF
    series = x * 0.0000430638 + 0.0002765672
    series = x * series + 0.0001520143
    series = x * series + 0.0092705272
    series = x * series + 0.0422820123
    series = x * series + 0.0705230784
    series = x * series + 1.0
    square = series * series
    fourth = square * square
    eighth = fourth * fourth
    beyond = 0.5 / (eighth * eighth)
    return select(sigmas >= 0.0, 1.0 - beyond, beyond)


@kernel
def detected(response: Response, among: int, energy: Doubles, first_channel: int, sequence: int) -> tuple[int, int]:
    """``is_detected`` of the first echoes of sixteen channels.

    Args:
        response: The sensor's response.
        among: Bit mask of the channels to decide.
        energy: Energies of the echoes.
        first_channel: Number of the first channel.
        sequence: Index of the firing sequence.

    Returns:
        Bit mask of the echoes that pass the threshold, and bit mask of those that are not decided here.
    """
    if response.noise_ratio <= 0.0 or response.threshold_energy <= 0.0:
        return bits_of(energy >= response.threshold_energy) & among, _NONE
    sigmas = (energy / response.threshold_energy - 1.0) * response.noise_ratio
    passing = bits_of(sigmas > CERTAIN_SIGMAS) & among
    undecided = _NONE
    if passing != among:
        chance = _passing_chances(sigmas)
        streams = lane_numbers() + np.uint64(response.stream * CHANNELS_PER_STREAM + first_channel)
        draw = uniforms(response.seed, streams, sequence * ECHO_DRAWS, _DETECTION)
        undecided = bits_of(magnitudes(draw - chance) <= _DOUBT) & among & ~passing
        passing |= bits_of(draw < chance) & among & ~undecided
    return passing, undecided


@kernel
def distance_codes(response: Response, range_m: Doubles, energy: Doubles, bias_m: Doubles, error: Doubles) -> Doubles:
    """Distance codes of the first echoes of sixteen channels, 0 outside the limits: ``distance_code`` with ``noise_sd_m``.

    Args:
        response: The sensor's response.
        range_m: Ranges of the echoes.
        energy: Energies of the echoes.
        bias_m: Range errors of the lasers.
        error: ``range_noise`` of the channels.
    """
    sd_m = spread(response.noise_m)
    if response.weak_noise_m > 0.0:
        percent = energy * 100.0 * range_m * range_m
        far = greater_lanes(1.0, range_m / response.noise_onset_m)
        sd_m = roots((spread(response.weak_noise_m * response.weak_noise_m) / (percent + 1.0)) * far * far + response.noise_m * response.noise_m)
    code = floor_lanes((range_m + bias_m + error * sd_m) / (response.unit_m * response.grid) + 0.5) * response.grid
    reported_m = code * response.unit_m
    is_within = mask_of(
        bits_of(reported_m >= response.range_min_m) & bits_of(reported_m <= response.range_max_m) & bits_of(code <= float(response.code_max))
    )
    return select(is_within, code, 0.0)


@kernel
def diffuse_bytes(response: Response, range_m: Doubles, energy: Doubles, retro: Doubles) -> tuple[Doubles, Mask]:
    """Reflectivity bytes of sixteen echoes as in ``brightness``, and mask of those that require ``brightness``: retro-reflectors, brighter than white, flagged."""
    share = energy * range_m * range_m
    byte = floor_lanes(share * 100.0 + 0.5)
    if response.has_linear_scale:
        return byte, (share > LINEAR_TOP) | (energy > response.saturation_energy) | (energy < response.doubt_energy)
    limit = float(response.diffuse_max)
    return select(byte > limit, limit, byte), (retro * 2.0 > 1.0) & (share > 1.0)
