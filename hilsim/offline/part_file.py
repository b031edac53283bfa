"""Files that appear under their name only when complete."""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hilsim.errors import CaptureError


def part_path(path: Path) -> Path:
    """Where a file is written until it is whole: beside it, with ``.part`` behind its name; a device or a pipe at once."""
    whole = path.resolve()  # a link stays a link
    try:
        is_special = not stat.S_ISREG(whole.stat().st_mode)
    except OSError:
        is_special = False
    return path if is_special else whole.with_name(f"{whole.name}.part")


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Where to write ``path``; it is put there, in place of what there was, when the block ends without an exception.

    After an exception what was written stays in ``part_path``, and a former file under its name.

    Raises:
        CaptureError: it cannot be put there.
    """
    part = part_path(path)
    yield part
    if part == path:
        return
    try:
        part.replace(path.resolve())
    except OSError as error:
        raise CaptureError(f"{path}: cannot be created: {error.strerror}; the recording is whole in {part}") from error
