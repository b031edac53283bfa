"""Kind of sink of another distribution, for a rig's ``[[sink]]``: the object of an entry point in the group ``hilsim.capture.sinks``."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Generic, TypeVar

from hilsim.capture.sinks.base import Sink
from hilsim.errors import require

SettingsT = TypeVar("SettingsT")

RESERVED = ("kind", "name")
"""Keys of each ``[[sink]]`` that hilsim reads itself."""


@dataclass(frozen=True, kw_only=True)
class SinkContext:
    """Information about the rig of a sink.

    Attributes:
        name: Unique name of the sink in its rig.
        rig: Name of the rig.
        directory: Files that the rig names are relative to this.
    """

    name: str
    rig: str
    directory: Path


@dataclass(frozen=True, kw_only=True)
class SinkPlugin(Generic[SettingsT]):
    """A kind of sink; the entry point's name is the ``kind`` that a rig asks for.

    Attributes:
        settings: A dataclass at the top of its module: its fields are the keys of ``[[sink]]``, with their types and defaults, and its ``__post_init__`` raises
            ``ValueError`` for what they must not be (``require`` names all faults at once). ``kind`` and ``name`` are hilsim's own keys.
        make: Function that makes a sink from valid settings; it opens nothing, and may be called in a process that only compiles kernels.
    """

    settings: type[SettingsT]
    make: Callable[[SettingsT, SinkContext], Sink]

    def __post_init__(self) -> None:
        is_class = isinstance(self.settings, type) and is_dataclass(self.settings)
        taken = [field.name for field in fields(self.settings) if field.name in RESERVED] if is_class else []  # type: ignore[arg-type] # it is one
        require(
            (is_class, f"settings must be a dataclass, got {self.settings!r}"),
            (not taken, f"settings must not have the keys {' and '.join(RESERVED)}, got {', '.join(taken)}"),
            (callable(self.make), f"make must be callable, got {self.make!r}"),
        )
