"""Whether the addresses and ports that a rig uses are this host's and free, and what to type if not."""

import errno
import os
import socket
from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import NamedTuple

from hilsim.assembly.build import sensor_flows
from hilsim.config.part_kind import parts_of
from hilsim.config.rig import Rig
from hilsim.telemetry.findings import Finding, bad, fair, good

_UNPRIVILEGED_PORT = 1024


class _Bound(NamedTuple):
    """An address and port that a running rig binds.

    Attributes:
        user: Name of the sensor or part, or ``metrics``.
        kind: ``SOCK_DGRAM`` or ``SOCK_STREAM``.
        address: Address of this host.
        port: Port; 0: any free one.
        key: Key of the rig that sets the port.
    """

    user: str
    kind: socket.SocketKind
    address: str
    port: int
    key: str

    @property
    def text(self) -> str:
        protocol = "UDP" if self.kind == socket.SOCK_DGRAM else "TCP"
        return f"{self.address}, {protocol} port {self.port}" if self.port else f"{self.address}, any {protocol} port"


def examine_addresses(rig: Rig) -> tuple[Finding, ...]:
    """Examine every address and port that a rig binds, by binding each for a moment; nothing is sent.

    Args:
        rig: The rig, which does not run meanwhile.
    """
    bounds = list(_bounds(rig))
    found = [finding for finding in (_examine(bound) for bound in bounds) if finding is not None]
    found += _interfaces(rig)
    if not bounds or found:
        return tuple(dict.fromkeys(found))
    addresses = {bound.address for bound in bounds}
    return (good("addresses", f"all {len(addresses)} address(es) of the rig are this host's, and its {len(bounds)} ports are free"),)


def _bounds(rig: Rig) -> Iterator[_Bound]:
    for sensor, lidar in zip(rig.spec.sensor, rig.lidars, strict=True):
        network = sensor.network
        if network.mode == "udp":
            ports = [0] if network.source_ports == "any" else [flow.flow.source_port for flow in sensor_flows(sensor, lidar)]
            for port in dict.fromkeys(ports):
                yield _Bound(sensor.name, socket.SOCK_DGRAM, network.source, port, "source_ports")
        if sensor.web is not None:
            for key in lidar.family.interface_ports:
                yield _Bound(sensor.name, socket.SOCK_STREAM, network.source, lidar.family.interface_port(sensor.web, key), f"web.{key}")
    for kind, specs in parts_of(rig.spec):
        for each in specs:
            for bound in kind.ports(each):
                yield _Bound(kind.name(each) or kind.table, socket.SOCK_DGRAM, *bound)
    metrics = rig.spec.metrics
    if metrics.enabled and ":" not in metrics.address:
        yield _Bound("metrics", socket.SOCK_STREAM, metrics.address, metrics.port, "port")


def _examine(bound: _Bound) -> Finding | None:
    """Finding on an address and port that cannot be bound; None if they can."""
    shared = _bind(bound, is_shared=True)
    number = _bind(bound, is_shared=False) if shared == 0 else shared
    if number == 0:
        return None
    if number == errno.EADDRNOTAVAIL:
        return bad(f"address of {bound.user}", f"{bound.address} is not an address of this host", _missing_advice(bound))
    if number == errno.EADDRINUSE and shared == 0:
        return fair(f"port of {bound.user}", f"{bound.text} is shared with another program, a receiver or a second daemon", _taken_advice(bound))
    if number == errno.EADDRINUSE:
        return bad(f"port of {bound.user}", f"{bound.text} is in use by another program", _taken_advice(bound))
    if number == errno.EACCES and 0 < bound.port < _UNPRIVILEGED_PORT:
        return bad(
            f"port of {bound.user}", f"{bound.text} may not be opened by this user", f"sudo sysctl net.ipv4.ip_unprivileged_port_start={bound.port}"
        )
    return bad(f"port of {bound.user}", f"{bound.text} cannot be opened: {os.strerror(number)}")


def _bind(bound: _Bound, *, is_shared: bool) -> int:
    """Bind an address and port for a moment; returns 0 or the number of the error. ``is_shared`` permits other programs that permit it too."""
    with socket.socket(socket.AF_INET, bound.kind) as probe:
        try:
            if is_shared or bound.kind == socket.SOCK_STREAM:  # a TCP port of connections that have just ended is free
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((bound.address, bound.port))
        except OSError as error:
            return error.errno or errno.EIO
    return 0


def _missing_advice(bound: _Bound) -> str:
    if IPv4Address(bound.address).is_loopback:
        return "sudo ip link set dev lo up"
    return f"sudo ip address add {bound.address}/24 dev INTERFACE    (ip -brief address lists the interfaces)"


def _taken_advice(bound: _Bound) -> str:
    if bound.kind == socket.SOCK_STREAM:
        where = "metrics.port" if bound.user == "metrics" else f"sensor.{bound.user}.{bound.key}"
        return f"ss -tlnp 'sport = :{bound.port}'    shows the program\n--set {where}=0    takes any free port"
    change = f"\n--set sensor.{bound.user}.network.source_ports=any    takes free ports" if bound.key == "source_ports" else ""
    return f"ss -ulnp 'sport = :{bound.port}'    shows the program{change}"


def _interfaces(rig: Rig) -> Iterator[Finding]:
    """Findings on network interfaces that do not exist."""
    known = {name for _, name in socket.if_nameindex()}
    for sensor in rig.spec.sensor:
        name = sensor.network.interface
        if name and name not in known:
            yield bad(f"interface of {sensor.name}", f"this host has no interface {name}, it has {', '.join(sorted(known))}", "ip -brief link")
