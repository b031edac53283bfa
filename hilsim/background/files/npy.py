r"""NPY arrays in untrusted files: the header is checked before any data are read.

Layout (NumPy Enhancement Proposal 1): ``\x93NUMPY``, version (two bytes), length of the header (2 bytes little-endian; 4 from version 2 on), the header as
the text of a Python dictionary, then the numbers. NumPy writes that dictionary in one form only, which is the only one accepted here: no text is evaluated.
"""

import math
import re
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt

_MAGIC = b"\x93NUMPY"
_MOST_HEADER_BYTES = 10_000  # as in numpy.load
_HEADER = re.compile(r"\{'descr': '([<>|=]?[A-Za-z]\d{0,9})', 'fortran_order': (True|False), 'shape': \(((?:\d{1,18}, ?)*\d{0,18})\), \} *\n")


class NpyHeader(NamedTuple):
    """Header of an NPY file.

    Attributes:
        descr: NumPy's type code of the numbers, such as ``<u4``.
        is_fortran: Whether columns are contiguous.
        shape: Shape of the array.
        size: Size of the header in bytes, with all bytes before the numbers.
    """

    descr: str
    is_fortran: bool
    shape: tuple[int, ...]
    size: int

    @property
    def numbers(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def type_name(self) -> str:
        """Type of the elements for messages, such as ``uint32``."""
        try:
            return np.dtype(self.descr).name
        except (TypeError, ValueError):
            return self.descr


def read_header(file: IO[bytes]) -> NpyHeader:
    """Read the header at a file's beginning; the numbers follow.

    Raises:
        ValueError: the header is invalid; the message gives the reason.
    """
    start = file.read(8)
    if start[:6] != _MAGIC or len(start) < 8:
        raise ValueError(f"an array must begin with {_MAGIC!r}, got {start[:6]!r}")
    if start[6] not in (1, 2, 3):
        raise ValueError(f"version of an array must be 1, 2 or 3, got {start[6]}")
    length = file.read(2 if start[6] == 1 else 4)
    size = int.from_bytes(length, "little")
    if size > _MOST_HEADER_BYTES:
        raise ValueError(f"header of an array must have at most {_MOST_HEADER_BYTES} bytes, got {size}")
    text = file.read(size).decode("latin-1")
    match = _HEADER.fullmatch(text)
    if match is None:
        raise ValueError(f"header of an array must name descr, fortran_order and shape as NumPy writes them, got {text[:60]!r}")
    shape = tuple(int(number) for number in match[3].replace(",", " ").split())
    return NpyHeader(descr=match[1], is_fortran=match[2] == "True", shape=shape, size=len(start) + len(length) + size)


def array_of(header: NpyHeader, data: bytes, dtype: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    """Array of the numbers after a header, read-only; their size must be that of the header."""
    return np.frombuffer(data, dtype, header.numbers).reshape(header.shape, order="F" if header.is_fortran else "C")
