"""Kernels that a family brings in the class of ``LidarPlan.own``, a named tuple, and what they are where it does not bring them.

=====================================================================  ==========================================================================================
kernel                                                                 called
=====================================================================  ==========================================================================================
``encode(own, plan, packet, returns, counts, offset, payload)``        to write data packet ``packet`` to ``payload[offset : offset + plan.data_size]``
``encode_info(own, plan, platform, device_ns, payload)``               to write what is sent beside, ``plan.info_size`` bytes, where ``plan.position`` has a time
``sense(own, plan, world, workspace)``                                 when the returns of some firing sequences are there
``copy_return(own, source, from, target, to, channel)``                to copy of a firing what ``sense`` wrote, from one firing sequence to another one
``first_sequence(own, plan, packet) -> int``                           to find a packet's first firing sequence; -1: packets follow each other without gaps
``packet_before(own, plan, device_ns) -> int``                         to find a packet that begins at or before a device time; -1 where the former is
``fits(own, plan, channel, firing_ns, distance) -> bool``              to find out whether a packet can represent a return; one that it cannot is not sent
``returns_order(own) -> int``                                          for the ground truth: ``FIRINGS``, ``COLUMNS``, or records of a block
``move_origins(own, origin, turns, turned)``                           to move the origins of sixteen beams by the head's angle; returns them
``aim(own, plan, device_ns, first_channel, turns, aim)``               to direct sixteen beams where neither a head nor a mirror does (``aiming``)
``looks_at(own, plan, reading_cdeg, channel, index)``                  with ``aim``: azimuth in hundredths of a degree and elevation in degrees of one beam
=====================================================================  ==========================================================================================

The class has a method ``allocate_returns(shape)`` too, for ``Returns.own``: None where ``sense`` writes nothing of its own.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel, with_kernels
from hilsim.emulator.families.aiming import aim_by_head_or_mirror, known_by_head_or_mirror

T = TypeVar("T", bound=type)
FIRINGS, COLUMNS = constant(-1), constant(0)
"""Order of a packet's returns: firing by firing with its returns side by side; column by column.

A positive order is of blocks of so many records, one block after the other for each return.
"""


@kernel
def _write_nothing(own: Any, plan: Any, platform: Any, device_ns: int, payload: npt.NDArray[np.uint8]) -> None:
    """Packets beside data packets that do not exist."""


@kernel
def _sense_nothing(own: Any, plan: Any, world: Any, workspace: Any) -> None:
    """No more than ranges and reflectivities."""


@kernel
def _copy_nothing(own: Any, source: Any, source_sequence: int, target: Any, target_sequence: int, channel: int) -> None:
    """Nothing beside returns."""


@kernel
def _without_gaps(own: Any, plan: Any, at: int) -> int:  # noqa: ARG001 - arguments of a family's own
    """Packets that follow each other without gaps."""
    return -1


@kernel
def _fits(own: Any, plan: Any, channel: int, firing_ns: int, distance: int) -> bool:  # noqa: ARG001 - arguments of a family's own
    """Packets that can represent any distance."""
    return True


@kernel
def _by_columns(own: Any) -> int:  # noqa: ARG001 - argument of a family's own
    """Columns of all beams' returns."""
    return COLUMNS


@kernel
def _stay(own: Any, origin: Any, turns: Any, turned: Any) -> Any:  # noqa: ARG001 - arguments of a family's own
    """Beams that leave from where the plan has them."""
    return origin


def family_kernels(
    *,
    encode: Callable[..., None],
    encode_info: Callable[..., None] = _write_nothing,
    sense: Callable[..., None] = _sense_nothing,
    reads_hits: bool = True,
    copy_return: Callable[..., None] = _copy_nothing,
    first_sequence: Callable[..., int] = _without_gaps,
    packet_before: Callable[..., int] = _without_gaps,
    fits: Callable[..., bool] = _fits,
    returns_order: Callable[..., int] = _by_columns,
    move_origins: Callable[..., Any] = _stay,
    aim: Callable[..., Any] = aim_by_head_or_mirror,
    looks_at: Callable[..., Any] = known_by_head_or_mirror,
) -> Callable[[T], T]:
    """Decorator of the class of a family's ``LidarPlan.own``, a named tuple; the kernels are those of the table above.

    ``reads_hits`` is False for a ``sense`` that reads no hits of firings that ``SoleEchoes`` sums up. The class gets it as an attribute, and ``aims_itself``.
    """
    kernels = with_kernels(
        encode=encode,
        encode_info=encode_info,
        sense=sense,
        copy_return=copy_return,
        first_sequence=first_sequence,
        packet_before=packet_before,
        fits=fits,
        returns_order=returns_order,
        move_origins=move_origins,
        aim=aim,
        looks_at=looks_at,
    )

    def decorate(cls: T) -> T:
        cls.reads_hits = reads_hits and sense is not _sense_nothing  # type: ignore[attr-defined]
        cls.aims_itself = aim is not aim_by_head_or_mirror  # type: ignore[attr-defined]
        return kernels(cls)

    return decorate
