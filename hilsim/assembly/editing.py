"""A world whose objects can be added, moved and removed: each edit gives another world.

It shares static geometry with the former one, and the keys of objects that are moved from outside.

Objects that stand still are merged into tiles when a world is built. The first edit of such an object takes the area from its triangles there, so that no ray
hits them; from then on it is a mover, as added objects are. Rows and boxes of the tiles remain.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Self

from hilsim.errors import ConfigError
from hilsim.limits import INSERTED_OBJECTS, SCENE_TRIANGLES
from hilsim.world.geometry.live_keys import NO_LIVE_KEYS, LiveKeys, LivePlacement
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import PoseTrack, fixed_track
from hilsim.world.scene.materials import Material
from hilsim.world.scene.world import Mover, SceneObject, World, WorldParts, build_world, world_materials


@dataclass(frozen=True, kw_only=True, eq=False)
class EditableWorld:
    """A world with the objects that it was built of.

    Attributes:
        objects: All there have been; an object's id is its place.
        removed: Ids of the removed objects.
        still: Ids of the objects that are merged into tiles.
        materials: Materials by their rows in the world's tables.
        movers: Movers of all other objects, by id.
        geometry_of: Rows of the movers' geometries, by their meshes' ``id``.
        world: The world.
    """

    objects: tuple[SceneObject, ...]
    removed: frozenset[int] = frozenset()
    still: frozenset[int]
    materials: tuple[Material, ...]
    movers: Mapping[int, Mover] = field(default_factory=dict)
    geometry_of: Mapping[int, int] = field(default_factory=dict)
    world: World

    @classmethod
    def of(cls, objects: Sequence[SceneObject], world: World, unseen: frozenset[int] = frozenset(), materials: Sequence[Material] = ()) -> Self:
        """Take a world that ``build_world`` made of these arguments."""
        moving = [(number, thing) for number, thing in enumerate(objects) if not isinstance(thing.placement, Pose) and number not in unseen]
        rows = world.instance_geometry[world.tile_count :].tolist()
        geometry_of = {id(thing.mesh): row for (_, thing), row in zip(moving, rows, strict=True)}
        parts = WorldParts(geometry_of=geometry_of)
        return cls(
            objects=tuple(objects),
            removed=unseen,
            still=frozenset(number for number, thing in enumerate(objects) if isinstance(thing.placement, Pose)) - unseen,
            materials=tuple(dict.fromkeys((*materials, *world_materials(objects)))),
            movers={number: parts.mover(number, thing.mesh, thing.placement) for number, thing in moving if not isinstance(thing.placement, Pose)},
            geometry_of=geometry_of,
            world=world,
        )

    @classmethod
    def of_movers(cls, objects: Sequence[SceneObject], live: LiveKeys) -> Self:
        """The world of objects that are all movers, also those that stand still: no edit builds tiles."""
        movers = _movers(objects)
        return replace(cls.of(movers, build_world(movers, live=live)), objects=tuple(objects))

    def find(self, name: str) -> int:
        """Id of the object of a name.

        Raises:
            ConfigError: there is none of the name, or several.
        """
        found = [number for number, thing in enumerate(self.objects) if thing.name == name and number not in self.removed]
        if len(found) != 1:
            raise ConfigError(f'name must be one object\'s, got "{name}", which {len(found) or "no"} objects have')
        return found[0]

    def has(self, name: str) -> bool:
        """Whether an object has a name."""
        return any(thing.name == name and number not in self.removed for number, thing in enumerate(self.objects))

    def added(self, thing: SceneObject) -> "EditableWorld":
        """The world with another object, whose id is the next one.

        Raises:
            ConfigError: the scene has too many triangles then.
        """
        triangles = sum(len(known.mesh.triangles) for number, known in enumerate(self.objects) if number not in self.removed)
        SCENE_TRIANGLES.enforce(triangles + len(thing.mesh.triangles), "scene", ConfigError)
        new = tuple(material for material in dict.fromkeys(thing.mesh.materials) if material not in self.materials)
        grown = replace(self, objects=(*self.objects, thing), materials=(*self.materials, *new))
        return _moving(grown, len(self.objects), thing)

    def placed(self, number: int, placement: Pose | PoseTrack | LivePlacement) -> "EditableWorld":
        """The world with an object at another place, or on another way."""
        thing = replace(self.objects[number], placement=placement)
        edited = replace(self, objects=(*self.objects[:number], thing, *self.objects[number + 1 :]))
        return _moving(_lifted(edited, number), number, thing)

    def seen_without(self, numbers: AbstractSet[int]) -> World:
        """The world without the movers of some ids."""
        movers = {number: mover for number, mover in self.movers.items() if number not in numbers}
        return _with_movers(self, movers, WorldParts.of(self.world, self.materials, self.geometry_of)).world

    def without(self, number: int) -> "EditableWorld":
        """The world without an object."""
        gone = _lifted(replace(self, removed=self.removed | {number}), number)
        movers = {other: mover for other, mover in self.movers.items() if other != number}
        return _with_movers(gone, movers, WorldParts.of(gone.world, self.materials, self.geometry_of))


def _lifted(edited: EditableWorld, number: int) -> EditableWorld:
    """The world in whose tiles the triangles of an object have no area."""
    if number not in edited.still:
        return edited
    corners = edited.world.corners.copy()
    corners[edited.world.owner == number, 3:] = 0.0
    return replace(edited, still=edited.still - {number}, world=edited.world._replace(corners=corners))


def _moving(edited: EditableWorld, number: int, thing: SceneObject) -> EditableWorld:
    """The world in which an object, which no tile holds, moves or is at a place."""
    track = fixed_track(thing.placement) if isinstance(thing.placement, Pose) else thing.placement
    parts = WorldParts.of(edited.world, edited.materials, edited.geometry_of)
    return _with_movers(edited, {**edited.movers, number: parts.mover(number, thing.mesh, track)}, parts)


def _with_movers(edited: EditableWorld, movers: Mapping[int, Mover], parts: WorldParts) -> EditableWorld:
    ordered, world = dict(sorted(movers.items())), edited.world
    following = parts.world(edited.objects, tuple(ordered.values()), origin_m=world.origin_m, tile_count=world.tile_count, tile_root=world.tile_root)
    return replace(edited, movers=ordered, geometry_of=parts.geometry_of, world=following)


def moving_world(objects: Sequence[SceneObject], live: LiveKeys = NO_LIVE_KEYS) -> EditableWorld:
    """The objects of a scene as a world of which each is a mover, also what stands still: recorded firings are compared with the objects one by one.

    Raises:
        ConfigError: there are too many.
    """
    INSERTED_OBJECTS.enforce(len(objects), "scene", ConfigError)
    movers = _movers(objects)
    return EditableWorld.of(movers, build_world(movers, live=live))


def _movers(objects: Sequence[SceneObject]) -> list[SceneObject]:
    return [replace(thing, placement=fixed_track(thing.placement)) if isinstance(thing.placement, Pose) else thing for thing in objects]
