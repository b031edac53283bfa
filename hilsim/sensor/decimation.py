"""Decimation ("subsampling") of rings and rays, and spurious points; for arrays of points, and for the firings of a streaming sensor.

The functions on arrays return what the published functions return (``calculate_ring_id``, ``subsample_by_ring_id``, ``subsample_by_rays``,
``add_cosmic_noise_points`` of "Submuestreo de haces y rayos"; compared in ``tests/unit/sensor/test_decimation.py``), except where the published
functions depend on the machine or contradict their own text:

- rays of equal azimuth keep their order (the published sort is numpy's unstable one, which differs between CPUs);
- elevations are clipped before they become integers (the published code overflows 32 bits where a field of view of 0 has 25 or more channels);
- a step of 0 or below is rejected (the published code keeps everything, raises, or counts backwards, depending on the function);
- spurious points are centred on +x, as in the published text. The published code has -x: with a horizontal field of view below 360 degrees, every
    spurious point
  would be behind a sensor whose azimuth 0 is +x, where it cannot report anything. With 360 degrees the two are mirror images.

Frames: the functions on points take azimuth 0 at +x, counter-clockwise, as ROS point clouds have it. A Velodyne's own azimuth is clockwise from
+y (``world.geometry.frames``); pass such azimuths to ``decimate_rays`` as they are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel
from hilsim.errors import require, within
from hilsim.rng import uniform, uniform_pair
from hilsim.sensor.head import Head, head_turns
from hilsim.sensor.specs import DecimationSpec, is_whole, step_rule

SPURIOUS_TAG = -1
SPURIOUS_POINT_PURPOSE = 1000
"""Random-number purpose of spurious points, outside ``draws.Purpose`` because they belong to point clouds, not to a rig."""

_SPURIOUS_POINT = constant(SPURIOUS_POINT_PURPOSE)
_SPURIOUS_RANGE_MIN_M = 0.1
_ZERO_FOV_DEG = 1e-6
_CHANNELS_MAX = 65_536
_TURN_SEQUENCES_MIN = 10
_MINUTE_NS = 60_000_000_000


class Decimated(NamedTuple):
    """Result of a decimation.

    Attributes:
        mask: ``bool[n]`` over all points, true for those kept; it selects from further arrays: ``intensity[decimated.mask]``.
        arrays: The given per-point arrays without the removed points, in their original order.
    """

    mask: npt.NDArray[np.bool_]
    arrays: tuple[npt.NDArray[Any], ...]


def _points_rule(points: npt.NDArray[Any]) -> tuple[bool, str]:
    return points.ndim == 2 and points.shape[1] == 3, f"points must be an array of shape (n, 3), got {points.shape}"


def _ring_rule(ring: npt.NDArray[Any]) -> tuple[bool, str]:
    return ring.ndim == 1 and np.issubdtype(ring.dtype, np.integer), f"ring must be integers of shape (n,), got {ring.dtype} of shape {ring.shape}"


def _length_rules(n: int, arrays: tuple[npt.NDArray[Any], ...]) -> list[tuple[bool, str]]:
    return [
        (array.ndim >= 1 and array.shape[0] == n, f"per-point array {place} must have length {n}, got shape {array.shape}")
        for place, array in enumerate(arrays)
    ]


def _fov_rules(lower_fov_deg: float, upper_fov_deg: float) -> list[tuple[bool, str]]:
    ends = (("lower_fov_deg", lower_fov_deg), ("upper_fov_deg", upper_fov_deg))
    return [(-90.0 <= end <= 90.0, f"{name} must be -90 to 90, got {end}") for name, end in ends]


def ring_ids(points: npt.NDArray[Any], channels: int, *, lower_fov_deg: float, upper_fov_deg: float) -> npt.NDArray[np.int32]:
    """Ring of each point by its elevation, ``int32[n]``, 0 the lowest: the field of view is divided into ``channels`` evenly spaced rings.

    Halves are rounded to even. A point outside the field of view is kept in ring 0 or ``channels - 1``. One channel is ring 0.
    With a field of view of 0, points above it are in the highest ring and all others in ring 0. With ``lower`` above ``upper``, rings are numbered
    from the top. The origin has elevation 0; NaN is ring 0. float32 points are computed in float32 (one in a million has another ring than in
    float64). For a real sensor with unevenly spaced rings (VLP-32C) use ``channel_rings`` instead.

    Args:
        points: ``float[n, 3]`` in the sensor's frame, z up, any unit.
        channels: Number of rings, 1..65536.
        lower_fov_deg: Elevation of ring 0, -90..90.
        upper_fov_deg: Elevation of ring ``channels - 1``, -90..90.

    Raises:
        ValueError: an argument breaks its rule.
    """
    require(
        _points_rule(points),
        (is_whole(channels) and 1 <= channels <= _CHANNELS_MAX, f"channels must be a whole number of 1 to {_CHANNELS_MAX}, got {channels}"),
        *_fov_rules(lower_fov_deg, upper_fov_deg),
    )
    # Plain Python numbers: a NumPy float64 scalar would promote float32 points to float64.
    lower, highest = float(lower_fov_deg), int(channels) - 1
    fov = float(upper_fov_deg) - lower or _ZERO_FOV_DEG
    with np.errstate(over="ignore"):  # overflow to infinity is correct here: infinitely far
        elevation = np.degrees(np.arctan2(points[:, 2], np.hypot(points[:, 0], points[:, 1])))
        ring = np.clip(np.rint((elevation - lower) / fov * highest), 0, highest)
    return np.where(np.isnan(ring), 0, ring).astype(np.int32)


def azimuths_deg(points: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Azimuth of each point, ``float[n]`` in [0, 360): 0 at +x, counter-clockwise; NaN where x or y is. float32 points are computed in float32.

    Args:
        points: ``float[n, 3]``, any unit.

    Raises:
        ValueError: ``points`` has another shape.
    """
    require(_points_rule(points))
    azimuth: npt.NDArray[Any] = (np.degrees(np.arctan2(points[:, 1], points[:, 0])) + 360.0) % 360.0
    return azimuth


