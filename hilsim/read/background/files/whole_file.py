"""Atomic writing of files."""

from contextlib import suppress
from pathlib import Path

from hilsim.errors import AssetError


def replace_file(path: Path, data: bytes) -> None:
    """Create or replace a file atomically: an existing file remains until the new one is complete, and if it cannot be completed.

    Raises:
        AssetError: the file cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise AssetError(f"{path}: cannot be written: {error.strerror}") from error
