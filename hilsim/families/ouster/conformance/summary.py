"""Figures of one Ouster sensor's stream."""

import math
from dataclasses import dataclass

from hilsim.analysis.conformance.result import OtherSummary


@dataclass(frozen=True, kw_only=True)
class OusterSummary(OtherSummary):
    """Figures of one sensor's stream; NaN or None for those that are not known.

    Attributes:
        family: Family ``ouster``; summaries of a Velodyne have another type.
        lidar_packets: Number of lidar packets.
        imu_packets: Number of IMU packets.
        other_datagrams: Number of other datagrams of the same address.
        model: Product line by the metadata.
        firmware: Version of the firmware.
        profile: Lidar profile.
        lidar_mode: Columns a turn and turns a second.
        serial: Serial number in the packets.
        frames: Number of frames.
        lost_packets: Number of packets missing.
        invalid_columns: Number of columns with status 0.
        return_ratio: Share of the pixels with a first return.
        pairs: Number of pixels with two returns.
        column_period_us: Mean time between columns.
        column_spread_us: Standard deviation of that time.
        stamp_grid_ns: Largest number of nanoseconds of which all stamps are multiples.
        gap_p1_us: 1st percentile of the host's time between neighbouring packets.
        gap_p50_us: Median of that time.
        gap_p99_us: 99th percentile of that time.
        host_drift_ppm: Rate by which the sensor's clock is slower than the host's.
        headers: Origin of the link headers.
    """

    family: str = "ouster"
    lidar_packets: int
    imu_packets: int
    other_datagrams: int
    model: str | None
    firmware: str | None
    profile: str | None
    lidar_mode: str | None
    serial: int
    frames: int
    lost_packets: int
    invalid_columns: int
    return_ratio: float
    pairs: int
    column_period_us: float
    column_spread_us: float
    stamp_grid_ns: int
    gap_p1_us: float
    gap_p50_us: float
    gap_p99_us: float
    host_drift_ppm: float
    headers: str

    def lines(self) -> list[str]:
        """Lines of text, one for each topic."""
        counted = f"{self.lidar_packets} lidar, {self.imu_packets} IMU, {self.other_datagrams} other, {self.lost_packets} lost"
        lines = [f"packets   {counted}"]
        if not self.lidar_packets:
            return lines
        known = f"{self.model}, firmware {self.firmware}, {self.profile}, {self.lidar_mode}" if self.model else "no metadata"
        serial = f", serial number {self.serial}" if self.serial else ""
        gaps = " / ".join(_known(gap_us, ".0f") for gap_us in (self.gap_p1_us, self.gap_p50_us, self.gap_p99_us))
        period = f"a column each {_known(self.column_period_us, '.3f')} ± {_known(self.column_spread_us, '.3f')} us"
        return [
            *lines,
            f"sensor    {known}{serial}",
            f"frames    {self.frames}, {self.invalid_columns} columns not valid",
            f"clock     {period}, multiples of {self.stamp_grid_ns} ns",
            f"returns   {_known(100 * self.return_ratio, '.1f')} % of the pixels, {self.pairs} pairs",
            f"arrival   gaps {gaps} us (1, 50, 99 %), {_known(self.host_drift_ppm, '+.1f')} ppm against the host, headers: {self.headers}",
        ]


def _known(value: float, form: str) -> str:
    return "-" if math.isnan(value) else format(value, form)
