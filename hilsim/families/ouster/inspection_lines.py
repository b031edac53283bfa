"""Lines of the report on Ouster flows: ``(label, text)``, and problems without a label."""

import math
from collections.abc import Iterator

from hilsim.analysis.inspection.result import OusterImu, OusterLidar

PROBLEM = ""
"""Label of a problem."""
_MOST_IDS = 4


def sensor_name(lidar: OusterLidar) -> str:
    """Title of a sensor: model, profile, mode."""
    if lidar.model is None:
        channels = f", {lidar.channels} channels" if lidar.channels else ""
        return f"Ouster{_of_serial(lidar)}, {lidar.profile or 'unknown profile'}{channels}, {lidar.columns_per_frame} columns a turn"
    returns = f"Ouster {lidar.model}, firmware {lidar.firmware}, {lidar.profile}, {lidar.lidar_mode}"
    return f"{returns}{_of_serial(lidar)}"


def _of_serial(lidar: OusterLidar) -> str:
    return f", serial number {lidar.serial}" if lidar.serial else ""


def lidar_lines(lidar: OusterLidar) -> Iterator[tuple[str, str]]:
    """Lines on lidar packets, but those on missing packets and on the clock."""
    yield "frames", _frames(lidar)
    yield "columns", _columns(lidar)
    clock = lidar.clock
    period = "" if math.isnan(lidar.column_period_us) else f", a column each {lidar.column_period_us:.3f} ± {lidar.column_period_sd_us:.3f} us"
    missing = "" if lidar.missing.packets else ", no packet missing"
    yield "stamps", f"{clock.first_us / 1e6:,.3f} to {clock.last_us / 1e6:,.3f} s, multiples of {lidar.stamp_grid_ns} ns{period}{missing}"
    yield "header", _header(lidar)
    if lidar.fits:
        yield PROBLEM, f"there are no metadata of this sensor: {lidar.fits}"
    if lidar.mismatch:
        yield PROBLEM, lidar.mismatch
    if lidar.frame_breaks:
        yield PROBLEM, f"frame ids begin anew {'once' if lidar.frame_breaks == 1 else f'{lidar.frame_breaks:,} times'}"


def _frames(lidar: OusterLidar) -> str:
    rate = "" if math.isnan(lidar.frame_rate_hz) else f", {lidar.frame_rate_hz:.3f} a second"
    if lidar.frames == 1:
        return f"1, frame id {lidar.first_frame_id}{rate}"
    return f"{lidar.frames:,}, frame ids {lidar.first_frame_id} to {lidar.last_frame_id}{rate}"


def _columns(lidar: OusterLidar) -> str:
    window = lidar.column_window
    is_whole = window is None or (window[1] + 1 - window[0]) % lidar.columns_per_frame == 0
    view = "" if is_whole or window is None else f", window {window[0]} to {window[1]}"
    invalid = f", {lidar.invalid_columns:,} not valid (status 0)" if lidar.invalid_columns else ""
    return f"{lidar.columns:,} of {lidar.columns_per_frame} a turn{view}{invalid}"


def _header(lidar: OusterLidar) -> str:
    if lidar.header == "NONE":
        return "none (LEGACY): packets state neither serial number nor initialisation id"
    ids = ", ".join(map(str, lidar.init_ids[:_MOST_IDS])) + (" …" if len(lidar.init_ids) > _MOST_IDS else "")
    alerts = ", ".join(f"0x{value:02x}" for value in lidar.alert_flags[:_MOST_IDS])
    return f"{lidar.header}, initialisation id {ids}, alert flags {alerts}"


def imu_lines(imu: OusterImu) -> Iterator[tuple[str, str]]:
    """Lines on IMU packets."""
    rate = "" if math.isnan(imu.rate_hz) else f", {imu.rate_hz:.2f} measurements a second"
    each = "" if imu.measurements_per_packet == 1 else f", {imu.measurements_per_packet} a packet"
    yield "IMU", f"{imu.form}{rate}{each}, mean acceleration {imu.acceleration_g:.3f} g{f', {imu.sentence}' if imu.sentence else ''}"
