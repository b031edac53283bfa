"""Errors of each laser, from planes: a common fit of the planes, of the lasers' ranges and of their directions.

What no plane shows is not learned: the mean of all range errors (it moves all walls), the mean of all azimuth errors (it turns the room). Each error has an
expectation of 0 with the standard deviations below; where the planes do not tell more than that, the fit's own standard deviation stays large, and the
error is reported as not learned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.calibration.figures import Learned
from hilsim.families.velodyne.calibration.surfaces import Rays, find_planes

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_PRIOR_M, _PRIOR_RAD = 0.03, np.radians(0.05)
_BIAS_DOUBT_M, _ANGLE_DOUBT_RAD = 0.002, np.radians(0.012)
_PASSES = 8
_TUKEY = 4.685
_MIN_NOISE_M = 0.0005
_CORRELATED = 10.0
"""Cells that count as one sample: errors of a wall are alike in neighbouring cells."""
_MEAN_WEIGHT = 1e-6


@dataclass(frozen=True, kw_only=True)
class LaserErrors:
    """Errors of lasers, ``float64[c]`` each, with their standard deviations."""

    bias_m: Annotated[Doubles, "Range errors, with a mean of 0."]
    elevation_rad: Annotated[Doubles, "Errors of elevation."]
    azimuth_rad: Annotated[Doubles, "Errors of azimuth, with a mean of 0."]
    bias_sd_m: Annotated[Doubles, "Standard deviation of the range errors."]
    elevation_sd_rad: Annotated[Doubles, "Standard deviation of the elevation errors."]
    azimuth_sd_rad: Annotated[Doubles, "Standard deviation of the azimuth errors."]
    cells: Annotated[Ints, "``int64[c]``, cells on planes."]
    noise_m: Annotated[float, "Scatter of the cells about the planes."]


def fit_lasers(planes: Sequence[Rays], lasers: int) -> LaserErrors:
    """Fit planes and errors of lasers together.

    Args:
        planes: Rays on each plane.
        lasers: Number of lasers.
    """
    plane = np.repeat(np.arange(len(planes)), [on.laser.size for on in planes])
    on = Rays.joined(planes)
    slope = np.stack(
        [np.linalg.lstsq(on.points_m()[plane == number], np.ones((plane == number).sum()), rcond=None)[0] for number in range(len(planes))]
    )
    errors = np.zeros((3, lasers))
    weight = np.ones(plane.size)
    noise_m, covariance = _MIN_NOISE_M, np.zeros((1, 1))
    for _ in range(_PASSES):
        jacobian, residual = _linear(on, plane, slope, errors)
        noise_m = max(1.4826 * float(np.median(np.abs(residual))), _MIN_NOISE_M)
        far = np.clip(np.abs(residual) / (_TUKEY * noise_m), 0.0, 1.0)
        weight = (1.0 - far**2) ** 2
        step, covariance = _solved(jacobian, residual, weight, noise_m, errors, 3 * len(planes))
        slope = slope + step[: 3 * len(planes)].reshape(-1, 3)
        errors = errors + step[3 * len(planes) :].reshape(3, lasers)
    sd = np.sqrt(np.diag(covariance))[3 * len(planes) :].reshape(3, lasers)
    return LaserErrors(
        bias_m=errors[0],
        elevation_rad=errors[1],
        azimuth_rad=errors[2],
        bias_sd_m=sd[0],
        elevation_sd_rad=sd[1],
        azimuth_sd_rad=sd[2],
        cells=np.bincount(on.laser, weight > 0.1, minlength=lasers).astype(np.int64),
        noise_m=noise_m,
    )


def _linear(on: Rays, plane: Ints, slope: Doubles, errors: Doubles) -> tuple[Doubles, Doubles]:
    """Derivatives of the measured range, and its excess over what planes and errors give.

    A plane is the points p with ``slope @ p == 1``.
    """
    lasers, planes = errors.shape[1], slope.shape[0]
    elevation, azimuth = on.elevation_rad + errors[1][on.laser], on.azimuth_rad + errors[2][on.laser]
    sine, cosine, rise, level = np.sin(azimuth), np.cos(azimuth), np.sin(elevation), np.cos(elevation)
    ahead = np.stack([level * sine, level * cosine, rise], axis=1)
    up = np.stack([-rise * sine, -rise * cosine, level], axis=1)
    right = np.stack([level * cosine, -level * sine, np.zeros_like(sine)], axis=1)
    of_plane = slope[plane]
    towards = np.einsum("ij,ij->i", of_plane, ahead)
    range_m = (1.0 - np.einsum("ij,ij->i", of_plane, on.origin_m)) / towards
    jacobian = np.zeros((on.laser.size, 3 * planes + 3 * lasers))
    row = np.arange(on.laser.size)
    for axis in range(3):
        jacobian[row, 3 * plane + axis] = -(on.origin_m + range_m[:, None] * ahead)[:, axis] / towards
    jacobian[row, 3 * planes + on.laser] = 1.0
    jacobian[row, 3 * planes + lasers + on.laser] = -range_m * np.einsum("ij,ij->i", of_plane, up) / towards
    jacobian[row, 3 * planes + 2 * lasers + on.laser] = -range_m * np.einsum("ij,ij->i", of_plane, right) / towards
    return jacobian, on.range_m - range_m - errors[0][on.laser]


def _solved(jacobian: Doubles, residual: Doubles, weight: Doubles, noise_m: float, errors: Doubles, planes: int) -> tuple[Doubles, Doubles]:
    """Step of the fit, and its covariance."""
    lasers = errors.shape[1]
    share = weight / (_CORRELATED * noise_m**2)
    normal = jacobian.T @ (jacobian * share[:, None])
    right = jacobian.T @ (residual * share)
    for kind, prior in enumerate((_PRIOR_M, _PRIOR_RAD, _PRIOR_RAD)):
        at = planes + kind * lasers + np.arange(lasers)
        normal[at, at] += prior**-2
        right[at] -= errors[kind] * prior**-2
        if kind != 1:  # no plane shows the mean
            normal[np.ix_(at, at)] += 1.0 / (lasers * prior) ** 2 / _MEAN_WEIGHT
            right[at] -= errors[kind].sum() / (lasers * prior) ** 2 / _MEAN_WEIGHT
    scale = 1.0 / np.sqrt(np.diag(normal))
    inverse = scale[:, None] * np.linalg.pinv(normal * scale[:, None] * scale) * scale
    return inverse @ right, inverse


def learn_lasers(rays: Sequence[Rays], lasers: int, learned: Learned) -> list[list[Ints]]:
    """Learn range and direction errors of lasers from the rays of captures; returns the rays on each plane of each capture."""
    rows = [find_planes(part) for part in rays]
    planes = [part.chosen(on) for part, found in zip(rays, rows, strict=True) for on in found]
    if not planes:
        learned.lack(
            ("laser.range_bias_m", "laser.elevation_error_deg", "laser.azimuth_error_deg"), "no plane of 4 lasers and 150 directions was seen"
        )
        return rows
    found = fit_lasers(planes, lasers)
    no_mean, per_rad = "the mean of all lasers is not observable and taken as 0", 180.0 / np.pi
    kinds = (
        ("range_bias_m", found.bias_m, found.bias_sd_m, _BIAS_DOUBT_M, 1.0, "mm", 1e3, no_mean),
        ("elevation_error_deg", found.elevation_rad, found.elevation_sd_rad, _ANGLE_DOUBT_RAD, per_rad, "deg", per_rad, ""),
        ("azimuth_error_deg", found.azimuth_rad, found.azimuth_sd_rad, _ANGLE_DOUBT_RAD, per_rad, "deg", per_rad, no_mean),
    )
    for name, value, sd, doubt, key_scale, unit, scale, note in kinds:
        known = np.flatnonzero((sd <= doubt) & (found.cells > 0))
        for laser in known:
            learned.lasers[laser][name] = round(float(value[laser] * key_scale), 5)
        missing = lasers - known.size
        if known.size == 0:
            learned.lack(
                f"laser.{name}",
                f"the planes seen, {len(planes)}, leave a doubt above {doubt * scale:.3g} {unit} for every laser",
                int(found.cells.sum()),
            )
            continue
        text = f"{known.size} lasers, sd {np.std(value[known]) * scale:.3g} {unit}, largest {np.abs(value[known]).max() * scale:.3g} {unit}"
        unknown = f"; {missing} lasers not learned: doubt above {doubt * scale:.3g} {unit}" if missing else ""
        learned.add(f"laser.{name}", text, int(found.cells[known].sum()), note=f"planes: {len(planes)}; {note}".rstrip("; ") + unknown)
    return rows
