"""Figures of one Cepton sensor's stream."""

import math
from dataclasses import dataclass
from typing import Annotated

from hilsim.read.analysis.conformance.result import SensorSummary, known


@dataclass(frozen=True, kw_only=True)
class CeptonSummary(SensorSummary):
    """Figures of one sensor's stream; NaN or None for those with too few packets."""

    family: Annotated[str, "Family ``cepton``; summaries of a Velodyne have another type."] = "cepton"
    point_packets: Annotated[int, "Number of STDV packets.", "headers.packets"]
    info_packets: Annotated[int, "Number of INFZ packets.", "info.packets"]
    older_packets: Annotated[int, "Number of STDT and INFO packets, of the older generation."]
    other_datagrams: Annotated[int, "Number of other datagrams of the same address."]
    model: Annotated[str | None, "Name that the sensor reports.", "info.latest.model_name"]
    model_code: Annotated[int | None, "Code of the model.", "info.latest.model"]
    serial: Annotated[int | None, "Serial number.", "info.latest.serial"]
    returns: Annotated[int | None, "Returns a firing that the sensor announces.", "info.latest.returns"]
    header_versions: Annotated[tuple[int, ...], "Header versions of point packets.", "headers.versions"]
    points: Annotated[int, "Number of points.", "points.points"]
    return_ratio: Annotated[float, "Share of the firings' points that are returns.", "points.return_ratio"]
    second_ratio: Annotated[float, "Share of the points flagged as second returns that are returns.", "points.second_ratio"]
    lasers: Annotated[int, "Number of lasers that fired.", "lasers.count"]
    cycle_us: Annotated[float, "Time in which each laser fires once.", "lasers.cycle_us"]
    frames: Annotated[int, "Number of whole frames without a gap.", "frames.whole"]
    frame_s: Annotated[float, "Median time of a frame.", "frames.duration_s"]
    frame_points: Annotated[float, "Median number of points of a frame.", "frames.points"]
    lost_packets: Annotated[int, "Number of packets missing by their numbers (or stamps).", "sequence.lost"]
    stamps: Annotated[str, "Zero of the stamps: ``power-up`` or ``UTC``.", "stamps.zero"]
    rate_ratio: Annotated[float, "Time by the stamps over time by the host's clock.", "stamps.rate_ratio"]
    info_period_s: Annotated[float, "Median time between information packets.", "info.period_s"]
    sync_offset_us: Annotated[int | None, "Latest offset from the stamps to the synchronised clock.", "info.latest.sync_offset_us"]

    def lines(self) -> list[str]:
        """Figures as lines of text, one for each topic."""
        lines = [
            f"packets   {self.point_packets} points (STDV), {self.info_packets} information (INFZ), {self.other_datagrams} other, {self.lost_packets} lost"
        ]
        if self.older_packets:
            lines = lines if self.point_packets else []
            lines.append(f"older     {self.older_packets} packets (STDT and INFO) of the generation before STDV, counted and not checked")
        if self.model is not None:
            lines.append(f"sensor    {self.model} (model {self.model_code}), serial number {self.serial}, {self.returns} return(s) a firing")
        if self.points:
            versions = " and ".join(map(str, self.header_versions))
            drift = f", {(self.rate_ratio - 1.0) * 1e6:+.1f} ppm against the host" if not math.isnan(self.rate_ratio) else ""
            came = f"{known(100 * self.return_ratio, '.1f')} % of first and {known(100 * self.second_ratio, '.1f')} % of second returns came back"
            lines += [
                f"points    {self.points} of {self.lasers} lasers, {came}",
                f"firing    every laser each {known(self.cycle_us, '.0f')} us, header version {versions}",
                f"frames    {self.frames} whole, {known(1000 * self.frame_s, '.1f')} ms and {known(self.frame_points, '.0f')} points each",
                f"clock     stamps since {'1970 (UTC)' if self.stamps == 'UTC' else 'power-up'}{drift}",
            ]
        if self.info_packets:
            lines.append(f"info      each {known(self.info_period_s, '.3f')} s, {self.sync_offset_us} us to the synchronised clock")
        return lines
