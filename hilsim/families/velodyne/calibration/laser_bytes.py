"""Bytes that each laser reports, and their noise."""

from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.calibration.byte_noise import BYTE_EDGES, MIN_PAIRS, Repeats
from hilsim.families.velodyne.calibration.figures import Learned
from hilsim.families.velodyne.calibration.recording import Firings
from hilsim.sensor.signal.own_bytes import Columns, columns_of, reported_sd

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
BYTES = 256
_BYTES_PER_STEP, _LARGEST_STEP = 15, 6
"""Steps that are considered are 1 below byte 15, at most 2 below 30, and so on: of dark bytes, a gap is one between two surfaces."""
_MIN_RETURNS = 20
_MIN_JUDGED = 12
_ABSENT_SHARE, _BETWEEN_SHARE = 0.1, 0.05
"""Most returns of a byte that is not reported, in shares of those beside it; and most returns of bytes between two surfaces, in shares of the surfaces'."""
_WHITE, _LAST_BYTE = 100, 97
"""Byte 100 holds all that is brighter, and none is between it and the step below."""
_MIN_RATIO = 0.25
"""Least noise in steps that is learned: with less, how often a byte changes is a matter of where the surfaces lie between two bytes."""
_MAX_CELLS, _PLACES, _PASSES = 200, 8, 3
_STRAY = 0.05
"""Share of returns with any byte: people pass, and a real laser has more noise at some places than at others."""
_MIN_NOISE, _TOLERANCE = 0.1, 0.01
_NORMAL = np.linspace(-7.0, 7.0, 1401)
_CUMULATIVE = np.array([NormalDist().cdf(place) for place in _NORMAL.tolist()])


def find_bytes(counts: Ints) -> tuple[list[int], list[int], str]:
    """Find the bytes that a laser reports, and those between them that it does not.

    A byte is judged by the most frequent bytes below and above it that may be a step apart, by the rarer one of these two: with at most a tenth of its returns
    it is not reported. Few of a real laser's returns have such bytes.

    Args:
        counts: ``int64[256]``, returns by byte.

    Returns:
        Bytes that are reported, bytes that are not, and the reason why they are not known; empty: they are.
    """
    near = np.array([_returns_beside(counts, byte) for byte in range(BYTES)])
    most = np.array([counts[max(byte - _LARGEST_STEP, 0) : byte + _LARGEST_STEP + 1].max() for byte in range(BYTES)])
    judged = near >= np.maximum(_MIN_RETURNS, _BETWEEN_SHARE * most)
    if judged.sum() < _MIN_JUDGED:
        return [], [], f"{_MIN_JUDGED} bytes with {_MIN_RETURNS} returns on both sides are needed, got {judged.sum()}"
    is_missing = judged & (counts <= _ABSENT_SHARE * near)
    is_reported = ~is_missing & (counts >= _MIN_RETURNS) & (np.arange(BYTES) <= _LAST_BYTE)
    return np.flatnonzero(is_reported).tolist(), np.flatnonzero(is_missing).tolist(), ""


