"""The encoder and the rotation of a unit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.families.velodyne.calibration.cells import turns_of
from hilsim.families.velodyne.calibration.figures import Learned
from hilsim.families.velodyne.calibration.recording import Recording
from hilsim.families.velodyne.protocol.steps import wrapped_cdeg
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.sensor.unit.encoder import CLASSES, Encoder, EncoderSpec, build_encoder, curve_cdeg, encoder_code
from hilsim.units import TURN_CDEG

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_HARMONICS = 8
_MIN_TURNS = 2.5
_MIN_AZIMUTHS = 1500
_MAX_AZIMUTHS = 400_000
_CLASS_CHI2 = 2.5
_RATE_STEP_RPM = 60
_NOISES_CDEG = np.arange(0.0, 0.651, 0.025)
_SLOW_NOISES_CDEG = (0.0, 0.2, 0.4, 0.6)
_SLOW_SEQUENCES = 8
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
    count = np.bincount(rotation.azimuth_cdeg % CLASSES, minlength=CLASSES)
    chi2 = float(((count - samples / CLASSES) ** 2 / (samples / CLASSES)).sum() / (CLASSES - 1))
    shares: tuple[float, ...] = ()
    if chi2 >= _CLASS_CHI2:
        shares = tuple(np.round(count / samples, 5).tolist())
        of_five = count.reshape(-1, 5).sum(axis=0) / samples
        learned.add("encoder.class_shares", f"modulo 5: {' '.join(f'{100 * share:.0f}' for share in of_five)} % {where}", samples)
    else:
        learned.lack("encoder.class_shares", f"no class of azimuths {where} is rarer than chance allows", samples)
    noise, slow, fit = _noises(rotation, known, shares)
    learned.add(
        "encoder.noise_cdeg",
        f"{noise:.3f}, slow {slow:.2f} (0.01 deg) {where}",
        samples,
        note=f"tick {known.tick_cdeg:g} and limit {known.limit_cdeg:g} are the model's; increments then differ by a total variation of {fit:.3f}"
        + (": a poor fit" if fit > _BAD_FIT else ""),
    )
    text = " ".join(f"{size:.2f}" for size, _ in rotation.curve)
    learned.add("encoder.curve", f"{text} (0.01 deg) {where}", samples, note=f"harmonics 2 to {_HARMONICS}, +-{rotation.doubt_cdeg:.2f}")
    return {
        "rate_rpm": rate_rpm,
        "tick_cdeg": known.tick_cdeg,
        "limit_cdeg": known.limit_cdeg,
        "noise_cdeg": round(float(noise), 4),
        "rate_offset_rpm": round(offset_rpm, 3),
        "class_shares": list(shares),
        "slow_noise_cdeg": round(float(slow), 3),
        "slow_noise_sequences": _SLOW_SEQUENCES,
        "curve": [list(wave) for wave in rotation.curve],
    }


def _noises(rotation: Rotation, known: EncoderSpec, shares: tuple[float, ...]) -> tuple[float, float, float]:
    """White and slow noise that give the increments of a recording, and the total variation that remains."""
    real, correlation = _increments(rotation.azimuth_cdeg, rotation.step_cdeg)
    best = (0.0, 0.0, 1.0)
    least = np.inf
    draw = np.random.default_rng(0)
    white, knots = draw.standard_normal(_SIMULATED), draw.standard_normal(_SIMULATED)
    for slow in _SLOW_NOISES_CDEG:
        for noise in _NOISES_CDEG:
            made, of_made = _increments(_simulated(rotation, known, shares, noise * white, slow * knots), rotation.step_cdeg)
            variation = float(np.abs(made - real).sum()) / 2.0
            distance = variation + 0.3 * abs(of_made - correlation)
            if distance < least:
                least, best = distance, (float(noise), float(slow), variation)
    return best


def _increments(azimuth_cdeg: Ints, mean_cdeg: float) -> tuple[Doubles, float]:
    """Shares of the increments about their mean, and their autocorrelation of lag 1."""
    step = wrapped_cdeg(np.diff(azimuth_cdeg))
    place = np.clip(step - round(mean_cdeg) + _STEPS // 2, 0, _STEPS - 1)
    off = step - step.mean()
    return np.bincount(place, minlength=_STEPS) / step.size, float((off[1:] * off[:-1]).mean() / max(float((off * off).mean()), 1e-12))


def _simulated(rotation: Rotation, known: EncoderSpec, shares: tuple[float, ...], white: Doubles, knots: Doubles) -> Ints:
    """Azimuths of an encoder, as ``hilsim.sensor.unit.encoder`` makes them, for a rotation like the recording's."""
    place = np.arange(white.size, dtype=np.float64)
    angle = float(rotation.azimuth_cdeg[0]) + rotation.step_cdeg * place
    angle = angle + rotation.per_turn * np.sin(2.0 * np.pi * angle / TURN_CDEG)
    if rotation.curve:
        grid = np.linspace(0.0, TURN_CDEG, curve_cdeg(rotation.curve).size)
        angle = angle + np.interp(angle % TURN_CDEG, grid, curve_cdeg(rotation.curve))
    angle = angle + np.interp(place * rotation.sequences / _SLOW_SEQUENCES, np.arange(knots.size), knots)
    encoder = build_encoder(replace(known, class_shares=shares), seed=0, stream=0)
    return _codes(encoder, angle, white)


@kernel
def _codes(encoder: Encoder, angle_cdeg: Doubles, noise_cdeg: Doubles) -> Ints:
    code = np.zeros(angle_cdeg.size, np.int64)
    for place in range(code.size):
        code[place] = encoder_code(encoder, angle_cdeg[place], noise_cdeg[place])
    return code
