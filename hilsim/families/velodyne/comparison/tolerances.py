"""Distances of two real units of one model, up to which streams count as alike."""

from dataclasses import replace

from hilsim.read.analysis.comparison.tolerance import Tolerance

_CAPTURES = "public captures of a VLP-16 in strongest (600 and 1200 rpm) and dual mode"
_SLOWEST_RPM = 450.0  # at 300 rpm neighbouring firings are half as far apart, one unit has half the byte noise, and one swings within a turn


_NOISE_SOURCE = f"spread of {_CAPTURES}, and of one at 600 rpm: "


def _of_signal(low: float, high: float, limit: float, fewest: int, source: str, slowest_rpm: float = _SLOWEST_RPM) -> Tolerance:
    """Make the tolerance of a statistic of the signal, measured on six captures of VLP-16 (six units by their baselines and clocks)."""
    return Tolerance(
        limit=limit, real=(low, high), fewest=fewest, models=("VLP-16",), slowest_rpm=slowest_rpm, source=f"six VLP-16 captures, widened: {source}"
    )


_PACE = {
    "stream.rotation": Tolerance(limit=0.25, source="four VLP-16 set to 600 rpm: 599.07 to 600.34; one set to 1200: 1198.77"),
    "azimuth.sd": Tolerance(
        limit=0.03,
        real=(0.66, 0.885),
        fewest=1000,
        slowest_rpm=_SLOWEST_RPM,
        source="VLP-16 at 600 rpm, six units: 0.784 to 0.869; one at 1200 rpm: 0.68",
    ),
    "azimuth.autocorrelation": Tolerance(
        limit=0.05,
        real=(-0.53, -0.33),
        fewest=1000,
        slowest_rpm=_SLOWEST_RPM,
        source="VLP-16 at 600 rpm, five units: -0.49 to -0.41, with a standard error of 0.017 in 0.4 s; one at 1200 rpm: -0.36",
    ),
    "azimuth.autocorrelation_2": _of_signal(-0.12, 0.12, 0.06, 2000, "-0.06 to 0.07, also at 1200 rpm"),
    "azimuth.autocorrelation_3": _of_signal(-0.12, 0.12, 0.06, 2000, "-0.07 to 0.01, also at 1200 rpm"),
    "azimuth.mod_5_rarest": _of_signal(12.0, 18.0, 0.9, 3000, "13.6 to 15.4 % at 600 rpm, 16.5 % at 1200 rpm; equal shares are 20 %"),
    "azimuth.mod_5_commonest": _of_signal(21.2, 36.0, 0.9, 3000, "22.0 to 23.2 % at 600 rpm, 30.9 % at 1200 rpm; equal shares are 20 %"),
    "azimuth.total_variation": Tolerance(
        limit=0.1,
        fewest=2000,
        slowest_rpm=_SLOWEST_RPM,
        source="two VLP-16 at 600 rpm: 0.037; parts of 0.4 s of one at 1200 rpm, whose rate drifts by 0.13 %: 0.01 to 0.09",
    ),
    "stamps.residual_sd": Tolerance(
        limit=0.005,
        fewest=200,
        models=("VLP-16", "VLP-32C", "HDL-32E"),
        source="seven captures of three models: 0.288 to 0.289 us (1/sqrt(12)); a steered clock differs",
    ),
    "stamps.cycle": Tolerance(limit=2.0, fewest=200, source="most units within 1 ppm of the model's; three others +34, +137 and +141 ppm"),
    "stamps.total_variation": Tolerance(
        limit=0.01, fewest=200, is_of_one_mode=True, source="two VLP-16: 89.4 and 89.6 % of steps 1327 us, else 1328"
    ),
}
_RECORDS = {
    "ranges.below_floor": Tolerance(limit=0.0, fewest=1000, source="VLP-16, six units: nothing nearer than 0.500 m"),
    "ranges.odd": Tolerance(
        limit=2.0,
        real=(44.0, 54.0),
        fewest=10_000,
        models=("VLP-16", "VLP-32C", "HDL-32E", "VLS-128"),
        source="every capture of four models: 45.8 to 51.7 % odd codes",
    ),
    "empty.zero_bytes": Tolerance(
        limit=0.1,
        real=(0.0, 30.0),
        fewest=1000,
        models=("VLP-16", "VLP-32C"),
        source="captures of VLP-16 and VLP-32C, 2016 and later: none; 2014 firmware: 8 and 22 %",
    ),
    "empty.at_baseline": _of_signal(25.0, 99.7, 0.2, 5000, "41.8 to 98.6 %", 0.0),
    "empty.byte_kinds": _of_signal(1.5, 35.0, 0.3, 5000, "3.0 to 21.4", 0.0),
}
_NOISE = {
    "noise.byte_0_2": Tolerance(limit=8.0, fewest=1000, source=f"{_NOISE_SOURCE}17.2, 13.3, 15.2 and 9.3 mm"),
    "noise.byte_3_5": Tolerance(limit=6.7, fewest=1000, source=f"{_NOISE_SOURCE}8.0, 11.9, 13.3 and 6.6 mm"),
    "noise.byte_6_9": Tolerance(limit=6.0, fewest=1000, source=f"{_NOISE_SOURCE}8.0, 11.9, 9.9 and 6.0 mm"),
    "noise.byte_10_19": Tolerance(limit=4.7, fewest=1000, source=f"{_NOISE_SOURCE}7.3, 9.9, 8.6 and 5.3 mm"),
    "noise.byte_20_39": Tolerance(limit=2.1, fewest=1000, source=f"{_NOISE_SOURCE}6.0, 6.6, 6.6 and 4.6 mm"),
    "noise.byte_40_69": Tolerance(limit=2.0, fewest=1000, source=f"{_NOISE_SOURCE}5.3, 5.3, 5.3 and 4.0 mm, one step of the estimator more"),
    "noise.byte_70_99": Tolerance(limit=2.0, fewest=1000, source=f"{_NOISE_SOURCE}5.3, 5.3, 4.6 and 4.0 mm, one step of the estimator more"),
    "noise.byte_100": Tolerance(limit=2.7, fewest=1000, source=f"{_NOISE_SOURCE}4.6, 5.3, 4.6 and 6.6 mm, one step of the estimator more"),
}
_SIGNAL = {
    "grid.odd": _of_signal(9.5, 44.0, 2.0, 5000, "15.2 to 38.5 %; white ranges give 50 %", 0.0),
    "grid.odd_equal_bytes": _of_signal(0.0, 33.0, 3.0, 2000, "3.1 to 26.8 %; white ranges give 50 %", 0.0),
    "grid.parity": _of_signal(59.5, 92.0, 2.0, 10_000, "64.8 to 85.9 %; white ranges give 50 %", 0.0),
    "bytes.equal": _of_signal(10.0, 42.0, 2.0, 3000, "16.1 to 33.1 %"),
    "bytes.sd_3_9": _of_signal(0.25, 1.8, 0.15, 100, "0.50 to 1.40"),
    "bytes.sd_10_19": _of_signal(0.6, 4.6, 0.2, 100, "1.1 to 3.8"),
    "bytes.sd_20_39": _of_signal(1.1, 7.0, 0.3, 100, "1.6 to 6.0"),
    "bytes.sd_40_69": _of_signal(1.9, 7.5, 0.3, 100, "2.9 to 6.5"),
    "bytes.sd_70_99": _of_signal(1.7, 8.5, 0.3, 100, "2.8 to 6.9"),
    "bytes.constant_3_9": _of_signal(2.0, 48.0, 4.0, 100, "7.4 to 38 %"),
    "bytes.constant_10_19": _of_signal(0.0, 9.0, 2.0, 100, "0 to 4.9 %"),
    "bytes.constant_20_39": _of_signal(0.0, 9.0, 2.0, 100, "0 to 5.6 %"),
    "bytes.constant_40_69": _of_signal(0.0, 3.0, 1.0, 200, "0 to 0.1 %"),
    "bytes.constant_70_99": _of_signal(0.0, 5.0, 1.0, 200, "0 to 0.4 %; 2.8 % of 36"),
    "correlation.byte_10_19": _of_signal(-0.18, 0.12, 0.03, 300, "-0.14 to 0.07; white noise gives -0.25"),
    "correlation.byte_20_39": _of_signal(-0.15, 0.16, 0.03, 300, "-0.10 to 0.10; white noise gives -0.25"),
    "correlation.byte_40_69": _of_signal(-0.15, 0.16, 0.03, 300, "-0.09 to 0.10; white noise gives -0.25"),
    "correlation.byte_70_99": _of_signal(-0.15, 0.16, 0.03, 300, "-0.10 to 0.11; white noise gives -0.25"),
    "edges.with_empty": _of_signal(6.0, 75.0, 3.0, 70, "9.8 to 56 %"),
    "edges.near_mixed": _of_signal(2.0, 45.0, 10.0, 50, "11 to 27 %"),
    "edges.far_mixed": _of_signal(0.0, 28.0, 5.0, 100, "3 to 17 %"),
    "edges.single_empty": _of_signal(0.05, 0.6, 0.05, 50_000, "0.12 to 0.37 % of returns"),
    "edges.isolated": _of_signal(0.05, 1.5, 0.1, 20_000, "0.085 to 0.98 % of returns"),
}
_TWO_UNITS = "two VLP-16: "


