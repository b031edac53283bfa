"""One emulated lidar: from specs, world, platform and seed to datagrams. Any stretch of time can be rendered, in any order, with the same bytes."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.emulator.backdrop import sample_background
from hilsim.emulator.batch import DatagramBatch, Flow
from hilsim.emulator.changing.continuation import AT_START, Continuation, continue_from
from hilsim.emulator.changing.segments import CAPACITY, SegmentTable, render_packets
from hilsim.emulator.families.packets import encode, sense
from hilsim.emulator.firing import fire
from hilsim.emulator.fused import frame_datagram, render_data_packets, render_info_packet
from hilsim.emulator.layers import trace_with
from hilsim.emulator.overlay import Overlay
from hilsim.emulator.plan import HeardSentences, LidarPlan
from hilsim.emulator.planning import build_lidar_plan, with_optics
from hilsim.emulator.position import position_deadline_ns
from hilsim.emulator.reception.detection import respond
from hilsim.emulator.schedule import first_packet_due, first_packet_from, packet_start_ns, write_deadlines, write_sequences_of
from hilsim.emulator.setting import LidarSetting
from hilsim.emulator.workspace import Returns, Workspace, allocate_workspace
from hilsim.protocols.ethernet import PAYLOAD_ONLY, Framing
from hilsim.sensor.clock import device_from_rig, rig_from_device
from hilsim.sensor.position_stream import next_position, seek_positions
from hilsim.world.platforms.platform import Platform
from hilsim.world.render.renderer import Renderer
from hilsim.world.scene.world import World


@dataclass(frozen=True, kw_only=True)
class LidarEmulator:
    """A lidar bound to a world and a platform.

    Attributes:
        setting: Setting of the lidar.
        world: World that the lidar sees.
        platform: Platform that carries the lidar.
        seed: Random seed of the rig.
        utc_epoch_ns: UTC of rig time 0.
        data_flow: Flow of data packets.
        position_flow: Flow of position packets.
        data_framing: Framing of data datagrams: payload, or whole frame.
        position_framing: Framing of position datagrams.
        overlay: Captured background that the lidar sees.
        heard: Sentences that its GPS input receives.
        continues: Values that the plan takes over from the lidar before a change.
        later: Changed lidars that follow, by rig time.
        others: The other lidars on its platform, whose pulses reach it where its setup has ``interference``.
        may_change: Whether others may follow that see weather, or through a dirty window, or report false alarms.
    """

    setting: LidarSetting
    world: World
    platform: Platform
    seed: int
    utc_epoch_ns: int
    data_flow: Flow
    position_flow: Flow
    data_framing: Framing = field(default=PAYLOAD_ONLY)
    position_framing: Framing = field(default=PAYLOAD_ONLY)
    overlay: Overlay | None = None
    heard: HeardSentences | None = None
    continues: Continuation = AT_START
    later: "tuple[LaterLidar, ...]" = ()
    others: tuple[LidarSetting, ...] = ()
    may_change: bool = True

    @cached_property
    def plan(self) -> LidarPlan:
        """Plan of the lidar for kernels."""
        plan = build_lidar_plan(
            self.setting,
            seed=self.seed,
            utc_epoch_ns=self.utc_epoch_ns,
            overlay=self.overlay,
            heard=self.heard,
            others=self.others,
            may_change=self.may_change,
        )
        return self.continues.applied_to(plan)

    def with_plan_of(self, other: "LidarEmulator") -> "LidarEmulator":
        """This lidar, with the other's plan if the plans differ in weather and window at most, because building one takes milliseconds."""
        made_of = ("seed", "utc_epoch_ns", "overlay", "heard", "others", "may_change")
        if all(getattr(self, name) is getattr(other, name) or getattr(self, name) == getattr(other, name) for name in made_of):
            if self.setting == other.setting:
                self.__dict__["plan"] = other.plan
            elif self.may_change and self.setting.differs_in_optics_alone(other.setting):
                self.__dict__["plan"] = with_optics(other.plan, self.setting)
        return self

    def followed_by(self, changed: "LidarEmulator", at_ns: int) -> "LaterLidar":
        """Changed lidar that follows this one at a rig time, or with the first packet after it if other returns are reported."""
        begin_ns, continues = continue_from(self.plan, changed.plan, at_ns)
        follower = replace(changed, continues=continues)
        follower.__dict__["plan"] = continues.applied_to(changed.plan)
        return LaterLidar(begin_ns, follower)

    def at_time(self, rig_ns: int) -> "LidarEmulator":
        """Lidar as it is at a rig time."""
        return next((lidar for begin_ns, lidar in reversed(self.later) if begin_ns <= rig_ns), self)

    def at_packet(self, packet: int) -> "LidarEmulator":
        """Lidar that makes a data packet's first firing."""
        current = self
        for begin_ns, lidar in self.later:
            if begin_ns > packet_start_ns(current.plan, packet):
                break
            current = lidar
        return current

    def first_data_packet(self, start_ns: int) -> int:
        """Index of the first data packet due at or after rig time ``start_ns``."""
        current = self
        for begin_ns, lidar in self.later:
            if first_packet_due(current.plan, start_ns) < first_packet_from(current.plan, begin_ns):
                break
            current = lidar
        return int(first_packet_due(current.plan, start_ns))

    def deadlines_ns(self, first: int, count: int) -> npt.NDArray[np.int64]:
        """Deadlines of data packets in rig time, ``int64[count]``."""
        deadline_ns, current, at, stop = np.empty(count, np.int64), self, first, first + count
        for begin_ns, lidar in self.later:
            begin = first_packet_from(current.plan, begin_ns)
            if begin >= stop:
                break
            if begin > at:
                write_deadlines(current.plan, at, deadline_ns[at - first : begin - first])
                at = begin
            current = lidar
        write_deadlines(current.plan, at, deadline_ns[at - first :])
        return deadline_ns

    def data_packets(self, first: int, count: int, renderer: Renderer | None = None) -> DatagramBatch:
        """Data packets ``first`` to ``first + count - 1``.

        Without a renderer the fused CPU kernel runs; with one the same stages are called around it. The bytes are equal where the renderer's ranges are.
        """
        datagrams = np.zeros((count, self.data_framing.header_size + self.data_size), np.uint8)
        size = np.zeros(count, np.int32)
        if self.later:
            if renderer is not None:
                raise ValueError("a lidar that changes must be rendered by the CPU kernels, got a renderer")
            self._render_segments(first, size, datagrams)
        elif renderer is None:
            workspace = allocate_workspace(self.plan, self.plan.sequences_per_packet, is_opaque=self.world.is_opaque, keeps_hits=False)
            render_data_packets(self.plan, self.platform, self.world, self.data_framing, first, workspace, size, datagrams)
        else:
            self._render_by_stages(renderer, first, size, datagrams)
        deadline = self.deadlines_ns(first, count)
        return DatagramBatch(self.data_flow, deadline, deadline - self.plan.data_latency_ns, size, datagrams)

    @property
    def data_size(self) -> int:
        """Bytes of the largest data packet's payload."""
        return max(int(lidar.plan.data_size) for lidar in (self, *(later.lidar for later in self.later)))

    @property
    def is_opaque(self) -> bool:
        """Whether all materials that the lidar ever sees are opaque."""
        return self.world.is_opaque and all(later.lidar.world.is_opaque for later in self.later)

    def _render_segments(self, first: int, size: npt.NDArray[np.int32], datagrams: npt.NDArray[np.uint8]) -> None:
        """Render data packets from ``first`` on, one row each, with every change within them."""
        base, following = self.within(first, size.size)
        if len(following) >= CAPACITY and size.size > 1:
            half = size.size // 2
            self._render_segments(first, size[:half], datagrams[:half])
            self._render_segments(first + half, size[half:], datagrams[half:])
            return
        table = SegmentTable(base.plan, base.world)
        workspaces: dict[tuple[int, int], Workspace] = {}
        for plan in (base.plan, *(later.lidar.plan for later in following)):
            shape = (plan.sequences_per_packet, plan.choice.size)
            workspaces.setdefault(shape, allocate_workspace(plan, plan.sequences_per_packet, is_opaque=self.is_opaque, keeps_hits=False))
        try:
            for begin_ns, lidar in following:
                table.add(begin_ns, lidar.plan, lidar.world, workspaces[lidar.plan.sequences_per_packet, lidar.plan.choice.size])
            workspace = workspaces[base.plan.sequences_per_packet, base.plan.choice.size]
            render_packets(base.plan, self.platform, base.world, self.data_framing, table.segments, first, workspace, size, datagrams)
        finally:
            table.close()

    def within(self, first: int, count: int) -> "tuple[LidarEmulator, tuple[LaterLidar, ...]]":
        """Lidar that data packet ``first`` begins with, and the changed lidars that follow within ``count`` packets."""
        base = self.at_packet(first)
        stop_ns = packet_start_ns(self.at_packet(first + count).plan, first + count)
        passed = next((number + 1 for number, later in enumerate(self.later) if later.lidar is base), 0)
        return base, tuple(later for later in self.later[passed:] if later.begin_ns < stop_ns)

    def _render_by_stages(self, renderer: Renderer, first: int, size: npt.NDArray[np.int32], datagrams: npt.NDArray[np.uint8]) -> None:
        firings = self.firings(first, size.size, renderer)
        returns = firings.returns
        sequences = self.plan.sequences_per_packet
        for row in range(size.size):
            of_packet = slice(row * sequences, (row + 1) * sequences)
            part = Returns(
                np.ascontiguousarray(returns.distance[:, of_packet]),
                np.ascontiguousarray(returns.reflectivity[:, of_packet]),
                np.ascontiguousarray(returns.flags[:, of_packet]),
                returns.azimuth_cdeg[of_packet],
                returns.echo,
                returns.range_m,
                returns.correction,
                returns.energy,
                None if returns.own is None else returns.own.of_columns(of_packet),
            )
            encode(self.plan, first + row, part, firings.counts, self.data_framing.header_size, datagrams[row])
            size[row] = frame_datagram(self.data_framing, first + row, datagrams[row], self.plan.data_size)

    def firings(self, first: int, count: int, renderer: Renderer) -> Workspace:
        """Ground truth of the firings of ``count`` data packets, from rays with true ranges to reported returns.

        Firings are ``[channel, sequence]`` flattened, ``count * sequences_per_packet`` sequences.
        """
        plan, world = self.plan, self.world
        sequences = count * plan.sequences_per_packet
        workspace = allocate_workspace(plan, sequences, is_opaque=world.is_opaque)
        write_sequences_of(plan.field_of_view, plan, first, workspace.sequence)
        fire(plan, self.platform, workspace.sequence, workspace.rays)
        sample_background(plan.rare, plan, workspace.sequence, workspace.backdrop)
        trace_with(lambda rays: renderer.cast_rays(world, *rays), plan, world, workspace)
        respond(plan, workspace)
        sense(plan, world, workspace)
        return workspace

    def data_span(self, start_ns: int, stop_ns: int, renderer: Renderer | None = None) -> DatagramBatch:
        """Data packets due in ``[start_ns, stop_ns)`` of rig time."""
        first = self.first_data_packet(start_ns)
        return self.data_packets(first, self.first_data_packet(stop_ns) - first, renderer)

    def position_span(self, start_ns: int, stop_ns: int) -> DatagramBatch:
        """Position (or information) packets due in ``[start_ns, stop_ns)`` of rig time."""
        plan = self.plan
        counters = np.zeros(plan.position.period_ns.size, np.int64)
        latency_ns = plan.position.latency_ns + plan.data_latency_ns
        seek_positions(plan.position, max(int(device_from_rig(plan.clock, start_ns - latency_ns)) - 2, 0), counters)
        rows: list[npt.NDArray[np.uint8]] = []
        sizes: list[int] = []
        deadlines: list[int] = []
        stamps: list[int] = []
        while True:
            schedule, device_ns = next_position(plan.position, counters)
            deadline_ns = int(position_deadline_ns(plan, device_ns))
            if deadline_ns >= stop_ns:
                break
            if deadline_ns >= start_ns:
                row = np.zeros(self.position_framing.header_size + plan.info_size, np.uint8)
                stamp_ns = int(rig_from_device(plan.clock, device_ns))
                present = self.at_time(stamp_ns).plan if self.later else plan
                size = int(render_info_packet(present, self.platform, self.position_framing, int(counters.sum()), device_ns, row))
                if size:
                    rows.append(row)
                    sizes.append(size)
                    stamps.append(stamp_ns)
                    deadlines.append(deadline_ns)
            counters[schedule] += 1
        payload = np.array(rows, np.uint8).reshape(len(rows), self.position_framing.header_size + plan.info_size)
        return DatagramBatch(self.position_flow, np.array(deadlines, np.int64), np.array(stamps, np.int64), np.array(sizes, np.int32), payload)


class LaterLidar(NamedTuple):
    """A changed lidar and the rig time from which it replaces the former one.

    Attributes:
        begin_ns: Rig time from which its firings are the changed lidar's.
        lidar: The changed lidar; its own ``later`` is ignored.
    """

    begin_ns: int
    lidar: LidarEmulator
