"""Worlds of scenes, for tests."""

from hilsim.world.assets.scenes import scene_objects
from hilsim.world.scene.world import build_world


def build_scene(spec, directory):
    """The world of a scene, and notes on its files."""
    objects, notes = scene_objects(spec, directory)
    return build_world(objects), notes
