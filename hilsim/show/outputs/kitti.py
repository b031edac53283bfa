"""KITTI and SemanticKITTI folders: ``sequences/00/velodyne/000000.bin`` with labels, poses and calibration.

Layout: semantic-kitti's README and the wiki of its point labeler; poses are also in KITTI's folder ``poses``. A scan's points are as they were measured, not corrected for the sensor's motion;
KITTI's own are. Poses are those of the sensor; ``calib.txt`` has an identity for the camera, so that poses in the frame of a camera are those of the sensor.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np

from hilsim.config.tables.classes import SEMANTIC_KITTI_CLASSES, ClassSpec
from hilsim.errors import ConfigError
from hilsim.show.outputs.classes import classes_of, semantic_kitti_numbers
from hilsim.show.outputs.events import Event, OutputScan
from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import matrix_from_quaternion

NO_CLASSES: Mapping[int, ClassSpec] = MappingProxyType({})
_UNLABELLED, _MAX_CLASS = 0, 0xFFFF
_IDENTITY = "1 0 0 0 0 1 0 0 0 0 1 0"
_BYTE_OF_WHITE = 100.0
"""Reflectivity byte of a white surface, KITTI's remission 1."""


class KittiFolder:
    """Sequences of scans, one for each sensor.

    Attributes:
        files: Scans written.
    """

    def __init__(self, path: Path, *, classes: Mapping[int, ClassSpec] = NO_CLASSES, sensors: Sequence[str] = ()) -> None:
        """Write into a folder.

        Args:
            path: The folder; made if needed.
            classes: Class of each label of the rig, where the label itself is not SemanticKITTI's number; their names are written to ``classes.yaml``.
            sensors: Sensors in the order of their sequences; others follow as they come.

        Raises:
            ConfigError: it has sequences already.
        """
        if (path / "sequences").exists():
            raise ConfigError(f"{path}: sequences must not exist yet: give a new folder")
        self.files = 0
        self._path, self._classes, self._numbers = path, classes, semantic_kitti_numbers(classes)
        self._sequences = {sensor: number for number, sensor in enumerate(sensors)}
        self._first: dict[str, tuple[int, Pose | None]] = {}
        self._rows: dict[str, tuple[list[str], list[str]]] = {}

    def write(self, event: Event) -> None:
        """Write a scan and its labels."""
        if not isinstance(event, OutputScan):
            return
        sequence = self._sequences.setdefault(event.sensor, len(self._sequences))
        folder = self._path / "sequences" / f"{sequence:02d}"
        times, poses = self._rows.setdefault(event.sensor, ([], []))
        number = len(times)
        for name in ("velodyne", "labels") if event.is_labelled else ("velodyne",):
            (folder / name).mkdir(parents=True, exist_ok=True)
        points = np.empty((event.points.size, 4), "<f4")
        points[:, :3] = event.xyz_m
        points[:, 3] = event.points["intensity"] / _BYTE_OF_WHITE
        (folder / "velodyne" / f"{number:06d}.bin").write_bytes(points.tobytes())
        if event.is_labelled:
            (folder / "labels" / f"{number:06d}.label").write_bytes(self._labels(event).tobytes())
        first_ns, first_pose = self._first.setdefault(event.sensor, (event.stamp_ns, event.pose))
        times.append(f"{(event.stamp_ns - first_ns) / 1e9:.6e}")
        relative = first_pose.inverse() @ event.pose if first_pose is not None and event.pose is not None else Pose()
        matrix = np.column_stack([matrix_from_quaternion(relative.orientation), relative.position_m])
        poses.append(" ".join(f"{value:.9e}" for value in matrix.reshape(-1)))
        self.files += 1

    def _labels(self, scan: OutputScan) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
        label, instance = scan.points["label"].astype(np.int64), scan.points["instance"].astype(np.int64)
        kind = np.where(instance >= 0, np.clip(classes_of(label, self._numbers), 0, _MAX_CLASS), _UNLABELLED)
        found: np.ndarray[tuple[int], np.dtype[np.uint32]] = (kind | np.where(instance >= 0, instance + 1 & 0xFFFF, 0) << 16).astype("<u4")
        return found

    def close(self) -> None:
        """Write poses, times and calibrations."""
        for sensor, (times, poses) in self._rows.items():
            folder = self._path / "sequences" / f"{self._sequences[sensor]:02d}"
            (folder / "times.txt").write_text("\n".join(times) + "\n")
            for place in (folder / "poses.txt", self._path / "poses" / f"{self._sequences[sensor]:02d}.txt"):
                place.parent.mkdir(exist_ok=True)
                place.write_text("\n".join(poses) + "\n")
            (folder / "calib.txt").write_text("".join(f"{name}: {_IDENTITY}\n" for name in ("P0", "P1", "P2", "P3", "Tr")))
        names = "".join(f"{number:02d} {sensor}\n" for sensor, number in self._sequences.items() if sensor in self._rows)
        (self._path / "sensors.txt").write_text(names)
        if self._classes:
            (self._path / "classes.yaml").write_text(self._names())

    def _names(self) -> str:
        """Names of the classes, in the form of semantic-kitti-api's configuration; several labels of one class have SemanticKITTI's name for it."""
        named = {number: name for name, number in SEMANTIC_KITTI_CLASSES.items()}
        found = {number: named.get(number, self._classes[label].name) for label, number in self._numbers.items()}
        return "labels:\n" + "".join(f"  {number}: {json.dumps(found[number])}\n" for number in sorted(found))
