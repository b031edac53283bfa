"""Figures of one Cepton sensor's stream."""

import math
from dataclasses import dataclass

from hilsim.analysis.conformance.result import OtherSummary


@dataclass(frozen=True, kw_only=True)
class CeptonSummary(OtherSummary):
    """Figures of one sensor's stream; NaN or None for those with too few packets.

    Attributes:
        family: Family ``cepton``; summaries of a Velodyne have another type.
        point_packets: Number of STDV packets.
        info_packets: Number of INFZ packets.
        older_packets: Number of STDT and INFO packets, of the older generation.
        other_datagrams: Number of other datagrams of the same address.
        model: Name that the sensor reports.
        model_code: Code of the model.
        serial: Serial number.
        returns: Returns a firing that the sensor announces.
        header_versions: Header versions of point packets.
        points: Number of points.
        return_ratio: Share of the firings' points that are returns.
        second_ratio: Share of the points flagged as second returns that are returns.
        lasers: Number of lasers that fired.
        cycle_us: Time in which each laser fires once.
        frames: Number of whole frames without a gap.
        frame_s: Median time of a frame.
        frame_points: Median number of points of a frame.
        lost_packets: Number of packets missing by their numbers (or stamps).
        stamps: Zero of the stamps: ``power-up`` or ``UTC``.
        rate_ratio: Time by the stamps over time by the host's clock.
        info_period_s: Median time between information packets.
        sync_offset_us: Latest offset from the stamps to the synchronised clock.
    """

    family: str = "cepton"
    point_packets: int
    info_packets: int
    older_packets: int
    other_datagrams: int
    model: str | None
    model_code: int | None
    serial: int | None
    returns: int | None
    header_versions: tuple[int, ...]
    points: int
    return_ratio: float
    second_ratio: float
    lasers: int
    cycle_us: float
    frames: int
    frame_s: float
    frame_points: float
    lost_packets: int
    stamps: str
    rate_ratio: float
    info_period_s: float
    sync_offset_us: int | None

    def lines(self) -> list[str]:
        """Lines of text, one for each topic."""
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
            came = f"{_known(100 * self.return_ratio, '.1f')} % of first and {_known(100 * self.second_ratio, '.1f')} % of second returns came back"
            lines += [
                f"points    {self.points} of {self.lasers} lasers, {came}",
                f"firing    every laser each {_known(self.cycle_us, '.0f')} us, header version {versions}",
                f"frames    {self.frames} whole, {_known(1000 * self.frame_s, '.1f')} ms and {_known(self.frame_points, '.0f')} points each",
                f"clock     stamps since {'1970 (UTC)' if self.stamps == 'UTC' else 'power-up'}{drift}",
            ]
        if self.info_packets:
            lines.append(f"info      each {_known(self.info_period_s, '.3f')} s, {self.sync_offset_us} us to the synchronised clock")
        return lines


def _known(value: float, form: str) -> str:
    return "-" if math.isnan(value) else format(value, form)
