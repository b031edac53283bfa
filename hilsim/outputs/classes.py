"""Classes of points in published data sets: SemanticKITTI's and nuScenes' numbers for the labels of the demo street; other labels are numbers of theirs already.

Sources: semantic-kitti-api's config/semantic-kitti.yaml; nuscenes-devkit's README of lidarseg and its colour map, in the order of its indices.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from hilsim.scene.street.street import StreetLabel

NUSCENES_NAMES = (
    "noise",
    "animal",
    "human.pedestrian.adult",
    "human.pedestrian.child",
    "human.pedestrian.construction_worker",
    "human.pedestrian.personal_mobility",
    "human.pedestrian.police_officer",
    "human.pedestrian.stroller",
    "human.pedestrian.wheelchair",
    "movable_object.barrier",
    "movable_object.debris",
    "movable_object.pushable_pullable",
    "movable_object.trafficcone",
    "static_object.bicycle_rack",
    "vehicle.bicycle",
    "vehicle.bus.bendy",
    "vehicle.bus.rigid",
    "vehicle.car",
    "vehicle.construction",
    "vehicle.emergency.ambulance",
    "vehicle.emergency.police",
    "vehicle.motorcycle",
    "vehicle.trailer",
    "vehicle.truck",
    "flat.driveable_surface",
    "flat.other",
    "flat.sidewalk",
    "flat.terrain",
    "static.manmade",
    "static.other",
    "static.vegetation",
    "vehicle.ego",
)
"""nuScenes-lidarseg's categories by their index: the devkit has colours for these alone."""

SEMANTIC_KITTI: Mapping[int, int] = MappingProxyType(
    {
        StreetLabel.GROUND: 40,
        StreetLabel.PAVEMENT: 48,
        StreetLabel.BUILDING: 50,
        StreetLabel.TREE: 70,
        StreetLabel.LAMP_POST: 80,
        StreetLabel.TRAFFIC_SIGN: 81,
        StreetLabel.CAR: 10,
        StreetLabel.PERSON: 30,
    }
)
"""SemanticKITTI's class of each label of the street."""

NUSCENES: Mapping[int, int] = MappingProxyType(
    {
        StreetLabel.GROUND: NUSCENES_NAMES.index("flat.driveable_surface"),
        StreetLabel.PAVEMENT: NUSCENES_NAMES.index("flat.sidewalk"),
        StreetLabel.BUILDING: NUSCENES_NAMES.index("static.manmade"),
        StreetLabel.TREE: NUSCENES_NAMES.index("static.vegetation"),
        StreetLabel.LAMP_POST: NUSCENES_NAMES.index("static.manmade"),
        StreetLabel.TRAFFIC_SIGN: NUSCENES_NAMES.index("static.manmade"),
        StreetLabel.CAR: NUSCENES_NAMES.index("vehicle.car"),
        StreetLabel.PERSON: NUSCENES_NAMES.index("human.pedestrian.adult"),
    }
)
"""nuScenes' class of each label of the street."""


def classes_of(labels: npt.NDArray[np.integer], classes: Mapping[int, int]) -> npt.NDArray[np.int64]:
    """Classes of points; a label that ``classes`` does not have is its own class."""
    found = labels.astype(np.int64)
    for label, number in classes.items():
        found[labels == label] = number
    return found
