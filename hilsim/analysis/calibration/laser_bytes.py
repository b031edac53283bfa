"""Step between the bytes of each laser, and the noise of its bytes."""

from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from hilsim.analysis.calibration.byte_noise import BYTE_EDGES, FEWEST_PAIRS, Repeats
from hilsim.analysis.calibration.figures import Learned
from hilsim.analysis.calibration.recording import Firings
from hilsim.sensor.signal.own_bytes import reported_repeats, reported_sd

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
BYTES = 256
_NEIGHBOURS = 4
"""Bytes on either side of one, among which a laser with steps of up to 4 reports at least one."""
_FEWEST_RETURNS = 20
_FEWEST_JUDGED = 12
_ABSENT_SHARE, _PRESENT_SHARE = 0.05, 0.3
_WHITE, _LAST_BYTE = 100, 97
"""Byte 100 holds all that is brighter, and none is between it and the step below."""
_STEPS = np.arange(1000, 4001) / 1000.0
_FAULT = 0.05
_DOUBT_NATS = 4.0
_MOST_MISFITS = 0.08
_DOUBT = 0.1
_REPEATS, _BRIGHT = 1.5, 20.0
"""Most that bytes may repeat more often than a step explains, among bright ones: dark ones repeat anyway."""
_LEAST_RATIO = 0.25
"""Least noise in steps that is learned: with less, how often a byte changes is a matter of where the surfaces lie between two bytes."""
_QUANTILES = (np.arange(48) + 0.5) / 48.0
_MOST_CELLS, _PLACES, _PASSES = 200, 8, 3
_STRAY = 1e-4
"""Share of returns with any byte, as of people who pass."""
_LEAST_NOISE, _TOLERANCE = 0.1, 0.01
_NORMAL = np.linspace(-7.0, 7.0, 1401)
_CUMULATIVE = np.array([NormalDist().cdf(place) for place in _NORMAL.tolist()])


def _reported(step: float) -> npt.NDArray[np.bool_]:
    """Bytes that a laser with a step reports, ``bool[256]``."""
    reported = np.zeros(BYTES, np.bool_)
    reported[np.floor(np.arange(BYTES / step) * step + 0.5).astype(np.int64).clip(0, BYTES - 1)] = True
    return reported


def _middle(is_best: npt.NDArray[np.bool_]) -> float:
    """Middle of the longest run of steps that are best: the mean of several runs may lie in none."""
    begin = np.flatnonzero(np.diff(is_best, prepend=False) & is_best)
    stop = np.flatnonzero(np.diff(is_best, append=False) & is_best) + 1
    longest = int(np.argmax(stop - begin))
    return float(_STEPS[begin[longest] : stop[longest]].mean())


def find_step(counts: Ints) -> tuple[float, float, str]:
    """Find the step between a laser's bytes from those that occur and those that never do.

    A byte is judged by the most frequent bytes up to four below and up to four above it, by the rarer one of these two: it occurs with at least 0.3 of its
    returns, and never with at most 0.05. Steps that explain all judged bytes, but for a chance of 0.05 each, are likely. All likely steps must be alike.

    Args:
        counts: ``int64[256]``, returns by byte.

    Returns:
        The step, its doubt, and the reason why it is not known; empty: it is.
    """
    near = np.array(
        [min(counts[max(byte - _NEIGHBOURS, 0) : byte].max(initial=0), counts[byte + 1 :][:_NEIGHBOURS].max(initial=0)) for byte in range(BYTES)]
    )
    near[[0, *range(_LAST_BYTE + 1, BYTES)]] = 0
    is_absent = (near >= _FEWEST_RETURNS) & (counts <= _ABSENT_SHARE * near)
    is_present = (near >= _FEWEST_RETURNS) & (counts >= _PRESENT_SHARE * near)
    judged = int(is_absent.sum() + is_present.sum())
    if judged < _FEWEST_JUDGED:
        return 1.0, np.inf, f"{_FEWEST_JUDGED} bytes with {_FEWEST_RETURNS} returns on both sides are needed, got {judged}"
    reported = np.array([_reported(step) for step in _STEPS])
    misfits = (reported & is_absent).sum(axis=1) + (~reported & is_present).sum(axis=1)
    score = misfits * np.log(_FAULT) + (judged - misfits) * np.log(1.0 - _FAULT)
    least = int(misfits.min())
    if least > _MOST_MISFITS * judged:
        return 1.0, np.inf, f"its bytes do not lie in equal steps: {least} of {judged} bytes do not fit the best one"
    likely = _STEPS[score >= score.max() - _DOUBT_NATS]
    doubt = 0.5 * float(likely[-1] - likely[0])
    if doubt > _DOUBT:
        return 1.0, doubt, f"steps of {likely[0]:.2f} to {likely[-1]:.2f} explain its bytes"
    return _middle(misfits == least), doubt, ""


