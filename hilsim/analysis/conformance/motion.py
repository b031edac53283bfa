"""Angle is rate times time: how the head turned between packets, by the azimuths and by the stamps together.

The rate is the head's own, measured around each packet, so that units whose speed drifts are judged by what they do. From one packet's first
azimuth to the next one's the head must have turned by the rate times the difference of their stamps, whatever lies between: nothing, lost packets,
or the part of a turn outside the field of view, in which nothing is fired. A leap inside a packet is such a part, and the stamps must leave time for it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilsim.analysis.velodyne_stream import whole_cycles
from hilsim.protocols.velodyne.models import STEP_TOLERANCE_US
from hilsim.protocols.velodyne.steps import wrapped_cdeg
from hilsim.units import TURN_CDEG

LEAP_CDEG = 10.0
"""Reading noise and rate jitter together stay within 4.6 hundredths of a degree of the head's own rate in six public captures at 600 to 1200 rpm."""
_AROUND = 7  # packets on either side that the rate is taken from: 20 ms of a VLP-16
_HISTORY = 2048  # packets whose rates give the drift of the speed
_LEAST_RATE_JITTER = 0.003  # speed within 25 packets, units at 600 rpm: 0.09 to 0.2 %
_MOST_DOUBT_CDEG = 6000.0  # beyond that, the head's angle is too uncertain
_LONGEST_US = 1_000_000  # after a longer silence the sensor may have been switched off meanwhile
_FEWEST_FOR_CYCLE = 15


@dataclass(frozen=True, kw_only=True)
class Motion:
    """How the head turned during a block of packets.

    Attributes:
        step_cdeg: ``float64[n]``, from azimuth to azimuth inside a packet, as around each packet.
        is_leap: ``bool[n, m - 1]``: between these two azimuths inside a packet the head went farther, or less far, than in their time.
        is_pause: ``bool[n]``: nothing was fired for part of the time since the packet before, and the azimuths agree.
        is_wrong: ``bool[n]``: the angle since the packet before is not that of the time since.
        turned_cdeg: ``float64[n]``, that angle, in 0 .. 360 degrees.
        due_cdeg: ``float64[n]``, what it should be, in 0 .. 360 degrees.
        due_us: ``int64[n]``, in what time.
        is_hasty: ``bool[n]``: the packet before leaps inside, and the stamps leave no time for it.
        leap_column: ``int64[n]``, the azimuth at which the packet before leaps, where ``is_hasty``.
        leap_cdeg: ``float64[n]``, how far.
        is_backward: ``bool[n]``: the head turns backwards.
    """

    step_cdeg: npt.NDArray[np.float64]
    is_leap: npt.NDArray[np.bool_]
    is_pause: npt.NDArray[np.bool_]
    is_wrong: npt.NDArray[np.bool_]
    turned_cdeg: npt.NDArray[np.float64]
    due_cdeg: npt.NDArray[np.float64]
    due_us: npt.NDArray[np.int64]
    is_hasty: npt.NDArray[np.bool_]
    leap_column: npt.NDArray[np.int64]
    leap_cdeg: npt.NDArray[np.float64]
    is_backward: npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class _Before:
    """What must be known of the packet before a block."""

    azimuth: float
    leap_cdeg: float
    leap_column: int
    cycle_us: float


