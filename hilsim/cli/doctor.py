"""``hilsim doctor``: what this machine can do, and what to change."""

import dataclasses
import json

import click

from hilsim.errors import CommandFaultError

_COLOURS = {"good": "green", "fair": "yellow", "bad": "red"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(*, as_json: bool) -> None:
    """Say what this machine can do: real-time scheduling, memory locking, CUDA, ports, cache; and what to change."""
    from hilsim.daemon.doctor import examine  # noqa: PLC0415 - imports numba

    findings = examine()
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(finding) for finding in findings], indent=2))
    else:
        width = max(len(finding.subject) for finding in findings)
        for finding in findings:
            click.secho(f"{finding.verdict:4} ", fg=_COLOURS[finding.verdict], bold=True, nl=False)
            click.echo(f"{finding.subject:{width}}  {finding.fact}")
            if finding.advice:
                click.echo(f"     {'':{width}}  -> {finding.advice}")
    if any(finding.verdict == "bad" for finding in findings):
        raise CommandFaultError
