"""Declaration of metrics: name, kind, unit, labels, bounds and meaning; each is declared on the field of a reading that it exports.

Names are ``hilsim_<thing>_<unit>[_total]`` in base units; label values are names from the rig (sensor, flow, thread), or from a closed set in the code
(mode, errno, model). ``telemetry.readings.METRICS`` contains them all: ``tests/unit/telemetry/test_metrics.py`` checks them, and
``docs/reference/metrics.md`` is generated from them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from enum import IntEnum
from typing import Any, Literal, NamedTuple, get_args, get_type_hints

from hilsim.errors import require

UNITS = (
    "seconds",
    "bytes",
    "packets",
    "errors",
    "hertz",
    "passes",
    "underruns",
    "returns",
    "rays",
    "frames",
    "stalls",
    "losses",
    "changes",
    "timeouts",
    "peers",
    "clients",
    "contacts",
    "rotors",
    "silences",
    "commands",
    "firings",
    "faults",
    "cycles",
    "scans",
    "messages",
    "lines",
    "poses",
    "keys",
    "meters",
    "meters_per_second",
    "radians",
    "radians_per_second",
)
"""Base units that a name may end with; states (``STATE`` kind) and ``_info`` have none."""

TIMING_BOUNDS_S = (10e-6, 20e-6, 30e-6, 50e-6, 75e-6, 100e-6, 150e-6, 200e-6, 300e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3)
"""10 us to 10 ms: a real unit's jitter is 4 to 40 us, a plain Linux scheduler's tail some milliseconds. The usual defaults start at 5 ms."""

LATENCY_BOUNDS_S = (0.5e-3, 1e-3, 2e-3, 3e-3, 5e-3, 7.5e-3, 10e-3, 15e-3, 20e-3, 30e-3, 50e-3, 100e-3)
"""0.5 to 100 ms: a VLP-16 packet alone spans 1.3 ms, and a delay of a rotation must never occur."""

LINK_BOUNDS_S = (50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 4e-3, 6e-3, 10e-3, 20e-3, 50e-3, 100e-3, 300e-3)
"""50 us to 300 ms: a controller needs its sensors within 4 ms, and treats one as dead after 300 ms."""

Kind = Literal["counter", "gauge", "state", "histogram", "info"]


class HistogramReading(NamedTuple):
    """A histogram at one instant.

    Attributes:
        cumulative: Number of observations at or below each declared bound, then of all observations; never decreasing.
        sum_s: Sum of all observations, in seconds.
    """

    cumulative: tuple[int, ...]
    sum_s: float


LabelValues = tuple[str, ...]
Sample = tuple[LabelValues, float | HistogramReading]
Samples = Callable[[Any], Iterable[Sample]]


def plain(value: float | HistogramReading | None) -> Iterator[Sample]:
    """Sample of the value itself; none for None."""
    if value is not None:
        yield (), value


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric family.

    Attributes:
        name: Exported name, with ``_total`` or ``_info``.
        kind: Kind of the metric; a ``state`` is a gauge that is 0 or 1.
        help: One sentence, no full stop.
        labels: Label names.
        bounds_s: Upper bounds of a histogram's buckets, in seconds, without the infinite one.
        samples: Conversion of the field's value to samples: values of the labels that are not the reading's own, and the sample's value.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    bounds_s: tuple[float, ...] = ()
    samples: Samples = plain

    def __post_init__(self) -> None:
        require(
            (self.name.startswith("hilsim_"), f"metric name must start with hilsim_, got {self.name}"),
            (self.name.endswith("_total") == (self.kind == "counter"), f"{self.name} must end with _total if and only if it is a counter"),
            (self.name.endswith("_info") == (self.kind == "info"), f"{self.name} must end with _info if and only if it is an info"),
            (self.kind in ("state", "info") or self.unit != "", f"{self.name} must end with one of the units {', '.join(UNITS)}"),
            (self.kind != "histogram" or len(self.bounds_s) > 0, f"{self.name} must have bounds"),
            (list(self.bounds_s) == sorted(set(self.bounds_s)), f"bounds of {self.name} must rise, got {self.bounds_s}"),
            (self.help != "" and not self.help.endswith("."), f"help of {self.name} must be a sentence without its full stop"),
        )

    @property
    def unit(self) -> str:
        """The unit the name ends with, empty for states and infos."""
        name = self.name.removesuffix("_total")
        return max((unit for unit in UNITS if name.endswith(f"_{unit}")), key=len, default="")


class Label(NamedTuple):
    """A field of a reading whose value is a label of all the reading's metrics."""

    name: str


