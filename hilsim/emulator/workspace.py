"""Working arrays of a lidar's pipeline: rays, what they met, what is reported. Arrays are ``[channel, sequence, sub-ray]``, the order ray casting likes best."""

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import shared_words
from hilsim.compilation.jit import placed
from hilsim.compilation.lanes import WIDTH
from hilsim.emulator.overlay import Backdrop
from hilsim.emulator.plan import LidarPlan
from hilsim.sensor.echoes import (
    ECHO_COLUMNS,
    Hits,
    allocate_hits,
)
from hilsim.world.render.packets import packets_of

LAYERS = 4
"""Surfaces that a ray can pass one behind the other: foliage, fences, glass."""
BRANCHES = 2
"""Rays that one can become: through the first surface, and from its mirror image."""

_EXTRA_HITS = 12
"""Room for what is no surface: drops, fog, false alarms."""


class Rays(NamedTuple):
    """Rays of ``f = channels * sequences`` firings of ``k`` sub-rays, ``n = f * k``, channel-major, a firing's sub-rays side by side.

    Attributes:
        origin_m: ``float64[n, 3]`` in the world.
        direction: ``float32[n, 3]`` in the world, unit.
        time_ns: ``int64[n]``, rig time of each firing.
        firing: ``int32[n]``, number of the ray's firing.
        sub_ray: ``int32[n]``, number of the ray within the firing.
        share: ``float64[n]``, of the firing's light that the ray still carries.
        travelled_m: ``float64[n]``, from the sensor to the origin.
        range_m: ``float32[n]``, from the origin; ``inf`` for a miss.
        instance: ``int32[n]``, -1 for a miss.
        triangle: ``int32[n]``, -1 for a miss.
        cosine: ``float64[n]``, of the incidence on what was hit.
        packets: ``int32[p, 16]``, the rays in packets that are cast together (``world.render.packets``).
    """

    origin_m: npt.NDArray[np.float64]
    direction: npt.NDArray[np.float32]
    time_ns: npt.NDArray[np.int64]
    firing: npt.NDArray[np.int32]
    sub_ray: npt.NDArray[np.int32]
    share: npt.NDArray[np.float64]
    travelled_m: npt.NDArray[np.float64]
    range_m: npt.NDArray[np.float32]
    instance: npt.NDArray[np.int32]
    triangle: npt.NDArray[np.int32]
    cosine: npt.NDArray[np.float64]
    packets: npt.NDArray[np.int32]


class Returns(NamedTuple):
    """Returns that the sensor reports for some firing sequences.

    Attributes:
        distance: ``int32[r, s, c]``, in counts of the model's range unit; 0 for no return.
        reflectivity: ``uint8[r, s, c]``.
        flags: ``uint8[r, s, c]``, ``ReturnFlag``.
        azimuth_cdeg: ``int64[s]``, the encoder's readings.
        echo: ``int8[r, s, c]``, which of the firing's echoes is reported; -1 for none.
        range_m: ``float64[r, s, c]``, of that echo, without noise; ``inf`` for none.
        correction: ``int8[r, s, c]``, counts that were added to its distance by laser and reflectivity.
        energy: ``float32[r, s, c]``, of that echo; 0 for none.
        own: Arrays that ``LidarPlan.own`` allocates for returns; None: none.
    """

    distance: npt.NDArray[np.int32]
    reflectivity: npt.NDArray[np.uint8]
    flags: npt.NDArray[np.uint8]
    azimuth_cdeg: npt.NDArray[np.int64]
    echo: npt.NDArray[np.int8]
    range_m: npt.NDArray[np.float64]
    correction: npt.NDArray[np.int8]
    energy: npt.NDArray[np.float32]
    own: Any


class EmulatorCount(IntEnum):
    """Columns of ``Workspace.counts``."""

    UNREPRESENTABLE = 0
    """Returns that the packet format cannot represent, sent as no return."""
    FAULTED = 1
    """Firings that faults on command befell, once for each of its light, its echoes and what was measured."""


