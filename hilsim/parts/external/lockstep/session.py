"""Lockstep with another simulator, without sockets: what each of its messages does to a rig, and what it is answered.

The other side sends poses, then a STEP with the end of the stretch that may be rendered, and waits for DONE. Its datagrams are numbered from 0 on, so a
STEP shows whether any before it is missing: then DONE has the time of the stretch before, and the other side sends the stretch again. What has come twice
counts once. The packets depend on the messages alone: not on when they come, nor on how often they are repeated.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from hilsim.emulator.batch import DatagramBatch
from hilsim.errors import HilsimError, PacketError
from hilsim.limits import MOVED_OBJECTS, STEPPED_POSES
from hilsim.offline.snapshot import Motion, TrackedObject
from hilsim.offline.stepper import Poses, Stepper
from hilsim.parts.external.limits import STEP_S, WAITING_POSES
from hilsim.parts.external.messages import (
    HAS_RATES,
    HAS_VELOCITY,
    HEADER_DTYPE,
    IS_HIDDEN,
    MAGIC,
    PLATFORM_ID,
    VERSION,
    Message,
    MessageKind,
    Shape,
    decode,
)
from hilsim.world.assets.scenes import primitive
from hilsim.world.scene.materials import Material
from hilsim.world.scene.mesh import Mesh
from hilsim.world.scene.shape_specs import BoxSpec, CylinderSpec, SphereSpec

Restart = Literal["continue", "again"]
_MASK = 0xFFFFFFFF
_MAX_MISSING = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Result of a message.

    Attributes:
        reply: Datagram for the other side; empty for none.
        batches: Packets of the released stretch.
        begins_again: Whether rig time begins again at 0 with this message.
    """

    reply: bytes = b""
    batches: tuple[DatagramBatch, ...] = ()
    begins_again: bool = False


NOTHING = Answer()


@dataclass(kw_only=True)
class LockstepCounts:
    """Counts of a session.

    Attributes:
        steps: Released stretches.
        packets: Rendered packets.
        refused: Datagrams and poses that were refused.
        repeated: Datagrams that came again.
        incomplete: Steps before which a datagram was missing.
        partners: Senders that have begun.
        faults: The newest faults.
    """

    steps: int = 0
    packets: int = 0
    refused: int = 0
    repeated: int = 0
    incomplete: int = 0
    partners: int = 0
    faults: list[str] = field(default_factory=list)


