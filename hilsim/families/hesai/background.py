"""Maps of places from Hesai point packets: every return is counted at the azimuth and elevation at which its laser fired."""

from collections import Counter as Frequencies
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays
from hilsim.compilation.jit import constant, kernel
from hilsim.errors import CaptureError
from hilsim.families.hesai.points import Angles, decode_hesai
from hilsim.families.hesai.protocol.models import BY_NAME
from hilsim.families.hesai.protocol.points import BY_SIZE
from hilsim.families.hesai.recognition import HesaiKind
from hilsim.families.hesai.specs import RATES_RPM, HesaiSpec
from hilsim.protocols.recognise import PacketKind
from hilsim.read.background.compensation import Compensation, into_first_frame, polar, row_edges_rad
from hilsim.read.background.part import Batches, Counter, FoundSensor, GridSetting, MapSource, starts_with
from hilsim.read.background.table import EMPTY, FOREIGN, OUTSIDE, PACKETS, RETURNS, USED, CellTable, count_return, has_room
from hilsim.sensor.specs import LidarSpec
from hilsim.world.scene.background import AzimuthGrid, Grid, azimuth_column

_TURN_NS = 100_000_000
"""Time of a turn at 600 rpm, whose firings are the columns of a map."""
_MAX_RETURNS = constant(max(model.blocks * model.channels for model in BY_NAME.values()))


@kernel
def _add_points(
    columns: int,
    rows: int,
    packet: npt.NDArray[np.int64],
    azimuth_cdeg: npt.NDArray[np.float64],
    row: npt.NDArray[np.int64],
    distance_mm: npt.NDArray[np.int64],
    reflectivity: npt.NDArray[np.int64],
    table: CellTable,
    tally: npt.NDArray[np.int64],
) -> int:
    """Count points ``[n]`` of consecutive packets, of which those of 0 mm are no returns and those of a row below 0 are outside.

    Returns:
        Packet to continue with when the table has grown; -1 when all are done.
    """
    before = -1
    for index in range(packet.size):
        if packet[index] != before:
            before = packet[index]
            if not has_room(table.spill, tally[USED], _MAX_RETURNS):
                return int(before)
            tally[PACKETS] += 1
        if row[index] < 0:
            tally[OUTSIDE] += 1
            continue
        cell = azimuth_column(columns, azimuth_cdeg[index]) * rows + row[index]
        if distance_mm[index] == 0:
            tally[EMPTY] += 1
            table.empty[cell] += 1
        else:
            tally[RETURNS] += 1
            tally[USED] += count_return(table.slots, table.spill, cell, distance_mm[index], reflectivity[index])
    return -1


@kernel
def _move_back(moved: Compensation, time_ns: npt.NDArray[np.int64], point_m: npt.NDArray[np.float64], found: npt.NDArray[np.float64]) -> None:
    """Write ``polar`` of each point ``float64[n, 3]``, in the sensor's initial frame, to ``found`` ``float64[n, 3]``."""
    for index in range(time_ns.size):
        x, y, z = point_m[index]
        found[index, 0], found[index, 1], found[index, 2] = polar(into_first_frame(moved, time_ns[index], (x, y, z)))


