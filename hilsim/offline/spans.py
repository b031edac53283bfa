"""Packets of a rig without a real-time clock: any stretch of rig time, in the order of deadlines, always with the same bytes."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from hilsim.assembly.build import Scenery, build_lidar, build_scenery, carried_scenery
from hilsim.assembly.changed import carrier_changes, changing_lidars, check_script, seen_worlds
from hilsim.config.part_kind import carrier, parts_of, sees_scene
from hilsim.config.rig import Rig
from hilsim.config.script import ChangeSpec, Script
from hilsim.daemon.precompile import compile_beside
from hilsim.emulator.batch import DatagramBatch
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.truth import Truth, packets_with_truth
from hilsim.errors import ConfigError
from hilsim.offline.fault_causes import faults_in_truth
from hilsim.offline.merging import Merged, merged
from hilsim.offline.network import NetworkPath, network_path
from hilsim.offline.truth_file import PacketsTruth, SensorsTruth, merged_truth
from hilsim.world.render.renderer import Renderer
from hilsim.world.scene.world import World


class Span(NamedTuple):
    """A stretch of rig time: datagrams of all flows, and the ground truth of the emulated sensors, if requested."""

    batch: Merged
    truth: SensorsTruth | None


class OfflineSource(Protocol):
    """Source of packets beside the emulated sensors: a part without a real-time clock."""

    @property
    def note(self) -> str:
        """Remark for the operator, empty for none."""

    def span(self, stop_ns: int) -> list[DatagramBatch]:
        """Next datagrams, up to those due before rig time ``stop_ns``."""


@runtime_checkable
class OverlaidSource(OfflineSource, Protocol):
    """Source of recorded packets, into whose points objects may be put.

    Attributes:
        truth: Ground truth of the returns that objects made, since it was taken last, with the deadline of each packet; None: it is not noted.
    """

    truth: list[tuple[int, Truth]] | None

    @property
    def is_overlaid(self) -> bool:
        """Whether objects are put into its points."""

    def take_truth(self) -> tuple[npt.NDArray[np.int64], Truth]:
        """Deadline of each row's packet, ``int64[n]``, and the rows of ``truth``, which is emptied."""


def _render(number: int, lidar: LidarEmulator, start_ns: int, stop_ns: int) -> tuple[DatagramBatch, PacketsTruth]:
    """Render a lidar's data packets due in a stretch of rig time, with their ground truth."""
    first = lidar.first_data_packet(start_ns)
    packets, truth = packets_with_truth(lidar, first, lidar.first_data_packet(stop_ns) - first)
    truth = faults_in_truth(lidar, first, packets.size.size, truth)
    return packets, PacketsTruth(number, packets.deadline_ns[truth.packet - first], truth)


@dataclass(frozen=True, kw_only=True)
class OfflineRig:
    """A rig that sends nothing, whose packets are rendered on request.

    Attributes:
        rig: The rig.
        utc_epoch_ns: UTC of rig time 0.
        scenery: Scene that the emulated sensors and parts share; None without such.
        lidars: Emulated sensors in the rig's order, which make whole frames.
        first_scenery: Scenery before any change.
        script: Timed changes; None for no changes.
    """

    rig: Rig
    utc_epoch_ns: int
    scenery: Scenery | None
    lidars: tuple[LidarEmulator, ...]
    first_scenery: Scenery | None
    script: Script | None = None

    def network(self) -> NetworkPath | None:
        """The way of its datagrams from the sensors' sockets on, at rig time 0; None for one without faults.

        Raises:
            ConfigError: a fault of the script cannot be made.
        """
        return network_path(self.rig, self.script)

    def sources(self, threads: int = 1) -> list[tuple[str, OfflineSource]]:
        """Names and sources of the rig's parts, those that stand for sensors first, each at its beginning and with a number of threads.

        Raises:
            AssetError: a file of a part cannot be used.
            ConfigError: a part cannot be recorded.
            CaptureError: a capture cannot be replayed.
        """
        found: list[tuple[str, OfflineSource]] = []
        for kind, _ in sorted(parts_of(self.rig.spec), key=lambda each: not each[0].is_sensor):
            sources = kind.sources(self, threads)
            if sources is None:
                raise ConfigError(f"{self.rig.path}: {kind.table} must not be given where nothing runs in real time: it cannot be recorded")
            found.extend(sources)
        return found

    @property
    def world(self) -> World | None:
        """World that parts see; None where nothing sees one."""
        return self.scenery.world if self.scenery else None

    @cached_property
    def _changed_worlds(self) -> list[tuple[ChangeSpec, World]]:
        """Worlds that follow the rig's own, with the changes that make them."""
        if self.script is None or self.first_scenery is None:
            return []
        return seen_worlds(self.rig, self.first_scenery, self.script)

    def later_worlds(self, name: str) -> list[tuple[int, World]]:
        """Worlds that a part of a name sees after the rig's own, with their rig times."""
        return [(change.sensor_ns(name), world) for change, world in self._changed_worlds]


