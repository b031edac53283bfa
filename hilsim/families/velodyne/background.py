"""Maps of places from Velodyne data packets: every return is counted at the azimuth and elevation at which its laser fired.

``families.velodyne.protocol.firing`` gives the direction of each firing of a block. Each packet is decoded independently, so that the result does not depend on earlier packets.
"""

from collections import Counter as Frequencies
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays
from hilsim.compilation.jit import constant, kernel, signed
from hilsim.errors import CaptureError
from hilsim.families.velodyne.protocol.data import BLOCKS, DATA_PACKET_SIZE, RECORDS_PER_BLOCK, RETURNS_BY_MODE_BYTE
from hilsim.families.velodyne.protocol.firing import (
    RecordFirings,
    block_azimuth_cdeg,
    build_record_firings,
    fired_cdeg,
    first_step_cdeg,
    packet_step_cdeg,
)
from hilsim.families.velodyne.protocol.geometry import FiringGeometry
from hilsim.families.velodyne.protocol.models import MODELS, OTHER_PRODUCTS, identify_model
from hilsim.families.velodyne.recognition import VelodyneKind
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.families.velodyne.stream import stacked_packets
from hilsim.protocols.recognise import PacketKind
from hilsim.read.background.compensation import STANDING, Compensation, into_first_frame, polar, row_edges_rad
from hilsim.read.background.part import Batches, Counter, FoundSensor, GridSetting, MapSource, starts_with
from hilsim.read.background.table import EMPTY, FOREIGN, OUTSIDE, PACKETS, RETURNS, USED, CellTable, count_return, has_room
from hilsim.sensor.specs import LidarSpec
from hilsim.units import RAD_PER_CDEG, TURN_CDEG
from hilsim.world.geometry.frames import sensor_direction
from hilsim.world.scene.background import AzimuthGrid, Grid, azimuth_column

DEFAULT_COLUMNS = 1800
"""Default number of columns: 0.2 degrees, a firing step at 600 rpm."""
_GEOMETRIES = {model.name: model.geometry for model in MODELS}

_BLOCKS = constant(BLOCKS)
_RECORDS = constant(RECORDS_PER_BLOCK)
_MAX_RETURNS = constant(BLOCKS * RECORDS_PER_BLOCK)
_PACKET_SIZE = constant(DATA_PACKET_SIZE)
# unsigned, because for a signed index Numba tests whether it counts from the end
_HIGH, _REFLECTIVITY, _RECORD_SIZE, _BLOCK_SIZE = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(100)


class TurningPlan(NamedTuple):
    """Parameters of the kernel; build with ``build_turning_plan``.

    Attributes:
        columns: Number of columns of the grid.
        product: Factory byte of the packets to count.
        row: ``int64[32]``, row of the grid for each record of a block.
        firings: Direction and time of each record of a block.
        edge_rad: ``float64[rows + 1]``, elevations that bound the rows; used if the sensor moved.
        epoch_ns: Capture time that is time 0 of the poses.
        moved: Motion of the sensor.
    """

    columns: int
    product: int
    row: npt.NDArray[np.int64]
    firings: RecordFirings
    edge_rad: npt.NDArray[np.float64]
    epoch_ns: int
    moved: Compensation


