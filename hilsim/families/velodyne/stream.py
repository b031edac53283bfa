"""Steps between Velodyne data packets of one sensor, which every reader of a stream needs.

The data packet has no sequence number. Missing packets are found by the stamps: neighbours are one cycle apart, whose
length depends on model and return mode. A step of azimuth farther than the head turns from block to block is a gap, in which nothing was fired. Where such a
gap lies between two packets, only the sensor's other turns distinguish it from lost packets (``SeenTurn``).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.errors import CaptureError
from hilsim.families.velodyne.protocol.data import DATA_PACKET_DTYPE, Product, ReturnMode
from hilsim.families.velodyne.protocol.models import MODELS, STEP_TOLERANCE_US, VLS_128, Model, identify_model, vls_128_variant
from hilsim.families.velodyne.protocol.steps import GAP_CDEG, wrapped_cdeg, wrapped_us
from hilsim.read.analysis.comparison.histogram import Histogram
from hilsim.units import TURN_CDEG

CLOCK_DOUBT_RATIO = 3e-4
"""Largest relative error of a sensor's cycle: twice that of the worst clock in public captures (141 ppm)."""

_DEG_CDEG = 100
_DEGREES = TURN_CDEG // _DEG_CDEG
_MIN_TURNS = 2
_NARROW_GAP = 1.5  # steps of a block
_NARROW_GAP_CDEG = 20
_SHORTEST_STRETCH = 32


def stacked_packets(payloads: Iterable[bytes]) -> npt.NDArray[Any]:
    """Join payloads of 1206 bytes each to ``DATA_PACKET_DTYPE[n]``, without checking flags."""
    return np.frombuffer(b"".join(payloads), dtype=DATA_PACKET_DTYPE)


def measured_model(byte: int, product: int, step_us: float | None, name: str) -> tuple[Model, ReturnMode]:
    """Model and return mode of packets, of which the figures of units are known.

    Args:
        byte: Return mode byte.
        product: Product byte.
        step_us: Median of the differences of neighbouring packets' stamps; None where too few are known.
        name: Name of the stream in errors.

    Raises:
        CaptureError: the mode or the model is not known, or no unit of it was measured.
    """
    mode = ReturnMode.find(byte)
    if mode is None:
        raise CaptureError(f"{name}: the return mode must be {', '.join(f'0x{known:02x}' for known in ReturnMode)}, got 0x{byte:02x}")
    if product == Product.VLS_128:
        if mode.is_dual:
            raise CaptureError(f"{name}: a VLS-128 must send one return of each firing, got dual mode, of which no unit was measured")
        return vls_128_variant(step_us, is_dual=False), mode
    model = identify_model(product, step_us, is_dual=mode.is_dual)
    if model not in MODELS:
        known = ", ".join(known.name for known in (*MODELS, VLS_128))
        raise CaptureError(f"{name}: the model must be {known}, got product byte 0x{product:02x}")
    return model, mode


def stamp_steps_us(stamp_us: npt.NDArray[np.int64], before_us: int | None) -> npt.NDArray[np.int64]:
    """Each stamp past the hour minus the former one, ``int64[n]``, in -half an hour .. half an hour; 0 without a former one."""
    return wrapped_us(np.diff(stamp_us, prepend=stamp_us[0] if before_us is None else before_us))


