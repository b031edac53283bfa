"""One scan out of data packets, as arrays of points."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.errors import CaptureError
from hilsim.packets.velodyne_data import BLOCKS, RECORDS_PER_BLOCK, ReturnMode
from hilsim.sensor.velodyne_specs import VelodyneSpec

_TURN_CDEG = 36_000


@dataclass(frozen=True, kw_only=True)
class Scan:
    """One turn of a lidar, every firing of it, also those without a return.

    Attributes:
        model: The lidar's name.
        azimuth_deg: ``float64[s, c]`` of each firing, clockwise from forward, 0..360.
        elevation_deg: ``float64[c]`` of each channel, in firing order.
        range_m: ``float64[s, c]``, 0 for no return.
        reflectivity: ``uint8[s, c]``.
    """

    model: str
    azimuth_deg: npt.NDArray[np.float64]
    elevation_deg: npt.NDArray[np.float64]
    range_m: npt.NDArray[np.float64]
    reflectivity: npt.NDArray[np.uint8]

    @property
    def returns(self) -> int:
        """Firings that came back."""
        return int(np.count_nonzero(self.range_m))

    def points_m(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint8]]:
        """``float64[n, 3]`` (x right, y forward, z up) and reflectivity ``uint8[n]`` of the returns."""
        hit = self.range_m > 0
        elevation = np.broadcast_to(np.radians(self.elevation_deg), self.range_m.shape)[hit]
        azimuth = np.radians(self.azimuth_deg[hit])
        level = self.range_m[hit] * np.cos(elevation)
        points = np.stack([level * np.sin(azimuth), level * np.cos(azimuth), self.range_m[hit] * np.sin(elevation)], axis=-1)
        return points, self.reflectivity[hit]


def first_scan(packets: npt.NDArray[Any], spec: VelodyneSpec) -> Scan:
    """The first whole turn in a run of data packets of one sensor.

    Args:
        packets: Records of ``DATA_PACKET_DTYPE`` in sending order; dual packets give their strongest (odd) blocks.
        spec: The model.

    Raises:
        CaptureError: there is less than one turn; the text says how much there is.
    """
    blocks = packets["blocks"]
    if packets.size and packets["return_mode"][0] == ReturnMode.DUAL:
        blocks = blocks[:, 1::2]
    azimuth = blocks["azimuth"].reshape(-1).astype(np.int64)
    steps = np.diff(azimuth) % _TURN_CDEG
    travelled = np.concatenate([[0], np.cumsum(steps)])
    wraps = np.flatnonzero(np.diff(azimuth) < 0) + 1
    if wraps.size >= 2:
        first, stop = int(wraps[0]), int(wraps[1])
    elif travelled[-1] >= _TURN_CDEG:
        first, stop = 0, int(np.searchsorted(travelled, _TURN_CDEG))
    else:
        degrees = travelled[-1] / 100 if travelled.size else 0
        raise CaptureError(f"a picture needs one whole turn of a lidar, got {degrees:.0f} deg in {packets.size} data packets")
    channels = len(spec.channels)
    per_block = RECORDS_PER_BLOCK // channels
    records = blocks["channels"].reshape(-1, RECORDS_PER_BLOCK)[first:stop].reshape(-1, channels)
    rate = float(np.median(steps)) / (per_block * spec.sequence_ns)  # 0.01 deg per ns
    sequence_ns = np.tile(np.arange(per_block) * spec.sequence_ns, stop - first)
    firing_ns = np.arange(channels) // spec.lasers_per_firing * spec.firing_ns
    offset_deg = np.array([channel.azimuth_offset_deg for channel in spec.channels])
    start_cdeg = np.repeat(azimuth[first:stop], per_block)
    azimuth_deg = ((start_cdeg + rate * sequence_ns)[:, None] + rate * firing_ns) / 100 + offset_deg
    return Scan(
        model=spec.model,
        azimuth_deg=azimuth_deg % 360,
        elevation_deg=np.array([channel.elevation_deg for channel in spec.channels]),
        range_m=records["distance"] * (spec.range_unit_mm / 1000),
        reflectivity=np.ascontiguousarray(records["reflectivity"]),
    )


def packets_for_one_turn(spec: VelodyneSpec) -> int:
    """Data packets that surely hold a whole turn between two wraps, at the slowest rate."""
    sequences = BLOCKS * RECORDS_PER_BLOCK // len(spec.channels)
    turn_ns = 60e9 / spec.rate_min_rpm
    return int(2.2 * turn_ns / (sequences * spec.sequence_ns)) + 2
