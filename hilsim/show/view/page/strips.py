"""Figures of a daemon as strips over time: lateness, missed and lost packets, rendering, poses, a vehicle, clocks."""

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import viser

_LENGTH = 180
_HEIGHT = 120
_COLOURS = ("#2f9e44", "#f08c00", "#e03131", "#1971c2", "#9c36b5", "#0c8599", "#5f3dc4", "#868e96")


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One reading of a daemon's state.

    Attributes:
        lateness_ms: The largest of all flows, by ``LATENESS``, as far as it is known.
        counters: Numbers since the start, by ``PACKETS``.
        render_ms: The largest of all sensors, by ``RENDERING``, as far as it is known.
    """

    lateness_ms: Mapping[str, float]
    counters: Mapping[str, float]
    render_ms: Mapping[str, float]


_MAX_MOTORS = 8
_LATER = {
    "pose to wire in ms": ("p50", "p99"),
    "height in m": ("height",),
    "attitude in deg": ("roll", "pitch", "yaw"),
    "motors in rad/s": tuple(f"motor {number}" for number in range(1, _MAX_MOTORS + 1)),
    "clocks: offset from UTC in ms": ("host", "sensors"),
}
"""Strips that are shown once there are figures, each with its series."""
LATENESS = ("p50", "p99", "max")
PACKETS = ("missed", "lost", "skipped")
RENDERING = ("p50", "p99", "lead")


def sample(status: Mapping[str, Any], figures: Mapping[str, float]) -> Sample:
    """Read a daemon's state; what is missing or no number is left out.

    Args:
        status: State of the daemon.
        figures: Latest figures of a feed's series, by names such as ``roof/data lateness_p99_s``.
    """
    sensors = [sensor for sensor in _mapping(status.get("sensors")).values() if isinstance(sensor, Mapping)]
    flows = [flow for sensor in sensors for flow in _mapping(sensor.get("flows")).values() if isinstance(flow, Mapping)]
    return Sample(
        lateness_ms=_quantiles_ms(figures, "lateness") | _largest_ms(flows, "max", "lateness_max_s"),
        counters={"missed": _sum(flows, "late_packets"), "lost": _sum(flows, "dropped_packets"), "skipped": _sum(sensors, "skipped_packets")},
        render_ms=_quantiles_ms(figures, "render") | _largest_ms(sensors, "lead", "lead_s"),
    )


def latest(feed: object) -> dict[str, float]:
    """Latest figures of a feed that has series; none of others."""
    series: Any = getattr(feed, "series", None)
    if series is None:
        return {}
    values = {name: series.values(name)[1] for name in series.names()}
    return {name: float(value[-1]) for name, value in values.items() if value.size and math.isfinite(value[-1])}


def later_figures(figures: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Values of the strips of ``_LATER``, as far as they are known."""
    offsets = [value for key, value in figures.items() if key.endswith(" device_clock_offset_s")]
    vehicle = {key.removeprefix("vehicle "): value for key, value in figures.items() if key.startswith("vehicle ")}
    found = {
        "pose to wire in ms": _quantiles_ms(figures, "pose_to_wire"),
        "height in m": {"height": vehicle["height_m"]} if "height_m" in vehicle else {},
        "attitude in deg": {name: vehicle[f"{name}_deg"] for name in ("roll", "pitch", "yaw") if f"{name}_deg" in vehicle},
        "motors in rad/s": {f"motor {number}": vehicle[key] for number in range(1, _MAX_MOTORS + 1) if (key := f"motor_{number}_radps") in vehicle},
        "clocks: offset from UTC in ms": ({"host": 1e3 * figures["clock utc_offset_s"]} if "clock utc_offset_s" in figures else {})
        | ({"sensors": 1e3 * max(offsets, key=abs)} if offsets else {}),
    }
    return {title: values for title, values in found.items() if values}


