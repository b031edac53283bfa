"""hilsim as its users have it: a wheel, installed where nothing of the checkout is in reach."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Installed:
    """An environment that has the wheel.

    Attributes:
        directory: Of the environment.
    """

    directory: Path

    @property
    def python(self):
        return self.directory / "bin" / "python"

    @property
    def environment(self):
        """Variables for its programs: no path to the checkout, its own programs first."""
        kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE"}}
        return kept | {"PATH": f"{self.directory / 'bin'}:{kept['PATH']}"}

    def run(self, *command, cwd, timeout_s=280):
        """The program's result, run to its end; fails with its output where its status is not 0."""
        ran = subprocess.run(command, cwd=cwd, env=self.environment, capture_output=True, text=True, timeout=timeout_s, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran


def install_wheel(directory, kernels=None):
    """Build hilsim's wheel and install it into a new environment; what it depends on comes from the environment of the tests.

    Args:
        directory: For the wheel and the environment.
        kernels: Directory of kernels that the wheel takes along, or None.
    """
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", f"--wheel-dir={directory}", PROJECT],
        env=os.environ | {"HILSIM_KERNELS": str(kernels or "")},
        check=True,
        timeout=600,
    )
    (wheel,) = directory.glob("hilsim_lidar-*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory / "env"], check=True, timeout=120)
    installed = Installed(directory / "env")
    subprocess.run([*pip, "--python", installed.python, "install", "--no-index", "--no-deps", wheel], check=True, timeout=300)
    (packages,) = (installed.directory / "lib").glob("python*/site-packages")
    places = [place for place in sys.path if Path(place).name == "site-packages"]  # without what else their .pth files name: the checkout
    (packages / "dependencies.pth").write_text("".join(f"{place}\n" for place in places))
    return installed