def build_offline(rig: Rig, *, utc_epoch_ns: int, until_ns: int, script: Script | None = None) -> OfflineRig:
    """Build a rig's scene and emulated sensors.

    Args:
        rig: The rig.
        utc_epoch_ns: UTC of rig time 0.
        until_ns: Rig time up to which a part moves the platform of the sensors.
        script: Timed changes of the rig, or None.

    Raises:
        AssetError: the rig's files cannot be used.
        ConfigError: a part cannot move the platform without a clock, a background does not belong to its sensor, or a change cannot be made.
    """
    compile_beside(rig)
    for kind, specs in parts_of(rig.spec):
        for fault in filter(None, map(kind.real_time, specs)):
            raise ConfigError(f"{rig.path}: {fault}")
    is_seen = bool(rig.spec.sensor) or sees_scene(rig.spec)
    is_carried = carrier(rig.spec) is not None and bool(rig.spec.sensor)
    scenery = build_scenery(rig, until_ns=until_ns if is_carried and script is None else None) if is_seen else None
    if is_carried and script is not None and scenery is not None:
        scenery = carried_scenery(rig, scenery, until_ns, carrier_changes(rig, scenery, script))
    lidars: Sequence[LidarEmulator] = (
        [build_lidar(rig, number, scenery, utc_epoch_ns=utc_epoch_ns, frames=True) for number in range(len(rig.lidars))] if scenery else []
    )
    if script is not None and scenery is not None:
        lidars, state = changing_lidars(rig, scenery, lidars, script)
        grown = replace(scenery, objects=state.objects, materials=state.materials)
        return OfflineRig(rig=rig, utc_epoch_ns=utc_epoch_ns, scenery=grown, lidars=tuple(lidars), first_scenery=scenery, script=script)
    if script is not None:
        check_script(rig, None, script)
    return OfflineRig(rig=rig, utc_epoch_ns=utc_epoch_ns, scenery=scenery, lidars=tuple(lidars), first_scenery=scenery, script=script)


def spans(
    lidars: Sequence[LidarEmulator],
    sources: Sequence[OfflineSource],
    start_ns: int,
    stop_ns: int,
    batch_ns: int,
    threads: int,
    *,
    with_truth: bool,
    renderer: Renderer | None = None,
    network: NetworkPath | None = None,
) -> Iterator[Span]:
    """Render everything sent in ``[start_ns, stop_ns)`` of rig time, merged, ``batch_ns`` at a time, by ``threads`` threads with bounded memory.

    If ``renderer`` is given, it casts the rays; with ``threads`` above 1, several threads call it at a time. Sources continue from their present place, and
    their datagrams due before ``start_ns`` are discarded. What a ``network`` holds or remembers is as if all had been rendered from rig time 0 on.
    """
    first_ns = network.earliest_ns(start_ns) if network is not None else start_ns

    def end_of(begin_ns: int) -> int:
        return min(begin_ns + batch_ns, stop_ns if begin_ns >= start_ns else start_ns)

    def render(begin_ns: int) -> tuple[list[DatagramBatch], list[PacketsTruth]]:
        end_ns = end_of(begin_ns)
        parts = [_render(number, lidar, begin_ns, end_ns) for number, lidar in enumerate(lidars)] if with_truth else []
        data = [packets for packets, _ in parts] if with_truth else [lidar.data_span(begin_ns, end_ns, renderer) for lidar in lidars]
        positions = [lidar.position_span(begin_ns, end_ns) for lidar in lidars]
        batches = [batch for pair in zip(data, positions, strict=True) for batch in pair]
        return batches, [truth for _, truth in parts]

    with_objects = {len(lidars) + number: each for number, each in enumerate(sources) if isinstance(each, OverlaidSource) and each.is_overlaid}
    overlaid = with_objects if with_truth else {}
    for each in overlaid.values():
        each.truth = []
    for source in sources:
        for passed_ns in (*range(batch_ns, first_ns, batch_ns), first_ns):
            source.span(passed_ns)
    begins = chain(range(first_ns, start_ns, batch_ns), range(start_ns, stop_ns, batch_ns))
    with ThreadPoolExecutor(threads, thread_name_prefix="record") as pool:
        waiting = [(begin, pool.submit(render, begin)) for begin in islice(begins, 2 * threads)]
        while waiting:
            begin_ns, rendered = waiting.pop(0)
            batches, parts = rendered.result()
            batches = batches + [batch for source in sources for batch in source.span(end_of(begin_ns))]
            waiting.extend((begin, pool.submit(render, begin)) for begin in islice(begins, 1))
            batch = merged(batches) if batches else None
            if network is not None:
                batch = network.passed(batch, end_of(begin_ns))
            if begin_ns >= start_ns and batch is not None:
                parts += [PacketsTruth(number, *each.take_truth()) for number, each in overlaid.items()]
                yield Span(batch, merged_truth(parts) if parts else None)
