"""Colours of points by what they measure."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.show.view.page.parts import Part

Bytes = npt.NDArray[np.uint8]
MAPS = ("turbo", "viridis", "plasma", "inferno", "gray", "hsv")
"""Colour maps of matplotlib that the page offers."""
_GREY = (128, 128, 128)
_DIFFUSE = 100.0
_SAMPLE = 4096
_MEASURES: dict[str, Callable[[Part], npt.NDArray[Any]]] = {
    "intensity": lambda part: part.points["intensity"],
    "distance": lambda part: part.points["range"],
    "height": lambda part: part.world[:, 2],
    "ring": lambda part: part.points["ring"],
    "time in the scan": lambda part: (part.points["time"] - part.begin_ns).astype(np.float32) * np.float32(1e-6),
}
_CLASSES: dict[str, Callable[[Part], npt.NDArray[Any]]] = {
    "return": lambda part: part.points["return"],
    "object": lambda part: part.instance,
    "label": lambda part: part.label,
    "sensor": lambda part: part.sensor,
}
QUANTITIES = (*_MEASURES, *_CLASSES)
"""Quantities by which points are coloured: measures by a colour map, classes by a colour each."""
OBJECTS = ("object", "label")
"""Quantities that come from the ground truth."""
UNITS = {"intensity": "", "distance": "m", "height": "m", "ring": "", "time in the scan": "ms"}


def colours(part: Part, quantity: str, colour_map: str) -> tuple[Bytes, str]:
    """Colours of points, and the range of the quantity for people.

    Args:
        part: Points.
        quantity: One of ``QUANTITIES``.
        colour_map: One of ``MAPS``.

    Returns:
        ``uint8[n, 3]`` and a text such as ``0 to 50 m``.
    """
    if quantity in _CLASSES:
        values = _CLASSES[quantity](part)
        return _class_colours()[np.where(values < 0, 0, values.astype(np.int64) % (_class_colours().shape[0] - 1) + 1)], ""
    values = _MEASURES[quantity](part)
    low, high = _limits(values, quantity)
    table = _table(colour_map)
    scaled = (values.astype(np.float32) - np.float32(low)) * np.float32((table.shape[0] - 1) / (high - low))
    return table[np.clip(scaled, 0, table.shape[0] - 1).astype(np.uint8)], f"{low:g} to {high:g} {UNITS[quantity]}".strip()


def key_of(quantity: str, colour_map: str, sensors: int) -> Bytes:
    """Picture of what colours mean, ``uint8[12, 240, 3]``: a colour map from low to high, or the colour of each sensor in their order; grey for other classes."""
    if quantity == "sensor" and sensors:
        row = np.repeat(_class_colours()[np.arange(sensors) % (_class_colours().shape[0] - 1) + 1], -(-240 // sensors), axis=0)[:240]
    elif quantity in _CLASSES:
        row = np.full((240, 3), _GREY, np.uint8)
    else:
        row = _table(colour_map)[np.linspace(0, 255, 240).astype(np.uint8)]
    return np.repeat(row[np.newaxis], 12, axis=0)


def mapped(values: npt.NDArray[np.float32]) -> Bytes:
    """Colours of numbers by the first colour map, from their second to their 98th percentile: ``uint8[n, 3]``."""
    low, high = (float(limit) for limit in np.percentile(values, (2.0, 98.0))) if values.size else (0.0, 1.0)
    table = _table(MAPS[0])
    found: Bytes = table[np.clip((values - low) * ((table.shape[0] - 1) / max(high - low, 1e-6)), 0, table.shape[0] - 1).astype(np.uint8)]
    return found


def _limits(values: npt.NDArray[Any], quantity: str) -> tuple[float, float]:
    """Range of the colour map: round numbers, so that it is steady from scan to scan."""
    if quantity == "intensity":
        return 0.0, _DIFFUSE  # retro-reflectors, above it, have the last colour
    if not values.size:
        return 0.0, 1.0
    sample = values[:: max(1, values.size // _SAMPLE)]
    low, high = (float(limit) for limit in np.percentile(sample, (2.0, 98.0)))
    if quantity == "ring":
        return 0.0, max(1.0, float(values.max()))
    if quantity != "height":
        return 0.0, _rounded_up(high)
    step = _rounded_up((high - low) / 8.0)
    return step * np.floor(low / step), step * (np.floor(high / step) + 1.0)


def _rounded_up(value: float) -> float:
    """The next larger of 1, 2 and 5 times a power of ten."""
    if not value > 1e-6:
        return 1e-6
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if power * factor >= value * (1.0 - 1e-9)))


@cache
def _table(colour_map: str) -> Bytes:
    """``uint8[256, 3]`` of a colour map."""
    from matplotlib import colormaps  # noqa: PLC0415 - slow to import

    return np.asarray(colormaps[colour_map](np.arange(256), bytes=True)[:, :3], np.uint8)


@cache
def _class_colours() -> Bytes:
    """``uint8[k, 3]``: grey for unknown ones, and colours whose neighbours differ."""
    hues = (np.arange(61) * 0.618033988749895) % 1.0  # the golden ratio spreads them
    return np.vstack([np.array([_GREY], np.uint8), _table("hsv")[(hues * 255).astype(np.uint8)] // 4 * 3 + 48])
