"""Build the plan of a lidar for kernels from its setting."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import numpy.typing as npt

from hilsim.compilation.lanes import WIDTH
from hilsim.emulator.identity.unit import Unit, unit_of
from hilsim.emulator.overlay import Overlay, no_overlay
from hilsim.emulator.plan import BeamRow, Gps, HeardSentences, LidarPlan, Rare, no_sentences
from hilsim.emulator.reception.interference import build_interference
from hilsim.emulator.setting import LidarSetting
from hilsim.errors import ConfigError
from hilsim.faults.table import build_fault_table
from hilsim.sensor.clock import build_device_clock
from hilsim.sensor.decimation import no_decimation
from hilsim.sensor.field_of_view import whole_turn
from hilsim.sensor.head import no_head
from hilsim.sensor.interference.pulses import no_interference
from hilsim.sensor.optics.beam import build_beam
from hilsim.sensor.optics.false_alarms import build_false_alarms
from hilsim.sensor.optics.weather import Weather, WeatherSpec, build_weather
from hilsim.sensor.optics.window import WindowSpec, build_window
from hilsim.sensor.position_stream import build_periodic_stream
from hilsim.sensor.response import build_response
from hilsim.sensor.setup import IDEAL, SensorSetup
from hilsim.sensor.signal.empty import with_own_empty_bytes
from hilsim.sensor.signal.own_bytes import with_own_bytes
from hilsim.sensor.signal.signal import LaserSignals, Signal, build_signal, drawn_lasers, drop_out_ratios, ideal_lasers, noise_by_byte
from hilsim.sensor.specs import DecimationSpec, PpsState, PulseWord
from hilsim.sensor.time_input import GpsSetting
from hilsim.sensor.unit.encoder import no_encoder

_NOISE_MARGIN_SIGMAS = 8.0
_ROUNDING = 1e-6
"""Margin above the rounding error of a range in counts."""


def build_lidar_plan(
    setting: LidarSetting,
    *,
    seed: int,
    utc_epoch_ns: int,
    overlay: Overlay | None = None,
    heard: HeardSentences | None = None,
    others: Sequence[LidarSetting] = (),
    may_change: bool = True,
) -> LidarPlan:
    """Build the plan of a lidar.

    Args:
        setting: Setting of the lidar.
        seed: Random seed of the rig, 64 bits.
        utc_epoch_ns: UTC of rig time 0 in ns since 1970.
        overlay: Captured background that the lidar sees.
        heard: Sentences that its GPS input receives.
        others: The other lidars on its platform, whose pulses reach it where its setup has ``interference``.
        may_change: Whether the lidar's plan may be followed by one with weather, a dirty window or false alarms.

    Raises:
        ConfigError: its family says of itself that it sends smaller packets.
    """
    unit = unit_of(setting, seed=seed)
    setting = replace(setting, spec=unit.spec, setup=unit.setup)
    plan = _without_family(setting, unit, seed=seed, utc_epoch_ns=utc_epoch_ns)
    plan = plan._replace(gps=build_gps(setting.setup.gps, heard, _pulse(setting)))
    plan = setting.family.complete(plan, seed=seed, stream=setting.stream, utc_epoch_ns=utc_epoch_ns)
    most = setting.family.largest_data_size
    if plan.data_size > most:
        raise ConfigError(
            f"data packets of a {setting.spec.model} must be at most {most} bytes (largest_data_size of its family), got {plan.data_size}"
        )
    plan = plan._replace(
        elevation_deg=plan.elevation_deg + unit.elevation_error_deg, azimuth_offset_rad=plan.azimuth_offset_rad + np.radians(unit.azimuth_error_deg)
    )
    if may_change or overlay is not None or has_rare(setting, others):
        plan = plan._replace(rare=_rare(plan, setting, overlay, others, seed=seed, utc_epoch_ns=utc_epoch_ns))
    else:
        plan = plan._replace(field_of_view=None)
    return plan._replace(beam_lanes=_beam_lanes(plan), ripple_lanes=_side_by_side(plan.lasers.ripple_m).reshape(-1, WIDTH))


def with_optics(plan: LidarPlan, setting: LidarSetting) -> LidarPlan:
    """The plan of a setting that differs from the one it was built of in its weather, its window and its faults alone, and may change."""
    rare = cast("Rare", plan.rare)
    faults = build_fault_table(setting.faults, setting.spec.laser_count, int(plan.response.seed))
    return plan._replace(rare=rare._replace(weather=_weather(setting), window=build_window(setting.setup.window), faults=faults))


def has_rare(setting: LidarSetting, others: Sequence[LidarSetting] = ()) -> bool:
    """Whether a setting has physics that most have none of."""
    setup = setting.setup
    alarm_rates = (setup.false_alarms.rate_per_firing, setup.false_alarms.sun.rate_per_firing, setup.spurious.rate)
    is_clear = (setting.weather, setup.window, setup.decimation) == (WeatherSpec(), WindowSpec(), DecimationSpec())
    is_clear = is_clear and setup.field_of_view_deg == SensorSetup().field_of_view_deg
    return not is_clear or bool(setting.faults) or max(alarm_rates) > 0.0 or (setup.interference and bool(others))


def _rare(plan: LidarPlan, setting: LidarSetting, overlay: Overlay | None, others: Sequence[LidarSetting], *, seed: int, utc_epoch_ns: int) -> Rare:
    spec, setup = setting.spec, setting.setup
    interference = no_interference()
    if setup.interference and others:
        pulses = [(build_lidar_plan(other, seed=seed, utc_epoch_ns=utc_epoch_ns), other.spec.beam) for other in others]
        interference = build_interference(plan, spec.beam, pulses)
    is_decimated = setup.decimation != DecimationSpec()
    return Rare(
        weather=_weather(setting),
        window=build_window(setup.window),
        interference=interference,
        overlay=overlay or no_overlay(),
        decimation=setting.family.decimation if is_decimated else no_decimation(spec.laser_count),
        is_decimated=is_decimated,
        faults=build_fault_table(setting.faults, spec.laser_count, seed),
    )


def _without_family(setting: LidarSetting, unit: Unit, *, seed: int, utc_epoch_ns: int) -> LidarPlan:
    """Build the part of a plan that all families share: no head or mirror, all beams along one axis from one origin, no packets. The family adds the rest."""
    spec, setup = setting.spec, setting.setup
    mount = setup.body_from_sensor
    pulse_epoch_ns = setting.pulse.utc_epoch_ns if setting.pulse is not None else None
    nothing = np.zeros(spec.laser_count)
    return LidarPlan(
        own=None,
        clock=build_device_clock(
            setup.clock,
            follows_pulse=setting.follows_pulse,
            start_ns=round(setup.start_delay_us * 1000),
            utc_epoch_ns=utc_epoch_ns if pulse_epoch_ns is None else pulse_epoch_ns,
            wander=unit.stamp_wander,
        ),
        head=no_head(),
        encoder=no_encoder(),
        mirror=None,
        beam=build_beam(spec.beam, setting.sub_rays),
        response=build_response(spec, seed=seed, stream=setting.stream),
        signal=_signal(setting, unit),
        lasers=_lasers(setting, unit, seed=seed),
        drop_out_ratio=drop_out_ratios(spec.signal),
        baseline=unit.baseline,
        bias_m=unit.bias_m,
        warm_up=unit.warm_up,
        false_alarms=build_false_alarms(setup.false_alarms, setup.spurious),
        rare=None,
        position=build_periodic_stream(None, seed=seed, stream=setting.stream),
        gps=build_gps(None),
        data_size=0,
        info_size=0,
        elevation_deg=nothing,
        azimuth_offset_rad=nothing,
        channel_origin_m=np.repeat([mount.position_m], spec.laser_count, axis=0),
        firing_offset_ns=np.array(spec.firing_delays_ns, dtype=np.int64),
        beam_lanes=np.zeros((0, WIDTH)),
        ripple_lanes=np.zeros((0, WIDTH)),
        sequence_ns=setting.family.sequence_ns,
        sequences_per_packet=setting.sequences_per_packet,
        origin_packet=0,
        origin_sequence=0,
        field_of_view=whole_turn(),
        choice=np.array(setting.family.choices, np.int64),
        mount_orientation=np.array(mount.orientation),
        data_latency_ns=round(spec.data_latency_us * 1000),
        cast_range_m=spec.range_max_m + _NOISE_MARGIN_SIGMAS * spec.range_noise_m,
    )


def _beam_lanes(plan: LidarPlan) -> npt.NDArray[np.float64]:
    """``LidarPlan.beam_lanes`` of the plan's channels."""
    elevation_rad, origin_m = np.radians(plan.elevation_deg), plan.channel_origin_m
    rows = {
        BeamRow.TURNS: plan.azimuth_offset_rad / (2.0 * np.pi),
        BeamRow.PHASE: plan.firing_offset_ns / plan.sequence_ns,
        BeamRow.SINE_ELEVATION: np.sin(elevation_rad),
        BeamRow.COSINE_ELEVATION: np.cos(elevation_rad),
        BeamRow.ORIGIN_X: origin_m[:, 0],
        BeamRow.ORIGIN_Y: origin_m[:, 1],
        BeamRow.ORIGIN_Z: origin_m[:, 2],
        BeamRow.BIAS: plan.bias_m,
        BeamRow.GAIN: plan.lasers.gain,
    }
    table = np.stack([rows[row] for row in BeamRow])
    return np.ascontiguousarray(_side_by_side(table).transpose(1, 0, 2).reshape(-1, WIDTH))


