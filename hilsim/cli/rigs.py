"""What commands that take a rig share."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from hilsim.config.profiles import profiles_directory
from hilsim.config.rig import Rig, load_rig
from hilsim.errors import ConfigError


class RigArgument(click.ParamType[Path]):
    """A rig file, or the name of a shipped rig."""

    name = "rig"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:  # noqa: ARG002 - click's signature
        """The rig's path; whether it is a sound rig is for ``load_rig`` to say."""
        return rig_path(str(value))


def rig_path(text: str) -> Path:
    """Path of a rig: as given, or a shipped one by its name.

    Raises:
        ConfigError: it is neither; the text lists the shipped ones.
    """
    path = Path(text)
    if path.suffix == ".toml" or path.exists():
        return path
    shipped = profiles_directory() / "rigs" / f"{text}.toml"
    if shipped.is_file():
        return shipped
    names = ", ".join(sorted(entry.stem for entry in shipped.parent.glob("*.toml")))
    raise ConfigError(f'rig must be a .toml file or one of the shipped ones ({names}), got "{text}"')


def loaded(path: Path) -> Rig:
    """The checked rig."""
    return load_rig(path)


class UtcInstant(click.ParamType[int]):
    """An instant like ``2026-01-01T00:00:00Z``."""

    name = "utc"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Nanoseconds since 1970-01-01 UTC."""
        if isinstance(value, int):
            return value
        try:
            instant = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f'must be like 2026-01-01T00:00:00Z, got "{value}"', param, ctx)
        if instant.tzinfo is None:
            instant = instant.replace(tzinfo=UTC)
        return round(instant.timestamp()) * 1_000_000_000
