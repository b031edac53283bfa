"""Timed changes of the replays of a running rig."""

import time
from dataclasses import dataclass

from hilsim.assembly.changed import check_unseen
from hilsim.config.script import ReplayChange
from hilsim.daemon.parts import RigClock, RigContext
from hilsim.errors import ConfigError
from hilsim.parts.replays.source import SEEK_NS, ReplaySource
from hilsim.transmit.packet_queue import AHEAD_NS

_MARGIN_NS = 10_000_000
"""Time beyond what players have ready to the packet that a change begins with; a player looks for changes every 8 ms."""
_BEGIN_S = 0.3
"""Longest wait for a change to begin. Its time is decided before."""
_POLL_S = 0.0005


@dataclass(kw_only=True, eq=False)
class ReplayActor:
    """Makes timed changes of replays.

    Attributes:
        context: The rig.
        sources: Replays that play, by name.
    """

    context: RigContext
    sources: dict[str, ReplaySource]

    def check(self, change: ReplayChange) -> None:
        """Find out whether a change can be made.

        Raises:
            ConfigError: no replay has the name, or its capture cannot be read any more.
        """
        check_unseen(self.context.rig, change)
        for spec in self.context.rig.spec.part("replay"):
            source = self.sources.get(spec.name)
            if change.concerns(spec.name) and (fault := source.state().fault if source is not None else "one that does not play"):
                raise ConfigError(f"replay {spec.name} must be readable to be changed, got {fault}")

    def make(self, change: ReplayChange, clock: RigClock) -> tuple[int, dict[str, int]]:
        """Make a change.

        Returns:
            Rig time of the change, and the rig time at which it begins for each replay.

        Raises:
            ConfigError: no replay has the name, or its capture cannot be read any more.
            TransmitError: the threads of a replay do not answer.
        """
        self.check(change)
        at_ns, epoch_ns = change.at_ns, clock.epoch_ns
        if at_ns is None:
            at_ns = clock.now_ns() + AHEAD_NS + _MARGIN_NS + (0 if change.seek_s is None else SEEK_NS)
        begun_ns = {
            name: source.act(epoch_ns + at_ns, paused=change.pause, position_s=change.seek_s) - epoch_ns
            for name, source in self._chosen(change).items()
        }
        until_s = time.monotonic() + _BEGIN_S
        while time.monotonic() < until_s and not all(source.has_acted for source in self._chosen(change).values()):
            time.sleep(_POLL_S)
        return at_ns, begun_ns

    def _chosen(self, change: ReplayChange) -> dict[str, ReplaySource]:
        return {name: source for name, source in dict(self.sources).items() if change.concerns(name)}