SOLE_ROWS = 8
"""Rows of ``SoleEchoes.sums`` for sixteen channels of a firing sequence: range, energy, share of retro-reflectors, distance, reflectivity, column of
``LaserSignals.correction``, the axis's energy, and the random number of an empty firing's byte."""
AXIS_ENERGY, SUMMED = 6, 3
"""Row of ``SoleEchoes.sums``, and column of its bits, that remain as ``emulator.sole_surfaces`` writes them."""


class SoleEchoes(NamedTuple):
    """Results for firings whose hits all make one echo: ``g`` groups of sixteen channels in each of ``s`` firing sequences.

    Attributes:
        sums: ``float64[s * g * SOLE_ROWS, 16]``. Range and retro-reflectors first as sums weighted by energy, then divided by it.
        marks: ``uint8[f, 4]`` of each firing: how many echoes (``sensor.echoes.sole_echo``), whether noise was taken for one, its ``ReturnFlag``, whether
            its echoes are lost.
        bits: ``int64[s * g, 4]``, a bit a channel: the values here are the firing's; its echo passes the threshold; its reflectivity is set here; its hits are
            summed here and lose nothing.
    """

    sums: npt.NDArray[np.float64]
    marks: npt.NDArray[np.uint8]
    bits: npt.NDArray[np.int64]


@placed
class Workspace(NamedTuple):
    """Working arrays for the firings of some sequences, from rays to returns.

    Attributes:
        sequence: ``int64[s]``, indices of the firing sequences since the sensor started, rising; with gaps where the field of view is limited.
        rays: Rays as they leave the sensor.
        ahead: Rays beyond a surface that lets light pass.
        behind: The same for the surface after the next.
        backdrop: Background seen by each firing.
        hits: Hits of the rays.
        keeps_hits: Whether the hits are written of firings of which ``sole`` has all that is reported.
        noise: ``float64[s, c]``, range errors of firings' first echoes, in standard deviations; ``c`` is a multiple of 16.
        byte_noise: ``float64[s, c]``, errors of their reflectivity bytes, likewise.
        sole: Firings whose hits all make one echo.
        echoes: ``float64[m, 4]``, of one firing.
        kept: ``int64[m]``, echoes of one firing that are detected.
        reported: ``bool[c, s]``, firings that a decimated sensor reports.
        returns: Reported returns.
        earlier: Returns of the same packet's firings in earlier segments (``emulator.changing.segments``).
        counts: ``int64[n]``, columns by ``EmulatorCount``; they only grow.
    """

    sequence: npt.NDArray[np.int64]
    rays: Rays
    ahead: Rays
    behind: Rays
    backdrop: Backdrop
    hits: Hits
    keeps_hits: bool
    noise: npt.NDArray[np.float64]
    byte_noise: npt.NDArray[np.float64]
    sole: SoleEchoes
    echoes: npt.NDArray[np.float64]
    kept: npt.NDArray[np.int64]
    reported: npt.NDArray[np.bool_]
    returns: Returns
    earlier: Returns
    counts: npt.NDArray[np.int64]


def winding(elevation_deg: npt.NDArray[np.float64], sequences: int, sub_rays: int) -> npt.NDArray[np.int64]:
    """The rays of some firing sequences in an order in which neighbours go alike: channel by channel upwards, each the other way round than the last."""
    rays = np.arange(elevation_deg.size * sequences * sub_rays).reshape(elevation_deg.size, sequences, sub_rays)[
        np.argsort(elevation_deg, kind="stable")
    ]
    rays[1::2] = rays[1::2, ::-1]
    return rays.reshape(-1)