def _of_pairs(low: float, high: float, limit: float, fewest: int, source: str) -> Tolerance:
    return Tolerance(limit=limit, real=(low, high), fewest=fewest, models=("VLP-16",), source=f"{_TWO_UNITS}{source}, widened")


_DUAL = {
    "dual.identical": Tolerance(limit=1.5, fewest=10_000, source=f"{_TWO_UNITS}97.8 and 99.1 % of pairs with a return"),
    "dual.different": Tolerance(limit=0.5, fewest=10_000, source=f"{_TWO_UNITS}1.2 and 0.76 % of pairs with a return"),
    "dual.only_even": _of_pairs(0.003, 1.3, 0.003, 50_000, "0.90 and 0.01 % of pairs with a return"),
    "dual.only_odd": _of_pairs(0.03, 0.3, 0.02, 50_000, "0.10 and 0.09 % of pairs with a return"),
    "dual.even_farther": Tolerance(limit=0.0, fewest=20, source=f"{_TWO_UNITS}2644 of 2644 different pairs"),
    "dual.near_byte": _of_pairs(1.0, 5.0, 0.5, 100, "medians 4 and 2"),
    "dual.far_byte": _of_pairs(5.0, 9.5, 0.5, 100, "medians 7 and 8"),
    "dual.separation_min": Tolerance(limit=0.05, fewest=500, source=f"{_TWO_UNITS}1.16 and 1.19 m"),
    "dual.empty_equal": Tolerance(limit=0.5, fewest=1000, source=f"{_TWO_UNITS}99.5 to 99.9 % of empty pairs"),
}
_ALL = _PACE | _RECORDS | _NOISE | _SIGNAL | _DUAL
TOLERANCES = {name: tolerance if tolerance.models else replace(tolerance, models=("VLP-16",)) for name, tolerance in _ALL.items()}
"""Tolerances by name of the statistic, for streams of one model. Those of statistics that depend on the unit never make streams differ."""
