"""Resolution of host names in a rig: once at the start, and once at each reload, so that packets never wait for a name server."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from hilsim.config.changes import Changes, senders
from hilsim.config.part_kind import parts_of
from hilsim.config.part_tables import place
from hilsim.config.rig import Rig
from hilsim.errors import ConfigError, TransmitError
from hilsim.transmit.hosts import address_of, address_towards, is_ipv4, is_loopback

_RECORDED = "recorded"


def resolved(rig: Rig, changes: Changes | None = None) -> Rig:
    """Replace each host name of a rig by its address; ``Rig.hosts`` lists names and addresses, ``Rig.sources`` the sources replaced because of ``--to``.

    Args:
        rig: Checked rig.
        changes: Changes by the command line, to name the option with a host.

    Raises:
        ConfigError: a name has no address, reported one per line; or there is no route to the host of ``--to``.
    """
    found = _with_addresses(rig, changes or Changes())
    return _from_here(found, changes.to) if changes is not None and changes.to else found


def _with_addresses(rig: Rig, changes: Changes) -> Rig:
    tables: dict[str, tuple[Any, ...]] = {"sensor": rig.spec.sensor, **rig.spec.parts}
    keys = {table: address for table, (address, _) in senders(kind for kind, _ in parts_of(rig.spec)).items()}
    destinations = [
        (".".join((place(table, number), *keys[table])), reduce(getattr, keys[table], entry))
        for table in keys
        for number, entry in enumerate(tables[table])
    ]
    named = [(where, host) for where, host in destinations if host != _RECORDED and not is_ipv4(host)]
    if not named:
        return rig
    addresses: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for host in dict.fromkeys(host for _, host in named):
        try:
            addresses[host] = address_of(host)
        except TransmitError as error:
            reasons[host] = f"{error}{changes.naming(host)}"
    if reasons:
        raise ConfigError("\n".join(f"{rig.path}: {where} {reasons[host]}" for where, host in named if host in reasons))
    sent = {table: tuple(_redirected(entry, keys[table], addresses) for entry in tables[table]) for table in keys}
    sensors = sent.pop("sensor")
    return replace(rig, spec=replace(rig.spec, sensor=sensors, parts={**rig.spec.parts, **sent}), hosts=tuple(addresses.items()))


def _redirected(entry: Any, keys: Sequence[str], addresses: Mapping[str, str]) -> Any:
    """A table with the address of its host at the end of some keys."""
    if not keys:
        return addresses.get(entry, entry)
    return replace(entry, **{keys[0]: _redirected(getattr(entry, keys[0]), keys[1:], addresses)})


def _from_here(rig: Rig, to: str) -> Rig:
    """Replace the loopback source of each sensor that ``--to`` sends to another host by an address of this host, because another host cannot reach loopback.

    Raises:
        ConfigError: there is no route, or several sensors would have the same source address and be indistinguishable.
    """
    sources: dict[str, str] = {}
    for sensor in rig.spec.sensor:
        network = sensor.network
        if network.mode == "udp" and is_loopback(network.source) and not is_loopback(network.destination):
            try:
                sources[sensor.name] = address_towards(network.destination)
            except TransmitError as error:
                raise ConfigError(f"--to {to}: {error}") from error
    if len(sources) > 1:
        raise ConfigError(
            f"--to {to}: network.source must be an address of this host for each of {', '.join(sources)}, got loopback ones: --set sensor.{next(iter(sources))}.network.source=…"
        )
    sensors = tuple(
        replace(sensor, network=replace(sensor.network, source=sources.get(sensor.name, sensor.network.source))) for sensor in rig.spec.sensor
    )
    return replace(rig, spec=replace(rig.spec, sensor=sensors), sources=tuple(sources.items())) if sources else rig
