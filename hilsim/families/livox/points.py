"""Points of Livox packets, decoded like a driver of the lidar does."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.setting import LidarSetting
from hilsim.emulator.truth import Truth
from hilsim.families.livox.protocol.points import (
    COUNT_AT,
    HEADER_SIZE,
    INTERVAL_AT,
    POINT_DTYPES,
    POINTS,
    SPHERICAL,
    STAMP_AT,
    TYPE_AT,
    UNIT_MM,
)
from hilsim.read.analysis.decode import POINT_DTYPE, batch_of, paired

FURTHER_FIELDS = (("tag", "u1"),)
"""Fields of a point of a Livox beside those of others, of which ``ring`` is the line."""
_NS_PER_INTERVAL = 100
_SLOW_INTERVAL = 3000
"""Packets of a Mid-360 take longer than this, 4750, those of a HAP less."""


def decode_livox(batch: DatagramArrays, chosen: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[Any]:
    """Decode the points of Livox point packets, in their order.

    Args:
        batch: Datagrams, as ``capture.batches`` yields them.
        chosen: ``bool[n]``, selection of the sensor's point packets; None: all.

    Returns:
        Points ``POINT_DTYPE[n]``, without points of no return and incomplete packets; ``ring`` is the line, ``flags`` the tag. A point's time is as the
        header says it: its points are evenly spread over ``time_interval``.
    """
    start = batch.start if chosen is None else batch.start[chosen]
    size = batch.size if chosen is None else batch.size[chosen]
    packets = np.flatnonzero(size >= HEADER_SIZE)
    data_type, count = batch.data[start[packets] + TYPE_AT], _field(batch.data, start[packets] + COUNT_AT, "<u2")
    found = []
    for of_type, dtype in POINT_DTYPES.items():
        for points in np.unique(count[data_type == of_type]).tolist():
            length = HEADER_SIZE + points * dtype.itemsize
            rows = packets[(data_type == of_type) & (count == points) & (size[packets] == length)]
            if points > 0 and rows.size:
                found.append(_decoded(batch.data[start[rows, None] + np.arange(length)], rows, of_type))
    decoded = np.concatenate(found) if found else np.empty(0, POINT_DTYPE)
    return decoded[np.argsort(decoded["packet"], kind="stable")] if len(found) > 1 else decoded


def decode_emulated(payloads: npt.NDArray[np.uint8], _setting: LidarSetting) -> npt.NDArray[Any]:
    """Decode the packets ``uint8[n, size]`` of one emulated sensor, as ``decode_livox`` does."""
    return decode_livox(batch_of(payloads))


def points_with_rows(
    lidar: LidarEmulator, first: int, payloads: npt.NDArray[np.uint8], truth: Truth
) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Decoded points of rendered packets from ``first`` on, and the row of ground truth of each."""
    dtype = POINT_DTYPES[lidar.at_packet(first).plan.own.data_type]
    places = np.flatnonzero(_has_return(np.ascontiguousarray(payloads[:, HEADER_SIZE:]).view(dtype)))
    row_place = (truth.packet - first) * POINTS + truth.record
    return paired(decode_emulated(payloads, lidar.setting), places, row_place)


def lines_of(interval: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Lines that take turns in packets, by their ``time_interval``: 4, or 6 of a HAP."""
    return np.where(interval > _SLOW_INTERVAL, 4, 6)


def _has_return(points: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which points are no zeros."""
    if "distance" in (points.dtype.names or ()):
        return np.asarray(points["distance"] != 0)
    return np.asarray((points["x"] != 0) | (points["y"] != 0) | (points["z"] != 0))


def _field(data: npt.NDArray[np.uint8], at: npt.NDArray[Any], dtype: str) -> npt.NDArray[np.int64]:
    """A number from some places of bytes."""
    size = np.dtype(dtype).itemsize
    return np.ascontiguousarray(data[at[:, None] + np.arange(size)]).view(dtype)[:, 0].astype(np.int64)


def _decoded(payloads: npt.NDArray[np.uint8], packets: npt.NDArray[np.intp], data_type: int) -> npt.NDArray[Any]:
    """Points of packets ``uint8[n, size]`` of one type and number of points."""
    sent = np.ascontiguousarray(payloads[:, HEADER_SIZE:]).view(POINT_DTYPES[data_type])
    begin = np.arange(len(payloads)) * payloads.shape[1]
    interval = _field(payloads.reshape(-1), begin + INTERVAL_AT, "<u2")
    stamp_ns = _field(payloads.reshape(-1), begin + STAMP_AT, "<u8")
    packet, place = np.nonzero(_has_return(sent))
    steps = max(sent.shape[1] - 1, 1)
    sent = sent[packet, place]
    if data_type == SPHERICAL:
        zenith, azimuth = np.radians(sent["zenith"] * 0.01), np.radians(sent["azimuth"] * 0.01)
        across = sent["distance"] * np.sin(zenith)
        ahead, left, up = across * np.cos(azimuth), across * np.sin(azimuth), sent["distance"] * np.cos(zenith)
    else:
        ahead, left, up = (sent[name].astype(np.float64) for name in ("x", "y", "z"))
    points = np.zeros(sent.size, POINT_DTYPE)
    unit_m = UNIT_MM[data_type] / 1000.0
    points["x"], points["y"], points["z"] = -left * unit_m, ahead * unit_m, up * unit_m
    points["range"] = np.sqrt(ahead**2 + left**2 + up**2) * unit_m
    points["azimuth"] = np.degrees(np.arctan2(-left, ahead)) % 360.0
    points["packet"] = packets[packet]
    points["time_ns"] = stamp_ns[packet] + place * interval[packet] * _NS_PER_INTERVAL // steps
    points["ring"], points["intensity"], points["flags"] = place % lines_of(interval[packet]), sent["reflectivity"], sent["tag"]
    return points
