"""A capture's bytes, read sequentially: plain, gzip or zstd, recognised by the first bytes, not by the file's name.

gzip: RFC 1952, with several members and zero padding. zstd: RFC 8878, with several frames, also skippable ones.
The libraries' own file classes are not used, because they lose valid data where a stream is damaged or truncated.
"""

import sys
import zlib
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from hilsim.errors import CaptureError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_COMPRESSED_PIECE_SIZE = 1 << 16
_ZSTD_STEP_SIZE = 1 << 13  # an error in the stream loses the other data of its step
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE_MAGICS = frozenset(bytes((0x50 + number, 0x2A, 0x4D, 0x18)) for number in range(16))


class BrokenFileError(Exception):
    """The file is damaged from here on; caught within this package."""


class _DamagedStreamError(Exception):
    """A compressed stream is damaged; ``whole`` was decompressed before the damage."""

    def __init__(self, whole: bytes, reason: str) -> None:
        super().__init__(reason)
        self.whole = whole


class _Member(Protocol):
    """One of the compressed streams in a file."""

    @property
    def needs_input(self) -> bool:
        """Whether it needs further input before it can produce output."""

    @property
    def is_complete(self) -> bool:
        """Whether its end has been reached."""

    @property
    def unused(self) -> bytes:
        """Input that belongs to the next stream."""

    def decompress(self, data: bytes, most: int) -> bytes:
        """Feed ``data`` (empty while ``needs_input`` is false) and return up to ``most`` decompressed bytes."""


class _GzipMember:
    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)
        self._waiting = b""

    @property
    def needs_input(self) -> bool:
        return not self._waiting

    @property
    def is_complete(self) -> bool:
        return self._stream.eof

    @property
    def unused(self) -> bytes:
        return self._stream.unused_data

    def decompress(self, data: bytes, most: int) -> bytes:
        data = self._waiting + data
        before = self._stream.copy()
        try:
            taken = self._stream.decompress(data, most)
        except zlib.error as error:
            raise _DamagedStreamError(_up_to_damage(before, data), str(error)) from error
        self._waiting = self._stream.unconsumed_tail
        return taken


def _up_to_damage(stream: "zlib._Decompress", data: bytes) -> bytes:
    """Decompressed bytes before the damaged byte, which zlib does not return.

    It is searched by bisection, because a looped replay repeats this in every pass.
    """
    whole = bytearray()
    at, size = 0, 1 << len(data).bit_length()
    while size:
        trial = stream.copy()
        with suppress(zlib.error):
            taken = trial.decompress(data[at : at + size]) if at + size <= len(data) else None
            if taken is not None:
                stream, at = trial, at + size
                whole += taken
        size //= 2
    return bytes(whole)


class _ZstdFrame:
    def __init__(self) -> None:
        self._stream = zstd.ZstdDecompressor()
        self._waiting = b""

    @property
    def needs_input(self) -> bool:
        return not self._waiting and self._stream.needs_input

    @property
    def is_complete(self) -> bool:
        return self._stream.eof

    @property
    def unused(self) -> bytes:
        return self._stream.unused_data + self._waiting

    def decompress(self, data: bytes, most: int) -> bytes:
        data = self._waiting + data
        step, self._waiting = (data[:_ZSTD_STEP_SIZE], data[_ZSTD_STEP_SIZE:]) if self._stream.needs_input else (b"", data)
        try:
            return self._stream.decompress(step, min(most, _ZSTD_STEP_SIZE))
        except zstd.ZstdError as error:
            raise _DamagedStreamError(b"", str(error)) from error


