"""The world for kernels: arrays that are built once and never changed.

Everything that rays can hit is an *instance* of a *geometry*. Static objects are merged and cut into tiles, instances that share nothing; a moving (or
repeated) object is an instance with a pose track, and instances of one ``Mesh`` share one geometry.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import placed
from hilsim.errors import ConfigError
from hilsim.limits import SCENE_TRIANGLES
from hilsim.world.geometry.live_keys import CURVE_RATIO, NO_LIVE_KEYS, LiveKeys, LivePlacement
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import matrix_from_quaternion
from hilsim.world.geometry.tracks import PoseTrack, top_speed_mps
from hilsim.world.scene.bvh import Tree, build_tree, empty_nodes
from hilsim.world.scene.corners import place_triangles, triangle_boxes
from hilsim.world.scene.materials import Material, Optic
from hilsim.world.scene.mesh import Mesh
from hilsim.world.scene.tiles import cut_long_edges, extent, snap, sole_tile_centre, tile_centres

# Boxes of tiles are tested in float32 relative to the tree's origin; the margin covers the rounding of a ray's origin there.
_TILE_MARGIN_M = 0.001
_TILE_MARGIN_RATIO = 1e-6
# The spheres of movers include the rounding of their vertices to float32 and the tolerance at the edges of triangles.
_RADIUS_MARGIN_M = 1e-4
_RADIUS_MARGIN_RATIO = 1e-5


@dataclass(frozen=True, kw_only=True, eq=False)
class SceneObject:
    """An object in the world.

    Attributes:
        mesh: Surface in the object's own frame.
        placement: ``PoseTrack`` of a moving object, ``LivePlacement`` of one that is moved by keys, ``Pose`` of a static one, world from object.
        label: Class for ground truth, 0 to 255; the rig defines the numbers.
        name: Name for messages and ground truth.
        stands_on_ground: Whether the object is put on what is static; no other object is put on it.
    """

    mesh: Mesh
    placement: Pose | PoseTrack | LivePlacement = field(default_factory=Pose)
    label: int = 0
    name: str = ""
    stands_on_ground: bool = False


@placed
class World(NamedTuple):
    """Arrays for kernels, made only by ``build_world`` and never written afterwards, except ``live``.

    Instances are numbered tiles first, then movers: instance ``i`` is mover ``i - tile_count``. A tile never turns; its geometry's origin is
    its place in the world. A mover's geometry is ``geometry_origin_m`` from the origin of the mover's own frame.

    Attributes:
        origin_m: ``float64[3]``, origin of the boxes of the tile tree.
        tile_count: Number of instances that are tiles.
        tile_root: Root row of the tree over all tiles, -1 without tiles; its leaves are instance numbers.
        node_bounds: ``float32[n, 16]``, a node's two child boxes, (low xyz, high xyz) twice; the last four columns are ``node_links``'.
        node_links: ``int32[n, 16]``, **the same memory**: columns 12 and 13 link the children, see ``world.scene.bvh``.
        corners: ``float32[m, 9]``, a triangle's first vertex and its two edges from there, relative to its geometry's origin, in leaf order.
        material: ``uint16[m]``, row of the triangle's material in ``reflectivity``.
        owner: ``int32[m]``, object of the triangle in a tile; -1 in a mover's geometry.
        source: ``int32[m]``, row of the triangle in the object's ``Mesh``.
        geometry_root: ``int32[g]``, root row of each geometry's tree.
        geometry_origin_m: ``float64[g, 3]``, origin of each geometry.
        instance_geometry: ``int32[i]``, geometry of each instance.
        instance_object: ``int32[i]``, object of a mover; -1 for a tile.
        radius_m: ``float64[k]``, radius of the sphere about a mover's origin that contains it.
        speed_mps: ``float64[k]``, upper bound of a mover's speed.
        key_first: ``int32[k]``, first key of a mover's track; -1 - slot for a mover that is moved by keys of ``live``.
        key_count: ``int32[k]``, number of keys of a mover's track; 0 for a mover that is moved by keys of ``live``.
        period_ns: ``int64[k]``, period of a mover's track, as in ``PoseTrack``.
        key_time_ns: ``int64[q]``, times of all movers' keys, one track after another, as in ``PoseTrack``.
        key_position_m: ``float64[q, 3]``, positions of the keys.
        key_arrival_mps: ``float64[q, 3]``, arriving velocities of the keys.
        key_departure_mps: ``float64[q, 3]``, leaving velocities of the keys.
        key_orientation: ``float64[q, 4]``, orientations of the keys.
        live: Keys that are written while the world is rendered.
        object_label: ``uint8[o]``, label of each object.
        object_position_m: ``float64[o, 3]``, position of each object's texture: in the world of one in tiles, in a mover's own frame of a mover.
        object_orientation: ``float64[o, 4]``, its orientation.
        reflectivity: ``uint8[r]``, code of each material.
        optics: ``float32[r, 9]``, properties of each material, columns by ``Optic``.
        is_opaque: Whether no light goes on from any material, through it or by its mirror image.
    """

    origin_m: npt.NDArray[np.float64]
    tile_count: int
    tile_root: int
    node_bounds: npt.NDArray[np.float32]
    node_links: npt.NDArray[np.int32]
    corners: npt.NDArray[np.float32]
    material: npt.NDArray[np.uint16]
    owner: npt.NDArray[np.int32]
    source: npt.NDArray[np.int32]
    geometry_root: npt.NDArray[np.int32]
    geometry_origin_m: npt.NDArray[np.float64]
    instance_geometry: npt.NDArray[np.int32]
    instance_object: npt.NDArray[np.int32]
    radius_m: npt.NDArray[np.float64]
    speed_mps: npt.NDArray[np.float64]
    key_first: npt.NDArray[np.int32]
    key_count: npt.NDArray[np.int32]
    period_ns: npt.NDArray[np.int64]
    key_time_ns: npt.NDArray[np.int64]
    key_position_m: npt.NDArray[np.float64]
    key_arrival_mps: npt.NDArray[np.float64]
    key_departure_mps: npt.NDArray[np.float64]
    key_orientation: npt.NDArray[np.float64]
    live: LiveKeys
    object_label: npt.NDArray[np.uint8]
    object_position_m: npt.NDArray[np.float64]
    object_orientation: npt.NDArray[np.float64]
    reflectivity: npt.NDArray[np.uint8]
    optics: npt.NDArray[np.float32]
    is_opaque: bool


def build_world(
    objects: Sequence[SceneObject], unseen: frozenset[int] = frozenset(), materials: Sequence[Material] = (), live: LiveKeys = NO_LIVE_KEYS
) -> World:
    """Build the world of ``objects``, which takes about a second a million triangles on two cores.

    An object's id is its index; an empty sequence gives a world without echoes.

    Args:
        objects: Objects of the world.
        unseen: Ids of objects to leave out; the others keep their ids.
        materials: Materials of the first rows of the world's tables, used or not.
        live: Keys of the objects with a ``LivePlacement``.

    Raises:
        ConfigError: the objects have more triangles than ``SCENE_TRIANGLES``, or long ones that would be cut into more pieces than ``CUT_PIECES``.
        ValueError: too many materials, a label that is not a byte, a slot that ``live`` lacks, or triangles that overlap so badly that their tree is too deep.
    """
    SCENE_TRIANGLES.enforce(sum(len(thing.mesh.triangles) for thing in objects), "scene", ConfigError)
    for number, thing in enumerate(objects):
        if not 0 <= thing.label <= 255:
            raise ValueError(f"object {number}: label must be 0 to 255, got {thing.label}")
        if isinstance(thing.placement, LivePlacement) and not 0 <= thing.placement.slot < len(live.written):
            raise ValueError(f"object {number}: slot must be 0 to {len(live.written) - 1}, got {thing.placement.slot}")
    parts = WorldParts(live=live, materials={material: row for row, material in enumerate(dict.fromkeys((*materials, *world_materials(objects))))})
    origin_m = _add_tiles(parts, objects, unseen)
    tile_count = len(parts.instance_geometry)
    tile_root = _add_tile_tree(parts, origin_m)
    movers = [
        parts.mover(number, thing.mesh, thing.placement)
        for number, thing in enumerate(objects)
        if not isinstance(thing.placement, Pose) and number not in unseen
    ]
    return parts.world(objects, movers, origin_m=origin_m, tile_count=tile_count, tile_root=tile_root)


def world_materials(objects: Sequence[SceneObject]) -> tuple[Material, ...]:
    """Materials of the world of ``objects``, in the order of the rows of its ``reflectivity`` and ``optics``."""
    still_first = sorted(objects, key=lambda thing: not isinstance(thing.placement, Pose))
    return tuple(dict.fromkeys(material for thing in still_first for material in thing.mesh.materials))


class Mover(NamedTuple):
    """An instance that moves.

    Attributes:
        object_id: Id of the object.
        geometry: Row of the geometry.
        radius_m: Radius of the sphere about the frame's origin that contains the instance.
        speed_mps: Upper bound of the instance's speed.
        track: Pose track, world from object, or the slot of its keys.
    """

    object_id: int
    geometry: int
    radius_m: float
    speed_mps: float
    track: PoseTrack | LivePlacement


@dataclass
class WorldParts:
    """Lists that grow while a world is built or extended."""

    nodes: list[npt.NDArray[np.float32]] = field(default_factory=list)
    node_count: int = 0
    corners: list[npt.NDArray[np.float32]] = field(default_factory=list)
    corner_count: int = 0
    material: list[npt.NDArray[Any]] = field(default_factory=list)
    owner: list[npt.NDArray[Any]] = field(default_factory=list)
    source: list[npt.NDArray[Any]] = field(default_factory=list)
    materials: dict[Material, int] = field(default_factory=dict)
    geometry_root: list[int] = field(default_factory=list)
    geometry_origin_m: list[npt.NDArray[np.float64]] = field(default_factory=list)
    instance_geometry: list[int] = field(default_factory=list)
    """Geometry of each tile."""
    geometry_of: dict[int, int] = field(default_factory=dict)
    """Row of the geometry of each mesh that moves, by the mesh's ``id``."""
    live: LiveKeys = NO_LIVE_KEYS

    @classmethod
    def of(cls, world: World, materials: Sequence[Material], geometry_of: Mapping[int, int]) -> Self:
        """Parts of an existing world, to which more can be added."""
        return cls(
            nodes=[world.node_bounds],
            node_count=len(world.node_bounds),
            corners=[world.corners],
            corner_count=len(world.corners),
            material=[world.material],
            owner=[world.owner],
            source=[world.source],
            materials={material: row for row, material in enumerate(materials)},
            geometry_root=world.geometry_root.tolist(),
            geometry_origin_m=list(world.geometry_origin_m),
            instance_geometry=world.instance_geometry[: world.tile_count].tolist(),
            geometry_of=dict(geometry_of),
            live=world.live,
        )

    def mover(self, object_id: int, mesh: Mesh, track: PoseTrack | LivePlacement) -> Mover:
        """Mover of a mesh in its own frame; the geometry is added unless it has been added before."""
        if id(mesh) not in self.geometry_of:
            self.geometry_of[id(mesh)] = len(self.geometry_root)
            middle_m = 0.5 * (mesh.vertices_m.min(axis=0) + mesh.vertices_m.max(axis=0))
            owner = np.full(len(mesh.triangles), -1, dtype=np.int64)
            self.add_geometry(mesh.vertices_m[mesh.triangles], middle_m, self.material_rows(mesh), owner, np.arange(len(mesh.triangles)))
        speed_mps = CURVE_RATIO * track.speed_mps if isinstance(track, LivePlacement) else top_speed_mps(track)
        return Mover(object_id, self.geometry_of[id(mesh)], float(np.linalg.norm(mesh.vertices_m, axis=1).max()), speed_mps, track)

    def world(
        self, objects: Sequence[SceneObject], movers: Sequence[Mover], *, origin_m: npt.NDArray[np.float64], tile_count: int, tile_root: int
    ) -> World:
        """World of all parts, with these movers."""
        if len(self.materials) > 65536:
            raise ValueError(f"materials must be at most 65536, got {len(self.materials)}")
        if len(self.nodes) == 1:
            nodes = self.nodes[0]
        else:
            nodes = empty_nodes(self.node_count)
            np.concatenate([np.zeros((0, 16), dtype=np.float32), *self.nodes], out=nodes)
        optics = [material.optics for material in self.materials]
        moving = {mover.object_id for mover in movers}
        poses = [
            thing.placement @ thing.mesh.frame if isinstance(thing.placement, Pose) and number not in moving else thing.mesh.frame
            for number, thing in enumerate(objects)
        ]
        return World(
            origin_m=origin_m,
            tile_count=tile_count,
            tile_root=tile_root,
            node_bounds=nodes,
            node_links=nodes.view(np.int32),
            corners=_joined(self.corners, (0, 9), np.float32),
            material=_joined(self.material, (0,), np.uint16),
            owner=_joined(self.owner, (0,), np.int32),
            source=_joined(self.source, (0,), np.int32),
            geometry_root=np.array(self.geometry_root, dtype=np.int32),
            geometry_origin_m=np.array(self.geometry_origin_m, dtype=np.float64).reshape(-1, 3),
            instance_geometry=np.array([*self.instance_geometry, *(mover.geometry for mover in movers)], dtype=np.int32),
            instance_object=np.array([*(-1 for _ in range(tile_count)), *(mover.object_id for mover in movers)], dtype=np.int32),
            live=self.live,
            object_label=np.array([thing.label for thing in objects], dtype=np.uint8),
            object_position_m=np.array([pose.position_m for pose in poses], dtype=np.float64).reshape(-1, 3),
            object_orientation=np.array([pose.orientation for pose in poses], dtype=np.float64).reshape(-1, 4),
            reflectivity=np.array([material.reflectivity for material in self.materials], dtype=np.uint8),
            optics=np.array(optics, dtype=np.float32).reshape(-1, len(Optic)),
            is_opaque=not any(material.lets_light_on for material in self.materials),
            **mover_tables(movers),
        )

    def material_rows(self, mesh: Mesh) -> npt.NDArray[np.int64]:
        """Row of each of the mesh's triangles in the world's table of materials."""
        rows = [self.materials[material] for material in mesh.materials]
        return np.array(rows, dtype=np.int64)[mesh.material]

    def add_nodes(self, tree: Tree, leaf_offset: int) -> int:
        """Add a tree's nodes with shifted row numbers; returns the row of its root."""
        root = self.node_count
        moved = tree.bounds.copy()
        links = moved.view(np.int32)[:, 12:14]
        links[:] = np.where(links >= 0, links + root, links - 8 * leaf_offset)
        self.nodes.append(moved)
        self.node_count += len(moved)
        return root

    def add_geometry(
        self,
        corners_m: npt.NDArray[np.float64],
        origin_m: npt.NDArray[np.float64],
        material: npt.NDArray[np.int64],
        owner: npt.NDArray[np.int64],
        source: npt.NDArray[np.int64],
    ) -> None:
        """Add triangles ``float64[m, 3, 3]`` as a geometry about ``origin_m``."""
        tree = build_tree(triangle_boxes(corners_m, origin_m))
        order = tree.order
        self.geometry_root.append(self.add_nodes(tree, self.corner_count))
        self.geometry_origin_m.append(origin_m)
        self.corners.append(place_triangles(corners_m, origin_m, order))
        self.corner_count += len(order)
        self.material.append(material[order])
        self.owner.append(owner[order])
        self.source.append(source[order])


