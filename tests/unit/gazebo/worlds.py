"""Worlds as text, and their lidars."""

from hilsim.parts.gazebo.lidar import GazeboLidar
from hilsim.world.assets.sdf_carriages import sdf_carriages
from hilsim.world.assets.sdf_objects import sdf_objects
from hilsim.world.scene.specs import BUILT_IN_MATERIALS, SceneSpec
from hilsim.world.scene.world import build_world
from hilsim.world.sdf.reading import read_sdf


def thing(name, geometry, pose="0 0 0 0 0 0", inner=""):
    """A model of one link with one collision."""
    collision = f'<collision name="body"><geometry>{geometry}</geometry></collision>' if geometry else ""
    return f'<model name="{name}"><static>true</static><pose>{pose}</pose><link name="link">{collision}{inner}</link></model>'


def box(x, y, z):
    return f"<box><size>{x} {y} {z}</size></box>"


def scanner(
    *,
    columns=3,
    rows=1,
    azimuth=(-0.5, 0.5),
    elevation=(0.0, 0.0),
    span=(0.1, 30.0),
    rate=10,
    noise="",
    kind="lidar",
    name="scanner",
    topic="<topic>/scan</topic>",
):
    vertical = f"<vertical><samples>{rows}</samples><min_angle>{elevation[0]}</min_angle><max_angle>{elevation[1]}</max_angle></vertical>"
    horizontal = f"<horizontal><samples>{columns}</samples><min_angle>{azimuth[0]}</min_angle><max_angle>{azimuth[1]}</max_angle></horizontal>"
    extent = f"<range><min>{span[0]}</min><max>{span[1]}</max></range>"
    return (
        f'<sensor name="{name}" type="{kind}">{topic}<update_rate>{rate}</update_rate><always_on>1</always_on>'
        f"<lidar><scan>{horizontal}{vertical}</scan>{extent}{noise}</lidar></sensor>"
    )


def world_text(*models):
    return f'<?xml version="1.0"?><sdf version="1.9"><world name="yard">{"".join(models)}</world></sdf>'


def lidars_of(path, *models, seed=0, motions=()):
    """The lidars of a world of these models, written to ``path``."""
    path.write_text(world_text(*models))
    scene = read_sdf(path)
    carriages = sdf_carriages(scene, SceneSpec(sdf=path.name, sdf_motion=motions), path.parent)
    objects, _ = sdf_objects(scene, BUILT_IN_MATERIALS, carriages=carriages)
    world, names = build_world(objects), [thing.name for thing in objects]
    return [
        GazeboLidar(lidar, world, object_names=names, solids=scene.collisions, carriages=carriages, seed=seed, number=number)
        for number, lidar in enumerate(scene.lidars)
    ]
