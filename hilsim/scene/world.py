"""The world as kernels see it: arrays, built once, never changed.

Everything that can be hit is an *instance* of a *geometry*. What stands still is merged and cut into tiles, instances that share nothing;
what moves (or is repeated) is an instance with a pose track, and instances of one ``Mesh`` share one geometry.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.geometry.poses import Pose
from hilsim.geometry.tracks import PoseTrack
from hilsim.scene.mesh import Mesh


@dataclass(frozen=True, kw_only=True, eq=False)
class SceneObject:
    """Something in the world.

    Attributes:
        mesh: Its surface, in its own frame.
        placement: ``PoseTrack`` of a moving object, world from object; ``Pose`` of one that stands still.
        label: Class for ground truth, 0 to 255; the rig says what the numbers mean.
        name: For people.
    """

    mesh: Mesh
    placement: Pose | PoseTrack = field(default_factory=Pose)
    label: int = 0
    name: str = ""


class World(NamedTuple):
    """Arrays for kernels; ``build_world`` is the only maker. Nothing in it is ever written.

    Instances are numbered tiles first, then movers: instance ``i`` is mover ``i - tile_count``. A tile never turns; its geometry's origin is
    its place in the world. A mover's geometry stands ``geometry_origin_m`` from the origin of the mover's own frame.

    Attributes:
        origin_m: ``float64[3]``, what the boxes of the tile tree are relative to.
        tile_count: How many instances are tiles.
        tile_root: Node row of the tree over all tiles, -1 when there is none; its leaves hold instance numbers.
        node_bounds: ``float32[n, 16]``, a node's two child boxes, (low xyz, high xyz) twice; the last four columns are ``node_links``'.
        node_links: ``int32[n, 16]``, **the same memory**: columns 12 and 13 link the children, see ``scene.bvh``.
        corners: ``float32[m, 9]``, a triangle's first vertex and its two edges from there, relative to its geometry's origin, leaf order.
        material: ``uint16[m]``, row of ``reflectivity``.
        owner: ``int32[m]``, object of the triangle in a tile; -1 in a mover's geometry.
        source: ``int32[m]``, row of the triangle in the object's ``Mesh``.
        geometry_root: ``int32[g]``, node row.
        geometry_origin_m: ``float64[g, 3]``.
        instance_geometry: ``int32[i]``.
        instance_object: ``int32[i]``, object of a mover; -1 for a tile.
        radius_m: ``float64[k]``, of the sphere about a mover's origin that holds it.
        speed_mps: ``float64[k]``, upper bound of a mover's speed.
        key_first: ``int32[k]``, first key of a mover's track.
        key_count: ``int32[k]``.
        period_ns: ``int64[k]``.
        key_time_ns: ``int64[q]``; this and the following are the movers' tracks, one after another, as in ``PoseTrack``.
        key_position_m: ``float64[q, 3]``.
        key_arrival_mps: ``float64[q, 3]``.
        key_departure_mps: ``float64[q, 3]``.
        key_orientation: ``float64[q, 4]``.
        object_label: ``uint8[o]``.
        reflectivity: ``uint8[r]``, code of each material.
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
    object_label: npt.NDArray[np.uint8]
    reflectivity: npt.NDArray[np.uint8]


def build_world(objects: Sequence[SceneObject]) -> World:
    """Build the world of ``objects``; an object's id is its place in the sequence. An empty sequence is a world without echoes."""
    raise NotImplementedError(len(objects))