def decimate_beams(ring: npt.NDArray[Any], step: int, *arrays: npt.NDArray[Any]) -> Decimated:
    """Keep the points of every ``step``-th ring: those with ``ring % step == 0``. Ring 0, which includes all points below the field of view, is always kept.

    Args:
        ring: ``int[n]``, any integers.
        step: 1 or more; above the highest ring only ring 0 is kept.
        arrays: Per-point arrays ``[n, ...]`` to decimate in the same way.

    Raises:
        ValueError: an argument breaks its rule.
    """
    require(_ring_rule(ring), step_rule("step", step), *_length_rules(len(ring), arrays))
    mask = ring.astype(np.int64) % int(step) == 0  # in uint8, the type of decoders' rings, a step of 300 cannot be represented
    return Decimated(mask, tuple(array[mask] for array in arrays))


def decimate_rays(azimuth_deg: npt.NDArray[Any], ring: npt.NDArray[Any], step: int, *arrays: npt.NDArray[Any]) -> Decimated:
    """Keep one of ``step`` points of each ring: sorted by azimuth, the first and every ``step``-th after it; ceil(n / step) of a ring's n points.

    Equal azimuths keep their original order; NaN sorts last. The kept points stay in their original order, not in the order of azimuths.

    Args:
        azimuth_deg: ``float[n]``, sort key within a ring: ``azimuths_deg(points)``, or a sensor's own azimuths.
        ring: ``int[n]``, any integers.
        step: 1 or more; at a ring's number of points or above, only its smallest azimuth is kept.
        arrays: Per-point arrays ``[n, ...]`` to decimate in the same way.

    Raises:
        ValueError: an argument breaks its rule.
    """
    require(
        _ring_rule(ring),
        (azimuth_deg.shape == ring.shape, f"azimuth_deg must have the shape of ring, {ring.shape}, got {azimuth_deg.shape}"),
        step_rule("step", step),
        *_length_rules(len(ring), arrays),
    )
    order = np.lexsort((azimuth_deg, ring))  # stable
    sorted_ring = ring[order]
    first_of_ring = np.searchsorted(sorted_ring, sorted_ring)
    mask = np.zeros(len(ring), np.bool_)
    mask[order] = (np.arange(len(ring)) - first_of_ring) % int(step) == 0
    return Decimated(mask, tuple(array[mask] for array in arrays))