def _returns_beside(counts: Ints, byte: int) -> int:
    """Returns of the rarer one of two bytes on either side of one, the most frequent pair that may be a step apart; 0 at the ends of the scale."""
    if not 0 < byte <= _LAST_BYTE:
        return 0
    most = min(1 + byte // _BYTES_PER_STEP, _LARGEST_STEP)
    pairs = ((byte - below, byte - below + step) for step in range(2, most + 1) for below in range(1, min(step, byte + 1)))
    return max((min(int(counts[low]), int(counts[high])) for low, high in pairs), default=min(int(counts[byte - 1]), int(counts[byte + 1])))


def _levels(columns: Columns) -> Ints:
    return np.unique(columns // 2).astype(np.int64)


def _borders(columns: Columns) -> Doubles:
    """Reflectivities between the bytes that a laser reports."""
    levels = _levels(columns)
    return np.asarray(0.5 * (levels[1:] + levels[:-1]), np.float64)


def _edges(columns: Columns) -> Doubles:
    """Edges of ranges of bytes, moved to the borders between a laser's bytes: a direction reports both bytes beside a border, and belongs to neither."""
    borders = _borders(columns)
    return np.unique(borders[np.abs(borders[:, None] - BYTE_EDGES).argmin(axis=0)])


def _step(columns: Columns, low: float, high: float) -> float:
    """Mean step between a laser's bytes where they are between two reflectivities."""
    levels = _levels(columns)
    return (high - low + 1.0) / max(int(((levels >= low - 0.5) & (levels <= high + 0.5)).sum()), 1)


def _counts(row: Repeats) -> Ints:
    """Returns by byte of directions, ``int64[n, 256]``: of evenly chosen ones where there are many."""
    cells, place = np.unique(row.cell, return_inverse=True)
    counts = np.bincount(place * BYTES + row.byte, minlength=cells.size * BYTES).reshape(-1, BYTES)
    return counts[:: max(1, -(-cells.size // _MAX_CELLS))]


def _probability(value: Doubles, noise: float, columns: Columns) -> Doubles:
    """Probability of each byte that a laser reports of reflectivities, ``float64[n, 256]``."""
    below = np.interp((_borders(columns) - value[:, None]) / noise, _NORMAL, _CUMULATIVE)
    probability = np.zeros((value.size, BYTES))
    np.add.at(probability.T, _levels(columns).clip(0, _WHITE), np.diff(below, prepend=0.0, append=1.0, axis=1).T)
    return np.asarray((1.0 - _STRAY) * probability + _STRAY / BYTES)


def noise_of(row: Repeats, columns: Columns) -> float:
    """Noise, before it becomes one of the bytes that a laser reports, that makes the bytes of a row likeliest.

    The reflectivity of each direction is not known: it lies anywhere within the row, at first all places alike, then as the directions themselves suggest.
    How often a direction reports which byte says where it lies and how large the noise is.
    """
    counts = _counts(row)
    step = _step(columns, row.mean.min(), row.mean.max())
    places = np.arange(max(row.mean.min() - step, 0.0), row.mean.max() + step, step / _PLACES)
    seen = np.flatnonzero(counts.any(axis=0))
    counts = counts[:, seen].astype(np.float64)

    def cost(log_noise: float) -> float:
        likelihood = counts @ np.log(_probability(places, float(np.exp(log_noise)), columns)[:, seen]).T
        most = likelihood.max(axis=1)
        relative, share = np.exp(likelihood - most[:, None]), np.full(places.size, 1.0 / places.size)
        for _ in range(_PASSES):
            of_direction = relative * share
            share = (of_direction / of_direction.sum(axis=1, keepdims=True)).mean(axis=0)
        return -float((most + np.log(relative @ share)).sum())

    return float(np.exp(_least(cost, np.log(_MIN_NOISE), np.log(2.0 * row.sd() + step))))


def _least(cost: Callable[[float], float], low: float, high: float) -> float:
    """Place of the minimum of a function with one minimum, by the golden section."""
    golden = 0.5 * (5.0**0.5 - 1.0)
    left, right = high - golden * (high - low), low + golden * (high - low)
    of_left, of_right = cost(left), cost(right)
    while high - low > _TOLERANCE:
        if of_left < of_right:
            high, right, of_right = right, left, of_left
            left = high - golden * (high - low)
            of_left = cost(left)
        else:
            low, left, of_left = left, right, of_right
            right = low + golden * (high - low)
            of_right = cost(right)
    return 0.5 * (low + high)


def learn_laser_bytes(firings: Sequence[Firings], repeats: Repeats, learned: Learned) -> None:
    """Learn the bytes that each laser reports, and the standard deviation of its byte from turn to turn.

    Args:
        firings: Firings of the recordings.
        repeats: Returns of all recordings that are parts of pairs.
        learned: The keys and figures of the unit, which get more.
    """
    counts = np.sum([part.byte_counts(part.distance > 0) for part in firings], axis=0)
    of_lasers = [repeats.of_laser(laser) for laser in range(len(counts))]
    _learn_bytes(counts, learned)
    _learn_noise(of_lasers, learned)


def _learn_bytes(counts: Ints, learned: Learned) -> None:
    known, reasons, absent = [], [], 0
    for laser, of_laser in enumerate(counts):
        reported, missing, reason = find_bytes(of_laser)
        if reason:
            reasons.append(f"{laser}: {reason}")
            continue
        known.append(laser)
        absent += len(missing)
        learned.lasers[laser]["reported_bytes"] = reported
        learned.lasers[laser]["missing_bytes"] = missing
    lacking = "; ".join(reasons)
    if not known:
        learned.lack("laser.reported_bytes", f"by laser: {lacking}", int(counts.sum()))
        return
    text = f"{len(known)} lasers, {absent} bytes that they do not report between others"
    note = f"{len(reasons)} lasers not learned: {lacking}" if reasons else ""
    learned.add("laser.reported_bytes", text, int(counts[known].sum()), note=note)


def _learn_noise(of_lasers: Sequence[Repeats], learned: Learned) -> None:
    unknown, samples, rows = [], 0, []
    for laser, repeats in enumerate(of_lasers):
        points = [(row.pairs, point) for row, point in _points(repeats, learned.lasers[laser].get("missing_bytes"))]
        if points:
            learned.lasers[laser]["byte_noise"] = [point for _, point in points]
            rows.append(len(points))
            samples += sum(pairs for pairs, _ in points)
        else:
            unknown.append(str(laser))
    needed = (
        f"{MIN_PAIRS} pairs of returns of one direction and range are needed in a range of bytes, with noise above {_MIN_RATIO} of the step between "
        "the laser's bytes"
    )
    if not rows:
        learned.lack("laser.byte_noise", needed, sum(repeats.pairs for repeats in of_lasers))
        return
    note = f"{len(unknown)} lasers not learned, {', '.join(unknown)}: {needed}" if unknown else ""
    learned.add("laser.byte_noise", f"{len(rows)} lasers, {min(rows)} to {max(rows)} ranges of bytes each", samples, note=note)


def _points(repeats: Repeats, missing: Sequence[int] | None) -> Iterator[tuple[Repeats, list[float]]]:
    """Ranges of bytes, each with its mean byte and the standard deviation there: with known bytes that of surfaces which lie anywhere between these.

    A range where the noise is too small beside the step between known bytes is left out.
    """
    if missing is None:
        yield from ((row, [round(float(row.mean.mean()), 2), round(row.sd(), 3)]) for row in repeats.rows())
        return
    columns = columns_of((), missing)
    for row in repeats.rows(_edges(columns)):
        byte, noise = round(float(row.mean.mean()), 2), noise_of(row, columns)
        if noise >= _MIN_RATIO * _step(columns, row.mean.min(), row.mean.max()):
            yield row, [byte, round(reported_sd(byte, noise, columns), 3)]
