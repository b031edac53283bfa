"""Offline recording: write what a rig would send to a capture as fast as the machine renders, always with the same bytes."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hilsim.assembly.build import network_stack, rig_metadata, sensor_flows
from hilsim.capture.metadata import write_beside
from hilsim.capture.pcap import Stamps
from hilsim.capture.sinks.base import SentBatch, Sink, SinkFlow
from hilsim.capture.sinks.pcap import PcapFileSink
from hilsim.config.part_kind import has_overlay
from hilsim.config.part_tables import known_kinds
from hilsim.config.rig import Rig
from hilsim.config.script import Script
from hilsim.errors import ConfigError
from hilsim.offline.merging import Merged
from hilsim.offline.part_file import written_whole
from hilsim.offline.spans import build_offline, spans
from hilsim.offline.truth_file import TruthFile
from hilsim.world.render.renderer import Renderer

if TYPE_CHECKING:
    from hilsim.emulator.batch import Flow

MILLISECOND_NS = 1_000_000
DEFAULT_BATCH_MS = 100
"""Default length of one rendering step; does not affect the bytes."""
_TRUTH_BATCH_MS = 100  # a VLP-16 makes 4 MB of ground truth in this time, stored twice for each thread


@dataclass(frozen=True, kw_only=True)
class Recording:
    """Result of a recording; ``returns`` is the number of rows of ground truth, None without ground truth."""

    packets: int
    bytes_: int
    returns: int | None
    notes: tuple[str, ...]


class FlowNumbers:
    """Numbers of a recording's flows, assigned at each flow's first datagram."""

    def __init__(self, stacks: Mapping[str, str]) -> None:
        """Without flows; ``stacks`` is ``SinkFlow.stack`` of flows by name, empty for others."""
        self._stacks = stacks
        self._number: dict[Flow, int] = {}
        self.flows: dict[int, SinkFlow] = {}

    def batch(self, batch: Merged, utc_epoch_ns: int) -> SentBatch:
        """Batch in the form that sinks take, stamped with the deadlines."""
        for flow in batch.flows:
            number = self._number.setdefault(flow, len(self._number))
            self.flows[number] = SinkFlow(number=number, name=flow.name, stack=self._stacks.get(flow.name, ""))
        numbers = np.array([self._number[flow] for flow in batch.flows], np.int64)
        stamp_ns = utc_epoch_ns + batch.deadline_ns
        return SentBatch(stamp_ns, stamp_ns, numbers[batch.flow], batch.payload, batch.size, self.flows)


def network_stacks(rig: Rig) -> dict[str, str]:
    """``SinkFlow.stack`` of every flow of a rig's sensors, by the flow's name."""
    sensors = list(zip(rig.spec.sensor, rig.lidars, strict=True))
    return {each.flow.name: network_stack(sensor, setting) for sensor, setting in sensors for each in sensor_flows(sensor, setting)}


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
    stamps: Stamps | None = None,
    renderer: Renderer | None = None,
    script: Script | None = None,
) -> Recording:
    """Write the first ``duration_ns`` of a rig to ``path`` as frames with the sensors' own headers, stamped with their deadlines.

    Args:
        rig: The rig.
        path: PCAP file, with the metadata of Ouster sensors beside it (``NAME.json``), replaced when the recording is complete; until then, and after an exception, the packets are in ``part_path(path)``.
        duration_ns: End of the recording in rig time.
        utc_epoch_ns: UTC of rig time 0.
        batch_ms: Length of one rendering step; does not affect the bytes.
        threads: Number of rendering threads; does not affect the bytes.
        progress: Callback for the rig time (ns) written so far.
        truth: Parquet file for the ground truth of every return of the emulated sensors and of what objects made in recorded points, replaced as ``path`` is; does not affect the capture's bytes.
        stamps: Unit of the capture's stamps, nanoseconds or microseconds; None: as in the rig's ``[record]``.
        renderer: Renderer that casts the rays instead of the CPU kernels; only without ``truth`` and ``script``, and with ``threads`` 1.
        script: Timed changes of the rig, or None.

    Raises:
        AssetError: the rig's files cannot be used.
        CaptureError: a file cannot be written, or a capture that the rig replays cannot be read.
        ConfigError: ground truth is requested for a rig without an emulated sensor, or a change of the script cannot be made.
    """
    offline = build_offline(rig, utc_epoch_ns=utc_epoch_ns, until_ns=duration_ns, script=script)
    sources, scenery = offline.sources(threads), offline.scenery
    packets = written = done_ns = 0
    truth_file = None
    step_ms = batch_ms if truth is None else min(batch_ms, _TRUTH_BATCH_MS)
    with ExitStack() as files:
        if truth is not None:
            if scenery is None or not (offline.lidars or has_overlay(rig.spec)):
                others = "".join(f", or a {kind.viewer}," for kind in known_kinds() if kind.inserts)
                raise ConfigError(f"a rig must have a [[sensor]]{others} for ground truth to be written, got none")
            truth_file = files.enter_context(TruthFile(files.enter_context(written_whole(truth)), rig, scenery, utc_epoch_ns=utc_epoch_ns))
        sink: Sink = PcapFileSink(files.enter_context(written_whole(path)), stamps="us" if (stamps or rig.spec.record.stamps) == "us" else "ns")
        files.callback(sink.close)
        sink.open(())
        numbers = FlowNumbers(network_stacks(rig))
        for batch, rows in spans(
            offline.lidars,
            [source for _, source in sources],
            0,
            duration_ns,
            step_ms * MILLISECOND_NS,
            threads,
            with_truth=truth is not None,
            renderer=renderer,
            network=offline.network(),
        ):
            sink.write(numbers.batch(batch, utc_epoch_ns))
            if truth_file is not None and rows is not None:
                truth_file.write(rows)
            packets += batch.size.size
            written += int(batch.size.sum())
            done_ns = min(done_ns + step_ms * MILLISECOND_NS, duration_ns)
            progress(done_ns)
    write_beside(path, rig_metadata(rig))
    notes = (
        *(scenery.notes if scenery else ()),
        *(f"{name}: {source.note}" for name, source in sources if source.note),
    )
    return Recording(packets=packets, bytes_=written, returns=truth_file.rows if truth_file else None, notes=notes)
