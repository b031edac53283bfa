"""Prevents libtiff from writing to standard error: hilsim reports each fault of a file once."""

import ctypes
from functools import cache
from pathlib import Path

_MAPS = Path("/proc/self/maps")


@cache
def silence_libtiff() -> None:
    """Remove libtiff's handlers of errors and warnings, in the libraries that are loaded; no effect without one.

    GDAL still reports a file that cannot be decoded by an exception. Call it after ``rasterio`` was imported.
    """
    try:
        mapped = _MAPS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for name in {line.split(maxsplit=5)[-1] for line in mapped if "libtiff" in line}:
        try:
            library = ctypes.CDLL(name)
            library.TIFFSetErrorHandler(None)
            library.TIFFSetWarningHandler(None)
        except (OSError, AttributeError):
            continue
