"""Select the recorded flows to replay, and their source and destination addresses.

Both use one grammar: ``SOURCE>DESTINATION``, each ``ADDRESS:PORT``, every part optional. In a pattern, an omitted part matches anything; in a target, an
omitted address is the replay's own setting, an omitted port the recorded one. Valid examples: ``192.168.1.201``, ``:2368``, ``192.168.1.201>:8808``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address
from itertools import chain

from hilsim.config.rig import Rig
from hilsim.errors import require
from hilsim.protocols.flow_key import FlowKey
from hilsim.transmit.hosts import is_ipv4

ANY = ""


@dataclass(frozen=True, kw_only=True)
class Endpoints:
    """A parsed ``SOURCE>DESTINATION``; omitted parts are "" or 0."""

    source: str = ANY
    source_port: int = 0
    destination: str = ANY
    destination_port: int = 0

    def matches(self, flow: FlowKey) -> bool:
        """Whether every given part equals the flow's."""
        wanted = (self.source, self.source_port, self.destination, self.destination_port)
        return all(not want or want == is_ for want, is_ in zip(wanted, flow, strict=True))


def parse_endpoints(text: str) -> Endpoints:
    """Parse ``SOURCE>DESTINATION``.

    Raises:
        ValueError: the text is not in this form.
    """
    source, _, destination = text.replace(" ", "").partition(">")
    source_address, source_port = _parse_endpoint(source, text)
    destination_address, destination_port = _parse_endpoint(destination, text)
    return Endpoints(source=source_address, source_port=source_port, destination=destination_address, destination_port=destination_port)


def _parse_endpoint(part: str, text: str) -> tuple[str, int]:
    address, colon, port = part.partition(":")
    is_port = not colon or (port.isascii() and port.isdigit() and 1 <= int(port) <= 65_535)
    require(
        (not address or is_ipv4(address), f'an endpoint must be ADDRESS:PORT (each may be left out), got "{part}" in "{text}"'),
        (is_port, f'a port must be 1 to 65535, got "{port}" in "{text}"'),
    )
    return address, int(port) if port else 0


@dataclass(frozen=True, kw_only=True)
class FlowRule:
    """Rule that selects recorded flows and sets their addresses.

    Attributes:
        match: Pattern ``SOURCE>DESTINATION`` of the recorded flow; empty: any.
        send: Target ``SOURCE>DESTINATION``; omitted addresses are the replay's own settings, omitted ports the recorded ones.
    """

    match: str = ""
    send: str = ""

    def __post_init__(self) -> None:
        for text in (self.match, self.send):
            parse_endpoints(text)


def find_rule(rules: tuple[FlowRule, ...], flow: FlowKey) -> FlowRule | None:
    """First rule that matches a flow; without rules every flow is replayed unchanged."""
    if not rules:
        return FlowRule()
    return next((rule for rule in rules if parse_endpoints(rule.match).matches(flow)), None)


class LoopbackSources:
    """Map of recorded sources to addresses of this host's loopback network: 192.168.1.201 becomes 127.0.1.201.

    Receivers distinguish sensors by their address, so each recorded source gets its own; every 127.x.y.z belongs to this host.
    """

    def __init__(self, *, taken: Iterable[str] = ()) -> None:
        """Create an empty map that never uses ``taken`` addresses."""
        self._others = {"127.0.0.1", "127.0.0.0", "127.255.255.255"}
        self._given: dict[tuple[str, str], str] = {}
        self.leave_to_others(taken)

    def leave_to_others(self, taken: Iterable[str]) -> None:
        """Exclude addresses from now on."""
        self._others.update(taken)

    def address(self, owner: str, recorded: str) -> str:
        """Loopback address of a recorded source of one replay; the same on each call."""
        if (owner, recorded) not in self._given:
            third, fourth = recorded.split(".")[2:] if ":" not in recorded else ("1", "201")
            unfit = {*self._given.values(), *self._others}
            like_recorded = (f"127.{second}.{third}.{fourth}" for second in range(256))
            any_other = (str(IPv4Address("127.1.0.0") + offset) for offset in range(1 << 23))
            candidates = chain([recorded] if recorded.startswith("127.") else [], like_recorded, any_other)
            self._given[owner, recorded] = next(candidate for candidate in candidates if candidate not in unfit)
        return self._given[owner, recorded]


def taken_addresses(rig: Rig) -> set[str]:
    """Source addresses that the rig sets for its sensors and replays."""
    return {sensor.network.source for sensor in rig.spec.sensor} | {address for each in rig.spec.part("replay") for address in each.source_addresses}
