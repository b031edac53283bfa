"""Rules for the directions of points: those of the published pattern of the model, which runs on and does not come again.

Where the pattern is at a stamp of 0 is not known of real units, so the phases of both rotations are fitted, once half a second: first by a search, then from the
phases that follow from the former ones.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.families.livox.interface.keys import HAP_PORTS, MID360_PORTS
from hilsim.families.livox.patterns import HAP, MID360, Figures, orders_of
from hilsim.families.livox.points import decode_livox
from hilsim.families.livox.protocol.points import CARTESIAN_CM, POINTS, DataHeader
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity
from hilsim.read.analysis.decode import batch_of
from hilsim.units import NS_PER_S

PATTERN = Rule(id="livox.pattern", severity=Severity.ERROR, packets=8)
REPEATS = Rule(id="livox.repeats", severity=Severity.ERROR, packets=8)

INTERVAL_NS = 100
_SPAN_NS = 5_280_000
_PERIOD_NS = NS_PER_S // 2
_FEWEST, _TRIED = 100, 100
_MAX_RMS_DEG = 0.3
_NEAREST_M = {CARTESIAN_CM: 4.0}
_MAX_DRIFT, _MAX_TURNS = 3e-4, 0.03
_SEARCHED, _SEARCHED_BOTH = 96, 40
_BY_PORT = {MID360_PORTS.points: ("Mid-360", MID360), HAP_PORTS.points: ("HAP", HAP)}
_Doubles = npt.NDArray[np.float64]


def directions_deg(figures: Figures, line: int, slow: _Doubles, fast: _Doubles) -> tuple[_Doubles, _Doubles]:
    """Elevation and azimuth of a line at phases in turns, ``float64[n]``; azimuth counter-clockwise from ahead, of no range."""
    orders = np.array([*orders_of(figures.reach)], float)
    angle = 2.0 * np.pi * (np.outer(fast, orders[:, 0]) + np.outer(slow, orders[:, 1]))
    up, round_ = figures.lines[line, :, :, 0] @ np.cos(angle).T + figures.lines[line, :, :, 1] @ np.sin(angle).T
    return up, round_ + 360.0 * figures.advance * fast


def rates_hz(figures: Figures) -> tuple[float, float]:
    """Turns a second of the slow and the fast rotation."""
    return figures.slow_uhz * 1e-6, figures.fast_uhz * 1e-6


class _Shots(NamedTuple):
    """Shots with a return.

    Attributes:
        figures: Pattern that they may lie on.
        line: ``float64[n]``.
        time_s: ``float64[n]``, time since the first packet.
        elevation_deg: ``float64[n]``.
        azimuth_deg: ``float64[n]``, counter-clockwise from ahead.
    """

    figures: Figures
    line: _Doubles
    time_s: _Doubles
    elevation_deg: _Doubles
    azimuth_deg: _Doubles

    def off_deg(self, slow: float, fast: float) -> _Doubles:
        """``float64[2, n]``: how far the pattern with these phases at the first packet is beside each shot, upwards and across."""
        off, (slow_hz, fast_hz) = np.zeros((2, self.line.size)), rates_hz(self.figures)
        for line in range(len(self.figures.lines)):
            rows = self.line == line
            up, azimuth = directions_deg(self.figures, line, slow + slow_hz * self.time_s[rows], fast + fast_hz * self.time_s[rows])
            across = (azimuth - self.azimuth_deg[rows] + 180.0) % 360.0 - 180.0
            off[0, rows], off[1, rows] = up - self.elevation_deg[rows], across * np.cos(np.radians(self.elevation_deg[rows]))
        return off

    def searched(self) -> tuple[float, float]:
        """Phases that fit best, of a grid; where azimuth advances with the fast rotation, its phases follow from the azimuths."""
        few = _Shots(self.figures, *(each[:: max(self.line.size // _TRIED, 1)] for each in self[1:]))
        both = [float(phase) for phase in np.arange(_SEARCHED_BOTH) / _SEARCHED_BOTH]
        pairs = [(slow, fast) for slow in both for fast in both]
        if self.figures.advance:
            slow_hz, fast_hz = rates_hz(self.figures)
            pairs = []
            for slow in np.arange(_SEARCHED) / _SEARCHED:
                _, azimuth = directions_deg(self.figures, 1, slow + slow_hz * few.time_s, fast_hz * few.time_s)
                pairs.append((float(slow), float(np.angle(np.exp(1j * np.radians(few.azimuth_deg - azimuth)).sum()) / (2.0 * np.pi))))
        return min(pairs, key=lambda phases: float(np.square(few.off_deg(*phases)).mean()))

    def refined(self, slow: float, fast: float) -> tuple[float, float, float]:
        """Phases by least squares from near ones, and what is left, degrees rms."""
        small = 1e-6
        for _ in range(6):
            off = self.off_deg(slow, fast).ravel()
            slopes = np.stack([self.off_deg(slow + small, fast).ravel() - off, self.off_deg(slow, fast + small).ravel() - off], axis=1) / small
            by = np.linalg.lstsq(slopes, -off, rcond=None)[0]
            slow, fast = slow + float(np.clip(by[0], -0.02, 0.02)), fast + float(np.clip(by[1], -0.02, 0.02))
        return slow, fast, float(np.sqrt(np.square(self.off_deg(slow, fast)).sum(axis=0).mean()))


class PatternTopic:
    """Directions of one sensor's points.

    Attributes:
        rms_deg: What was left of the last fit; NaN before.
        fits: Number of fits.
    """

    def __init__(self) -> None:
        self.rms_deg, self.fits = float("nan"), 0
        self._waiting: list[bytes] = []
        self._nearest_m, self._begin_ns = 0.0, 0
        self._last: tuple[int, float, float] | None = None
        self._next_ns = 0

    def restart(self) -> None:
        """Forget where the pattern was: stamps have begun anew."""
        self._waiting, self._last, self._next_ns = [], None, 0

    def look(self, payload: bytes, port: int, header: DataHeader, place: Place, log: FindingLog) -> None:
        """Take a point packet; its source port tells which pattern it must be of."""
        if header.stamp_ns < self._next_ns or port not in _BY_PORT:
            return
        self._begin_ns = self._begin_ns if self._waiting else header.stamp_ns
        self._waiting.append(payload)
        self._nearest_m = max(_NEAREST_M.get(header.data_type, 0.5), self._nearest_m)
        if header.stamp_ns - self._begin_ns < _SPAN_NS:
            return
        waiting, self._waiting, self._next_ns = self._waiting, [], header.stamp_ns + _PERIOD_NS
        points = decode_livox(batch_of(waiting))
        points = points[points["range"] > self._nearest_m]
        self._nearest_m = 0.0
        if points.size < _FEWEST:
            return
        model, figures = _BY_PORT[port]
        begin_ns = int(points["time_ns"].min())
        time_ns = points["time_ns"] - begin_ns  # evenly spread as they are decoded; the lines of a Mid-360 fire at once
        if figures is MID360:
            time_ns = time_ns - points["ring"] * (header.interval * INTERVAL_NS / (POINTS - 1))
        elevation = np.degrees(np.arcsin(points["z"] / points["range"]))
        shots = _Shots(figures, points["ring"].astype(float), time_ns / NS_PER_S, elevation, -points["azimuth"].astype(float))
        self._judge(shots, begin_ns, model, place, log)

    def _judge(self, shots: _Shots, begin_ns: int, model: str, place: Place, log: FindingLog) -> None:
        expected, (slow_hz, fast_hz) = None, rates_hz(shots.figures)
        if self._last is not None:
            since_s = (begin_ns - self._last[0]) / NS_PER_S
            expected = self._last[1] + slow_hz * since_s, self._last[2] + fast_hz * since_s
        slow, fast, rms_deg = shots.refined(*(expected or shots.searched()))
        if expected is not None and rms_deg > _MAX_RMS_DEG:
            slow, fast, rms_deg = shots.refined(*shots.searched())
        self.rms_deg, self.fits = rms_deg, self.fits + 1
        if rms_deg > _MAX_RMS_DEG:
            log.report(PATTERN, f"points must lie on the pattern of a {model} within {_MAX_RMS_DEG} degrees, got {rms_deg:.2f} rms", place)
            self._last = None
            return
        if expected is not None and self._last is not None:
            since_s = (begin_ns - self._last[0]) / NS_PER_S
            jump = max(abs((now - then + 0.5) % 1.0 - 0.5) for now, then in zip((slow, fast), expected, strict=True))
            if jump > _MAX_TURNS + _MAX_DRIFT * abs(fast_hz) * since_s:
                text = f"the pattern must run on, got a leap of {jump:.3f} turns within {since_s:.2f} s: is a table played in a loop?"
                log.report(REPEATS, text, place)
        self._last = begin_ns, slow, fast
