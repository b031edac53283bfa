"""Source and destination addresses, and headers, of a replayed flow."""

from ipaddress import IPv4Address

from hilsim.capture.datagram import CapturedDatagram
from hilsim.errors import ConfigError
from hilsim.parts.replays.flows import Endpoints, LoopbackSources, find_rule, parse_endpoints
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.protocols.ethernet import BROADCAST_MAC, Framing, LinkStyle, build_framing, mac_of, parse_mac
from hilsim.protocols.flow_key import FlowKey
from hilsim.protocols.recognise import PacketKind
from hilsim.transmit.specs import FrameSocketSpec, SocketSpec

_HEADERS = 28  # bytes of IPv4 and UDP headers
_IPV4_WITHOUT_OPTIONS = 0x45
_UNKNOWN_MAC = "60:76:88:00:00:01"
_BROADCAST = parse_mac(BROADCAST_MAC)


def find_target(spec: ReplaySpec, flow: FlowKey, kind: PacketKind, sources: LoopbackSources) -> FlowKey:
    """Find the source and destination with which a recorded flow is sent.

    Raises:
        ConfigError: the flow would be a broadcast without permission.
    """
    rule = find_rule(spec.flow, flow)
    rerouted = parse_endpoints(rule.send) if rule else Endpoints()
    destination = rerouted.destination or (flow.destination if spec.destination == "recorded" else spec.destination)
    set_port = 0 if kind.facts.port_step else spec.destination_port
    if destination == "255.255.255.255" and not spec.broadcast:
        raise ConfigError(
            f"replay {spec.name}: broadcast must be true to send {flow} to 255.255.255.255 as it was recorded: every host on the network gets it"
        )
    if ":" in destination:
        raise ConfigError(f"replay {spec.name}: destination must be an IPv4 address (--to), got {destination}, to which {flow} was recorded")
    is_local = IPv4Address(destination).is_loopback
    if spec.source == "auto" and is_local:
        source = sources.address(spec.name, flow.source)
    else:
        source = flow.source if spec.source in {"auto", "recorded"} else spec.source
    return FlowKey(
        rerouted.source or source,
        rerouted.source_port or flow.source_port,
        destination,
        rerouted.destination_port or set_port or flow.destination_port,
    )


def link_style(first: CapturedDatagram, kind: PacketKind) -> LinkStyle:
    """Header style of a flow's recorded packets; that of the sensor, if the capture does not contain the sensor's own headers."""
    link = first.link
    if link is None or len(link) < _HEADERS or link[-_HEADERS] != _IPV4_WITHOUT_OPTIONS or first.source.startswith("127.") or ":" in first.source:
        return kind.facts.style
    ip = link[-_HEADERS:]
    return LinkStyle(
        ttl=max(ip[8], 1), dont_fragment=bool(ip[6] & 0x40), counting_identification=ip[4:6] != b"\0\0", udp_checksum=link[-2:] != b"\0\0"
    )


def link_framing(spec: ReplaySpec, target: FlowKey, first: CapturedDatagram, kind: PacketKind) -> Framing:
    """Framing of a flow's whole frames, with headers like those of its first recorded datagram.

    Raises:
        ConfigError: the frames go to one host whose MAC address is not known.
    """
    recorded = first.link if first.is_ethernet else None
    return build_framing(
        link_style(first, kind),
        target,
        source_mac=recorded[6:12].hex(":") if recorded else _UNKNOWN_MAC,
        destination_mac=_destination_mac(spec, target, recorded if target.destination == first.destination else None),
    )


def _destination_mac(spec: ReplaySpec, target: FlowKey, recorded: bytes | None) -> str:
    """Destination MAC address of a flow's frames; ``recorded`` are the headers of a recorded frame to the same IPv4 address, if any."""
    if spec.destination_mac:
        return spec.destination_mac
    if recorded is not None and (spec.broadcast or recorded[:6] != _BROADCAST):
        return recorded[:6].hex(":")
    is_known = spec.broadcast or IPv4Address(target.destination).is_multicast
    if spec.mode == "ethernet" and not is_known:
        raise ConfigError(f"replay {spec.name}: destination_mac must be given for frames to one host, got none for {target}")
    return mac_of(target.destination, broadcast=spec.broadcast)


def flow_socket(spec: ReplaySpec, target: FlowKey, style: LinkStyle) -> SocketSpec | FrameSocketSpec:
    """Socket settings of a flow.

    Raises:
        ConfigError: the settings contradict each other.
    """
    if spec.mode == "ethernet":
        return FrameSocketSpec(interface=spec.interface)
    free_port = spec.source_ports == "any" or (spec.source_ports == "auto" and IPv4Address(target.destination).is_loopback)
    try:
        return SocketSpec.of_flow(target, style, free_port=free_port, broadcast=spec.broadcast, interface=spec.interface)
    except ValueError as error:
        raise ConfigError(f"replay {spec.name}, {target}: {error}") from error
