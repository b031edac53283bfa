"""Echoes of a firing from its hits, and returns from its echoes: grouping by range, detection by energy, selection of strongest and last.

Energy is normalised: a white Lambertian wall that fills the beam at normal incidence, 1 m away in clear air, returns 1. A hit's energy is
``share * reflectivity * cos(incidence) * transmission / range^2``; the footprint's area cancels the second cosine (Wagner's simplified range
equation, as in HELIOS++ ``EnergyMaths.cpp``).

Two surfaces nearer to each other than ``merge_distance_m`` make one echo: public dual-return captures of VLP-16s have no second return closer than
1.16 m.
"""

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import borrowing_kernel, constant, inlined_kernel
from hilsim.rng import Purpose, uniform

ECHO_DRAWS = 8
"""Random numbers reserved for the echoes of one firing; echoes beyond the eighth share the eighth's."""


class EchoChoice(IntEnum):
    """Rule that selects the detected echo of a return. The firmware is assumed to rank echoes by energy (recommended, unproven)."""

    STRONGEST_BESIDE_FIRST = -2
    """Beside a return that reports the first echo: the strongest, or the second strongest where the first is the strongest (PandarXT-16 manual page 44); a single
    echo is reported twice."""
    FIRST = -1
    """The nearest echo."""
    STRONGEST = 0
    LAST = 1
    STRONGEST_BESIDE_LAST = 2
    """Beside a return that reports the last echo: the strongest, or the second strongest where the last is the strongest (VLP-16 manual 63-9243 page 57);
    a single echo is reported twice."""
    LAST_BESIDE_STRONGEST = 3
    """Beside a return that reports the strongest echo: the last, or the second strongest where the strongest is the last; a single echo is reported once
    (Cepton's SDK 1 manual)."""
    SECOND_STRONGEST = 4
    """The second strongest echo; none where there is one alone (an Ouster's second return is 0 then)."""


class ReturnType(IntEnum):
    """Type of a return among a firing's echoes; in single return modes always the configured one, of the first return ``STRONGEST``."""

    STRONGEST = 0
    LAST = 1
    BOTH = 2
    """In dual return mode: the strongest echo, which is also the last."""
    SECOND_STRONGEST = 3
    """In dual return mode: the second strongest echo, beside a last echo that is the strongest."""


_STRONGEST, _LAST, _LAST_BESIDE_STRONGEST = constant(EchoChoice.STRONGEST), constant(EchoChoice.LAST), constant(EchoChoice.LAST_BESIDE_STRONGEST)
_SECOND_STRONGEST, _FIRST = constant(EchoChoice.SECOND_STRONGEST), constant(EchoChoice.FIRST)
_STRONGEST_BESIDE_FIRST = constant(EchoChoice.STRONGEST_BESIDE_FIRST)
_IS_STRONGEST, _IS_LAST = constant(ReturnType.STRONGEST), constant(ReturnType.LAST)
_IS_BOTH, _IS_SECOND = constant(ReturnType.BOTH), constant(ReturnType.SECOND_STRONGEST)
_DETECTION = constant(Purpose.DETECTION)
_ROOT_HALF = math.sqrt(0.5)
CERTAIN_SIGMAS = 9.0
"""Number of standard deviations beyond which the probability rounds to 1 in float64."""


RANGE, ENERGY, COSINE, RETRO = 0, 1, 2, 3
"""Columns of ``Hits.value``."""
RAY, INSTANCE, TRIANGLE, ECHO = 0, 1, 2, 3
"""Columns of ``Hits.what``."""
ECHO_RANGE, ECHO_ENERGY, ECHO_RETRO, ECHO_CODE = 0, 1, 2, 3
"""Columns of the array of echoes: range (m), energy, share of retro-reflectors, distance code of the packet."""
ECHO_COLUMNS = 4
SEVERAL = 2
"""Result of ``sole_echo``: the firing has two or more echoes."""

MIRRORED = 1 << 5
"""Bit of the column ``RAY`` of a hit that a mirror shows; the bits below it number the sub-ray."""
WEATHER_RAY, FALSE_ALARM_RAY, INTERFERENCE_RAY = -1, -2, -4
"""Values of the column ``RAY`` for echoes of weather, for false alarms, and for light of the rig's other sensors: the negatives of ``truth.Cause``."""
BACKGROUND_ALONE, BACKGROUND_CHOSEN = -2, -3
"""Values of the column ``INSTANCE`` for a captured background: with no synthetic surface behind it, and chosen in front of a synthetic surface."""


