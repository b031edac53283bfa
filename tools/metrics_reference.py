"""The metrics reference in Markdown, generated from the declarations: ``docs/reference/metrics.md`` is this text; a test compares them."""

from hilsim.telemetry.faults import all_faults
from hilsim.telemetry.readings import METRICS, part_metrics
from hilsim.telemetry.samples import SCHEDULING_MODES

_HEAD = """# Metrics

Metrics of `hilsim run` at `/metrics` (by default http://127.0.0.1:9464/metrics), in the Prometheus text format or OpenMetrics.
This page is generated from the readings in `hilsim/telemetry/`; do not edit it.

`sensor` and `flow` are names from the rig (`flow` is `data` or `position`), `thread` is a thread of the packet path, `mode` is one of
{modes}, and `errno` is the symbolic name of the kernel's error. Counters start at zero with the process. A state is a gauge that is 0 or 1, an info is always 1.

| name | kind | labels | meaning |
|---|---|---|---|
"""

_FAULTS = """
## Faults

Keys of `hilsim_fault_active`, of `/healthz` and of the log's `health.fault_began`, `health.fault_worsened` and `health.fault_ended`:

| fault | meaning |
|---|---|
"""

_TAIL = """
The usual `process_*` metrics (CPU seconds, resident memory, open files, start time) are exported too.

## Buckets
"""


def generate_metrics_reference() -> str:
    """The whole page."""
    rows = [
        f"| `{metric.name}` | {metric.kind} | {', '.join(f'`{label}`' for label in metric.labels)} | {metric.help} |\n"
        for metric in (*METRICS, *part_metrics())
    ]
    buckets = [
        f"- `{metric.name}`: {', '.join(_milliseconds(bound) for bound in metric.bounds_s)} ms\n"
        for metric in (*METRICS, *part_metrics())
        if metric.kind == "histogram"
    ]
    modes = ", ".join(f"`{mode}`" for mode in SCHEDULING_MODES)
    faults = [f"| `{key}` | {meaning} |\n" for key, meaning in all_faults().items()]
    return _HEAD.format(modes=modes) + "".join(rows) + _TAIL + "\n" + "".join(buckets) + _FAULTS + "".join(faults)


def _milliseconds(bound_s: float) -> str:
    return f"{bound_s * 1e3:g}"
