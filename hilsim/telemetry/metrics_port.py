"""The port that metrics are served at: held before the first packet leaves, and served once packets flow; meanwhile the kernel lets clients wait."""

import errno
import os
import socket
from ipaddress import IPv6Address, ip_address

from hilsim.config.metrics_table import MetricsServerSpec
from hilsim.errors import TransmitError

BACKLOG = 16


def listen(spec: MetricsServerSpec) -> socket.socket:
    """A listening socket.

    Raises:
        TransmitError: the address cannot be had, because it is in use or not local.
    """
    family = socket.AF_INET6 if isinstance(ip_address(spec.address), IPv6Address) else socket.AF_INET
    try:
        return socket.create_server((spec.address, spec.port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise TransmitError(f"metrics address must be free and local, got {spec.address}:{spec.port}: {_reason(error)}") from error


def metrics_url(port: socket.socket) -> str:
    """Where a listening socket's metrics are read."""
    host, number, *_ = port.getsockname()
    return f"http://[{host}]:{number}/metrics" if port.family == socket.AF_INET6 else f"http://{host}:{number}/metrics"


def _reason(error: OSError) -> str:
    """The system's own words: Python adds the address to some."""
    words = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
    return f"{words} (another daemon? metrics.port = 0 takes any free port)" if error.errno == errno.EADDRINUSE else words
