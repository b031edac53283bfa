"""Processor of this machine."""

import os
import platform
from pathlib import Path


def usable_cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def processor_text() -> str:
    """Name of the processor and its vector extension, where Linux reports them: ``AMD EPYC, AVX-512``."""
    path = Path("/proc/cpuinfo")
    info = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    lines = dict(line.split(":", 1) for line in info.split("\n") if ":" in line)
    fields = {key.strip(): value.strip() for key, value in lines.items()}
    flags = fields.get("flags", "").split()
    vector = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "SSE only" if "sse2" in flags else ""
    return ", ".join(filter(None, (fields.get("model name", platform.machine()), vector)))
