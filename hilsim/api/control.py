"""A client of a running daemon's control socket or port: ``hilsim control`` for programs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from hilsim.daemon.control_client import done, send_request, sender
from hilsim.errors import ConfigError, TransmitError

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ReplayStatus:
    """One replay of a daemon.

    Attributes:
        replay: Its name in the rig.
        position_s: Capture time of what is played, from the capture's first packet.
        passes: Passes through the capture completed.
        ratio: How far this pass is, 0 to 1.
        played_packets: Datagrams handed on to be sent.
        late_packets: Datagrams read too late to be sent in time.
        waiting_packets: Datagrams read ahead.
        underruns: How often nothing was read ahead when it was needed.
        postponed_s: By how much the replay is later than it was to be.
        is_paused: It is held back.
        has_ended: Everything was played.
    """

    replay: str
    position_s: float
    passes: int
    ratio: float
    played_packets: int
    late_packets: int
    waiting_packets: int
    underruns: int
    postponed_s: float
    is_paused: bool
    has_ended: bool


@dataclass(frozen=True, kw_only=True)
class DaemonStatus:
    """State of a daemon's replays.

    Attributes:
        replays: In the rig's order.
    """

    replays: tuple[ReplayStatus, ...]


@dataclass(frozen=True, kw_only=True)
class DaemonFault:
    """One fault that a daemon has found.

    Attributes:
        fault: Its key, as in ``hilsim_fault`` and the log.
        subject: What it is about: a sensor, a flow; empty for the whole rig.
        level: ``degraded`` or ``unhealthy``.
        text: A sentence.
        for_s: Since how long.
    """

    fault: str
    subject: str
    level: str
    text: str
    for_s: float


@dataclass(frozen=True, kw_only=True)
class DaemonHealth:
    """How a daemon does.

    Attributes:
        level: ``healthy``, ``degraded`` or ``unhealthy``.
        healthy: Whether there is no fault at all.
        faults: Those there are now.
        step_s: Seconds that one number of ``counters`` covers.
        counters: How much each counter grew in each step of the last minute, oldest first; those that did not grow are left out.
        recorded: The same, as it was when the latest faults began: ``ago_s``, ``faults``, ``counters``.
    """

    level: str
    healthy: bool
    faults: tuple[DaemonFault, ...]
    step_s: float
    counters: Mapping[str, tuple[int, ...]]
    recorded: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class ChangeTimes:
    """When a change took effect.

    Attributes:
        at_s: Rig time.
        sensors: Rig time for each sensor that it concerns; later than ``at_s`` for one that had been rendered beyond it.
    """

    at_s: float
    sensors: Mapping[str, float]


class Control:
    """Commands to a running daemon; each call is a conversation of its own, so that a daemon may be started anew in between.

    Attributes:
        address: Where the daemon listens.
    """

    def __init__(self, address: str | Path, *, token: str | None = None, token_file: str | Path | None = None) -> None:
        """Of the daemon at an address; nothing is opened yet.

        Args:
            address: Path of the Unix socket (``[control] socket`` of the rig), ``udp:HOST:PORT`` (``[control] listen``), or ``http://HOST:PORT``
                (``[control] http``).
            token: Token of the daemon, for ``http://`` alone.
            token_file: File with the token (``[control] token_file``), instead.

        Raises:
            ConfigError: it is in none of these forms, or the token is missing or cannot be one.
        """
        self.address = str(address)
        self._token, self._token_file = token, token_file
        self._tell = sender(self.address, token, token_file)

    def pause(self, name: str | None = None) -> None:
        """Hold a replay back.

        Args:
            name: Of the replay; None: all of them.

        Raises:
            ConfigError: there is no such replay.
            TransmitError: no daemon listens, or no answer arrives.
        """
        self._obeyed("pause", name)

    def resume(self, name: str | None = None) -> None:
        """Let a replay go on from where it was.

        Args:
            name: Of the replay; None: all of them.

        Raises:
            ConfigError: there is no such replay.
            TransmitError: no daemon listens, or no answer arrives.
        """
        self._obeyed("resume", name)

    def seek(self, seconds: float, name: str | None = None) -> None:
        """Let a replay go on at a capture time.

        Args:
            seconds: From the capture's first packet, 0 to 1e8.
            name: Of the replay; None: all of them.

        Raises:
            ConfigError: there is no such replay, or the time is out of bounds.
            TransmitError: no daemon listens, or no answer arrives.
        """
        self._obeyed(f"seek {seconds!r}", name)

    def change(self, kind: str, at_s: float | None = None, **keys: Any) -> ChangeTimes:
        """Change the rig; returns when packets show it.

        Args:
            kind: ``add``, ``move``, ``travel``, ``remove``, ``weather`` or ``sensor`` ([scripts](../reference/script.md)).
            at_s: Rig time at which it takes effect; None: as soon as possible.
            keys: Keys of the change.

        Raises:
            ConfigError: the change is not sound, cannot be made of the rig as it is, or its time has passed.
            TransmitError: no daemon listens, no answer arrives, or the rig ends before that.
        """
        timed = {} if at_s is None else {"at_s": at_s}
        answer = self._requested({"do": "change", "change": {"kind": kind, **timed, **keys}}, 0.0 if at_s is None else at_s)
        return self._made(ChangeTimes, answer)

    def script(self) -> tuple[dict[str, Any], ...]:
        """The changes made since the rig was started or loaded anew, as a script has them: ``hilsim record --script`` makes the same packets of them.

        Raises:
            TransmitError: no daemon listens, or no answer arrives.
        """
        return tuple(self._requested({"do": "script"})["changes"])

    def state(self) -> dict[str, Any]:
        """What runs and how well: rig time, sensors, objects, replays, vehicle, faults ([control](../reference/control.md)).

        Raises:
            TransmitError: no daemon listens, or no answer arrives.
        """
        return self._requested({"do": "state"})

    def _requested(self, request: Mapping[str, Any], wait_until_s: float = 0.0) -> dict[str, Any]:
        """The answer to a request in JSON.

        Args:
            request: The request.
            wait_until_s: Rig time up to which the answer may take.
        """
        answer = self._parsed(send_request(self.address, json.dumps(request), wait_until_s, self._token, self._token_file))
        if not answer.pop("ok", False):
            raise ConfigError(str(answer.get("error", "the daemon refused the request without a reason")))
        return answer

    def status(self) -> DaemonStatus:
        """Where each replay is.

        Raises:
            TransmitError: no daemon listens, no answer arrives, or a daemon of another version sends another answer.
        """
        answer = self._asked("status")
        return DaemonStatus(replays=tuple(self._made(ReplayStatus, replay) for replay in answer.get("replays", ())))

    def health(self) -> DaemonHealth:
        """How the daemon does, with the last minute of counters.

        Raises:
            TransmitError: no daemon listens, no answer arrives, or a daemon of another version sends another answer.
        """
        answer = self._asked("health")
        return self._made(
            DaemonHealth,
            answer
            | {
                "faults": tuple(self._made(DaemonFault, fault) for fault in answer.get("faults", ())),
                "counters": {name: tuple(growth) for name, growth in answer.get("counters", {}).items()},
                "recorded": tuple(answer.get("recorded", ())),
            },
        )

    def _obeyed(self, command: str, name: str | None) -> None:
        if name is not None and len(name.split()) != 1:
            raise ConfigError(f'a replay must be named by one word, got "{name}"')
        done(self._tell(command if name is None else f"{command} {name}"))

    def _asked(self, command: str) -> dict[str, Any]:
        return self._parsed(done(self._tell(command)))

    def _parsed(self, answer: str) -> dict[str, Any]:
        try:
            found = json.loads(answer)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise TransmitError(f"the daemon at {self.address} must answer with a JSON object, got {answer[:80]!r}")
        return found

    def _made(self, kind: type[T], answer: Mapping[str, Any]) -> T:
        """A result from the daemon's answer; unknown fields of a newer daemon are ignored."""
        names = [part.name for part in fields(kind)]  # type: ignore[arg-type] # every kind is a dataclass
        try:
            return kind(**{name: answer[name] for name in names if name in answer})
        except TypeError as error:
            missing = ", ".join(name for name in names if name not in answer)
            raise TransmitError(f"the daemon at {self.address} must be of this version of hilsim, got an answer without {missing}") from error


def connect(address: str | Path, *, token: str | None = None, token_file: str | Path | None = None) -> Control:
    """A client of the daemon at an address; nothing is opened yet.

    Args:
        address: Path of the Unix socket (``[control] socket`` of the rig), ``udp:HOST:PORT`` (``[control] listen``), or ``http://HOST:PORT``
            (``[control] http``).
        token: Token of the daemon, for ``http://`` alone.
        token_file: File with the token (``[control] token_file``), instead.

    Raises:
        ConfigError: it is in none of these forms, or the token is missing or cannot be one.
    """
    return Control(address, token=token, token_file=token_file)
