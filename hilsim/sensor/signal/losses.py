"""Firings that hit a surface and return nothing, and the bytes of empty firings."""

import math

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import borrowing_kernel, constant
from hilsim.compilation.lanes import Doubles, lane_numbers
from hilsim.rng import Purpose, uniform, uniforms
from hilsim.sensor.echoes import ENERGY, MIRRORED, RANGE, RAY
from hilsim.sensor.signal.signal import Signal

_LOSS, _EMPTY_BYTE, _ONE_SIDED = constant(Purpose.SIGNAL_LOSS), constant(Purpose.EMPTY_BYTE), constant(Purpose.ONE_SIDED)
_SHADOW, _FLAW = constant(Purpose.RECEIVER_SHADOW), constant(Purpose.FLAW)
_BOTH, _FIRST, _SECOND = constant(-1), constant(0), constant(1)
_TWICE, _THRICE = 0.6, 0.75
_OTHER_SIDE, _FALLING = 0.1, 0.97
_BYTE_MAX = 255
_WHITE = 100.0
SHADOW_DEPTH_M = 0.3
"""Least distance between what hides a surface and the surface: a slanted surface does not hide itself."""


@borrowing_kernel
def _following_m(hit_count: int, value: npt.NDArray[np.float64], what: npt.NDArray[np.int32], firing: int, here_m: float) -> float:
    """Least range beyond ``here_m`` among the sub-rays' nearest hits; ``inf`` for none. Arguments as of ``is_split``."""
    found_m, seen = np.inf, 0
    for at in range(hit_count):
        ray = what[firing, at, RAY]
        if ray < 0 or ray >= MIRRORED or seen >> ray & 1 != 0 or value[firing, at, ENERGY] <= 0.0:
            continue
        seen |= 1 << ray
        if value[firing, at, RANGE] > here_m:
            found_m = min(found_m, value[firing, at, RANGE])
    return found_m


@borrowing_kernel
def split_after_m(
    hit_count: int, value: npt.NDArray[np.float64], what: npt.NDArray[np.int32], firing: int, split_distance_m: float
) -> tuple[float, float]:
    """Ranges of the surfaces on both sides of the gap where a firing's sub-rays meet surfaces apart from each other; both ``inf`` where they do not.

    The largest gap between their ranges must be most of their extent, unlike a slanted surface's.

    Args:
        hit_count: Number of hits.
        value: ``Hits.value``, each sub-ray's nearest hit before its others.
        what: ``Hits.what``.
        firing: Row of the firing.
        split_distance_m: Least gap.
    """
    nearest_m, farthest_m, seen = np.inf, -np.inf, 0
    for at in range(hit_count):
        ray = what[firing, at, RAY]
        # Weather, what a mirror shows, or what the ray meets behind a transmitting surface.
        if ray < 0 or ray >= MIRRORED or seen >> ray & 1 != 0 or value[firing, at, ENERGY] <= 0.0:
            continue
        seen |= 1 << ray
        nearest_m, farthest_m = min(nearest_m, value[firing, at, RANGE]), max(farthest_m, value[firing, at, RANGE])
    if farthest_m - nearest_m < split_distance_m:
        return np.inf, np.inf
    least_m, here_m = max(split_distance_m, 0.5 * (farthest_m - nearest_m)), nearest_m
    while here_m < farthest_m:
        next_m = _following_m(hit_count, value, what, firing, here_m)
        if next_m - here_m >= least_m:
            return here_m, next_m
        here_m = next_m
    return np.inf, np.inf


@borrowing_kernel
def keep_stronger_side(hit_count: int, value: npt.NDArray[np.float64], firing: int, near_m: float) -> None:
    """Take away the energy of the weaker side of a split beam.

    Args:
        hit_count: Number of hits.
        value: ``Hits.value``.
        firing: Row of the firing.
        near_m: Range of the last hit of the near side.
    """
    near = far = 0.0
    for at in range(hit_count):
        if value[firing, at, RANGE] <= near_m:
            near += value[firing, at, ENERGY]
        else:
            far += value[firing, at, ENERGY]
    for at in range(hit_count):
        if (value[firing, at, RANGE] <= near_m) != (near >= far):
            value[firing, at, ENERGY] = 0.0


