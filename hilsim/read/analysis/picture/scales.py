"""Scales and files of pictures, whose ranges span three powers of ten."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.errors import CaptureError

SUFFIXES = (".png", ".svg", ".pdf")
_TICKS_M = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
_RINGS_M = (1, 2, 5, 10, 20, 50, 100, 200)
_NEAREST_RING, _MAX_RING = 0.04, 1.4
_SHOWN = (0.01, 0.99)
_NARROWEST = 2.0
_NEAREST_M = 0.05


def check_picture_path(path: Path) -> None:
    """Check that a picture can be written, before drawing.

    Raises:
        CaptureError: the suffix is wrong, the directory is missing, or the path is a directory.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise CaptureError(f'{path}: a picture must end in {", ".join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, got "{path.suffix}"')
    if not path.parent.is_dir():
        raise CaptureError(f"{path}: the picture cannot be written: its directory must exist, and {path.parent} does not")
    if path.is_dir():
        raise CaptureError(f"{path}: the picture cannot be written: this is a directory")


def write_picture(figure: Any, path: Path) -> None:
    """Write a figure to a file.

    Raises:
        CaptureError: the file cannot be written.
    """
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise CaptureError(f"{path}: the picture cannot be written: {error}") from error


def range_limits_m(range_m: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Limits of a logarithmic scale of ranges: those of 98 % of the returns, at least an octave."""
    if not range_m.size:
        return 1.0, 100.0
    nearest, farthest = (float(value) for value in np.quantile(range_m, _SHOWN))
    nearest = max(nearest, _NEAREST_M)
    farthest = max(farthest, nearest)
    if farthest < _NARROWEST * nearest:
        middle = (nearest * farthest) ** 0.5
        return middle / _NARROWEST**0.5, middle * _NARROWEST**0.5
    return nearest, farthest


def range_norm(limits_m: tuple[float, float]) -> Any:
    """Make the logarithmic scale for matplotlib."""
    from matplotlib.colors import LogNorm  # noqa: PLC0415 - takes half a second, so only commands that draw import it

    return LogNorm(vmin=limits_m[0], vmax=limits_m[1])


def add_range_bar(figure: Any, drawn: Any, axes: Any, limits_m: tuple[float, float]) -> None:
    """Add a scale bar with round numbers."""
    from matplotlib.ticker import NullFormatter  # noqa: PLC0415

    bar = figure.colorbar(drawn, ax=axes, label="range (m), log scale", pad=0.01, extend="both")
    marked = [tick for tick in _TICKS_M if limits_m[0] <= tick <= limits_m[1]] or [round(limit, 2) for limit in limits_m]
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.set_ticks(marked, labels=[f"{tick:g}" for tick in marked], minor=False)
    bar.ax.minorticks_off()


def add_rings(axes: Any, extent_m: float) -> None:
    """Add circles of round ranges about the sensor to a view from above of extent ``extent_m``."""
    angle = np.linspace(0, 2 * np.pi, 181)
    for radius_m in _RINGS_M:
        if _NEAREST_RING * extent_m < radius_m < _MAX_RING * extent_m:
            axes.plot(radius_m * np.sin(angle), radius_m * np.cos(angle), color="0.35", linewidth=0.6)
            axes.annotate(f"{radius_m} m", (0, radius_m), color="0.6", fontsize=7, ha="center", clip_on=True)
