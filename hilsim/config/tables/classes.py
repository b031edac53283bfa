"""Classes of a rig's labels, by their names and by those of published data sets.

Sources: semantic-kitti-api's config/semantic-kitti.yaml; nuscenes-devkit's README of lidarseg and its colour map, in the order of its indices.
"""

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from hilsim.errors import require
from hilsim.world.scene.object_specs import LARGEST_LABEL

SEMANTIC_KITTI_CLASSES: Mapping[str, int] = MappingProxyType(
    {
        "unlabeled": 0,
        "outlier": 1,
        "car": 10,
        "bicycle": 11,
        "bus": 13,
        "motorcycle": 15,
        "on-rails": 16,
        "truck": 18,
        "other-vehicle": 20,
        "person": 30,
        "bicyclist": 31,
        "motorcyclist": 32,
        "road": 40,
        "parking": 44,
        "sidewalk": 48,
        "other-ground": 49,
        "building": 50,
        "fence": 51,
        "other-structure": 52,
        "lane-marking": 60,
        "vegetation": 70,
        "trunk": 71,
        "terrain": 72,
        "pole": 80,
        "traffic-sign": 81,
        "other-object": 99,
        "moving-car": 252,
        "moving-bicyclist": 253,
        "moving-person": 254,
        "moving-motorcyclist": 255,
        "moving-on-rails": 256,
        "moving-bus": 257,
        "moving-truck": 258,
        "moving-other-vehicle": 259,
    }
)
"""SemanticKITTI's classes with their numbers."""

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

MAX_OWN_NUSCENES = LARGEST_LABEL + 1 - len(NUSCENES_NAMES)
"""Most classes that are none of nuScenes': a lidarseg file has a byte for each point."""
_LONGEST_NAME = 100


@dataclass(frozen=True, kw_only=True)
class ClassSpec:
    """Class of a label.

    Attributes:
        name: Name of the class.
        semantic_kitti: Class of SemanticKITTI, such as ``"other-vehicle"``. Empty: the one with this name, else a class of its own with the number 300 plus
            the label.
        nuscenes: Category of nuScenes-lidarseg, such as ``"vehicle.construction"``. Empty: the one with this name, else a category of its own, the first of
            which has index 32.
    """

    name: str
    semantic_kitti: str = ""
    nuscenes: str = ""

    def __post_init__(self) -> None:
        is_name = bool(self.name.strip()) and self.name.isprintable() and len(self.name) <= _LONGEST_NAME
        require(
            (is_name, f"name must be printable, not empty and at most {_LONGEST_NAME} characters, got {self.name[:_LONGEST_NAME]!r}"),
            _one_of("semantic_kitti", self.semantic_kitti, "a class of SemanticKITTI", tuple(SEMANTIC_KITTI_CLASSES)),
            _one_of("nuscenes", self.nuscenes, "a category of nuScenes-lidarseg", NUSCENES_NAMES),
        )

    @property
    def semantic_kitti_number(self) -> int | None:
        """Number of SemanticKITTI's class; None for a class of its own."""
        return SEMANTIC_KITTI_CLASSES.get(self.semantic_kitti or self.name)

    @property
    def nuscenes_index(self) -> int | None:
        """Index of nuScenes' category; None for a category of its own."""
        name = self.nuscenes or self.name
        return NUSCENES_NAMES.index(name) if name in NUSCENES_NAMES else None


def _one_of(key: str, value: str, what: str, known: Sequence[str]) -> tuple[bool, str]:
    near = difflib.get_close_matches(value, known, n=1)
    hint = f'did you mean "{near[0]}"?' if near else f"they are {', '.join(known)}"
    return not value or value in known, f'{key} must be {what}, got "{value[:_LONGEST_NAME]}" ({hint})'


def class_rules(classes: Mapping[str, ClassSpec]) -> Iterator[tuple[bool, str]]:
    """Every rule of a table of classes by label, with its fault."""
    for key in classes:
        is_label = key.isascii() and key.isdigit() and str(int(key[:4])) == key and int(key) <= LARGEST_LABEL
        yield is_label, f'keys of classes must be labels, 0 to {LARGEST_LABEL}, got "{key[:_LONGEST_NAME]}"'
    for name, count in Counter(spec.name for spec in classes.values()).items():
        keys = [key for key, spec in classes.items() if spec.name == name]
        yield count == 1, f'names of classes must differ, got "{name}" for the labels {", ".join(keys[:10])}'
    own = sum(spec.nuscenes_index is None for spec in classes.values())
    yield own <= MAX_OWN_NUSCENES, f"classes must have at most {MAX_OWN_NUSCENES} entries that are no category of nuScenes', got {own}"


def classes_by_label(classes: Mapping[str, ClassSpec]) -> dict[int, ClassSpec]:
    """Checked classes by their labels, in the order of these."""
    return {int(key): classes[key] for key in sorted(classes, key=int)}
