"""Parameters for files: output files, whose known errors are reported before anything is rendered or read, and metadata of Ouster sensors."""

import os
from pathlib import Path
from typing import Any

import click

_KINDS = (".png", ".svg", ".pdf")

metadata_option = click.option(
    "--metadata",
    "metadata",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Metadata (JSON) of an Ouster sensor; repeatable. Default: X.json or X.1.json … beside X.pcap.",
)


class ImageFile(click.ParamType[Path]):
    """An image file to write: its suffix gives the type, and its directory must exist."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Convert to a path."""
        path = Path(value)
        if path.suffix.lower() not in _KINDS:
            self.fail(f"must end in {', '.join(_KINDS[:-1])} or {_KINDS[-1]}, got {path}", param, ctx)
        if path.is_dir():
            self.fail(f"must be a file, got the directory {path}", param, ctx)
        if not path.parent.is_dir():
            self.fail(f"must be in an existing directory, got {path}", param, ctx)
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            self.fail(f"must be a writable file, got {path}", param, ctx)
        return path
