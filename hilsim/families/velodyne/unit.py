"""What one unit of a Velodyne has of its own: its encoder, the oscillations of its head, its position packets."""

from dataclasses import replace

from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.rng import Purpose
from hilsim.sensor.head import mean_rate_rpm
from hilsim.sensor.setup import SensorSetup
from hilsim.sensor.unit.draws import UnitDraws
from hilsim.sensor.unit.encoder import CLASSES, EncoderSpec, RateJitterSpec
from hilsim.sensor.unit.spec import UnitSpec
from hilsim.sensor.unit.spread import UnitSpread

_MAX_OFFSET_RPM = 3.0
"""Tolerance of the rotation rate by the VLP-16's manual, which ``EncoderSpec`` permits."""


def of_unit(spec: VelodyneSpec, setup: SensorSetup, learned: UnitSpec, spread: UnitSpread, draws: UnitDraws) -> tuple[VelodyneSpec, SensorSetup]:
    """Model and setup with the unit's head and position packets."""
    encoder = learned.encoder or tuple(drawn_encoder(entry, spread, draws) for entry in spread.encoder or spec.encoder)
    jitter = learned.rate_jitter or _rate_jitter(spec, setup, spread, draws)
    phase_deg = next(phase for phase in (setup.phase_deg, learned.phase_deg, draws.phase_deg(spread)) if phase is not None)
    drawn_noise = draws.logarithmic(spread.range_noise_ratio, 5, Purpose.UNIT_SIGNAL) or 1.0
    noise = drawn_noise if learned.range_noise_ratio is None else learned.range_noise_ratio
    detector = replace(spec.detector, range_noise_weak_m=noise * spec.detector.range_noise_weak_m)
    unit = replace(
        spec,
        encoder=encoder,
        rate_jitter=jitter,
        position=learned.position or spec.position,
        detector=detector,
        range_noise_m=noise * spec.range_noise_m,
    )
    return unit, replace(setup, phase_deg=phase_deg)


def drawn_encoder(entry: EncoderSpec, spread: UnitSpread, draws: UnitDraws) -> EncoderSpec:
    """Encoder of a drawn unit: its classes begin anywhere, its curve has its own phases, noise and mean rate are its own."""
    if spread == UnitSpread():
        return entry
    begin = int(CLASSES * draws.uniform(0, Purpose.UNIT_ENCODER))
    shares = entry.class_shares[begin:] + entry.class_shares[:begin]
    curve = tuple(draws.wave(number, amplitude, spread.curve_ratio) for number, (amplitude, _) in enumerate(entry.curve))
    offset_rpm = entry.rate_offset_rpm + spread.rate_offset_ratio * entry.rate_rpm * draws.normal(0, Purpose.UNIT_HEAD)
    noise_cdeg = entry.noise_cdeg * (draws.logarithmic(spread.encoder_noise_ratio, 1, Purpose.UNIT_ENCODER) or 1.0)
    offset_rpm = min(max(offset_rpm, -_MAX_OFFSET_RPM), _MAX_OFFSET_RPM)
    counts = tuple(
        width + spread.counts_scatter_cdeg * draws.normal(200 + number, Purpose.UNIT_ENCODER) for number, width in enumerate(entry.counts_cdeg)
    )
    own = replace(entry, class_shares=shares, curve=curve, counts_cdeg=counts)
    return replace(own, count_zero_cdeg=begin, noise_cdeg=noise_cdeg, rate_offset_rpm=offset_rpm)


def _rate_jitter(spec: VelodyneSpec, setup: SensorSetup, spread: UnitSpread, draws: UnitDraws) -> RateJitterSpec:
    """Oscillations of a drawn unit's rotation."""
    jitter = spec.rate_jitter
    if spread.rate_jitter is not None:
        jitter = RateJitterSpec(
            per_turn_ratio=spread.rate_jitter.per_turn_ratio * (0.5 + 0.5 * draws.uniform(1, Purpose.UNIT_HEAD)),
            drift_ratio=spread.rate_jitter.drift_ratio * (0.5 + 0.5 * draws.uniform(2, Purpose.UNIT_HEAD)),
            drift_period_s=spread.rate_jitter.drift_period_s * (0.5 + draws.uniform(3, Purpose.UNIT_HEAD)),
        )
    if mean_rate_rpm(setup) <= spread.slow_rpm:
        swing = draws.logarithmic(spread.slow_per_turn_ratio, 4, Purpose.UNIT_HEAD)
        jitter = replace(jitter, per_turn_ratio=min(jitter.per_turn_ratio + swing, 0.2))
    return jitter
