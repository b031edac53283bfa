"""The Grafana dashboard: Grafana's own schema reads it whole, Prometheus reads its queries, and every metric and label in it is one that is exported."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hilsim.telemetry.readings import METRICS, part_metrics

DASHBOARD = Path(__file__).resolve().parents[2] / "systemd" / "prometheus" / "hilsim.grafana.json"
BESIDES = {"up", "process_cpu_seconds_total", "process_resident_memory_bytes"}
"""Of Prometheus itself, and of the process (``build_registry``)."""
QUOTED = {
    "Packets a second": "hilsim_sent_packets",
    "Rays a beam": "hilsim_beam_rays",
    "Recording": "hilsim_recorded_packets",
    "Sensors' clocks": "hilsim_device_clock_offset_seconds",
    "UTC ahead of packets": "hilsim_utc_offset_seconds",
}
"""Panels whose description begins with the help of a metric, by title."""
SCRAPED = {"instance", "job", "le"}

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def dashboard():
    return json.loads(DASHBOARD.read_text(encoding="utf-8"))


def panels(dashboard):
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def targets(dashboard):
    return [(panel["title"], target) for panel in panels(dashboard) for target in panel["targets"]]


def asked_for(name):
    """The metric that a sample of this name belongs to."""
    return next(
        (
            metric
            for metric in (*METRICS, *part_metrics())
            if name in {metric.name, *(f"{metric.name}_{part}" for part in ("bucket", "sum", "count"))}
        ),
        None,
    )


def named_in(expression):
    """Names of metrics in an expression: a name before a brace, or alone in ``hilsim_…``."""
    return set(re.findall(r"\b((?:hilsim|process)_[a-z_]+|up)(?=\{|\b(?!=))", re.sub(r'"[^"]*"', '""', expression)))


def filled(expression):
    """With Grafana's variables as Grafana fills them for everything."""
    return expression.replace("$instance", ".*").replace("$sensor", ".*").replace("$__rate_interval", "1m")


def test_every_metric_named_is_one_that_is_exported(dashboard):
    named = {name for _, target in targets(dashboard) for name in named_in(target["expr"])}
    assert {name for name in named if asked_for(name) is None} == BESIDES
    assert len(named) >= 30


def test_every_label_named_is_one_of_its_metric(dashboard):
    for title, target in targets(dashboard):
        metrics = [asked_for(name) for name in named_in(target["expr"])]
        known = SCRAPED | {label for metric in metrics if metric for label in metric.labels}
        used = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) | set(re.findall(r"(\w+)(?:=~|=|!=)\"", target["expr"]))
        used |= {label.strip() for group in re.findall(r"by \(([^)]*)\)", target["expr"]) for label in group.split(",")}
        assert used <= known, title


def test_every_panel_says_what_it_shows_and_takes_the_chosen_data_source(dashboard):
    for panel in panels(dashboard):
        assert panel["description"].endswith("."), panel["title"]
        assert {panel["datasource"]["uid"], *(target["datasource"]["uid"] for target in panel["targets"])} == {"${datasource}"}
    assert {variable["name"] for variable in dashboard["templating"]["list"]} == {"datasource", "instance", "sensor"}


def test_descriptions_that_quote_a_metrics_help_equal_it(dashboard):
    descriptions = {panel["title"]: panel["description"] for panel in panels(dashboard)}
    helps = {metric.name.removesuffix("_total"): metric.help for metric in (*METRICS, *part_metrics())}
    assert [title for title, name in QUOTED.items() if not descriptions[title].startswith(helps[name])] == []


def test_every_query_is_of_the_chosen_benches(dashboard):
    for title, target in targets(dashboard):
        assert target["expr"].count('instance=~"$instance"') == len(re.findall(r"(?<!\$)\{", target["expr"])), title


def test_panels_stand_side_by_side_and_none_upon_another(dashboard):
    taken = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian package prometheus)")
def test_prometheus_reads_every_query(dashboard, tmp_path):
    rules = [{"record": f"query:{number}", "expr": filled(target["expr"])} for number, (_, target) in enumerate(targets(dashboard))]
    path = tmp_path / "queries.yml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))  # JSON is YAML
    done = subprocess.run(["promtool", "check", "rules", str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules)} rules found" in done.stdout


def test_grafanas_schema_reads_it_and_loses_nothing(dashboard):
    models = pytest.importorskip("grafana_foundation_sdk.models.dashboard", reason="grafana-foundation-sdk is not installed (test group)")
    from grafana_foundation_sdk.cog import encoder, plugins  # noqa: PLC0415 - optional

    plugins.register_default_plugins()
    read = models.Dashboard.from_json(json.loads(DASHBOARD.read_text(encoding="utf-8")))
    written = json.loads(encoder.JSONEncoder(sort_keys=True).encode(read))
    only_for_the_editor = {".templating.list[1].definition", ".templating.list[2].definition"}
    assert set(lost(dashboard, written)) == only_for_the_editor


def lost(given, kept, path=""):
    """Paths of what is in one JSON value and not, or otherwise, in another."""
    if isinstance(given, dict):
        for key, value in given.items():
            yield from lost(value, kept[key], f"{path}.{key}") if isinstance(kept, dict) and key in kept else [f"{path}.{key}"]
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for number, (one, other) in enumerate(zip(given, kept, strict=True)):
            yield from lost(one, other, f"{path}[{number}]")
    elif given != kept:
        yield path
