"""Bytes that each laser reports, and their noise."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.calibration.byte_noise import BYTE_EDGES, MIN_PAIRS, Repeats
from hilsim.families.velodyne.calibration.figures import Learned
from hilsim.families.velodyne.calibration.recording import Firings
from hilsim.sensor.signal.own_bytes import Columns, columns_of, reported_sd
from hilsim.sensor.signal.signal import BYTES, reported_columns

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_MIN_RETURNS = 25
"""Returns of a byte and of the next one, if all bytes were as wide, that the edge between them needs."""
_MIN_EDGES = 12
_SMOOTH = 1.4
"""Least noise, in bytes: with 0.7, the noise of known lasers is learned up to 31 % too large on dark surfaces."""
_RARE = 0.25
"""Width, in bytes, below which a byte is rarely reported."""
_LAST_BYTE, _ROUNDS = 97, 100
"""Byte 100 holds all that is brighter, and none is between it and the step below. More rounds change nothing."""
_SPANS = 16
_WHITE = 100
_MIN_RATIO = 0.25
"""Least noise in steps that is learned: with less, how often a byte changes is a matter of where the surfaces lie between two bytes."""
_MAX_CELLS, _PLACES, _PASSES = 200, 8, 3
_STRAY = 0.05
"""Share of returns with any byte: people pass, and a real laser has more noise at some places than at others."""
_MIN_NOISE, _TOLERANCE = 0.1, 0.01
_ALL_BYTES = reported_columns(np.ones((1, BYTES), np.bool_))[:, 0]
_NORMAL = np.linspace(-7.0, 7.0, 1401)
_CUMULATIVE = np.array([NormalDist().cdf(place) for place in _NORMAL.tolist()])


def find_edges(counts: Ints, noise: Doubles) -> list[tuple[int, float]]:
    """Find the reflectivities up to which a laser reports each byte.

    A code density test of the receiver's differential nonlinearity. Noise lets no histogram of reflectivities change as much from a byte to the next as one of
    bytes with unequal widths. So the likeliest histogram that noise permits (Richardson-Lucy) is taken for that of reflectivities, and an edge lies where as many
    returns are below it as in bytes.

    Args:
        counts: ``int64[256]``, returns by byte.
        noise: ``float64[256]``, standard deviation of the byte by the byte.

    Returns:
        ``LaserUnitSpec.byte_edges``; empty: they are not known.
    """
    byte = np.arange(float(BYTES))
    seen = np.where(byte <= _LAST_BYTE, counts, 0).astype(np.float64) + 1e-6
    spread = np.exp(-0.5 * ((byte[:, None] - byte) / np.maximum(noise, _MIN_NOISE)) ** 2)
    spread /= spread.sum(axis=0)
    even = spread @ seen
    for _ in range(_ROUNDS):
        even *= spread.T @ (seen / (spread @ even))
    even = spread @ even
    edges = np.interp(np.cumsum(seen), np.cumsum(even), byte + 0.5)
    is_known = (even >= _MIN_RETURNS) & (np.append(even[1:], 0.0) >= _MIN_RETURNS) & (noise >= _SMOOTH) & (byte < _LAST_BYTE - 3.0 * noise)
    known = np.flatnonzero(is_known) if is_known.sum() >= _MIN_EDGES else np.empty(0, np.int64)
    return [(int(at), round(float(edge), 2)) for at, edge in zip(known, np.maximum.accumulate(edges[known]), strict=True)]


def find_edges_by_range(counts: Ints, noise: Doubles) -> list[tuple[int, float]]:
    """``find_edges`` where the byte's steps lie elsewhere at another range: each edge by the returns of the narrow span of ranges with the most of them.

    Args:
        counts: ``int64[r, 256]``, returns by span of ranges and byte.
        noise: As of ``find_edges``.
    """
    edges: dict[int, float] = {}
    returns = counts.sum(axis=1)
    for span in np.argsort(returns)[-_SPANS:]:
        if returns[span] >= _MIN_EDGES * _MIN_RETURNS:
            edges |= dict(find_edges(counts[span], noise))
    known = sorted(edges)
    return [(byte, edge) for byte, edge in zip(known, np.maximum.accumulate([edges[byte] for byte in known]).tolist(), strict=True)]


def _levels(columns: Columns) -> Ints:
    return np.unique(columns // 2).astype(np.int64)


def _borders(columns: Columns) -> Doubles:
    """Reflectivities between the bytes that a laser reports."""
    return np.asarray(0.5 * (np.flatnonzero(np.diff(columns // 2)) + 1), np.float64)


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
    counts = np.sum([part.byte_counts_by_range() for part in firings], axis=0)
    of_lasers = [repeats.of_laser(laser) for laser in range(counts.shape[1])]
    _learn_bytes(counts, of_lasers, learned)
    _learn_noise(of_lasers, learned)


def _learn_bytes(counts: Ints, of_lasers: Sequence[Repeats], learned: Learned) -> None:
    of_unit = learned.keys.get("byte_noise")
    if of_unit is None:
        learned.lack("laser.byte_edges", "byte_noise must be known", int(counts.sum()))
        return
    known, unknown = [], []
    widths: list[float] = []
    for laser, (of_laser, repeats) in enumerate(zip(counts.swapaxes(0, 1), of_lasers, strict=True)):
        curve = [(row.mean.mean(), row.sd()) for row in repeats.rows()] or of_unit
        edges = find_edges_by_range(of_laser, np.interp(np.arange(BYTES), *np.array(curve).T))
        if not edges:
            unknown.append(str(laser))
            continue
        known.append(laser)
        widths.extend(edge - last for (before, last), (byte, edge) in pairwise(edges) if byte == before + 1)
        learned.lasers[laser]["byte_edges"] = [[byte, edge] for byte, edge in edges]
    needed = f"{_MIN_EDGES} bytes with {_MIN_RETURNS} returns of each and of the next at ranges within 4 % are needed"
    if not known:
        learned.lack("laser.byte_edges", needed, int(counts.sum()))
        return
    text = f"{len(known)} lasers, {len(widths)} bytes, {sum(width < _RARE for width in widths)} of which they rarely report"
    note = f"{len(unknown)} lasers not learned, {', '.join(unknown)}: {needed}" if unknown else ""
    learned.add("laser.byte_edges", text, int(counts[:, known].sum()), note=note)


def _learn_noise(of_lasers: Sequence[Repeats], learned: Learned) -> None:
    unknown, samples, rows = [], 0, []
    for laser, repeats in enumerate(of_lasers):
        points = [(row.pairs, point) for row, point in _points(repeats, learned.lasers[laser].get("byte_edges", []))]
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


def _points(repeats: Repeats, edges: Sequence[tuple[int, float]]) -> Iterator[tuple[Repeats, list[float]]]:
    """Ranges of bytes, each with its mean byte and the standard deviation there: with known bytes that of surfaces which lie anywhere between these.

    A range where the noise is too small beside the step between known bytes is left out.
    """
    if not edges:
        yield from ((row, [round(float(row.mean.mean()), 2), round(row.sd(), 3)]) for row in repeats.rows())
        return
    columns = columns_of(edges, _ALL_BYTES)
    for row in repeats.rows(_edges(columns)):
        byte, noise = round(float(row.mean.mean()), 2), noise_of(row, columns)
        if noise >= _MIN_RATIO * _step(columns, row.mean.min(), row.mean.max()):
            yield row, [byte, round(reported_sd(byte, noise, columns), 3)]
