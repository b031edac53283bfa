"""Recording offline: what a rig would send, written to a capture as fast as the machine goes, always the same bytes."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.assembly.build import build_lidar, build_scenery
from hilsim.capture.pcap import Stamps
from hilsim.config.rig import Rig
from hilsim.daemon.streaming.replays import taken_addresses
from hilsim.emulator.batch import DatagramBatch, Flow
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.truth import packets_with_truth
from hilsim.errors import ConfigError
from hilsim.offline.part_file import written_whole
from hilsim.offline.truth_file import PacketsTruth, SensorsTruth, TruthFile, merged_truth
from hilsim.render.renderer import Renderer
from hilsim.replay.flows import LoopbackSources
from hilsim.replay.offline import OfflineReplay
from hilsim.replay.plan import begin_times_ns
from hilsim.sinks.base import SentBatch, Sink, SinkFlow
from hilsim.sinks.pcap import PcapFileSink

MILLISECOND_NS = 1_000_000
_TRUTH_BATCH_MS = 100  # ground truth is 4 MB of a VLP-16 in this time, held twice for each thread


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What was recorded; ``returns`` counts the rows of ground truth, None without."""

    packets: int
    bytes_: int
    returns: int | None
    notes: tuple[str, ...]


class Span(NamedTuple):
    """A stretch of what is sent: datagrams of all flows, and the ground truth of the emulated sensors, where asked for."""

    batch: "Merged"
    truth: SensorsTruth | None


class Merged(NamedTuple):
    """Datagrams of several flows in the order of their deadlines.

    Attributes:
        deadline_ns: ``int64[n]``, rig time.
        flow: ``int64[n]``: place of each one's flow in ``flows``.
        size: ``int32[n]``.
        payload: ``uint8[n, capacity]``.
        flows: In the order of the batches.
    """

    deadline_ns: npt.NDArray[np.int64]
    flow: npt.NDArray[np.int64]
    size: npt.NDArray[np.int32]
    payload: npt.NDArray[np.uint8]
    flows: tuple[Flow, ...]


def merged(batches: list[DatagramBatch]) -> Merged:
    """Datagrams of several flows in the order of their deadlines; equal deadlines in the order of the flows."""
    capacity = max(batch.payload.shape[1] for batch in batches)
    counts = [batch.size.size for batch in batches]
    payload = np.zeros((sum(counts), capacity), np.uint8)
    row = 0
    for batch in batches:
        payload[row : row + batch.size.size, : batch.payload.shape[1]] = batch.payload
        row += batch.size.size
    deadline = np.concatenate([batch.deadline_ns for batch in batches])
    order = np.argsort(deadline, kind="stable")
    return Merged(
        deadline[order],
        np.repeat(np.arange(len(batches)), counts)[order],
        np.concatenate([batch.size for batch in batches])[order],
        payload[order],
        tuple(batch.flow for batch in batches),
    )


class FlowNumbers:
    """Numbers of a recording's flows: one each, from its first datagram on."""

    def __init__(self) -> None:
        self._number: dict[Flow, int] = {}
        self.flows: dict[int, SinkFlow] = {}

    def batch(self, batch: Merged, utc_epoch_ns: int) -> SentBatch:
        """As sinks take it, stamped with the deadlines."""
        for flow in batch.flows:
            number = self._number.setdefault(flow, len(self._number))
            self.flows[number] = SinkFlow(number=number, name=flow.name)
        numbers = np.array([self._number[flow] for flow in batch.flows], np.int64)
        stamp_ns = utc_epoch_ns + batch.deadline_ns
        return SentBatch(stamp_ns, stamp_ns, numbers[batch.flow], batch.payload, batch.size, self.flows)


def _render(lidar: LidarEmulator, start_ns: int, stop_ns: int) -> PacketsTruth:
    """A lidar's data packets due in a stretch of rig time, with their ground truth."""
    first = lidar.first_data_packet(start_ns)
    packets, truth = packets_with_truth(lidar, first, lidar.first_data_packet(stop_ns) - first)
    return PacketsTruth(first, packets, truth)