def allocate_rays(count: int, order: npt.NDArray[np.int64] | None = None) -> Rays:
    """Arrays for ``count`` rays that are cast in this order, or as they lie."""
    return Rays(
        origin_m=np.zeros((count, 3)),
        direction=np.zeros((count, 3), np.float32),
        time_ns=np.zeros(count, np.int64),
        firing=np.zeros(count, np.int32),
        sub_ray=np.zeros(count, np.int32),
        share=np.zeros(count),
        travelled_m=np.zeros(count),
        range_m=np.zeros(count, np.float32),
        instance=np.zeros(count, np.int32),
        triangle=np.zeros(count, np.int32),
        cosine=np.zeros(count),
        packets=packets_of(np.arange(count) if order is None else order),
    )


def _first_rays(plan: LidarPlan, sequences: int) -> Rays:
    """Rays as they leave the sensor: their firings and shares of light never change."""
    firings, sub_rays = plan.firing_offset_ns.size * sequences, plan.beam.share.size
    of_channels = np.arange(firings * sub_rays).reshape(-1, sequences, sub_rays)
    in_time = of_channels.transpose(1, 0, 2).reshape(-1)  # beams that a family aims go alike while they fire
    rays = allocate_rays(firings * sub_rays, in_time if plan.own.aims_itself else winding(plan.elevation_deg, sequences, sub_rays))
    number = np.arange(firings * sub_rays, dtype=np.int32)
    return rays._replace(firing=number // sub_rays, sub_ray=number % sub_rays, share=np.tile(plan.beam.share, firings))


def _allocate_returns(plan: LidarPlan, shape: tuple[int, int, int]) -> Returns:
    return Returns(
        distance=np.zeros(shape, np.int32),
        reflectivity=np.zeros(shape, np.uint8),
        flags=np.zeros(shape, np.uint8),
        azimuth_cdeg=np.zeros(shape[1], np.int64),
        echo=np.full(shape, -1, np.int8),
        range_m=np.full(shape, np.inf),
        correction=np.zeros(shape, np.int8),
        energy=np.zeros(shape, np.float32),
        own=plan.own.allocate_returns(shape),
    )


def allocate_workspace(plan: LidarPlan, sequences: int, *, is_opaque: bool, keeps_hits: bool = True) -> Workspace:
    """Arrays for ``sequences`` firing sequences; in a world in which everything ``is_opaque`` no ray goes on from a surface.

    ``keeps_hits``: all hits are written, as truth requires, and not those alone that the family's packets need.
    """
    firings, groups = plan.firing_offset_ns.size * sequences, -(-plan.firing_offset_ns.size // WIDTH)
    rays = firings * plan.beam.share.size
    most = plan.beam.share.size * (1 if is_opaque else 1 + BRANCHES * (LAYERS - 1)) + _EXTRA_HITS
    shape = (plan.choice.size, sequences, plan.firing_offset_ns.size)
    return Workspace(
        sequence=np.zeros(sequences, np.int64),
        rays=_first_rays(plan, sequences),
        ahead=allocate_rays(1 if is_opaque else BRANCHES * rays),
        behind=allocate_rays(1 if is_opaque else BRANCHES * rays),
        backdrop=Backdrop(np.full(firings, np.inf), np.zeros(firings)),
        hits=allocate_hits(firings, most),
        keeps_hits=keeps_hits or plan.own.reads_hits,
        noise=np.zeros((sequences, WIDTH * groups)),
        byte_noise=np.zeros((sequences, WIDTH * groups)),
        sole=SoleEchoes(
            sums=np.zeros((sequences * groups * SOLE_ROWS, WIDTH)),
            marks=np.zeros((firings, 4), np.uint8),
            bits=np.zeros((sequences * groups, 4), np.int64),
        ),
        echoes=np.zeros((most, ECHO_COLUMNS)),
        kept=np.zeros(most, np.int64),
        reported=np.ones((plan.firing_offset_ns.size, sequences), np.bool_),
        returns=_allocate_returns(plan, shape),
        earlier=_allocate_returns(plan, shape),
        counts=shared_words(EmulatorCount),
    )
