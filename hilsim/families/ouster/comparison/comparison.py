"""Comparison of two streams of Ouster sensors, and the panels of their distributions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hilsim.errors import CaptureError
from hilsim.families.ouster.comparison.statistics import STATISTICS
from hilsim.families.ouster.comparison.stream import OusterStatistics
from hilsim.families.ouster.comparison.tolerances import MEASURED_MODE, OF_OLDER, OLDER_BEFORE, OUSTER_TOLERANCES
from hilsim.families.ouster.protocol.profiles import FieldKind
from hilsim.read.analysis.comparison.comparison import Comparison, Row, asked_limits, make_row
from hilsim.read.analysis.comparison.draw import draw_outline, draw_shared_panels, draw_title
from hilsim.read.analysis.comparison.histogram import Histogram

_OF_STEPS = ("columns.mean", "columns.sd", "columns.smallest", "columns.largest")


@dataclass(frozen=True, kw_only=True)
class OusterComparison(Comparison):
    """The differences between two streams of Ouster sensors."""

    passed_over = "lidar packets of another sensor or profile"

    def notes(self) -> list[str]:
        """Remarks that limit the meaning of distances."""
        sentences = []
        firmware = [str(stream.metadata.firmware) for stream in (self.a, self.b)]
        if firmware[0] != firmware[1]:
            sentences.append(f"the firmware differs ({', '.join(firmware)}), by which real units differ, too")
        return sentences + super().notes()


def compare(a: OusterStatistics, b: OusterStatistics, limits: Mapping[str, float], names: tuple[str, str]) -> OusterComparison:
    """Compare two streams of Ouster sensors.

    Args:
        a: Statistics of the first stream.
        b: Statistics of the second stream.
        limits: Largest allowed distances by names of statistics.
        names: Names of the two streams in errors.

    Raises:
        CaptureError: product line, profile or mode differ; the text names all that differ.
    """
    kinds = [
        ("product line", a.kind, b.kind),
        ("lidar profile", a.metadata.lidar_profile, b.metadata.lidar_profile),
        ("lidar mode", a.metadata.lidar_mode, b.metadata.lidar_mode),
    ]
    faults = [f"{what} must be the same, got {one} in {names[0]} and {other} in {names[1]}" for what, one, other in kinds if one != other]
    if faults:
        raise CaptureError("\n".join(faults))
    tolerances = OF_OLDER if max(a.metadata.firmware, b.metadata.firmware) < OLDER_BEFORE else OUSTER_TOLERANCES
    rows = []
    for statistic in STATISTICS:
        if statistic.is_of_pairs and a.dual is None:
            continue
        rows.append(make_row(statistic, (a, b), tolerances.get(statistic.name), _obstacle(statistic.name, a)))
    return OusterComparison(a=a, b=b, rows=tuple(rows), limits=asked_limits(rows, limits))


def _obstacle(name: str, stream: OusterStatistics) -> str:
    """Reason why a tolerance does not hold for streams of this kind; empty if it holds."""
    range_step_mm = next(field.scale for field in stream.metadata.profile.fields if field.kind is FieldKind.RANGE)
    if name in _OF_STEPS and stream.metadata.lidar_mode != MEASURED_MODE:
        return f"no real unit in a mode other than {MEASURED_MODE} was measured"
    if name.startswith("ranges.") and range_step_mm != 1:
        return f"the profile's ranges have steps of {range_step_mm} mm"
    return ""


_BINS = 60


def draw_panels(axes: Any, streams: Sequence[OusterStatistics], rows: Mapping[str, Row]) -> None:
    """Draw the panels of two streams of Ouster sensors to nine axes."""
    _draw_middle(axes[0, 0], [stream.columns.steps for stream in streams])
    draw_title(axes[0, 0], "steps between columns", rows["columns.sd"], "us")
    _draw_middle(axes[0, 1], [stream.frames.durations for stream in streams])
    draw_title(axes[0, 1], "time from turn to turn", rows["frames.mean"], "us")
    _draw_middle(axes[1, 1], [stream.returns.signal[-1] for stream in streams])
    draw_title(axes[1, 1], "far photons by range and reflectivity", rows["signal.from_40_m"], "log10 of photons m2 / %")
    _draw_middle(axes[1, 2], [stream.returns.near_ir for stream in streams])
    draw_title(axes[1, 2], "photons of ambient light", rows["near_ir.p50"], "photons")
    draw_shared_panels(axes, streams, rows, "dual.separation_p50")


def _draw_middle(axes: Any, histograms: Sequence[Histogram]) -> None:
    """Draw outlines from the 0.1 to the 99.9 percent quantile; nothing without values."""
    filled = [histogram for histogram in histograms if histogram.total]
    if not filled:
        return
    low, high = min(histogram.quantile(0.001) for histogram in filled), max(histogram.quantile(0.999) for histogram in filled)
    width = filled[0].width
    step = width * max(1, round((high - low) / (_BINS * width)))
    draw_outline(axes, histograms, np.arange(low - 1.5 * width, high + step + width, step))
