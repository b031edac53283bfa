"""Segments of a lidar: its plan and its world from one rig time to the next, for kernels that run while segments are added.

A segment begins between two firings. A packet in which one begins is rendered once with each segment's plan and world, and each firing is taken from the
segment that it lies in: every random draw is keyed by the firing, so a firing's bytes do not depend on where segments begin.
"""

from collections import deque
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import load_acquire, publish, shared_words, store_release
from hilsim.compilation.jit import by_reference, constant, kernel, stage_kernel
from hilsim.compilation.pins import Pin, is_alike, tuple_at
from hilsim.emulator.families.packets import encode
from hilsim.emulator.fused import frame_datagram, render_data_packet, render_returns
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.schedule import packet_start_ns
from hilsim.emulator.workspace import Returns, Workspace
from hilsim.protocols.ethernet import Framing
from hilsim.world.platforms.platform import Platform
from hilsim.world.scene.world import World

CAPACITY = 256
"""Largest number of segments that have been added and not begun, a power of two."""

REFUSED = -1
"""In ``Segments.begun_ns``: the segment was added too late, and its packets or its head fit no other time; what is before it goes on."""

BASE = -1
"""Number of the segment that a kernel is called with."""

_ONE, _BASE, _REFUSED = constant(1), constant(BASE), constant(REFUSED)
_MASK = constant(CAPACITY - 1)
_LONG_AGO_NS = -(1 << 62)


class SegmentWord(IntEnum):
    """Columns of ``Segments.words``: each has a cache line of its own."""

    ADDED = 0
    """Number of added segments; written by Python."""
    SEEN = 8
    """Number of segments whose beginning the kernel has decided."""
    AT = 16
    """Number of the segment that the kernel renders, counted from 0; ``BASE`` before the first one begins. The kernel uses none before it any more."""
    ENCODED_NS = 24
    """Rig time of the newest position packet that was encoded, which may be later than the beginning of the next data packet."""


@by_reference
class Segments(NamedTuple):
    """Segments of a lidar; segment ``k`` is in row ``k % CAPACITY``.

    Attributes:
        words: ``int64[n]``, columns by ``SegmentWord``.
        from_ns: ``int64[CAPACITY]``, rig time at which the segment begins.
        begun_ns: ``int64[CAPACITY]``, written by the kernel: when it begins, with the first firing not yet rendered where it was added too late;
            ``REFUSED`` where it cannot begin then.
        plan: ``int64[CAPACITY]``, address of its ``LidarPlan``.
        world: ``int64[CAPACITY]``, address of its ``World``.
        workspace: ``int64[CAPACITY]``, address of a ``Workspace`` of the plan's shape.
    """

    words: npt.NDArray[np.int64]
    from_ns: npt.NDArray[np.int64]
    begun_ns: npt.NDArray[np.int64]
    plan: npt.NDArray[np.int64]
    world: npt.NDArray[np.int64]
    workspace: npt.NDArray[np.int64]


@kernel
def _fits_later(former: LidarPlan, plan: LidarPlan) -> bool:
    """Whether a plan may begin later than it was made for: its packets, its head and its clock go on as the former plan's."""
    is_numbered_alike = former.origin_packet == plan.origin_packet and former.origin_sequence == plan.origin_sequence
    head, other = former.head, plan.head
    turns_alike = head.rate_crpm == other.rate_crpm and head.phase_turns == other.phase_turns and head.settle_from_ns == other.settle_from_ns
    clock, new_clock = former.clock, plan.clock
    counts_alike = clock.stamp_offset_ns == new_clock.stamp_offset_ns and clock.follows_pulse == new_clock.follows_pulse
    return is_numbered_alike and turns_alike and counts_alike and clock.utc_epoch_ns == new_clock.utc_epoch_ns


@stage_kernel
def enter_segment(plan: LidarPlan, segments: Segments, at: int, packet: int) -> int:
    """The segment that a packet begins in, from segment ``at`` on. Decides when segments begin that were added since the packet before.

    Args:
        plan: Plan of the segment ``BASE``.
        segments: Segments.
        at: Segment of the packet before.
        packet: The packet that is rendered next.
    """
    words, begun_ns = segments.words, segments.begun_ns
    if load_acquire(words, (0,)) == words[8] and at + 1 >= words[8]:
        return at
    start_ns = decide_begins(plan, segments, at, packet)
    while at + 1 < words[8] and begun_ns[(at + 1) & _MASK] <= start_ns:
        at += 1
        start_ns = packet_start_ns(tuple_at(segments.plan[at & _MASK], plan), packet)  # a limited view begins a packet later
    store_release(words, (16,), at)
    return at


