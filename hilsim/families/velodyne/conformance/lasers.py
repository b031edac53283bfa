"""Rules for lasers: whether each laser measures, measures itself, and has the right place among its neighbours."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.conformance.blocks import DataBlock
from hilsim.families.velodyne.protocol.data import RECORDS_PER_BLOCK
from hilsim.families.velodyne.protocol.models import BY_NAME, Model
from hilsim.families.velodyne.protocol.steps import wrapped_cdeg
from hilsim.read.analysis.conformance.findings import FindingLog, Rule, Severity

DEAD = Rule(id="returns.dead_laser", severity=Severity.WARNING, packets=84)
CONSTANT = Rule(id="returns.constant_laser", severity=Severity.ERROR, packets=10)
REFLECTIVITY = Rule(id="returns.laser_reflectivity", severity=Severity.ERROR, packets=10)
ORDER = Rule(id="returns.laser_order", severity=Severity.ERROR, packets=50)

_MIN_FIRINGS = 2000
_MIN_RETURNS = 200
_LONGEST_RUN = 200
_INNER_SHARE, _OUTER_SHARE = 0.1, 0.25  # shares of its neighbours' firings with a return from which a silent laser is reported
_MIN_PAIRS = 200  # pairs of returns of two lasers in one firing sequence
_MIN_SHARED = 0.25  # of the returns of either; common returns of a laser into the sky and one to the ground are random
_MIN_LASERS = 8
_MAX_FIRINGS = 4096  # largest number of compared firings of a block
_MAX_PAIRS = _MAX_FIRINGS * 32 * 32  # largest number of compared pairs of returns of a block: a VLS-128 has sixteen times as many as an HDL-32E
_MIN_REFLECTIVITY = 3  # rain, fog and snow return less, at random places; 4 to 15 % of the returns of the captures
_MIN_SHARE = 0.1  # share of a laser's firings with a return from which its reflectivities are judged; a rainy sky has fewer returns, all with 0
_SAME = 0.99  # share of a laser's returns with one reflectivity; its neighbours' shares of their most frequent one are lower
_MAX_ALIKE = 0.8
_MIN_CONTRAST = 1.5  # mean difference of all pairs over that of the most similar ones; below this, all orders look alike
_MAX_MISPLACED = 0.25  # 0: smoothest order, 1: a random one; captures 0.00 to 0.11, random orders of their lasers 0.41 and more in 99 of 100
_MAX_MISPLACED_BY_FEW = 0.5  # used if no lasers share a quarter of their returns: the others may see one surface by chance
_MIN_DIFFERENCE = 0.02
_MAX_RESTLESS = 0.6
_FAR = np.float32(1e3)  # logarithm of a range that no record has
_SLOWEST_CDEG = 1.0  # per firing: a head that turns slower does not reach another laser's direction
_MAX_ASIDE_CDEG = 50.0  # direction that a delayed firing may be off; farther is on the other side of a part of the turn without firings


class _Arrangement(NamedTuple):
    """Directions of a model's lasers.

    Attributes:
        order: Lasers from the lowest to the highest.
        ahead_deg: Azimuth of each laser ahead of the block's azimuth.
    """

    order: tuple[int, ...]
    ahead_deg: tuple[float, ...]


def arrangement_of(model: Model) -> _Arrangement | None:
    """Directions of a model's lasers, or None for a model of which only the stream's form is judged."""
    if model.name not in BY_NAME:
        return None
    return _Arrangement(model.geometry.elevation_order, model.geometry.azimuth_offset_deg)


class LasersTopic:
    """Counts by laser, and differences between the measurements of two lasers."""

    def __init__(self) -> None:
        self._begin(None)

    def _begin(self, model: Model | None) -> None:
        self._model = model
        self._firings = 0
        lasers = model.channels if model else 0
        self._returns = np.zeros(lasers, dtype=np.int64)
        self._bytes = np.zeros((lasers, 256), dtype=np.int64)
        self._last = np.zeros(lasers, dtype=np.int64)  # distance of each laser's last return
        self._run = np.zeros(lasers, dtype=np.int64)  # number of consecutive equal distances
        self._longest = np.zeros((lasers, 2), dtype=np.int64)  # longest run and its distance
        self._unlike = np.zeros((2, lasers, lasers))  # sum and number of differences of pairs of lasers
        self._restless = np.zeros(2)  # sum and number of differences of each laser's neighbouring firings

    def look(self, block: DataBlock) -> None:
        """Count one block."""
        model = block.model
        if self._model is not model:  # the model is known and constant after a few packets
            self._begin(model)
        every = 2 if block.is_dual else 1
        distance = block.distance[:, ::every].reshape(-1, model.channels)
        reflectivity = block.reflectivity[:, ::every].reshape(-1, model.channels)
        has = distance > 0
        self._firings += len(distance)
        self._returns += has.sum(axis=0)
        keyed = np.arange(model.channels) * 256 + reflectivity
        self._bytes += np.bincount(keyed[has], minlength=model.channels * 256).reshape(model.channels, 256)
        for laser in range(model.channels):
            self._count_runs(laser, distance[has[:, laser], laser].astype(np.int64))
        self._compare(block, np.where(reflectivity >= _MIN_REFLECTIVITY, distance, 0))

    def _count_runs(self, laser: int, distance: npt.NDArray[np.int64]) -> None:
        if not len(distance):
            return
        changes = np.flatnonzero(np.diff(distance)) + 1
        starts = np.concatenate(([0], changes))
        runs = np.diff(starts, append=len(distance))
        if distance[0] == self._last[laser]:
            runs[0] += self._run[laser]
        longest = int(runs.argmax())
        if runs[longest] > self._longest[laser, 0]:
            self._longest[laser] = runs[longest], distance[starts[longest]]
        self._last[laser], self._run[laser] = distance[-1], runs[-1]

    def _compare(self, block: DataBlock, distance: npt.NDArray[np.uint16]) -> None:
        """Add differences of lasers in one direction, as logarithms of ranges, at most 1; ``distance`` has no returns from weather."""
        arrangement = arrangement_of(block.model)
        if arrangement is None or len(distance) < 2:
            return
        channels = block.model.channels
        range_ = np.log(np.where(distance > 0, distance, np.nan).astype(np.float32))
        step = np.minimum(np.abs(np.diff(range_[: 2 * _MAX_FIRINGS], axis=0)), 1.0)
        self._restless += (np.nansum(step), np.isfinite(step).sum())
        firings = RECORDS_PER_BLOCK * len(block.model.flags) // channels  # firing sequences for each azimuth
        per_firing_cdeg = float(np.median(block.motion.step_cdeg)) / firings
        chosen = np.arange(0, len(range_), max(1, len(range_) // _MAX_FIRINGS, len(range_) * channels * channels // _MAX_PAIRS))
        if per_firing_cdeg > _SLOWEST_CDEG:
            late = np.rint(100.0 * np.array(arrangement.ahead_deg) / per_firing_cdeg).astype(np.int64)
            azimuth = (block.azimuth[:, :, np.newaxis] + per_firing_cdeg * np.arange(firings)).ravel()
            few = _delayed(range_, late, chosen, azimuth, per_firing_cdeg)
        else:
            few = range_[chosen]
        self._unlike += _differences(few)

    def conclude(self, log: FindingLog) -> None:
        """Judge the whole stream."""
        model = self._model
        if model is None:
            return
        known, arrangement = self._returns >= _MIN_RETURNS, arrangement_of(model)
        log.applies((CONSTANT, REFLECTIVITY), int(self._returns.max()), _MIN_RETURNS, "returns of a laser")
        for laser in np.flatnonzero(known).tolist():
            self._conclude_constant(laser, model, log)
            self._conclude_reflectivity(laser, arrangement, log)
        if arrangement is None:
            return
        if log.applies(DEAD, self._firings, _MIN_FIRINGS, "firings of a laser"):
            self._conclude_dead(np.array(arrangement.order), log)
        if log.applies(ORDER, self._firings, 24 * ORDER.packets, "firings of a laser"):
            self._conclude_order(np.array(arrangement.order), log)

    def _conclude_constant(self, laser: int, model: Model, log: FindingLog) -> None:
        length, raw = self._longest[laser].tolist()
        if length >= _LONGEST_RUN:
            log.report(CONSTANT, f"laser {laser} must measure with noise, got {raw * model.distance_unit_mm / 1000:.3f} m {length} times in a row")

    def _conclude_reflectivity(self, laser: int, arrangement: _Arrangement | None, log: FindingLog) -> None:
        """Judge one laser's reflectivities by those of its neighbours, which have the same scene and weather."""
        returns, value = int(self._returns[laser]), int(self._bytes[laser].argmax())
        is_alone = self._bytes.sum(axis=0).max() < _SAME * self._returns.sum()  # another rule reports equal values of all lasers
        if not is_alone or self._bytes[laser, value] <= _SAME * returns or returns < _MIN_SHARE * self._firings:
            return
        sides = self._sides(laser, arrangement)
        alike = [float(self._bytes[side, value] / self._returns[side]) for side in sides]
        commonest = [float(self._bytes[side].max() / self._returns[side]) for side in sides]
        is_extreme = value in {0, 255} and max(alike, default=0.0) < _MAX_ALIKE
        is_amid = len(sides) == 2 and max(commonest) < _MAX_ALIKE  # the lowest and the highest laser may see only one surface
        if is_extreme or is_amid:
            severity = Severity.ERROR if value == 0 else Severity.WARNING
            log.report(
                REFLECTIVITY,
                f"laser {laser} must return other reflectivities too, got {value} in all but 1 % of {returns} returns",
                severity=severity,
            )

    def _sides(self, laser: int, arrangement: _Arrangement | None) -> list[int]:
        """Nearest lasers below and above with enough returns to be compared; none if the lasers' directions are unknown."""
        if arrangement is None:
            return []
        known = [other for other in arrangement.order if other == laser or self._returns[other] >= _MIN_RETURNS]
        place = known.index(laser)
        return [*known[max(place - 1, 0) : place], *known[place + 1 : place + 2]]

    def _conclude_dead(self, order: npt.NDArray[np.int64], log: FindingLog) -> None:
        share = self._returns[order] / self._firings
        alive = np.flatnonzero(share > 0.0)
        if not len(alive):
            log.report(DEAD, f"no laser returned anything in {self._firings} firings: is the sensor covered?")
        for place in np.flatnonzero(share == 0.0).tolist():
            below, above = alive[alive < place], alive[alive > place]
            sides = [share[side] for side in (*below[-1:], *above[:1])]
            least = _INNER_SHARE if len(sides) == 2 else _OUTER_SHARE
            if sides and min(sides) >= least:
                shares = " and ".join(f"{100 * side:.0f} %" for side in sides)
                log.report(DEAD, f"laser {order[place]} returned nothing in {self._firings} firings, its neighbours by elevation in {shares} of them")

    def _conclude_order(self, order: npt.NDArray[np.int64], log: FindingLog) -> None:
        sums, counts = self._unlike
        known = counts >= _MIN_PAIRS
        np.fill_diagonal(known, val=False)
        lasers = np.flatnonzero(known.any(axis=1))
        if not log.applies(ORDER, len(lasers), _MIN_LASERS, "lasers that return often enough"):
            return
        unlike = np.where(known, sums / np.maximum(counts, 1), np.nan)
        usual, smoothest = float(np.nanmean(unlike)), _smoothest(unlike, lasers)
        if usual < _MIN_DIFFERENCE:
            return
        restless = float(self._restless[0] / max(self._restless[1], 1.0))
        if restless > _MAX_RESTLESS * usual:
            log.report(
                ORDER,
                f"a laser must measure alike from firing to firing, got a mean difference of {100 * restless:.1f} % against {100 * usual:.1f} % between lasers",
            )
        elif usual >= _MIN_CONTRAST * smoothest:
            misplaced = _roughness(unlike, order, smoothest, usual)
            if misplaced > (_MAX_MISPLACED if _is_misplaced_where_shared(unlike, counts, order) else _MAX_MISPLACED_BY_FEW):
                by_record = _roughness(unlike, np.arange(len(order)), smoothest, usual)
                seems = "they seem sorted by elevation" if by_record < _MAX_MISPLACED else "they seem to differ from the manual's"
                log.report(
                    ORDER,
                    f"lasers that are neighbours by elevation must measure alike, got a mean difference of {100 * (smoothest + misplaced * (usual - smoothest)):.1f} %"
                    f" against {100 * usual:.1f} % between any two, and {100 * smoothest:.1f} % possible: {seems}",
                )


