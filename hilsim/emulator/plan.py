"""Everything one emulated lidar is, in the shape kernels take it; built once from specs, never changed while it streams."""

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.emulator.overlay import Overlay, no_overlay
from hilsim.emulator.setting import LidarSetting
from hilsim.geometry.poses import Pose
from hilsim.protocols.cepton.info import encode_info_packet
from hilsim.protocols.cepton.stdv import packet_size
from hilsim.protocols.velodyne.data import DATA_PACKET_SIZE, Return, ReturnMode
from hilsim.protocols.velodyne.geometry import even_delays_ns
from hilsim.protocols.velodyne.position import POSITION_PACKET_SIZE
from hilsim.render.cells import NO_CELLS, Cells
from hilsim.sensor.beam import Beam, beam
from hilsim.sensor.cepton_specs import CeptonSetting, CeptonSpec
from hilsim.sensor.clock import DeviceClock, device_clock
from hilsim.sensor.decimation import Thinning, no_thinning, thinning
from hilsim.sensor.false_alarms import FalseAlarms, false_alarms
from hilsim.sensor.head import Head, build_head, no_head
from hilsim.sensor.mirror import Mirror, mirror, no_mirror
from hilsim.sensor.position_stream import PositionStream, periodic_stream, position_stream
from hilsim.sensor.response import Response, response
from hilsim.sensor.specs import ThinningSpec
from hilsim.sensor.velodyne_specs import GpsSetting, VelodyneSpec
from hilsim.sensor.weather import Weather, weather
from hilsim.sensor.window import Window, window

_NOISE_MARGIN_SIGMAS = 8.0
INFO_PERIOD_NS = 500_000_000
"""Sensor information is sent twice a second (Cepton Sensor Communication Specifications)."""


class Family(IntEnum):
    """Whose packets, and how firings are directed."""

    VELODYNE = 0
    CEPTON = 1


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


class LidarPlan(NamedTuple):
    """Kernel-side lidar.

    Attributes:
        family: A ``Family``.
        clock: Device clock.
        head: Rotating head; of no meaning without one.
        mirror: Scanning mirror; of no meaning without one.
        beam: Its rays and their shares.
        response: Detection, limits and noise.
        weather: Extinction and false echoes.
        window: What the sensor's window lets through.
        false_alarms: Noise taken for echoes.
        overlay: Captured background.
        beam_cells: Static triangles by direction, of a sensor that stands still.
        thinning: Which firings are reported.
        is_thinned: Not all of them are.
        position: When position packets, or a Cepton-style sensor's information packets, are sent.
        gps: Receiver.
        info: ``uint8[88]``, the information packet; empty where there is none.
        header_version: Of point packets.
        data_size: Bytes of a data packet's payload.
        info_size: Bytes of a position or information packet's payload.
        elevation_deg: ``float64[c]``.
        sine_elevation: ``float64[c]``.
        cosine_elevation: ``float64[c]``.
        azimuth_offset_rad: ``float64[c]``.
        channel_origin_m: ``float64[c, 3]``, where each channel's beam begins, in the carrier's body frame.
        firing_offset_ns: ``int64[c]`` of each channel within a firing sequence.
        sequence_ns: Device time of a firing sequence.
        sequences_per_packet: Firing sequences of a data packet.
        returns: Returns reported for each firing.
        reports_last: The first (or only) of them is the last return.
        return_mode: Factory byte.
        product: Factory byte.
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
    weather: Weather
    window: Window
    false_alarms: FalseAlarms
    overlay: Overlay
    beam_cells: BeamCells
    thinning: Thinning
    is_thinned: bool
    position: PositionStream
    gps: Gps
    info: npt.NDArray[np.uint8]
    header_version: int
    data_size: int
    info_size: int
    elevation_deg: npt.NDArray[np.float64]
    sine_elevation: npt.NDArray[np.float64]
    cosine_elevation: npt.NDArray[np.float64]
    azimuth_offset_rad: npt.NDArray[np.float64]
    channel_origin_m: npt.NDArray[np.float64]
    firing_offset_ns: npt.NDArray[np.int64]
    sequence_ns: int
    sequences_per_packet: int
    returns: int
    reports_last: bool
    return_mode: int
    product: int
    mount_orientation: npt.NDArray[np.float64]
    data_latency_ns: int
    cast_range_m: float


def _gps(setting: GpsSetting | None) -> Gps:
    if setting is None:
        return Gps(present=False, valid=False, latitude_deg=0.0, longitude_deg=0.0, origin_east_m=0.0, origin_north_m=0.0, sentence_delay_ns=0)
    return Gps(
        present=True,
        valid=setting.valid,
        latitude_deg=setting.latitude_deg,
        longitude_deg=setting.longitude_deg,
        origin_east_m=setting.origin_m[0],
        origin_north_m=setting.origin_m[1],
        sentence_delay_ns=round(setting.sentence_delay_ms * 1e6),
    )


def lidar_plan(setting: LidarSetting, *, seed: int, utc_epoch_ns: int, overlay: Overlay | None = None, cells: BeamCells | None = None) -> LidarPlan:
    """Kernel-side lidar of a setting.

    Args:
        setting: The lidar.
        seed: The rig's seed, 64 bits.
        utc_epoch_ns: UTC of rig time 0 in ns since 1970.
        overlay: What it sees of a captured background.
        cells: What its beams can meet, where it stands still.
    """
    spec = setting.spec
    mount = setting.setup.body_from_sensor
    common: dict[str, Any] = {
        "clock": device_clock(
            setting.setup.clock, follows_pulse=setting.follows_pulse, start_ns=round(setting.setup.start_delay_us * 1000), utc_epoch_ns=utc_epoch_ns
        ),
        "beam": beam(spec.beam, setting.setup.sub_rays),
        "response": response(spec, seed=seed, stream=setting.stream),
        "weather": weather(
            setting.weather,
            threshold_energy=spec.detector.threshold_energy,
            pulse_ns=spec.detector.pulse_ns,
            divergence_h_mrad=spec.beam.divergence_h_mrad,
            divergence_v_mrad=spec.beam.divergence_v_mrad,
            window_h_mm=spec.beam.window_h_mm,
            window_v_mm=spec.beam.window_v_mm,
        ),
        "window": window(setting.setup.window),
        "false_alarms": false_alarms(setting.setup.false_alarms),
        "overlay": overlay or no_overlay(),
        "beam_cells": cells or NO_BEAM_CELLS,
        "gps": _gps(setting.setup.gps),
        "firing_offset_ns": np.array(even_delays_ns(spec.laser_count, spec.firing_ns, spec.lasers_per_firing), dtype=np.int64),
        "sequence_ns": spec.sequence_ns,
        "sequences_per_packet": setting.sequences_per_packet,
        "returns": setting.returns,
        "header_version": setting.header_version,
        "mount_orientation": np.array(mount.orientation),
        "data_latency_ns": round(spec.data_latency_us * 1000),
        "cast_range_m": spec.range_max_m + _NOISE_MARGIN_SIGMAS * spec.range_noise_m,
    }
    of_family = _turning(setting, spec, mount, seed) if isinstance(spec, VelodyneSpec) else _sweeping(setting, spec, mount, seed, utc_epoch_ns)
    return LidarPlan(**common, **of_family)


def _turning(setting: LidarSetting, spec: VelodyneSpec, mount: Pose, seed: int) -> dict[str, Any]:
    """What is a turning sensor's own of its plan."""
    mode = ReturnMode.named(setting.setup.return_mode)
    elevation_deg = np.array([channel.elevation_deg for channel in spec.channels])
    return {
        "family": int(Family.VELODYNE),
        "head": build_head(spec, setting.setup, seed=seed, stream=setting.stream),
        "mirror": no_mirror(),
        "thinning": thinning(setting.setup.thinning, spec),
        "is_thinned": setting.setup.thinning != ThinningSpec(),
        "position": position_stream(spec.position, seed=seed, stream=setting.stream),
        "info": np.zeros(0, np.uint8),
        "data_size": DATA_PACKET_SIZE,
        "info_size": POSITION_PACKET_SIZE,
        "elevation_deg": elevation_deg,
        "sine_elevation": np.sin(np.radians(elevation_deg)),
        "cosine_elevation": np.cos(np.radians(elevation_deg)),
        "azimuth_offset_rad": np.radians([channel.azimuth_offset_deg for channel in spec.channels]),
        "channel_origin_m": np.array([mount.transform((0.0, 0.0, channel.vertical_offset_mm / 1000.0)) for channel in spec.channels]),
        "reports_last": mode.order[0] is Return.LAST,
        "return_mode": int(mode),
        "product": spec.product,
    }


