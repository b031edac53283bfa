"""Series of a daemon's figures for strips, in ring buffers."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.errors import require

FASTEST_HZ = 10.0
MAX_SERIES = 256
"""Series of one daemon: names come from its answers."""


class Series:
    """Figures of the last minutes, at most ten a second; any thread may read.

    Names are ``"<subject> <figure>"``, such as ``"roof/data lateness_p99_s"``, ``"vehicle height_m"`` or ``"clock utc_offset_s"``.
    """

    def __init__(self, *, seconds: float = 600.0, clock_s: Callable[[], float] = time.monotonic) -> None:
        """Create series without values.

        Args:
            seconds: Length of the series, 1 to 36000.
            clock_s: Clock in seconds.

        Raises:
            ValueError: ``seconds`` is out of bounds.
        """
        require((1.0 <= seconds <= 36_000.0, f"seconds must be 1 to 36000, got {seconds}"))
        self._rows = round(seconds * FASTEST_HZ)
        self._seconds, self._clock_s = seconds, clock_s
        self._time_s = np.full(self._rows, np.nan)
        self._values: dict[str, npt.NDArray[np.float32]] = {}
        self._written = 0
        self._before: dict[str, Any] = {}
        self._changing = threading.Lock()

    def names(self) -> tuple[str, ...]:
        """Names of the series that have had values."""
        return tuple(self._values)

    def values(self, name: str, since_s: float = float("-inf")) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float32]]:
        """Times on the clock and values of a series after ``since_s``, oldest first; NaN where there was none."""
        with self._changing:
            rows = np.arange(max(self._written - self._rows, 0), self._written) % self._rows
            time_s = self._time_s[rows]
            mine = self._values.get(name)
            values = np.full(rows.size, np.nan, np.float32) if mine is None else mine[rows]
        after = (time_s > since_s) & (time_s >= self._clock_s() - self._seconds)
        return time_s[after], values[after]

    def add(self, status: Mapping[str, Any]) -> None:
        """Add the figures of a status; one that comes within 0.1 s of the last is left out."""
        now_s = self._clock_s()
        if self._written and now_s - self._time_s[(self._written - 1) % self._rows] < 0.999 / FASTEST_HZ:
            return
        figures = _figures(status, self._before)
        with self._changing:
            row = self._written % self._rows
            for values in self._values.values():
                values[row] = np.nan
            for name, value in figures.items():
                if name not in self._values:
                    if len(self._values) >= MAX_SERIES:
                        continue
                    self._values[name] = np.full(self._rows, np.nan, np.float32)
                self._values[name][row] = value
            self._time_s[row] = now_s
            self._written += 1


def _figures(status: Mapping[str, Any], before: dict[str, Any]) -> dict[str, float]:
    """Figures of a status; ``before`` has the counters of the former one, and is replaced by those of this one."""
    found: dict[str, float] = {}
    for sensor, table in status.get("sensors", {}).items():
        for flow, counts in table.get("flows", {}).items():
            subject = f"{sensor}/{flow}"
            found[f"{subject} lateness_max_s"] = counts.get("lateness_max_s", np.nan)
            found[f"{subject} missed_packets"] = _grown(before, f"{subject} missed", counts.get("late_packets", 0))
            found[f"{subject} lost_packets"] = _grown(before, f"{subject} lost", counts.get("dropped_packets", 0))
            for name in ("lateness", "pose_to_wire"):
                found |= _quantiles(before, subject, name, counts.get(name))
        found |= _quantiles(before, sensor, "render", table.get("render"))
    for replay in status.get("replays", ()):
        found[f"{replay['replay']} position_s"] = replay["position_s"]
    found |= _vehicle(status)
    if status.get("utc_offset_s") is not None:
        found["clock utc_offset_s"] = status["utc_offset_s"]
    for sensor, table in status.get("sensors", {}).items():
        if "device_clock_offset_s" in table:
            found[f"{sensor} device_clock_offset_s"] = table["device_clock_offset_s"]
    return found


def _vehicle(status: Mapping[str, Any]) -> dict[str, float]:
    """Height, attitude and motors of a vehicle."""
    vehicle = status.get("vehicle") or {}
    truth = vehicle.get("truth")
    if not truth:
        return {}
    w, x, y, z = truth["orientation"]
    found = {
        "vehicle height_m": np.nan if vehicle.get("height_m") is None else vehicle["height_m"],
        "vehicle roll_deg": np.degrees(np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))),
        "vehicle pitch_deg": np.degrees(np.arcsin(np.clip(2 * (w * y - z * x), -1, 1))),
        "vehicle yaw_deg": np.degrees(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))),
    }
    for number, value in enumerate(vehicle.get("rotor_radps") or ()):
        found[f"vehicle motor_{number + 1}_radps"] = value
    return {name: float(value) for name, value in found.items()}


def _grown(before: dict[str, Any], name: str, count: float) -> float:
    """Growth of a counter since the former status; 0 for the first, and where it began again."""
    former, before[name] = before.get(name, count), count
    return float(max(count - former, 0))


def _quantiles(before: dict[str, Any], subject: str, name: str, histogram: Mapping[str, Sequence[float]] | None) -> dict[str, float]:
    """Median and 99th percentile of what came to a histogram since the former status; none where nothing came."""
    if not histogram:
        return {}
    cumulative = list(histogram["cumulative"])
    key = f"{subject} {name}"
    former = before.get(key, [0] * len(cumulative))
    before[key] = cumulative
    if len(former) != len(cumulative) or former[-1] > cumulative[-1]:
        return {}
    grown = [now - then for now, then in zip(cumulative, former, strict=True)]
    return {f"{key}_p{percent}_s": quantile(histogram["bounds_s"], grown, percent / 100) for percent in (50, 99)} if grown[-1] else {}


def quantile(bounds_s: Sequence[float], cumulative: Sequence[float], share: float) -> float:
    """Quantile of a histogram, linear within a bucket; the last bound for what is beyond it."""
    wanted = share * cumulative[-1]
    edges = [0.0, *bounds_s]
    counts = [0.0, *cumulative]
    for (low_s, high_s), (less, more) in zip(pairwise(edges), pairwise(counts[: len(edges)]), strict=True):
        if more >= wanted and more > less:
            return low_s + (high_s - low_s) * (wanted - less) / (more - less)
    return edges[-1]
