"""Conversion of a reading of the daemon to Prometheus families at the time of a scrape: counting costs the packet path nothing."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from hilsim.config.part_tables import found_kinds
from hilsim.telemetry.metrics import Exported, HistogramReading, Metric, declared_metrics, exported_fields
from hilsim.telemetry.readings import METRICS, MetricsSource, Reading

_exported = cache(exported_fields)


@cache
def _bounds(metric: Metric) -> tuple[str, ...]:
    """Values of the label ``le``."""
    return *map(floatToGoString, metric.bounds_s), "+Inf"


class HilsimCollector(Collector):
    """All families that a reading declares, read from ``source`` at each scrape."""

    def __init__(self, source: MetricsSource) -> None:
        self._source = source

    def describe(self) -> Iterable[Family]:
        """Families without samples, so that a registry can list their names without a scrape."""
        kinds = (kind for kind in found_kinds() if kind.reading is not None)
        return [_family(metric) for metric in (*METRICS, *(metric for kind in kinds for metric in declared_metrics(kind.reading)))]

    def collect(self) -> Iterator[Family]:
        """The families of one reading, in the order of their declaration."""
        reading = self._source()
        yield from _families(_exported(Reading), [reading])
        for kind in found_kinds():
            if kind.reading is not None:
                yield from _families(_exported(kind.reading), reading.parts.get(kind.table, ()))


def build_registry(source: MetricsSource, *, registry: CollectorRegistry | None = None) -> CollectorRegistry:
    """Registry with hilsim's families and those of the process (CPU, memory, open files); a new one unless given."""
    target = CollectorRegistry() if registry is None else registry
    target.register(HilsimCollector(source))
    ProcessCollector(registry=target)
    return target


def _families(exported: Iterable[Exported], readings: Sequence[Any]) -> Iterator[Family]:
    """Families of one class's metrics, with the samples of all its readings."""
    for step in exported:
        if step.metric is not None:
            yield _filled(step.metric, step, readings)
        else:
            yield from _families(step.inner, [inner for reading in readings for inner in _as_many(getattr(reading, step.field))])


def _as_many(value: Any) -> tuple[Any, ...]:
    """Readings in a field that contains several, one or None."""
    if isinstance(value, tuple):
        return value
    return () if value is None else (value,)


def _filled(metric: Metric, step: Exported, readings: Iterable[Any]) -> Family:
    """Family with the samples of some readings; missing values are omitted."""
    family = _family(metric)
    for reading in readings:
        own = tuple(getattr(reading, name) for name in step.own)
        if metric.kind == "info":
            family.add_sample(metric.name, {**dict(zip(metric.labels, own, strict=False)), **_texts(metric, step, reading)}, 1.0)
            continue
        for labels, value in metric.samples(getattr(reading, step.field)):
            named = dict(zip(metric.labels, (*own, *labels), strict=True))
            if isinstance(value, HistogramReading):
                _add_histogram(family, metric, named, value)
            else:
                family.add_sample(metric.name, named, float(value))
    return family


def _texts(metric: Metric, step: Exported, reading: Any) -> dict[str, str]:
    """Labels of an info, from fields of the same name."""
    return {label: getattr(reading, label) for label in metric.labels[len(step.own) :]}


def _family(metric: Metric) -> Family:
    kind = "gauge" if metric.kind == "state" else metric.kind
    return Family(metric.name.removesuffix("_total").removesuffix("_info"), metric.help, kind, metric.unit)


def _add_histogram(family: Family, metric: Metric, labels: dict[str, str], reading: HistogramReading) -> None:
    """Add buckets, count and sum.

    ``HistogramMetricFamily.add_metric`` would build the label set anew for every bucket.
    """
    for bound, count in zip(_bounds(metric), reading.cumulative, strict=True):
        family.add_sample(f"{metric.name}_bucket", {**labels, "le": bound}, count)
    family.add_sample(f"{metric.name}_count", labels, reading.cumulative[-1])
    family.add_sample(f"{metric.name}_sum", labels, reading.sum_s)
