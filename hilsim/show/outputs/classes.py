"""Classes of points in published data sets: SemanticKITTI's and nuScenes' numbers for the labels of a rig.

The demo street has a table of classes as any rig can have one. A label without a class is a number of the data set's own.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from hilsim.config.rig import Rig
from hilsim.config.tables.classes import NUSCENES_NAMES, ClassSpec, classes_by_label
from hilsim.emulator.truth import BackgroundLabel
from hilsim.errors import ConfigError
from hilsim.world.assets.street.street import StreetLabel

STREET: Mapping[int, ClassSpec] = MappingProxyType(
    {
        StreetLabel.GROUND: ClassSpec(name="ground", semantic_kitti="road", nuscenes="flat.driveable_surface"),
        StreetLabel.PAVEMENT: ClassSpec(name="pavement", semantic_kitti="sidewalk", nuscenes="flat.sidewalk"),
        StreetLabel.BUILDING: ClassSpec(name="building", nuscenes="static.manmade"),
        StreetLabel.TREE: ClassSpec(name="tree", semantic_kitti="vegetation", nuscenes="static.vegetation"),
        StreetLabel.LAMP_POST: ClassSpec(name="lamp post", semantic_kitti="pole", nuscenes="static.manmade"),
        StreetLabel.TRAFFIC_SIGN: ClassSpec(name="traffic sign", semantic_kitti="traffic-sign", nuscenes="static.manmade"),
        StreetLabel.CAR: ClassSpec(name="car", nuscenes="vehicle.car"),
        StreetLabel.PERSON: ClassSpec(name="person", nuscenes="human.pedestrian.adult"),
    }
)
"""Classes of the demo street, which the rig's own replace."""

_OWN_SEMANTIC_KITTI = 300
"""Number of label 0's own class in SemanticKITTI, whose last number is 259."""
_NAMED = 3
_BACKGROUND = "the captured background"


def classes_of_rig(rig: Rig, more: Mapping[str, ClassSpec], names: Sequence[str], labels: Sequence[int]) -> dict[int, ClassSpec]:
    """Classes of a rig's labels: its own and ``more``, before those of the demo street.

    Args:
        rig: The rig.
        more: Classes by label, which replace the rig's.
        names: Names of the objects.
        labels: Label of each object.

    Raises:
        ConfigError: there are classes, but not for each label of the objects and of a captured background; 0, an object without a label, needs none.
    """
    own = classes_by_label({**rig.spec.classes, **more})
    classes = {**(STREET if rig.spec.scene.generator == "street" else {}), **own}
    if rig.spec.scene.background:
        names, labels = (*names, *(_BACKGROUND for _ in BackgroundLabel)), (*labels, *BackgroundLabel)
    missing = sorted(set(labels) - classes.keys() - {0}) if own else []
    if missing:
        raise ConfigError(
            "\n".join(f"{rig.path}: classes must have each label of the scene, got none for {_described(each, names, labels)}" for each in missing)
        )
    return dict(sorted(classes.items()))


def _described(label: int, names: Sequence[str], labels: Sequence[int]) -> str:
    found = [name for name, its in zip(names, labels, strict=True) if its == label]
    return f"{label} ({', '.join(found[:_NAMED])}{f' and {len(found) - _NAMED} more' if len(found) > _NAMED else ''})"


def semantic_kitti_numbers(classes: Mapping[int, ClassSpec]) -> dict[int, int]:
    """SemanticKITTI's number of each label's class."""
    numbers = {label: spec.semantic_kitti_number for label, spec in classes.items()}
    return {label: _OWN_SEMANTIC_KITTI + label if number is None else number for label, number in numbers.items()}


def nuscenes_indices(classes: Mapping[int, ClassSpec]) -> dict[int, int]:
    """NuScenes' index of each label's category; those of the rig's own follow nuScenes', in the order of their labels."""
    own = [label for label, spec in sorted(classes.items()) if spec.nuscenes_index is None]
    indices = {label: spec.nuscenes_index for label, spec in classes.items()}
    return {label: len(NUSCENES_NAMES) + own.index(label) if index is None else index for label, index in indices.items()}


SEMANTIC_KITTI: Mapping[int, int] = MappingProxyType(semantic_kitti_numbers(STREET))
"""SemanticKITTI's class of each label of the street."""

NUSCENES: Mapping[int, int] = MappingProxyType(nuscenes_indices(STREET))
"""nuScenes' class of each label of the street."""


def classes_of(labels: npt.NDArray[np.integer], classes: Mapping[int, int]) -> npt.NDArray[np.int64]:
    """Classes of points; a label that ``classes`` does not have is its own class."""
    found = labels.astype(np.int64)
    for label, number in classes.items():
        found[labels == label] = number
    return found