class _RawFile:
    """Bytes of a file on disk."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise CaptureError(f"{path}: cannot be opened: {error.strerror}") from error
        except ValueError as error:  # the path contains a zero character
            raise CaptureError(f"{str(path)!r}: cannot be opened: {error}") from error
        self.name = str(path)
        self.position = 0

    def read(self, size: int) -> bytes:
        """Read 1 to ``size`` bytes, as many as are available at once; none at the end."""
        try:
            data = self._file.read(size)
        except OSError as error:
            raise CaptureError(f"{self.name}: cannot be read at byte {self.position}: {error.strerror}") from error
        self.position += len(data)
        return data

    def skip_to(self, position: int) -> bool:
        """Continue at ``position``; returns False if the file does not support seeking (a pipe)."""
        try:
            self._file.seek(position)
        except OSError:
            return False
        self.position = position
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class CaptureBytes:
    """Bytes of an open capture, decompressed if necessary; a context manager.

    Attributes:
        name: Name of the file in errors.
        position: Offset of the next byte in the decompressed file.
        compression: ``"gzip"``, ``"zstd"`` or None.
    """

    def __init__(self, path: Path) -> None:
        """Open a file.

        Raises:
            CaptureError: the file cannot be opened or read.
        """
        self._raw = _RawFile(path)
        self.name = self._raw.name
        self.position = 0
        self._ahead = b""  # compressed bytes read and not consumed yet; or plain ones read to recognise the format
        self._member: _Member | None = None
        self._fault: str | None = None
        try:
            self._top_up(4)
        except CaptureError:
            self.close()
            raise
        self.compression = _compression(self._ahead)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._raw.close()

    @property
    def file_position(self) -> int:
        """Number of bytes read from the file itself."""
        return self._raw.position

    def read(self, size: int) -> bytes:
        """Read 1 to ``size`` bytes; none at the end.

        Raises:
            BrokenFileError: the compressed stream is truncated or damaged; all earlier bytes were returned.
            CaptureError: the disk fails.
        """
        if self.compression is not None:
            data = self._decompress(size)
        elif self._ahead:
            data, self._ahead = self._ahead[:size], self._ahead[size:]
        else:
            data = self._raw.read(size)
        self.position += len(data)
        return data

    def skip_to(self, position: int, piece_size: int) -> None:
        """Continue at ``position``, which must not be behind the current one; for a compressed file or a pipe, by reading the bytes between.

        Raises:
            BrokenFileError: the compressed stream is truncated or damaged before.
            CaptureError: the disk fails.
        """
        if self.compression is None and self._raw.skip_to(position):
            self._ahead = b""
            self.position = position
        while self.position < position and self.read(min(piece_size, position - self.position)):
            pass

    def _top_up(self, size: int) -> None:
        while len(self._ahead) < size and (data := self._raw.read(_COMPRESSED_PIECE_SIZE)):
            self._ahead += data

    def _decompress(self, size: int) -> bytes:
        while self._fault is None:
            if self._member is None:
                self._member = self._next_member()
                if self._member is None:
                    return b""
            fed = b""
            if self._member.needs_input:
                self._top_up(1)
                fed, self._ahead = self._ahead, b""
            data = self._step(self._member, fed, size)
            if data:
                return data
        raise BrokenFileError(self._fault)

    def _step(self, member: _Member, fed: bytes, size: int) -> bytes:
        was_waiting = not member.needs_input
        try:
            data = member.decompress(fed, size)
        except _DamagedStreamError as error:
            self._fault = f"the {self.compression} stream is damaged before byte {self._raw.position} of the file ({error})"
            return error.whole
        if member.is_complete:
            self._ahead = member.unused
            self._member = None
        elif not (data or fed or was_waiting):
            self._fault = f"the {self.compression} stream ends too early, at byte {self._raw.position} of the file"
        return data

    def _next_member(self) -> _Member | None:
        """Next compressed stream, or None at the end of the file."""
        self._top_up(4)
        if self.compression == "gzip":
            while self._ahead and not self._ahead.strip(b"\x00"):
                self._ahead = b""
                self._top_up(4)
            self._ahead = self._ahead.lstrip(b"\x00")
            self._top_up(4)
        if not self._ahead:
            return None
        if _compression(self._ahead) != self.compression:
            at = self._raw.position - len(self._ahead)
            raise BrokenFileError(f"behind byte {at} of the file, something else follows the {self.compression} stream")
        return _GzipMember() if self.compression == "gzip" else _ZstdFrame()


def _compression(start: bytes) -> str | None:
    """Compression of a file that begins with ``start``."""
    if start.startswith(_GZIP_MAGIC):
        return "gzip"
    return "zstd" if start[:4] == _ZSTD_MAGIC or start[:4] in _SKIPPABLE_MAGICS else None
