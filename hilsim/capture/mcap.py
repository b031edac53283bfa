"""MCAP files, by the package ``mcap`` (mcap.dev, "MCAP Format Specification")."""

import struct
from contextlib import contextmanager
from os import SEEK_END
from pathlib import Path
from typing import IO, TYPE_CHECKING

from hilsim.errors import CaptureError, ConfigError, library_reads
from hilsim.limits import MCAP_CHUNK_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcap.reader import McapReader

_MAGIC_SIZE = 8
_RECORD = struct.Struct("<BQ")
_CHUNK, _CHUNK_HEAD = 6, struct.Struct("<16xQ")


@contextmanager
def mcap_reader(path: Path, extra: str) -> "Iterator[McapReader]":
    """Reader of a file, whose faults are those of the file.

    Args:
        path: The file.
        extra: Extra of hilsim's distribution that has the package.

    Raises:
        CaptureError: the file is damaged, also while the reader is used.
        ConfigError: the package is missing.
    """
    try:
        from mcap.exceptions import McapError  # noqa: PLC0415 - an extra
        from mcap.reader import make_reader  # noqa: PLC0415
        from zstandard import ZstdError  # noqa: PLC0415 - comes with mcap
    except ImportError as error:
        raise ConfigError(f"{path}: reading MCAP files requires the package mcap (pip install 'hilsim-lidar[{extra}]')") from error
    with library_reads(f"{path}: cannot be read as MCAP", CaptureError, McapError, ZstdError), path.open("rb") as file:
        check_chunks(path, file)
        yield make_reader(file)


def check_chunks(path: Path, file: IO[bytes]) -> None:
    """Refuse chunks that claim more than the limit before a reader allocates it; leaves ``file`` at its beginning.

    Raises:
        CaptureError: a chunk claims too much.
    """
    end, at = file.seek(0, SEEK_END), _MAGIC_SIZE
    while at + _RECORD.size + _CHUNK_HEAD.size <= end:
        file.seek(at)
        head = file.read(_RECORD.size + _CHUNK_HEAD.size)
        kind, size = _RECORD.unpack_from(head)
        if kind == _CHUNK:
            (claimed,) = _CHUNK_HEAD.unpack_from(head, _RECORD.size)
            MCAP_CHUNK_BYTES.enforce(claimed, f"{path}: byte {at}", CaptureError)
        at += _RECORD.size + size
    file.seek(0)
