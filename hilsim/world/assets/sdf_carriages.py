"""Motion in an SDF file: actors by their scripts, models by the rig."""

from pathlib import Path

import numpy as np

from hilsim.errors import AssetError
from hilsim.world.assets.tracks import motion_track
from hilsim.world.assets.trajectories import load_trajectory
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.tracks import PoseTrack
from hilsim.world.scene.object_specs import SdfMotionSpec
from hilsim.world.scene.specs import SceneSpec
from hilsim.world.sdf.carriages import Carriage, Carriages
from hilsim.world.sdf.motion import actor_track
from hilsim.world.sdf.specs import SdfScene

_SHOWN_MODELS = 20


def sdf_carriages(sdf: SdfScene, spec: SceneSpec, directory: Path) -> Carriages:
    """Motions of a rig's SDF file.

    Args:
        sdf: Contents of the SDF file.
        spec: Table ``[scene]`` of the rig.
        directory: Directory that the files' paths are relative to.

    Raises:
        AssetError: a model's name, a trajectory file or an actor has faults; the message names all, one per line.
    """
    stand = Pose(position_m=spec.origin_m)
    faults: list[str] = []
    actors: dict[str, Carriage] = {}
    for actor in sdf.actors:
        try:
            track = actor_track(actor, stand)
        except AssetError as error:
            faults.append(str(error))
            continue
        if track is not None:
            actors[actor.name] = Carriage(stand=stand @ actor.pose, track=track)
    poses = {model.name: model.pose for model in sdf.models}
    models: dict[str, Carriage] = {}
    for number, item in enumerate(spec.sdf_motion):
        if item.model not in poses:
            known = ", ".join(list(poses)[:_SHOWN_MODELS]) + (f" and {len(poses) - _SHOWN_MODELS} more" if len(poses) > _SHOWN_MODELS else "")
            faults.append(f'scene.sdf_motion[{number}].model must be a model of {sdf.path} ({known or "it has none"}), got "{item.model}"')
            continue
        try:
            models[item.model] = Carriage(stand=stand @ poses[item.model], track=_track(item, spec, directory))
        except AssetError as error:
            faults.append(str(error))
    if faults:
        raise AssetError("\n".join(faults))
    return Carriages(actors=actors, models=models)


def _track(item: SdfMotionSpec, spec: SceneSpec, directory: Path) -> PoseTrack:
    if item.motion is not None:
        return motion_track(item.motion, spec.origin_m)
    track = load_trajectory(directory / item.file, loop=item.loop)
    return track._replace(position_m=track.position_m + np.array(spec.origin_m))