def whole_cycles(
    step_us: npt.NDArray[np.int64] | npt.NDArray[np.float64], cycle_us: float | npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Nearest whole number of cycles to each step, ``int64[n]`` (also 0 and negative), and the difference of each step, ``float64[n]``, us."""
    cycles = np.rint(step_us / cycle_us).astype(np.int64)
    return cycles, np.abs(step_us - cycles * cycle_us)


def usual_steps_cdeg(step_cdeg: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Step of the head inside each packet, ``float64[n]``, from all its steps, ``[n, m]``: the median without leaps, of which a narrow view has many.

    Of an even number of steps it is the smaller of the two in the middle, because one of two may be a narrow gap.
    """
    forward = np.where((step_cdeg > 0) & (step_cdeg <= GAP_CDEG), step_cdeg, np.inf)
    without = np.isinf(forward).all(axis=1)
    forward[without] = step_cdeg[without]
    middle = (np.isfinite(forward).sum(axis=1) - 1) // 2
    return np.asarray(np.take_along_axis(np.sort(forward, axis=1), middle[:, None], axis=1)[:, 0])


class SeenTurn:
    """Degrees of the turn at which a sensor has fired so far; it never fires outside its field of view, which begins and ends with whole degrees."""

    def __init__(self) -> None:
        self._seen = np.zeros(_DEGREES, np.bool_)
        self._turns = 0
        self._last_cdeg = 0

    @property
    def has_turned(self) -> bool:
        """Whether the head has passed each degree, so that those it has fired at are the field of view."""
        return self._turns >= _MIN_TURNS

    def note(self, azimuth: npt.NDArray[np.int64]) -> None:
        """Add the azimuths of consecutive packets, ``int64[n, m]``, 0.01 deg."""
        self._seen[azimuth.ravel() % TURN_CDEG // _DEG_CDEG] = True
        self._turns += int((np.diff(azimuth.ravel(), prepend=self._last_cdeg) < 0).sum())
        self._last_cdeg = int(azimuth[-1, -1])

    def is_dark(self, from_cdeg: npt.NDArray[np.int64], to_cdeg: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether there are whole degrees between two azimuths, clockwise, and the sensor never fires at them, ``bool[n]``; False before its second turn."""
        return self.is_unseen(from_cdeg, to_cdeg) & self.has_turned

    def is_unseen(self, from_cdeg: npt.NDArray[np.int64], to_cdeg: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether there are whole degrees between two azimuths, clockwise, and the sensor has fired at none of them so far, ``bool[n]``."""
        first = from_cdeg % TURN_CDEG // _DEG_CDEG + 1
        count = (to_cdeg % TURN_CDEG // _DEG_CDEG - first) % _DEGREES
        seen = np.concatenate(([0], np.cumsum(np.tile(self._seen, 2))))
        is_between = (count > 0) & (count < _DEGREES - 1)  # a step within a degree, or to the next one, passes none
        return np.asarray(is_between & (seen[first + count] == seen[first]))


@dataclass(frozen=True, kw_only=True)
class UnsettledLoss:
    """Packets missing before a sensor's second turn: they are lost, or of a part of the turn without firings, which later turns show."""

    packets: Annotated[int, "Number of packets missing."]
    from_cdeg: Annotated[int, "Azimuth of the last firing before."]
    to_cdeg: Annotated[int, "Azimuth of the first firing after."]

    def is_lost(self, seen: SeenTurn) -> bool:
        """Whether they count as lost by what has been seen of the turn so far."""
        return not seen.is_dark(np.array([self.from_cdeg]), np.array([self.to_cdeg]))[0]


@dataclass(frozen=True, kw_only=True)
class LastPacket:
    """Properties of the packet before a run."""

    stamp_us: Annotated[int, "Stamp of the packet."]
    azimuth: Annotated[npt.NDArray[np.int64], "``int64[12]``, azimuths of its blocks, 0.01 deg."]


@dataclass(frozen=True, kw_only=True)
class AzimuthSteps:
    """Azimuth steps through a run, by *groups* of blocks with one azimuth.

    Attributes:
        azimuth: ``int64[n, m]``, azimuth of each group, 0.01 deg.
        step_cdeg: ``int64[n, m]``, step since the former group, -18000 .. 17999; 0 for a stream's first.
        turned_cdeg: ``int64[n]``, step between the groups that the former packet's stamp and its own one name, in the same range.
        is_gap: ``bool[n, m]``, whether there is a gap before each group: a step larger than any of a head, or inside a packet than those of this head.
        after_gap: ``bool[n]``, whether there is a gap inside a packet between the firings that its stamp and the former one name.
    """

    azimuth: npt.NDArray[np.int64]
    step_cdeg: npt.NDArray[np.int64]
    turned_cdeg: npt.NDArray[np.int64]
    is_gap: npt.NDArray[np.bool_]
    after_gap: npt.NDArray[np.bool_]

    @property
    def has_gap(self) -> npt.NDArray[np.bool_]:
        """Whether each packet has a gap inside, as across the part of the turn outside the field of view, ``bool[n]``."""
        return np.asarray(self.is_gap[:, 1:].any(axis=1))


@dataclass(frozen=True, kw_only=True)
class PacketRun:
    """Data packets of one sensor in the order of their arrival, with the steps between them; build with ``packet_run``."""

    packets: Annotated[npt.NDArray[Any], "``DATA_PACKET_DTYPE[n]``, packets."]
    azimuth: Annotated[npt.NDArray[np.int64], "``int64[n, 12]``, azimuth of each block, 0.01 deg."]
    stamp_us: Annotated[npt.NDArray[np.int64], "``int64[n]``, stamps since the full hour, as in the packets."]
    step_us: Annotated[npt.NDArray[np.int64], "``int64[n]``, step since the former packet, or 0 where ``knows_step`` is False."]
    knows_step: Annotated[npt.NDArray[np.bool_], "``bool[n]``, False for a stream's first packet."]
    before: Annotated[LastPacket | None, "Packet before the run, or None at a stream's start."]

    def last(self) -> LastPacket:
        """Properties of the last packet, for the next run."""
        return LastPacket(stamp_us=int(self.stamp_us[-1]), azimuth=self.azimuth[-1])

    def is_next(self, cycle_us: float) -> npt.NDArray[np.bool_]:
        """Whether each packet is one cycle after the former one, ``bool[n]``."""
        return np.asarray(self.knows_step & (np.abs(self.step_us - cycle_us) <= STEP_TOLERANCE_US))

    def azimuth_steps(self, group_blocks: int = 1, *, stamps_last: bool = False) -> AzimuthSteps:
        """Find azimuth steps.

        Args:
            group_blocks: Blocks for each azimuth: 2 in dual mode, 4 for a VLS-128.
            stamps_last: Whether stamps name a packet's last firing, not its first.
        """
        azimuth = self.azimuth[:, ::group_blocks]
        before = np.full_like(azimuth[0], azimuth[0, 0]) if self.before is None else self.before.azimuth[::group_blocks]
        rows = np.concatenate((before[None], azimuth))
        step_cdeg = wrapped_cdeg(np.diff(rows.ravel(), prepend=rows[0, 0])).reshape(rows.shape)
        is_gap = np.abs(step_cdeg) > GAP_CDEG
        inside = step_cdeg[:, 1:]  # a leap of nearly a turn, in a narrow view, is a step backwards
        is_gap[:, 1:] |= (inside > _NARROW_GAP * usual_steps_cdeg(inside)[:, None] + _NARROW_GAP_CDEG) | (inside < -_NARROW_GAP_CDEG)
        return AzimuthSteps(
            azimuth=azimuth,
            step_cdeg=step_cdeg[1:],
            turned_cdeg=wrapped_cdeg(np.diff(rows[:, -1 if stamps_last else 0])),
            is_gap=is_gap[1:],
            after_gap=np.asarray((is_gap[1:] if stamps_last else is_gap[:-1])[:, 1:].any(axis=1)),
        )


def packet_run(packets: npt.NDArray[Any], before: LastPacket | None) -> PacketRun:
    """Find the steps between packets.

    Args:
        packets: ``DATA_PACKET_DTYPE[n]``, packets, n at least 1.
        before: Packet before them, ``last()`` of the former run; None at a stream's start.
    """
    stamp_us = packets["timestamp"].astype(np.int64)
    knows_step = np.full(len(packets), fill_value=True)
    knows_step[0] = before is not None
    return PacketRun(
        packets=packets,
        azimuth=packets["blocks"]["azimuth"].astype(np.int64),
        stamp_us=stamp_us,
        step_us=stamp_steps_us(stamp_us, None if before is None else before.stamp_us),
        knows_step=knows_step,
        before=before,
    )


@dataclass(frozen=True, kw_only=True)
class ModelPackets:
    """Consecutive data packets of one sensor, whose model and mode are known."""

    model: Annotated[Model, "Model of the sensor."]
    is_dual: Annotated[bool, "Whether blocks come in pairs of one azimuth."]
    run: Annotated[PacketRun, "Packets and the steps between them."]
    host_ns: Annotated[npt.NDArray[np.int64], "``int64[n]``, capture times."]
    host_step_ns: Annotated[npt.NDArray[np.int64], "``int64[n]``, capture time minus that of the former packet; 0 for the stream's first packet."]

    @property
    def cycle_us(self) -> float:
        """Time between packets of the model."""
        return self.model.cycle_us(is_dual=self.is_dual)

    @property
    def records(self) -> npt.NDArray[Any]:
        """Channel records of the blocks that hold firings, ``CHANNEL_DTYPE[n, 12, 32]``; ``[n, 8, 32]`` of a VLS-128's dual packets."""
        return np.asarray(self.run.packets["blocks"]["channels"][:, : self.model.used_blocks(is_dual=self.is_dual)])


class StampLines:
    """Straight lines through the stamps of every unbroken stretch of a block: real stamps are an exactly regular clock, truncated to whole microseconds.

    Attributes:
        fitted: Number of packets in fitted stretches.
        residuals: Residuals of the stamps about their line, us.
    """

    def __init__(self) -> None:
        self.fitted = 0
        self.residuals = Histogram(first=-4.0, width=0.02, bins=401)
        self._nominal_us = float("nan")
        self._square_sum = self._spread = self._weighted_ppm = 0.0

    def add(self, cycles: npt.NDArray[np.int64], step_us: npt.NDArray[np.int64], goes_on: npt.NDArray[np.bool_], nominal_us: float) -> None:
        """Add a block.

        Args:
            cycles: ``int64[n]``, whole cycles since the former packet.
            step_us: ``int64[n]``, step of the stamp since the former packet.
            goes_on: ``bool[n]``, whether a packet continues the stretch of the former one.
            nominal_us: Cycle of the model.
        """
        self._nominal_us = nominal_us
        for start, stop in pairwise([0, *(np.flatnonzero(~goes_on[1:]) + 1).tolist(), len(cycles)]):
            if stop - start >= _SHORTEST_STRETCH:
                self._fit(np.cumsum(cycles[start + 1 : stop]), np.cumsum(step_us[start + 1 : stop]))

    def _fit(self, cycles: npt.NDArray[np.int64], elapsed_us: npt.NDArray[np.int64]) -> None:
        """Fit a line to a stretch, given without its first packet, which is at 0."""
        x = np.concatenate(([0.0], cycles))
        y = np.concatenate(([0.0], elapsed_us - cycles * self._nominal_us))
        x -= x.mean()
        y -= y.mean()
        spread, product = float(x @ x), float(x @ y)
        residual = y - product / spread * x
        self.residuals.add(residual)
        self.fitted += len(x)
        self._square_sum += float(residual @ residual)
        self._spread += spread
        self._weighted_ppm += 1e6 * product / self._nominal_us

    @property
    def residual_us(self) -> float:
        """Root mean square of the residuals; NaN before a fit. A clock truncated to microseconds has 1/sqrt(12)."""
        return float(np.sqrt(self._square_sum / self.fitted)) if self.fitted else float("nan")

    @property
    def drift_ppm(self) -> float:
        """Relative excess of the fitted cycle over the model's; NaN before a fit."""
        return self._weighted_ppm / self._spread if self._spread else float("nan")

    @property
    def cycle_us(self) -> float:
        """Fitted time between packets of the latest mode; NaN before a fit."""
        return self._nominal_us * (1.0 + 1e-6 * self.drift_ppm)
