"""Tests that are there for their figures need not run once more with kernels as plain Python."""

import pytest
from numba import config

COMPILED = not config.DISABLE_JIT
compiled_only = pytest.mark.skipif(not COMPILED, reason="too slow with kernels as plain Python")
