"""``hilsim dataset``: many labelled recordings."""

import json
import os
import sys
import time
from pathlib import Path

import click

from hilsim.errors import ConfigError


@click.command()
@click.argument("spec", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder of the data set; made if needed.")
@click.option("--workers", type=click.IntRange(1, 1024), default=os.cpu_count() or 1, show_default="all cores", help="Number of processes.")
@click.option("--cluster", default="", metavar="ADDRESS", help='Render on a Dask scheduler\'s workers, or on "local" ones, instead.')
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON.")
def dataset(*, spec: Path, output: Path, workers: int, cluster: str, as_json: bool) -> None:
    """Render the recordings of SPEC (a TOML file: rigs, seeds, variants) with their labels, each a file or folder of the data set.

    A run that is interrupted goes on where it stopped: recordings that are complete are left alone. The bytes are the same whatever the workers.
    """
    from hilsim.config.parse import parse_table, read_toml  # noqa: PLC0415 - slow to import
    from hilsim.show.outputs.dataset import DatasetSpec, recordings_of, render_all  # noqa: PLC0415 - imports kernels

    begun_s = time.monotonic()
    parsed = parse_table(DatasetSpec, read_toml(spec), str(spec))
    recordings = recordings_of(parsed, spec.absolute().parent)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{output}: must be a folder that can be made, got {error.strerror}") from error
    there = sum(each.target(output).exists() for each in recordings)
    with click.progressbar(length=len(recordings), label="rendering", file=sys.stderr, hidden=as_json or not sys.stderr.isatty()) as bar:
        bar.update(there)
        for _ in render_all(recordings, output, workers=workers, cluster=cluster):
            bar.update(1)
    facts = {
        "output": str(output),
        "recordings": len(recordings),
        "rendered": len(recordings) - there,
        "took_s": round(time.monotonic() - begun_s, 3),
    }
    if as_json:
        click.echo(json.dumps(facts))
        return
    click.echo(f"{output}: {len(recordings):,} recordings, {len(recordings) - there:,} of them rendered now")
