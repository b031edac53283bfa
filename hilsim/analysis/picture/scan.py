"""One scan from data packets, as arrays of firings."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.errors import CaptureError, PacketError
from hilsim.families.velodyne.protocol.data import BLOCK_FLAG, BLOCKS, RECORDS_PER_BLOCK, Return, ReturnMode
from hilsim.families.velodyne.protocol.firing import build_record_firings, fire_groups
from hilsim.families.velodyne.protocol.geometry import FiringGeometry
from hilsim.families.velodyne.protocol.models import BY_NAME, OTHER_PRODUCTS, identify_model
from hilsim.units import TURN_CDEG

_BANK_FLAGS = (0xEEFF, 0xDDFF, 0xCCFF, 0xBBFF)
"""Flags of the four blocks of a VLS-128's firing sequence."""
_DUAL_BANK_BLOCKS = 8
"""Blocks in use of a VLS-128's dual packet: one sequence in pairs of blocks; blocks 8 to 11 are padding (no public capture contains one)."""


@dataclass(frozen=True, kw_only=True)
class Scan:
    """All firings of one turn of a lidar, including those without a return.

    Attributes:
        model: Name of the model.
        azimuth_deg: ``float64[s, c]``, azimuth of each firing, clockwise from forward, 0..360.
        elevation_deg: ``float64[c]``, elevation of each channel, in firing order.
        range_m: ``float64[s, c]``, ranges, 0 without a return.
        reflectivity: ``uint8[s, c]``, reflectivities.
        step_deg: Turn of the head from one firing of a channel to its next.
        rate_rpm: Rotation rate.
    """

    model: str
    azimuth_deg: npt.NDArray[np.float64]
    elevation_deg: npt.NDArray[np.float64]
    range_m: npt.NDArray[np.float64]
    reflectivity: npt.NDArray[np.uint8]
    step_deg: float
    rate_rpm: float

    @property
    def missing(self) -> float:
        """Share of the turn without a firing, because the sensor did not fire there or packets were lost; 0 for a complete turn."""
        return max(0.0, 1.0 - len(self.range_m) * self.step_deg / 360.0)

    @property
    def returns(self) -> int:
        """Number of firings with a return."""
        return int(np.count_nonzero(self.range_m))

    def points_m(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint8]]:
        """Positions ``float64[n, 3]`` (x right, y forward, z up) and reflectivities ``uint8[n]`` of the returns."""
        hit = self.range_m > 0
        elevation = np.broadcast_to(np.radians(self.elevation_deg), self.range_m.shape)[hit]
        azimuth = np.radians(self.azimuth_deg[hit])
        level = self.range_m[hit] * np.cos(elevation)
        points = np.stack([level * np.sin(azimuth), level * np.cos(azimuth), self.range_m[hit] * np.sin(elevation)], axis=-1)
        return points, self.reflectivity[hit]


def geometry_of_packets(packets: npt.NDArray[Any]) -> FiringGeometry:
    """Find the geometry of the model of data packets, by their factory byte and the time between them.

    Args:
        packets: Records of ``DATA_PACKET_DTYPE`` in sending order, at least one.

    Raises:
        CaptureError: the geometry of the model is unknown; the message lists the known models.
    """
    product, mode = int(packets["product"][0]), ReturnMode.find(int(packets["return_mode"][0]))
    steps_us = np.diff(packets["timestamp"].astype(np.int64))
    step_us = float(np.median(steps_us)) if steps_us.size else None
    model = None if product in OTHER_PRODUCTS else identify_model(product, step_us, is_dual=mode is not None and mode.is_dual)
    name = model.name if model else OTHER_PRODUCTS.get(product, "").partition(" (")[0]
    if name not in BY_NAME:
        known = ", ".join(BY_NAME)
        raise CaptureError(
            f"lasers of a {name or 'model'} with product byte 0x{product:02x} must be known for a picture (known are {known}); name one with --model"
        )
    return BY_NAME[name].geometry


