"""The sensor's response to an echo: distance with noise, the reflectivity byte, limits, the no-return baseline."""

import math
from enum import IntFlag
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel
from hilsim.compilation.lanes import Doubles, lane_numbers
from hilsim.rng import Purpose, normal, normal_pair, normal_pairs, uniform
from hilsim.sensor.echoes import ECHO_DRAWS
from hilsim.sensor.specs import LidarSpec

_RANGE_NOISE = constant(Purpose.RANGE_NOISE)
_DROP_OUT = constant(Purpose.DROP_OUT)
CHANNELS_PER_STREAM = 256
_RETRO_STEPS_PER_E = 154.0 / math.log(1000.0)


_BLACK = 0.25
"""Reflectivity in percent that is reported as 0; above 0, so that a black target returns some energy."""
_LINEAR_CODES = 127
LINEAR_TOP = 1.27
_EXPONENTIAL_STEPS_PER_E = 128.0 / math.log(50.0 / LINEAR_TOP)


class ReturnFlag(IntFlag):
    """Flags that a sensor reports for a return beside its range; the bits are those of a Cepton point, the only format that contains them."""

    SATURATED = 0x01
    NOISE = 0x40
    BLOCKED = 0x80


_SATURATED, _NOISE = constant(ReturnFlag.SATURATED), constant(ReturnFlag.NOISE)


class Response(NamedTuple):
    """Kernel-side response; the fields are explained in ``LidarSpec`` and ``DetectorSpec``.

    ``grid`` is the step of distance codes before correction; ``code_max`` is the largest distance that packets can represent; ``has_linear_scale``
    selects the scale of reflectivities; ``saturation_energy`` is infinite and ``doubt_energy`` 0 where nothing is flagged. All fields are scalars: an array would be reference-counted, by an atomic instruction, in each of the calls below.
    """

    unit_m: float
    range_min_m: float
    range_max_m: float
    noise_m: float
    weak_noise_m: float
    noise_onset_m: float
    drop_out_ratio: float
    threshold_energy: float
    noise_ratio: float
    merge_distance_m: float
    diffuse_max: int
    code_max: int
    has_linear_scale: bool
    saturation_energy: float
    doubt_energy: float
    seed: np.uint64
    stream: int
    grid: float = 1.0
    noise_overlap: float = 0.0


def build_response(spec: LidarSpec, *, seed: int, stream: int) -> Response:
    """Build the kernel-side response of a model; ``stream`` is the sensor's number within the rig."""
    detector = spec.detector
    return Response(
        unit_m=spec.range_unit_mm / 1000.0,
        range_min_m=spec.range_min_m,
        range_max_m=spec.range_max_m,
        noise_m=spec.range_noise_m,
        weak_noise_m=detector.range_noise_weak_m,
        noise_onset_m=detector.range_noise_onset_m,
        noise_overlap=detector.range_noise_overlap,
        drop_out_ratio=spec.drop_out_ratio,
        threshold_energy=detector.threshold_energy,
        noise_ratio=detector.noise_ratio,
        merge_distance_m=detector.merge_distance_m,
        diffuse_max=detector.diffuse_max,
        code_max=spec.range_code_max,
        has_linear_scale=spec.has_linear_reflectivity,
        saturation_energy=detector.saturation_ratio * detector.threshold_energy or math.inf,
        doubt_energy=detector.doubt_ratio * detector.threshold_energy,
        seed=np.uint64(seed),
        stream=stream,
        grid=float(spec.signal.grid_codes),
    )


def laser_biases_m(spec: LidarSpec, *, seed: int, stream: int) -> npt.NDArray[np.float64]:
    """Constant range error (m) of each laser, ``float64[c]`` in firing order; ``seed`` and ``stream`` as for ``build_response``."""
    channels = range(spec.laser_count)
    drawn = [normal(np.uint64(seed), stream * CHANNELS_PER_STREAM + channel, 0, constant(Purpose.LASER_BIAS)) for channel in channels]
    return spec.detector.laser_bias_m * np.array(drawn)


@kernel
def is_dropped(response: Response, channel: int, sequence: int) -> bool:
    """Whether a firing is dropped at random, regardless of its hits."""
    if response.drop_out_ratio <= 0.0:
        return False
    return uniform(response.seed, response.stream * CHANNELS_PER_STREAM + channel, sequence, _DROP_OUT) < response.drop_out_ratio


@kernel
def reflectivity_byte(energy: float, range_m: float, is_retro: bool, diffuse_max: int) -> int:  # noqa: FBT001 - a kernel takes plain positional scalars
    """Reflectivity byte of an echo: corrected for the range, not for other losses (which the sensor cannot know).

    0 to 100 is percent of a white diffuse target, 101 to 255 a retro-reflector (VLP-16 manual 63-9243 page 32); the scale above 100 is assumed to be
    logarithmic over a factor of 1000 (recommended, unproven: the mapping is not published).
    """
    share = energy * range_m * range_m
    if is_retro and share > 1.0:
        return min(255, math.floor(101.5 + _RETRO_STEPS_PER_E * math.log(share)))
    return min(diffuse_max, math.floor(100.0 * share + 0.5))


