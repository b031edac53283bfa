"""The wheel, installed where nothing of the checkout is in reach: what ``pip install`` gives a stranger."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hilsim.compilation.cache import levels_here
from hilsim.families.velodyne.protocol.data import Product, ReturnMode
from tests.system.wheels import PROJECT, install_wheel

pytestmark = [pytest.mark.extended, pytest.mark.system]

HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "test-a-driver.md"
TEN_LINES, *_ = re.findall(r"```python\n(.*?)```", HOW_TO.read_text(encoding="utf-8"), re.DOTALL)


def test_the_installed_wheel_is_imported(installed_wheel, tmp_path):
    ran = installed_wheel.run(installed_wheel.python, "-c", "import hilsim; print(hilsim.__file__, hilsim.__version__)", cwd=tmp_path)
    assert Path(ran.stdout.split()[0]).is_relative_to(installed_wheel.directory)


def test_it_runs_the_demo(installed_wheel, tmp_path, udp_socket):
    driver = udp_socket()
    driver.settimeout(10.0)
    port = driver.getsockname()[1]
    installed_wheel.run("hilsim", "run", "demo", "--quiet", "--to", f"127.0.0.1:{port}", "--duration-s", "1", "--set", "metrics.port=0", cwd=tmp_path)
    payload = driver.recv(2000)
    assert (len(payload), payload[1204:]) == (1206, bytes([ReturnMode.STRONGEST, Product.VLP_16]))


def test_it_has_the_rigs_the_profiles_and_what_a_service_needs(installed_wheel, tmp_path):
    installed_wheel.run("hilsim", "check", "flight", cwd=tmp_path)
    (package,) = (installed_wheel.directory / "lib").glob("python*/site-packages/hilsim")
    assert {"hilsim@.service"} <= {path.name for path in (package / "_systemd").iterdir()}
    assert (package / "py.typed").is_file()


def test_ten_lines_of_a_test_hear_a_sensor(installed_wheel, tmp_path):
    (tmp_path / "test_driver.py").write_text(TEN_LINES)
    ran = installed_wheel.run(installed_wheel.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", cwd=tmp_path)
    assert "1 passed" in ran.stdout


@pytest.mark.timeout(900)
def test_a_wheel_with_kernels_compiles_nothing(tmp_path, udp_socket, monkeypatch):
    """As ``make wheel`` builds it, but for one rig and one level of processors."""
    kernels, cache = tmp_path / "kernels", tmp_path / "cache"
    command = [sys.executable, "-m", "tools.kernels", "--level", levels_here()[0], "--rig", "demo", kernels]
    subprocess.run(command, cwd=PROJECT, check=True, timeout=600)
    installed = install_wheel(tmp_path, kernels)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    installed.run("hilsim", "record", "demo", "-o", "demo.pcap", "--duration-s", "0.2", cwd=tmp_path)
    to = f"127.0.0.1:{udp_socket().getsockname()[1]}"
    ran = installed.run("hilsim", "run", "demo", "--to", to, "--set", "metrics.port=0", "--duration-s", "0.2", cwd=tmp_path)
    assert "kernels.compil" not in ran.stdout + ran.stderr
    assert [file.name for file in cache.rglob("*.nb?")] == []
