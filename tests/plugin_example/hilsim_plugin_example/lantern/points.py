"""Points of a Lantern's packets."""

from typing import Any

import numpy as np

from hilsim.plugins import POINT_DTYPE, paired
from hilsim_plugin_example.lantern.protocol import BEAMS, COLUMN_NS, COLUMNS, stacked

TOP_DEG, STEP_DEG = 9.0, 3.0


def decode(payloads: Any, top_deg: float = TOP_DEG) -> Any:
    """Points ``POINT_DTYPE[n]`` of packets, in the order of their bytes."""
    packets = stacked(payloads)
    packet, column, beam = np.nonzero(packets["columns"]["beams"]["distance_cm"])
    columns = packets["columns"][packet, column]
    beams = columns["beams"][np.arange(beam.size), beam]
    azimuth, elevation = np.radians(columns["azimuth_cdeg"] / 100.0), np.radians(top_deg - STEP_DEG * beam)
    points = np.zeros(beam.size, POINT_DTYPE)
    points["range"] = beams["distance_cm"] / 100.0
    points["x"], points["y"] = (points["range"] * np.cos(elevation) * turned for turned in (np.sin(azimuth), np.cos(azimuth)))
    points["z"], points["azimuth"] = points["range"] * np.sin(elevation), columns["azimuth_cdeg"] / 100.0
    points["packet"], points["ring"], points["intensity"] = packet, BEAMS - 1 - beam, beams["reflectivity"]
    points["time_ns"] = (packets["number"][packet].astype(np.int64) + column) * COLUMN_NS
    return points


def decode_emulated(payloads: Any, setting: Any) -> Any:
    """Points of packets of an emulated Lantern."""
    return decode(payloads, setting.spec.top_deg)


def points_with_rows(lidar: Any, first: int, payloads: Any, truth: Any) -> Any:
    """Points of rendered packets, and the row of ground truth of each."""
    places = np.flatnonzero(stacked(payloads)["columns"]["beams"]["distance_cm"])
    row_places = ((truth.packet - first) * COLUMNS + truth.block) * BEAMS + truth.record
    return paired(decode_emulated(payloads, lidar.setting), places, row_places)