def first_scan(packets: npt.NDArray[Any], geometry: FiringGeometry) -> Scan:
    """Find the first whole turn in a run of data packets of one sensor.

    Args:
        packets: Records of ``DATA_PACKET_DTYPE`` in sending order; dual packets give their strongest blocks.
        geometry: Geometry of the model.

    Raises:
        CaptureError: the packets contain less than one turn; the message states how much.
        PacketError: a block has another flag than the model's; the message names packet, block and byte.
    """
    channels = len(geometry.elevation_deg)
    azimuth, records = _sequences(packets, channels)
    steps = np.diff(azimuth) % TURN_CDEG
    first, stop = _turn(azimuth, steps, packets.size)
    typical = float(np.median(steps))
    group_step_cdeg = float(steps[steps < 2.0 * typical + 1.0].mean())  # without leaps across parts without firings or lost packets
    firings = build_record_firings(geometry)
    fired_cdeg = np.empty((stop - first, firings.share.size))
    fire_groups(firings, azimuth[first:stop], group_step_cdeg, fired_cdeg)
    step_cdeg = group_step_cdeg * channels / firings.share.size
    chosen = records[first:stop].reshape(-1, channels)
    return Scan(
        model=geometry.model,
        azimuth_deg=fired_cdeg.reshape(-1, channels) / 100 % 360,
        elevation_deg=np.array(geometry.elevation_deg),
        range_m=chosen["distance"] * (geometry.distance_unit_mm / 1000),
        reflectivity=np.ascontiguousarray(chosen["reflectivity"]),
        step_deg=step_cdeg / 100,
        rate_rpm=step_cdeg / TURN_CDEG / (geometry.sequence_ns * 1e-9) * 60,
    )


def _sequences(packets: npt.NDArray[Any], channels: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    """Azimuths ``int64[n]`` in the packets, and the records of each, ``CHANNEL_DTYPE[n, records]``."""
    blocks = packets["blocks"]
    mode = ReturnMode.find(int(packets["return_mode"][0])) if packets.size else None
    pair = mode if mode is not None and mode.is_dual else None
    banks = max(channels // RECORDS_PER_BLOCK, 1)
    expected = np.resize(_BANK_FLAGS if banks > 1 else (BLOCK_FLAG,), BLOCKS)
    looked_at = np.arange(BLOCKS)
    if pair and banks > 1:
        expected, looked_at = np.repeat(_BANK_FLAGS, 2), np.arange(_DUAL_BANK_BLOCKS)
    wrong = np.argwhere(blocks["flag"][:, looked_at] != expected)
    if wrong.size:
        packet, block = wrong[0].tolist()
        flag = int(blocks["flag"][packet, block])
        raise PacketError(f"data packet {packet} block {block} must start with flag 0x{expected[block]:04x}, got 0x{flag:04x} at byte {100 * block}")
    if pair:
        blocks = blocks[:, pair.order.index(Return.STRONGEST) : _DUAL_BANK_BLOCKS if banks > 1 else BLOCKS : 2]
    azimuth = blocks["azimuth"].reshape(-1, banks)[:, 0].astype(np.int64)
    return azimuth, blocks["channels"].reshape(azimuth.size, banks * RECORDS_PER_BLOCK)


def _turn(azimuth: npt.NDArray[np.int64], steps: npt.NDArray[np.int64], packets: int) -> tuple[int, int]:
    """Start and end (exclusive) of a whole turn: from one passage of azimuth 0 to the next if there are two, else from any azimuth."""
    travelled = np.concatenate([[0], np.cumsum(steps)])
    wraps = np.flatnonzero(np.diff(azimuth) < -TURN_CDEG // 360) + 1  # back by more than a degree, far more than noise
    if wraps.size >= 2:
        return int(wraps[0]), int(wraps[1])
    if travelled[-1] >= TURN_CDEG:
        return 0, int(np.searchsorted(travelled, TURN_CDEG))
    raise CaptureError(f"a picture needs one whole turn of a lidar, got {travelled[-1] / 100:.0f} deg in {packets} data packets")


def packets_for_one_turn(packet_rate_hz: float, rate_rpm: float) -> int:
    """Number of data packets that always contain a whole turn between two passages of azimuth 0."""
    return math.ceil(2.2 * packet_rate_hz * 60 / rate_rpm) + 2