def _quantiles_ms(figures: Mapping[str, float], figure: str) -> dict[str, float]:
    found = {name: [value for key, value in figures.items() if key.endswith(f" {figure}_{name}_s")] for name in ("p50", "p99")}
    return {name: max(values) * 1e3 for name, values in found.items() if values}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _numbers(rows: Iterable[Mapping[str, Any]], key: str) -> list[float]:
    values = [row.get(key) for row in rows]
    return [float(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]


def _largest_ms(rows: list[Mapping[str, Any]], name: str, key: str) -> dict[str, float]:
    values = _numbers(rows, key)
    return {name: max(values) * 1e3} if values else {}


def _sum(rows: list[Mapping[str, Any]], key: str) -> float:
    return sum(_numbers(rows, key))


class Strip:
    """One diagram of the last three minutes."""

    def __init__(self, server: "viser.ViserServer", title: str, names: tuple[str, ...]) -> None:
        """Add a diagram of some series to the open folder of the page."""
        self._names = names
        self._times: deque[float] = deque(maxlen=_LENGTH)
        self._values: dict[str, deque[float]] = {name: deque(maxlen=_LENGTH) for name in names}
        series: Any = ({"label": "s"}, *({"label": name, "stroke": colour, "width": 2} for name, colour in zip(names, _COLOURS, strict=False)))
        self._chart = server.gui.add_uplot(self._data(), series, title=title, scales={"x": {"time": False}}, height=_HEIGHT)

    def add(self, time_s: float, values: Mapping[str, float]) -> None:
        """Append a value of each series; one that is not known stays as it was."""
        self._times.append(time_s)
        for name in self._names:
            before = self._values[name]
            before.append(values.get(name, before[-1] if before else 0.0))
        self._chart.data = self._data()

    def _data(self) -> tuple[np.ndarray[Any, Any], ...]:
        if not self._times:
            return tuple(np.zeros(1) for _ in range(len(self._names) + 1))
        return tuple(np.array(list(values), np.float64) for values in (self._times, *self._values.values()))


class HealthStrips:
    """Health of a daemon on the page."""

    def __init__(self, server: "viser.ViserServer") -> None:
        """Show nothing until the first state comes."""
        self._server = server
        self._text: Any = None
        self._folder: Any = None
        self._strips: tuple[Strip, Strip, Strip] | None = None
        self._later: dict[str, Strip] = {}
        self._last: Sample | None = None
        self._shown_s: object = None

    def show(self, status: Mapping[str, Any], figures: Mapping[str, float], time_s: float) -> None:
        """Append a state that differs from the former one; ``figures`` as for ``sample``."""
        if self._shown_s is not None and status.get("rig_s") == self._shown_s:
            return
        self._shown_s = status.get("rig_s")
        now = sample(status, figures)
        if self._strips is None:
            self._build()
        if self._strips is None:
            raise AssertionError("the strips were built")
        lateness, packets, render = self._strips
        before = self._last.counters if self._last is not None else now.counters
        lateness.add(time_s, now.lateness_ms)
        packets.add(time_s, {name: max(value - before.get(name, 0.0), 0.0) for name, value in now.counters.items()})
        render.add(time_s, now.render_ms)
        for title, values in later_figures(figures).items():
            if title not in self._later:
                with self._folder:
                    self._later[title] = Strip(self._server, title, tuple(name for name in _LATER[title] if name in values))
            self._later[title].add(time_s, values)
        self._last = now
        self._text.content = health_text(status)

    def _build(self) -> None:
        self._folder = self._server.gui.add_folder("Health", order=60.0)
        with self._folder:
            self._text = self._server.gui.add_markdown("")
            self._strips = (
                Strip(self._server, "lateness in ms", LATENESS),
                Strip(self._server, "packets in each step", PACKETS),
                Strip(self._server, "rendering in ms", RENDERING),
            )


def health_text(status: Mapping[str, Any]) -> str:
    """Level of health and each fault, for people."""
    health = _mapping(status.get("health")) or status
    faults = health.get("faults")
    rows = (
        [plain(str(fault.get("text", fault.get("fault", "")))) for fault in faults if isinstance(fault, Mapping)]
        if isinstance(faults, list | tuple)
        else []
    )
    level = plain(str(health.get("level", "healthy" if health.get("healthy", True) else "unhealthy")))
    return f"**{level}**" + "".join(f"\n- {row}" for row in rows)


def plain(text: str) -> str:
    """Text for the page's Markdown without any markup: names come from rigs and captures."""
    return "".join(f"&#{ord(letter)};" if letter in "<>{}[]()*_`#&!|~\\" else letter for letter in text.replace("\n", " "))
