"""Record what a rig would send."""

import os
from datetime import datetime
from pathlib import Path
from typing import Literal

from hilsim.api.rigs import RigSource, as_rig
from hilsim.config.rig import Rig
from hilsim.config.script import load_script
from hilsim.errors import require
from hilsim.offline.epoch import rig_utc_ns
from hilsim.offline.record import DEFAULT_BATCH_MS, Recording
from hilsim.offline.record import record as record_rig


def record(
    rig: Rig | RigSource,
    path: str | Path,
    *,
    duration_s: float = 10.0,
    start_utc: str | datetime | None = None,
    truth: str | Path | None = None,
    stamps: Literal["ns", "us"] | None = None,
    threads: int | None = None,
    script: str | Path | None = None,
) -> Recording:
    """Write what a rig would send to a capture, as fast as the machine renders and always with the same bytes, like ``hilsim record``.

    Args:
        rig: Result of ``load_rig``, or one of its sources: a path, the name of a shipped rig, a mapping.
        path: PCAP file, which gets its name when it is complete.
        duration_s: Length of the recording in rig time.
        start_utc: UTC of rig time 0, to the second; None: the rig's ``transmit.epoch_utc``, else 2026-01-01T00:00:00Z.
        truth: Parquet file for the ground truth of every return; needs pyarrow.
        stamps: Unit of the capture's stamps, nanoseconds or microseconds; None: as set in the rig.
        threads: Number of rendering threads; does not affect the bytes. None: one a core.
        script: File of timed changes, or None.

    Returns:
        Numbers of written ``packets``, ``bytes_`` and ``returns`` (None without truth), and ``notes`` for the operator.

    Raises:
        AssetError: a file of the scene cannot be used.
        CaptureError: a file cannot be written, or a capture that the rig replays cannot be read.
        ConfigError: the rig or the script is invalid.
        ValueError: ``duration_s`` or ``start_utc`` is invalid.
    """
    require((0.001 <= duration_s <= 1e6, f"duration_s must be 0.001 to 1e6, got {duration_s}"))
    loaded = as_rig(rig)
    return record_rig(
        loaded,
        Path(path),
        duration_ns=round(duration_s * 1e9),
        utc_epoch_ns=rig_utc_ns(loaded, start_utc),
        batch_ms=DEFAULT_BATCH_MS,
        threads=threads or os.cpu_count() or 1,
        progress=lambda _done_ns: None,
        truth=None if truth is None else Path(truth),
        stamps=stamps,
        script=None if script is None else load_script(Path(script)),
    )
