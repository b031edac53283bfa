"""Scans of a rover from a text file: one pose and any number of points per line.

``posX,posY,posZ,rotX,rotY,rotZ; x,y,z; x,y,z; …``: further numbers of a pose or a point are ignored, as are points of fewer than three numbers and empty lines.
The file is plain, gzip, xz or zstd, recognised by its first bytes, or a tar in one of these formats, of which the first file is read.
A line that violates this format is skipped and reported in ``Tally``.
"""

import gzip
import io
import lzma
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.errors import AssetError, require
from hilsim.parts.rovers.limits import ROVER_LINE_BYTES, ROVER_SCAN_POINTS

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_POSE_NUMBERS, _POINT_NUMBERS = 6, 3
_KINDS: tuple[tuple[bytes, Callable[..., Any]], ...] = ((b"\x1f\x8b", gzip.open), (b"\xfd7zXZ\x00", lzma.open), (b"\x28\xb5\x2f\xfd", zstd.open))
_STEP_SIZE = 1 << 13
"""Bytes decompressed per step: where a file is truncated, the result of its last step is lost."""
_TAR_MAGIC, _TAR_MAGIC_AT, _TAR_BLOCK = b"ustar", 257, 512
_DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError, zstd.ZstdError, tarfile.TarError)
_NAMED_LINES = 20


class Scan(NamedTuple):
    """Scan of one line.

    Attributes:
        pose: ``float32[6]``, position and rotation (degrees).
        points: ``float32[n, 3]``, points.
    """

    pose: npt.NDArray[np.float32]
    points: npt.NDArray[np.float32]


@dataclass(kw_only=True)
class Tally:
    """Result of reading a file.

    Attributes:
        scans: Number of valid lines.
        damaged: Number of skipped lines.
        faults: First skipped lines: number and fault.
    """

    scans: int = 0
    damaged: int = 0
    faults: list[str] = field(default_factory=list)

    def note(self, fault: str) -> None:
        """Count a skipped line."""
        self.damaged += 1
        if len(self.faults) < _NAMED_LINES:
            self.faults.append(fault)


def parse_scan(line: str) -> Scan | None:
    """Parse the scan of a line; None for an empty one.

    Raises:
        ValueError: the line violates the format; the message names the fault.
    """
    head, _, rest = line.partition(";")
    if not rest and not head.strip():
        return None
    pose = head.split(",")
    if len(pose) < _POSE_NUMBERS:
        raise ValueError(f"a pose must have {_POSE_NUMBERS} numbers, got {len(pose) if head.strip() else 0}")
    words: list[str] = []
    for point in rest.split(";"):
        parts = point.split(",")
        if len(parts) >= _POINT_NUMBERS:
            words += parts[:_POINT_NUMBERS]
    require(ROVER_SCAN_POINTS.rule(len(words) // _POINT_NUMBERS))
    return Scan(_float32(pose[:_POSE_NUMBERS]), _float32(words).reshape(-1, _POINT_NUMBERS))


def _float32(words: list[str]) -> npt.NDArray[np.float32]:
    """Parse numbers to the nearest ``float32``, as C's ``strtof`` rounds: directly, not by way of ``float64``.

    Raises:
        ValueError: a word is not a number, or is too large.
    """
    try:
        exact = np.array([float(word) for word in words], np.float64)
    except ValueError as error:
        raise ValueError(f"must be numbers: {error}") from None
    if any("_" in word for word in words):
        raise ValueError(f"must be numbers, got {next(word for word in words if '_' in word).strip()}")
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float32)
        above = np.nextafter(rounded, np.float32(np.inf), dtype=np.float32)
        below = np.nextafter(rounded, np.float32(-np.inf), dtype=np.float32)
    too_large = np.isinf(rounded) & np.isfinite(exact)
    if too_large.any():
        raise ValueError(f"must be a float32, got {words[int(np.argmax(too_large))].strip()}")
    between = (exact == 0.5 * (rounded.astype(np.float64) + above)) | (exact == 0.5 * (rounded.astype(np.float64) + below))
    for place in np.flatnonzero(between & np.isfinite(exact)):
        # The float64 is midway between two float32: which of them is nearer depends on the text.
        value, middle = Fraction(words[place].strip()), Fraction(exact[place])
        if value != middle:
            furthest = max if value > middle else min
            near = (rounded[place], above[place] if exact[place] > rounded[place] else below[place])
            rounded[place] = furthest(near)
    return rounded


class ScanFile:
    """A file of scans, which may be read repeatedly from its beginning."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def scans(self, tally: Tally) -> Iterator[Scan]:
        """Scans of all valid lines, in order; other lines are recorded in ``tally``, as is a truncated file.

        Raises:
            AssetError: the file cannot be opened or read.
        """
        with ExitStack() as opened:
            file = self._opened(opened)
            number = 0
            while True:
                number += 1
                try:
                    line = file.readline(ROVER_LINE_BYTES.bound + 1)
                except _DAMAGED as error:
                    tally.note(f"line {number}: the file breaks off: {error}")
                    return
                if not line:
                    return
                if len(line) > ROVER_LINE_BYTES.bound:
                    tally.note(f"line {number}: {ROVER_LINE_BYTES.rule(len(line))[1]}")
                    return
                try:
                    scan = parse_scan(line.decode("ascii"))
                except ValueError as error:
                    tally.note(f"line {number}: {error}")
                    continue
                if scan is not None:
                    tally.scans += 1
                    yield scan

    def first(self) -> Scan:
        """Scan of the first valid line.

        Raises:
            AssetError: there is none, or the file cannot be opened or read.
        """
        tally = Tally()
        for scan in self.scans(tally):
            return scan
        found = "; ".join(tally.faults[:3]) or "an empty file"
        raise AssetError(f"{self.path}: must hold a scan (posX,posY,posZ,rotX,rotY,rotZ; x,y,z; …), got {found}")

    def _opened(self, opened: ExitStack) -> IO[bytes]:
        """Decompressed bytes of the lines."""
        try:
            raw = opened.enter_context(self.path.open("rb"))
            start = raw.read(len(_KINDS[1][0]))
            raw.seek(0)
        except (OSError, ValueError) as error:
            raise AssetError(f"{self.path}: must be a file that can be read, got {getattr(error, 'strerror', None) or error}") from error
        plain: IO[bytes] = next((opened.enter_context(opener(raw, "rb")) for magic, opener in _KINDS if start.startswith(magic)), raw)
        lines = opened.enter_context(io.BufferedReader(plain, _STEP_SIZE))  # type: ignore[type-var] # all of them have readinto
        try:
            is_tar = lines.peek(_TAR_BLOCK)[_TAR_MAGIC_AT:].startswith(_TAR_MAGIC)
        except _DAMAGED:
            return lines  # reading reports the error, with the line
        if not is_tar:
            return lines
        try:
            archive = opened.enter_context(tarfile.TarFile.open(fileobj=lines, mode="r|"))
            member = next((each for each in archive if each.isfile()), None)
        except _DAMAGED as error:
            raise AssetError(f"{self.path}: must be a sound tar file: {error}") from error
        found = archive.extractfile(member) if member is not None else None
        if found is None:
            raise AssetError(f"{self.path}: must hold a file, got a tar file without one")
        return opened.enter_context(io.BufferedReader(found.detach(), _STEP_SIZE))  # type: ignore[attr-defined] # a BufferedReader, of a size that differs between versions
