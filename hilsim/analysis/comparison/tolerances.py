"""Distances of two real units of one model, up to which streams count as alike."""

from dataclasses import dataclass

from hilsim.errors import require

_CAPTURES = "public captures of a VLP-16 in strongest (600 and 1200 rpm) and dual mode"


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """Largest distance that counts as alike.

    Attributes:
        limit: Largest distance in the statistic's unit.
        source: Measured values and units on which the limit is based.
        fewest: Number of samples that each stream must have for a verdict.
        is_of_one_mode: Whether the tolerance applies only to streams of one return mode.
    """

    limit: float
    source: str
    fewest: int = 0
    is_of_one_mode: bool = False

    def __post_init__(self) -> None:
        require(
            (self.limit >= 0.0, f"limit must be 0 or more, got {self.limit}"),
            (self.fewest >= 0, f"fewest must be 0 or more, got {self.fewest}"),
            (bool(self.source), "source must name what was measured"),
        )


_NOISE_SOURCE = f"spread of {_CAPTURES}, or one step of the estimator: "

TOLERANCES = {
    "stream.rotation": Tolerance(limit=0.25, source="four VLP-16 set to 600 rpm: 599.07 to 600.34; one set to 1200: 1198.77"),
    "azimuth.sd": Tolerance(limit=0.09, fewest=1000, source="VLP-16 at 600 rpm, four units: 0.78 to 0.87"),
    "azimuth.autocorrelation": Tolerance(
        limit=0.05, fewest=1000, source="VLP-16 at 600 rpm, four units: -0.49 to -0.48, with a standard error of 0.017 in 0.4 s"
    ),
    "azimuth.total_variation": Tolerance(
        limit=0.04, fewest=1000, source="two VLP-16 at 600 rpm: 0.037; parts of 0.4 s of one at 1200 rpm, whose rate drifts by 0.13 %: 0.01 to 0.09"
    ),
    "stamps.residual_sd": Tolerance(limit=0.005, fewest=200, source="seven captures: 0.288 to 0.289 us (1/sqrt(12)); a steered clock differs"),
    "stamps.cycle": Tolerance(limit=2.0, fewest=200, source="most units within 1 ppm of the model's; three others +34, +137 and +141 ppm"),
    "stamps.total_variation": Tolerance(
        limit=0.01, fewest=200, is_of_one_mode=True, source="two VLP-16: 89.4 and 89.6 % of steps 1327 us, else 1328"
    ),
    "ranges.below_floor": Tolerance(limit=0.0, fewest=1000, source="VLP-16, three units: nothing nearer than 0.500 m"),
    "ranges.odd": Tolerance(limit=4.2, fewest=10_000, source="every capture: 47.5 to 51.7 % odd codes"),
    "empty.zero_bytes": Tolerance(
        limit=0.0, fewest=1000, source="seven captures of VLP-16 and VLP-32C, 2016 and later: none (2014 firmware: 8 and 22 %)"
    ),
    "noise.byte_0_2": Tolerance(limit=4.0, fewest=1000, source=f"{_NOISE_SOURCE}17.2, 13.3 and 15.2 mm"),
    "noise.byte_3_5": Tolerance(limit=5.4, fewest=1000, source=f"{_NOISE_SOURCE}8.0, 11.9 and 13.3 mm"),
    "noise.byte_6_9": Tolerance(limit=4.0, fewest=1000, source=f"{_NOISE_SOURCE}8.0, 11.9 and 9.9 mm"),
    "noise.byte_10_19": Tolerance(limit=2.7, fewest=1000, source=f"{_NOISE_SOURCE}7.3, 9.9 and 8.6 mm"),
    "noise.byte_20_39": Tolerance(limit=0.7, fewest=1000, source=f"{_NOISE_SOURCE}6.0, 6.6 and 6.6 mm"),
    "noise.byte_40_69": Tolerance(limit=0.7, fewest=1000, source=f"{_NOISE_SOURCE}5.3 mm in all"),
    "noise.byte_70_99": Tolerance(limit=0.7, fewest=1000, source=f"{_NOISE_SOURCE}5.3, 5.3 and 4.6 mm"),
    "noise.byte_100": Tolerance(limit=0.7, fewest=1000, source=f"{_NOISE_SOURCE}4.6, 5.3 and 4.6 mm"),
    "dual.identical": Tolerance(limit=1.5, fewest=10_000, source="two VLP-16: 97.8 and 99.1 % of pairs with a return"),
    "dual.different": Tolerance(limit=0.5, fewest=10_000, source="two VLP-16: 1.2 and 0.76 % of pairs with a return"),
    "dual.even_farther": Tolerance(limit=0.0, fewest=20, source="two VLP-16: 2644 of 2644 different pairs"),
    "dual.separation_min": Tolerance(limit=0.05, fewest=500, source="two VLP-16: 1.16 and 1.19 m"),
    "dual.empty_equal": Tolerance(limit=0.5, fewest=1000, source="two VLP-16: 99.5 to 99.9 % of empty pairs"),
}
"""Tolerances by name of the statistic, for streams of one model."""