class Hits(NamedTuple):
    """Surfaces that each of ``f`` firings hit: up to ``m`` hits each, in any order.

    Attributes:
        hit_count: ``int32[f]``, number of hits.
        value: ``float64[f, m, 4]``: range (m), normalised energy, cosine of the incidence, 1 for a retro-reflector.
        what: ``int32[f, m, 4]``: sub-ray (negative for weather and false alarms), instance (-1 for no surface; negative for a captured background too),
            triangle (-1 for no surface), and echo
            that it became part of, nearest first (-1 for none).
        flaw: ``float64[f]``, share of the light that is lost at a flaw of the surface that the beam's axis meets; 0 for no flaw.
    """

    hit_count: npt.NDArray[np.int32]
    value: npt.NDArray[np.float64]
    what: npt.NDArray[np.int32]
    flaw: npt.NDArray[np.float64]


def allocate_hits(firings: int, most: int) -> Hits:
    """Allocate arrays for ``firings`` firings of up to ``most`` hits, all empty."""
    return Hits(
        hit_count=np.zeros(firings, np.int32),
        value=np.zeros((firings, most, 4)),
        what=np.zeros((firings, most, 4), np.int32),
        flaw=np.zeros(firings),
    )


@borrowing_kernel
def _sort_hits(hit_count: int, value: npt.NDArray[np.float64], what: npt.NDArray[np.int32], firing: int) -> None:
    """Sort a firing's hits by range, then by sub-ray; arguments as in ``group_echoes``."""
    for end in range(1, hit_count):
        at = end
        while at > 0 and (
            value[firing, at, RANGE] < value[firing, at - 1, RANGE]
            or (value[firing, at, RANGE] == value[firing, at - 1, RANGE] and what[firing, at, RAY] < what[firing, at - 1, RAY])
        ):
            for column in range(4):
                value[firing, at, column], value[firing, at - 1, column] = value[firing, at - 1, column], value[firing, at, column]
                what[firing, at, column], what[firing, at - 1, column] = what[firing, at - 1, column], what[firing, at, column]
            at -= 1


@inlined_kernel
def sole_echo(
    hit_count: int, value: npt.NDArray[np.float64], what: npt.NDArray[np.int32], firing: int, merge_distance_m: float
) -> tuple[int, float, float, float]:
    """Echo of a firing whose hits all make one; arguments as in ``group_echoes``.

    Returns:
        Number of echoes (0, 1 or ``SEVERAL``), then sums over all hits: energy times range, energy, and energy of retro-reflectors.
    """
    nearest_m, farthest_m, energy, moment, retro = np.inf, -np.inf, 0.0, 0.0, 0.0
    for at in range(hit_count):
        hit_m, of_hit = value[firing, at, RANGE], value[firing, at, ENERGY]
        is_lit = of_hit > 0.0
        nearest_m, farthest_m = min(nearest_m, hit_m) if is_lit else nearest_m, max(farthest_m, hit_m) if is_lit else farthest_m
        what[firing, at, ECHO] = 0 if is_lit else -1
        of_hit = max(of_hit, 0.0)
        energy += of_hit
        moment += of_hit * hit_m
        retro += of_hit * value[firing, at, RETRO]
    found = 0 if energy <= 0.0 else 1 if farthest_m - nearest_m < merge_distance_m else SEVERAL
    return found, moment, energy, retro


@borrowing_kernel
def group_echoes(
    hit_count: int, value: npt.NDArray[np.float64], what: npt.NDArray[np.int32], firing: int, merge_distance_m: float, echoes: npt.NDArray[np.float64]
) -> int:
    """Group a firing's hits into echoes, nearest first; returns the number of echoes.

    In order of range (ties: lower sub-ray first) a hit joins the previous echo if it is nearer than ``merge_distance_m`` to that echo's energy-weighted
    centre so far. Hits that all lie within that distance are one echo in any order; this is the usual case, and only
    the others are sorted.

    Args:
        hit_count: Number of hits of this firing.
        value: ``Hits.value``; sorted where the firing has several echoes.
        what: ``Hits.what``, in the same order; the column ``ECHO`` is written.
        firing: Row of the firing.
        merge_distance_m: Smallest distance between two echoes.
        echoes: ``float64[m, 4]``, written except for the code: range (energy-weighted mean), energy (sum), share of retro-reflectors.
    """
    found, moment, total, retro = sole_echo(hit_count, value, what, firing, merge_distance_m)
    if found == 1:
        echoes[0, ECHO_RANGE], echoes[0, ECHO_ENERGY], echoes[0, ECHO_RETRO] = moment / total, total, retro / total
    if found < SEVERAL:
        return found
    _sort_hits(hit_count, value, what, firing)
    found = 0
    moment = retro = total = 0.0
    for at in range(hit_count):
        energy = value[firing, at, ENERGY]
        if energy <= 0.0:
            what[firing, at, ECHO] = -1
            continue
        range_m = value[firing, at, RANGE]
        if found == 0 or range_m - echoes[found - 1, ECHO_RANGE] >= merge_distance_m:
            found += 1
            moment = retro = total = 0.0
        what[firing, at, ECHO] = found - 1
        total += energy
        moment += energy * range_m
        retro += energy * value[firing, at, RETRO]
        echoes[found - 1, ECHO_RANGE] = moment / total
        echoes[found - 1, ECHO_ENERGY] = total
        echoes[found - 1, ECHO_RETRO] = retro / total
    return found


