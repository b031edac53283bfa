"""The way of a rig's datagrams through a network with faults, without a clock: what the sending loop does to single ones, with the same bytes."""

import numpy as np

from hilsim.assembly.network import Network, network_faults
from hilsim.config.rig import Rig
from hilsim.config.script import Script
from hilsim.emulator.batch import Flow
from hilsim.limits import INJECTED_FAULTS
from hilsim.offline.merging import Merged
from hilsim.protocols.ethernet import TAG_SIZE
from hilsim.transmit.faults.arrays import BrokenNetwork, allocate_network_faults, earliest_ns
from hilsim.transmit.faults.kernels import pass_network

_ROWS = 1024
"""Number of datagrams that come out at a time."""
_FLOWS = 16_384
"""Number of flows, those of 64 senders of 256."""
_LARGEST = 65_535
_NOTHING = Merged(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros((0, 1), np.uint8), ())


class NetworkPath:
    """Network of a rig, to which its frames are given in the order of their deadlines."""

    def __init__(self, rig: Rig, faults: Network) -> None:
        """A network with faults, before the first datagram."""
        self._senders = rig.spec.senders
        arrays = allocate_network_faults(_FLOWS, _LARGEST, max(len(faults), int(INJECTED_FAULTS.bound)))
        self.broken = BrokenNetwork(arrays, rig.spec.seed)
        self.broken.set_faults(faults)
        self._rows: dict[Flow, int] = {}
        self._width = 1

    def earliest_ns(self, start_ns: int) -> int:
        """Rig time from which datagrams must be given for those that leave at ``start_ns`` or later."""
        return earliest_ns(self.broken.faults, start_ns)

    def passed(self, batch: Merged | None, until_ns: int) -> Merged | None:
        """What leaves the network before a rig time, given the datagrams that are due before it; None for nothing where nothing is given.

        Args:
            batch: Datagrams of the next stretch of rig time, whole frames.
            until_ns: Its end.
        """
        rows = [self._row(flow) for flow in batch.flows] if batch is not None else []
        given = batch if batch is not None else _NOTHING
        flow = np.array(rows, np.int64)[given.flow]
        self._width = max(given.payload.shape[1] + TAG_SIZE, self._width)
        made, at = [], 0
        while at <= flow.size:
            out = np.zeros(_ROWS, np.int64), np.zeros(_ROWS, np.int64), np.zeros(_ROWS, np.int32), np.zeros((_ROWS, self._width), np.uint8)
            at, count = pass_network(self.broken.arrays, given.deadline_ns, flow, given.size, given.payload, at, until_ns, *out)
            made.append([column[:count] for column in out])
        left_ns, flow, size, payload = (np.concatenate(each) for each in zip(*made, strict=True))
        return Merged(left_ns, flow, size, payload, tuple(self._rows)) if batch is not None or left_ns.size else None

    def _row(self, flow: Flow) -> int:
        if flow not in self._rows:
            self._rows[flow] = len(self._rows)
            self.broken.add_flow(self._rows[flow], flow.name, has_headers=True, is_raw=self._senders.get(flow.name.partition("/")[0], False))
        return self._rows[flow]


def network_path(rig: Rig, script: Script | None) -> NetworkPath | None:
    """Network of a rig with a script; None for one without faults.

    Raises:
        ConfigError: a fault of the script cannot be made.
    """
    faults = network_faults(rig, script.changes if script is not None else ())
    return NetworkPath(rig, faults) if faults else None
