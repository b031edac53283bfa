"""Snapshots as messages for a rig that is driven from outside (``[external]``), live or in lockstep."""

import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.errors import ConfigError, LinkError
from hilsim.offline.snapshot import Motion, Snapshot, TrackedObject
from hilsim.parts.external.messages import (
    HAS_RATES,
    HAS_VELOCITY,
    HEADER_DTYPE,
    HEADER_SIZE,
    MAX_RECORDS,
    OBJECT_DTYPE,
    PLATFORM_ID,
    POSE_DTYPE,
    MessageKind,
    Shape,
    encode,
)
from hilsim.world.scene.materials import DEFAULTS

_SHAPES = {"box": Shape.BOX, "cylinder": Shape.CYLINDER, "sphere": Shape.SPHERE}
_LARGEST_ID = (1 << 32) - 1
_FIRST_MADE_ID = 1 << 31
_NAME_BYTES = 32
_TRIES = 50
_TRY_S = 0.2


@dataclass(kw_only=True)
class Relay:
    """Messages of one sender.

    Attributes:
        sender: Number of the sender.
        ids: Ids of objects of the rig by their names at the source.
        are_declared: Whether objects that are not in ``ids`` are declared; else they are left out.
        zero_ns: Time at the source that is 0 in messages.
    """

    sender: int
    ids: Mapping[str, int] = field(default_factory=dict)
    are_declared: bool = True
    zero_ns: int = 0
    _sequence: int = -1
    _known: dict[str, int] = field(default_factory=dict)
    _declared: set[str] = field(default_factory=set)
    _still: dict[str, TrackedObject] = field(default_factory=dict)
    """Objects that do not move, by name: producers send them once, so they stay until the end of the source."""

    def messages(self, snapshot: Snapshot) -> list[bytes]:
        """Messages of a snapshot: objects that are new, those that are gone, and all poses."""
        time_ns = snapshot.time_ns - self.zero_ns
        objects = [thing for thing in snapshot.objects if thing.name in self.ids or (self.are_declared and thing.size_m is not None)]
        named = {thing.name for thing in objects}
        self._still = {name: thing for name, thing in self._still.items() if name not in named} | {
            thing.name: thing for thing in objects if thing.is_still
        }
        objects += [thing for name, thing in self._still.items() if name not in named]
        new = [thing for thing in objects if thing.name not in self.ids and thing.name not in self._declared]
        gone = sorted(self._declared - {thing.name for thing in objects})
        self._declared |= {thing.name for thing in new}
        self._declared -= set(gone)
        declared, removed = np.zeros(len(new), OBJECT_DTYPE), np.zeros(len(gone), OBJECT_DTYPE)
        for row, thing in enumerate(new):
            declared[row] = self._declaration(thing)
        removed["id"] = [self._known[name] for name in gone]
        poses = [] if snapshot.platform is None else [_pose(PLATFORM_ID, snapshot.platform)]
        poses += [_pose(self._id(thing), thing.motion) for thing in objects]
        return [
            *self._encoded(MessageKind.OBJECTS, declared, time_ns),
            *self._encoded(MessageKind.REMOVE, removed, time_ns),
            *self._encoded(MessageKind.POSES, np.concatenate([np.zeros(0, POSE_DTYPE), *poses]), time_ns),
        ]

    def step(self, snapshot: Snapshot) -> bytes:
        """The message that releases the stretch up to a snapshot."""
        self._sequence += 1
        return encode(MessageKind.STEP, None, time_ns=snapshot.time_ns - self.zero_ns, sender=self.sender, sequence=self._sequence)

    def _encoded(self, kind: MessageKind, records: npt.NDArray[Any], time_ns: int) -> Iterator[bytes]:
        for begin in range(0, len(records), MAX_RECORDS):
            self._sequence += 1
            yield encode(kind, records[begin : begin + MAX_RECORDS], time_ns=time_ns, sender=self.sender, sequence=self._sequence)

    def _id(self, thing: TrackedObject) -> int:
        """Id of an object in messages: that of the rig, its own, or a new one where its own is too large or another object's."""
        if thing.name in self.ids:
            return self.ids[thing.name]
        if thing.name not in self._known:
            taken = {*self._known.values(), *self.ids.values(), PLATFORM_ID}
            is_free = thing.id <= _LARGEST_ID and thing.id not in taken
            self._known[thing.name] = thing.id if is_free else max(_FIRST_MADE_ID - 1, *taken) + 1
        return self._known[thing.name]

    def _declaration(self, thing: TrackedObject) -> Any:
        length, width, height = thing.size_m or (0.0, 0.0, 0.0)
        size = {"box": (length, width, height), "cylinder": (length, length, height), "sphere": (length, length, length)}[thing.shape]
        name = thing.name.encode()[:_NAME_BYTES].decode(errors="ignore").encode()
        return self._id(thing), _SHAPES[thing.shape], int(thing.kind), DEFAULTS[thing.material].reflectivity, 0, size, name, b"", (0,) * 12