def _edges(step: float) -> Doubles:
    """Edges of ranges of bytes, moved to the borders between a laser's bytes: a direction reports both bytes beside a border, and belongs to neither."""
    border = (np.unique(np.round(BYTE_EDGES / step - 0.5)) + 0.5) * step
    return np.asarray(_reported_mean(border, step), np.float64)


def _reported_mean(value: Doubles, step: float) -> Doubles:
    """Mean byte of reflectivities with much noise: between two steps, between their bytes."""
    number = np.arange(np.ceil(BYTES / step) + 1.0)
    return np.interp(value, number * step, np.floor(number * step + 0.5))


def _counts(row: Repeats) -> Ints:
    """Returns by byte of directions, ``int64[n, 256]``: of evenly chosen ones where there are many."""
    cells, place = np.unique(row.cell, return_inverse=True)
    counts = np.bincount(place * BYTES + row.byte, minlength=cells.size * BYTES).reshape(-1, BYTES)
    return counts[:: max(1, -(-cells.size // _MOST_CELLS))]


def _probability(value: Doubles, noise: float, step: float) -> Doubles:
    """Probability of each byte that a laser reports of reflectivities, ``float64[n, 256]``."""
    number = np.arange(np.ceil(BYTES / step))
    below = np.interp(((number + 0.5) * step - value[:, None]) / noise, _NORMAL, _CUMULATIVE)
    byte = np.floor(number * step + 0.5).clip(0, _WHITE).astype(np.int64)
    probability = np.zeros((value.size, BYTES))
    np.add.at(probability.T, byte, np.diff(below, prepend=0.0, axis=1).T)
    return np.asarray((1.0 - _STRAY) * probability + _STRAY / BYTES)


def noise_of(row: Repeats, step: float) -> float:
    """Noise before the rounding to a laser's step that makes the bytes of a row likeliest.

    The reflectivity of each direction is not known: it lies anywhere within the row, at first all places alike, then as the directions themselves suggest.
    How often a direction reports which byte says where it lies and how large the noise is.
    """
    counts = _counts(row)
    places = np.arange(max(row.mean.min() - step, 0.0), row.mean.max() + step, step / _PLACES)
    seen = np.flatnonzero(counts.any(axis=0))
    counts = counts[:, seen].astype(np.float64)

    def cost(log_noise: float) -> float:
        likelihood = counts @ np.log(_probability(places, float(np.exp(log_noise)), step)[:, seen]).T
        most = likelihood.max(axis=1)
        relative, share = np.exp(likelihood - most[:, None]), np.full(places.size, 1.0 / places.size)
        for _ in range(_PASSES):
            of_direction = relative * share
            share = (of_direction / of_direction.sum(axis=1, keepdims=True)).mean(axis=0)
        return -float((most + np.log(relative @ share)).sum())

    return float(np.exp(_least(cost, np.log(_LEAST_NOISE), np.log(2.0 * row.sd() + step))))


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


def _repeats_too_often(row: Repeats, step: float) -> str:
    """The reason why a step does not explain how often a laser's byte is that of the turn before; empty: it does."""
    of_rows = [(part.pairs, part.mean, part.sd()) for part in row.rows(_edges(step))]
    if not of_rows:
        return f"{FEWEST_PAIRS} pairs of returns of one direction and range are needed in a range of bytes above {_BRIGHT:g}, got {row.pairs} in all"
    seen = float((row.change == 0.0).mean())
    shares = [reported_repeats(np.quantile(mean, _QUANTILES), max(sd**2 - step**2 / 12.0, 0.0) ** 0.5, step).mean() for _, mean, sd in of_rows]
    expected = float(np.average(shares, weights=[pairs for pairs, *_ in of_rows]))
    if seen <= _REPEATS * expected:
        return ""
    return (
        f"its byte is that of the turn before in {100.0 * seen:.0f} % of pairs above {_BRIGHT:g}, steps of {step:.2f} make {100.0 * expected:.0f} %"
    )


def learn_laser_bytes(firings: Sequence[Firings], repeats: Repeats, learned: Learned) -> None:
    """Learn the step between the bytes of each laser, and the standard deviation of its byte from turn to turn.

    Args:
        firings: Firings of the recordings.
        repeats: Returns of all recordings that are parts of pairs.
        learned: The keys and figures of the unit, which get more.
    """
    counts = [_returns_by_byte(firings, laser) for laser in range(firings[0].distance.shape[1])]
    of_lasers = [repeats.of_laser(laser) for laser in range(len(counts))]
    _learn_steps(counts, of_lasers, learned)
    _learn_noise(of_lasers, learned)


def _returns_by_byte(firings: Sequence[Firings], laser: int) -> Ints:
    counts = np.zeros(BYTES, np.int64)
    for part in firings:
        is_return = (part.distance[:, laser] > 0) & part.is_single[:, laser]
        counts += np.bincount(part.reflectivity[is_return, laser], minlength=BYTES)
    return counts


def _learn_steps(counts: Sequence[Ints], of_lasers: Sequence[Repeats], learned: Learned) -> None:
    known, reasons = [], []
    for laser, (of_laser, repeats) in enumerate(zip(counts, of_lasers, strict=True)):
        step, _, reason = find_step(of_laser)
        reason = reason or _repeats_too_often(repeats.chosen(repeats.mean >= _BRIGHT), step)
        if reason:
            reasons.append(f"{laser}: {reason}")
            continue
        known.append(laser)
        learned.lasers[laser]["byte_step"] = round(step, 3)
    lacking = "; ".join(reasons)
    if not known:
        learned.lack("laser.byte_step", f"by laser: {lacking}", int(sum(of_laser.sum() for of_laser in counts)))
        return
    steps = [learned.lasers[laser]["byte_step"] for laser in known]
    note = f"{len(reasons)} lasers not learned: {lacking}" if reasons else ""
    learned.add("laser.byte_step", " ".join(f"{step:.2f}" for step in steps), int(sum(counts[laser].sum() for laser in known)), note=note)


def _learn_noise(of_lasers: Sequence[Repeats], learned: Learned) -> None:
    unknown, samples, rows = [], 0, []
    for laser, repeats in enumerate(of_lasers):
        step = learned.lasers[laser].get("byte_step")
        points = [(row.pairs, point) for row in _rows(repeats, step) if (point := _point(row, step)) is not None]
        if points:
            learned.lasers[laser]["byte_noise"] = [point for _, point in points]
            rows.append(len(points))
            samples += sum(pairs for pairs, _ in points)
        else:
            unknown.append(str(laser))
    needed = (
        f"{FEWEST_PAIRS} pairs of returns of one direction and range are needed in a range of bytes, with noise above {_LEAST_RATIO} of a known step"
    )
    if not rows:
        learned.lack("laser.byte_noise", needed, sum(repeats.pairs for repeats in of_lasers))
        return
    note = f"{len(unknown)} lasers not learned, {', '.join(unknown)}: {needed}" if unknown else ""
    learned.add("laser.byte_noise", f"{len(rows)} lasers, {min(rows)} to {max(rows)} ranges of bytes each", samples, note=note)


def _rows(repeats: Repeats, step: float | None) -> Iterator[Repeats]:
    return repeats.rows(BYTE_EDGES if step is None else _edges(step))


def _point(row: Repeats, step: float | None) -> list[float] | None:
    """Mean byte of a row and the standard deviation there; with a known step that of surfaces which lie anywhere between the laser's bytes.

    None where the noise is too small beside the step.
    """
    byte = round(float(row.mean.mean()), 2)
    if step is None:
        return [byte, round(row.sd(), 3)]
    noise = noise_of(row, step)
    if noise < _LEAST_RATIO * step:
        return None
    return [byte, round(reported_sd(byte, noise, step), 3)]
