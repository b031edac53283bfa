"""Memory of the view's process: arrays of past scans leave nothing behind."""

import ctypes
import subprocess
import sys

import pytest

pytestmark = pytest.mark.alone

_RUN = """
import sys
from pathlib import Path
from hilsim.show.view.memory import return_large_arrays

def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6

if sys.argv[1] == "returned":
    assert return_large_arrays()
bytes(4_000_000)  # from now on, glibc by default takes what is smaller from a heap
before_mb, arrays, labels = resident_mb(), [], []
for _ in range(100):
    arrays.append(bytearray(b"x") * 500_000)  # pages that are zero may not be there
    labels += [bytes(20_000) for _ in range(5)]  # too many in all for what imports left free below the arrays
arrays.clear()
print(resident_mb() - before_mb - sum(map(len, labels)) / 1e6)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="needs glibc")
def test_freed_arrays_leave_the_process_though_what_was_made_between_them_remains():
    grown_mb = {way: float(subprocess.check_output([sys.executable, "-c", _RUN, way])) for way in ("returned", "usual")}
    assert grown_mb["returned"] < 5.0
    assert grown_mb["usual"] > 20.0