@dataclass(frozen=True, kw_only=True)
class SpuriousSpec:
    """Number and location of spurious ("cosmic") points.

    Attributes:
        max_range_m: Largest range; the smallest is 0.1 m.
        hfov_deg: Width of the horizontal field of view, centred on +x.
        lower_fov_deg: Lowest elevation.
        upper_fov_deg: Highest elevation.
        rate: Number of spurious points per real point, 0..1.
    """

    max_range_m: float
    hfov_deg: float = 360.0
    lower_fov_deg: float
    upper_fov_deg: float
    rate: float = 0.001

    def __post_init__(self) -> None:
        require(
            (
                _SPURIOUS_RANGE_MIN_M < self.max_range_m < math.inf,
                f"max_range_m must be above {_SPURIOUS_RANGE_MIN_M} and finite, got {self.max_range_m}",
            ),
            (0.0 < self.hfov_deg <= 360.0, f"hfov_deg must be above 0 and at most 360, got {self.hfov_deg}"),
            *_fov_rules(self.lower_fov_deg, self.upper_fov_deg),
            (
                not self.lower_fov_deg > self.upper_fov_deg,
                f"lower_fov_deg must be at most upper_fov_deg, got {self.lower_fov_deg} and {self.upper_fov_deg}",
            ),
            *within(self, rate=(0, 1)),
        )

    def count(self, points: int) -> int:
        """Number of spurious points for a number of real points: the floating-point product truncated (100 at a rate of 0.29 give 28)."""
        return int(points * self.rate)


class WithSpurious(NamedTuple):
    """Real and spurious points together.

    Attributes:
        spurious: ``bool[n + k]``, true for the k spurious points, which come last.
        points: ``float[n + k, 3]``.
        tags: ``int[n + k]``, -1 for spurious points.
    """

    spurious: npt.NDArray[np.bool_]
    points: npt.NDArray[Any]
    tags: npt.NDArray[Any]


@kernel
def _draw_unit(seed: np.uint64, stream: int, scan: int, unit: npt.NDArray[np.float64]) -> None:
    """Write three uniform numbers for each spurious point of a scan to ``unit[k, 3]``."""
    for point in range(unit.shape[0]):
        index = (scan << 32) + 2 * point
        unit[point, 0], unit[point, 1] = uniform_pair(seed, stream, index, _SPURIOUS_POINT)
        unit[point, 2] = uniform(seed, stream, index + 1, _SPURIOUS_POINT)


