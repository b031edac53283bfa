"""Motion of the head between packets, by azimuths and stamps together: the angle must be rate times time.

The rate is measured around each packet, so that units whose speed drifts are judged by their own rate. From one packet's first azimuth to the next one's
the head must have turned by the rate times the difference of their stamps, also across lost packets and across the part of a turn outside the field of
view, in which no laser fires. A leap inside a packet is such a part, and the stamps must leave time for it.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.protocol.models import STEP_TOLERANCE_US
from hilsim.families.velodyne.protocol.steps import wrapped_cdeg
from hilsim.families.velodyne.stream import SeenTurn, usual_steps_cdeg, whole_cycles
from hilsim.units import TURN_CDEG

LEAP_CDEG = 10.0
"""Smallest leap: noise of readings and rate jitter together are at most 4.6 hundredths of a degree in six public captures at 600 to 1200 rpm."""
_AROUND = 7  # packets on either side that give the rate: 20 ms of a VLP-16
_AROUND_CYCLE_US = 1327.104  # a VLP-16's; packets with few azimuths, as a VLS-128's, are taken for as long
_FEW_AZIMUTHS = 6
_HISTORY = 2048  # number of packets whose rates give the drift of the speed
_MIN_RATE_JITTER = 0.003  # speed jitter within 25 packets, units at 600 rpm: 0.09 to 0.2 %
_READING_CDEG = 1.5  # error of an angle between two azimuths; the few that a narrow view leaves in a packet give a coarse rate
_MAX_DOUBT_CDEG = 6000.0  # above this, the head's angle is too uncertain
_LONGEST_US = 1_000_000  # after a longer silence the sensor may have been switched off
_MIN_FOR_CYCLE = 15


@dataclass(frozen=True, kw_only=True)
class Motion:
    """Motion of the head during a block of packets."""

    step_cdeg: Annotated[npt.NDArray[np.float64], "``float64[n]``, step from azimuth to azimuth around each packet."]
    is_leap: Annotated[npt.NDArray[np.bool_], "``bool[n, m - 1]``, whether the step between two azimuths inside a packet does not match their time."]
    is_pause: Annotated[
        npt.NDArray[np.bool_], "``bool[n]``, whether no laser fired for part of the time since the former packet, with matching azimuths."
    ]
    may_be_pause: Annotated[npt.NDArray[np.bool_], "``bool[n]``, whether that is a pause or a loss of packets, which the sensor's later turns show."]
    end_before_cdeg: Annotated[npt.NDArray[np.int64], "``int64[n]``, last azimuth of the former packet."]
    is_clear: Annotated[
        npt.NDArray[np.bool_],
        "``bool[n]``, whether there is neither a leap between the firings of its stamp and of the former one, nor a part of the turn without firings.",
    ]
    is_wrong: Annotated[npt.NDArray[np.bool_], "``bool[n]``, whether the angle since the former packet does not match the time."]
    turned_cdeg: Annotated[npt.NDArray[np.float64], "``float64[n]``, angle since the former packet, in 0 .. 360 degrees."]
    due_cdeg: Annotated[npt.NDArray[np.float64], "``float64[n]``, expected angle since the former packet, in 0 .. 360 degrees."]
    due_us: Annotated[npt.NDArray[np.int64], "``int64[n]``, time since the former packet."]
    is_hasty: Annotated[
        npt.NDArray[np.bool_],
        "``bool[n]``, whether there is a leap inside a packet, between the firings of its stamp and of the former one, for which they leave no time.",
    ]
    leap_row: Annotated[npt.NDArray[np.int64], "``int64[n]``, index of the packet that has that leap; -1: the last one of the former block."]
    leap_column: Annotated[npt.NDArray[np.int64], "``int64[n]``, index of the azimuth at which it leaps, where ``is_hasty``."]
    leap_cdeg: Annotated[npt.NDArray[np.float64], "``float64[n]``, size of that leap."]
    is_backward: Annotated[npt.NDArray[np.bool_], "``bool[n]``, whether the head turns backwards."]


_PACKET_DTYPE = np.dtype([("stamped_cdeg", "f8"), ("end_cdeg", "i8"), ("leap_cdeg", "f8"), ("leap_column", "i8"), ("cycle_us", "f8")])
"""Azimuth at the stamp of a packet, its last azimuth, size and column of the leap inside it, and its cycle."""


class Head:
    """Motion of one sensor's head from block to block.

    Attributes:
        seen: Degrees of the turn at which the sensor has fired.
    """

    def __init__(self) -> None:
        self._before: Any = None  # ``_PACKET_DTYPE``
        self.seen = SeenTurn()
        self._rates = np.zeros(0)  # rates of former packets, hundredths of a degree a microsecond
        self._around = _AROUND

    def forget(self) -> None:
        """Forget the last packet, because the sensor's settings have changed."""
        self._before = None

    def follow(
        self,
        azimuth: npt.NDArray[np.int64],
        step_us: npt.NDArray[np.int64],
        *,
        cycle_us: float,
        sequence_us: float,
        stamps_last: bool = False,
        tolerance_us: float = STEP_TOLERANCE_US,
    ) -> Motion:
        """Judge consecutive packets.

        Args:
            azimuth: ``int64[n, m]``, azimuths of the groups of firings of each packet, 0.01 deg.
            step_us: ``int64[n]``, stamp minus the former stamp; ignored for the first packet of a stream.
            cycle_us: Time between packets of the model.
            sequence_us: Time between firing sequences of the model, of which pauses are multiples.
            stamps_last: Whether stamps name a packet's last firing, not its first.
            tolerance_us: Largest difference of a step of the stamps from whole cycles, as ``Model.step_tolerance_us``.
        """
        groups = azimuth.shape[1]
        inside = wrapped_cdeg(np.diff(azimuth, axis=1).astype(np.float64))
        if groups < _FEW_AZIMUTHS:
            self._around = max(round(_AROUND * _AROUND_CYCLE_US / cycle_us), _AROUND)
        rate = self._local_rates(inside if groups > 1 else self._between(azimuth[:, 0], step_us, cycle_us), groups / cycle_us)
        step_cdeg = rate * cycle_us / groups
        excess = wrapped_cdeg(inside - step_cdeg[:, None])
        is_leap = np.abs(excess) > LEAP_CDEG
        leap_cdeg = np.where(is_leap, excess % TURN_CDEG, 0.0).sum(axis=1)
        stamped = azimuth[:, -1 if stamps_last else 0]
        column = is_leap.argmax(axis=1) if groups > 1 else np.zeros(len(azimuth), dtype=np.int64)
        knows = np.full(len(azimuth), fill_value=True)
        knows[0] = self._before is not None
        before = self._predecessors(stamped, azimuth[:, -1], leap_cdeg, column, cycle_us)
        end_before, leap_before, column_before, cycle_before = (before[name] for name in ("end_cdeg", "leap_cdeg", "leap_column", "cycle_us"))
        if stamps_last:
            leap_before, column_before = leap_cdeg, column
        self.seen.note(azimuth)
        is_unseen = self.seen.is_unseen(end_before, azimuth[:, 0])
        is_dark = is_unseen & self.seen.has_turned
        is_unbroken = leap_before == 0.0
        own_us = _own_cycle_us(step_us[knows & is_unbroken & ~is_dark], cycle_us, scatters=tolerance_us > STEP_TOLERANCE_US)
        rate, cycle_before, sequence_us = rate * cycle_us / own_us, cycle_before * own_us / cycle_us, sequence_us * own_us / cycle_us
        cycle_us = own_us

        turned = stamped - before["stamped_cdeg"]
        due = rate * step_us
        missing_us = step_us - cycle_before
        read_off = np.where(is_unbroken, 0.0, _READING_CDEG / np.maximum(np.abs(step_cdeg) * (~is_leap).sum(axis=1), 1.0))
        is_longer = missing_us > 0.5 * sequence_us
        scatter_us = np.where(is_longer, tolerance_us - STEP_TOLERANCE_US, 0.0)
        doubt = LEAP_CDEG + (self._rate_jitter() + read_off) * np.abs(rate * missing_us) + np.abs(rate) * scatter_us
        agrees = np.abs(wrapped_cdeg(turned - due)) <= doubt
        has_time = is_unbroken | (step_us <= 0) | (leap_before <= rate * missing_us + doubt)
        has_leap = (leap_before > 0.0) | (np.abs(wrapped_cdeg(turned - rate * cycle_before)) > LEAP_CDEG)
        whole = is_whole(step_us, cycle_us, tolerance_us)
        may_pause = agrees & has_time & has_leap & is_longer & is_whole(step_us, sequence_us, tolerance_us)
        is_within_turn = due < TURN_CDEG + doubt
        is_pause = may_pause & (~whole | ~is_unbroken | (is_dark & is_within_turn))
        is_known = knows & (doubt < _MAX_DOUBT_CDEG) & (np.abs(step_us) <= _LONGEST_US)
        # a step of the stamps that is no whole number of cycles, without a leap inside the packet, is a fault of the clock, which has its own rules
        is_hasty = is_known & ~has_time
        is_wrong = is_known & ~agrees & ~is_hasty & (whole | ~is_unbroken)
        return Motion(
            step_cdeg=step_cdeg,
            is_leap=is_leap,
            is_pause=knows & is_pause,
            may_be_pause=knows & may_pause & ~is_pause & is_unseen & is_within_turn,
            end_before_cdeg=end_before,
            is_clear=is_unbroken & ~is_dark,
            is_wrong=is_wrong,
            turned_cdeg=turned % TURN_CDEG,
            due_cdeg=due % TURN_CDEG,
            due_us=step_us,
            is_hasty=is_hasty,
            leap_row=np.arange(len(azimuth)) - (0 if stamps_last else 1),
            leap_column=column_before + 1,
            leap_cdeg=leap_before,
            is_backward=step_cdeg < -1.0,
        )

    def _between(self, azimuth: npt.NDArray[np.int64], step_us: npt.NDArray[np.int64], cycle_us: float) -> npt.NDArray[np.float64]:
        """Steps since the former packet of packets with one azimuth, ``float64[n, 1]``; the usual one where that was not a cycle before."""
        first = azimuth[0] if self._before is None else float(self._before["stamped_cdeg"])
        step = wrapped_cdeg(np.diff(azimuth.astype(np.float64), prepend=first))
        is_next = np.abs(step_us - cycle_us) <= STEP_TOLERANCE_US
        is_next[0] &= self._before is not None
        return np.asarray(np.where(is_next, step, np.median(step[is_next]) if is_next.any() else 0.0)[:, None])

    def _local_rates(self, inside: npt.NDArray[np.float64], per_us: float) -> npt.NDArray[np.float64]:
        """Rate around each packet, ``float64[n]``: the median of its neighbours' azimuth rates without leaps."""
        middle = usual_steps_cdeg(inside)[:, None]
        usual = np.abs(inside - middle) <= LEAP_CDEG
        own = np.where(usual, inside, 0.0).sum(axis=1) / np.maximum(usual.sum(axis=1), 1) * per_us
        earlier = self._rates[-self._around :]
        missing = (self._around - len(earlier), self._around)
        if len(own) > self._around:
            padded = np.pad(np.concatenate((earlier, own)), missing, mode="reflect")
        else:  # a single coarse rate must not count many times
            padded = np.pad(np.concatenate((earlier, own)), missing, mode="edge" if self._around == _AROUND else "mean")
        self._rates = np.concatenate((self._rates, own))[-_HISTORY:]
        return self._smooth(padded)

    def _smooth(self, rates: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Usual rate around each but the first and last packets: the median, or of packets with few azimuths, whose rates are coarse, the mean."""
        around = np.lib.stride_tricks.sliding_window_view(rates, 2 * self._around + 1)
        return np.asarray(np.median(around, axis=1) if self._around == _AROUND else around.mean(axis=1))

    def _rate_jitter(self) -> float:
        """Relative drift of the speed so far."""
        if len(self._rates) <= 2 * self._around:
            return _MIN_RATE_JITTER
        low, middle, high = np.percentile(self._smooth(self._rates), (1.0, 50.0, 99.0))
        return _MIN_RATE_JITTER + float((high - low) / max(abs(middle), 1e-6))

    def _predecessors(self, *values: Any) -> npt.NDArray[Any]:
        """The packet before each, ``_PACKET_DTYPE[n]``, of packets with these values; before the first one is itself, without a leap."""
        packets = np.zeros(len(values[0]) + 1, _PACKET_DTYPE)
        for name, value in zip(_PACKET_DTYPE.names or (), values, strict=True):
            packets[name][1:] = value
        stamped_cdeg, cycle_us = packets["stamped_cdeg"][1], packets["cycle_us"][1]
        packets[0] = (stamped_cdeg, stamped_cdeg, 0.0, 0, cycle_us) if self._before is None else self._before
        self._before = packets[-1].copy()
        return packets[:-1]


def _own_cycle_us(step_us: npt.NDArray[np.int64], cycle_us: float, *, scatters: bool) -> float:
    """Cycle of the packets by their stamps: long pauses are multiples of it, and a clock's deviation adds up in them.

    The model's, if there are too few steps, or if stamps that scatter do not contradict it. Another cycle than the model's is reported by a rule of the stamps.
    """
    if len(step_us) <= _MIN_FOR_CYCLE:
        return cycle_us
    median_us = float(np.median(step_us))
    if median_us > 0.0 and not is_whole(np.array([median_us]), cycle_us)[0]:
        return median_us
    near = step_us[np.abs(step_us - cycle_us) < STEP_TOLERANCE_US]
    return cycle_us if scatters or len(near) <= _MIN_FOR_CYCLE else float(np.mean(near))


def is_whole(
    step_us: npt.NDArray[np.int64] | npt.NDArray[np.float64], unit_us: float, tolerance_us: float = STEP_TOLERANCE_US
) -> npt.NDArray[np.bool_]:
    """Whether steps are multiples of a unit, including 0 and negative ones, within the accuracy of a steered clock or a wider tolerance."""
    _, off_us = whole_cycles(step_us, unit_us)
    return np.asarray(off_us <= tolerance_us + 1e-4 * np.abs(step_us))
