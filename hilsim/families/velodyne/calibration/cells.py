"""Firings of a still sensor by direction: a cell of each laser for each small step of azimuth, which every turn visits."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from hilsim.errors import CaptureError
from hilsim.families.velodyne.calibration.recording import MIN_TURNS, Firings, Recording
from hilsim.units import RAD_PER_CDEG, TURN_CDEG

_CELL_CDEG = 20
_STILL_M, _STILL_RATIO = 0.08, 0.01
_STILL_SHARE = 0.6
_MIN_CELLS = 500
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Visits:
    """Returns in the order of laser, cell and time."""

    cell: Annotated[npt.NDArray[np.int64], "``int64[n]``, laser times the number of cells of a turn, plus the cell."]
    range_m: Annotated[Doubles, "``float64[n]``, range by the packet."]
    reflectivity: Annotated[npt.NDArray[np.int64], "``int64[n]``, byte."]
    azimuth_rad: Annotated[Doubles, "``float64[n]``, azimuth."]
    sequence: Annotated[npt.NDArray[np.int64], "``int64[n]``, number of the firing sequence in the recording."]
    cells: Annotated[int, "Number of cells of a turn."]


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Means of the returns in cells, ``float64[c, k]`` each; NaN where there are too few, or where they differ from turn to turn."""

    range_m: Annotated[Doubles, "Mean range."]
    azimuth_rad: Annotated[Doubles, "Mean azimuth."]
    reflectivity: Annotated[Doubles, "Mean byte."]
    visits: Annotated[npt.NDArray[np.int64], "Number of returns."]


def turns_of(recording: Recording) -> float:
    """Number of turns that a recording covers, by its stamps and the usual step of its azimuth."""
    flat = recording.azimuth.ravel()
    step = np.diff(flat) % TURN_CDEG
    return float(np.median(step)) * recording.duration_s * 1e6 / recording.group_us / TURN_CDEG


def visits_of(recording: Recording, firings: Firings, range_codes: npt.NDArray[np.int64]) -> Visits:
    """Sort the returns of a recording by direction.

    Args:
        recording: The recording.
        firings: Its firings.
        range_codes: ``int64[c, 256]``, correction of the distance by laser and byte, which is taken off.

    Raises:
        CaptureError: the recording has fewer than two turns, or the sensor moved.
    """
    turns = turns_of(recording)
    if turns < MIN_TURNS:
        raise CaptureError(f"{recording.name}: must cover at least {MIN_TURNS:g} turns of the head, got {turns:.2f}")
    step_cdeg = turns * TURN_CDEG / (recording.duration_s * 1e6) * recording.model.sequence_ns / 1000.0
    width_cdeg = _CELL_CDEG * max(1, int(np.ceil(step_cdeg / _CELL_CDEG - 0.05)))
    cells, lasers = TURN_CDEG // width_cdeg, recording.model.channels
    place = (firings.azimuth_cdeg / width_cdeg).astype(np.int64) % cells + np.arange(lasers) * cells
    chosen = (firings.is_single & (firings.distance > 0)).T
    cell = place.T[chosen]
    order = np.argsort(cell, kind="stable")
    reflectivity = firings.reflectivity.T[chosen][order].astype(np.int64)
    distance = firings.distance.T[chosen][order].astype(np.int64) - range_codes[cell[order] // cells, reflectivity]
    visits = Visits(
        cell=cell[order],
        range_m=distance * recording.model.distance_unit_mm / 1000.0,
        reflectivity=reflectivity,
        azimuth_rad=firings.azimuth_cdeg.T[chosen][order] * RAD_PER_CDEG,
        sequence=np.nonzero(chosen)[1][order],
        cells=cells,
    )
    _check_still(visits, recording.name)
    return visits


def _check_still(visits: Visits, name: str) -> None:
    """Refuse a recording whose cells do not show the same range at its beginning and at its end."""
    first = np.flatnonzero(np.diff(visits.cell, prepend=-1))
    last = np.append(first[1:], visits.cell.size) - 1
    pairs = first < last
    if pairs.sum() < _MIN_CELLS:
        raise CaptureError(f"{name}: at least {_MIN_CELLS} directions must have a return in two turns, got {int(pairs.sum())}")
    begin, end = visits.range_m[first[pairs]], visits.range_m[last[pairs]]
    share = float((np.abs(end - begin) <= _STILL_M + _STILL_RATIO * begin).mean())
    if share < _STILL_SHARE:
        raise CaptureError(
            f"{name}: the sensor must stand still: at least {100 * _STILL_SHARE:g} % of its directions must show the same range at the beginning and at the end, "
            f"got {100 * share:.0f} %"
        )


def cells_of(visits: Visits, lasers: int, *, scatter_m: float = 0.04) -> Cells:
    """Average the returns of each cell.

    Args:
        visits: Returns by direction.
        lasers: Number of lasers.
        scatter_m: Largest standard deviation of the ranges in a cell that is used.
    """
    size = lasers * visits.cells
    count = np.bincount(visits.cell, minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        range_m = np.bincount(visits.cell, visits.range_m, size) / count
        deviation = visits.range_m - range_m[visits.cell]
        scatter = np.sqrt(np.bincount(visits.cell, deviation**2, size) / count)
        middle = ((np.arange(size) % visits.cells) + 0.5) * 2.0 * np.pi / visits.cells
        off = (visits.azimuth_rad - middle[visits.cell] + np.pi) % (2.0 * np.pi) - np.pi
        azimuth = middle + np.bincount(visits.cell, off, size) / count
        reflectivity = np.bincount(visits.cell, visits.reflectivity, size) / count
    is_used = (count >= 2) & (scatter <= scatter_m)
    shape = (lasers, visits.cells)
    return Cells(
        range_m=np.where(is_used, range_m, np.nan).reshape(shape),
        azimuth_rad=np.where(is_used, azimuth, np.nan).reshape(shape),
        reflectivity=np.where(is_used, reflectivity, np.nan).reshape(shape),
        visits=np.where(is_used, count, 0).reshape(shape),
    )
