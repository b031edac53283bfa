"""Differences between units of a model: distributions over the known units, from which a unit is drawn."""

from collections.abc import Iterator
from dataclasses import dataclass

from hilsim.errors import require, within
from hilsim.sensor.unit.encoder import EncoderSpec, RateJitterSpec


@dataclass(frozen=True, kw_only=True)
class UnitSpread:
    """Distributions over the units of a model; by default all units are alike.

    Attributes:
        laser_bias_m: Least and largest standard deviation, over a unit's lasers, of their constant range errors. A unit's is between, evenly on a logarithmic scale.
        elevation_error_deg: Standard deviation of a beam's elevation about the model's.
        azimuth_error_deg: Standard deviation of a beam's azimuth about the model's.
        gain_ratio: Standard deviation over the lasers of the logarithm of their reflectivity's gain.
        baselines: Reflectivity bytes of no return of known units, a list of each. A unit's level is between the lowest and the highest of their medians, and its
            lasers vary about it as those of the known units about theirs, on a logarithmic scale.
        oscillator_ppm: Standard deviation of the oscillator's error.
        stamp_ppm: Errors of the stamps of known units; a unit's is one of them.
        stamp_scatter_ppm: Standard deviation of a unit's stamp error about the known unit's.
        stamp_wander_us: Standard deviation of the slow wander of a unit's stamps about a regular clock.
        stamp_wander_s: Time after which that wander no longer depends on its former value.
        rate_offset_ratio: Standard deviation of the mean rotation rate about its setting, relative to it.
        encoder: Encoder of a unit, one entry for each measured rate, in place of the model's; empty: the model's. The classes of a unit's azimuths begin
            anywhere, and the phases of its curve are drawn.
        encoder_noise_ratio: Least and largest white noise of a unit's encoder, relative to that of ``encoder``, evenly on a logarithmic scale; 0: as there.
        counts_scatter_cdeg: Standard deviation of the counts of a unit's counting encoder about those of ``encoder``.
        curve_ratio: Standard deviation, on a logarithmic scale, of a unit's amplitudes of the curve about those of ``encoder``.
        rate_jitter: Largest oscillations of the rotation rate, half of which is the least; None: the model's.
        slow_rpm: Rates up to this one have further oscillations; 0: none.
        slow_per_turn_ratio: Least and largest amplitude of the oscillation once per turn at such rates, evenly on a logarithmic scale.
        straddle_ratio: Least and largest share of bytes within which a unit's range correction changes, evenly between; 0: the model's
            ``SignalSpec.correction_straddle_ratio``, and likewise for the four that follow.
        empty_byte_ratio: Least and largest ``SignalSpec.empty_byte_ratio`` of a unit, evenly on a logarithmic scale.
        lost_byte_ratio: Least and largest ``SignalSpec.lost_byte_ratio`` of a unit, evenly on a logarithmic scale.
        changes_per_byte: Least and largest ``SignalSpec.correction_changes_per_byte`` of a unit, evenly on a logarithmic scale.
        one_sided_ratio: Least and largest ``SignalSpec.one_sided_ratio`` of a unit, evenly on a logarithmic scale.
        range_noise_ratio: Least and largest white noise of a unit's ranges, relative to the model's, evenly on a logarithmic scale; 0: as there.
        has_any_phase: Whether a unit's head is at any angle when it starts.
    """

    laser_bias_m: tuple[float, float] = (0.0, 0.0)
    elevation_error_deg: float = 0.0
    azimuth_error_deg: float = 0.0
    gain_ratio: float = 0.0
    baselines: tuple[tuple[int, ...], ...] = ()
    oscillator_ppm: float = 0.0
    stamp_ppm: tuple[float, ...] = ()
    stamp_scatter_ppm: float = 0.0
    stamp_wander_us: float = 0.0
    stamp_wander_s: float = 0.04
    rate_offset_ratio: float = 0.0
    encoder: tuple[EncoderSpec, ...] = ()
    encoder_noise_ratio: tuple[float, float] = (0.0, 0.0)
    counts_scatter_cdeg: float = 0.0
    curve_ratio: float = 0.0
    rate_jitter: RateJitterSpec | None = None
    slow_rpm: int = 0
    slow_per_turn_ratio: tuple[float, float] = (0.0, 0.0)
    straddle_ratio: tuple[float, float] = (0.0, 0.0)
    empty_byte_ratio: tuple[float, float] = (0.0, 0.0)
    lost_byte_ratio: tuple[float, float] = (0.0, 0.0)
    changes_per_byte: tuple[float, float] = (0.0, 0.0)
    one_sided_ratio: tuple[float, float] = (0.0, 0.0)
    range_noise_ratio: tuple[float, float] = (0.0, 0.0)
    has_any_phase: bool = False

    def __post_init__(self) -> None:
        require(*self._rules())

    def _rules(self) -> Iterator[tuple[bool, str]]:
        yield from within(self, elevation_error_deg=(0, 5), azimuth_error_deg=(0, 5), gain_ratio=(0, 1), oscillator_ppm=(0, 200))
        yield from within(self, stamp_scatter_ppm=(0, 200), stamp_wander_us=(0, 100), rate_offset_ratio=(0, 0.01), curve_ratio=(0, 1))
        yield all(abs(ppm) <= 1000.0 for ppm in self.stamp_ppm), f"stamp_ppm must be -1000 to 1000, got {list(self.stamp_ppm)}"
        is_byte = all(len(unit) > 0 and all(1 <= byte <= 255 for byte in unit) for unit in self.baselines)
        yield is_byte, "baselines must be lists of 1 to 255"
        yield from within(self, stamp_wander_s=(0.001, 100), slow_rpm=(0, 10_000), counts_scatter_cdeg=(0, 1))
        up_to_10 = dict.fromkeys(("encoder_noise_ratio", "changes_per_byte", "range_noise_ratio"), 10.0)
        up_to_1 = dict.fromkeys(("laser_bias_m", "straddle_ratio", "empty_byte_ratio", "lost_byte_ratio", "one_sided_ratio"), 1.0)
        for name, most in (up_to_10 | up_to_1 | {"slow_per_turn_ratio": 0.2}).items():
            low, high = getattr(self, name)
            yield (
                0.0 <= low <= high <= most and (low > 0.0 or high == 0.0),
                f"{name} must be two rising numbers above 0 to {most:g}, got {[low, high]}",
            )
