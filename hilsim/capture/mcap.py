"""MCAP files, by the package ``mcap`` (mcap.dev, "MCAP Format Specification")."""

import struct
import sys
from contextlib import contextmanager
from os import SEEK_END
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

from hilsim.errors import CaptureError, ConfigError, library_reads
from hilsim.limits import MCAP_CHUNK_BYTES

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcap.reader import McapReader

_MAGIC = b"\x89MCAP0\r\n"
_MAGIC_SIZE = len(_MAGIC)
_RECORD = struct.Struct("<BQ")
_CHUNK, _CHUNK_HEAD = 6, struct.Struct("<16xQ")
_CHUNK_START = struct.Struct("<24x4xI")
_HEADER, _FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _DATA_END = 1, 2, 3, 4, 5, 15
_KEPT = frozenset((_SCHEMA, _CHANNEL, _MESSAGE))


@contextmanager
def mcap_reader(path: Path, extra: str, note: "Callable[[str], object]" = lambda _: None) -> "Iterator[McapReader]":
    """Reader of a file, whose faults are those of the file; of one that was cut, of what it has.

    Args:
        path: The file.
        extra: Extra of hilsim's distribution that has the package.
        note: Called with a sentence on a file that was cut.

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
    with library_reads(f"{path}: cannot be read as MCAP", CaptureError, McapError, ZstdError, zstd.ZstdError), path.open("rb") as file:
        check_chunks(path, file)
        if is_whole(path):
            yield make_reader(file)
            return
        with TemporaryFile() as rescued:
            count = _rescue(path, file, rescued)
            note(f"{path}: the file was cut: {count:,} whole messages of what is there are read")
            yield make_reader(rescued)


def is_whole(path: Path) -> bool:
    """Whether a file ends as an MCAP file does, or does not begin as one."""
    with path.open("rb") as file:
        begins = file.read(_MAGIC_SIZE) == _MAGIC
        file.seek(max(file.seek(0, SEEK_END) - _MAGIC_SIZE, 0))
        return not begins or file.read() == _MAGIC


def _rescue(path: Path, file: IO[bytes], target: IO[bytes]) -> int:
    """Write the whole messages of a file that was cut, also those in its last chunk, as a file that has an end; returns their number.

    Raises:
        CaptureError: there are none.
    """
    end, at, count = file.seek(0, SEEK_END), _MAGIC_SIZE, 0
    described = bytearray()
    target.write(_MAGIC)
    while at + _RECORD.size <= end:
        file.seek(at)
        kind, size = _RECORD.unpack(file.read(_RECORD.size))
        is_cut = at + _RECORD.size + size > end
        if kind == _CHUNK:
            for record in _records(_unpacked(file.read(min(size, end - at)))):
                target.write(record)
                count += record[0] == _MESSAGE
                described += record if record[0] in {_SCHEMA, _CHANNEL} else b""
        elif kind in {_HEADER, *_KEPT} and not is_cut:
            record = _RECORD.pack(kind, size) + file.read(size)
            target.write(record)
            count += kind == _MESSAGE
            described += record if kind in {_SCHEMA, _CHANNEL} else b""
        at += _RECORD.size + size
    if not count:
        raise CaptureError(f"{path}: cannot be read as MCAP: it was cut before the end of its first message")
    target.write(_RECORD.pack(_DATA_END, 4) + bytes(4))
    summary_start = target.tell()
    target.write(described + _RECORD.pack(_FOOTER, 20) + struct.pack("<QQI", summary_start, 0, 0) + _MAGIC)
    target.seek(0)
    return count


def _records(content: bytes) -> "Iterator[bytes]":
    """Schemas, channels and messages of a chunk's records, up to the last whole one."""
    at = 0
    while at + _RECORD.size <= len(content):
        kind, size = _RECORD.unpack_from(content, at)
        stop = at + _RECORD.size + size
        if stop > len(content):
            return
        if kind in _KEPT:
            yield content[at:stop]
        at = stop


def _unpacked(chunk: bytes) -> bytes:
    """Records of a chunk, as far as it is there."""
    if len(chunk) < _CHUNK_START.size:
        return b""
    (name_size,) = _CHUNK_START.unpack_from(chunk)
    begin = _CHUNK_START.size + name_size
    packed = chunk[begin + 8 :]
    match chunk[_CHUNK_START.size : begin]:
        case b"zstd":
            return zstd.ZstdDecompressor().decompress(packed, int(MCAP_CHUNK_BYTES.bound))
        case b"lz4":
            from lz4.frame import LZ4FrameDecompressor  # noqa: PLC0415 - comes with mcap

            return bytes(LZ4FrameDecompressor().decompress(packed, int(MCAP_CHUNK_BYTES.bound)))
    return packed


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