def _sweeping(setting: LidarSetting, spec: CeptonSpec, mount: Pose, seed: int, utc_epoch_ns: int) -> dict[str, Any]:
    """What is a mirror sensor's own of its plan."""
    cepton = setting.setup.cepton or CeptonSetting()
    nothing = np.zeros(spec.laser_count)
    info = _info(setting, spec, cepton, utc_epoch_ns) if cepton.info_packets else np.zeros(0, np.uint8)
    return {
        "family": int(Family.CEPTON),
        "head": no_head(),
        "mirror": mirror(spec, phase_deg=setting.setup.phase_deg),
        "thinning": no_thinning(spec.laser_count),
        "is_thinned": False,
        "position": periodic_stream(INFO_PERIOD_NS if cepton.info_packets else None, seed=seed, stream=setting.stream),
        "info": info,
        "data_size": packet_size(cepton.header_version, setting.sequences_per_packet * spec.laser_count * setting.returns),
        "info_size": info.size,
        "elevation_deg": nothing,
        "sine_elevation": nothing,
        "cosine_elevation": nothing,
        "azimuth_offset_rad": nothing,
        "channel_origin_m": np.repeat([mount.position_m], spec.laser_count, axis=0),
        "reports_last": ReturnMode.named(setting.setup.return_mode) is ReturnMode.LAST,  # of a pair the strongest comes first
        "return_mode": 0,
        "product": 0,
    }


def _info(setting: LidarSetting, spec: CeptonSpec, cepton: CeptonSetting, utc_epoch_ns: int) -> npt.NDArray[np.uint8]:
    """The sensor information packet: its counter began ``offset_s`` before the sensor's first firing. How far UTC is ahead of the counter is written when it is sent."""
    power_up_us = (utc_epoch_ns + round(setting.setup.start_delay_us * 1000) - round(setting.setup.clock.offset_s * 1e9)) // 1000
    return encode_info_packet(
        model=spec.model_code,
        serial=cepton.serial,
        firmware=cepton.firmware,
        model_name=spec.model,
        part_number=cepton.part_number,
        power_up_us=max(power_up_us, 0),
        sync_offset_us=0,
        returns=setting.returns,
    )
