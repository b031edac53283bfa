"""The encoder and the rotation of a unit."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.families.velodyne.calibration.cells import turns_of
from hilsim.families.velodyne.calibration.figures import Learned
from hilsim.families.velodyne.calibration.recording import Recording
from hilsim.families.velodyne.protocol.steps import wrapped_cdeg
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.sensor.unit.encoder import CLASSES, Encoder, EncoderSpec, build_encoder, encoder_code, encoder_error_cdeg
from hilsim.units import TURN_CDEG

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_HARMONICS = 8
_MIN_TURNS = 2.5
_MIN_AZIMUTHS = 1500
_MAX_AZIMUTHS = 400_000
_CLASS_CHI2 = 2.5
_RATE_STEP_RPM = 60
_TRIALS = 250
_SIMULATED = 24_000
_STEPS = 41
_BAD_FIT = 0.1
_LEAP_CDEG = 40


@dataclass(frozen=True, kw_only=True)
class Rotation:
    """Azimuths of a recording, and what they say."""

    azimuth_cdeg: Annotated[Ints, "``int64[k]``, consecutive azimuths."]
    step_cdeg: Annotated[float, "Mean step from azimuth to azimuth."]
    sequences: Annotated[int, "Firing sequences from azimuth to azimuth."]
    rpm: Annotated[float, "Mean rotation rate by the stamps."]
    per_turn: Annotated[float, "Amplitude (0.01 deg) of the oscillation once per turn."]
    curve: Annotated[tuple[tuple[float, float], ...], "Amplitude and phase in degrees of its harmonics from the second on."]
    doubt_cdeg: Annotated[float, "Standard deviation of an amplitude."]


def learn_encoder(recordings: Sequence[Recording], spec: VelodyneSpec, learned: Learned) -> None:
    """Learn encoder and rotation, one entry for each rotation rate."""
    entries: dict[int, dict[str, Any]] = {}
    per_turn: list[float] = []
    for recording in recordings:
        reason = _unusable(recording)
        if reason:
            learned.lack("encoder", f"{recording.name}: {reason}")
            continue
        rotation = rotation_of(recording)
        rate_rpm = max(_RATE_STEP_RPM * round(rotation.rpm / _RATE_STEP_RPM), _RATE_STEP_RPM)
        if rate_rpm in entries:
            continue
        entries[rate_rpm] = _entry(rotation, rate_rpm, spec, learned)
        per_turn.append(rotation.per_turn * 2.0 * np.pi / TURN_CDEG)
        learned.add(
            "rate_jitter.per_turn_ratio",
            f"{100 * per_turn[-1]:.3f} % at {rate_rpm} rpm",
            rotation.azimuth_cdeg.size,
            note="oscillation once per turn; the slow one is the model's",
        )
    if entries:
        learned.keys["encoder"] = [entries[rate] for rate in sorted(entries)]
        drift = spec.rate_jitter
        learned.keys["rate_jitter"] = {
            "per_turn_ratio": round(min(per_turn[0], 0.2), 6),
            "drift_ratio": drift.drift_ratio,
            "drift_period_s": drift.drift_period_s,
        }


def _unusable(recording: Recording) -> str:
    """Why a recording says nothing about the encoder; empty: it does."""
    turns, azimuths = turns_of(recording), recording.azimuth.size
    if turns < _MIN_TURNS:
        return f"at least {_MIN_TURNS:g} turns are needed, got {turns:.2f}"
    if azimuths < _MIN_AZIMUTHS:
        return f"at least {_MIN_AZIMUTHS} azimuths are needed, got {azimuths}"
    flat = recording.azimuth.ravel()
    step = wrapped_cdeg(np.diff(flat))
    if (np.abs(step - np.median(step)) > _LEAP_CDEG).any():
        return "packets are lost, or the field of view is limited"
    return ""


def rotation_of(recording: Recording) -> Rotation:
    """Mean rate, oscillation once per turn and curve of a recording."""
    flat = recording.azimuth.ravel()[:_MAX_AZIMUTHS]
    angle = flat[0] + np.concatenate(([0], np.cumsum(wrapped_cdeg(np.diff(flat))))).astype(np.float64)
    place = np.arange(angle.size, dtype=np.float64)
    step_cdeg = (angle[-1] - angle[0]) / (angle.size - 1)
    level = angle - step_cdeg * place
    window = round(TURN_CDEG / step_cdeg)
    total = np.concatenate(([0.0], np.cumsum(level)))
    smooth = (total[window:] - total[:-window]) / window
    first = window // 2
    rest = level[first : first + smooth.size] - smooth
    turn = 2.0 * np.pi * angle[first : first + smooth.size] / TURN_CDEG
    waves = np.stack([wave(number * turn) for number in range(1, _HARMONICS + 1) for wave in (np.sin, np.cos)], axis=1)
    found = np.linalg.lstsq(waves.T @ waves, waves.T @ rest, rcond=None)[0]
    amplitude, phase = np.hypot(found[::2], found[1::2]), np.degrees(np.arctan2(found[1::2], found[::2]))
    noise = float(np.std(rest - waves @ found))
    return Rotation(
        azimuth_cdeg=flat,
        step_cdeg=float(step_cdeg),
        sequences=round(recording.group_us * 1000.0 / recording.model.sequence_ns),
        rpm=float(step_cdeg / TURN_CDEG / recording.group_us * 60e6),
        per_turn=float(amplitude[0]),
        curve=tuple((round(float(size), 3), round(float(angle_deg), 1)) for size, angle_deg in zip(amplitude[1:], phase[1:], strict=True)),
        doubt_cdeg=noise * (2.0 / rest.size) ** 0.5,
    )


def _entry(rotation: Rotation, rate_rpm: int, spec: VelodyneSpec, learned: Learned) -> dict[str, Any]:
    """Entry of the encoder for one rate."""
    samples = rotation.azimuth_cdeg.size
    where = f"at {rate_rpm} rpm"
    known = (spec.units.encoder or spec.encoder)[0]
    for entry in spec.units.encoder or spec.encoder:
        if abs(np.log(entry.rate_rpm / rate_rpm)) < abs(np.log(known.rate_rpm / rate_rpm)):
            known = entry
    offset_rpm = float(np.clip(rotation.rpm - rate_rpm, -3.0, 3.0))
    learned.add(
        "encoder.rate_offset_rpm",
        f"{rotation.rpm - rate_rpm:+.2f} rpm {where}",
        samples,
        note="" if abs(rotation.rpm - rate_rpm) <= 3.0 else "limited to 3 rpm",
    )
    shares = np.bincount(rotation.azimuth_cdeg % CLASSES, minlength=CLASSES) / samples
    chi2 = float(((shares - 1.0 / CLASSES) ** 2).sum() * samples * CLASSES / (CLASSES - 1))
    entry = replace(known, rate_rpm=rate_rpm, rate_offset_rpm=round(offset_rpm, 3), class_shares=(), curve=rotation.curve)
    if chi2 < _CLASS_CHI2:
        learned.lack("encoder.class_shares", f"no class of azimuths {where} is rarer than chance allows", samples)
    else:
        of_five = shares.reshape(-1, 5).sum(axis=0)
        learned.add("encoder.class_shares", f"modulo 5: {' '.join(f'{100 * share:.0f}' for share in of_five)} % {where}", samples)
        if not known.counts_cdeg:
            entry = replace(entry, class_shares=tuple(np.round(shares, 5).tolist()))
    entry, fit = _fitted(rotation, entry)
    counts = f", counts {' '.join(f'{width:.2f}' for width in entry.counts_cdeg)} from {entry.count_zero_cdeg}" if entry.counts_cdeg else ""
    learned.add(
        "encoder.noise_cdeg",
        f"{entry.noise_cdeg:.3f}, slow {entry.slow_noise_cdeg:.2f}{counts} (0.01 deg) {where}",
        samples,
        note=f"tick {entry.tick_cdeg:g} is the model's; increments then differ by a total variation of {fit:.3f}"
        + (": a poor fit" if fit > _BAD_FIT else ""),
    )
    text = " ".join(f"{size:.2f}" for size, _ in rotation.curve)
    learned.add("encoder.curve", f"{text} (0.01 deg) {where}", samples, note=f"harmonics 2 to {_HARMONICS}, +-{rotation.doubt_cdeg:.2f}")
    return {key: value for key, value in asdict(entry).items() if value != ()}


def _fitted(rotation: Rotation, entry: EncoderSpec) -> tuple[EncoderSpec, float]:
    """Change an encoder step by step until its azimuths are most like a recording's; returns it, and the total variation of the increments that remains."""
    turned = [replace(entry, count_zero_cdeg=zero) for zero in (range(CLASSES) if entry.counts_cdeg else (0,))]
    variation, best = min((*_distances(rotation, each), place) for place, each in enumerate(turned))[1:]
    entry, least = turned[best], _distances(rotation, turned[best])[0]
    draw = np.random.default_rng(0)
    for _ in range(_TRIALS):
        changed = _changed(entry, draw)
        distance, remaining = _distances(rotation, changed)
        if distance < least:
            entry, least, variation = changed, distance, remaining
    return entry, variation


