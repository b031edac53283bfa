"""The clock of a unit, its position packets and its address."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.calibration.figures import Learned
from hilsim.families.velodyne.calibration.recording import Recording

Doubles = npt.NDArray[np.float64]
_DOUBT_PPM = 1.0
_JUMP_US = 1.5
_MIN_POSITIONS = 40
_MIN_MEMBERS = 12
_PERIODS_US = (4_000.0, 60_000.0)
_MEMBER_SHARE = 0.12
_STEADY = 0.55
_EXPORTER = "60:76:88:00:00:00"


def learn_clock(recordings: Sequence[Recording], learned: Learned) -> None:
    """Learn the errors of stamps and of the oscillator."""
    slopes = [_stamp_slope(recording) for recording in recordings]
    best = min(slopes, key=lambda slope: slope[1])
    if best[1] > _DOUBT_PPM:
        learned.lack("stamp_ppm", f"too short: {best[1]:.1f} ppm of doubt, at most {_DOUBT_PPM:g} is needed", best[2])
    else:
        ppm, sd, samples = _mean(slopes)
        learned.keys["stamp_ppm"] = round(ppm, 2)
        learned.add("stamp_ppm", f"{ppm:+.2f} ppm", samples, note=f"stamps against the model's cycle, +-{sd:.2f}")
    hosts = [_host_slope(recording) for recording in recordings]
    best = min(hosts, key=lambda slope: slope[1])
    if best[1] > _DOUBT_PPM:
        learned.lack("oscillator_ppm", f"capture times leave a doubt of {best[1]:.1f} ppm, at most {_DOUBT_PPM:g} is needed: capture longer", best[2])
    else:
        ppm, sd, samples = _mean(hosts)
        learned.keys["oscillator_ppm"] = round(ppm, 2)
        learned.add(
            "oscillator_ppm", f"{ppm:+.2f} ppm", samples, note=f"against the clock of the capturing host, whose own error it contains; +-{sd:.2f}"
        )


def _mean(slopes: Sequence[tuple[float, float, int]]) -> tuple[float, float, int]:
    """Weighted mean of slopes with their standard deviations and samples."""
    weight = np.array([sd**-2 for _, sd, _ in slopes])
    mean = float(np.sum(weight * [ppm for ppm, _, _ in slopes]) / weight.sum())
    return mean, float(weight.sum() ** -0.5), sum(samples for _, _, samples in slopes)


def _stamp_slope(recording: Recording) -> tuple[float, float, int]:
    """Relative excess of the stamps' cycle over the model's in ppm, its standard deviation, and the packets used.

    Where stamps follow a pulse they jump once a second; a line is fitted to each stretch between jumps, with one slope.
    """
    off_us = recording.elapsed_us - recording.cycle * recording.cycle_us
    drift_us = np.diff(off_us)
    usual = np.median(drift_us)
    breaks = np.cumsum(np.concatenate(([False], (np.diff(recording.stretch) > 0) | (np.abs(drift_us - usual) > _JUMP_US))))
    if recording.is_locked:
        breaks = breaks + recording.packets["timestamp"].astype(np.int64) // 1_000_000
        _, breaks = np.unique(breaks, return_inverse=True)
    sizes = np.bincount(breaks)
    x = recording.cycle - (np.bincount(breaks, recording.cycle) / sizes)[breaks]
    y = off_us - (np.bincount(breaks, off_us) / sizes)[breaks]
    spread = float(x @ x)
    slope = float(x @ y) / spread
    sd_us = max(float(np.std(y - slope * x)), 0.29)
    return 1e6 * slope / recording.cycle_us, 1e6 * sd_us / np.sqrt(spread) / recording.cycle_us, x.size


def _host_slope(recording: Recording) -> tuple[float, float, int]:
    """Oscillator's error against capture times in ppm, its standard deviation, and the packets used."""
    stretch = np.bincount(recording.stretch)
    rows = np.flatnonzero(recording.stretch == int(np.argmax(stretch)))
    x = recording.cycle[rows] - recording.cycle[rows].mean()
    off_us = (recording.host_ns[rows] - recording.host_ns[rows[0]]) / 1000.0 - x * recording.cycle_us
    off_us = off_us - off_us.mean()
    kept = np.ones(rows.size, np.bool_)
    slope, sd_us = 0.0, 0.0
    for _ in range(4):  # packets that a busy host has stamped late are left out
        centred = x[kept] - x[kept].mean()
        slope = float(centred @ off_us[kept]) / float(centred @ centred)
        rest = off_us - slope * x
        rest = rest - np.median(rest[kept])
        sd_us = max(float(np.std(rest[kept])), 0.001)
        kept = np.abs(rest) <= 4.0 * sd_us
    ratio = 1.0 / (1.0 + slope / recording.cycle_us) - 1.0
    # capture times are late in bursts: neighbouring packets are not independent
    doubt = np.sqrt(20.0) * sd_us / np.sqrt(float((x[kept] ** 2).sum())) / recording.cycle_us
    return 1e6 * ratio, 1e6 * float(doubt), int(kept.sum())


