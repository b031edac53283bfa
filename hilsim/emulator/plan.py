"""Everything one emulated lidar is, in the shape kernels take it; ``emulator.planning`` builds it once, and nothing changes it while the lidar streams."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import by_reference
from hilsim.emulator.overlay import Overlay
from hilsim.render.cells import NO_CELLS, Cells
from hilsim.sensor.clock import DeviceClock
from hilsim.sensor.decimation import Decimation
from hilsim.sensor.false_alarms import FalseAlarms
from hilsim.sensor.head import Head
from hilsim.sensor.mirror import Mirror
from hilsim.sensor.optics.beam import Beam
from hilsim.sensor.optics.weather import Weather
from hilsim.sensor.optics.window import Window
from hilsim.sensor.position_stream import PositionStream
from hilsim.sensor.response import Response


class Family(IntEnum):
    """Whose packets, and how firings are directed."""

    VELODYNE = 0
    CEPTON = 1


class BeamRow(IntEnum):
    """Rows of ``LidarPlan.beam_lanes`` for each sixteen channels."""

    TURNS = 0
    """Azimuth beside the head's."""
    PHASE = 1
    """When it fires, as a share of the firing sequence."""
    SINE_ELEVATION = 2
    COSINE_ELEVATION = 3
    ORIGIN_X = 4
    """Where the beam begins, in the platform's body frame; metres."""
    ORIGIN_Y = 5
    ORIGIN_Z = 6
    BIAS = 7
    """The laser's constant range error; metres."""


class Gps(NamedTuple):
    """Kernel-side receiver; ``present`` false means none is connected."""

    present: bool
    valid: bool
    latitude_deg: float
    longitude_deg: float
    origin_east_m: float
    origin_north_m: float
    sentence_delay_ns: int


class BeamCells(NamedTuple):
    """What each beam of a lidar that stands still can meet, by direction.

    Attributes:
        cells: Lists of static triangles; ``NO_CELLS`` of a lidar that moves.
        columns: Cells across: of a turn, or of the image.
        rows: Cells of the image upwards.
        extent: Image that the cells cover: smallest and largest x, smallest and largest z.
    """

    cells: Cells
    columns: int = 1
    rows: int = 1
    extent: tuple[float, float, float, float] = (0.0, 1.0, 0.0, 1.0)


NO_BEAM_CELLS = BeamCells(NO_CELLS)


@by_reference
class LidarPlan(NamedTuple):
    """Kernel-side lidar.

    Attributes:
        family: A ``Family``.
        clock: Device clock.
        head: Rotating head; of no meaning without one.
        mirror: Scanning mirror; of no meaning without one.
        beam: Its rays and their shares.
        response: Detection, limits and noise.
        baseline: ``uint8[c]``, reflectivity of a record without a return.
        bias_m: ``float64[c]``, each laser's constant range error.
        weather: Extinction and false echoes.
        window: What the sensor's window lets through.
        false_alarms: Noise taken for echoes.
        overlay: Captured background.
        beam_cells: Static triangles by direction, of a sensor that stands still.
        decimation: Which firings are reported.
        is_decimated: Not all of them are.
        position: When position packets, or a Cepton-style sensor's information packets, are sent.
        gps: Receiver.
        info: ``uint8[88]``, the information packet; empty where there is none.
        header_version: Of point packets.
        data_size: Bytes of a data packet's payload.
        info_size: Bytes of a position or information packet's payload.
        elevation_deg: ``float64[c]``.
        azimuth_offset_rad: ``float64[c]``.
        channel_origin_m: ``float64[c, 3]``, where each channel's beam begins, in the platform's body frame.
        firing_offset_ns: ``int64[c]`` of each channel within a firing sequence.
        beam_lanes: ``float64[8 * ceil(c / 16), 16]``, what the channels' beams have of their own, sixteen side by side, rows by ``BeamRow``; the last channel fills up.
        sequence_ns: Device time of a firing sequence.
        sequences_per_packet: Firing sequences of a data packet.
        origin_sequence: Index of the firing sequence that data packet 0 begins with; not 0 after the number of sequences in a packet has changed.
        stamp_offset_ns: Device time from a data packet's first firing to the one that its stamp is of.
        has_imu: Position packets carry what the sensor's gyroscopes and accelerometers read.
        choice: ``int64[r]``, an ``EchoChoice`` for each return of a firing, in the packet's order.
        factory_bytes: Of a Velodyne: return mode and product, the last two bytes of a data packet.
        mount_orientation: ``float64[4]``, body from sensor.
        data_latency_ns: From the end of the last firing sequence to the wire.
        cast_range_m: How far rays are cast: the longest range plus a margin for noise.
    """

    family: int
    clock: DeviceClock
    head: Head
    mirror: Mirror
    beam: Beam
    response: Response
    baseline: npt.NDArray[np.uint8]
    bias_m: npt.NDArray[np.float64]
    weather: Weather
    window: Window
    false_alarms: FalseAlarms
    overlay: Overlay
    beam_cells: BeamCells
    decimation: Decimation
    is_decimated: bool
    position: PositionStream
    gps: Gps
    info: npt.NDArray[np.uint8]
    header_version: int
    data_size: int
    info_size: int
    elevation_deg: npt.NDArray[np.float64]
    azimuth_offset_rad: npt.NDArray[np.float64]
    channel_origin_m: npt.NDArray[np.float64]
    firing_offset_ns: npt.NDArray[np.int64]
    beam_lanes: npt.NDArray[np.float64]
    sequence_ns: int
    sequences_per_packet: int
    origin_sequence: int
    stamp_offset_ns: int
    has_imu: bool
    choice: npt.NDArray[np.int64]
    factory_bytes: int
    mount_orientation: npt.NDArray[np.float64]
    data_latency_ns: int
    cast_range_m: float
