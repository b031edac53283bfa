"""Options and types shared by commands that take a rig. It imports no slow module, because shell completion imports it at each key press."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from hilsim.config.places import rig_path, shipped_names
from hilsim.offline.epoch import START_UTC, utc_ns

if TYPE_CHECKING:
    from hilsim.config.changes import Changes
    from hilsim.config.rig import Rig

Command = TypeVar("Command", bound=Callable[..., Any])


class RigArgument(click.ParamType[Path]):
    """A rig file, or the name of a shipped rig."""

    name = "rig"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:  # noqa: ARG002 - click's signature
        """Convert to the rig's path, without reading the rig."""
        return rig_path(str(value))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - click's signature
        """Complete shipped rigs, ``.toml`` files and folders."""
        return [CompletionItem(name) for name in rigs_beginning(incomplete)]


def rigs_beginning(incomplete: str) -> list[str]:
    """Completions of a rig argument: shipped rigs first, then ``.toml`` files, then folders (with a slash)."""
    typed, _, beginning = incomplete.rpartition("/")
    folder = f"{typed}/" if "/" in incomplete else ""
    try:
        entries = sorted(Path(folder or ".").expanduser().iterdir())
    except OSError:
        entries = []
    near = [entry for entry in entries if entry.name.startswith(beginning) and (beginning or not entry.name.startswith("."))]
    shipped = [name for name in shipped_names("rigs") if not folder and name.startswith(beginning)]
    return [
        *shipped,
        *(f"{folder}{entry.name}" for entry in near if entry.suffix == ".toml" and entry.is_file()),
        *(f"{folder}{entry.name}/" for entry in near if entry.is_dir()),
    ]


def changing(command: Command) -> Command:
    """Add the options that change the rig to a command: ``to`` and ``settings``, for ``changes``."""
    to = click.option(
        "--to",
        metavar="HOST[:PORT]",
        default="",
        help="Send all packets to this IPv4 address or host name; PORT is the destination port of data packets.",
    )
    return to(setting(command))


def choosing(command: Command) -> Command:
    """Add the option ``only`` to a command, for ``config.chosen``."""
    decorate = click.option(
        "--only",
        metavar="NAME",
        multiple=True,
        help="Run only the sensor, replay or part of this name, with the bytes that it has in the whole rig; repeatable.",
    )
    return decorate(command)


def setting(command: Command) -> Command:
    """Add the option ``settings`` to a command, for ``changes``."""
    decorate = click.option(
        "--set",
        "settings",
        metavar="KEY=VALUE",
        multiple=True,
        help="Change a key of the rig, as `hilsim check` prints it, or with a sensor's name instead of its number: sensor.roof.sub_rays=1; repeatable.",
    )
    return decorate(command)


def changes(settings: tuple[str, ...], to: str = "") -> "Changes":
    """Make changes from the options."""
    from hilsim.config.changes import Changes  # noqa: PLC0415 - slow, and not needed for completion

    return Changes(to=to, settings=settings)


def loaded(path: Path, changed: "Changes | None" = None) -> "Rig":
    """Load and check a rig, and look up its hosts.

    Raises:
        ConfigError: the rig is invalid; the message names every fault.
    """
    from hilsim.config.hosts import resolved  # noqa: PLC0415 - slow, and not needed for completion
    from hilsim.config.rig import load_rig  # noqa: PLC0415

    return resolved(load_rig(path, changed), changed)


class UtcInstant(click.ParamType[int]):
    """An instant in ISO 8601."""

    name = "utc"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Convert to nanoseconds since 1970-01-01 UTC."""
        if isinstance(value, int):
            return value
        try:
            return utc_ns(str(value))
        except ValueError:
            self.fail(f'must be like {START_UTC}, got "{value}"', param, ctx)
