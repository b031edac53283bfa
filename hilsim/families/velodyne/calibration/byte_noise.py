"""Noise of the reflectivity byte and of the range, from turn to turn of a still sensor."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.calibration.cells import Visits
from hilsim.families.velodyne.calibration.figures import Learned, Rows
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.sensor.response import build_response, noise_sd_m
from hilsim.sensor.signal.signal import RIPPLE_SEQUENCES, ripple

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
BYTE_EDGES = np.array([0.0, 1.5, 3.5, 6.5, 10.5, 15.5, 20.5, 30.5, 40.5, 55.5, 70.5, 85.5, 98.5])
_DARK_EDGES = BYTE_EDGES[:5]
MIN_PAIRS = 300
"""Pairs of a range of bytes at which the standard deviation of a step is known within 5 %."""
_MAX_CELLS = 1 << 32
_SAME_RANGE_M = 0.05
_EVEN_BYTES, _EVEN_RATIO = 2.0, 0.1
"""Change of the mean byte over two cells of a surface: noise of a short capture, and texture."""
_CLIPS, _CLIP_SD = 4, 4.0
_MIN_CLIP = 1.7
"""Bytes of a laser come in steps of up to 3.3, most of them equal on dark surfaces: a limit of 4 times this keeps two steps."""
_MIN_CLIP_M = 0.002


@dataclass(frozen=True, kw_only=True)
class Repeats(Rows):
    """Returns of directions that are visited again at the same range, in the order of laser, direction and azimuth: a surface changes within 0.05 deg."""

    laser: Annotated[Ints, "``int64[n]``, number of the laser."]
    cell: Annotated[Ints, "``int64[n]``, number of the direction."]
    byte: Annotated[Ints, "``int64[n]``, reflectivity byte."]
    follows: Annotated[npt.NDArray[np.bool_], "``bool[n]``, whether the return before it is of the same direction and range; the two are a pair."]
    mean: Annotated[Doubles, "``float64[n]``, mean byte of the direction."]
    range_m: Annotated[Doubles, "``float64[n]``, range by the packet."]

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return int(self.follows.sum())

    @property
    def change(self) -> Doubles:
        """Change of the byte of each pair, ``float64[pairs]``."""
        return np.asarray(np.diff(self.byte, prepend=0)[self.follows], np.float64)

    def of_laser(self, laser: int) -> "Repeats":
        """Returns of one laser."""
        return self.chosen(self.laser == laser)

    def rows(self, edges: Doubles = BYTE_EDGES) -> Iterator["Repeats"]:
        """Yield the returns of each range of mean bytes that has enough pairs."""
        row = np.digitize(self.mean, edges) - 1
        for number in range(edges.size - 1):
            of_row = self.chosen(row == number)
            if of_row.pairs >= MIN_PAIRS:
                yield of_row

    def sd(self) -> float:
        """Standard deviation of the byte."""
        return _sd(self.change, _MIN_CLIP)

    def range_sd_m(self) -> float:
        """Standard deviation of the range."""
        return _sd(np.diff(self.range_m, prepend=0.0)[self.follows], _MIN_CLIP_M)


def _sd(change: Doubles, least: float) -> float:
    """Standard deviation of what changes from turn to turn, without far values, as of people who pass."""
    sd = max(1.4826 * float(np.median(np.abs(change))), least)
    for _ in range(_CLIPS):
        kept = change[np.abs(change) <= _CLIP_SD * max(sd, least)]
        sd = float(np.sqrt(np.mean(kept**2)))
    return sd / float(np.sqrt(2.0))


def repeats_of(visits: Sequence[Visits]) -> Repeats:
    """Returns of several recordings that are parts of pairs.

    The mean is that of the direction, not of the one pair, which would put large and small steps of one surface into different rows. Directions whose
    neighbours on either side have other bytes lie at the border of two surfaces, of which different turns meet different shares; they are left out.
    """
    return Repeats.joined([_repeats_of(part, number) for number, part in enumerate(visits)])


def _repeats_of(visits: Visits, number: int) -> Repeats:
    size = (int(visits.cell.max(initial=0)) // visits.cells + 1) * visits.cells
    with np.errstate(invalid="ignore"):
        mean = np.bincount(visits.cell, visits.reflectivity, size) / np.bincount(visits.cell, minlength=size)
    of_laser = mean.reshape(-1, visits.cells)
    change = np.abs(np.roll(of_laser, 1, axis=1) - np.roll(of_laser, -1, axis=1)).ravel()
    is_even = change <= _EVEN_BYTES + _EVEN_RATIO * mean  # False beside a cell without a return
    order = np.lexsort((visits.azimuth_rad, visits.cell))
    cell, range_m, byte = visits.cell[order], visits.range_m[order], visits.reflectivity[order]
    follows = (np.diff(cell, prepend=-1) == 0) & (np.abs(np.diff(range_m, prepend=0.0)) <= _SAME_RANGE_M) & is_even[cell]
    is_part = follows | np.append(follows[1:], False)
    cell = cell[is_part]
    return Repeats(
        laser=cell // visits.cells,
        cell=cell + number * _MAX_CELLS,
        byte=byte[is_part],
        follows=follows[is_part],
        mean=mean[cell],
        range_m=range_m[is_part],
    )


def learn_byte_noise(repeats: Repeats, learned: Learned) -> None:
    """Learn the standard deviation of the byte of all lasers together."""
    rows = list(repeats.rows())
    if not rows:
        reason = f"at least {MIN_PAIRS} pairs of returns of one direction and range are needed, got {repeats.pairs}"
        learned.lack("byte_noise", reason, repeats.pairs)
        return
    points = [[round(float(row.mean.mean()), 2), round(row.sd(), 3)] for row in rows]
    learned.keys["byte_noise"] = points
    text = ", ".join(f"{sd:.2f} at {byte:.0f}" for byte, sd in points)
    learned.add("byte_noise", text, sum(row.pairs for row in rows), note="standard deviation by byte, from turn to turn")


def without_ripple(visits: Sequence[Visits], learned: Learned) -> list[Visits]:
    """Learn the amplitude of the ranges' ripple, and take the ripple off."""
    ripples_m = [_ripple_m(part) for part in visits]
    amplitude_m = float(np.sqrt(np.mean(np.concatenate(ripples_m) ** 2) / np.mean(ripple(1.0, 1, 0.0) ** 2)))
    learned.keys["ripple_m"] = round(amplitude_m, 5)
    learned.add("ripple_m", f"{1000.0 * amplitude_m:.1f} mm", sum(part.cell.size for part in visits))
    return [replace(part, range_m=part.range_m - of_part[_phase(part)]) for part, of_part in zip(visits, ripples_m, strict=True)]