def _pose(number: int, motion: Motion) -> npt.NDArray[Any]:
    record = np.zeros(1, POSE_DTYPE)
    record["id"], record["position_m"], record["orientation"] = number, motion.position_m, motion.orientation
    record["flags"] = HAS_VELOCITY * (motion.velocity_mps is not None) | HAS_RATES * (motion.rates_radps is not None)
    record["velocity_mps"], record["rates_radps"] = motion.velocity_mps or (0.0, 0.0, 0.0), motion.rates_radps or (0.0, 0.0, 0.0)
    return record


def open_link(to: str) -> socket.socket:
    """Open a connected socket for ``udp:ADDRESS:PORT`` or ``unix:PATH``.

    Raises:
        ConfigError: the text is neither.
        LinkError: the address cannot be had.
    """
    kind, _, place = to.partition(":")
    host, _, port = place.rpartition(":")
    if not (kind == "unix" and place) and not (kind == "udp" and host and port.isascii() and port.isdigit()):
        raise ConfigError(f'address must be udp:ADDRESS:PORT or unix:PATH, got "{to}"')
    link = socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        if kind == "unix":
            link.bind("")  # an address of its own, for answers
        link.connect(place if kind == "unix" else (host, int(port)))
    except (OSError, OverflowError) as error:
        link.close()
        raise LinkError(f"{to}: cannot be reached: {error}") from error
    return link


def relay_live(snapshots: Iterable[Snapshot], link: socket.socket, relay: Relay, *, is_paced: bool) -> int:
    """Send snapshots as they come; returns their number.

    Args:
        snapshots: Snapshots.
        link: Connected socket.
        relay: Makes the messages.
        is_paced: Whether to wait until each is due by its time: for sources without a clock.
    """
    count, begin_ns = 0, 0
    for snapshot in snapshots:
        if count == 0:
            begin_ns = time.monotonic_ns() - snapshot.time_ns
        left_ns = begin_ns + snapshot.time_ns - time.monotonic_ns()
        if is_paced and left_ns > 0:
            time.sleep(1e-9 * left_ns)
        for message in relay.messages(snapshot):
            _send(link, message)
        count += 1
    return count


def relay_steps(snapshots: Iterable[Snapshot], link: socket.socket, relay: Relay) -> int:
    """Send each snapshot as a step in lockstep and wait for its answer; returns their number.

    Raises:
        LinkError: an answer does not come.
    """
    count = 0
    for snapshot in snapshots:
        if count == 0:
            relay.zero_ns = snapshot.time_ns
        messages = [*relay.messages(snapshot), relay.step(snapshot)]
        _exchange(link, messages, snapshot.time_ns - relay.zero_ns)
        count += 1
    return count


def _exchange(link: socket.socket, messages: Sequence[bytes], time_ns: int) -> None:
    """Send a step's messages until it is done."""
    for _ in range(_TRIES):
        for message in messages:
            _send(link, message)
        deadline_s = time.monotonic() + _TRY_S
        while (left_s := deadline_s - time.monotonic()) > 0:
            link.settimeout(left_s)
            try:
                answer = link.recv(HEADER_SIZE + 1)
            except TimeoutError:
                break
            except ConnectionError:
                time.sleep(max(deadline_s - time.monotonic(), 0.0))
                break
            head = np.frombuffer(answer.ljust(HEADER_SIZE, b"\0")[:HEADER_SIZE], HEADER_DTYPE)[0]
            if head["kind"] == MessageKind.DONE and head["time_ns"] >= time_ns and head["sequence"] == _sequence_of(messages[-1]):
                return
    raise LinkError(f"a rig in lockstep must answer within {_TRIES * _TRY_S:g} s, got no answer for {time_ns / 1e9:g} s")


def _sequence_of(message: bytes) -> int:
    return int(np.frombuffer(message[:HEADER_SIZE], HEADER_DTYPE)[0]["sequence"])


def _send(link: socket.socket, message: bytes) -> None:
    try:
        link.send(message)
    except ConnectionError:
        return  # no receiver listens, now
    except OSError as error:
        raise LinkError(f"poses cannot be sent: {error}") from error
