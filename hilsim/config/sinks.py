"""The ``[[sink]]`` tables of a rig: sinks of plug-ins."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hilsim.capture.sinks.plugin import RESERVED, SinkPlugin
from hilsim.config.entry_points import SINKS, find, offered
from hilsim.config.parse import collect_faults
from hilsim.config.places import did_you_mean
from hilsim.errors import ConfigError

PCAP_SINK = "record"
"""Name of the sink of ``[record]``."""


@dataclass(frozen=True, kw_only=True)
class SinkSetting:
    """Checked sink of a rig.

    Attributes:
        name: Name in the rig.
        kind: Name of the entry point.
        settings: Settings of its kind.
    """

    name: str
    kind: str
    settings: Any


class SinkKind(NamedTuple):
    """A kind of sink.

    Attributes:
        plugin: Plug-in that makes the sinks.
        origin: Origin for messages.
    """

    plugin: SinkPlugin[Any]
    origin: str


def sink_kind(kind: str) -> SinkKind:
    """Kind of a sink by its name.

    Raises:
        ConfigError: no distribution provides it, or it is not usable; the message starts with the key.
    """
    subject = f'kind "{kind[:80]}"'
    found = find(SINKS, kind, subject)
    if found is None:
        names = offered(SINKS)
        known = f"one of the installed sinks ({', '.join(names)})" if names else "an installed sink (none is)"
        raise ConfigError(f'kind must be {known}, got "{kind[:80]}"{did_you_mean(kind[:80], names)}')
    if not isinstance(found.thing, SinkPlugin):
        raise ConfigError(f"{subject}: {found.origin} must give a hilsim.plugins.SinkPlugin, got {type(found.thing).__name__}")
    return SinkKind(found.thing, found.origin)


def sink_settings(tables: Sequence[Mapping[str, Any]]) -> tuple[tuple[SinkSetting, ...], list[str]]:
    """Settings of the valid tables, and a sentence for each fault, which starts with the key."""
    settings: list[SinkSetting] = []
    faults: list[str] = []
    for number, table in enumerate(tables):
        setting, wrong = _setting(table)
        faults += [f"sink[{number}].{fault}" for fault in wrong]
        settings += [setting] if setting else []
    repeated = sorted(name for name, count in Counter([PCAP_SINK, *(setting.name for setting in settings)]).items() if count > 1)
    if repeated:
        faults.append(
            f"sink: names must differ, and {PCAP_SINK} is that of [record], got {', '.join(repeated)} more than once: give each sink a name"
        )
    return tuple(settings), faults


def _setting(table: Mapping[str, Any]) -> tuple[SinkSetting | None, list[str]]:
    if "kind" not in table:
        return None, ["kind must be given"]
    kind, name = table["kind"], table.get("name", table["kind"])
    no_text = [f"{key} must be a text, got {table[key]!r}" for key in RESERVED if key in table and not isinstance(table[key], str)]
    if no_text:
        return None, no_text
    is_plain = name.replace("-", "").replace("_", "").isalnum()
    faults = [] if is_plain else [f'name must be letters, digits, "-" and "_", got "{name}"']
    try:
        settings, wrong = _checked(sink_kind(kind), {key: value for key, value in table.items() if key not in RESERVED}, f'kind "{kind}"')
    except ConfigError as error:
        return None, [*faults, str(error)]
    faults += wrong
    return None if faults else SinkSetting(name=name, kind=kind, settings=settings), faults


def _checked(kind: SinkKind, table: dict[str, Any], subject: str) -> tuple[Any, list[str]]:
    """Settings of a kind, and a sentence for each fault.

    Raises:
        ConfigError: the check raised an exception that no rule may raise.
    """
    try:
        return collect_faults(kind.plugin.settings, table)
    except Exception as error:  # a foreign class: types that cannot be read from a file, faulty rules
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ConfigError(f"{subject}: {kind.origin} must have settings that can be checked, got {reason}") from error