def _phase(visits: Visits) -> Ints:
    return np.asarray((visits.sequence - visits.cell // visits.cells) % RIPPLE_SEQUENCES, np.int64)


def _ripple_m(visits: Visits) -> Doubles:
    """Range error by phase, ``float64[5]``, by least squares about the unknown range of each direction: a few turns meet it in few phases."""
    count = np.maximum(np.bincount(visits.cell), 1)

    def about_mean(value: Doubles) -> Doubles:
        return np.asarray(value - (np.bincount(visits.cell, value) / count)[visits.cell], np.float64)

    error = about_mean(visits.range_m)
    is_near = np.abs(error) <= _SAME_RANGE_M
    phases = np.stack([about_mean((_phase(visits) == phase).astype(np.float64)) for phase in range(RIPPLE_SEQUENCES)], axis=1)[is_near]
    of_phase = np.linalg.lstsq(phases.T @ phases, phases.T @ error[is_near], rcond=None)[0]
    return np.asarray(of_phase - of_phase.mean(), np.float64)


def learn_range_noise(repeats: Repeats, spec: VelodyneSpec, learned: Learned) -> None:
    """Learn the white noise of all lasers' ranges, relative to the model's, where it is largest."""
    rows, response = list(repeats.rows(_DARK_EDGES)), build_response(spec, seed=0, stream=0)
    if not rows:
        learned.lack("range_noise_ratio", f"at least {MIN_PAIRS} pairs of returns of one direction and range are needed at dark bytes", repeats.pairs)
        return
    ratios = []
    for row in rows:
        range_m = float(row.range_m.mean())
        ratios.append(row.range_sd_m() / noise_sd_m(response, row.mean.mean() / (100.0 * range_m**2), range_m))
    learned.keys["range_noise_ratio"] = round(float(np.median(ratios)), 3)
    text = ", ".join(f"{ratio:.2f} at {row.mean.mean():.0f}" for ratio, row in zip(ratios, rows, strict=True))
    note = "by byte, relative to the model's, from turn to turn; the median is taken"
    learned.add("range_noise_ratio", text, sum(row.pairs for row in rows), note=note)
