"""One turn from data packets, as arrays of firings, and its picture."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import numpy.typing as npt

from hilsim.config.parse import parse_table
from hilsim.config.profiles import find_profile, read_profile
from hilsim.errors import CaptureError, PacketError
from hilsim.families.velodyne.points import geometry_of_packets
from hilsim.families.velodyne.protocol.data import BLOCK_FLAG, BLOCKS, DATA_PACKET_SIZE, RECORDS_PER_BLOCK, Return, ReturnMode
from hilsim.families.velodyne.protocol.firing import build_record_firings, fire_groups
from hilsim.families.velodyne.protocol.geometry import FiringGeometry
from hilsim.families.velodyne.protocol.models import BY_NAME
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.families.velodyne.stream import stacked_packets
from hilsim.read.analysis.picture.part import DIFFUSE_LIMIT, Gatherer, PicturePart, PictureScan, draw_above
from hilsim.read.analysis.picture.scales import add_range_bar, range_limits_m, range_norm
from hilsim.units import TURN_CDEG

_BANK_FLAGS = (0xEEFF, 0xDDFF, 0xCCFF, 0xBBFF)
"""Flags of the four blocks of a VLS-128's firing sequence."""
_DUAL_BANK_BLOCKS = 8
"""Blocks in use of a VLS-128's dual packet: one sequence in pairs of blocks; blocks 8 to 11 are padding (no public capture contains one)."""
_PASSAGES_OF_A_TURN = 3
"""Number of passages of azimuth 0, by packets' first azimuths, between which two turns are complete."""
_TOLD_MISSING = 0.02
"""Missing share of a turn that is reported: whole turns of five real captures and of hilsim lack at most 0.13 %, and one VLP-16 packet is 1 % or more."""
_MAX_COLUMNS = 1800
_NEIGHBOUR_STEPS = 1.5
_STRIP_INCHES = 1.4
_STRIP_INCHES_A_LASER = 0.014
_ROWS_MARKED = 5


@dataclass(frozen=True, kw_only=True)
class Scan(PictureScan):
    """All firings of one turn of a lidar, including those without a return."""

    model: Annotated[str, "Name of the model."]
    azimuth_deg: Annotated[npt.NDArray[np.float64], "``float64[s, c]``, azimuth of each firing, clockwise from forward, 0..360."]
    elevation_deg: Annotated[npt.NDArray[np.float64], "``float64[c]``, elevation of each channel, in firing order."]
    range_m: Annotated[npt.NDArray[np.float64], "``float64[s, c]``, ranges, 0 without a return."]
    reflectivity: Annotated[npt.NDArray[np.uint8], "``uint8[s, c]``, reflectivities."]
    step_deg: Annotated[float, "Turn of the head from one firing of a channel to its next."]
    rate_rpm: Annotated[float, "Rotation rate."]

    def __str__(self) -> str:
        return f"{self.model}, {self.range_m.size:,} firings, {self.returns:,} returns"

    @property
    def missing(self) -> float:
        """Share of the turn without a firing, because the sensor did not fire there or packets were lost; 0 for a complete turn."""
        return max(0.0, 1.0 - len(self.range_m) * self.step_deg / 360.0)

    @property
    def returns(self) -> int:
        """Number of firings with a return."""
        return int(np.count_nonzero(self.range_m))

    @property
    def subtitle(self) -> str:
        """Second line of the picture."""
        return f"{self.model}, {self.rate_rpm:.0f} rpm, {self.range_m.size:,} firings, {self.returns:,} returns"

    @property
    def remark(self) -> str:
        """The missing share of the turn, if packets were lost."""
        if self.missing <= _TOLD_MISSING:
            return ""
        return f"{self.missing:.0%} of the turn is missing: the sensor did not fire there, or packets were lost on the way (a busy machine?)"

    @property
    def heights(self) -> tuple[float, ...]:
        """Heights of the panels in inches."""
        strip_inches = _STRIP_INCHES + _STRIP_INCHES_A_LASER * self.elevation_deg.size
        return strip_inches, strip_inches, 10.8

    def draw_panels(self, figure: Any, grid: Any, extent_m: float | None) -> None:
        """Draw the range image, the reflectivity image, and the view from above."""
        firing = nearest_firings(self)
        limits_m = range_limits_m(self.range_m[self.range_m > 0])
        axes, drawn = _strip(figure, grid[0], self, self.range_m, firing, cmap="viridis", norm=range_norm(limits_m))
        add_range_bar(figure, drawn, axes, limits_m)
        axes, drawn = _strip(figure, grid[1], self, self.reflectivity, firing, cmap="magma", vmin=0, vmax=DIFFUSE_LIMIT)
        axes.set_xlabel("azimuth (deg, clockwise from forward; grey: no return, white: not fired)")
        figure.colorbar(drawn, ax=axes, label="reflectivity", pad=0.01, extend="max")
        draw_above(figure, grid[2], *self.points_m(), extent_m)

    def points_m(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint8]]:
        """Positions ``float64[n, 3]`` (x right, y forward, z up) and reflectivities ``uint8[n]`` of the returns."""
        hit = self.range_m > 0
        elevation = np.broadcast_to(np.radians(self.elevation_deg), self.range_m.shape)[hit]
        azimuth = np.radians(self.azimuth_deg[hit])
        level = self.range_m[hit] * np.cos(elevation)
        points = np.stack([level * np.sin(azimuth), level * np.cos(azimuth), self.range_m[hit] * np.sin(elevation)], axis=-1)
        return points, self.reflectivity[hit]


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


