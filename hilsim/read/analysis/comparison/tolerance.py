"""Distance up to which two streams count as alike by one statistic."""

from dataclasses import dataclass

from hilsim.errors import require

_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """Two streams count as alike if their distance is at most ``limit``, or if both values lie in the range of real units.

    Attributes:
        limit: Largest distance that counts as alike, whatever the values are, in the statistic's unit: with a range of real units the error of a
            short capture, without one the spread of real units.
        real: Smallest and largest value of real units, widened for units that were not measured; None if only distances are known.
        source: Measured values and units on which the figures are based.
        fewest: Number of samples that each stream must have for a verdict.
        is_of_one_mode: Whether the tolerance applies only to streams of one return mode.
        models: Names of the models for which the tolerance holds: those of which several units were measured, and others only where it follows from how every
            model makes its packets. One unit does not show how far two of them differ. Empty: that of the captures in ``source``.
        slowest_rpm: Smallest rotation rate for which the tolerance holds.
    """

    limit: float
    source: str
    real: tuple[float, float] | None = None
    fewest: int = 0
    is_of_one_mode: bool = False
    models: tuple[str, ...] = ()
    slowest_rpm: float = 0.0

    def __post_init__(self) -> None:
        require(
            (self.limit >= 0.0, f"limit must be 0 or more, got {self.limit}"),
            (self.real is None or self.real[0] <= self.real[1], f"real must be a smallest and a largest value, got {self.real}"),
            (self.fewest >= 0, f"fewest must be 0 or more, got {self.fewest}"),
            (bool(self.source), "source must name what was measured"),
        )

    def allows(self, a: float, b: float, distance: float) -> bool:
        """Whether two streams with these values and this distance could come from two real units."""
        return distance <= self.limit + _ROUNDING or (self.real is not None and all(self.real[0] <= value <= self.real[1] for value in (a, b)))

    @property
    def text(self) -> str:
        """Range of real units, or else the limit."""
        return f"{self.limit:g}" if self.real is None else f"{self.real[0]:g} to {self.real[1]:g}"
