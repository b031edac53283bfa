"""The port of the metrics server: opened before the first packet is sent, and served once packets flow; meanwhile the kernel queues clients."""

import errno
import os
import socket
from ipaddress import IPv6Address, ip_address

from hilsim.config.tables.metrics import MetricsServerSpec
from hilsim.errors import TransmitError

BACKLOG = 16


def listen(spec: MetricsServerSpec) -> socket.socket:
    """Open a listening socket.

    Raises:
        TransmitError: the address cannot be bound, because it is in use or not local.
    """
    family = socket.AF_INET6 if isinstance(ip_address(spec.address), IPv6Address) else socket.AF_INET
    try:
        return socket.create_server((spec.address, spec.port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise TransmitError(f"metrics address must be free and local, got {spec.address}:{spec.port}: {_reason(error)}") from error


def metrics_url(port: socket.socket) -> str:
    """URL of the metrics of a listening socket."""
    host, number, *_ = port.getsockname()
    return f"http://[{host}]:{number}/metrics" if port.family == socket.AF_INET6 else f"http://{host}:{number}/metrics"


def _reason(error: OSError) -> str:
    """The system's error text, without the address that Python adds to some."""
    words = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
    return f"{words} (another daemon? --set metrics.port=0 takes any free port)" if error.errno == errno.EADDRINUSE else words
