"""Faults of a rig's network, and what timed changes make of them."""

from collections.abc import Iterable

from hilsim.config.rig import Rig
from hilsim.config.script import ChangeSpec, ClearChange, FaultChange
from hilsim.errors import ConfigError, require
from hilsim.faults.specs import fault_rules
from hilsim.transmit.faults.arrays import NEVER_NS, NetworkFault

Network = tuple[NetworkFault, ...]


def network_faults(rig: Rig, changes: Iterable[ChangeSpec]) -> Network:
    """All faults of the network of a rig, and of timed changes in the order of their times.

    Raises:
        ConfigError: a change cannot be made.
    """
    network = tuple(NetworkFault(spec) for spec in rig.spec.fault if spec.network is not None)
    for change in changes:
        network = _after(rig, network, change)
    return network


def scripted_faults(rig: Rig) -> Network:
    """All faults of the network of a rig and of the script that it plays."""
    return network_faults(rig, rig.script.changes if rig.script is not None else ())


def _after(rig: Rig, network: Network, change: ChangeSpec) -> Network:
    at_ns = change.at_ns or 0
    match change:
        case ClearChange():
            return tuple(
                NetworkFault(spec, at_ns) if cut_ns == NEVER_NS and spec.is_called(change.name) else NetworkFault(spec, cut_ns)
                for spec, cut_ns in network
            )
        case FaultChange() if change.fault.network is not None:
            try:
                require(*fault_rules((change.fault,), rig.sensors, rig.spec.senders))
            except ValueError as error:
                raise ConfigError("\n".join(str(error).split("; "))) from error
            return (*network, NetworkFault(change.dated))
    return network