def draw_spurious(
    spec: SpuriousSpec, count: int, *, seed: int, stream: int = 0, scan: int = 0
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Azimuth (degrees), elevation (degrees) and range (m) of spurious points, ``float64[count]`` each, all three uniformly distributed.

    A uniform range is a density of 1 / range² in space, and a uniform elevation is denser towards the zenith than in solid angle. Point k of a
    scan does not depend on the count.

    Args:
        spec: Bounds of the points.
        count: Number of points, less than 2**31.
        seed: Random seed, 64 bits.
        stream: Number of the sensor, 32 bits.
        scan: Number of the point cloud, 31 bits.

    Raises:
        ValueError: an argument is out of range.
    """
    ranges = (("count", count, 31), ("seed", seed, 64), ("stream", stream, 32), ("scan", scan, 31))
    require(
        *(
            (is_whole(value) and 0 <= value < 1 << bits, f"{name} must be a whole number of 0 to 2**{bits} - 1, got {value}")
            for name, value, bits in ranges
        )
    )
    unit = np.empty((count, 3))
    _draw_unit(np.uint64(seed), stream, scan, unit)
    return (
        (unit[:, 0] - 0.5) * spec.hfov_deg,
        spec.lower_fov_deg + unit[:, 1] * (spec.upper_fov_deg - spec.lower_fov_deg),
        _SPURIOUS_RANGE_MIN_M + unit[:, 2] * (spec.max_range_m - _SPURIOUS_RANGE_MIN_M),
    )


def place_spurious(
    azimuth_deg: npt.NDArray[np.float64], elevation_deg: npt.NDArray[np.float64], range_m: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Points ``float64[k, 3]`` (m, sensor frame) from azimuths (from +x, counter-clockwise), elevations and ranges, ``float64[k]`` each.

    The published code negates x; see the module.
    """
    azimuth, elevation = np.radians(azimuth_deg), np.radians(elevation_deg)
    level = range_m * np.cos(elevation)
    return np.stack([level * np.cos(azimuth), level * np.sin(azimuth), range_m * np.sin(elevation)], axis=1)


def add_spurious_points(
    points: npt.NDArray[Any], tags: npt.NDArray[Any], spec: SpuriousSpec, *, seed: int, stream: int = 0, scan: int = 0
) -> WithSpurious:
    """Append spurious points, tagged -1, at the end.

    Types are promoted as in NumPy: float32 points become float64, ``uint32`` tags ``int64``, ``uint8`` tags ``int32``. When the rate gives no
    point, the given arrays themselves are returned. Spurious points have no ring and no intensity: recompute the rings; the points are within the field
    of view.

    Args:
        points: ``float[n, 3]``, m, sensor frame, x forward.
        tags: ``int[n]``, semantic tags; not ``uint64``, which has no common integer type with -1.
        spec: Number and bounds of spurious points.
        seed: Random seed, 64 bits; with ``stream`` and ``scan`` it determines the points.
        stream: Number of the sensor, 32 bits.
        scan: Number of the point cloud, 31 bits.

    Raises:
        ValueError: an argument breaks its rule.
    """
    integers = np.issubdtype(tags.dtype, np.integer) and tags.dtype != np.uint64
    require(
        _points_rule(points),
        (integers and tags.shape == points.shape[:1], f"tags must be integers that can hold -1, one a point, got {tags.dtype} of shape {tags.shape}"),
    )
    count = spec.count(len(points))
    spurious = np.arange(len(points) + count) >= len(points)
    azimuth, elevation, range_m = draw_spurious(spec, count, seed=seed, stream=stream, scan=scan)
    if count == 0:
        return WithSpurious(spurious, points, tags)
    added = place_spurious(azimuth, elevation, range_m)
    return WithSpurious(spurious, np.concatenate([points, added]), np.concatenate([tags, np.full(count, SPURIOUS_TAG, np.int32)]))


class Decimation(NamedTuple):
    """Kernel-side decimation of one sensor.

    Attributes:
        keeps_channel: ``bool[c]``, in firing order: whether the channel is reported.
        ray_step: ``DecimationSpec.ray_step``.
        sequence_ns: Device time of a firing sequence.
        firing_offset_ns: ``int64[c]``, device time from the start of a firing sequence to each channel's firing.
        azimuth_offset_turns: ``float64[c]``, azimuth of each channel's beam relative to the head.
    """

    keeps_channel: npt.NDArray[np.bool_]
    ray_step: int
    sequence_ns: int
    firing_offset_ns: npt.NDArray[np.int64]
    azimuth_offset_turns: npt.NDArray[np.float64]


class TurningModel(Protocol):
    """A model whose head turns channels: each has an ``elevation_deg`` and an ``azimuth_offset_deg``."""

    @property
    def channels(self) -> Sequence[Any]:
        """Lasers in firing order."""

    @property
    def rate_max_rpm(self) -> int:
        """Fastest rotation."""

    @property
    def sequence_ns(self) -> int:
        """Duration of a firing sequence."""

    @property
    def firing_delays_ns(self) -> tuple[int, ...]:
        """Time of each firing from the start of its firing sequence."""


def channel_rings(spec: TurningModel) -> npt.NDArray[np.int64]:
    """Ring of each channel, ``int64[c]`` in firing order: its rank by elevation, 0 the lowest.

    For evenly spaced channels (VLP-16) this equals ``ring_ids``. For unevenly spaced ones (VLP-32C), ``ring_ids`` assigns several channels to one
    ring and leaves others empty, so one of N rings would not be one of N lasers.
    """
    order = np.argsort([channel.elevation_deg for channel in spec.channels], kind="stable")
    return np.argsort(order)


def build_decimation(setting: DecimationSpec, spec: TurningModel) -> Decimation:
    """Build the kernel-side decimation of a model.

    Raises:
        ValueError: the head turns so fast that a turn has too few firings.
    """
    turn_sequences = _MINUTE_NS / (spec.rate_max_rpm * spec.sequence_ns)
    require(
        (
            turn_sequences >= _TURN_SEQUENCES_MIN,
            f"a turn at rate_max_rpm must have at least {_TURN_SEQUENCES_MIN} firing sequences for decimation, got {turn_sequences:.3g}",
        )
    )
    return Decimation(
        keeps_channel=decimate_beams(channel_rings(spec), setting.beam_step).mask,
        ray_step=int(setting.ray_step),
        sequence_ns=spec.sequence_ns,
        firing_offset_ns=np.array(spec.firing_delays_ns, dtype=np.int64),
        azimuth_offset_turns=np.array([channel.azimuth_offset_deg / 360.0 for channel in spec.channels]),
    )


def no_decimation(channels: int) -> Decimation:
    """Decimation of a sensor that reports every firing of its ``channels`` lasers."""
    nothing = np.zeros(channels, np.int64)
    return Decimation(np.ones(channels, np.bool_), 1, 1, nothing, nothing.astype(np.float64))


@kernel
def _past_zero_turns(decimation: Decimation, head: Head, channel: int, sequence: int) -> float:
    """Angle of a channel's beam past azimuth 0 when it fires, in turns, -0.5..0.5; within a firing sequence it is interpolated as in ``emulator.firing.fire``."""
    device_ns = sequence * decimation.sequence_ns
    start_turns = head_turns(head, device_ns)
    travelled = head_turns(head, device_ns + decimation.sequence_ns) - start_turns
    travelled -= math.floor(travelled + 0.5)  # across azimuth 0
    turns = start_turns + travelled * (decimation.firing_offset_ns[channel] / decimation.sequence_ns) + decimation.azimuth_offset_turns[channel]
    return float(turns - math.floor(turns + 0.5))


@kernel
def _passage(decimation: Decimation, head: Head, channel: int, sequence: int, turn_sequences: float) -> int:
    """First firing sequence in which a channel's beam is past azimuth 0, for the passage nearest to ``sequence``.

    Newton steps with the mean rate (the speed is within 40 % of it, ``RateJitterSpec``, so each step leaves at most 0.4 of the distance), then single steps.
    """
    for _ in range(4):
        stride = math.floor(_past_zero_turns(decimation, head, channel, sequence) * turn_sequences)
        sequence -= stride
        if stride == 0:
            break
    while _past_zero_turns(decimation, head, channel, sequence) < 0.0:
        sequence += 1
    while _past_zero_turns(decimation, head, channel, sequence - 1) >= 0.0:
        sequence -= 1
    return sequence


@kernel
def reported_firings(decimation: Decimation, head: Head, first_sequence: int, sequences: int, reported: npt.NDArray[np.bool_]) -> None:
    """Write which firings a decimated sensor reports to ``reported``.

    A channel's turn begins with its first firing at or past azimuth 0, by the true azimuth of its own beam. Firings are numbered from there: 0,
    ``ray_step``, 2 ``ray_step`` … are reported, and numbering restarts at the next passage. Azimuth grows with time, so over a whole turn
    this equals ``decimate_rays`` on the turn's firings. It decimates *firings*, with or without a return, like a sensor of lower
    resolution.
    In a decoded cloud the misses are missing, and ``decimate_rays`` counts only the points present.

    The result is a pure function of the firing's index: turns before the sensor's first firing are counted as if the head had turned then.

    Args:
        decimation: Decimation of the sensor.
        head: Head of the sensor; turning at most at its model's ``rate_max_rpm``.
        first_sequence: Index of the first firing sequence.
        sequences: Number of firing sequences.
        reported: ``bool[c, s]``, written; channels in firing order.
    """
    turn_sequences = 100 * _MINUTE_NS / (head.rate_crpm * decimation.sequence_ns)
    stop = first_sequence + sequences
    for channel in range(decimation.keeps_channel.size):
        if decimation.ray_step == 1 or not decimation.keeps_channel[channel]:
            reported[channel, :sequences] = decimation.keeps_channel[channel]
            continue
        past = _past_zero_turns(decimation, head, channel, first_sequence)
        if past < 0.0:
            past += 1.0
        begin = _passage(decimation, head, channel, first_sequence - math.floor(past * turn_sequences), turn_sequences)
        sequence = first_sequence
        while sequence < stop:
            next_begin = _passage(decimation, head, channel, begin + math.floor(turn_sequences), turn_sequences)
            while sequence < min(next_begin, stop):
                reported[channel, sequence - first_sequence] = (sequence - begin) % decimation.ray_step == 0
                sequence += 1
            begin = next_begin


@kernel
def withhold_firings(
    reported: npt.NDArray[np.bool_], baseline: npt.NDArray[np.uint8], distance: npt.NDArray[np.int32], reflectivity: npt.NDArray[np.uint8]
) -> None:
    """Turn firings that are not reported into no-returns: distance 0 and the channel's baseline reflectivity, in every return.

    A data packet has a record for every channel of every firing sequence and no field that marks a missing one, so a record cannot be left out.
    In this format, distance 0 means no return, and decoders make no point of it.

    Args:
        reported: ``bool[c, s]`` of ``reported_firings``.
        baseline: ``uint8[c]``, reflectivity byte of a no-return.
        distance: ``int32[r, s, c]``, changed in place.
        reflectivity: ``uint8[r, s, c]``, changed in place.
    """
    returns, sequences, channels = distance.shape
    for return_number in range(returns):
        for sequence in range(sequences):
            for channel in range(channels):
                if not reported[channel, sequence]:
                    distance[return_number, sequence, channel] = 0
                    reflectivity[return_number, sequence, channel] = baseline[channel]
