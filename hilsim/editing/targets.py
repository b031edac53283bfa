"""Receivers of an edit's timed changes: a running daemon, or a script for a run without a clock."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from hilsim.config.script import change_table, parse_change
from hilsim.errors import require


class Began(Protocol):
    """Answer to a change.

    Attributes:
        at_s: Rig time at which the change takes effect.
    """

    @property
    def at_s(self) -> float:
        """Rig time at which the change takes effect."""


class ChangeTarget(Protocol):
    """Receiver of timed changes."""

    def rig_s(self) -> float:
        """Rig time now."""

    def change(self, kind: str, keys: Mapping[str, Any]) -> float:
        """Make a change as soon as possible; returns the rig time at which it takes effect.

        Raises:
            ConfigError: the change cannot be made.
            TransmitError: the receiver does not answer.
        """

    def script(self) -> Sequence[Mapping[str, Any]]:
        """All changes made so far, as a script has them."""

    def scripted(self) -> Collection[int]:
        """Places in ``script()`` of the changes that the rig's own script made."""


class Client(Protocol):
    """Client of a daemon, as ``hilsim.connect`` makes it."""

    def change(self, kind: str, at_s: float | None = None, **keys: Any) -> Began:
        """Change the rig; returns when packets contain the change."""

    def script(self) -> Sequence[Mapping[str, Any]]:
        """List the changes made so far."""

    def scripted(self) -> Collection[int]:
        """List the places in ``script()`` of the changes that the rig's own script made."""

    def state(self) -> Mapping[str, Any]:
        """Read the daemon's state."""


class DaemonTarget:
    """A running daemon."""

    def __init__(self, client: Client) -> None:
        """Use a client of the daemon, such as ``hilsim.connect("bench.sock")``."""
        self._client = client

    def rig_s(self) -> float:
        """Rig time now."""
        return float(self._client.state()["rig_s"])

    def change(self, kind: str, keys: Mapping[str, Any]) -> float:
        """Make a change as soon as possible; returns the rig time at which it takes effect.

        Raises:
            ConfigError: the change cannot be made.
            TransmitError: the daemon does not answer.
        """
        return self._client.change(kind, **keys).at_s

    def script(self) -> Sequence[Mapping[str, Any]]:
        """All changes made so far, with the times at which the daemon made them."""
        return self._client.script()

    def scripted(self) -> Collection[int]:
        """Places in ``script()`` of the changes that the rig's own script made."""
        return self._client.scripted()


class ScriptTarget:
    """A list of changes for a run without a clock: each takes effect at the rig time that the caller has set."""

    def __init__(self, rig_s: float = 0.0) -> None:
        """Begin at a rig time, without changes."""
        require((rig_s >= 0.0, f"rig_s must be 0 or more, got {rig_s}"))
        self._now_s = rig_s
        self._changes: list[dict[str, Any]] = []

    def advance(self, rig_s: float) -> None:
        """Set the rig time of the next changes.

        Raises:
            ValueError: the time is before that of the last change.
        """
        require((rig_s >= self._now_s, f"rig_s must be {self._now_s:g} or more, got {rig_s}"))
        self._now_s = rig_s

    def rig_s(self) -> float:
        """Rig time of the next changes."""
        return self._now_s

    def change(self, kind: str, keys: Mapping[str, Any]) -> float:
        """Add a change at the present rig time, and return that time.

        Raises:
            ConfigError: the change has faults.
        """
        self._changes.append(change_table(parse_change({"at_s": self._now_s, "kind": kind, **keys})))
        return self._now_s

    def script(self) -> Sequence[Mapping[str, Any]]:
        """All changes made so far."""
        return tuple(self._changes)

    def scripted(self) -> Collection[int]:
        """Places in ``script()`` of the changes that the rig's own script made: none."""
        return ()
