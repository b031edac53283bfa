"""What a part of a rig moves (``PartKind.moved``): objects with slots of keys, and the states of the platform."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hilsim.config.part_kind import parts_of
from hilsim.config.rig import Rig
from hilsim.errors import ConfigError
from hilsim.world.geometry.live_keys import NO_LIVE_KEYS, LiveKeys
from hilsim.world.platforms.live import LivePose
from hilsim.world.scene.world import SceneObject


class ObjectSlots:
    """Slots of the objects that something outside moves, by their ids; an id keeps its slot.

    Attributes:
        listeners: Callbacks for the id and the slot of each further object.
    """

    def __init__(self, declared: Sequence[int], capacity: int) -> None:
        """Give the declared ids the first slots of ``capacity``."""
        self._slots = {identity: slot for slot, identity in enumerate(declared)}
        self._capacity = capacity
        self.listeners: list[Callable[[int, int], object]] = []

    def slot_of(self, identity: int) -> int:
        """Slot of an id; a new id gets the next one.

        Raises:
            ConfigError: all slots are taken.
        """
        if identity not in self._slots:
            if len(self._slots) == self._capacity:
                raise ConfigError(f"external_id must be one of the {self._capacity} that were moved so far, got another one ({identity})")
            self._slots[identity] = len(self._slots)
            for listener in self.listeners:
                listener(identity, self._slots[identity])
        return self._slots[identity]

    @property
    def ids(self) -> tuple[int, ...]:
        """Id of each slot."""
        return tuple(self._slots)


class MovedScene(NamedTuple):
    """Objects, keys and states that a part moves.

    Attributes:
        objects: Objects of the world, in the order of their slots.
        keys: Keys of objects; an object's placement has its slot.
        live: States of the platform; None if it is not moved.
        slots: Slots of the objects.
    """

    objects: tuple[SceneObject, ...] = ()
    keys: LiveKeys = NO_LIVE_KEYS
    live: LivePose | None = None
    slots: ObjectSlots | None = None


NOTHING_MOVED = MovedScene()


def moved_scene(rig: Rig, others: Sequence[SceneObject]) -> MovedScene:
    """What the parts of a rig move; ``others`` are the objects of the scene, whose names are taken.

    Raises:
        AssetError: a file cannot be used.
        ConfigError: a name is taken, or a material is unknown.
    """
    found = (kind.moved(rig, each, others) for kind, specs in parts_of(rig.spec) for each in specs if kind.moves)
    return next(found, NOTHING_MOVED)
