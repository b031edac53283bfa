"""A sink that writes a line of CSV for each datagram: time of sending, lateness, flow and size."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from hilsim import CaptureError
from hilsim.plugins import SentBatch, SinkContext, SinkFlow, SinkPlugin, require


@dataclass(frozen=True, kw_only=True)
class DeparturesSettings:
    """Keys of ``[[sink]]`` with ``kind = "departures"``.

    Attributes:
        file: Path of the file, relative to the rig.
        flow: Flow to write, such as ``roof/data``; empty: all.
    """

    file: str
    flow: str = ""

    def __post_init__(self) -> None:
        require((bool(self.file) and not self.file.endswith("/"), f'file must name a file, got "{self.file}"'))


class DeparturesSink:
    """One file, replaced when the rig starts."""

    def __init__(self, settings: DeparturesSettings, context: SinkContext) -> None:
        self._path = context.directory / settings.file
        self._flow = settings.flow
        self._file: TextIO | None = None
        self.target = str(self._path)
        self.written = 0

    def check(self) -> None:
        """Raise where the directory is missing."""
        if not self._path.parent.is_dir():
            raise CaptureError(f"{self._path}: the directory must exist, and {self._path.parent} does not")

    def open(self, flows: Sequence[SinkFlow]) -> None:
        """Begin; flows come with each batch."""
        del flows
        self._file = self._path.open("w", encoding="ascii")
        self._file.write("sent_ns,late_ns,flow,payload_bytes\n")

    def write(self, batch: SentBatch) -> None:
        """Write a line for each datagram; an ignored one also counts as written."""
        assert self._file is not None, "a sink is opened before it is written to"
        columns = (batch.stamp_ns, batch.stamp_ns - batch.deadline_ns, batch.flow)
        for row, (sent_ns, late_ns, number) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            flow = batch.flows[number].name
            if self._flow in {"", flow}:
                self._file.write(f"{sent_ns},{late_ns},{flow},{batch.datagram(row).size}\n")
        self._file.flush()
        self.written += batch.size.size

    def close(self) -> None:
        """End the file, once."""
        if self._file is not None:
            self._file.close()
            self._file = None


DEPARTURES = SinkPlugin(settings=DeparturesSettings, make=DeparturesSink)
