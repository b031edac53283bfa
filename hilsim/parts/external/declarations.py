"""From messages that declare or remove objects to timed changes."""

from collections.abc import Mapping, Sequence
from typing import Any

from hilsim.config.script import AddChange, ChangeSpec, RemoveChange
from hilsim.errors import ConfigError
from hilsim.parts.external.messages import Message, MessageKind, Shape
from hilsim.world.scene.materials import Material
from hilsim.world.scene.shape_specs import BoxSpec, CylinderSpec, SphereSpec


def declared_changes(message: Message, names: Mapping[int, str], materials: Mapping[str, Material]) -> list[tuple[int, ChangeSpec]]:
    """Changes that a message of objects or of remove asks for, with the id of each object.

    Args:
        message: The message.
        names: Names of the objects that are moved, by their ids; objects that exist are not added again, and others cannot be removed.
        materials: Materials of the rig, by their names.

    Raises:
        ConfigError: a declaration cannot be a change.
    """
    known = message.objects[[int(thing["id"]) in names for thing in message.objects]]
    if message.kind is MessageKind.REMOVE:
        return [(int(thing["id"]), RemoveChange(name=names[int(thing["id"])])) for thing in known]
    new = message.objects[[int(thing["id"]) not in names for thing in message.objects]]
    try:
        return [(int(thing["id"]), _added(thing, materials)) for thing in new]
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _added(thing: Any, materials: Mapping[str, Material]) -> AddChange:
    identity, shape = int(thing["id"]), Shape(int(thing["shape"]))
    name = bytes(thing["name"]).decode() or f"object {identity}"
    if shape is Shape.MODEL:
        return AddChange(like=bytes(thing["model"]).decode(), name=name, external_id=identity)
    x_m, y_m, z_m = (float(extent) for extent in thing["size_m"])
    keys: dict[str, Any] = {"name": name, "label": int(thing["label"]), "material": _nearest(int(thing["reflectivity"]), list(materials.values()))}
    match shape:
        case Shape.BOX:
            return AddChange(box=BoxSpec(size_m=(x_m, y_m, z_m), **keys), external_id=identity)
        case Shape.CYLINDER:
            return AddChange(cylinder=CylinderSpec(radius_m=0.5 * x_m, height_m=z_m, **keys), external_id=identity)
        case Shape.SPHERE:
            return AddChange(sphere=SphereSpec(radius_m=0.5 * x_m, **keys), external_id=identity)
    raise AssertionError(f"shape must be known, got {shape}")


def _nearest(reflectivity: int, materials: Sequence[Material]) -> str:
    """Name of the opaque material whose reflectivity is nearest to a code."""
    opaque = [material for material in materials if not material.lets_light_on]
    return min(opaque, key=lambda material: abs(material.reflectivity - reflectivity)).name
