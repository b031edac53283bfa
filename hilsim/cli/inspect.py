"""``hilsim inspect``: list what is in a capture, and how to replay it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from hilsim.capture.metadata import given_metadata
from hilsim.capture.pcap import CaptureFile
from hilsim.capture.source import CaptureBytes
from hilsim.cli.outputs import metadata_option
from hilsim.cli.terminal.progress import watched
from hilsim.errors import CaptureError, CommandFaultError
from hilsim.read.analysis.inspection.inspector import inspect as inspect_datagrams
from hilsim.read.analysis.inspection.lines import Tone
from hilsim.read.analysis.inspection.report import CaptureFacts, render_text, to_json
from hilsim.read.analysis.inspection.result import CaptureSummary

_PCAPNG_START = b"\x0a\x0d\x0d\x0a"
_STYLES: dict[Tone, dict[str, Any]] = {
    Tone.FILE: {"bold": True},
    Tone.SENSOR: {"bold": True},
    Tone.PLAIN: {},
    Tone.PROBLEM: {"fg": "yellow"},
    Tone.NEXT: {"fg": "green"},
}


@click.command()
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...", type=click.Path(path_type=Path))
@metadata_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list with an object for each capture.")
def inspect(*, captures: tuple[Path, ...], metadata: tuple[Path, ...], as_json: bool) -> None:
    """List what is in each CAPTURE (PCAP, PCAPNG, also gzip or zstd): sensors, modes, rates, gaps, lost packets, clocks; and how to replay it.

    Exits with 1 if a capture contains no UDP datagrams; the others are still listed.
    """
    found: list[dict[str, Any]] = []
    faults = 0
    for number, path in enumerate(captures):
        if number and not as_json:
            click.echo()
        try:
            facts, summary = _inspected(path, given_metadata(metadata, path))
        except CaptureError as error:
            faults += 1
            click.secho("error: ", fg="red", bold=True, err=True, nl=False)
            click.echo(str(error), err=True)
            continue
        if as_json:
            found.append(to_json(facts, summary))
        else:
            _show(facts, summary)
    if as_json:
        click.echo(json.dumps(found, indent=2))
    if faults:
        raise CommandFaultError


def _inspected(path: Path, metadata: Mapping[str, Any]) -> tuple[CaptureFacts, CaptureSummary]:
    """Inspect one capture.

    Raises:
        CaptureError: the capture cannot be read or contains no UDP datagrams.
    """
    file = CaptureFile(path)
    size_bytes = file.size_bytes
    file_format = _format(path)
    with watched(file) as datagrams:
        summary = inspect_datagrams(datagrams, metadata)
    if not summary.datagrams:
        raise CaptureError(f"{path}: no UDP datagrams{_instead(file)}")
    notes = file.notes
    return CaptureFacts(file=str(path), format=file_format, size_bytes=size_bytes, frames=notes.frames, notes=notes.lines()), summary


def _format(path: Path) -> str:
    """Find the format by the file's first bytes; a pipe is not read.

    Raises:
        CaptureError: the file cannot be opened.
    """
    if not path.is_file():
        return "pipe"
    with CaptureBytes(path) as source:
        return source.compression or ("PCAPNG" if source.read(4) == _PCAPNG_START else "PCAP")


def _instead(file: CaptureFile) -> str:
    """Text that states what a file without datagrams contains."""
    frames = file.notes.frames
    counts = ", ".join(line.replace(f" of {frames} frames:", "").replace(" passed over:", "") for line in file.notes.lines())
    return f" among {frames} frames: {counts}" if frames else f": it holds no frames{', ' if counts else ''}{counts}"


def _show(facts: CaptureFacts, summary: CaptureSummary) -> None:
    for note in facts.notes:
        click.secho(f"note: {note}", fg="yellow", err=True)
    for line in render_text(facts, summary):
        click.secho(line.text, **_STYLES[line.tone])
