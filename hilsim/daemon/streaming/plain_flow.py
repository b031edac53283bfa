"""A flow of datagrams that a part makes itself, with the headers of programs with default sockets."""

import numpy as np

from hilsim.daemon.flows import Flows
from hilsim.protocols.ethernet import PLAIN_STYLE, plain_framing
from hilsim.protocols.flow_key import FlowKey
from hilsim.transmit.ring import allocate_rings, push
from hilsim.transmit.specs import FlowSpec, SocketSpec

_NO_POSE_NS = 0


class PlainFlow:
    """A flow that is open and held.

    Attributes:
        row: Row in the transmitter's rings.
    """

    def __init__(self, flows: Flows, name: str, key: FlowKey, packet_rate_hz: float) -> None:
        """Open the flow; to be called in ``Part.open``.

        Args:
            flows: Flows of the rig.
            name: Name, unique within the rig: ``"<thing>/<flow>"``.
            key: Addresses and ports; datagrams leave from any free port, and a capture has this source port.
            packet_rate_hz: Expected mean rate.

        Raises:
            TransmitError: the flow cannot be opened.
        """
        self._transmitter = flows.transmitter
        socket = SocketSpec.of_flow(key, PLAIN_STYLE, free_port=True, broadcast=False, interface="")
        self.row = flows.add(FlowSpec(name=name, socket=socket, packet_rate_hz=packet_rate_hz), plain_framing(key), held=True)

    def release(self) -> None:
        """Send what is put into the flow from now on; to be called in ``Part.start``."""
        self._transmitter.release_flow(self.row)

    def send(self, payload: bytes, deadline_ns: int) -> bool:
        """Put a datagram, to be sent at CLOCK_MONOTONIC ``deadline_ns``; one thread may call. False if the ring is full, or it is too large."""
        return bool(push(self._transmitter.rings, self.row, deadline_ns, _NO_POSE_NS, np.array(bytearray(payload)), len(payload)))

    @staticmethod
    def warm() -> None:
        """Load or compile the kernel of ``send``; to be called in ``Part.warm`` and ``Part.rehearse``."""
        push(allocate_rings(1, 2, 1), 0, 0, _NO_POSE_NS, np.zeros(1, np.uint8), 1)