def nearest_firings(scan: Scan) -> npt.NDArray[np.int64]:
    """Find the firing of each channel nearest to each column's azimuth (-180 to 180 deg), ``int64[c, columns]``; -1 without a firing there.

    The number of columns is that of firings in a turn, at most 1800, at any rate.
    """
    turn = round(360.0 / scan.step_deg)
    columns = min(turn, _MAX_COLUMNS)
    centre_deg = (np.arange(columns) + 0.5) * 360.0 / columns - 180.0
    chosen = np.full((scan.elevation_deg.size, columns), -1, dtype=np.int64)
    for channel in range(scan.elevation_deg.size):
        azimuth_deg = (scan.azimuth_deg[:, channel] + 180.0) % 360.0 - 180.0
        order = np.argsort(azimuth_deg)
        row = np.concatenate((order[-1:], order, order[:1]))
        around_deg = azimuth_deg[row] + np.concatenate(([-360.0], np.zeros(order.size), [360.0]))
        after = np.searchsorted(around_deg, centre_deg)
        is_before = centre_deg - around_deg[after - 1] < around_deg[after] - centre_deg
        nearest = after - is_before
        is_near = np.abs(around_deg[nearest] - centre_deg) <= _NEIGHBOUR_STEPS * max(scan.step_deg, 360.0 / columns)
        chosen[channel] = np.where(is_near, row[nearest], -1)
    return chosen


def _strip(figure: Any, cell: Any, scan: Scan, values: npt.NDArray[Any], firing: npt.NDArray[np.int64], **colours: Any) -> tuple[Any, Any]:
    """Draw the scan as an image: channels by elevation over azimuth."""
    order = np.argsort(-scan.elevation_deg)
    channel = np.arange(order.size)[:, None]
    is_return = (scan.range_m[firing, channel] > 0) & (firing >= 0)
    image = np.where(is_return, values[firing, channel].astype(float), np.nan)[order]
    axes = figure.add_subplot(cell)
    axes.set_facecolor("white")
    empty = np.where((firing >= 0) & ~is_return, 0.85, np.nan)[order]
    placed: dict[str, Any] = {"aspect": "auto", "extent": (-180, 180, order.size, 0), "interpolation": "nearest"}
    axes.imshow(empty, cmap="gray", vmin=0, vmax=1, **placed)
    drawn = axes.imshow(image, **colours, **placed)
    marked = np.unique(np.linspace(0, order.size - 1, _ROWS_MARKED).round().astype(int))
    axes.set_yticks(marked + 0.5, [f"{scan.elevation_deg[order[row]]:+.0f}°" for row in marked])
    axes.set_xticks(range(-180, 181, 45))
    return axes, drawn


class TurnGatherer(Gatherer):
    """Data packets of one sensor until they contain a whole turn."""

    def __init__(self, geometry: FiringGeometry | None) -> None:
        """Gather no packet yet; ``geometry`` is that of the model, and None is the one that the packets show."""
        self._geometry = geometry
        self.payloads: list[bytes] = []
        self._passages = 0
        self._azimuth_cdeg = -1

    def take(self, payload: bytes) -> None:
        """Add a data packet."""
        self.payloads.append(payload)
        azimuth_cdeg = int.from_bytes(payload[2:4], "little")
        self._passages += azimuth_cdeg < self._azimuth_cdeg
        self._azimuth_cdeg = azimuth_cdeg

    @property
    def is_whole(self) -> bool:
        """Whether the packets contain a whole turn between two passages of azimuth 0."""
        return self._passages >= _PASSAGES_OF_A_TURN

    def scan(self) -> Scan:
        """The first whole turn, as ``first_scan`` finds it."""
        packets = stacked_packets(self.payloads)
        return first_scan(packets, self._geometry or geometry_of_packets(packets))


def _of_packet(_first: bytes, _metadata: Any, model: str, _where: str) -> TurnGatherer:
    """Gather packets of the model that the user names (a known one, or a profile), or that the packets show.

    Raises:
        ConfigError: no profile has that name, or its sensor does not turn.
    """
    if not model:
        return TurnGatherer(None)
    named = {known.name.casefold(): known for known in BY_NAME.values()}
    if model.casefold() in named:
        return TurnGatherer(named[model.casefold()].geometry)
    path = find_profile("sensors", model, Path.cwd())
    return TurnGatherer(parse_table(VelodyneSpec, read_profile(path), str(path)).geometry)


PART = PicturePart(
    packets="Velodyne data packets",
    is_points=lambda payload: len(payload) == DATA_PACKET_SIZE,
    of_packet=_of_packet,
    of_setting=lambda setting: TurnGatherer(cast("VelodyneSpec", setting.spec).geometry),
)
