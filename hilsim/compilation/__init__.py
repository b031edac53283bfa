"""Compilation of kernels: Numba's decorators, replacements of private parts of Numba, the cache on disk, vectors and atomics."""

import os

# Numba reads it on import, so it is set before any module here imports Numba.
# Level 1 instead of 3 takes a quarter off compiling and adds 2 % to casting rays (bench_render.py).
os.environ.setdefault("NUMBA_OPT", "1")