@kernel
def linear_reflectivity(ratio: float) -> int:
    """Reflectivity code of a Cepton point for a ratio to a white diffuse target: 0 to 127 is percent, 128 to 255 rises exponentially to 50.

    This is the closed form of the vendor's table (``cepton_sdk2/frame.py``); it maps all 256 values of the table to their codes (tested).
    """
    if ratio <= LINEAR_TOP:
        return math.floor(100.0 * max(ratio, 0.0) + 0.5)
    return min(255, math.floor(_LINEAR_CODES + 0.5 + _EXPONENTIAL_STEPS_PER_E * math.log(ratio / LINEAR_TOP)))


def calibrated_ratios() -> npt.NDArray[np.float64]:
    """Ratio to a white diffuse target for each reflectivity byte, ``float64[256]``: the inverse of ``reflectivity_byte`` (101 and above: retro-reflectors)."""
    code = np.arange(256.0)
    diffuse = np.maximum(code, _BLACK) / 100.0
    return np.where(code <= 100, diffuse, np.exp((code - 101.0 + _BLACK) / _RETRO_STEPS_PER_E))


def linear_ratios() -> npt.NDArray[np.float64]:
    """Ratio to a white diffuse target for each reflectivity code, ``float64[256]``: the inverse of ``linear_reflectivity``."""
    code = np.arange(256.0)
    linear = np.maximum(code, _BLACK) / 100.0
    return np.where(code <= _LINEAR_CODES, linear, LINEAR_TOP * np.exp((code - _LINEAR_CODES) / _EXPONENTIAL_STEPS_PER_E))


@kernel
def return_flags(response: Response, energy: float) -> int:
    """``ReturnFlag`` of an echo."""
    flags = 0
    if energy > response.saturation_energy:
        flags |= _SATURATED
    if energy < response.doubt_energy:
        flags |= _NOISE
    return flags


@kernel
def brightness(response: Response, energy: float, range_m: float, retro: float) -> tuple[int, int]:
    """Reflectivity byte and ``ReturnFlag`` of an echo; ``retro`` is the share of retro-reflectors in it."""
    if response.has_linear_scale:
        return linear_reflectivity(energy * range_m * range_m), return_flags(response, energy)
    return reflectivity_byte(energy, range_m, 2.0 * retro > 1.0, response.diffuse_max), 0


@kernel
def noise_sd_m(response: Response, energy: float, range_m: float) -> float:
    """Standard deviation of an echo's range in metres."""
    if response.weak_noise_m <= 0.0:
        return response.noise_m
    percent = 100.0 * energy * range_m * range_m
    far = max(1.0, range_m / response.noise_onset_m)
    return math.sqrt(response.noise_m**2 + response.weak_noise_m**2 / (percent + 1.0) * far * far)


@kernel
def range_noise(response: Response, channel: int, sequence: int, echo: int) -> float:
    """Standard normal random number of an echo's range error.

    Args:
        response: The sensor's response.
        channel: Number of the channel in firing order.
        sequence: Index of the firing sequence.
        echo: Number of the echo within the firing, nearest first.
    """
    index = sequence * ECHO_DRAWS + min(echo, ECHO_DRAWS - 1)
    return normal(response.seed, response.stream * CHANNELS_PER_STREAM + channel, index, _RANGE_NOISE)


@kernel
def byte_noise(response: Response, channel: int, sequence: int, echo: int) -> float:
    """Standard normal random number of an echo's reflectivity byte, of the same draw as ``range_noise`` and independent of it; arguments likewise."""
    index = sequence * ECHO_DRAWS + min(echo, ECHO_DRAWS - 1)
    _, error = normal_pair(response.seed, response.stream * CHANNELS_PER_STREAM + channel, index, _RANGE_NOISE)
    return error


@kernel
def draw_noise(response: Response, first_channel: int, sequence: int) -> tuple[Doubles, Doubles]:
    """``range_noise`` and ``byte_noise`` of the first echoes of sixteen channels, from ``first_channel`` on; ranges have a part of the next firing's too."""
    streams = lane_numbers() + np.uint64(response.stream * CHANNELS_PER_STREAM + first_channel)
    error, byte_error = normal_pairs(response.seed, streams, sequence * ECHO_DRAWS, _RANGE_NOISE)
    if response.noise_overlap > 0.0:
        following, _ = normal_pairs(response.seed, streams, (sequence + 1) * ECHO_DRAWS, _RANGE_NOISE)
        error = (error + following * response.noise_overlap) / math.sqrt(1.0 + response.noise_overlap**2)
    return error, byte_error


@kernel
def distance_code(response: Response, measured_m: float) -> int:
    """Distance code of an echo in the packet: 0 when it is not reported.

    Args:
        response: The sensor's response.
        measured_m: Range with its errors, ``inf`` for a miss.
    """
    if not np.isfinite(measured_m):
        return 0
    code = int(np.floor(measured_m / (response.unit_m * response.grid) + 0.5) * response.grid)
    reported_m = code * response.unit_m
    if reported_m < response.range_min_m or reported_m > response.range_max_m or code > response.code_max:
        return 0
    return code
