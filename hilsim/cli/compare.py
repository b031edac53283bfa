"""``hilsim compare``: compare the statistics of two streams of Velodyne or Ouster sensors, or judge emulated captures beside real ones."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from hilsim.analysis.comparison.comparison import Comparison
from hilsim.analysis.comparison.families import ALL_NAMES, compare_either, draw_either, gather_either
from hilsim.analysis.comparison.report import Tone, render_text, to_json
from hilsim.analysis.comparison.stream import StreamStatistics
from hilsim.analysis.judgement.capture_sample import CaptureSample, sample_capture
from hilsim.analysis.judgement.classifier import require_classifier
from hilsim.analysis.judgement.judge import judge as judge_captures
from hilsim.analysis.judgement.judge_report import judgement_json, render_judgement
from hilsim.capture.pcap import CaptureFile
from hilsim.cli.outputs import ImageFile, metadata_option
from hilsim.cli.terminal.progress import watched
from hilsim.errors import CommandFaultError
from hilsim.families.ouster.comparison.stream import OusterStatistics
from hilsim.families.ouster.metadata_files import given_metadata

_STYLES: dict[Tone, dict[str, Any]] = {
    Tone.HEAD: {"bold": True},
    Tone.PLAIN: {},
    Tone.ALIKE: {"fg": "green"},
    Tone.DIFFERS: {"fg": "yellow"},
    Tone.NOTE: {"fg": "yellow"},
    Tone.BAD: {"fg": "red", "bold": True},
}


class NamedLimit(click.ParamType[tuple[str, float]]):
    """Name of a statistic and its largest distance, such as ``azimuth.total_variation=0.03``."""

    name = "name=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        """Convert to name and limit."""
        name, _, text = str(value).partition("=")
        if name not in ALL_NAMES:
            self.fail(f'the name must be one of {", ".join(ALL_NAMES)}, got "{name}"', param, ctx)
        try:
            limit = float(text)
        except ValueError:
            limit = -1.0
        if not 0.0 <= limit < float("inf"):
            self.fail(f'{name} must be given a number of 0 or more, got "{text}"', param, ctx)
        return name, limit


_SEPARATOR = "--"
_BEHIND = "hilsim.compare.behind"


class SeparatedFiles(click.Command):
    """A command whose files are in two lists, separated by ``--``; ``ctx.meta`` gets the number of files behind it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and count what is behind the separator: click takes the separator away, and everything behind it is a file."""
        if _SEPARATOR in args:
            ctx.meta[_BEHIND] = len(args) - args.index(_SEPARATOR) - 1
        return super().parse_args(ctx, args)


@click.command(cls=SeparatedFiles, options_metavar="[OPTIONS] A B | --judge REAL... -- EMULATED...")
@click.argument("files", type=click.Path(dir_okay=False, path_type=Path), nargs=-1, metavar="")
@click.option(
    "--judge", is_flag=True, help="Judge emulated captures beside real ones, two or more each (the extra `judge`); exit with 1 if distinguished."
)
@click.option("--sensor-a", default="", metavar="ADDRESS", help="Address of the sensor of A; needed if there are several.")
@click.option("--sensor-b", default="", metavar="ADDRESS", help="Address of the sensor of B.")
@click.option("-o", "--output", type=ImageFile(), help="Draw both streams' distributions: .png, .svg or .pdf.")
@click.option("--max", "limits", type=NamedLimit(), multiple=True, help="Exit with 1 when the distance NAME is larger than VALUE; repeatable.")
@metadata_option
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON, distributions included.")
def compare(
    *,
    files: tuple[Path, ...],
    judge: bool,
    sensor_a: str,
    sensor_b: str,
    output: Path | None,
    limits: tuple[tuple[str, float], ...],
    metadata: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Compare the streams of Velodyne or Ouster sensors of captures A and B: each statistic of both, and how far they are apart.

    If the distance of two real units of one model is known, a verdict states whether these streams are as close. Exits with 0 whatever the
    verdicts are, and with 1 if a --max is exceeded.

    With --judge, classifiers try to tell the EMULATED captures from the REAL ones, and the real ones from each other. Exits with 1 if emulated
    captures are distinguished better than real units are.
    """
    if judge:
        if output is not None or limits or sensor_a or sensor_b or metadata:
            raise click.UsageError("--judge takes no --output, --max, --sensor-a, --sensor-b or --metadata")
        behind = click.get_current_context().meta.get(_BEHIND, 0)
        if not 0 < behind < len(files):
            raise click.UsageError("--judge needs real captures, -- and emulated captures")
        _judge(files[:-behind], files[-behind:], as_json=as_json)
        return
    if len(files) != 2:
        raise click.UsageError(f"two captures A and B are needed, got {len(files)}")
    a, b = (_gathered(path, sensor, metadata, as_json=as_json) for path, sensor in zip(files, (sensor_a, sensor_b), strict=True))
    names = str(files[0]), str(files[1])
    _report(compare_either(a, b, names, dict(limits)), names, output, as_json=as_json)


def _report(comparison: Comparison, names: tuple[str, str], output: Path | None, *, as_json: bool) -> None:
    if output is not None:
        draw_either(comparison, names, output)
    if as_json:
        click.echo(json.dumps(to_json(comparison, names)))
    else:
        for line in render_text(comparison, names):
            click.secho(line.text, **_STYLES[line.tone])
    if not comparison.passed:
        raise CommandFaultError


def _gathered(path: Path, sensor: str, metadata: tuple[Path, ...], *, as_json: bool) -> StreamStatistics | OusterStatistics:
    file = CaptureFile(path)
    with watched(file) as datagrams:
        statistics = gather_either(datagrams, given_metadata(metadata, path), name=str(path), sensor=sensor)
    if not as_json:
        for note in file.notes.lines():
            click.secho(f"note: {path.name}: {note}", fg="yellow", err=True)
    return statistics


def _judge(real: tuple[Path, ...], emulated: tuple[Path, ...], *, as_json: bool) -> None:
    require_classifier()
    samples = [[_sampled(path) for path in paths] for paths in (real, emulated)]
    with _trials() as advance:
        judgement = judge_captures(samples[0], samples[1], advance)
    if as_json:
        click.echo(json.dumps(judgement_json(judgement)))
    else:
        for line in render_judgement(judgement):
            click.secho(line.text, **_STYLES[line.tone])
    if not judgement.passed:
        raise CommandFaultError


def _sampled(path: Path) -> CaptureSample:
    file = CaptureFile(path)
    with watched(file) as datagrams:
        return sample_capture(datagrams, name=str(path))


@contextmanager
def _trials() -> Iterator[Callable[[int, int], object]]:
    """Give a function that shows the number of finished trials, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _done, _of: None
        return
    with click.progressbar(length=1, label="judging", file=sys.stderr) as bar:

        def advance(done: int, of: int) -> None:
            bar.length = of
            bar.update(done - bar.pos)

        yield advance
