"""Recording offline: what a rig would send, written to a capture as fast as the machine goes, always the same bytes."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hilsim.capture.pcap import Stamps
from hilsim.config.rig import Rig
from hilsim.config.script import Script
from hilsim.errors import ConfigError
from hilsim.offline.part_file import written_whole
from hilsim.offline.spans import Merged, build_offline, spans
from hilsim.offline.truth_file import TruthFile
from hilsim.render.renderer import Renderer
from hilsim.sinks.base import SentBatch, Sink, SinkFlow
from hilsim.sinks.pcap import PcapFileSink

if TYPE_CHECKING:
    from hilsim.emulator.batch import Flow

MILLISECOND_NS = 1_000_000
DEFAULT_BATCH_MS = 100
"""Default length of one rendering step; changes no byte."""
_TRUTH_BATCH_MS = 100  # ground truth is 4 MB of a VLP-16 in this time, held twice for each thread


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What was recorded; ``returns`` counts the rows of ground truth, None without."""

    packets: int
    bytes_: int
    returns: int | None
    notes: tuple[str, ...]


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
        stamps: Whether the capture's stamps count nanoseconds or microseconds; None: as in the rig's ``[record]``.
        renderer: What casts the rays, instead of the kernels that are compiled with the rest; not with ``truth`` or ``script``, and with ``threads`` 1.
        script: Timed changes; None: the rig does not change.

    Raises:
        AssetError: the rig's files cannot be used.
        CaptureError: a file cannot be written, or a capture that the rig replays cannot be read.
        ConfigError: ground truth is asked of a rig without an emulated sensor, or a change of the script cannot be made.
    """
    offline = build_offline(rig, utc_epoch_ns=utc_epoch_ns, flight_ns=duration_ns, script=script)
    sources, scenery = offline.sources(), offline.scenery
    packets = written = done_ns = 0
    truth_file = None
    step_ms = batch_ms if truth is None else min(batch_ms, _TRUTH_BATCH_MS)
    with ExitStack() as files:
        if truth is not None:
            if scenery is None or not offline.lidars:
                raise ConfigError("a rig must have a [[sensor]] for ground truth to be written, got none")
            truth_file = files.enter_context(TruthFile(files.enter_context(written_whole(truth)), rig, scenery, utc_epoch_ns=utc_epoch_ns))
        sink: Sink = PcapFileSink(files.enter_context(written_whole(path)), stamps="us" if (stamps or rig.spec.record.stamps) == "us" else "ns")
        files.callback(sink.close)
        sink.open(())
        numbers = FlowNumbers()
        for batch, rows in spans(
            offline.lidars,
            [source for _, source in sources],
            0,
            duration_ns,
            step_ms * MILLISECOND_NS,
            threads,
            with_truth=truth is not None,
            renderer=renderer,
        ):
            sink.write(numbers.batch(batch, utc_epoch_ns))
            if truth_file is not None and rows is not None:
                truth_file.write(rows)
            packets += batch.size.size
            written += int(batch.size.sum())
            done_ns = min(done_ns + step_ms * MILLISECOND_NS, duration_ns)
            progress(done_ns)
    notes = (
        *(scenery.notes if scenery else ()),
        *(f"{name}: {source.note}" for name, source in sources if source.note),
    )
    return Recording(packets=packets, bytes_=written, returns=truth_file.rows if truth_file else None, notes=notes)
