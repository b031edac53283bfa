"""Memory of the view's process.

Several threads make and free arrays of a megabyte with every scan. glibc by default has a heap for each thread, and takes ever larger arrays from it:
freed arrays then remain in heaps that only grow, beside small objects that live longer.
"""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Parameters of ``mallopt`` (``malloc.h``)."""
LARGE_BYTES = 1 << 17
"""Size from which an array has pages of its own, which go back to the system when it is freed."""
HEAPS = 2


def return_large_arrays() -> bool:
    """Make the C library return the memory of large arrays when they are freed; whether it can (glibc)."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return all(mallopt(name, value) == 1 for name, value in ((_MMAP_THRESHOLD, LARGE_BYTES), (_TRIM_THRESHOLD, LARGE_BYTES), (_ARENA_MAX, HEAPS)))