@borrowing_kernel
def detection_probability(energy: float, threshold_energy: float, noise_ratio: float) -> float:
    """Probability that an echo passes the threshold: Gaussian noise of ``threshold_energy / noise_ratio``; a hard threshold where the ratio is 0."""
    if noise_ratio <= 0.0 or threshold_energy <= 0.0:
        return 1.0 if energy >= threshold_energy else 0.0
    if noise_ratio * (energy / threshold_energy - 1.0) > CERTAIN_SIGMAS:
        return 1.0
    return 0.5 * math.erfc(-noise_ratio * (energy / threshold_energy - 1.0) * _ROOT_HALF)


@borrowing_kernel
def is_detected(energy: float, threshold_energy: float, noise_ratio: float, seed: np.uint64, stream: int, index: int) -> bool:
    """Whether an echo passes the threshold; a random number is drawn only where the result is uncertain."""
    probability = detection_probability(energy, threshold_energy, noise_ratio)
    if probability >= 1.0 - 1e-15:
        return True
    if probability <= 1e-15:
        return False
    return uniform(seed, stream, index, _DETECTION) < probability


@borrowing_kernel
def strongest_echo(echoes: npt.NDArray[np.float64], kept: npt.NDArray[np.int64], count: int, but: int) -> int:
    """Strongest echo among ``kept[:count]`` except ``but``, the nearer of equals; -1 where there is none."""
    best = -1
    for at in range(count):
        echo = kept[at]
        if echo != but and (best < 0 or echoes[echo, ECHO_ENERGY] > echoes[best, ECHO_ENERGY]):
            best = echo
    return int(best)


@borrowing_kernel
def chosen_echo(echoes: npt.NDArray[np.float64], kept: npt.NDArray[np.int64], count: int, choice: int) -> int:
    """Echo that a return reports, -1 for none.

    Args:
        echoes: Echoes of ``group_echoes``.
        kept: Detected echoes, nearest first.
        count: Number of detected echoes.
        choice: An ``EchoChoice``.
    """
    if count == 0:
        return -1
    last = int(kept[count - 1])
    if choice in (_FIRST, _LAST):
        return last if choice == _LAST else int(kept[0])
    strongest = strongest_echo(echoes, kept, count, -1)
    if choice == _STRONGEST:
        return strongest
    if choice == _SECOND_STRONGEST or (choice == _LAST_BESIDE_STRONGEST and last == strongest):
        return strongest_echo(echoes, kept, count, strongest)
    if choice == _LAST_BESIDE_STRONGEST:
        return last
    beside = int(kept[0]) if choice == _STRONGEST_BESIDE_FIRST else last
    return strongest_echo(echoes, kept, count, beside) if strongest == beside and count > 1 else strongest


@borrowing_kernel
def return_type(choices: npt.NDArray[np.int64], return_number: int, hits: Hits, firing: int, echo: int, other: int) -> int:
    """``ReturnType`` of a return.

    Args:
        choices: ``int64[r]``, an ``EchoChoice`` for each return of a firing.
        return_number: Number of the return.
        hits: Hits after ``group_echoes``.
        firing: Row of ``hits``.
        echo: Echo that the return reports.
        other: Echo that the other return of a pair reports; -1 for none.
    """
    choice = choices[return_number]
    if choices.size == 1:
        return _IS_LAST if choice == _LAST else _IS_STRONGEST
    if echo == other or other < 0:
        return _IS_BOTH
    if choice == _STRONGEST:
        return _IS_BOTH if echo > other else _IS_STRONGEST
    if choice in (_SECOND_STRONGEST, _LAST_BESIDE_STRONGEST):
        return _IS_SECOND if other > echo or choice == _SECOND_STRONGEST else _IS_LAST
    energy, energy_beside = _echo_energy(hits, firing, echo), _echo_energy(hits, firing, other)
    if choice == _LAST:
        return _IS_BOTH if energy > energy_beside else _IS_LAST
    return _IS_SECOND if energy_beside > energy else _IS_STRONGEST


@borrowing_kernel
def _echo_energy(hits: Hits, firing: int, echo: int) -> float:
    """Energy of an echo, summed as in ``group_echoes``."""
    energy = 0.0
    for at in range(hits.hit_count[firing]):
        if hits.what[firing, at, ECHO] == echo:
            energy += hits.value[firing, at, ENERGY]
    return energy


@inlined_kernel
def mark(hits: Hits, firing: int, at: int, ray: int) -> None:
    """Mark a hit as made by no surface."""
    hits.value[firing, at, COSINE] = 1.0
    hits.value[firing, at, RETRO] = 0.0
    hits.what[firing, at, RAY] = ray
    hits.what[firing, at, INSTANCE] = -1
    hits.what[firing, at, TRIANGLE] = -1
