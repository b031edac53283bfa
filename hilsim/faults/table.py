"""Faults of one sensor for kernels: when each acts, how strongly, and upon which firings."""

import math
from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import by_reference, constant, kernel
from hilsim.faults.catalogue import Effect
from hilsim.faults.specs import FaultSpec
from hilsim.rng import Purpose, uniform
from hilsim.units import TURN_CDEG

VALUES = 6
_POSITIVE = 2**63 - 1
_SHARE = constant(Purpose.FAULT_SHARE)


@by_reference
class FaultTable(NamedTuple):
    """``n`` faults of a sensor of ``c`` channels.

    Attributes:
        effect: ``int64[n]``, ``Effect`` of each.
        begin_ns: ``int64[n]``, rig time of its begin.
        end_ns: ``int64[n]``, rig time of its end.
        ramp_ns: ``float64[n, 2]``, times in which it comes and goes.
        is_exponential: ``bool[n]``, how it comes.
        seed: ``int64[n]``, seed of its random numbers, which does not depend on other faults.
        value: ``float64[n, 6]``, values of its function.
        share: ``float64[n]``, share of the firings that it befalls.
        channel: ``bool[n, c]``, whether it befalls a channel.
        sector: ``float64[n, 4]``: start azimuth and width (0.01 deg), lowest and highest elevation (deg).
        dims: Whether one takes light.
        adds: Whether one adds echoes.
        falsifies: Whether one changes what is measured.
        turns: Whether one moves the head.
        tells: Whether one changes stamps, or what is known of time.
    """

    effect: npt.NDArray[np.int64]
    begin_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    ramp_ns: npt.NDArray[np.float64]
    is_exponential: npt.NDArray[np.bool_]
    seed: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    share: npt.NDArray[np.float64]
    channel: npt.NDArray[np.bool_]
    sector: npt.NDArray[np.float64]
    dims: bool
    adds: bool
    falsifies: bool
    turns: bool
    tells: bool


def fault_seed(spec: FaultSpec, seed: int) -> int:
    """Seed of a fault's random numbers in a rig of a seed, which does not depend on other faults."""
    return (seed ^ spec.seed << 32 ^ crc32(f"{spec.kind} {spec.label}".encode())) & _POSITIVE


def build_fault_table(specs: Sequence[FaultSpec], channels: int, seed: int) -> FaultTable:
    """Faults for kernels, of a sensor of so many channels, or a vehicle of so many motors, in a rig of a seed."""
    rows = len(specs)
    order = sorted(specs, key=lambda each: list(Effect).index(each.row.effect))  # a stable order, whatever order they were declared in
    channel, sector, value = np.ones((rows, channels), np.bool_), np.empty((rows, 4)), np.zeros((rows, VALUES))
    for row, spec in enumerate(order):
        chosen = getattr(spec, "channels", ()) or [number - 1 for number in getattr(spec, "motors", ())]
        if chosen:
            channel[row] = False
            channel[row, list(chosen)] = True
        start, stop = getattr(spec, "azimuth_deg", (0.0, 360.0))
        low, high = getattr(spec, "elevation_deg", (-90.0, 90.0))
        sector[row] = 100.0 * start, 100.0 * (stop - start if stop > start else stop - start + 360.0), low, high
        value[row, : len(spec.values)] = spec.values
    effects = {spec.row.effect for spec in order}
    return FaultTable(
        effect=np.array([spec.row.effect for spec in order], np.int64),
        begin_ns=np.array([spec.begin_ns for spec in order], np.int64),
        end_ns=np.array([spec.end_ns for spec in order], np.int64),
        ramp_ns=np.array([(1e9 * spec.ramp_s, 1e9 * spec.ramp_out_s) for spec in order], np.float64).reshape(rows, 2),
        is_exponential=np.array([spec.ramp == "exponential" for spec in order], np.bool_),
        seed=np.array([fault_seed(spec, seed) for spec in order], np.int64),
        value=value,
        share=np.array([getattr(spec, "share", 1.0) for spec in order], np.float64),
        channel=channel,
        sector=sector,
        dims=not effects.isdisjoint({Effect.DIM, Effect.DROPS}),
        adds=Effect.ECHO in effects,
        falsifies=not effects.isdisjoint({Effect.ERROR, Effect.BYTE, Effect.ORDER, Effect.READING}),
        turns=Effect.TURN in effects,
        tells=not effects.isdisjoint({Effect.STAMP, Effect.PULSE, Effect.SENTENCE, Effect.THERMAL, Effect.MASTER}),
    )


@kernel
def strength(faults: FaultTable, row: int, rig_ns: int) -> float:
    """How strongly a fault acts at a rig time: 0 to 1."""
    since_ns, left_ns = float(rig_ns - faults.begin_ns[row]), float(faults.end_ns[row] - rig_ns)
    if since_ns < 0.0 or left_ns <= 0.0:
        return 0.0
    coming_ns, going_ns = faults.ramp_ns[row, 0], faults.ramp_ns[row, 1]
    share = 1.0
    if coming_ns > 0.0:
        share = 1.0 - math.exp(-since_ns / coming_ns) if faults.is_exponential[row] else min(1.0, since_ns / coming_ns)
    return min(share, left_ns / going_ns) if going_ns > 0.0 else share


@kernel
def passed_ns(faults: FaultTable, row: int, rig_ns: int) -> float:
    """Time for which a fault has acted at a rig time, by its strength; 0 when it has ended."""
    since_ns, left_ns = float(rig_ns - faults.begin_ns[row]), float(faults.end_ns[row] - rig_ns)
    if since_ns < 0.0 or left_ns <= 0.0:
        return 0.0
    coming_ns, going_ns = faults.ramp_ns[row, 0], faults.ramp_ns[row, 1]
    passed = since_ns
    if coming_ns > 0.0 and faults.is_exponential[row]:
        passed = since_ns - coming_ns * (1.0 - math.exp(-since_ns / coming_ns))
    elif coming_ns > 0.0:
        passed = since_ns * since_ns / (2.0 * coming_ns) if since_ns < coming_ns else since_ns - coming_ns / 2.0
    gone_ns = max(going_ns - left_ns, 0.0)
    return passed - gone_ns * gone_ns / (2.0 * going_ns) if going_ns > 0.0 else passed


@kernel
def befalls(faults: FaultTable, row: int, channel: int, azimuth_cdeg: float, elevation_deg: float, stream: int, index: int) -> bool:
    """Whether a fault befalls a firing, whenever it is.

    Args:
        faults: The faults.
        row: Number of the fault.
        channel: Channel of the firing.
        azimuth_cdeg: Azimuth of its beam in the sensor's frame, 0.01 deg, in any turn.
        elevation_deg: Elevation of its beam.
        stream: Random stream of the channel.
        index: Index of the firing sequence.
    """
    start, width, low, high = faults.sector[row, 0], faults.sector[row, 1], faults.sector[row, 2], faults.sector[row, 3]
    if not faults.channel[row, channel] or elevation_deg < low or elevation_deg > high or (azimuth_cdeg - start) % TURN_CDEG >= width:
        return False
    return bool(faults.share[row] >= 1.0 or uniform(faults.seed[row], stream, index, _SHARE) < faults.share[row])