def _add_tiles(parts: WorldParts, objects: Sequence[SceneObject], unseen: frozenset[int]) -> npt.NDArray[np.float64]:
    """Merge and cut static objects; returns the origin of the tile tree."""
    still = [
        (number, thing.mesh, thing.placement) for number, thing in enumerate(objects) if isinstance(thing.placement, Pose) and number not in unseen
    ]
    if not still:
        return np.zeros(3)
    corners_m = snap(np.concatenate([_placed(mesh, pose)[mesh.triangles] for _, mesh, pose in still]))
    owner = np.concatenate([np.full(len(mesh.triangles), number, dtype=np.int64) for number, mesh, _ in still])
    source = np.concatenate([np.arange(len(mesh.triangles)) for _, mesh, _ in still])
    material = np.concatenate([parts.material_rows(mesh) for _, mesh, _ in still])
    row: npt.NDArray[Any] = np.arange(len(corners_m))
    rows_of: Sequence[Any] = (slice(None),)
    sole_centre_m = sole_tile_centre(corners_m)
    if sole_centre_m is not None:
        centre_m = sole_centre_m[np.newaxis]
    else:
        corners_m, row = cut_long_edges(corners_m, row)
        centre_m, tile = np.unique(tile_centres(corners_m), axis=0, return_inverse=True)
        ends = np.cumsum(np.bincount(tile.reshape(-1), minlength=len(centre_m)))
        rows_of = np.split(np.argsort(tile.reshape(-1), kind="stable"), ends[:-1])
    for number, rows in enumerate(rows_of):
        parts.instance_geometry.append(len(parts.geometry_root))
        parts.add_geometry(corners_m[rows], centre_m[number], material[row[rows]], owner[row[rows]], source[row[rows]])
    origin_m: npt.NDArray[np.float64] = centre_m[len(centre_m) // 2].copy()
    return origin_m


def _placed(mesh: Mesh, pose: Pose) -> npt.NDArray[np.float64]:
    """The mesh's vertices in the world, ``float64[n, 3]``."""
    placed: npt.NDArray[np.float64] = mesh.vertices_m @ matrix_from_quaternion(pose.orientation).T + np.array(pose.position_m)
    return placed


def _add_tile_tree(parts: WorldParts, origin_m: npt.NDArray[np.float64]) -> int:
    """Build the tree over all tiles; returns its root's row, -1 without tiles."""
    if not parts.geometry_root:
        return -1
    boxes = []
    for corners, centre_m in zip(parts.corners, parts.geometry_origin_m, strict=True):
        lows, highs = zip(
            *(extent(vertices) for vertices in (corners[:, :3], corners[:, :3] + corners[:, 3:6], corners[:, :3] + corners[:, 6:])), strict=True
        )
        low, high = np.min(lows, axis=0).astype(np.float64), np.max(highs, axis=0).astype(np.float64)
        boxes.append(np.concatenate([low + centre_m - origin_m, high + centre_m - origin_m]))
    margin = _TILE_MARGIN_M + _TILE_MARGIN_RATIO * np.abs(boxes).max()
    tree = build_tree((np.array(boxes) + margin * np.repeat([-1.0, 1.0], 3)).astype(np.float32), leaf_size=1)
    inner = tree.links[:, 12:14]
    first, count = (-1 - inner) >> 3, (-1 - inner) & 7
    inner[:] = np.where((inner < 0) & (count > 0), -1 - (tree.order[np.clip(first, 0, len(boxes) - 1)] * 8 + 1), inner)
    return parts.add_nodes(tree, 0)


def mover_tables(movers: Sequence[Mover]) -> dict[str, Any]:
    """The world's arrays of movers and of their tracks."""
    radius_m = [mover.radius_m for mover in movers]
    tracks = [mover.track for mover in movers if isinstance(mover.track, PoseTrack)]
    count = np.array([len(mover.track.time_ns) if isinstance(mover.track, PoseTrack) else 0 for mover in movers], dtype=np.int32)
    slot = np.array([mover.track.slot if isinstance(mover.track, LivePlacement) else -1 for mover in movers], dtype=np.int32)
    return {
        "radius_m": np.array(radius_m, dtype=np.float64) * (1.0 + _RADIUS_MARGIN_RATIO) + _RADIUS_MARGIN_M,
        "speed_mps": np.array([mover.speed_mps for mover in movers], dtype=np.float64),
        "key_first": np.where(slot >= 0, -1 - slot, np.cumsum(count) - count).astype(np.int32),
        "key_count": count,
        "period_ns": np.array([mover.track.period_ns if isinstance(mover.track, PoseTrack) else 0 for mover in movers], dtype=np.int64),
        "key_time_ns": _joined([track.time_ns for track in tracks], (0,), np.int64),
        "key_position_m": _joined([track.position_m for track in tracks], (0, 3), np.float64),
        "key_arrival_mps": _joined([track.arrival_mps for track in tracks], (0, 3), np.float64),
        "key_departure_mps": _joined([track.departure_mps for track in tracks], (0, 3), np.float64),
        "key_orientation": _joined([track.orientation for track in tracks], (0, 4), np.float64),
    }


def _joined(parts: Sequence[npt.NDArray[Any]], empty_shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Concatenate parts to a C-contiguous array, also if there are none; a single part of the right type is returned itself."""
    if len(parts) == 1 and parts[0].dtype == dtype and parts[0].flags.c_contiguous:
        return parts[0]
    return np.ascontiguousarray(np.concatenate([np.zeros(empty_shape, dtype=dtype), *parts]), dtype=dtype)
