"""``hilsim compare``: compare the statistics of two streams of Velodyne or Ouster sensors."""

import json
from pathlib import Path
from typing import Any

import click

from hilsim.capture.metadata import given_metadata
from hilsim.capture.pcap import CaptureFile
from hilsim.cli.outputs import ImageFile, metadata_option
from hilsim.cli.terminal.progress import watched
from hilsim.errors import CommandFaultError
from hilsim.read.analysis.comparison.comparison import Comparison
from hilsim.read.analysis.comparison.draw import draw_comparison
from hilsim.read.analysis.comparison.part import SensorStatistics
from hilsim.read.analysis.comparison.report import Tone, render_text, to_json
from hilsim.read.analysis.comparison.streams import compare as compare_streams
from hilsim.read.analysis.comparison.streams import gather, statistic_names

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
        names = statistic_names()
        if name not in names:
            self.fail(f'the name must be one of {", ".join(names)}, got "{name}"', param, ctx)
        try:
            limit = float(text)
        except ValueError:
            limit = -1.0
        if not 0.0 <= limit < float("inf"):
            self.fail(f'{name} must be given a number of 0 or more, got "{text}"', param, ctx)
        return name, limit


@click.command
@click.argument("a", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("b", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--sensor-a", default="", metavar="ADDRESS", help="Address of the sensor of A; needed if there are several.")
@click.option("--sensor-b", default="", metavar="ADDRESS", help="Address of the sensor of B.")
@click.option("-o", "--output", type=ImageFile(), help="Draw both streams' distributions: .png, .svg or .pdf.")
@click.option("--max", "limits", type=NamedLimit(), multiple=True, help="Exit with 1 when the distance NAME is larger than VALUE; repeatable.")
@metadata_option
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON, distributions included.")
def compare(
    *,
    a: Path,
    b: Path,
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
    """
    first, second = (_gathered(path, sensor, metadata, as_json=as_json) for path, sensor in ((a, sensor_a), (b, sensor_b)))
    names = str(a), str(b)
    _report(compare_streams(first, second, dict(limits), names=names), names, output, as_json=as_json)


def _report(comparison: Comparison, names: tuple[str, str], output: Path | None, *, as_json: bool) -> None:
    if output is not None:
        draw_comparison(comparison, names, output)
    if as_json:
        click.echo(json.dumps(to_json(comparison, names)))
    else:
        for line in render_text(comparison, names):
            click.secho(line.text, **_STYLES[line.tone])
    if not comparison.passed:
        raise CommandFaultError


def _gathered(path: Path, sensor: str, metadata: tuple[Path, ...], *, as_json: bool) -> SensorStatistics:
    file = CaptureFile(path)
    with watched(file) as datagrams:
        statistics: SensorStatistics = gather(datagrams, given_metadata(metadata, path), name=str(path), sensor=sensor)
    if not as_json:
        for note in file.notes.lines():
            click.secho(f"note: {path.name}: {note}", fg="yellow", err=True)
    return statistics
