"""The unit file as systemd's own tools read it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNIT = Path(__file__).resolve().parents[2] / "systemd" / "hilsim@.service"

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed (Debian package systemd)"),
]


@pytest.fixture
def unit(tmp_path):
    """The unit as an instance, its program replaced by one that exists here: verify complains of a missing one before anything else."""
    instance = tmp_path / "hilsim@demo.service"
    instance.write_text(UNIT.read_text().replace("/opt/hilsim/bin/hilsim", sys.executable))
    return instance


def analyze(*arguments):
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_verify_has_nothing_to_say(unit):
    verified = analyze("verify", "--man=no", str(unit))
    assert (verified.stdout, verified.stderr) == ("", "")


def test_verify_would_have_reported_a_wrong_key(unit):
    unit.write_text(unit.read_text().replace("WatchdogSec=", "WatchdogSeconds="))
    assert "WatchdogSeconds" in analyze("verify", "--man=no", str(unit)).stderr


def test_exposure_is_at_most_2_point_5(unit):
    judged = analyze("security", "--offline=true", "--threshold=25", "--no-pager", str(unit))
    assert judged.returncode == 0, judged.stdout
