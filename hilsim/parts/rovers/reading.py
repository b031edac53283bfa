"""Metrics of rovers."""

from dataclasses import dataclass
from typing import Annotated

from hilsim.telemetry.metrics import Label, counter, gauge


@dataclass(frozen=True, kw_only=True)
class RoverReading:
    """One rover.

    Attributes:
        name: Name in the rig.
    """

    name: Annotated[str, Label("rover")]
    cycles: Annotated[int, counter("hilsim_rover_cycles_total", "Cycles of a rover queued for sending")]
    late_cycles: Annotated[int, counter("hilsim_rover_late_cycles_total", "Cycles skipped because they could not begin in time")]
    empty_cycles: Annotated[int, counter("hilsim_rover_empty_cycles_total", "Cycles skipped because no scan had been read for them")]
    obeyed_commands: Annotated[int, counter("hilsim_rover_commands_total", "Commands applied to a rover's telemetry")]
    refused_commands: Annotated[
        int, counter("hilsim_rover_refused_commands_total", "Commands rejected because a thousand were queued; one per cycle is applied")
    ]
    waiting_scans: Annotated[int, gauge("hilsim_rover_lookahead_scans", "Scans read ahead")]
    passes: Annotated[int, counter("hilsim_rover_passes_total", "Passes through the file of scans completed")]
    damaged_lines: Annotated[int, gauge("hilsim_rover_damaged_lines", "Lines of the file skipped in the first pass")]
