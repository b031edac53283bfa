"""The part of a plan that only the kernels of an Ouster need."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.emulator.families.own import family_kernels
from hilsim.families.ouster.packets import (
    beside_axis,
    copy_pixel,
    encode_columns,
    first_column_of,
    packet_before,
    sense_light,
    write_inertial,
)
from hilsim.families.ouster.protocol.headers import LIDAR_PACKET, ColumnField, HeaderField
from hilsim.families.ouster.protocol.lidar import LidarLayout
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET
from hilsim.families.ouster.setting import OusterSetting
from hilsim.families.ouster.specs import OusterSpec
from hilsim.rng import Purpose, uniform

_FASTEST_GRID_NS, _SLOW_GRID_NS = 8, 10
_REV_7 = 3
_NS_PER_US = 1000.0
_LOWEST_WAVE, _HIGHEST_WAVE = 461.0, 465.0
"""Oscillations of the columns' times per turn, of which a unit has one number: it is no whole one, so turns are alike or opposite (public captures)."""
_WAVE_SHARE = 0.9
"""Part of the standard deviation of the columns' times that oscillates; the rest is noise."""
ORDERS = ("STRONGEST_TO_WEAKEST", "NEAREST_TO_FARTHEST", "FARTHEST_TO_NEAREST")


class OusterReturns(NamedTuple):
    """Counts that an Ouster reports beside ranges and reflectivities, for ``s`` columns, and room for a packet's headers.

    Attributes:
        signal: ``uint16[r, s, c]``, photons.
        near_ir: ``uint16[1, s, c]``, photons of ambient light.
        flags: ``uint8[r, s, c]``, all 0.
        window: ``uint8[1, s, c]``, all 0.
        header: ``int64[10]`` by ``HeaderField``.
        columns: ``int64[16, 4]`` by ``ColumnField``.
    """

    signal: npt.NDArray[np.uint16]
    near_ir: npt.NDArray[np.uint16]
    flags: npt.NDArray[np.uint8]
    window: npt.NDArray[np.uint8]
    header: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]

    def of_columns(self, columns: slice) -> "OusterReturns":
        """The part of some columns, copied."""
        names = ("signal", "near_ir", "flags", "window")
        return self._replace(**{name: np.ascontiguousarray(getattr(self, name)[:, columns]) for name in names})


@family_kernels(
    encode=encode_columns,
    encode_info=write_inertial,
    sense=sense_light,
    reads_hits=False,
    copy_return=copy_pixel,
    first_sequence=first_column_of,
    packet_before=packet_before,
    move_origins=beside_axis,
)
class OusterPlan(NamedTuple):
    """Kernel-side part of an Ouster.

    Attributes:
        arm_m: Distance of the beams' origins from the axis.
        layout: Places of the fields of its packets.
        header: ``int64[10]`` by ``HeaderField``, of a packet of turn 0.
        columns_per_frame: Columns of a turn.
        first_frame: Number of the turn that begins with ``frame_sequence``.
        frame_sequence: Firing sequence (column) from which turns are counted.
        first_column: First column inside the window.
        last_column: Last one; before the first where the window wraps.
        slots: ``int64[w]``, packets of a turn that are sent, rising.
        valid_status: Status of a column inside the window.
        encoder_counts: Encoder counts from column to column.
        is_legacy: Whether packets have the older form.
        stamp_grid_ns: Step of stamps.
        counts_utc: Whether stamps are UTC; otherwise they count from ``stamp_base_ns``.
        stamp_base_ns: Stamp at device time 0 of the sensor's own clock; with ``follows_pulse`` UTC that is subtracted.
        wave_ns: Amplitude of the oscillation of the columns' times.
        wave_turns: Its periods per turn.
        wave_phase: Its phase, in periods.
        jitter_ns: Standard deviation of what does not oscillate.
        largest_range_mm: Largest range that packets can represent.
        order: Place in ``ORDERS``.
        signal: ``PhotonSpec.signal``, times the signal multiplier.
        signal_near_m2: Square of ``PhotonSpec.signal_near_m``.
        signal_floor: ``PhotonSpec.signal_floor``.
        near_ir_floor: ``PhotonSpec.near_ir_floor``.
        near_ir_sky: ``PhotonSpec.near_ir_sky``.
        near_ir_sun: ``PhotonSpec.near_ir_sun``; 0 with the sun below the horizon.
        near_ir_noise: ``PhotonSpec.near_ir_noise``.
    """

    arm_m: float
    layout: LidarLayout
    header: npt.NDArray[np.int64]
    columns_per_frame: int
    first_frame: int
    frame_sequence: int
    first_column: int
    last_column: int
    slots: npt.NDArray[np.int64]
    valid_status: int
    encoder_counts: int
    is_legacy: bool
    stamp_grid_ns: int
    counts_utc: bool
    stamp_base_ns: int
    wave_ns: float
    wave_turns: float
    wave_phase: float
    jitter_ns: float
    largest_range_mm: int
    order: int
    signal: float
    signal_near_m2: float
    signal_floor: float
    near_ir_floor: float
    near_ir_sky: float
    near_ir_sun: float
    near_ir_noise: float

    def allocate_returns(self, shape: tuple[int, int, int]) -> OusterReturns:
        """Arrays for returns ``[return, column, channel]``."""
        _, columns, channels = shape
        return OusterReturns(
            signal=np.zeros(shape, np.uint16),
            near_ir=np.zeros((1, columns, channels), np.uint16),
            flags=np.zeros(shape, np.uint8),
            window=np.zeros((1, columns, channels), np.uint8),
            header=np.zeros(len(HeaderField), np.int64),
            columns=np.zeros((COLUMNS_PER_PACKET, len(ColumnField)), np.int64),
        )


