"""What ``import hilsim_flight_controller`` gives, and what it costs."""

import subprocess
import sys
from typing import get_args

from hilsim_flight_controller.flying.scripts import SCRIPTS
from hilsim_flight_controller.process import Script


def test_the_package_needs_neither_pymavlink_nor_numba_nor_numpy():
    program = "import sys, hilsim_flight_controller; print(*({'numba', 'numpy', 'pymavlink'} & {*sys.modules}))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.split() == []


def test_the_scripts_that_can_be_asked_for_are_those_that_there_are():
    assert set(get_args(Script)) == set(SCRIPTS)