def _side_by_side(table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """A table ``[n, c]`` as ``[n, ceil(c / 16), 16]``, padded with the last channel."""
    padded = np.pad(table, ((0, 0), (0, -table.shape[1] % WIDTH)), mode="edge")
    return np.ascontiguousarray(padded.reshape(table.shape[0], -1, WIDTH))


def _signal(setting: LidarSetting, unit: Unit) -> Signal:
    spec = setting.spec
    unit_m = spec.range_unit_mm / 1000.0
    code_max = min(math.floor(spec.range_max_m / unit_m + _ROUNDING), spec.range_code_max)
    signal = spec.signal if setting.family.is_dual else replace(spec.signal, split_light_ratio=1.0)
    return build_signal(
        signal,
        code_min=math.ceil(spec.range_min_m / unit_m - _ROUNDING),
        code_max=code_max,
        has_own_bytes=unit.has_own_bytes,
        has_range_gain=bool(unit.response),
    )


def _lasers(setting: LidarSetting, unit: Unit, *, seed: int) -> LaserSignals:
    signal = setting.spec.signal
    if setting.setup.unit == IDEAL:
        return ideal_lasers(signal, unit.baseline, unit.gain)
    drawn = drawn_lasers(signal, unit.baseline, unit.gain, unit.range_codes, seed=seed, stream=setting.stream)
    known = with_own_empty_bytes(drawn, unit.baseline, unit.baseline_ratio, unit.empty_ratio)
    return with_own_bytes(known, noise_by_byte(signal), unit.byte_edges, [own or unit.byte_noise for own in unit.laser_byte_noise], unit.response)


def _weather(setting: LidarSetting) -> Weather:
    spec = setting.spec
    return build_weather(
        setting.weather,
        threshold_energy=spec.detector.threshold_energy,
        pulse_ns=spec.detector.pulse_ns,
        divergence_h_mrad=spec.beam.divergence_h_mrad,
        divergence_v_mrad=spec.beam.divergence_v_mrad,
        window_h_mm=spec.beam.window_h_mm,
        window_v_mm=spec.beam.window_v_mm,
    )


def build_gps(receiver: GpsSetting | None, heard: HeardSentences | None = None, pulse: PulseWord = "absent") -> Gps:
    """Build a kernel-side GPS input.

    Args:
        receiver: The receiver whose sentences are made here; None: none.
        heard: Sentences of a receiver outside.
        pulse: State of the pulse.
    """
    return Gps(
        pps_state=int(PpsState[pulse.upper()]),  # an enumeration's member would slow each call of a kernel forty times
        heard=heard or no_sentences(),
        present=receiver is not None,
        valid=receiver is not None and receiver.valid,
        latitude_deg=receiver.latitude_deg if receiver is not None else 0.0,
        longitude_deg=receiver.longitude_deg if receiver is not None else 0.0,
        origin_east_m=receiver.origin_m[0] if receiver is not None else 0.0,
        origin_north_m=receiver.origin_m[1] if receiver is not None else 0.0,
        sentence_delay_ns=round(receiver.sentence_delay_ms * 1e6) if receiver is not None else 0,
    )


def _pulse(setting: LidarSetting) -> PulseWord:
    if setting.pulse is not None:
        return setting.pulse.pps
    return "locked" if setting.follows_pulse else "absent"
