"""Files that appear under their name only when complete."""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hilsim.errors import CaptureError


def part_path(path: Path) -> Path:
    """Path under which a file is written until it is complete: its own with ``.part`` appended; a device or a pipe is written directly."""
    whole = path.resolve()  # a link stays a link
    try:
        is_special = not stat.S_ISREG(whole.stat().st_mode)
    except OSError:
        is_special = False
    return path if is_special else whole.with_name(f"{whole.name}.part")


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give the path under which to write ``path``; when the block ends without an exception, the file replaces ``path``.

    After an exception the incomplete file stays in ``part_path``, and a former file at ``path`` is unchanged.

    Raises:
        CaptureError: ``path`` cannot be created.
    """
    part = part_path(path)
    yield part
    if part == path:
        return
    try:
        part.replace(path.resolve())
    except OSError as error:
        raise CaptureError(f"{path}: cannot be created: {error.strerror}; the complete recording is in {part}") from error
