"""From ``[external]`` of a rig to what it moves: objects with slots of keys, and the states of the platform."""

from collections.abc import Sequence

import numpy as np

from hilsim.assembly.moved import MovedScene, ObjectSlots
from hilsim.config.rig import Rig
from hilsim.errors import ConfigError
from hilsim.parts.external.bodies import OBJECT_SPACING_NS, SPACING_NS
from hilsim.parts.external.recording import load_recording
from hilsim.parts.external.specs import ExternalSpec
from hilsim.world.assets.scenes import Assets
from hilsim.world.geometry.live_keys import KEYS, LivePlacement, build_live_keys
from hilsim.world.geometry.poses import mounting
from hilsim.world.platforms.live import SLOTS, STATE_SIZE, LivePose, build_live_pose, write_state
from hilsim.world.scene.specs import material_hint
from hilsim.world.scene.world import SceneObject

SPARE_SLOTS = 256
"""Slots for objects that are declared while the rig runs."""
_IN_USE_NS = 250_000_000
"""Time for which keys are readable, beyond the delay."""


def external_scene(rig: Rig, spec: ExternalSpec, others: Sequence[SceneObject]) -> MovedScene:
    """Objects, keys and states of ``[external]``.

    Args:
        rig: The rig.
        spec: The table.
        others: Objects of the scene, whose names are taken.

    Raises:
        AssetError: a mesh file or the recording cannot be used.
        ConfigError: a name is taken, or a material is unknown.
    """
    objects = _objects(rig, spec, {thing.name for thing in others})
    carries = rig.spec.platform.kind == "external"
    if spec.time == "replay":
        recorded = load_recording(rig.directory / spec.file, [each.id for each in spec.object])
        return MovedScene(objects, recorded.keys, recorded.live if carries else None, ObjectSlots(recorded.ids, len(recorded.keys.written)))
    in_use_ns = round(spec.delay_ms * 1e6) + _IN_USE_NS
    keys = build_live_keys(len(objects) + SPARE_SLOTS, max(KEYS, 2 * (in_use_ns // OBJECT_SPACING_NS)))
    live = _standing(rig, max(SLOTS, 2 * (in_use_ns // SPACING_NS))) if carries else None
    return MovedScene(objects, keys, live, ObjectSlots([each.id for each in spec.object], len(keys.written)))


def _standing(rig: Rig, slots: int) -> LivePose:
    """States of a platform at rest at the pose of the rig's table."""
    live, state = build_live_pose(slots), np.zeros(STATE_SIZE)
    pose = mounting(rig.spec.platform.position_m, rig.spec.platform.rotation_deg)
    state[0:3], state[6:10] = pose.position_m, pose.orientation
    live.state[0] = state
    write_state(live, 0, state)
    return live


def _objects(rig: Rig, spec: ExternalSpec, taken: set[str]) -> tuple[SceneObject, ...]:
    assets, faults, objects = Assets(directory=rig.directory, materials=rig.spec.scene.material_table()), [], []
    for number, each in enumerate(spec.object):
        shape, where = each.shape, f"{rig.path}: external.object[{number}]"
        if shape.name in taken:
            faults.append(f'{where}: name must be new, got "{shape.name}", which an object of the scene has')
        unknown = [name for name in shape.material_names() if name not in assets.materials]
        faults += [
            f"{where}: material must be built in or in the rig's materials, got {name!r}{material_hint(name, assets.materials)}" for name in unknown
        ]
        if not faults:
            mesh = assets.shape(shape).placed(mounting(shape.position_m, shape.rotation_deg))
            objects.append(SceneObject(mesh=mesh, placement=LivePlacement(number, each.speed_max_mps), label=shape.label, name=shape.name))
    if faults:
        raise ConfigError("\n".join(faults))
    return tuple(objects)
