"""Destination of each flow's datagrams: read by the sending loop, changed while it runs.

Each flow has two targets. A change fills the target that is not selected and then selects it, so the loop never reads a partial change. The old
target may be reused (and its socket closed) once the loop has begun new turns, see ``Transmitter``.
"""

import socket
import sys
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import publish

_ADDRESS_SIZE = 32


class FlowTable(NamedTuple):
    """Targets of F flows, two each.

    Attributes:
        active: ``int64[F]``: 1 while the loop serves the flow.
        selected: ``int64[F]``: selected target, 0 or 1.
        descriptor: ``int32[F, 2]``, socket descriptors.
        address: ``uint8[F, 2, 32]``, a ``struct sockaddr``.
        address_size: ``int32[F, 2]``, bytes of the address; 0: the socket is connected or bound.
        sends_late: ``int64[F]``: 1 where a datagram is sent however late it is, regardless of the loop's policy.
        is_silent: ``int64[F]``: 1 while the flow's datagrams are counted in place of being sent; any thread may set it while the loop runs.
    """

    active: npt.NDArray[np.int64]
    selected: npt.NDArray[np.int64]
    descriptor: npt.NDArray[np.int32]
    address: npt.NDArray[np.uint8]
    address_size: npt.NDArray[np.int32]
    sends_late: npt.NDArray[np.int64]
    is_silent: npt.NDArray[np.int64]


def allocate_flow_table(flows: int) -> FlowTable:
    """Allocate a table with no active flow."""
    return FlowTable(
        active=np.zeros(flows, np.int64),
        selected=np.zeros(flows, np.int64),
        descriptor=np.full((flows, 2), -1, np.int32),
        address=np.zeros((flows, 2, _ADDRESS_SIZE), np.uint8),
        address_size=np.zeros((flows, 2), np.int32),
        sends_late=np.zeros(flows, np.int64),
        is_silent=np.zeros(flows, np.int64),
    )


def pack_address(address: str, port: int) -> bytes:
    """``struct sockaddr_in`` (ip(7)): family in the host's order, port and address in the network's, 8 bytes of zero."""
    return socket.AF_INET.to_bytes(2, sys.byteorder) + port.to_bytes(2, "big") + socket.inet_aton(address) + bytes(8)


def select_target(table: FlowTable, flow: int, descriptor: int, address: bytes) -> None:
    """Select another target for a flow; the loop uses it from some datagram on."""
    spare = 1 - int(table.selected[flow])
    table.descriptor[flow, spare] = descriptor
    table.address[flow, spare, : len(address)] = np.frombuffer(address, np.uint8)
    table.address_size[flow, spare] = len(address)
    publish(table.selected, flow, spare)


def set_active(table: FlowTable, flow: int, *, active: bool) -> None:
    """Enable or disable serving of a flow."""
    publish(table.active, flow, int(active))
