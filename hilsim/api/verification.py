"""Check whether a stream is what a real sensor sends."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hilsim.api.packet import Packet, datagrams_of
from hilsim.capture.metadata import given_metadata
from hilsim.capture.pcap import CaptureFile
from hilsim.read.analysis.conformance.checker import StreamChecker
from hilsim.read.analysis.conformance.findings import Severity
from hilsim.read.analysis.conformance.report import render_text, to_json
from hilsim.read.analysis.conformance.result import CheckResult


@dataclass(frozen=True, kw_only=True)
class VerifyReport:
    """Result of ``hilsim verify`` for a stream; ``str(report)`` is its text.

    Attributes:
        result: Figures and findings of each sensor.
        notes: Remarks on skipped or doubtful parts of the capture.
    """

    result: CheckResult
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no rule is broken."""
        return self.result.passed

    @property
    def errors(self) -> int:
        """Number of reported errors."""
        return self.result.count(Severity.ERROR)

    @property
    def warnings(self) -> int:
        """Number of reported warnings."""
        return self.result.count(Severity.WARNING)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as ``hilsim verify --json`` prints them."""
        return to_json(self.result) | {"notes": list(self.notes)}

    def __str__(self) -> str:
        return "\n".join(render_text(self.result))


def verify(source: str | Path | Iterable[Packet], *, metadata: str | Path | Sequence[str | Path] = ()) -> VerifyReport:
    """Check a Velodyne, Cepton (STDV) or Ouster stream bit by bit, of real sensors and emulated ones alike.

    Args:
        source: Path of a capture, or packets in the order of their times.
        metadata: Metadata files (JSON) of Ouster sensors; default: ``x.json`` or ``x.1.json`` … beside a capture ``x.pcap``.

    Raises:
        CaptureError: the capture or metadata cannot be read.
    """
    paths = [metadata] if isinstance(metadata, str | Path) else metadata
    capture = Path(source) if isinstance(source, str | Path) else None
    checker = StreamChecker(given_metadata([*map(Path, paths)], capture))
    if not isinstance(source, str | Path):
        checker.feed(datagrams_of(source))
        return VerifyReport(result=checker.result())
    file = CaptureFile(Path(source))
    checker.feed(file)
    return VerifyReport(result=checker.result(), notes=file.notes.lines())