def build_turning_plan(geometry: FiringGeometry, grid: AzimuthGrid, product: int, moved: Compensation = STANDING, epoch_ns: int = 0) -> TurningPlan:
    """Build the parameters for a model's packets with factory byte ``product``."""
    elevation_deg = np.array(geometry.elevation_deg)
    return TurningPlan(
        grid.columns,
        product,
        np.tile(np.searchsorted(grid.elevation_deg, elevation_deg), RECORDS_PER_BLOCK // elevation_deg.size).astype(np.int64),
        build_record_firings(geometry),
        row_edges_rad(grid.elevation_deg),
        epoch_ns,
        moved,
    )


@kernel
def add_data_packets(
    plan: TurningPlan, batch: DatagramArrays, is_chosen: npt.NDArray[np.bool_], first: int, table: CellTable, tally: npt.NDArray[np.int64]
) -> int:
    """Count the returns of a batch's chosen data packets, from the ``first`` on.

    Args:
        plan: Parameters of the kernel.
        batch: Batch of datagrams.
        is_chosen: ``bool[n]``, whether a datagram is a data packet of the sensor, 1206 bytes each.
        first: Index of the datagram to start with.
        table: Table of counts, updated.
        tally: ``int64[6]``, updated.

    Returns:
        Index of the datagram to continue with when the table has grown; the batch's length when all are done.
    """
    found = np.empty((3, _RECORDS), dtype=np.int64)
    for index in range(first, batch.start.size):
        if not is_chosen[index]:
            continue
        if not has_room(table.spill, tally[USED], _MAX_RETURNS):
            return index
        at = batch.start[index]
        if batch.data[at + 1205] != plan.product:
            tally[FOREIGN] += 1
            continue
        tally[PACKETS] += 1
        _add_packet(plan, batch.data[at : at + _PACKET_SIZE], batch.host_stamp_ns[index], table, tally, found)
    return batch.start.size


@kernel
def _add_packet(
    plan: TurningPlan,
    payload: npt.NDArray[np.uint8],
    host_stamp_ns: int,
    table: CellTable,
    tally: npt.NDArray[np.int64],
    found: npt.NDArray[np.int64],
) -> None:
    per_firing = RETURNS_BY_MODE_BYTE[payload[1204]]
    step = max(first_step_cdeg(payload, per_firing), 0)
    for block in range(_BLOCKS):
        if block % per_firing == 0:
            step_cdeg = packet_step_cdeg(payload, block, per_firing)
            step = step_cdeg if step_cdeg >= 0 else step
        start_ns = host_stamp_ns - plan.epoch_ns - plan.firings.group_ns * (_BLOCKS - block + block % per_firing) // per_firing
        _add_block(plan, payload, block, block % per_firing, per_firing, step, start_ns, table, tally, found)


@kernel
def _add_block(
    plan: TurningPlan,
    payload: npt.NDArray[np.uint8],
    block: int,
    return_number: int,
    per_firing: int,
    step_cdeg: int,
    start_ns: int,
    table: CellTable,
    tally: npt.NDArray[np.int64],
    found: npt.NDArray[np.int64],
) -> None:
    """Count the returns of a block, the ``return_number``-th of its firings; ``found`` is ``int64[3, 32]``, scratch."""
    azimuth_cdeg = float(block_azimuth_cdeg(payload, block))
    slots, no_returns, spill = table
    columns, rows = plan.columns, plan.edge_rad.size - 1
    firings, has_moved = plan.firings, plan.moved.is_needed
    at = np.uint64(100 * block + 4)
    returns = empty = outside = touched = 0
    for record in range(_RECORDS):
        low, high, reflectivity = payload[at], payload[at + _HIGH], payload[at + _REFLECTIVITY]
        raw = signed(low) | signed(high) << 8
        is_copy = has_second = False
        if per_firing == 2 and return_number == 1:
            first = at - _BLOCK_SIZE
            is_copy = low == payload[first] and high == payload[first + _HIGH] and reflectivity == payload[first + _REFLECTIVITY]
        elif per_firing == 2:
            second = at + _BLOCK_SIZE
            has_second = payload[second] != 0 or payload[second + _HIGH] != 0
        at += _RECORD_SIZE
        if is_copy:  # both blocks contain a single return
            continue
        if raw == 0 and (return_number == 1 or has_second or has_moved):
            empty += return_number == 0 and not has_second
            continue
        fired = fired_cdeg(azimuth_cdeg, float(step_cdeg), firings.share[record], firings.offset_cdeg[record])
        distance_mm = signed(raw * firings.unit_mm + 0.5)
        row = plan.row[record]
        if has_moved:
            time_ns = start_ns + firings.time_ns[record]
            fired, row, distance_mm = _moved_back(plan, time_ns, fired, firings.elevation_rad[record], distance_mm)
        if row < 0:
            outside += 1
            continue
        cell = azimuth_column(columns, fired) * rows + row
        if raw == 0:
            empty += 1
            no_returns[cell] += 1
            continue
        touched |= slots[cell, 0, 0]  # loads all cells from memory in parallel, before each one's slots are searched
        found[0, returns], found[1, returns], found[2, returns] = cell, distance_mm, reflectivity
        returns += 1
    used = signed(touched >> 32)
    for number in range(returns):
        used += count_return(slots, spill, found[0, number], found[1, number], found[2, number])
    tally[RETURNS] += returns
    tally[EMPTY] += empty
    tally[OUTSIDE] += outside
    tally[USED] += used


@kernel
def _moved_back(plan: TurningPlan, time_ns: int, azimuth_cdeg: float, elevation_rad: float, distance_mm: int) -> tuple[float, int, int]:
    """Azimuth, row (-1 outside the rows) and distance (mm) of a return in the sensor's initial frame."""
    x, y, z = sensor_direction(azimuth_cdeg * RAD_PER_CDEG, elevation_rad)
    distance_m = distance_mm * 1e-3
    azimuth, elevation, distance = polar(into_first_frame(plan.moved, time_ns, (x * distance_m, y * distance_m, z * distance_m)))
    row = -1
    if plan.edge_rad[0] <= elevation < plan.edge_rad[-1]:
        row = 0
        while elevation >= plan.edge_rad[row + 1]:
            row += 1
    return azimuth, row, signed(distance * 1e3 + 0.5)


@dataclass(frozen=True, kw_only=True)
class VelodyneSource(MapSource):
    """Data packets of a Velodyne with known lasers.

    Attributes:
        product: Factory byte of the packets.
    """

    kind: ClassVar[PacketKind] = VelodyneKind.DATA
    product: int

    @classmethod
    def recognise(cls, batch: DatagramArrays) -> npt.NDArray[np.bool_]:
        """Packets of 1206 bytes that begin with a block flag."""
        return starts_with(batch, batch.size == DATA_PACKET_SIZE, b"\xff\xee")

    @classmethod
    def identify(cls, payloads: list[bytes]) -> Self:
        """Model, factory byte and rotation rate, from the most frequent values in packets and their spacing."""
        packets = stacked_packets(payloads)
        product = Frequencies(packets["product"].tolist()).most_common(1)[0][0]
        mode = Frequencies(packets["return_mode"].tolist()).most_common(1)[0][0]
        packets = packets[packets["product"] == product]
        steps_us = np.diff(packets["timestamp"].astype(np.int64))
        step_us = float(np.median(steps_us)) if len(steps_us) > 1 else None
        model = identify_model(product, step_us, is_dual=bool(RETURNS_BY_MODE_BYTE[mode] == 2))
        turned_cdeg = np.diff(packets["blocks"]["azimuth"][:, 0].astype(np.int64)) % TURN_CDEG
        rates_rpm = turned_cdeg[steps_us > 0] / steps_us[steps_us > 0] * (60e6 / TURN_CDEG)
        name = model.name if model else OTHER_PRODUCTS.get(product, "")
        return cls(model=name, product=product, rate_rpm=float(np.median(rates_rpm)) if rates_rpm.size else 0.0)

    def check_named(self, named: LidarSpec, sensor: FoundSensor, where: str) -> None:
        """The profile must be of the packets' model."""
        if self.model != named.model:
            raise CaptureError(f"{where}: --profile must be of the packets' model, got one of a {named.model} and packets of {sensor}")

    def grid(self, setting: GridSetting, named: LidarSpec | None, sensor: FoundSensor, batches: Batches, where: str) -> Grid:  # noqa: ARG002 - nothing is measured
        """Columns of azimuth, and a row for each laser."""
        geometry = self._geometry(named)
        if geometry is None:
            models = ", ".join(sorted(_GEOMETRIES))
            raise CaptureError(f"{where}: the model must be one of {models}, got {sensor} with product byte 0x{self.product:02x}")
        setting.check_turning()
        return AzimuthGrid(columns=setting.columns or DEFAULT_COLUMNS, elevation_deg=geometry.rows_deg)

    def counter(self, grid: Grid, named: LidarSpec | None, moved: Compensation, epoch_ns: int) -> Counter:
        """Kernel of this module with the plan of the model's lasers."""
        geometry = self._geometry(named)
        if geometry is None or not isinstance(grid, AzimuthGrid):
            raise TypeError(f"grid must be the one of the source, got {type(grid).__name__}")
        plan = build_turning_plan(geometry, grid, self.product, moved, epoch_ns)
        return lambda batch, is_chosen, first, table, tally: add_data_packets(plan, batch, is_chosen, first, table, tally)

    def _geometry(self, named: LidarSpec | None) -> FiringGeometry | None:
        return named.geometry if isinstance(named, VelodyneSpec) else _GEOMETRIES.get(self.model)

    def row_heights_m(self) -> npt.NDArray[np.float64] | None:
        """Heights of the lasers' origins where they are known."""
        geometry = self._geometry(None)
        if geometry is None or not geometry.vertical_offset_mm:
            return None
        return np.array(geometry.vertical_offset_mm)[list(geometry.elevation_order)] * 1e-3

    def settable_rate_rpm(self, spec: LidarSpec) -> int | None:
        """Multiple of the profile's step within its limits."""
        if not isinstance(spec, VelodyneSpec):
            return None
        steps_rpm = round(self.rate_rpm / spec.rate_step_rpm) * spec.rate_step_rpm
        return min(max(steps_rpm, spec.rate_min_rpm), spec.rate_max_rpm)


PART = (VelodyneSource,)
