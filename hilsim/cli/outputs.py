"""Files that commands write: what is known to be wrong is reported before anything is rendered or read."""

import os
from pathlib import Path
from typing import Any

import click

_KINDS = (".png", ".svg", ".pdf")


class ImageFile(click.ParamType[Path]):
    """An image to be written: its kind by the end of its name, into a directory that is there."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path."""
        path = Path(value)
        if path.suffix.lower() not in _KINDS:
            self.fail(f"must end in {', '.join(_KINDS[:-1])} or {_KINDS[-1]}, got {path}", param, ctx)
        if path.is_dir():
            self.fail(f"must be a file, got the directory {path}", param, ctx)
        if not path.parent.is_dir():
            self.fail(f"must be in a directory that is there, got {path}", param, ctx)
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            self.fail(f"must be a file that can be written, got {path}", param, ctx)
        return path
