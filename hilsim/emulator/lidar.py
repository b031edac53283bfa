"""One emulated lidar: specs, world, platform and seed in, datagrams out; any stretch of time, in any order, always the same bytes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hilsim.emulator.backdrop import sample_background
from hilsim.emulator.batch import DatagramBatch, Flow
from hilsim.emulator.detection import respond
from hilsim.emulator.encoding import encode
from hilsim.emulator.firing import fire
from hilsim.emulator.fused import frame_datagram, render_data_packets, render_info_packet
from hilsim.emulator.layers import trace_together
from hilsim.emulator.overlay import Overlay, OverlayRule
from hilsim.emulator.plan import BeamCells, LidarPlan
from hilsim.emulator.planning import build_lidar_plan
from hilsim.emulator.position import position_deadline_ns
from hilsim.emulator.schedule import data_deadline_ns, first_packet_due
from hilsim.emulator.setting import LidarSetting
from hilsim.emulator.workspace import Returns, Workspace, allocate_workspace
from hilsim.protocols.ethernet import PAYLOAD_ONLY, Framing
from hilsim.render.renderer import RaySlice, Renderer
from hilsim.scene.world import World
from hilsim.sensor.clock import device_from_rig, rig_from_device
from hilsim.sensor.position_stream import next_position, seek_positions
from hilsim.vehicle.platform import Platform


@dataclass(frozen=True, kw_only=True)
class LidarEmulator:
    """A lidar bound to a world and a platform.

    Attributes:
        setting: The lidar.
        world: What it sees.
        platform: Carries the lidar.
        seed: The rig's seed.
        utc_epoch_ns: UTC of rig time 0.
        data_flow: Where data packets go.
        position_flow: Where position packets go.
        data_framing: Bytes of data datagrams: payload, or whole frames.
        position_framing: The same for position datagrams.
        overlay: What it sees of a captured background.
        cells: What its beams can meet, where the platform stands still: rays are cast faster, and no byte changes.
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
    cells: BeamCells | None = None

    @cached_property
    def plan(self) -> LidarPlan:
        """Kernel-side lidar."""
        return build_lidar_plan(self.setting, seed=self.seed, utc_epoch_ns=self.utc_epoch_ns, overlay=self.overlay, cells=self.cells)

    def first_data_packet(self, start_ns: int) -> int:
        """Index of the first data packet due at or after rig time ``start_ns``."""
        return int(first_packet_due(self.plan, start_ns))

    def data_packets(self, first: int, count: int, renderer: Renderer | None = None) -> DatagramBatch:
        """Data packets ``first`` to ``first + count - 1``.

        Without a renderer the fused CPU kernel runs; with one the same stages are called around it. The bytes are the same wherever the
        renderer's ranges are.
        """
        datagrams = np.zeros((count, self.data_framing.header_size + self.plan.data_size), np.uint8)
        size = np.zeros(count, np.int32)
        if renderer is None:
            workspace = allocate_workspace(self.plan, self.plan.sequences_per_packet, is_opaque=self.world.is_opaque)
            render_data_packets(self.plan, self.platform, self.world, self.data_framing, first, workspace, size, datagrams)
        else:
            self._render_by_stages(renderer, first, size, datagrams)
        deadline = np.array([data_deadline_ns(self.plan, packet) for packet in range(first, first + count)], dtype=np.int64)
        return DatagramBatch(self.data_flow, deadline, deadline - self.plan.data_latency_ns, size, datagrams)

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
            )
            encode(self.plan, first + row, part, firings.counts, self.data_framing.header_size, datagrams[row])
            size[row] = frame_datagram(self.data_framing, first + row, datagrams[row], self.plan.data_size)

    def firings(self, first: int, count: int, renderer: Renderer) -> Workspace:
        """Everything about the firings of ``count`` data packets, from rays with true ranges to what is reported: the ground truth beside the packets.

        Firings are ``[channel, sequence]`` flattened, ``count * sequences_per_packet`` sequences.
        """
        plan, world = self.plan, self.world
        sequences = count * plan.sequences_per_packet
        first_sequence = first * plan.sequences_per_packet
        workspace = allocate_workspace(plan, sequences, is_opaque=world.is_opaque)
        fire(plan, self.platform, first_sequence, sequences, workspace.rays)
        if plan.overlay.rule != OverlayRule.SYNTHETIC_ONLY:
            sample_background(plan, first_sequence, sequences, workspace.backdrop)

        def cast(slices: Sequence[RaySlice]) -> None:
            for rays in slices:
                renderer.cast_rays(world, *rays)

        trace_together(cast, plan, world, [workspace])
        respond(plan, first_sequence, sequences, workspace)
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
                sizes.append(int(render_info_packet(plan, self.platform, self.position_framing, int(counters.sum()), device_ns, row)))
                rows.append(row)
                deadlines.append(deadline_ns)
                stamps.append(int(rig_from_device(plan.clock, device_ns)))
            counters[schedule] += 1
        payload = np.array(rows, np.uint8).reshape(len(rows), self.position_framing.header_size + plan.info_size)
        return DatagramBatch(self.position_flow, np.array(deadlines, np.int64), np.array(stamps, np.int64), np.array(sizes, np.int32), payload)
