"""Figures of one Ouster sensor's stream."""

from dataclasses import dataclass
from typing import Annotated

from hilsim.read.analysis.conformance.result import SensorSummary, known


@dataclass(frozen=True, kw_only=True)
class OusterSummary(SensorSummary):
    """Figures of one sensor's stream; NaN or None for those that are not known."""

    family: Annotated[str, "Family ``ouster``; summaries of a Velodyne have another type."] = "ouster"
    lidar_packets: Annotated[int, "Number of lidar packets."]
    imu_packets: Annotated[int, "Number of IMU packets.", "imu.packets"]
    other_datagrams: Annotated[int, "Number of other datagrams of the same address."]
    model: Annotated[str | None, "Product line by the metadata.", "metadata.prod_line"]
    firmware: Annotated[str | None, "Version of the firmware.", "metadata.firmware.__str__"]
    profile: Annotated[str | None, "Lidar profile.", "metadata.lidar_profile"]
    lidar_mode: Annotated[str | None, "Columns a turn and turns a second.", "metadata.lidar_mode"]
    serial: Annotated[int, "Serial number in the packets."]
    frames: Annotated[int, "Number of frames.", "frames.frames"]
    lost_packets: Annotated[int, "Number of packets missing.", "lost.packets"]
    invalid_columns: Annotated[int, "Number of columns with status 0.", "frames.invalid_columns"]
    return_ratio: Annotated[float, "Share of the pixels with a first return.", "pixels.return_ratio"]
    pairs: Annotated[int, "Number of pixels with two returns.", "pixels.pairs"]
    column_period_us: Annotated[float, "Mean time between columns.", "stamps.steps_us.mean"]
    column_spread_us: Annotated[float, "Standard deviation of that time.", "stamps.steps_us.sd"]
    stamp_grid_ns: Annotated[int, "Largest number of nanoseconds of which all stamps are multiples.", "stamps.grid_ns"]
    gap_p1_us: Annotated[float, "1st percentile of the host's time between neighbouring packets.", "spacing.arrival.spread.p1_us"]
    gap_p50_us: Annotated[float, "Median of that time.", "spacing.arrival.spread.p50_us"]
    gap_p99_us: Annotated[float, "99th percentile of that time.", "spacing.arrival.spread.p99_us"]
    host_drift_ppm: Annotated[float, "Rate by which the sensor's clock is slower than the host's.", "spacing.arrival.drift_ppm"]
    headers: Annotated[str, "Origin of the link headers.", "link.origin"]

    def lines(self) -> list[str]:
        """Figures as lines of text, one for each topic."""
        counted = f"{self.lidar_packets} lidar, {self.imu_packets} IMU, {self.other_datagrams} other, {self.lost_packets} lost"
        lines = [f"packets   {counted}"]
        if not self.lidar_packets:
            return lines
        kind = f"{self.model}, firmware {self.firmware}, {self.profile}, {self.lidar_mode}" if self.model else "no metadata"
        serial = f", serial number {self.serial}" if self.serial else ""
        gaps = " / ".join(known(gap_us, ".0f") for gap_us in (self.gap_p1_us, self.gap_p50_us, self.gap_p99_us))
        period = f"a column each {known(self.column_period_us, '.3f')} ± {known(self.column_spread_us, '.3f')} us"
        return [
            *lines,
            f"sensor    {kind}{serial}",
            f"frames    {self.frames}, {self.invalid_columns} columns not valid",
            f"clock     {period}, multiples of {self.stamp_grid_ns} ns",
            f"returns   {known(100 * self.return_ratio, '.1f')} % of the pixels, {self.pairs} pairs",
            f"arrival   gaps {gaps} us (1, 50, 99 %), {known(self.host_drift_ppm, '+.1f')} ppm against the host, headers: {self.headers}",
        ]
