"""Parameter type of ``HOST:PORT`` options."""

from typing import Any

import click

from hilsim.errors import TransmitError
from hilsim.transmit.hosts import address_of, is_host

Address = tuple[str, int]


class HostPort(click.ParamType[Address]):
    """An address such as ``127.0.0.1:2368``, also with a host name; without a host it means all interfaces (``:2368``)."""

    name = "host:port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        """Convert to IPv4 address and port."""
        if isinstance(value, tuple):
            return value
        host, colon, port = str(value).rpartition(":")
        if not colon:
            self.fail(f'must be HOST:PORT like 127.0.0.1:2368, got "{value}"', param, ctx)
        if not (port.isascii() and port.isdigit() and int(port) <= 65_535):
            self.fail(f'port must be 0 to 65535, got "{port}"', param, ctx)
        host = host or "0.0.0.0"  # noqa: S104 - a receiver of broadcasts must bind all interfaces
        if not is_host(host):
            self.fail(f'host must be an IPv4 address or the name of a host, got "{host}"', param, ctx)
        try:
            return address_of(host), int(port)
        except TransmitError as error:
            self.fail(f"host {error}", param, ctx)