@dataclass(frozen=True, kw_only=True)
class HesaiSource(MapSource):
    """Point packets of a Hesai."""

    kind: ClassVar[PacketKind] = HesaiKind.POINTS

    @classmethod
    def recognise(cls, batch: DatagramArrays) -> npt.NDArray[np.bool_]:
        """Packets of a model's size that begin with its header or a block's mark."""
        found = np.zeros(batch.size.size, np.bool_)
        for size, (model, _) in BY_SIZE.items():
            found |= starts_with(batch, batch.size == size, model.header[:2] or b"\xff\xee")
        return found

    @classmethod
    def identify(cls, payloads: list[bytes]) -> Self:
        """Model by the most frequent size, and the speed that packets report."""
        size = Frequencies(map(len, payloads)).most_common(1)[0][0]
        model, dtype = BY_SIZE[size]
        packets = np.frombuffer(b"".join(payload for payload in payloads if len(payload) == size), dtype)
        return cls(model=model.name, rate_rpm=float(np.median(packets["tail"]["speed_rpm"])))

    def check_named(self, named: LidarSpec, sensor: FoundSensor, where: str) -> None:
        """The profile must be of the packets' model."""
        if self.model != named.model:
            raise CaptureError(f"{where}: --profile must be of the packets' model, got one of a {named.model} and packets of {sensor}")

    def grid(self, setting: GridSetting, named: LidarSpec | None, sensor: FoundSensor, batches: Batches, where: str) -> Grid:  # noqa: ARG002 - nothing is measured
        """Columns of azimuth, and a row for each laser."""
        setting.check_turning()
        columns = setting.columns or round(_TURN_NS / BY_NAME[self.model].round_ns)
        return AzimuthGrid(columns=columns, elevation_deg=tuple(sorted(self._angles(named).elevation_deg)))

    def counter(self, grid: Grid, named: LidarSpec | None, moved: Compensation, epoch_ns: int) -> Counter:
        """Count what ``points`` decodes by the angles of the profile, or the nominal ones."""
        if not isinstance(grid, AzimuthGrid):
            raise TypeError(f"grid must be the one of the source, got {type(grid).__name__}")
        angles, edge_rad = self._angles(named), row_edges_rad(grid.elevation_deg)
        sizes = [size for size, (model, _) in BY_SIZE.items() if model.name == self.model]

        def count(batch: DatagramArrays, is_chosen: npt.NDArray[np.bool_], first: int, table: CellTable, tally: npt.NDArray[np.int64]) -> int:
            is_left = is_chosen & (np.arange(is_chosen.size) >= first)
            is_own = is_left & np.isin(batch.size, sizes)
            tally[FOREIGN] += np.count_nonzero(is_left & ~is_own)
            points = decode_hesai(batch, is_own, angles, with_empty=True)
            packet = np.flatnonzero(is_own)[points["packet"]]
            azimuth_cdeg, row, distance_m = points["azimuth"] * 100.0, points["ring"].astype(np.int64), points["range"]
            if moved.is_needed:
                time_ns = batch.host_stamp_ns[packet] - epoch_ns - _before_end_ns(points)
                points, packet, time_ns = (each[distance_m > 0.0] for each in (points, packet, time_ns))
                found = np.empty((time_ns.size, 3))
                _move_back(moved, time_ns, np.stack([points[axis] for axis in "xyz"], axis=1).astype(np.float64), found)
                azimuth_cdeg, row, distance_m = found[:, 0], np.searchsorted(edge_rad, found[:, 1], side="right") - 1, found[:, 2]
                row[row == grid.rows] = -1
            distance_mm, reflectivity = np.rint(distance_m * 1e3).astype(np.int64), points["intensity"].astype(np.int64)
            azimuth_cdeg = azimuth_cdeg.astype(np.float64)
            stopped = _add_points(grid.columns, grid.rows, packet, azimuth_cdeg, row, distance_mm, reflectivity, table, tally)
            return batch.start.size if stopped < 0 else stopped

        return count

    def _angles(self, named: LidarSpec | None) -> Angles:
        model = BY_NAME[self.model]
        return Angles(named.elevations_deg, named.azimuths_deg) if isinstance(named, HesaiSpec) else Angles(model.elevation_deg, model.azimuth_deg)

    def settable_rate_rpm(self, spec: LidarSpec) -> int | None:
        """The nearest rate that it has."""
        return min(RATES_RPM, key=lambda rate: abs(rate - self.rate_rpm)) if isinstance(spec, HesaiSpec) else None


def _before_end_ns(points: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """``int64[n]``, time from each point to the last one of its packet, which is sent then."""
    _, first, packet = np.unique(points["packet"], return_index=True, return_inverse=True)
    last_ns = np.maximum.reduceat(points["time_ns"], first) if first.size else points["time_ns"]
    return np.asarray(last_ns[packet] - points["time_ns"])


PART = (HesaiSource,)
