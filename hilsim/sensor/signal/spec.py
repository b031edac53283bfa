"""Specification of a receiver's signal: the ``[signal]`` table of a profile."""

from dataclasses import dataclass
from itertools import pairwise

from hilsim.errors import require, within

_BYTE_MAX = 255.0


@dataclass(frozen=True, kw_only=True)
class SignalSpec:
    """Errors that the receiver adds to an exact range and an exact reflectivity byte; with the defaults none.

    Attributes:
        byte_noise: Standard deviation of the reflectivity byte of a black surface.
        byte_noise_ratio: Growth of that standard deviation with the byte: at byte b it is ``byte_noise + byte_noise_ratio * b``.
        byte_noise_spread: Standard deviation, on a logarithmic scale, of the noise about that line, whose mean square is the line's: a third of the variance
            is that of each laser's bands of bytes, the rest that of places.
        byte_step: Largest step between the bytes that a laser can report, a mean; each laser has its own, 0.5 to 1.5 of it; 0: every byte.
        byte_step_from: Reflectivity from which bytes come in steps; below it every byte is reported.
        byte_step_growth: Growth of the step from a byte to the next, above ``byte_step_from``, from 1 to ``byte_step``; 0: at once.
        grid_codes: Step of the grid on which ranges are rounded, in counts of ``range_unit_mm``.
        correction_codes: Largest range correction, in counts of ``range_unit_mm``, that depends on laser and reflectivity byte; 0: none.
        correction_changes_per_byte: Mean number of steps of that correction from a byte to the next.
        correction_straddle_ratio: Share of bytes within which that correction changes.
        ripple_m: Mean amplitude of a range error that repeats every five firing sequences; each unit has its own amplitude, 0.67 to 1.33 of it, and phase.
        relief_ratio: Share of the depth of materials' textures that ranges show; 0: surfaces are flat.
        split_distance_m: Least gap between the ranges of two surfaces in a beam at which the beam counts as split.
        split_loss_ratio: Share of firings with a split beam that return nothing.
        split_light_ratio: Least share of their light that the two echoes of a split beam keep in dual mode: those of each firing keep a share of this to 1, evenly;
            1: all.
        mixed_distance_m: Gap above which a split beam within ``merge_distance_m`` gives its stronger surface instead of a mean; 0: always the mean.
        drop_out_ratio: Share of other firings that return nothing although they hit a surface: a number, or pairs of a rising reflectivity byte and the share
            there, linear in between.
        one_sided_ratio: Share of firings in dual mode with one echo of which the block of the strongest return contains nothing; a tenth as many miss the
            other block.
        empty_byte_ratio: Share of firings without an echo whose byte is a multiple of the laser's baseline.
        lost_byte_ratio: The same for firings that hit a surface and return nothing.
        lost_byte_from: Least of their bytes, of which there are the fewer the higher they are, in place of multiples of the baseline; 0: multiples.
        lost_clip_ratio: Share of their bytes that are 100.
    """

    byte_noise: float = 0.0
    byte_noise_ratio: float = 0.0
    byte_noise_spread: float = 0.0
    byte_step: float = 0.0
    byte_step_from: float = 0.0
    byte_step_growth: float = 0.0
    grid_codes: int = 1
    correction_codes: int = 0
    correction_changes_per_byte: float = 0.0
    correction_straddle_ratio: float = 0.0
    ripple_m: float = 0.0
    relief_ratio: float = 0.0
    split_distance_m: float = 0.35
    split_loss_ratio: float = 0.0
    split_light_ratio: float = 1.0
    mixed_distance_m: float = 0.0
    drop_out_ratio: float | tuple[tuple[float, float], ...] = 0.0
    one_sided_ratio: float = 0.0
    empty_byte_ratio: float = 0.0
    lost_byte_ratio: float = 0.0
    lost_byte_from: float = 0.0
    lost_clip_ratio: float = 0.0

    def __post_init__(self) -> None:
        require(
            *within(self, byte_noise=(0, 50), byte_noise_ratio=(0, 1), byte_step=(0, 50), byte_step_from=(0, 255), byte_step_growth=(0, 1)),
            *within(self, byte_noise_spread=(0, 1), grid_codes=(1, 16), correction_codes=(0, 100), correction_changes_per_byte=(0, 10)),
            *within(self, ripple_m=(0, 0.1), relief_ratio=(0, 10), lost_byte_from=(0, 255), split_distance_m=(0.01, 10), mixed_distance_m=(0, 10)),
            *within(self, correction_straddle_ratio=(0, 1), split_loss_ratio=(0, 1), split_light_ratio=(0, 1), one_sided_ratio=(0, 1)),
            *within(self, empty_byte_ratio=(0, 1), lost_byte_ratio=(0, 1), lost_clip_ratio=(0, 1)),
            _drop_out_rule(self.drop_out_ratio),
        )


def _drop_out_rule(ratio: float | tuple[tuple[float, float], ...]) -> tuple[bool, str]:
    """Rule that ``SignalSpec.drop_out_ratio`` holds, and the message where it does not."""
    if isinstance(ratio, int | float):
        return 0.0 <= ratio <= 1.0, f"drop_out_ratio must be 0 to 1, got {ratio}"
    is_within = all(0.0 <= byte <= _BYTE_MAX and 0.0 <= share <= 1.0 for byte, share in ratio)
    is_rising = len(ratio) > 0 and all(former[0] < later[0] for former, later in pairwise(ratio))
    return is_within and is_rising, "drop_out_ratio must be 0 to 1, or one or more pairs of a rising byte of 0 to 255 and a share of 0 to 1"
