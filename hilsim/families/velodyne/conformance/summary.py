"""Figures of one Velodyne sensor's stream."""

from dataclasses import dataclass
from typing import Annotated

from hilsim.families.velodyne.protocol.data import ReturnMode
from hilsim.families.velodyne.protocol.position import PPS_WORDS
from hilsim.read.analysis.conformance.result import SensorSummary, known


@dataclass(frozen=True, kw_only=True)
class VelodyneSummary(SensorSummary):
    """Figures of one Velodyne sensor's stream; NaN for those with too few packets."""

    data_packets: Annotated[int, "Number of whole data packets."]
    position_packets: Annotated[int, "Number of whole position packets."]
    other_datagrams: Annotated[int, "Number of other datagrams of the same address."]
    model: Annotated[str | None, "Model by whose rules the stream was checked.", "factory.model.name"]
    return_mode: Annotated[int | None, "Return mode byte.", "factory.mode"]
    product: Annotated[int | None, "Product byte.", "factory.product"]
    is_dual: Annotated[bool, "Whether blocks come in pairs of one azimuth.", "factory.is_dual"]
    rate_rpm: Annotated[float, "Revolutions a minute by azimuth and firing clock.", "azimuth.rate_rpm"]
    cycle_us: Annotated[float, "Fitted time between packets.", "clock.lines.cycle_us"]
    cycle_drift_ppm: Annotated[float, "Relative excess of ``cycle_us`` over the model's.", "clock.lines.drift_ppm"]
    stamp_residual_us: Annotated[float, "Root mean square distance of the stamps from the fit.", "clock.lines.residual_us"]
    lost_packets: Annotated[int, "Number of packets missing by the stamps.", "clock.lost"]
    azimuth_increment_cdeg: Annotated[float, "Mean increment from block to block.", "azimuth.scatter.mean"]
    azimuth_increment_sd_cdeg: Annotated[float, "Standard deviation of the increments.", "azimuth.scatter.sd"]
    azimuth_autocorrelation: Annotated[float, "Correlation of neighbouring increments.", "azimuth.scatter.autocorrelation"]
    field_of_view_gaps: Annotated[int, "Number of jumps of azimuth inside packets.", "azimuth.gaps"]
    no_return_ratio: Annotated[float, "Share of records without a return.", "returns.no_return_ratio"]
    position_rate_hz: Annotated[float, "Position packets a second by their stamps.", "position.rate_hz"]
    nmea_sentences: Annotated[int, "Number of different sentences.", "nmea.sentences"]
    pps_states: Annotated[tuple[int, ...], "PPS bytes seen.", "position.pps_states"]
    headers: Annotated[str, "Origin of the data packets' headers.", "data_headers.origin.value"]
    gap_p1_us: Annotated[float, "1st percentile of the host time between neighbouring data packets.", "spacing.arrival.spread.p1_us"]
    gap_p50_us: Annotated[float, "Median of the host time between neighbouring data packets.", "spacing.arrival.spread.p50_us"]
    gap_p99_us: Annotated[float, "99th percentile of the host time between neighbouring data packets.", "spacing.arrival.spread.p99_us"]
    gap_sd_us: Annotated[float, "Standard deviation of the host time between neighbouring data packets.", "spacing.arrival.spread.sd_us"]
    host_drift_ppm: Annotated[float, "Rate by which the sensor's clock is slower than the host's.", "spacing.arrival.drift_ppm"]

    def lines(self) -> list[str]:
        """Figures as lines of text, one for each topic."""
        lines = [f"packets   {self.data_packets} data, {self.position_packets} position, {self.other_datagrams} other, {self.lost_packets} lost"]
        if self.data_packets and self.return_mode is not None and self.model is None:
            lines.append(f"sensor    not checked (0x{self.return_mode:02x} 0x{self.product:02x})")
        elif self.data_packets and self.return_mode is not None:
            found = ReturnMode.find(self.return_mode)
            mode = f"{found.words if found else 'unknown'}, 0x{self.return_mode:02x} 0x{self.product:02x}"
            cycle = f"{known(self.cycle_us, '.4f')} us ({known(self.cycle_drift_ppm, '+.2f')} ppm)"
            increment = f"{known(self.azimuth_increment_cdeg, '.3f')} ± {known(self.azimuth_increment_sd_cdeg, '.3f')}"
            gaps = " / ".join(known(gap_us, ".0f") for gap_us in (self.gap_p1_us, self.gap_p50_us, self.gap_p99_us))
            spread = f"sd {known(self.gap_sd_us, '.1f')} us, {known(self.host_drift_ppm, '+.1f')} ppm against the host"
            lines += [
                f"sensor    {self.model} ({mode}), {known(self.rate_rpm, '.2f')} rpm, {self.field_of_view_gaps} field-of-view gaps",
                f"clock     cycle {cycle}, residual {known(self.stamp_residual_us, '.3f')} us rms",
                f"azimuth   {increment} hundredths of a degree a block, neighbours correlated {known(self.azimuth_autocorrelation, '+.2f')}",
                f"returns   {known(100 * self.no_return_ratio, '.1f')} % empty",
                f"arrival   gaps {gaps} us (1, 50, 99 %), {spread}, headers: {self.headers}",
            ]
        if self.position_packets:
            states = ", ".join(PPS_WORDS.get(state, str(state)) for state in self.pps_states)
            lines.append(f"position  {known(self.position_rate_hz, '.1f')} a second, PPS {states}, {self.nmea_sentences} NMEA sentences")
        return lines