MIN_LOST = 5
"""Number of packets below which a share is not meaningful: the first half second of a VLP-16 contains 380, ten seconds of a slow replay may contain ten."""


class Losses(NamedTuple):
    """What is lost of what a part plans, as counters of its reading.

    Attributes:
        fault: Key of the fault that is reported, one of the kind's ``faults``.
        made: Field that counts what was made.
        lost: Fields that count what was lost, and why.
        while_made: Whether losses count only where something was made.
        while_true: Field that is true while losses count; empty: they always do.
        above: Number of losses that is no fault yet.
        text: Sentence with ``{lost}`` and ``{due}``; empty: one that counts them by their reasons.
        is_minor: Whether many losses are no worse than a few.
    """

    fault: str
    made: str
    lost: Mapping[str, str]
    while_made: bool = False
    while_true: str = ""
    above: int = 0
    text: str = ""
    is_minor: bool = False


def counter(name: str, text: str, *, labels: LabelValues = (), samples: Samples = plain) -> Metric:
    """Metric of a quantity that only increases."""
    return Metric(name=name, kind="counter", help=text, labels=labels, samples=samples)


def gauge(name: str, text: str, *, labels: LabelValues = (), samples: Samples = plain) -> Metric:
    """Metric of a quantity that increases and decreases."""
    return Metric(name=name, kind="gauge", help=text, labels=labels, samples=samples)


def state(name: str, text: str, *, labels: LabelValues = (), samples: Samples = plain) -> Metric:
    """Metric of a condition."""
    return Metric(name=name, kind="state", help=text, labels=labels, samples=samples)


def histogram(name: str, bounds_s: tuple[float, ...], text: str) -> Metric:
    """Metric of a ``HistogramReading`` with these bounds."""
    return Metric(name=name, kind="histogram", help=text, bounds_s=bounds_s)


def info(name: str, text: str, *, labels: LabelValues) -> Metric:
    """Metric of texts: each label is the field of that name of the same reading."""
    return Metric(name=name, kind="info", help=text, labels=labels)


class Exported(NamedTuple):
    """One step through a reading: a field with a metric, or with further readings.

    Attributes:
        field: Name of the field.
        metric: Metric with all its labels; None where ``inner`` determines the exported metrics.
        own: Fields of the reading whose values are the first labels.
        inner: Steps of the readings in the field.
    """

    field: str
    metric: Metric | None = None
    own: tuple[str, ...] = ()
    inner: tuple["Exported", ...] = ()


_COLUMNS: dict[type[Any], dict[str, IntEnum]] = {}


def counted(kind: type[Any], *columns: tuple[type[IntEnum], Sequence[int]]) -> dict[str, int]:
    """Values of the fields of a reading's class that name a column beside their metric: ``Annotated[int, counter(...), RenderCounter.LATE]``.

    Args:
        kind: Class of the reading.
        columns: Every enumeration that its fields name, with the values of the array.
    """
    if kind not in _COLUMNS:
        hints = get_type_hints(kind, include_extras=True)
        _COLUMNS[kind] = {name: note for name, hint in hints.items() for note in getattr(hint, "__metadata__", ()) if isinstance(note, IntEnum)}
    values = dict(columns)
    return {field: values[type(column)][column] for field, column in _COLUMNS[kind].items()}


def exported_fields(kind: type[Any]) -> tuple[Exported, ...]:
    """Exported fields of a reading's class, in their order."""
    hints = get_type_hints(kind, include_extras=True)
    notes = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    labels = {name: note.name for name, found in notes.items() for note in found if isinstance(note, Label)}
    steps: list[Exported] = []
    for name, hint in hints.items():
        metrics = [note for note in notes[name] if isinstance(note, Metric)]
        steps += [Exported(name, replace(metric, labels=(*labels.values(), *metric.labels)), tuple(labels)) for metric in metrics]
        if not metrics:
            steps += [Exported(name, inner=inner) for nested in _readings_in(hint) if (inner := exported_fields(nested))]
    return tuple(steps)


def declared_metrics(kind: type[Any]) -> tuple[Metric, ...]:
    """All metrics declared by a reading's class and by the readings in it."""
    return tuple(_metrics_of(exported_fields(kind)))


def _metrics_of(steps: Iterable[Exported]) -> Iterator[Metric]:
    for step in steps:
        if step.metric is not None:
            yield step.metric
        yield from _metrics_of(step.inner)


def _readings_in(hint: Any) -> list[type[Any]]:
    """Dataclasses in a type hint: itself, or in a tuple or optional."""
    if is_dataclass(hint) and isinstance(hint, type):
        return [hint]
    return [found for part in get_args(hint) for found in _readings_in(part)]