def build_ouster_plan(
    spec: OusterSpec, setting: OusterSetting, *, serial: int, initialization_id: int, stamp_base_ns: int, is_dark: bool, seed: int, stream: int
) -> OusterPlan:
    """Build the kernel-side part of an Ouster.

    Args:
        spec: Its model.
        setting: Its settings.
        serial: Serial number.
        initialization_id: Number of its initialisation.
        stamp_base_ns: As ``OusterPlan.stamp_base_ns``.
        is_dark: Whether the sun is below the horizon.
        seed: Random seed of the rig.
        stream: The sensor's number within the rig.
    """
    columns, photons = setting.columns_per_frame, spec.photons
    first, last = setting.column_window
    layout, header = setting.layout(spec.beams), np.zeros(len(HeaderField), np.int64)
    header[HeaderField.PACKET_TYPE], header[HeaderField.INIT_ID], header[HeaderField.SERIAL] = LIDAR_PACKET, initialization_id, serial
    is_legacy = layout.first_column == 0
    frequency, phase = (uniform(np.uint64(seed), stream, number, int(Purpose.COLUMN_TIME)) for number in (0, 1))
    return OusterPlan(
        arm_m=spec.array.origin_mm / 1000.0,
        layout=layout,
        header=header,
        columns_per_frame=columns,
        first_frame=setting.first_frame,
        frame_sequence=0,
        first_column=first,
        last_column=last,
        slots=np.array(setting.sent_packets, np.int64),
        valid_status=0xFFFF_FFFF if is_legacy else 1,
        encoder_counts=90_112 // columns,
        is_legacy=is_legacy,
        stamp_grid_ns=_FASTEST_GRID_NS if setting.version.major >= _REV_7 else _SLOW_GRID_NS,
        counts_utc=setting.timestamp_mode == "TIME_FROM_PTP_1588",
        stamp_base_ns=stamp_base_ns,
        wave_ns=math.sqrt(2.0) * _WAVE_SHARE * spec.stamp_jitter_us * _NS_PER_US,
        wave_turns=_LOWEST_WAVE + (_HIGHEST_WAVE - _LOWEST_WAVE) * float(frequency),
        wave_phase=float(phase),
        jitter_ns=math.sqrt(1.0 - _WAVE_SHARE**2) * spec.stamp_jitter_us * _NS_PER_US,
        largest_range_mm=setting.profile.largest_range_mm,
        order=ORDERS.index(setting.return_order),
        signal=photons.signal * setting.signal_multiplier,
        signal_near_m2=photons.signal_near_m**2,
        signal_floor=photons.signal_floor,
        near_ir_floor=photons.near_ir_floor,
        near_ir_sky=photons.near_ir_sky,
        near_ir_sun=0.0 if is_dark else photons.near_ir_sun,
        near_ir_noise=photons.near_ir_noise,
    )