class LockstepSession:
    """A rig in lockstep.

    Attributes:
        counts: Counts since the start.
        stepper: The rig.
    """

    def __init__(self, make: Callable[[], Stepper], ids: Mapping[int, str], restart: Restart = "continue") -> None:
        """Build the rig.

        Args:
            make: Builds the rig at rig time 0.
            ids: Names of the rig's objects by their ids in messages.
            restart: Effect of a new sender: ``continue``: its time begins where rig time is; ``again``: rig time begins again at 0.
        """
        self._make, self._restart, self._rig_ids = make, restart, dict(ids)
        self.counts = LockstepCounts()
        self.stepper = make()
        self._is_fresh = True
        self._sender: int | None = None
        self._reset()

    def _reset(self) -> None:
        self._names = dict(self._rig_ids)
        self._poses: dict[int, dict[int, Motion]] = {}
        self._removed: list[tuple[int, str]] = []
        self._hidden: list[tuple[int, str]] = []
        self._seen: set[int] = set()
        self._stepped = -1
        self._offset_ns = 0
        self._answer = b""
        self._faults: list[str] = []

    def handle(self, payload: bytes) -> Answer:
        """Take a datagram of the other side."""
        try:
            message = decode(payload)
        except PacketError as error:
            self._refuse([str(error)])
            return NOTHING
        if message.kind is MessageKind.DONE:
            return NOTHING
        again = message.sender != self._sender and self._begin(message)
        if message.kind is MessageKind.STEP:
            answer = self._step(message)
            return Answer(reply=answer.reply, batches=answer.batches, begins_again=again)
        ahead = (message.sequence - self._stepped - 1) & _MASK
        if message.sequence in self._seen or ahead > _MASK // 2:
            self.counts.repeated += 1
        elif ahead >= _MAX_MISSING:
            self._refuse([f"sequence must be at most {_MAX_MISSING} after that of the step before, got {ahead + 1}"])
        else:
            self._seen.add(message.sequence)
            self._take(message)
        return Answer(begins_again=again)

    def _begin(self, message: Message) -> bool:
        """Begin with a new sender; returns whether rig time begins again."""
        is_first = self.counts.partners == 0
        self.counts.partners += 1
        begins_again = not is_first and self._restart == "again"
        if begins_again and not self._is_fresh:
            self.stepper = self._make()
            self._is_fresh = True
        released_ns = self.stepper.now_ns
        self._reset()
        self._sender = message.sender
        if not begins_again and not is_first:
            for name in self.stepper.objects:
                self._removed.append((released_ns + 1, name))  # they are the former sender's, until they have poses of the new one
            self._offset_ns = max(released_ns, 0) - message.time_ns
        return begins_again

    def _take(self, message: Message) -> None:
        time_ns = message.time_ns + self._offset_ns
        match message.kind:
            case MessageKind.POSES:
                self._take_poses(time_ns, message)
            case MessageKind.OBJECTS:
                for record in message.objects:
                    self._declare(record)
            case MessageKind.REMOVE:
                for record in message.objects:
                    name = self._names.get(int(record["id"]))
                    if name is None:
                        self._refuse([f"id of a removed object must be a known one, got {int(record['id'])}"])
                    else:
                        self._removed.append((max(time_ns, self.stepper.now_ns + 1), name))
            case MessageKind.BYE:
                self._sender = None

    def _take_poses(self, time_ns: int, message: Message) -> None:
        released_ns = self.stepper.now_ns
        if time_ns <= released_ns and not (time_ns == 0 and self._is_fresh):
            is_start = self.counts.partners > 1 and time_ns == released_ns  # a new sender's first pose is that of the stretch before
            self._refuse([] if is_start else [f"poses must be after the released {released_ns} ns, got {time_ns} ns"])
            return
        waiting = sum(map(len, self._poses.values())) + len(message.poses)
        if not WAITING_POSES.holds(waiting):
            self._refuse([WAITING_POSES.rule(waiting)[1]])
            return
        for record in message.poses:
            number = int(record["id"])
            self._poses.setdefault(number, {})[time_ns] = _motion(record)
            if int(record["flags"]) & IS_HIDDEN and number in self._names:
                self._hidden.append((time_ns, self._names[number]))

    def _declare(self, record: Any) -> None:
        number, shape = int(record["id"]), int(record["shape"])
        name = bytes(record["name"]).decode() or f"object {number}"
        if number in self._names:
            return
        if not MOVED_OBJECTS.holds(len(self._names) + 1):
            self._refuse([MOVED_OBJECTS.rule(len(self._names) + 1)[1]])
            return
        if shape == Shape.MODEL:
            self._refuse([f"shape of an object must be 1 to 3 in lockstep, got {shape} of id {number}"])
            return
        try:
            self.stepper.declare(number, name, _mesh(shape, record), int(record["label"]))
        except ValueError as error:
            self._refuse([f"object {number}: {error}"])
            return
        self._names[number] = name

    def _step(self, message: Message) -> Answer:
        number = (message.sequence - self._stepped - 1) & _MASK
        if self._answer and number > _MASK // 2:  # the step before again: its answer was lost
            self.counts.repeated += 1
            return Answer(reply=self._answer)
        until_ns = message.time_ns + self._offset_ns
        awaited = {(self._stepped + 1 + each) & _MASK for each in range(number)} if number < _MAX_MISSING else None
        if awaited is None or not awaited <= self._seen:
            self.counts.incomplete += 1
            return Answer(reply=self._done(self.stepper.now_ns, message.sequence, 0))
        stretch_s = 1e-9 * (until_ns - max(self.stepper.now_ns, 0))
        if not STEP_S.holds(stretch_s):
            self._refuse([STEP_S.rule(stretch_s)[1]])
            return Answer(reply=self._done(self.stepper.now_ns, message.sequence, 0))
        self._seen -= awaited
        self._stepped = message.sequence
        batches: tuple[DatagramBatch, ...] = ()
        if until_ns > self.stepper.now_ns:
            self._commit(until_ns)
            self._is_fresh = False
            batches = tuple(batch for batch, _ in self.stepper.render(until_ns))
        packets = sum(int(batch.size.size) for batch in batches)
        self.counts.steps += 1
        self.counts.packets += packets
        self._answer = self._done(self.stepper.now_ns, message.sequence, packets)
        self._faults = []
        return Answer(reply=self._answer, batches=batches)

    def _commit(self, until_ns: int) -> None:
        """Hand over what has come up to a rig time."""
        due: dict[int, Poses] = {}
        for number, poses in self._poses.items():
            times = sorted(time_ns for time_ns in poses if time_ns <= until_ns)
            taken = [(time_ns, poses.pop(time_ns)) for time_ns in times]
            most = int(STEPPED_POSES.bound)
            if len(taken) > most:
                self._refuse([f"poses of id {number} in a step must be at most {most}, got {len(taken)}"])
            due[number] = taken[-most:]
        platform = due.pop(PLATFORM_ID, ())
        if platform and self.stepper.platform is None:
            self._refuse(['poses of id 0 need platform.kind = "external"'])
            platform = ()
        unknown = sorted(number for number, poses in due.items() if poses and number not in self._names)
        self._refuse([f"id must be of an object of the rig or a declared one, got {number}" for number in unknown])
        listed = [
            (TrackedObject(id=number, name=self._names[number], motion=poses[-1][1]), poses)
            for number, poses in sorted(due.items())
            if poses and number in self._names
        ]
        removed = [name for time_ns, name in self._removed if time_ns <= until_ns and name in self.stepper.objects]
        newest = {thing.name: poses[-1][0] for thing, poses in listed}
        hidden = [name for time_ns, name in self._hidden if newest.get(name) == time_ns]  # an object is hidden after its last pose of the stretch
        self._hidden = [(time_ns, name) for time_ns, name in self._hidden if time_ns > until_ns]
        self._removed = [(time_ns, name) for time_ns, name in self._removed if time_ns > until_ns]
        faults: list[str] = []
        try:
            self.stepper.commit(until_ns, platform, listed, [name for name in dict.fromkeys(removed) if name not in newest] + hidden, faults)
        except (HilsimError, ValueError) as error:
            faults.append(str(error))
        self._refuse(faults)

    def _done(self, time_ns: int, sequence: int, packets: int) -> bytes:
        """The answer to a STEP: the time up to which packets are made, its number, how many packets it made, and how many faults it had."""
        header = np.zeros(1, HEADER_DTYPE)
        sender_ns = max(time_ns - self._offset_ns, 0)
        header[0] = (MAGIC, VERSION, MessageKind.DONE, 0, self._sender or 0, sequence, packets, len(self._faults), sender_ns)
        return header.tobytes()

    def _refuse(self, faults: Iterable[str]) -> None:
        for fault in faults:
            self.counts.refused += 1
            self._faults.append(fault)
            self.counts.faults = [*self.counts.faults[-9:], fault]


def _motion(record: Any) -> Motion:
    flags = int(record["flags"])
    parts = np.asarray(record["orientation"], np.float64)
    w, x, y, z = (parts / np.linalg.norm(parts)).tolist()
    px, py, pz = record["position_m"].tolist()
    vx, vy, vz = record["velocity_mps"].tolist()
    p, q, r = record["rates_radps"].tolist()
    return Motion(
        position_m=(px, py, pz),
        orientation=(w, x, y, z),
        velocity_mps=(vx, vy, vz) if flags & HAS_VELOCITY else None,
        rates_radps=(p, q, r) if flags & HAS_RATES else None,
    )


def _mesh(shape: int, record: Any) -> Mesh:
    length, width, height = (float(extent) for extent in record["size_m"])
    code = int(record["reflectivity"])
    material = Material(name=f"reflectivity {code}", reflectivity=code)
    spec: BoxSpec | CylinderSpec | SphereSpec
    if shape == Shape.BOX:
        spec = BoxSpec(size_m=(length, width, height))
    elif shape == Shape.CYLINDER:
        spec = CylinderSpec(radius_m=0.5 * length, height_m=height)
    else:
        spec = SphereSpec(radius_m=0.5 * length)
    return primitive(spec, material)