@borrowing_kernel
def hide_far_hits(
    receiver: int, seed: np.uint64, stream: int, index: int, hit_count: int, value: npt.NDArray[np.float64], what: npt.NDArray[np.int32], firing: int
) -> bool:
    """Remove the energy of hits that a nearer surface hides from the receiver; returns whether there was any.

    The way back from a hit at range f to the receiver crosses range n at a share 1 - n / f of the receiver's offset from the beam. Where the receiver's own axis
    meets something at range n and the beam does not, the edge lies anywhere between both, so it hides the hit with that probability.

    Args:
        receiver: Number of the receiver's axis among the rays.
        seed: Seed of the rig.
        stream: Random stream of the laser.
        index: Index of the firing sequence.
        hit_count: Number of hits.
        value: ``Hits.value``.
        what: ``Hits.what``.
        firing: Row of the firing.
    """
    near_m = np.inf
    for at in range(hit_count):
        if what[firing, at, RAY] == receiver:
            near_m = value[firing, at, RANGE]
    if near_m == np.inf:
        return False
    far_m = 0.0
    for at in range(hit_count):
        far_m = max(far_m, value[firing, at, RANGE])
    if far_m - near_m < SHADOW_DEPTH_M or uniform(seed, stream, index, _SHADOW) >= 1.0 - near_m / far_m:
        return False
    is_hidden = False
    for at in range(hit_count):
        if value[firing, at, RANGE] - near_m >= SHADOW_DEPTH_M and what[firing, at, RAY] >= 0:
            value[firing, at, ENERGY] = 0.0
            is_hidden = True
    return is_hidden


@borrowing_kernel
def has_losses(signal: Signal, receiver: int) -> bool:
    """Whether firings with hits can return nothing, or less than they hit; ``receiver`` as for ``is_lost``."""
    return (
        signal.loss_ratio > 0.0 or signal.split_loss_ratio > 0.0 or signal.split_light_ratio < 1.0 or signal.mixed_distance_m > 0.0 or receiver >= 0
    )


@borrowing_kernel
def loss_draws(seed: np.uint64, first_stream: int, index: int) -> Doubles:
    """The draws of ``is_dropped_out`` and ``is_lost`` for sixteen lasers, whose random streams follow each other."""
    return uniforms(seed, lane_numbers() + np.uint64(first_stream), index, _LOSS)


@borrowing_kernel
def lambertian_share(hit_count: int, value: npt.NDArray[np.float64], firing: int) -> float:
    """Sum of the energies of a firing's hits times their squared ranges. Arguments as of ``is_lost``."""
    share = 0.0
    for at in range(hit_count):
        share += value[firing, at, ENERGY] * value[firing, at, RANGE] * value[firing, at, RANGE]
    return share


@borrowing_kernel
def is_dropped_out(ratio: npt.NDArray[np.float64], draw: float, share: float) -> bool:
    """Whether a firing with hits returns nothing at random, by the reflectivity byte that it would report.

    The byte is that of all hits together, without the laser's gain and noise. Of a split beam it lies between both surfaces', in proportion to their shares.

    Args:
        ratio: ``float64[256]``, share of firings that are lost, by byte.
        draw: The firing's number of ``loss_draws``.
        share: The firing's ``lambertian_share``.
    """
    byte = math.floor(min(_WHITE * share, float(_BYTE_MAX)) + 0.5)
    return bool(draw < ratio[min(byte, _BYTE_MAX)])


@borrowing_kernel
def is_lost_at_flaw(flaw: float, seed: np.uint64, stream: int, index: int, hit_count: int, value: npt.NDArray[np.float64], firing: int) -> bool:
    """Whether a firing returns nothing because of the flaw that it meets; else its hits lose that share of their energy.

    Args:
        flaw: ``Hits.flaw`` of the firing, above 0.
        seed: Seed of the rig.
        stream: Random stream of the laser.
        index: Index of the firing sequence.
        hit_count: Number of hits.
        value: ``Hits.value``.
        firing: Row of the firing.
    """
    if uniform(seed, stream, index, _FLAW) < flaw:
        return True
    for at in range(hit_count):
        value[firing, at, ENERGY] *= 1.0 - flaw
    return False


@borrowing_kernel
def _extent_m(receiver: int, hit_count: int, value: npt.NDArray[np.float64], what: npt.NDArray[np.int32], firing: int) -> tuple[float, float, float]:
    """Least and largest range of a firing's hits, and the range of what the receiver's axis meets; ``inf``, ``-inf``, ``inf`` for none."""
    nearest_m, farthest_m, axis_m = np.inf, -np.inf, np.inf
    for at in range(hit_count):
        hit_m = value[firing, at, RANGE]
        if what[firing, at, RAY] == receiver and receiver >= 0:
            axis_m = hit_m
        else:
            nearest_m, farthest_m = min(nearest_m, hit_m), max(farthest_m, hit_m)
    return nearest_m, farthest_m, axis_m


@borrowing_kernel
def _has_light(hit_count: int, value: npt.NDArray[np.float64], firing: int) -> bool:
    """Whether a hit of a firing has energy."""
    light = 0.0
    for hit in range(hit_count):
        light = max(light, value[firing, hit, ENERGY])
    return light > 0.0