class Head:
    """Follows the head of one sensor from block to block."""

    def __init__(self) -> None:
        self._before: _Before | None = None
        self._rates = np.zeros(0)  # of the packets before, hundredths of a degree a microsecond

    def forget(self) -> None:
        """The next packet need not go on from the last one: its sensor was set to something else."""
        self._before = None

    def follow(self, azimuth: npt.NDArray[np.int64], step_us: npt.NDArray[np.int64], *, cycle_us: float, sequence_us: float) -> Motion:
        """Judge packets that follow each other.

        Args:
            azimuth: ``int64[n, m]``, 0.01 deg, of the groups of firings of each packet.
            step_us: ``int64[n]``, stamp minus the stamp before; the first packet ever has none.
            cycle_us: The model's time between packets.
            sequence_us: The model's time between firing sequences: pauses are whole numbers of it.
        """
        groups = azimuth.shape[1]
        inside = wrapped_cdeg(np.diff(azimuth, axis=1).astype(np.float64))
        cycle_us = _own_cycle_us(step_us, cycle_us)
        rate = self._local_rates(inside, groups / cycle_us)
        step_cdeg = rate * cycle_us / groups
        excess = wrapped_cdeg(inside - step_cdeg[:, None])
        is_leap = np.abs(excess) > LEAP_CDEG
        leap_cdeg = np.where(is_leap, excess % TURN_CDEG, 0.0).sum(axis=1)
        before, knows = self._predecessors(azimuth, leap_cdeg, is_leap.argmax(axis=1), cycle_us)
        first, leap_before, column_before, cycle_before = before

        turned = azimuth[:, 0] - first
        due = rate * step_us
        missing_us = step_us - cycle_before
        doubt = LEAP_CDEG + self._rate_jitter() * np.abs(rate * missing_us)
        agrees = np.abs(wrapped_cdeg(turned - due)) <= doubt
        has_time = (leap_before == 0.0) | (step_us <= 0) | (leap_before <= rate * missing_us + doubt)
        has_leap = (leap_before > 0.0) | (np.abs(wrapped_cdeg(turned - rate * cycle_before)) > LEAP_CDEG)
        whole = is_whole(step_us, cycle_us)
        is_pause = agrees & has_time & has_leap & (missing_us > 0.5 * sequence_us) & is_whole(step_us, sequence_us) & (~whole | (leap_before > 0.0))
        is_known = knows & (doubt < _MOST_DOUBT_CDEG) & (np.abs(step_us) <= _LONGEST_US)
        # stamps that are no whole number of cycles with a head that does not leap inside the packet are the clock's fault, which has its own rules
        is_hasty = is_known & ~has_time
        is_wrong = is_known & ~agrees & ~is_hasty & (whole | (leap_before > 0.0))
        return Motion(
            step_cdeg=step_cdeg,
            is_leap=is_leap,
            is_pause=knows & is_pause,
            is_wrong=is_wrong,
            turned_cdeg=turned % TURN_CDEG,
            due_cdeg=due % TURN_CDEG,
            due_us=step_us,
            is_hasty=is_hasty,
            leap_column=column_before + 1,
            leap_cdeg=leap_before,
            is_backward=step_cdeg < -1.0,
        )

    def _local_rates(self, inside: npt.NDArray[np.float64], per_us: float) -> npt.NDArray[np.float64]:
        """Rate around each packet, ``float64[n]``: the median over its neighbours' azimuth rates, leaps excluded."""
        middle = np.median(inside, axis=1, keepdims=True)
        usual = np.abs(inside - middle) <= LEAP_CDEG
        own = np.where(usual, inside, 0.0).sum(axis=1) / np.maximum(usual.sum(axis=1), 1) * per_us
        earlier = self._rates[-_AROUND:]
        padded = np.pad(np.concatenate((earlier, own)), (_AROUND - len(earlier), _AROUND), mode="edge")
        self._rates = np.concatenate((self._rates, own))[-_HISTORY:]
        return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * _AROUND + 1), axis=1))

    def _rate_jitter(self) -> float:
        """How much the speed drifts, as a share of it, as far as seen."""
        if len(self._rates) <= 2 * _AROUND:
            return _LEAST_RATE_JITTER
        smooth = np.median(np.lib.stride_tricks.sliding_window_view(self._rates, 2 * _AROUND + 1), axis=1)
        low, middle, high = np.percentile(smooth, (1.0, 50.0, 99.0))
        return _LEAST_RATE_JITTER + float((high - low) / max(abs(middle), 1e-6))

    def _predecessors(
        self, azimuth: npt.NDArray[np.int64], leap_cdeg: npt.NDArray[np.float64], column: npt.NDArray[np.int64], cycle_us: float
    ) -> tuple[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.float64]], npt.NDArray[np.bool_]]:
        """First azimuth, leap inside, its column and cycle of the packet before each; and whether there is one."""
        last = self._before or _Before(azimuth=float(azimuth[0, 0]), leap_cdeg=0.0, leap_column=0, cycle_us=cycle_us)
        knows = np.full(len(azimuth), fill_value=True)
        knows[0] = self._before is not None
        self._before = _Before(azimuth=float(azimuth[-1, 0]), leap_cdeg=float(leap_cdeg[-1]), leap_column=int(column[-1]), cycle_us=cycle_us)
        return (
            np.concatenate(([last.azimuth], azimuth[:-1, 0])),
            np.concatenate(([last.leap_cdeg], leap_cdeg[:-1])),
            np.concatenate(([last.leap_column], column[:-1])),
            np.concatenate(([last.cycle_us], np.full(len(azimuth) - 1, cycle_us))),
        ), knows


def _own_cycle_us(step_us: npt.NDArray[np.int64], cycle_us: float) -> float:
    """The packets' own cycle where it differs from the model's (a rule of the stamps reports that)."""
    if len(step_us) <= _FEWEST_FOR_CYCLE:
        return cycle_us
    median_us = float(np.median(step_us))
    return cycle_us if median_us <= 0.0 or is_whole(np.array([median_us]), cycle_us)[0] else median_us


def is_whole(step_us: npt.NDArray[np.int64] | npt.NDArray[np.float64], unit_us: float) -> npt.NDArray[np.bool_]:
    """Whether steps are whole numbers of a unit (0 and backwards too), as far as a steered clock keeps it."""
    _, off_us = whole_cycles(step_us, unit_us)
    return np.asarray(off_us <= STEP_TOLERANCE_US + 1e-4 * np.abs(step_us))