@kernel
def decide_begins(plan: LidarPlan, segments: Segments, at: int, packet: int) -> int:
    """Decide when segments begin that were added meanwhile; returns the rig time at which the next packet begins. Arguments as of ``enter_segment``."""
    words, from_ns, begun_ns, plans = segments.words, segments.from_ns, segments.begun_ns, segments.plan
    added = load_acquire(words, (0,))
    seen = words[8]
    address = plans[at & _MASK] if at >= 0 else 0
    start_ns = packet_start_ns(tuple_at(address, plan), packet) if at >= 0 else packet_start_ns(plan, packet)
    while seen < added:
        row = seen & _MASK
        begun_ns[row] = max(from_ns[row], start_ns, words[24] + 1)
        former = (row - 1) & _MASK
        is_late = from_ns[row] < begun_ns[row] and seen > 0  # the first one is what the kernel begins with
        if is_late and not _fits_later(tuple_at(plans[former], plan), tuple_at(plans[row], plan)):
            plans[row], segments.world[row], segments.workspace[row] = plans[former], segments.world[former], segments.workspace[former]
            begun_ns[row] = _REFUSED
        seen += _ONE
        store_release(words, (8,), seen)
    return start_ns


@stage_kernel
def segment_after(plan: LidarPlan, segments: Segments, at: int, packet: int, rig_ns: int) -> int:
    """The segment, ``at`` or a later one, that is in force at the rig time of a position packet. Arguments as of ``enter_segment``."""
    words = segments.words
    if load_acquire(words, (0,)) != words[8] or at + 1 < words[8]:
        decide_begins(plan, segments, at, packet)
        while at + 1 < words[8] and segments.begun_ns[(at + 1) & _MASK] <= rig_ns:
            at += 1
    words[24] = rig_ns
    return at


@kernel
def _copy_before(own: Any, rays_ns: npt.NDArray[np.int64], sub_rays: int, stop_ns: int, source: Returns, target: Returns) -> None:
    """Copy what firings before rig time ``stop_ns`` report."""
    return_count, sequences, channels = source.distance.shape
    for sequence in range(sequences):
        if rays_ns[sequence * sub_rays] < stop_ns:
            target.azimuth_cdeg[sequence] = source.azimuth_cdeg[sequence]
        for channel in range(channels):
            if rays_ns[(channel * sequences + sequence) * sub_rays] >= stop_ns:
                continue
            for number in range(return_count):
                target.distance[number, sequence, channel] = source.distance[number, sequence, channel]
                target.reflectivity[number, sequence, channel] = source.reflectivity[number, sequence, channel]
                target.flags[number, sequence, channel] = source.flags[number, sequence, channel]
                target.echo[number, sequence, channel] = source.echo[number, sequence, channel]
                target.range_m[number, sequence, channel] = source.range_m[number, sequence, channel]
            own.copy_return(own, source, sequence, target, sequence, channel)


@stage_kernel
def render_packet(
    plan: LidarPlan,
    platform: Platform,
    world: World,
    framing: Framing,
    segments: Segments,
    at: int,
    packet: int,
    workspace: Workspace,
    datagram: npt.NDArray[np.uint8],
) -> int:
    """Render and encode data packet ``packet``, whatever segments its firings lie in; returns the datagram's size in bytes.

    Args:
        plan: Plan of the segment ``at``.
        platform: Carries the lidar.
        world: World of the segment ``at``.
        framing: Payload or whole frame.
        segments: Segments.
        at: Segment that the packet begins in (``enter_segment``).
        packet: The packet.
        workspace: Workspace of the segment ``at``; a segment with another number of firing sequences in a packet begins with a packet, never within one.
        datagram: Output, as in ``fused.render_data_packet``.
    """
    known, begun_ns, sub_rays = segments.words[8], segments.begun_ns, plan.beam.share.size
    stop_ns = packet_start_ns(plan, packet + 1)
    if at + 1 >= known or begun_ns[(at + 1) & _MASK] >= stop_ns:
        return render_data_packet(plan, platform, world, framing, packet, workspace, datagram)
    render_returns(plan, platform, world, packet, workspace)
    while at + 1 < known and begun_ns[(at + 1) & _MASK] < stop_ns:
        at += 1
        row = at & _MASK
        _copy_before(plan.own, workspace.rays.time_ns, sub_rays, stop_ns, workspace.returns, workspace.earlier)
        render_returns(tuple_at(segments.plan[row], plan), platform, tuple_at(segments.world[row], world), packet, workspace)
        _copy_before(plan.own, workspace.rays.time_ns, sub_rays, begun_ns[row], workspace.earlier, workspace.returns)
    encode(plan, packet, workspace.returns, workspace.counts, framing.header_size, datagram)
    return frame_datagram(framing, packet, datagram, plan.data_size)