def _changed(entry: EncoderSpec, draw: np.random.Generator) -> EncoderSpec:
    """Change an encoder's noises, counts and gain a little; where a noise is 0, or becomes it, is left to chance."""
    size = draw.choice((0.3, 1.0, 3.0))
    noise, slow, gain = 0.03 * size * draw.standard_normal(3)
    counts = np.array(entry.counts_cdeg)
    if counts.size:
        counts = np.clip(counts + 0.05 * size * draw.standard_normal(counts.size), 1.0, 10.0)
    return replace(
        entry,
        noise_cdeg=round(max(entry.noise_cdeg + float(noise), 0.0), 4),
        slow_noise_cdeg=round(max(entry.slow_noise_cdeg + 2.0 * float(slow), 0.0), 3) if draw.random() < 0.3 else entry.slow_noise_cdeg,
        counts_cdeg=tuple(np.round(counts, 3).tolist()),
        count_gain=round(min(max(entry.count_gain + 0.5 * float(gain), 0.1), 10.0), 4) if counts.size else 1.0,
    )


def _distances(rotation: Rotation, entry: EncoderSpec) -> tuple[float, float]:
    """How far the azimuths of an encoder are from those of a recording, and the total variation of their increments alone."""
    made = _simulated(rotation, entry)
    real, of_made = _figures(rotation.azimuth_cdeg, rotation.step_cdeg), _figures(made, rotation.step_cdeg)
    off = real[0] - of_made[0]
    both, increments, of_five = (float(np.abs(shares).sum()) / 2.0 for shares in (off, off.sum(axis=0), off.sum(axis=1).reshape(-1, 5).sum(axis=0)))
    return 2.0 * both + of_five + float(np.abs(real[1] - of_made[1]).sum()), increments


