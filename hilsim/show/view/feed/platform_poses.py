"""Poses of a platform that only the daemon knows, from its answers to ``state``."""

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping
from typing import Any

from hilsim.world.geometry.poses import Pose
from hilsim.world.geometry.rotations import normalise

_MAX_POSES = 256


class PlatformPoses:
    """Latest poses with their rig times; one thread adds, any thread reads."""

    def __init__(self) -> None:
        self._poses: deque[tuple[int, Pose]] = deque(maxlen=_MAX_POSES)

    def add(self, state: Mapping[str, Any]) -> None:
        """Take the pose of an answer, if it has one; a rig that was started again begins anew."""
        platform = state.get("platform")
        if not isinstance(platform, Mapping):
            return
        rig_ns = round(float(platform["rig_s"]) * 1e9)
        orientation = normalise(tuple(map(float, platform["orientation"])))  # type: ignore[arg-type] # four numbers
        x, y, z = map(float, platform["position_m"])
        if self._poses and rig_ns < self._poses[-1][0]:
            self._poses.clear()
        if not self._poses or rig_ns > self._poses[-1][0]:
            self._poses.append((rig_ns, Pose(position_m=(x, y, z), orientation=orientation)))

    def at(self, rig_ns: int) -> Pose | None:
        """Pose at a rig time, between the two poses around it; the nearest beyond both ends, and None before the first."""
        poses = list(self._poses)
        place = bisect_right(poses, rig_ns, key=lambda each: each[0])
        if not poses:
            return None
        if place in {0, len(poses)}:
            return poses[min(place, len(poses) - 1)][1]
        (before_ns, before), (after_ns, after) = poses[place - 1], poses[place]
        share = (rig_ns - before_ns) / (after_ns - before_ns)
        sign = 1.0 if sum(a * b for a, b in zip(before.orientation, after.orientation, strict=True)) >= 0.0 else -1.0
        position_m = tuple(a + share * (b - a) for a, b in zip(before.position_m, after.position_m, strict=True))
        turned = tuple(a + share * (sign * b - a) for a, b in zip(before.orientation, after.orientation, strict=True))
        return Pose(position_m=position_m, orientation=normalise(turned))  # type: ignore[arg-type] # three and four numbers
