"""A layout for Foxglove and Lichtblick that shows a source's sensors: import it there as a file."""

from collections.abc import Sequence
from typing import Any

from hilsim.show.outputs.ros import WORLD, topic_name

STATE = "/hilsim/state"
"""Topic of a daemon's state, as JSON."""
SCENE = "/scene"
"""Topic of the scene's objects."""


def layout_of(sensors: Sequence[str], follow: str = WORLD) -> dict[str, Any]:
    """Layout with the clouds of sensors, coloured by intensity, in the scene; and beside it the state of a daemon.

    Args:
        sensors: Names of the sensors.
        follow: Frame that the camera follows.
    """
    clouds = {
        f"/{topic_name(sensor)}/points": {
            "visible": True,
            "pointSize": 3,
            "colorField": "intensity",
            "colorMode": "colormap",
            "colorMap": "turbo",
            "minValue": 0,
            "maxValue": 100,
        }
        for sensor in sensors
    }
    scans = {f"/{topic_name(sensor)}/scan": {"visible": False} for sensor in sensors}
    view = {
        "cameraState": {"perspective": True, "distance": 60, "phi": 60, "thetaOffset": 45, "fovy": 45, "near": 0.5, "far": 5000},
        "followMode": "follow-pose" if follow != WORLD else "follow-none",
        "followTf": follow,
        "layers": {"grid": {"layerId": "foxglove.Grid", "label": "Grid", "visible": True, "frameLocked": True, "size": 100, "divisions": 20}},
        "topics": clouds | scans | {SCENE: {"visible": True}},
    }
    return {
        "configById": {"3D!points": view, "RawMessages!state": {"topicPath": STATE, "diffEnabled": False, "expansion": "auto"}},
        "globalVariables": {},
        "userNodes": {},
        "playbackConfig": {"speed": 1},
        "layout": {"direction": "row", "first": "3D!points", "second": "RawMessages!state", "splitPercentage": 75},
    }
