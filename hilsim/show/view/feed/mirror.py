"""The rig of a daemon, built again in this process: poses of its sensors, and the ground truth of its packets by rendering them again."""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.api.labelled import points_with_rows
from hilsim.assembly.build import build_scenery
from hilsim.assembly.shapes import SceneHistory, Shape
from hilsim.config.hosts import resolved
from hilsim.config.part_kind import carrier
from hilsim.config.rig import Rig, rig_of_table
from hilsim.config.script import AddChange, ChangeSpec, MoveChange, RemoveChange, Script, TravelChange, WeatherChange, parse_change
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.truth import Cause, Truth, packets_with_truth
from hilsim.errors import HilsimError
from hilsim.offline.spans import OfflineRig, build_offline
from hilsim.world.geometry.poses import Pose
from hilsim.world.platforms.platform import platform_state

_FIRST_NS = 1_000_000_000
_TRIED = (8, 40, 200)
"""Packets before the one due when it was sent that are rendered to find it: a packet may be late."""
_MAX_RUNS = 8
HISTORY_S = 60.0
"""Time before the last change for which the scene is known as it was: scans are stored for less."""


class Matched(NamedTuple):
    """Packets of a stretch, rendered again.

    Attributes:
        first: Index of the first packet since the sensor started.
        at: Place of the first packet among the given ones.
        length: Number of packets that have the given bytes.
        decoded: Points of the packets, ``packet`` from 0.
        row: Row of ``truth`` of each point.
        truth: Ground truth.
        lidar: Emulated sensor.
    """

    first: int
    at: int
    length: int
    decoded: npt.NDArray[Any]
    row: npt.NDArray[np.intp]
    truth: Truth
    lidar: LidarEmulator


class RigMirror:
    """A rig built from a daemon's answer to ``rig``. Any thread may use it.

    Attributes:
        key: Contents of the answer by which another one is known to be of the same rig.
        rig: The rig.
        utc_epoch_ns: UTC of rig time 0.
        reason: Reason why packets cannot be rendered again; empty if they can.
    """

    def __init__(self, answer: Mapping[str, Any]) -> None:
        """Build the rig.

        Raises:
            HilsimError: this process cannot read the rig, such as a file of it.
        """
        self.key = key_of(answer)
        self.utc_epoch_ns = int(answer["utc_epoch_ns"])
        self.rig: Rig = resolved(rig_of_table(answer["table"], Path(answer["path"])))
        self.reason = ""
        self._script = _script(answer)
        self._moved_until_ns = 0
        self._offline: OfflineRig | None = None
        self._build(_FIRST_NS)

    def _build(self, until_ns: int) -> None:
        self._moved_until_ns = until_ns
        try:
            self._offline = build_offline(self.rig, utc_epoch_ns=self.utc_epoch_ns, until_ns=until_ns, script=self._script)
        except HilsimError as error:
            self.reason = str(error)

    def ensure_flown(self, rig_ns: int) -> None:
        """Fly a vehicle further, if it does not reach a rig time; that takes the longer the later the time is."""
        if self._offline is not None and carrier(self.rig.spec) is not None and rig_ns > self._moved_until_ns:
            self._build(2 * rig_ns)

    @property
    def is_carried_live(self) -> bool:
        """Whether a controller or another simulator moves the sensors, so that the daemon alone knows where they are."""
        return self._offline is None or self.rig.spec.platform.kind in {"vehicle", "external"}

    def number(self, sensor: str) -> int | None:
        """Place of an emulated sensor in the rig; None for a replay or an unknown name."""
        return self.rig.sensors.index(sensor) if sensor in self.rig.sensors else None

    def pose(self, sensor: str, rig_ns: int) -> Pose | None:
        """Pose of a sensor in the world by the rig's own tracks; None where they do not say it."""
        lidar = self._lidar(sensor)
        if lidar is None or self.is_carried_live:
            return None
        for begin_ns, later in lidar.later:
            if begin_ns > rig_ns:
                break
            lidar = later
        position_m, orientation = platform_state(lidar.platform, max(rig_ns, 0))
        return Pose(position_m=position_m, orientation=orientation) @ lidar.setting.setup.body_from_sensor

    def mounted(self, sensor: str, body: Pose) -> Pose | None:
        """Pose of a sensor in the world from that of its platform."""
        number = self.number(sensor)
        return None if number is None else body @ self.rig.lidars[number].setup.body_from_sensor

    def metadata(self) -> dict[str, list[Any]]:
        """Metadata of the rig's sensors by family, as they begin and as each change makes them."""
        found: dict[str, list[Any]] = {}
        for setting in self.rig.lidars:
            lidar = self._lidar(setting.name)
            for present in (setting, *(() if lidar is None else (each.lidar.setting for each in lidar.later))):
                metadata = present.family.metadata(present.stream, destination="", data_port=None, position_port=None)
                if metadata is not None:
                    found.setdefault(present.family.name, []).append(metadata)
        return found

    def object_name(self, object_id: int) -> str | None:
        """Name of an object of the scene; None for what is none."""
        names = self._offline.scenery.object_names if self._offline is not None and self._offline.scenery is not None else ()
        return names[object_id] if 0 <= object_id < len(names) else None

    def shapes(self, rig_ns: int) -> tuple[Shape, ...]:
        """Objects of the scene at a rig time, as the changes up to then have made it; those that another simulator moves are left out.

        Raises:
            HilsimError: the scene cannot be built.
        """
        return self._history.shapes(rig_ns)

    @cached_property
    def _history(self) -> SceneHistory:
        known = self._offline.first_scenery if self._offline is not None else None
        return SceneHistory(self.rig, known or build_scenery(self.rig), self._script)

    def match(self, sensor: str, payloads: Sequence[bytes], stamp_ns: npt.NDArray[np.int64]) -> list[Matched]:
        """Render packets again.

        Args:
            sensor: Name of the sensor.
            payloads: Payloads of data packets in the order of sending; some between may be missing.
            stamp_ns: ``int64[n]``, UTC at which each was sent.

        Returns:
            Stretches whose bytes are those of the packets; what cannot be found is left out.
        """
        lidar = self._lidar(sensor)
        found: list[Matched] = []
        at, tries = 0, 0
        while lidar is not None and at < len(payloads) and tries < _MAX_RUNS:
            tries += 1
            first = self._find(lidar, payloads[at], int(stamp_ns[at]))
            if first is None:
                at += 1
                continue
            matched = _rendered(lidar, first, at, payloads[at:])
            found.append(matched)
            at += matched.length
        return found

    def described(self, matched: Matched, row: int) -> dict[str, object]:
        """Ground truth of a return, for people."""
        truth, lidar = matched.truth, matched.lidar
        materials = self._offline.scenery.materials if self._offline is not None and self._offline.scenery is not None else ()
        material, cause = int(truth.material[row]), Cause(int(truth.cause[row]))
        incidence_deg = float(truth.incidence_deg[row])
        return {
            "sensor": lidar.setting.name,
            "packet": int(truth.packet[row]),
            "rig_s": int(truth.time_ns[row]) / 1e9,
            "channel": int(truth.channel[row]),
            "object": self.object_name(int(truth.object_id[row])),
            "object_id": int(truth.object_id[row]),
            "label": int(truth.label[row]),
            "material": materials[material].name if 0 <= material < len(materials) else None,
            "cause": cause.name.lower(),
            "range_m": float(truth.range_m[row]),
            "incidence_deg": None if np.isnan(incidence_deg) else incidence_deg,
            "echo": int(truth.echo[row]),
            "echoes": int(truth.echoes[row]),
            "sensor_position_m": tuple(truth.position_m[row].tolist()),
            "sensor_wxyz": tuple(truth.orientation[row].tolist()),
        }

    def _lidar(self, sensor: str) -> LidarEmulator | None:
        number = self.number(sensor)
        return None if number is None or self._offline is None else self._offline.lidars[number]

    def _find(self, lidar: LidarEmulator, payload: bytes, stamp_ns: int) -> int | None:
        """Index of the packet with these bytes; None if none of those due shortly before has them."""
        self.ensure_flown(stamp_ns - self.utc_epoch_ns)
        stop = lidar.first_data_packet(max(stamp_ns - self.utc_epoch_ns, 0)) + 1
        for count in _TRIED:
            first = max(stop - count, 0)
            if first == stop:
                return None
            batch = lidar.data_packets(first, stop - first)
            begin = lidar.data_framing.header_size
            for place in range(stop - first - 1, -1, -1):
                if batch.payload[place, begin : batch.size[place]].tobytes() == payload:
                    return first + place
            stop = first
        return None


