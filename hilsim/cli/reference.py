"""Writes the generated pages of ``docs/reference/``: ``python -m hilsim.cli.reference`` (``make docs``)."""

from collections.abc import Callable
from pathlib import Path

import click

from hilsim.analysis.conformance.rules import rules_reference
from hilsim.api.reference import api_reference
from hilsim.config.reference import configuration_reference
from hilsim.limits import limits_reference
from hilsim.telemetry.reference import generate_metrics_reference

DIRECTORY = Path(__file__).resolve().parent.parent.parent / "docs" / "reference"

PAGES: dict[str, Callable[[], str]] = {
    "configuration.md": configuration_reference,
    "conformance-rules.md": rules_reference,
    "limits.md": limits_reference,
    "metrics.md": generate_metrics_reference,
    "python-api.md": api_reference,
}


def main() -> None:
    """Write every page."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    for name, make in PAGES.items():
        (DIRECTORY / name).write_text(make(), encoding="utf-8")
        click.echo(DIRECTORY / name)


if __name__ == "__main__":
    main()
