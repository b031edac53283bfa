"""The rules and the example configuration as Prometheus' own tool reads them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hilsim.telemetry.readings import METRICS, part_metrics

FOLDER = Path(__file__).resolve().parents[2] / "systemd" / "prometheus"

promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian package prometheus)")
pytestmark = pytest.mark.system


def run(*arguments):
    ran = subprocess.run(["promtool", *arguments], cwd=FOLDER, capture_output=True, text=True, timeout=60, check=False)
    return ran.returncode, ran.stdout + ran.stderr


@promtool
@pytest.mark.parametrize("arguments", [("check", "rules", "--lint-fatal", "hilsim.rules.yml"), ("check", "config", "prometheus.yml")], ids=" ".join)
def test_promtool_accepts(arguments):
    code, output = run(*arguments)
    assert code == 0, output


@promtool
def test_the_alerts_fire_when_they_should_and_not_before():
    code, output = run("test", "rules", "hilsim.rules.test.yml")
    assert code == 0, output


@promtool
def test_the_alert_tests_can_fail(tmp_path):
    rules = (FOLDER / "hilsim.rules.yml").read_text()
    (tmp_path / "hilsim.rules.yml").write_text(rules.replace("> 0.0005", "> 0.005"))
    shutil.copy(FOLDER / "hilsim.rules.test.yml", tmp_path)
    ran = subprocess.run(["promtool", "test", "rules", "hilsim.rules.test.yml"], cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert ran.returncode == 1


def names_in(file):
    samples = {
        f"{metric.name}{suffix}"
        for metric in (*METRICS, *part_metrics())
        for suffix in (("_bucket", "_count", "_sum") if metric.kind == "histogram" else ("",))
    }
    return samples, set(re.findall(r"(?<!record: )\bhilsim_[a-z_]+", file.read_text()))


@pytest.mark.parametrize("file", ["hilsim.rules.yml", "hilsim.rules.test.yml"])
def test_every_metric_named_is_one_that_is_exported(file):
    exported, named = names_in(FOLDER / file)
    assert named - exported - {metric.name for metric in (*METRICS, *part_metrics())} == set()
    assert len(named) >= 6


def test_every_alert_has_a_test():
    alerts = set(re.findall(r"alert: (\w+)", (FOLDER / "hilsim.rules.yml").read_text()))
    tested = set(re.findall(r"Hilsim\w+", (FOLDER / "hilsim.rules.test.yml").read_text()))
    assert alerts == tested