def _delayed(
    values: npt.NDArray[np.float32],
    late: npt.NDArray[np.int64],
    chosen: npt.NDArray[np.int64],
    azimuth: npt.NDArray[np.float64],
    per_firing_cdeg: float,
) -> npt.NDArray[np.float32]:
    """Values ``float32[n, lasers]`` delayed by each laser's number of firings, ``float32[m, lasers]`` for the ``m`` chosen firings.

    NaN where the head has not turned meanwhile as it does between firings. Many lasers of a model look equally far ahead.
    """
    found = np.empty((len(chosen), values.shape[1]), np.float32)
    for by in np.unique(late):
        lasers, before = np.flatnonzero(late == by), (chosen - by) % len(azimuth)
        off = wrapped_cdeg(azimuth[chosen] - azimuth[before] - by * per_firing_cdeg)
        is_seen = np.abs(off) <= _MAX_ASIDE_CDEG
        found[:, lasers] = np.where(is_seen[:, np.newaxis], values[before[:, np.newaxis], lasers], np.float32(np.nan))
    return found


def _differences(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Sum and number of differences, at most 1, of each pair of lasers that both have a value: ``float64[2, lasers, lasers]`` of ``float32[n, lasers]``.

    A missing value counts as one that is far from every other, so that each pair with one value adds 1, and those ones are subtracted.
    """
    is_there = np.ascontiguousarray(np.isfinite(values).T)
    filled = np.where(is_there, values.T, _FAR)
    sums, both = np.empty((2, len(filled), len(filled)))
    for laser, mine in enumerate(filled):
        sums[laser] = np.minimum(np.abs(filled - mine), np.float32(1.0)).sum(axis=1)
        both[laser] = np.count_nonzero(is_there & is_there[laser], axis=1)
    alone = np.diag(both)[:, np.newaxis] + np.diag(both) - 2.0 * both
    return np.stack((sums - alone, both))


def _is_misplaced_where_shared(unlike: npt.NDArray[np.float64], counts: npt.NDArray[np.float64], order: npt.NDArray[np.int64]) -> bool:
    """Whether lasers that often return together are also out of order; False for too few of them."""
    returns = np.diag(counts)
    shared = np.where(counts >= _MIN_SHARED * np.maximum(returns, returns[:, np.newaxis]), unlike, np.nan)
    lasers = np.flatnonzero(np.isfinite(shared).any(axis=1))
    if len(lasers) < _MIN_LASERS:
        return False
    usual, smoothest = float(np.nanmean(shared)), _smoothest(shared, lasers)
    return usual >= _MIN_CONTRAST * smoothest and _roughness(shared, order, smoothest, usual) > _MAX_MISPLACED


def _roughness(unlike: npt.NDArray[np.float64], order: npt.NDArray[np.int64], smoothest: float, usual: float) -> float:
    """Mean difference of neighbours in an order: 0 for the least possible, 1 for that of any two lasers."""
    neighbours = unlike[order[:-1], order[1:]]
    return (float(np.nanmean(neighbours)) - smoothest) / (usual - smoothest) if np.isfinite(neighbours).any() else 0.0


def _smoothest(unlike: npt.NDArray[np.float64], lasers: npt.NDArray[np.int64]) -> float:
    """Mean difference along the minimum spanning tree of all lasers, a lower bound for every order (Prim's algorithm)."""
    nearest = np.where(np.isnan(unlike[lasers[0]]), np.inf, unlike[lasers[0]])
    waiting = set(lasers[1:].tolist())
    steps = []
    while waiting:
        laser = min(waiting, key=lambda candidate: float(nearest[candidate]))
        waiting.remove(laser)
        if np.isfinite(nearest[laser]):
            steps.append(float(nearest[laser]))
        nearest = np.fmin(nearest, unlike[laser])
    return float(np.mean(steps))
