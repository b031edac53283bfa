"""Shapes of a scene's objects, for what draws them."""

from dataclasses import dataclass

from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import PoseTrack, track_state
from hilsim.world.scene.mesh import Mesh
from hilsim.world.scene.world import SceneObject


@dataclass(frozen=True, kw_only=True)
class Shape:
    """An object as it is at a rig time.

    Attributes:
        name: Name of the object; empty for one that cannot be edited.
        mesh: Surface in the object's own frame; objects that are alike share it.
        pose: World from object.
        travels: Whether the object moves by itself.
    """

    name: str
    mesh: Mesh
    pose: Pose
    travels: bool


def shape_of(name: str, thing: SceneObject, rig_s: float) -> Shape | None:
    """Shape of an object at a rig time; None for one that another simulator moves, whose place is not known here."""
    placement = thing.placement
    if isinstance(placement, Pose):
        return Shape(name=name, mesh=thing.mesh, pose=placement, travels=False)
    if isinstance(placement, PoseTrack):
        position_m, orientation = track_state(placement, round(rig_s * 1e9))
        return Shape(name=name, mesh=thing.mesh, pose=Pose(position_m=position_m, orientation=orientation), travels=True)
    return None
