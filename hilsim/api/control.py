"""Client of a running daemon's control socket or port: ``hilsim control`` for programs."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from hilsim.daemon.control.client import Client
from hilsim.errors import ConfigError, TransmitError

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ReplayStatus:
    """State of one replay of a daemon.

    Attributes:
        replay: Name of the replay in the rig.
        position_s: Capture time of the packet played now, from the capture's first packet.
        passes: Number of completed passes through the capture.
        ratio: Progress of this pass, 0 to 1.
        played_packets: Number of datagrams passed on to be sent.
        late_packets: Number of datagrams read too late to be sent in time.
        waiting_packets: Number of datagrams read ahead.
        underruns: Number of times the player found no datagram read ahead.
        postponed_s: Total postponement of the replay.
        is_paused: Whether the replay is paused.
        has_ended: Whether all datagrams were played.
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
        replays: Replays in the rig's order.
    """

    replays: tuple[ReplayStatus, ...]


@dataclass(frozen=True, kw_only=True)
class DaemonFault:
    """One fault of a daemon.

    Attributes:
        fault: Key of the fault, as in ``hilsim_fault`` and the log.
        subject: Sensor, flow or other subject; empty for the whole rig.
        level: ``degraded`` or ``unhealthy``.
        text: Sentence for the operator.
        for_s: Duration so far.
    """

    fault: str
    subject: str
    level: str
    text: str
    for_s: float


@dataclass(frozen=True, kw_only=True)
class DaemonHealth:
    """Health of a daemon.

    Attributes:
        level: ``healthy``, ``degraded`` or ``unhealthy``.
        healthy: Whether there is no fault at all.
        faults: Present faults.
        step_s: Length of a step of ``counters``.
        counters: Growth of each counter in each step of the last minute, oldest first, without counters that did not grow.
        recorded: Records of the beginning of the latest faults: ``ago_s``, ``faults``, ``counters``.
    """

    level: str
    healthy: bool
    faults: tuple[DaemonFault, ...]
    step_s: float
    counters: Mapping[str, tuple[int, ...]]
    recorded: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class ChangeTimes:
    """Times at which a change took effect.

    Attributes:
        at_s: Rig time of the change.
        sensors: Rig time for each affected sensor and part; later than ``at_s`` for one that had been rendered beyond it.
    """

    at_s: float
    sensors: Mapping[str, float]


class Control:
    """Client that sends commands to a running daemon; each call uses its own connection, so the daemon may be restarted in between.

    Attributes:
        address: Address at which the daemon listens.
    """

    def __init__(self, address: str | Path, *, token: str | None = None, token_file: str | Path | None = None) -> None:
        """Create a client of the daemon at an address, without connecting.

        Args:
            address: Path of the Unix socket (``[control] socket`` of the rig), ``udp:HOST:PORT`` (``[control] listen``), or ``http://HOST:PORT``
                (``[control] http``).
            token: Token of the daemon, only for ``http://``.
            token_file: File with the token (``[control] token_file``), instead.

        Raises:
            ConfigError: the address has none of these forms, or the token is missing or malformed.
        """
        self.address = str(address)
        self._client = Client(address, token, token_file)

    def pause(self, name: str | None = None) -> None:
        """Pause a replay.

        Args:
            name: Name of the replay; None: all of them.

        Raises:
            ConfigError: no replay has this name.
            TransmitError: no daemon listens, or no answer arrives.
        """
        self._replay("pause", name)

    def resume(self, name: str | None = None) -> None:
        """Resume a paused replay.

        Args:
            name: Name of the replay; None: all of them.

        Raises:
            ConfigError: no replay has this name.
            TransmitError: no daemon listens, or no answer arrives.
        """
        self._replay("resume", name)

    def seek(self, seconds: float, name: str | None = None) -> None:
        """Continue a replay at a capture time.

        Args:
            seconds: Capture time from the capture's first packet, 0 to 1e8.
            name: Name of the replay; None: all of them.

        Raises:
            ConfigError: no replay has this name, or the time is out of bounds.
            TransmitError: no daemon listens, or no answer arrives.
        """
        self._replay("seek", name, position_s=seconds)

    def change(self, kind: str, at_s: float | None = None, **keys: Any) -> ChangeTimes:
        """Change the rig; returns when packets contain the change.

        Args:
            kind: Kind of the change: ``add``, ``move``, ``travel``, ``remove``, ``weather``, ``sensor``, ``replay``,
                ``vehicle`` ([scripts](../reference/script.md)).
            at_s: Rig time at which it takes effect; None: as soon as possible.
            keys: Keys of the change.

        Raises:
            ConfigError: the change is invalid, cannot be made of the rig as it is, or its time has passed.
            TransmitError: no daemon listens, no answer arrives, or the rig ends before that.
        """
        timed = {} if at_s is None else {"at_s": at_s}
        return self._made(ChangeTimes, self._requested({"do": "change", "change": {"kind": kind, **timed, **keys}}))

    def fault(self, kind: str, on: str = "*", at_s: float | None = None, **keys: Any) -> ChangeTimes:
        """Break something on command ([faults](../reference/faults.md)); returns when packets contain it.

        Args:
            kind: Kind of the fault.
            on: Name of what it befalls, or a pattern.
            at_s: Rig time at which it begins; None: as soon as possible.
            keys: Its keys, such as ``for_s``.

        Raises:
            ConfigError: the fault is invalid, the rig has nothing that it befalls, or its time has passed.
            TransmitError: no daemon listens, no answer arrives, or the rig ends before that.
        """
        return self.change("fault", at_s, fault={"kind": kind, "on": on, **keys})

    def clear(self, name: str = "*", at_s: float | None = None) -> ChangeTimes:
        """End the faults of a name or kind, by default all; from the next firing on, packets are those of a rig without them.

        Args:
            name: Name or kind, or a pattern.
            at_s: Rig time at which they end; None: as soon as possible.

        Raises:
            ConfigError: its time has passed.
            TransmitError: no daemon listens, no answer arrives, or the rig ends before that.
        """
        return self.change("clear", at_s, name=name)

    def faults(self) -> tuple[dict[str, Any], ...]:
        """List the faults on command that act or will, each with its keys and whether it ``acts`` now.

        Raises:
            TransmitError: no daemon listens, or no answer arrives.
        """
        return tuple(self._requested({"do": "faults"})["faults"])

    def script(self) -> tuple[dict[str, Any], ...]:
        """List the changes made since the rig was started or reloaded, in the form of a script that gives the same packets with ``hilsim record --script``.

        Raises:
            TransmitError: no daemon listens, or no answer arrives.
        """
        return tuple(self._requested({"do": "script"})["changes"])

    def scripted(self) -> frozenset[int]:
        """List the places in ``script()`` of the changes that the rig's own script made, not a client.

        Raises:
            TransmitError: no daemon listens, or no answer arrives.
        """
        return frozenset(self._requested({"do": "script"})["scripted"])

    def state(self) -> dict[str, Any]:
        """Read the daemon's state: rig time, sensors, objects, replays, vehicle, faults ([control](../reference/control.md)).

        Raises:
            TransmitError: no daemon listens, or no answer arrives.
        """
        return self._requested({"do": "state"})

    def _requested(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request; returns its answer."""
        return self._client.ask(request)

    def status(self) -> DaemonStatus:
        """Read the state of each replay.

        Raises:
            TransmitError: no daemon listens, no answer arrives, or a daemon of another version sends another answer.
        """
        answer = self._requested({"do": "status"})
        return DaemonStatus(replays=tuple(self._made(ReplayStatus, replay) for replay in answer.get("replays", ())))

    def health(self) -> DaemonHealth:
        """Read the daemon's health, with the last minute of counters.

        Raises:
            TransmitError: no daemon listens, no answer arrives, or a daemon of another version sends another answer.
        """
        answer = self._requested({"do": "health"})
        return self._made(
            DaemonHealth,
            answer
            | {
                "faults": tuple(self._made(DaemonFault, fault) for fault in answer.get("faults", ())),
                "counters": {name: tuple(growth) for name, growth in answer.get("counters", {}).items()},
                "recorded": tuple(answer.get("recorded", ())),
            },
        )

    def _replay(self, verb: str, name: str | None, **keys: float) -> None:
        if name is not None and len(name.split()) != 1:
            raise ConfigError(f'a replay must be named by one word, got "{name}"')
        self._requested({"do": verb, **keys, **({} if name is None else {"replay": name})})

    def _made(self, kind: type[T], answer: Mapping[str, Any]) -> T:
        """Make a result from the daemon's answer, ignoring unknown fields of a newer daemon."""
        names = [part.name for part in fields(kind)]  # type: ignore[arg-type] # all kinds are dataclasses
        try:
            return kind(**{name: answer[name] for name in names if name in answer})
        except TypeError as error:
            missing = ", ".join(name for name in names if name not in answer)
            raise TransmitError(f"the daemon at {self.address} must be of this version of hilsim, got an answer without {missing}") from error


def connect(address: str | Path, *, token: str | None = None, token_file: str | Path | None = None) -> Control:
    """Make a client of the daemon at an address, without connecting.

    Args:
        address: Path of the Unix socket (``[control] socket`` of the rig), ``udp:HOST:PORT`` (``[control] listen``), or ``http://HOST:PORT``
            (``[control] http``).
        token: Token of the daemon, only for ``http://``.
        token_file: File with the token (``[control] token_file``), instead.

    Raises:
        ConfigError: the address has none of these forms, or the token is missing or malformed.
    """
    return Control(address, token=token, token_file=token_file)
