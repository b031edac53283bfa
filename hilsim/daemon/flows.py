"""Flows of a running rig: opened on its transmitter, and announced before their first datagram is sent."""

from collections.abc import Callable

from hilsim.protocols.ethernet import Framing
from hilsim.transmit.specs import FlowSpec
from hilsim.transmit.transmitter import Transmitter

FlowListener = Callable[[int, str, Framing, str], None]
"""Function that takes a flow's number (``Transmitter.flow_number``), its name, the headers of its frames and ``SinkFlow.stack``."""


class Flows:
    """The flows of a running rig.

    Attributes:
        transmitter: Transmitter that sends them.
    """

    def __init__(self, transmitter: Transmitter, announce: FlowListener) -> None:
        """Open flows on a transmitter; ``announce`` is called for each."""
        self.transmitter = transmitter
        self._announce = announce

    def add(self, spec: FlowSpec, framing: Framing, stack: str = "", *, held: bool = False) -> int:
        """Open and announce a flow (``Transmitter.add_flow``); returns its row."""
        row = self.transmitter.add_flow(spec, held=held)
        self._announce(self.transmitter.flow_number(row), spec.name, framing, stack)
        return row

    def retarget(self, row: int, spec: FlowSpec, framing: Framing, stack: str) -> None:
        """Send a flow to another destination, and announce that (``Transmitter.retarget_flow``)."""
        self.transmitter.retarget_flow(row, spec, lambda number: self._announce(number, spec.name, framing, stack))

    @property
    def rows(self) -> dict[str, int]:
        """The transmitter's rows of the flows that are open, by their names ``"<sensor>/<flow>"``."""
        return {flow.name: row for row, flow in self.transmitter.flows.items()}
