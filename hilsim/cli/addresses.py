"""``HOST:PORT`` options."""

from ipaddress import AddressValueError, IPv4Address
from typing import Any

import click

Address = tuple[str, int]


class HostPort(click.ParamType[Address]):
    """An address like ``127.0.0.1:2368``; the host may be left out for all interfaces (``:2368``)."""

    name = "host:port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        """Host and port."""
        if isinstance(value, tuple):
            return value
        host, _, port = str(value).rpartition(":")
        try:
            host = str(IPv4Address(host or "0.0.0.0"))  # noqa: S104 - a receiver of broadcasts must bind all interfaces
        except AddressValueError:
            self.fail(f'host must be an IPv4 address, got "{host}"', param, ctx)
        if not port.isdigit() or int(port) > 65_535:
            self.fail(f'port must be 0 to 65535, got "{port}"', param, ctx)
        return host, int(port)
