"""Recording offline: what a rig would send, written to a capture as fast as the machine goes, always the same bytes."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from hilsim.capture.pcap import PcapWriter
from hilsim.config.rig import Rig
from hilsim.daemon.build import build_lidar, build_scenery
from hilsim.daemon.replays import taken_addresses
from hilsim.emulator.batch import DatagramBatch
from hilsim.emulator.lidar import LidarEmulator
from hilsim.replay.flows import LoopbackSources
from hilsim.replay.offline import OfflineReplay
from hilsim.replay.plan import begin_times_ns

MILLISECOND_NS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What was recorded."""

    packets: int
    bytes_: int
    notes: tuple[str, ...]


def merged(batches: list[DatagramBatch]) -> DatagramBatch:
    """Datagrams of several flows in the order of their deadlines; equal deadlines in the order of the flows."""
    capacity = max(batch.payload.shape[1] for batch in batches)
    total = sum(batch.size.size for batch in batches)
    payload = np.zeros((total, capacity), np.uint8)
    row = 0
    for batch in batches:
        payload[row : row + batch.size.size, : batch.payload.shape[1]] = batch.payload
        row += batch.size.size
    deadline = np.concatenate([batch.deadline_ns for batch in batches])
    order = np.argsort(deadline, kind="stable")
    return DatagramBatch(
        batches[0].flow,
        deadline[order],
        np.concatenate([batch.pose_ns for batch in batches])[order],
        np.concatenate([batch.size for batch in batches])[order],
        payload[order],
    )


def spans(lidars: list[LidarEmulator], replays: list[OfflineReplay], duration_ns: int, batch_ns: int, threads: int) -> Iterator[DatagramBatch]:
    """Everything sent in ``[0, duration_ns)``, merged, ``batch_ns`` at a time, rendered by ``threads`` threads with bounded memory."""

    def render(start_ns: int) -> list[DatagramBatch]:
        stop_ns = min(start_ns + batch_ns, duration_ns)
        parts = [(lidar.data_span(start_ns, stop_ns), lidar.position_span(start_ns, stop_ns)) for lidar in lidars]
        return [batch for pair in parts for batch in pair]

    starts = iter(range(0, duration_ns, batch_ns))
    with ThreadPoolExecutor(threads, thread_name_prefix="record") as pool:
        waiting = [(start, pool.submit(render, start)) for start in islice(starts, 2 * threads)]
        while waiting:
            start_ns, rendered = waiting.pop(0)
            batches = rendered.result() + [batch for replay in replays for batch in replay.span(min(start_ns + batch_ns, duration_ns))]
            waiting.extend((start, pool.submit(render, start)) for start in islice(starts, 1))
            if batches:
                yield merged(batches)


def record(
    rig: Rig,
    path: Path,
    *,
    duration_ns: int,
    utc_epoch_ns: int,
    batch_ms: int,
    threads: int,
    progress: Callable[[int], None],
) -> Recording:
    """Write ``duration_ns`` of a rig to ``path`` as frames with the sensors' own headers, stamped with their deadlines.

    Args:
        rig: The rig.
        path: Nanosecond PCAP file, replaced.
        duration_ns: Rig time from 0.
        utc_epoch_ns: UTC of rig time 0.
        batch_ms: How much is rendered at a time; does not change a byte.
        threads: How many threads render; does not change a byte.
        progress: Called with the rig time (ns) written so far.

    Raises:
        AssetError: the rig's files cannot be used.
        CaptureError: the capture cannot be written, or one that the rig replays cannot be read.
    """
    sources = LoopbackSources(taken=taken_addresses(rig))
    replays = [OfflineReplay(spec, rig.directory / spec.file, sources, utc_epoch_ns=utc_epoch_ns) for spec in rig.spec.replay]
    for replay, begin_ns in zip(
        replays, begin_times_ns([(spec, one.first_ns) for spec, one in zip(rig.spec.replay, replays, strict=True)]), strict=True
    ):
        replay.begin_ns = begin_ns
    scenery = build_scenery(rig) if rig.spec.sensor else None
    lidars = [build_lidar(rig, number, scenery, utc_epoch_ns=utc_epoch_ns, frames=True) for number in range(len(rig.lidars))] if scenery else []
    packets = written = done_ns = 0
    with PcapWriter(path) as writer:
        for batch in spans(lidars, replays, duration_ns, batch_ms * MILLISECOND_NS, threads):
            writer.write_many(utc_epoch_ns + batch.deadline_ns, batch.payload, batch.size)
            packets += batch.size.size
            written += int(batch.size.sum())
            done_ns = min(done_ns + batch_ms * MILLISECOND_NS, duration_ns)
            progress(done_ns)
    return Recording(packets=packets, bytes_=written, notes=scenery.notes if scenery else ())