@borrowing_kernel
def is_lost(
    signal: Signal,
    receiver: int,
    merge_distance_m: float,
    draw: float,
    seed: np.uint64,
    stream: int,
    index: int,
    hit_count: int,
    value: npt.NDArray[np.float64],
    what: npt.NDArray[np.int32],
    firing: int,
) -> bool:
    """Whether a firing with hits returns nothing because its light fell on two surfaces, or because a nearer one hides all from the receiver.

    Of a split beam that is not lost, the weaker side is taken away where both would merge although they are ``mixed_distance_m`` or more apart, and both sides
    are weaker by ``split_light_ratio`` where they do not merge.

    Args:
        signal: The receiver's signal.
        receiver: Number of the receiver's axis among the rays; -1 for none.
        merge_distance_m: Smallest distance between two echoes.
        draw: The firing's number of ``loss_draws``.
        seed: Seed of the rig.
        stream: Random stream of the laser.
        index: Index of the firing sequence.
        hit_count: Number of hits.
        value: ``Hits.value``.
        what: ``Hits.what``.
        firing: Row of the firing.
    """
    nearest_m, farthest_m, axis_m = _extent_m(receiver, hit_count, value, what, firing)
    if farthest_m - min(nearest_m, axis_m) < min(signal.split_distance_m, SHADOW_DEPTH_M):
        return False
    is_hidden = axis_m < farthest_m and hide_far_hits(receiver, seed, stream, index, hit_count, value, what, firing)
    if is_hidden and not _has_light(hit_count, value, firing):
        return True
    near_m, far_m = split_after_m(hit_count, value, what, firing, signal.split_distance_m)
    if near_m == np.inf:
        return False
    if 1.0 - draw < signal.split_loss_ratio:
        return True
    if 0.0 < signal.mixed_distance_m <= far_m - near_m < merge_distance_m:
        keep_stronger_side(hit_count, value, firing, near_m)
    if signal.split_light_ratio < 1.0 and far_m - near_m >= merge_distance_m:
        # The draw is even from 0 to here: a firing that is not lost needs no other one.
        share = signal.split_light_ratio + (1.0 - signal.split_light_ratio) * draw / (1.0 - signal.split_loss_ratio)
        for hit in range(hit_count):
            value[firing, hit, ENERGY] *= share
    return False


@borrowing_kernel
def empty_draws(seed: np.uint64, first_stream: int, index: int) -> Doubles:
    """The draws of bytes without a return for sixteen lasers, whose random streams follow each other."""
    return uniforms(seed, lane_numbers() + np.uint64(first_stream), index, _EMPTY_BYTE)


@borrowing_kernel
def empty_byte(
    signal: Signal,
    baseline: int,
    step: float,
    is_lost_firing: bool,  # noqa: FBT001 - kernels take their arguments by place
    draw: float,
) -> int:
    """Reflectivity byte of a firing without a return: the laser's baseline, or a multiple of its step, or what a firing that was lost reports.

    Args:
        signal: The receiver's signal.
        baseline: The laser's baseline.
        step: The laser's ``empty_step``.
        is_lost_firing: Whether the firing hit a surface.
        draw: The firing's number of ``empty_draws``.
    """
    ratio = signal.lost_byte_ratio if is_lost_firing else signal.empty_byte_ratio
    if ratio <= 0.0 or draw / ratio >= 1.0:
        return baseline
    draw /= ratio
    if is_lost_firing and draw < signal.lost_clip_ratio:
        return int(_WHITE)
    if is_lost_firing and signal.lost_byte_from > 0.0:
        return min(math.floor(signal.lost_byte_from / (1.0 - _FALLING * (draw - signal.lost_clip_ratio) / (1.0 - signal.lost_clip_ratio))), _BYTE_MAX)
    multiple = 2.0 if draw < _TWICE else 3.0
    if draw >= _THRICE:  # few counts are more likely than many
        multiple = math.floor(3.0 * (1.0 / (1.0 - _FALLING * (draw - _THRICE) / (1.0 - _THRICE)))) + 1.0
    return min(math.floor(multiple * step + 0.5), _BYTE_MAX)


@borrowing_kernel
def missing_side(signal: Signal, seed: np.uint64, stream: int, index: int) -> int:
    """Return of a pair with one echo that is not reported, in the packet's order; -1 for none: the second one is missing more often than the first."""
    if signal.one_sided_ratio <= 0.0:
        return _BOTH
    draw = uniform(seed, stream, index, _ONE_SIDED)
    if draw < signal.one_sided_ratio:
        return _SECOND
    return _FIRST if 1.0 - draw < _OTHER_SIDE * signal.one_sided_ratio else _BOTH
