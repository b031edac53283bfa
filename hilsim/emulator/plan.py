"""Everything one emulated lidar is, in the shape kernels take it; built once from specs, never changed while it streams."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.emulator.overlay import Overlay, no_overlay
from hilsim.errors import require
from hilsim.geometry.frames import Vector
from hilsim.geometry.poses import Pose, extrinsics
from hilsim.protocols.cepton.info import encode_info_packet
from hilsim.protocols.cepton.stdv import packet_size, points_max
from hilsim.protocols.velodyne.data import BLOCKS, DATA_PACKET_SIZE, RECORDS_PER_BLOCK, Return, ReturnMode
from hilsim.protocols.velodyne.position import POSITION_PACKET_SIZE
from hilsim.render.cells import NO_CELLS, Cells
from hilsim.sensor.beam import SUB_RAY_COUNTS, Beam, beam
from hilsim.sensor.cepton_specs import CeptonSetting, CeptonSpec
from hilsim.sensor.clock import DeviceClock, device_clock
from hilsim.sensor.decimation import Thinning, ThinningSpec, no_thinning, thinning
from hilsim.sensor.false_alarms import FalseAlarms, FalseAlarmSpec, false_alarms
from hilsim.sensor.head import Head, head, no_head
from hilsim.sensor.mirror import Mirror, mirror, no_mirror
from hilsim.sensor.position_stream import PositionStream, periodic_stream, position_stream
from hilsim.sensor.response import Response, response
from hilsim.sensor.specs import ClockSetting, ReturnModeName
from hilsim.sensor.velodyne_specs import GpsSetting, VelodyneSpec
from hilsim.sensor.weather import Weather, WeatherSpec, weather
from hilsim.sensor.window import Window, WindowSpec, window

_NOISE_MARGIN_SIGMAS = 8.0
INFO_PERIOD_NS = 500_000_000
"""Sensor information is sent twice a second (Cepton Sensor Communication Specifications)."""


@dataclass(frozen=True, kw_only=True)
class LidarSetting:
    """How one lidar of a rig is set up: its model, mounting, rotation, clock and receiver.

    Attributes:
        name: Unique within a rig.
        stream: The sensor's number within the rig, 0..65535: the stream of its random draws.
        spec: The model.
        mount_position_m: Sensor's origin in the carrier's body frame (x forward, y left, z up).
        mount_rotation_deg: Roll, pitch and yaw in the body frame.
        rotation_rate_rpm: Mean rotation rate; only of a head that turns.
        phase_deg: True azimuth of the head (or phase of the mirror's sweep across) at the sensor's first firing.
        start_delay_us: Rig time of the sensor's first firing (sensors of a fleet are not in step unless this is equal).
        return_mode: Which returns are reported.
        sub_rays: Rays by which a beam's footprint is sampled: 1 (a pencil beam), 7 or 19.
        weather: What the light passes through.
        window: Dirt on the sensor's window.
        false_alarms: How often the receiver takes noise for an echo.
        thinning: Which firings are reported.
        clock: The sensor's own clock.
        gps: The receiver on its GPS input, or None.
        cepton: What a Cepton-style sensor says of itself; only of one.
    """

    name: str
    stream: int
    spec: VelodyneSpec | CeptonSpec
    mount_position_m: Vector = (0.0, 0.0, 0.0)
    mount_rotation_deg: Vector = (0.0, 0.0, 0.0)
    rotation_rate_rpm: int = 600
    phase_deg: float = 0.0
    start_delay_us: float = 0.0
    return_mode: ReturnModeName = "strongest"
    sub_rays: int = 1
    weather: WeatherSpec = field(default_factory=WeatherSpec)
    window: WindowSpec = field(default_factory=WindowSpec)
    false_alarms: FalseAlarmSpec = field(default_factory=FalseAlarmSpec)
    thinning: ThinningSpec = field(default_factory=ThinningSpec)
    clock: ClockSetting = field(default_factory=ClockSetting)
    gps: GpsSetting | None = None
    cepton: CeptonSetting | None = None

    def __post_init__(self) -> None:
        require(
            *self._family_rules(),
            (0 <= self.stream <= 65_535, f"stream must be 0 to 65535, got {self.stream}"),
            (all(map(math.isfinite, self.mount_position_m)), f"mount_position_m must be finite, got {self.mount_position_m}"),
            (all(map(math.isfinite, self.mount_rotation_deg)), f"mount_rotation_deg must be finite, got {self.mount_rotation_deg}"),
            (0.0 <= self.phase_deg < 360.0, f"phase_deg must be 0 to less than 360, got {self.phase_deg}"),
            (0.0 <= self.start_delay_us <= 1e9, f"start_delay_us must be 0 to 1000000000, got {self.start_delay_us}"),
            (self.sub_rays in SUB_RAY_COUNTS, f"sub_rays must be one of {', '.join(map(str, SUB_RAY_COUNTS))}, got {self.sub_rays}"),
        )

    def _family_rules(self) -> Iterator[tuple[bool, str]]:
        """What depends on whose sensor it is."""
        if isinstance(self.spec, VelodyneSpec):
            yield self.cepton is None, f"cepton must not be given for a {self.spec.model}"
            yield (
                self.clock.stamps == "power_up",
                f'clock.stamps must be "power_up" for a {self.spec.model}: its stamps count from the hour, and follow UTC with clock.sync = "pps"',
            )
            yield self.spec.rate_rule(self.rotation_rate_rpm)
            return
        yield self.gps is None, f"gps must not be given for a {self.spec.model}: it has no input for a receiver"
        yield self.thinning == ThinningSpec(), f"thinning must not be given for a {self.spec.model}: its firings have no channels and columns"
        most, points = points_max(self.header_version), self.spec.laser_count * self.returns
        yield (
            points <= most,
            f"segments must be at most {most // self.returns} in return_mode {self.return_mode} (a packet holds {most} points), got {self.spec.laser_count}",
        )

    @property
    def returns(self) -> int:
        """Returns reported for each firing."""
        return ReturnMode.named(self.return_mode).returns

    @property
    def sequences_per_packet(self) -> int:
        """Firing sequences of a data packet."""
        if isinstance(self.spec, VelodyneSpec):
            return BLOCKS // self.returns * (RECORDS_PER_BLOCK // self.spec.laser_count)
        return points_max(self.header_version) // (self.spec.laser_count * self.returns)

    @property
    def follows_pulse(self) -> bool:
        """The sensor's clock is synchronised to UTC."""
        is_fed = self.gps is not None or isinstance(self.spec, CeptonSpec)
        return self.clock.sync == "pps" or (self.clock.sync == "auto" and is_fed)

    @property
    def header_version(self) -> int:
        """Of a Cepton-style sensor's point packets."""
        return (self.cepton or CeptonSetting()).header_version

    @property
    def packet_rate_hz(self) -> float:
        """Data packets a second."""
        return 1e9 / (self.sequences_per_packet * self.spec.sequence_ns)


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
    mount = extrinsics(setting.mount_position_m, setting.mount_rotation_deg)
    common: dict[str, Any] = {
        "clock": device_clock(
            setting.clock, follows_pulse=setting.follows_pulse, start_ns=round(setting.start_delay_us * 1000), utc_epoch_ns=utc_epoch_ns
        ),
        "beam": beam(spec.beam, setting.sub_rays),
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
        "window": window(setting.window),
        "false_alarms": false_alarms(setting.false_alarms),
        "overlay": overlay or no_overlay(),
        "beam_cells": cells or NO_BEAM_CELLS,
        "gps": _gps(setting.gps),
        "firing_offset_ns": np.arange(spec.laser_count, dtype=np.int64) // spec.lasers_per_firing * spec.firing_ns,
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
    mode = ReturnMode.named(setting.return_mode)
    encoder = spec.encoder_at(setting.rotation_rate_rpm)
    elevation_deg = np.array([channel.elevation_deg for channel in spec.channels])
    return {
        "family": int(Family.VELODYNE),
        "head": head(
            rate_rpm=setting.rotation_rate_rpm + encoder.rate_offset_rpm,
            phase_deg=setting.phase_deg,
            encoder=encoder,
            ripple=spec.ripple,
            seed=seed,
            stream=setting.stream,
        ),
        "mirror": no_mirror(),
        "thinning": thinning(setting.thinning, spec),
        "is_thinned": setting.thinning != ThinningSpec(),
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
    cepton = setting.cepton or CeptonSetting()
    nothing = np.zeros(spec.laser_count)
    info = _info(setting, spec, cepton, utc_epoch_ns) if cepton.info_packets else np.zeros(0, np.uint8)
    return {
        "family": int(Family.CEPTON),
        "head": no_head(),
        "mirror": mirror(spec, phase_deg=setting.phase_deg),
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
        "reports_last": ReturnMode.named(setting.return_mode) is ReturnMode.LAST,  # of a pair the strongest comes first
        "return_mode": 0,
        "product": 0,
    }


def _info(setting: LidarSetting, spec: CeptonSpec, cepton: CeptonSetting, utc_epoch_ns: int) -> npt.NDArray[np.uint8]:
    """The sensor information packet: its counter began ``offset_s`` before the sensor's first firing. How far UTC is ahead of the counter is written when it is sent."""
    power_up_us = (utc_epoch_ns + round(setting.start_delay_us * 1000) - round(setting.clock.offset_s * 1e9)) // 1000
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