def learn_mac(recordings: Sequence[Recording], learned: Learned) -> None:
    """Learn the MAC address."""
    found = {recording.mac for recording in recordings if recording.mac}
    if not found:
        learned.lack("mac", "the capture has no Ethernet addresses")
    elif found == {_EXPORTER}:
        learned.lack("mac", f"the capture has the address of an exporting viewer, {_EXPORTER}")
    elif len(found) > 1:
        learned.lack("mac", f"the captures have several addresses: {', '.join(sorted(found))}")
    else:
        learned.keys["mac"] = found.pop()
        learned.add("mac", learned.keys["mac"], sum(len(recording.packets) for recording in recordings))


def learn_positions(recordings: Sequence[Recording], latency_us: float, learned: Learned) -> None:
    """Learn the schedules of position packets, from the capture with the most of them.

    Args:
        recordings: The recordings.
        latency_us: ``PositionSpec.latency_us`` of the model, which stamps do not show.
        learned: Written.
    """
    most = max(recordings, key=lambda recording: recording.position_us.size)
    stamps = np.sort(most.position_us.astype(np.float64))
    if stamps.size < _MIN_POSITIONS:
        learned.lack("position", f"at least {_MIN_POSITIONS} position packets are needed, got {stamps.size}", stamps.size)
        return
    schedules: list[tuple[float, float]] = []
    rest = stamps
    while rest.size >= _MIN_MEMBERS and len(schedules) < 4:
        found = _strongest(rest)
        if found is None:
            break
        period, jitter, members = found
        schedules.append((period, jitter))
        rest = rest[~members]
    explained = 1.0 - rest.size / stamps.size
    if not schedules or explained < 0.8:
        learned.lack("position", f"{100 * explained:.0f} % of the packets fit periodic schedules, at least 80 % are needed", stamps.size)
        return
    gap_us = float(np.diff(stamps).min())
    learned.keys["position"] = {
        "minimum_gap_us": round(min(max(gap_us, 0.0), 5000.0), 1),
        "latency_us": latency_us,
        "schedules": [{"period_us": round(period, 1), "jitter_us": round(jitter, 1)} for period, jitter in schedules],
    }
    text = "; ".join(f"every {period / 1000:.3f} ms +-{jitter:.0f} us" for period, jitter in schedules)
    learned.add("position", text, stamps.size, note=f"{100 * explained:.0f} % of the packets; the latency is the model's")


def _strongest(stamps: Doubles) -> tuple[float, float, npt.NDArray[np.bool_]] | None:
    """Period, jitter and members of the steadiest schedule; None: there is none."""
    span = float(stamps[-1] - stamps[0])
    least = max(_PERIODS_US[0], span / stamps.size)
    periods: list[float] = []
    period = least
    while period < min(_PERIODS_US[1], span / 4.0):
        periods.append(period)
        period += max(0.2 * period * period / span, 1.0)
    best: tuple[float, float, npt.NDArray[np.bool_]] | None = None
    best_score = 0.0
    for candidate in periods:
        turn = stamps / candidate
        vector = np.exp(2j * np.pi * turn)
        mean = vector.mean()
        if abs(mean) < 0.2:
            continue
        off = (turn - np.angle(mean) / (2.0 * np.pi) + 0.5) % 1.0 - 0.5
        near = np.abs(off) <= _MEMBER_SHARE
        number = np.rint(turn - np.angle(mean) / (2.0 * np.pi)).astype(np.int64)
        distinct = np.unique(number[near]).size
        expected = span / candidate + 1.0
        score = distinct / expected * distinct
        if distinct >= _MIN_MEMBERS and distinct / expected >= _STEADY and score > best_score:
            best_score, best = score, (candidate, 0.0, near)
    if best is None:
        return None
    return _refined(stamps, best[0], best[2])


def _refined(stamps: Doubles, period: float, near: npt.NDArray[np.bool_]) -> tuple[float, float, npt.NDArray[np.bool_]]:
    """Least squares of period and phase; of two packets in one period the nearer one is a member."""
    members = near
    jitter = 0.0
    for _ in range(3):
        chosen = stamps[members]
        number = np.rint((chosen - chosen[0]) / period)
        period, phase = (float(value) for value in np.polyfit(number, chosen, 1))
        turn = (stamps - phase) / period
        nearest = np.rint(turn)
        off = np.abs(turn - nearest)
        members = off <= _MEMBER_SHARE
        for value in np.unique(nearest[members]):
            rivals = np.flatnonzero(members & (nearest == value))
            members[rivals] = False
            members[rivals[np.argmin(off[rivals])]] = True
        jitter = 2.0 * float(np.median(off[members])) * period  # of a uniform displacement; those moved by the minimum gap do not count
    return period, min(jitter, 0.49 * period), members
