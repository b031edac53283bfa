"""Build the lidars in a rig's SDF file."""

from hilsim.assembly.build import Scenery
from hilsim.config.rig import Rig
from hilsim.errors import ConfigError
from hilsim.parts.gazebo.lidar import GazeboLidar
from hilsim.world.assets.sdf_carriages import sdf_carriages
from hilsim.world.geometry.poses import Pose


def gazebo_lidars(rig: Rig, scenery: Scenery) -> tuple[GazeboLidar, ...]:
    """Every lidar of a rig's SDF file.

    Args:
        rig: A rig with ``[gazebo]``.
        scenery: World of the rig.

    Raises:
        AssetError: what moves cannot be read.
        ConfigError: two lidars have one topic, or there is none.
    """
    scene, sdf = rig.spec.scene, scenery.sdf
    if sdf is None:
        return ()
    path = rig.directory / scene.sdf
    topics = [lidar.scoped_topic for lidar in sdf.lidars]
    repeated = sorted({topic for topic in topics if topics.count(topic) > 1})
    if repeated:
        raise ConfigError(f"{path}: topics of lidars must differ, got {', '.join(repeated)} more than once")
    if not topics:
        raise ConfigError(f"{path}: must have a lidar (a <sensor> of type lidar, gpu_lidar, ray or gpu_ray) for [gazebo], got none")
    carriages = sdf_carriages(sdf, scene, rig.directory)
    solids = sdf.collisions if scene.sdf_sees == "collisions" else ()
    return tuple(
        GazeboLidar(
            lidar,
            scenery.world,
            object_names=scenery.object_names,
            solids=solids,
            stand=Pose(position_m=scene.origin_m),
            carriages=carriages,
            seed=rig.spec.seed,
            number=number,
        )
        for number, lidar in enumerate(sdf.lidars)
    )