@kernel
def render_packets(
    plan: LidarPlan,
    platform: Platform,
    world: World,
    framing: Framing,
    segments: Segments,
    first_packet: int,
    workspace: Workspace,
    size: npt.NDArray[np.int32],
    datagrams: npt.NDArray[np.uint8],
) -> None:
    """``fused.render_data_packets`` of a lidar with segments; ``plan``, ``world`` and ``workspace`` are of the segment ``BASE``."""
    at = _BASE
    for row in range(size.size):
        packet = first_packet + row
        at = enter_segment(plan, segments, at, packet)
        if at < 0:
            size[row] = render_packet(plan, platform, world, framing, segments, at, packet, workspace, datagrams[row])
        else:
            place = at & _MASK
            size[row] = render_packet(
                tuple_at(segments.plan[place], plan),
                platform,
                tuple_at(segments.world[place], world),
                framing,
                segments,
                at,
                packet,
                tuple_at(segments.workspace[place], workspace),
                datagrams[row],
            )


class SegmentTable:
    """Segments that are added while a kernel renders.

    Attributes:
        segments: Segments for the kernel.
    """

    def __init__(self, plan: LidarPlan, world: World) -> None:
        """A table without segments; those that are added must be of the types of ``plan`` and ``world``, as the kernel was compiled for them."""
        self.segments = Segments(
            words=shared_words(SegmentWord),
            from_ns=np.zeros(CAPACITY, np.int64),
            begun_ns=np.zeros(CAPACITY, np.int64),
            plan=np.zeros(CAPACITY, np.int64),
            world=np.zeros(CAPACITY, np.int64),
            workspace=np.zeros(CAPACITY, np.int64),
        )
        self.segments.words[SegmentWord.AT] = BASE
        self.segments.words[SegmentWord.ENCODED_NS] = _LONG_AGO_NS
        self._first = plan, world
        self._pins: deque[tuple[int, Pin, Pin]] = deque()
        self._workspaces: dict[tuple[int, ...], tuple[Workspace, Pin]] = {}

    @cached_property
    def _types(self) -> tuple[object, object]:
        plan, world = self._first
        return numba.typeof(plan), numba.typeof(world)

    @property
    def has_room(self) -> bool:
        """Whether another segment may be added now: segments that have begun are removed."""
        words = self.segments.words
        return int(words[SegmentWord.ADDED] - max(words[SegmentWord.AT], 0)) < CAPACITY

    def add(self, from_ns: int, plan: LidarPlan, world: World, workspace: Workspace) -> int:
        """Add a segment behind all others; returns its number.

        Raises:
            ValueError: the table is full, or the kernel was compiled for other types.
        """
        if not is_alike((plan, world), self._first) and (numba.typeof(plan), numba.typeof(world)) != self._types:
            raise ValueError("a segment's plan and world must be of the types of the first ones, got others")
        self.release_passed()
        if not self.has_room:
            raise ValueError(f"at most {CAPACITY - 1} segments may wait for their beginning, got one more")
        number = int(self.segments.words[SegmentWord.ADDED])
        row = number % CAPACITY
        pins = Pin(plan), Pin(world)
        self._pins.append((number, *pins))
        segments = self.segments
        segments.from_ns[row] = from_ns
        segments.plan[row], segments.world[row] = (pin.address for pin in pins)
        segments.workspace[row] = self._pinned(workspace).address
        publish(segments.words, int(SegmentWord.ADDED), number + 1)
        return number

    def workspace_like(self, plan: LidarPlan) -> Workspace | None:
        """The workspace of former segments of a plan's shape; None: there were none."""
        found = self._workspaces.get((plan.choice.size, plan.sequences_per_packet, plan.firing_offset_ns.size))
        return found[0] if found else None

    def rehearse(self, workspace: Workspace) -> None:
        """Load or compile what ``add`` needs."""
        plan, world = self._first
        for pin in (Pin(plan), Pin(world), Pin(workspace)):
            pin.release()
        publish(self.segments.words, int(SegmentWord.ADDED), int(self.segments.words[SegmentWord.ADDED]))

    def _pinned(self, workspace: Workspace) -> Pin:
        """The address of a workspace; it is kept for all segments of its shape."""
        shape = workspace.returns.distance.shape
        if shape not in self._workspaces:
            self._workspaces[shape] = workspace, Pin(workspace)
        return self._workspaces[shape][1]

    def begun_ns(self, number: int) -> int | None:
        """Rig time at which a segment begins, or ``REFUSED``; None until the kernel has seen it."""
        if self.segments.words[SegmentWord.SEEN] <= number:
            return None
        return int(self.segments.begun_ns[number % CAPACITY])

    def release_passed(self) -> None:
        """Release what the kernel does not use any more."""
        oldest = int(self.segments.words[SegmentWord.AT])
        while oldest > 0 and self.segments.begun_ns[oldest % CAPACITY] == REFUSED:
            oldest -= 1  # in place of a refused segment the one before it is used
        while self._pins and self._pins[0][0] < oldest:
            _, plan, world = self._pins.popleft()
            plan.release()
            world.release()

    def close(self) -> None:
        """Release everything; no kernel may use the table any more."""
        for _, plan, world in self._pins:
            plan.release()
            world.release()
        self._pins.clear()
        for _, pin in self._workspaces.values():
            pin.release()
        self._workspaces.clear()
