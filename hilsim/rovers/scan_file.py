"""Scans of a rover from a text file: a pose and any number of points a line.

``posX,posY,posZ,rotX,rotY,rotZ; x,y,z; x,y,z; …``: further numbers of a pose or a point are ignored, points of fewer than three numbers and empty lines too.
The file is plain, gzip, xz or zstd, recognised by its first bytes, also a tar of such a kind, of which the first file is read.
A line that breaks this format is left out; ``Tally`` names it.
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
from hilsim.limits import ROVER_LINE_BYTES, ROVER_SCAN_POINTS

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_POSE_NUMBERS, _POINT_NUMBERS = 6, 3
_KINDS: tuple[tuple[bytes, Callable[..., Any]], ...] = ((b"\x1f\x8b", gzip.open), (b"\xfd7zXZ\x00", lzma.open), (b"\x28\xb5\x2f\xfd", zstd.open))
_STEP_SIZE = 1 << 13
"""Bytes that are unpacked at once: where a file breaks off, what its last step gives is lost."""
_TAR_MAGIC, _TAR_MAGIC_AT, _TAR_BLOCK = b"ustar", 257, 512
_DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError, zstd.ZstdError, tarfile.TarError)
_NAMED_LINES = 20


class Scan(NamedTuple):
    """One line.

    Attributes:
        pose: ``float32[6]``, position and rotation (degrees).
        points: ``float32[n, 3]``.
    """

    pose: npt.NDArray[np.float32]
    points: npt.NDArray[np.float32]


@dataclass(kw_only=True)
class Tally:
    """What was found in a file.

    Attributes:
        scans: Good lines.
        damaged: Lines that were left out.
        faults: The first of them: number and what is wrong.
    """

    scans: int = 0
    damaged: int = 0
    faults: list[str] = field(default_factory=list)

    def note(self, fault: str) -> None:
        """Count a line that is left out."""
        self.damaged += 1
        if len(self.faults) < _NAMED_LINES:
            self.faults.append(fault)


def parse_scan(line: str) -> Scan | None:
    """A line's scan; None for an empty one.

    Raises:
        ValueError: it breaks the format; the message names the fault.
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
    """The ``float32`` nearest to each number, as C's ``strtof`` rounds it: at once, and not by way of ``float64``.

    Raises:
        ValueError: one is no number, or too large.
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
        # float64 lies in the middle of two of float32: which of them is nearer, only the text knows.
        value, middle = Fraction(words[place].strip()), Fraction(exact[place])
        if value != middle:
            furthest = max if value > middle else min
            near = (rounded[place], above[place] if exact[place] > rounded[place] else below[place])
            rounded[place] = furthest(near)
    return rounded


class ScanFile:
    """A file of scans, read from its beginning as often as one likes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def scans(self, tally: Tally) -> Iterator[Scan]:
        """Every good line's scan, in order; the others are noted in ``tally``, also where the file breaks off.

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
        """The first good line's scan.

        Raises:
            AssetError: there is none, or the file cannot be opened or read.
        """
        tally = Tally()
        for scan in self.scans(tally):
            return scan
        found = "; ".join(tally.faults[:3]) or "an empty file"
        raise AssetError(f"{self.path}: must hold a scan (posX,posY,posZ,rotX,rotY,rotZ; x,y,z; …), got {found}")

    def _opened(self, opened: ExitStack) -> IO[bytes]:
        """The lines' bytes, decompressed."""
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
            return lines  # reading reports it, with the line
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
