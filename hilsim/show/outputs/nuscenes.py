"""nuScenes folders with lidarseg labels and boxes: tables as JSON, sweeps as ``.pcd.bin``.

Layout: nuScenes-devkit's schema_nuscenes.md and its lidarseg tables. Every scan is a key frame; the devkit expects one sensor named LIDAR_TOP, so the first
sensor has that channel. Points are in the sensor's frame, not corrected for its motion, as nuScenes' are. A sample has a box of each object with points in it,
ground and buildings aside; the box is the one of the object's own axes, x along its length, at the sample's time.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from hilsim.assembly.shapes import Shape
from hilsim.config.tables.classes import NUSCENES_NAMES
from hilsim.errors import ConfigError
from hilsim.show.outputs.classes import classes_of, nuscenes_indices
from hilsim.show.outputs.events import Event, OutputScan, SceneShapes, SourceInfo
from hilsim.world.geometry.poses import Pose

_FIRST_CHANNEL = "LIDAR_TOP"
_NO_BOXES = ("noise", "flat.", "static.", "vehicle.ego")
"""Beginnings of the categories whose objects have no box."""


def _token(*parts: object) -> str:
    """A token that is the same whenever it is made of the same parts."""
    return hashlib.md5(" ".join(map(str, parts)).encode(), usedforsecurity=False).hexdigest()


class NuscenesFolder:
    """A data set of one scene.

    Attributes:
        files: Scans written.
    """

    def __init__(self, path: Path, info: SourceInfo, *, version: str = "v1.0-mini") -> None:
        """Write into a folder.

        Args:
            path: The folder; made if needed.
            info: Description of the source.
            version: Folder of the tables, which a reader asks for.

        Raises:
            ConfigError: it has such a folder already.
        """
        if (path / version).exists():
            raise ConfigError(f"{path}: {version} must not exist yet: give a new folder")
        self.files = 0
        self._path, self._version, self._info = path, version, info
        self._channels: dict[str, str] = {}
        self._tables: dict[str, list[dict[str, Any]]] = {
            name: [] for name in ("sample", "sample_data", "ego_pose", "calibrated_sensor", "sensor", "lidarseg")
        }
        self._last: dict[str, dict[str, Any]] = {}
        self._shapes: tuple[Shape, ...] = ()
        self._boxes: dict[str, dict[str, dict[str, Any]]] = {}  # by sample, by object
        self._indices = nuscenes_indices(info.classes)
        self._used: set[int] = set()

    def write(self, event: Event) -> None:
        """Write a scan, its labels and its rows."""
        if isinstance(event, SceneShapes):
            self._shapes = event.shapes
        if not isinstance(event, OutputScan):
            return
        channel = self._channel(event.sensor)
        folder = self._path / "samples" / channel
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{self._info.name}__{channel}__{event.stamp_ns // 1000}.pcd.bin"
        points = np.empty((event.points.size, 5), "<f4")
        points[:, :3] = event.xyz_m
        points[:, 3], points[:, 4] = event.points["intensity"], event.points["ring"]
        (folder / name).write_bytes(points.tobytes())
        stamp_us, token = event.stamp_ns // 1000, _token("data", channel, event.stamp_ns)
        sample = self._sample(event, channel)
        pose = event.pose @ self._info.mounts[event.sensor].inverse() if event.pose is not None else Pose()
        self._tables["ego_pose"].append(
            {"token": token, "timestamp": stamp_us, "rotation": list(pose.orientation), "translation": list(pose.position_m)}
        )
        row = {
            "token": token,
            "sample_token": sample["token"],
            "ego_pose_token": token,
            "calibrated_sensor_token": _token("calibrated", channel),
            "timestamp": stamp_us,
            "fileformat": "pcd",
            "is_key_frame": True,
            "height": 0,
            "width": 0,
            "filename": f"samples/{channel}/{name}",
            "prev": "",
            "next": "",
        }
        self._chain("data " + channel, row)
        self._tables["sample_data"].append(row)
        if event.is_labelled:
            self._write_labels(event, token)
            self._count_in_boxes(event, sample["token"])
        self.files += 1

    def _channel(self, sensor: str) -> str:
        if sensor not in self._channels:
            channel = _FIRST_CHANNEL if sensor == next(iter(self._info.mounts), sensor) else f"LIDAR_{sensor.upper().replace('.', '_')}"
            while channel in self._channels.values():
                channel += "_2"
            self._channels[sensor] = channel
            mount = self._info.mounts.get(sensor, Pose())
            self._tables["sensor"].append({"token": _token("sensor", channel), "channel": channel, "modality": "lidar"})
            self._tables["calibrated_sensor"].append(
                {
                    "token": _token("calibrated", channel),
                    "sensor_token": _token("sensor", channel),
                    "translation": list(mount.position_m),
                    "rotation": list(mount.orientation),
                    "camera_intrinsic": [],
                }
            )
        return self._channels[sensor]

    def _sample(self, scan: OutputScan, channel: str) -> dict[str, Any]:
        """The sample of a scan: one for each of the first sensor's, which the others join."""
        if channel != _FIRST_CHANNEL and self._tables["sample"]:
            return min(self._tables["sample"], key=lambda row: abs(row["timestamp"] - scan.stamp_ns // 1000))
        token = _token("sample", scan.stamp_ns)
        row = {
            "token": token,
            "timestamp": scan.stamp_ns // 1000,
            "scene_token": _token("scene", self._info.name),
            "prev": "",
            "next": "",
        }
        self._chain("sample", row)
        self._tables["sample"].append(row)
        self._boxes[token] = {shape.name: self._box(shape, token) for shape in self._shapes if self._has_box(shape.label)}
        return row

    def _has_box(self, label: int) -> bool:
        return label in self._indices and not self._category(self._indices[label]).startswith(_NO_BOXES)

    def _category(self, index: int) -> str:
        return NUSCENES_NAMES[index] if index < len(NUSCENES_NAMES) else self._others()[index]

    def _box(self, shape: Shape, sample: str) -> dict[str, Any]:
        low, high = shape.vertices_m.min(axis=0), shape.vertices_m.max(axis=0)
        length, width, height = (high - low).tolist()
        x, y, z = (0.5 * (low + high)).tolist()
        return {
            "token": _token("box", sample, shape.name),
            "sample_token": sample,
            "instance_token": _token("instance", self._info.name, shape.name),
            "attribute_tokens": [],
            "visibility_token": "",
            "translation": list(shape.pose.transform((x, y, z))),
            "size": [width, length, height],
            "rotation": list(shape.pose.orientation),
            "num_lidar_pts": 0,
            "num_radar_pts": 0,
            "prev": "",
            "next": "",
        }

    def _count_in_boxes(self, scan: OutputScan, sample: str) -> None:
        numbers, counts = np.unique(scan.points["instance"], return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            box = self._boxes[sample].get(self._info.objects[number]) if number >= 0 else None
            if box is not None:
                box["num_lidar_pts"] += count

    def _add_boxes(self) -> None:
        """Add the boxes with points, chained by object, and their instances."""
        labels = dict(zip(self._info.objects, self._info.labels, strict=True))
        chains: dict[str, list[dict[str, Any]]] = {}
        for boxes in self._boxes.values():
            for name, box in boxes.items():
                if box["num_lidar_pts"]:
                    self._chain("box " + name, box)
                    chains.setdefault(name, []).append(box)
        self._tables["sample_annotation"] = [box for chain in chains.values() for box in chain]
        self._tables["instance"] = [
            {
                "token": chain[0]["instance_token"],
                "category_token": _token("category", self._indices[labels[name]]),
                "nbr_annotations": len(chain),
                "first_annotation_token": chain[0]["token"],
                "last_annotation_token": chain[-1]["token"],
            }
            for name, chain in chains.items()
        ]

    def _chain(self, name: str, row: dict[str, Any]) -> None:
        before = self._last.get(name)
        if before is not None:
            before["next"], row["prev"] = row["token"], before["token"]
        self._last[name] = row

    def _write_labels(self, scan: OutputScan, token: str) -> None:
        folder = self._path / "lidarseg" / self._version
        folder.mkdir(parents=True, exist_ok=True)
        classes = classes_of(scan.points["label"], self._indices)
        kinds = np.where(scan.points["instance"] >= 0, np.clip(classes, 0, 255), 0).astype(np.uint8)
        self._used |= set(np.unique(kinds).tolist())
        (folder / f"{token}_lidarseg.bin").write_bytes(kinds.tobytes())
        self._tables["lidarseg"].append({"token": token, "sample_data_token": token, "filename": f"lidarseg/{self._version}/{token}_lidarseg.bin"})

    def _others(self) -> dict[int, str]:
        """Categories that nuScenes does not have, by their index; the devkit needs a colour map with their names."""
        unnamed = {number: f"label.{number}" for number in self._used if number >= len(NUSCENES_NAMES)}
        named = {index: self._info.classes[label].name for label, index in self._indices.items() if index >= len(NUSCENES_NAMES)}
        return dict(sorted((unnamed | named).items()))

    def close(self) -> None:
        """Write the tables."""
        self._add_boxes()
        samples = self._tables["sample"]
        name = self._info.name
        scene = {
            "token": _token("scene", name),
            "log_token": _token("log", name),
            "nbr_samples": len(samples),
            "first_sample_token": samples[0]["token"] if samples else "",
            "last_sample_token": samples[-1]["token"] if samples else "",
            "name": name,
            "description": "emulated by hilsim" if self._info.is_simulated else "from a capture",
        }
        categories = [
            {"token": _token("category", number), "name": title, "description": "", "index": number}
            for number, title in (*enumerate(NUSCENES_NAMES), *self._others().items())
        ]
        tables: dict[str, list[dict[str, Any]]] = {
            **self._tables,
            "scene": [scene],
            "log": [{"token": _token("log", name), "logfile": name, "vehicle": "", "date_captured": "", "location": name}],
            "map": [{"token": _token("map", name), "log_tokens": [_token("log", name)], "category": "semantic_prior", "filename": ""}],
            "category": categories,
            "attribute": [],
            "visibility": [],
        }
        folder = self._path / self._version
        folder.mkdir(parents=True, exist_ok=True)
        for table, rows in tables.items():
            (folder / f"{table}.json").write_text(json.dumps(rows, indent=1) + "\n")