def spans(
    lidars: list[LidarEmulator],
    replays: list[OfflineReplay],
    duration_ns: int,
    batch_ns: int,
    threads: int,
    *,
    with_truth: bool,
    renderer: Renderer | None = None,
) -> Iterator[Span]:
    """Everything sent in ``[0, duration_ns)``, merged, ``batch_ns`` at a time, rendered by ``threads`` threads with bounded memory.

    A ``renderer`` that is given casts the rays; it is called by one thread at a time only where ``threads`` is 1.
    """

    def render(start_ns: int) -> tuple[list[DatagramBatch], SensorsTruth | None]:
        stop_ns = min(start_ns + batch_ns, duration_ns)
        parts = [_render(lidar, start_ns, stop_ns) for lidar in lidars] if with_truth else []
        data = [part.packets for part in parts] if with_truth else [lidar.data_span(start_ns, stop_ns, renderer) for lidar in lidars]
        positions = [lidar.position_span(start_ns, stop_ns) for lidar in lidars]
        batches = [batch for pair in zip(data, positions, strict=True) for batch in pair]
        return batches, merged_truth(parts) if parts else None

    starts = iter(range(0, duration_ns, batch_ns))
    with ThreadPoolExecutor(threads, thread_name_prefix="record") as pool:
        waiting = [(start, pool.submit(render, start)) for start in islice(starts, 2 * threads)]
        while waiting:
            start_ns, rendered = waiting.pop(0)
            batches, truth = rendered.result()
            batches = batches + [batch for replay in replays for batch in replay.span(min(start_ns + batch_ns, duration_ns))]
            waiting.extend((start, pool.submit(render, start)) for start in islice(starts, 1))
            if batches:
                yield Span(merged(batches), truth)


def record(
    rig: Rig,
    path: Path,
    *,
    duration_ns: int,
    utc_epoch_ns: int,
    batch_ms: int,
    threads: int,
    progress: Callable[[int], None],
    truth: Path | None = None,
    stamps: Stamps = "ns",
    renderer: Renderer | None = None,
) -> Recording:
    """Write ``duration_ns`` of a rig to ``path`` as frames with the sensors' own headers, stamped with their deadlines.

    Args:
        rig: The rig.
        path: PCAP file, replaced when the recording is whole: until then, and after an exception, what was written is in ``part_path(path)``.
        duration_ns: Rig time from 0.
        utc_epoch_ns: UTC of rig time 0.
        batch_ms: How much is rendered at a time; does not change a byte.
        threads: How many threads render; does not change a byte.
        progress: Called with the rig time (ns) written so far.
        truth: Parquet file for the ground truth of every return of the emulated sensors, replaced as ``path`` is; does not change a byte of the capture.
        stamps: Whether the capture's stamps count nanoseconds or microseconds.
        renderer: What casts the rays, instead of the kernels that are compiled with the rest; not with ``truth``, and with ``threads`` 1.

    Raises:
        AssetError: the rig's files cannot be used.
        CaptureError: a file cannot be written, or a capture that the rig replays cannot be read.
        ConfigError: ground truth is asked of a rig without an emulated sensor.
    """
    sources = LoopbackSources(taken=taken_addresses(rig))
    replays = [OfflineReplay(spec, rig.directory / spec.file, sources, utc_epoch_ns=utc_epoch_ns) for spec in rig.spec.replay]
    for replay, begin_ns in zip(
        replays, begin_times_ns([(spec, offline.first_ns) for spec, offline in zip(rig.spec.replay, replays, strict=True)]), strict=True
    ):
        replay.begin_ns = begin_ns
    scenery = build_scenery(rig, flight_ns=duration_ns) if rig.spec.sensor else None
    lidars = [build_lidar(rig, number, scenery, utc_epoch_ns=utc_epoch_ns, frames=True) for number in range(len(rig.lidars))] if scenery else []
    packets = written = done_ns = 0
    truth_file = None
    step_ms = batch_ms if truth is None else min(batch_ms, _TRUTH_BATCH_MS)
    with ExitStack() as files:
        if truth is not None:
            if scenery is None:
                raise ConfigError("a rig must have a [[sensor]] for ground truth to be written, got none")
            truth_file = files.enter_context(TruthFile(files.enter_context(written_whole(truth)), rig, scenery, utc_epoch_ns=utc_epoch_ns))
        sink: Sink = PcapFileSink(files.enter_context(written_whole(path)), stamps=stamps)
        files.callback(sink.close)
        sink.open(())
        numbers = FlowNumbers()
        for batch, rows in spans(lidars, replays, duration_ns, step_ms * MILLISECOND_NS, threads, with_truth=truth is not None, renderer=renderer):
            sink.write(numbers.batch(batch, utc_epoch_ns))
            if truth_file is not None and rows is not None:
                truth_file.write(rows)
            packets += batch.size.size
            written += int(batch.size.sum())
            done_ns = min(done_ns + step_ms * MILLISECOND_NS, duration_ns)
            progress(done_ns)
    notes = (
        *(scenery.notes if scenery else ()),
        *(f"{spec.name}: {offline.note}" for spec, offline in zip(rig.spec.replay, replays, strict=True) if offline.note),
    )
    return Recording(packets=packets, bytes_=written, returns=truth_file.rows if truth_file else None, notes=notes)