def _figures(azimuth_cdeg: Ints, mean_cdeg: float) -> tuple[Doubles, Doubles]:
    """Joint shares of the azimuths' classes and the increments before them, and the increments' autocorrelations at lags 1 and 2 and scatter."""
    step = wrapped_cdeg(np.diff(azimuth_cdeg))
    place = np.clip(step - round(mean_cdeg) + _STEPS // 2, 0, _STEPS - 1)
    off = step - step.mean()
    lags = np.array([(off[lag:] * off[:-lag]).mean() for lag in (1, 2)]) / max(float((off * off).mean()), 1e-12)
    joint = np.bincount(azimuth_cdeg[1:] % CLASSES * _STEPS + place, minlength=CLASSES * _STEPS) / step.size
    return joint.reshape(CLASSES, _STEPS), np.append(lags, off.std())


def _simulated(rotation: Rotation, entry: EncoderSpec) -> Ints:
    """Azimuths of an encoder for a rotation like the recording's."""
    angle = float(rotation.azimuth_cdeg[0]) + rotation.step_cdeg * np.arange(_SIMULATED, dtype=np.float64)
    angle += rotation.per_turn * np.sin(2.0 * np.pi * angle / TURN_CDEG)
    code = np.zeros(_SIMULATED, np.int64)
    _read(build_encoder(entry, seed=0, stream=0), angle, rotation.sequences, code)
    return code


@kernel
def _read(encoder: Encoder, angle_cdeg: Doubles, sequences: int, code: Ints) -> None:
    for place in range(code.size):
        sequence = place * sequences
        code[place] = encoder_code(encoder, angle_cdeg[place] + encoder_error_cdeg(encoder, angle_cdeg[place], sequence), sequence)