def key_of(answer: Mapping[str, Any]) -> str:
    """Contents of an answer to ``rig`` that determine what is rendered."""
    return json.dumps([answer.get(name) for name in ("path", "table", "changes", "utc_epoch_ns")], sort_keys=True, default=str)


def _script(answer: Mapping[str, Any]) -> Script | None:
    changes = sorted((parse_change(table) for table in answer.get("changes", ())), key=lambda change: change.at_ns or 0)
    return Script(Path(answer["path"]), lasting(changes)) if changes else None


def lasting(changes: Sequence[ChangeSpec]) -> tuple[ChangeSpec, ...]:
    """Changes in the order of their times, without those that a later one had superseded ``HISTORY_S`` before the last.

    The rig is built again after each change, in a time and with memory that grow with their number. Objects that are added and removed remain: their ids count.
    """
    known_s = max((change.at_s or 0.0 for change in changes), default=0.0) - HISTORY_S
    found: list[ChangeSpec] = []
    superseded: set[str | None] = set()
    for change in reversed(changes):
        name = change.name if isinstance(change, MoveChange | TravelChange | RemoveChange) else None
        is_passing = isinstance(change, MoveChange | TravelChange | WeatherChange)
        if not (is_passing and name in superseded):
            found.append(change)
        if isinstance(change, AddChange):
            superseded.discard(change.object_name)
        elif (is_passing or isinstance(change, RemoveChange)) and max([change.at_s or 0.0, *change.late_s.values()]) < known_s:
            superseded.add(name)
    return tuple(reversed(found))


def _rendered(lidar: LidarEmulator, first: int, at: int, payloads: Sequence[bytes]) -> Matched:
    """Render packets from ``first`` on, as long as they have the given bytes."""
    batch, truth = packets_with_truth(lidar, first, len(payloads))
    begin = lidar.data_framing.header_size
    count = 0
    while count < len(payloads) and batch.payload[count, begin : batch.size[count]].tobytes() == payloads[count]:
        count += 1
    rows = truth.packet < first + count
    truth = Truth._make(column[rows] for column in truth)
    decoded, row = points_with_rows(lidar, first, np.ascontiguousarray(batch.payload[:count, begin:]), truth)
    return Matched(first, at, count, decoded, row, truth, lidar)
