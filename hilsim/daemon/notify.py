"""Reports the daemon's state to systemd: ready, reloading, alive, stopping. Outside systemd every call does nothing.

The protocol is one datagram of ``KEY=value`` lines to the AF_UNIX socket named by ``NOTIFY_SOCKET`` (sd_notify(3)). A leading ``@`` means
the zero byte of an abstract address. No package is needed for that, and the usual ones have no wheels or cost more than the 3 us this takes.
"""

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass

_SEND_TIMEOUT_S = 1.0  # a service manager that does not read must not hold the daemon


@dataclass(frozen=True, kw_only=True)
class ServiceManager:
    """Where to send notifications.

    Attributes:
        address: Value of ``NOTIFY_SOCKET``: an absolute path or ``@name``; None without a service manager.
    """

    address: str | None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "ServiceManager":
        """The manager that started this process, if any. Addresses other than AF_UNIX ones (``vsock:``) count as none."""
        address = environment.get("NOTIFY_SOCKET", "")
        return cls(address=address if address.startswith(("/", "@")) else None)

    def notify(self, *assignments: str) -> bool:
        """Send ``KEY=value`` lines in one datagram; True when it was handed over. A manager that is gone is no fault of the daemon's."""
        if self.address is None:
            return False
        name = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.settimeout(_SEND_TIMEOUT_S)
                sender.sendto("\n".join(assignments).encode(), name)
        except OSError:
            return False
        return True

    def ready(self, status: str) -> bool:
        """Start-up or reload is over and packets flow."""
        return self.notify("READY=1", _status(status))

    def status(self, text: str) -> bool:
        """One line for ``systemctl status``."""
        return self.notify(_status(text))

    def starting(self, text: str, more_us: int) -> bool:
        """Not ready yet, and alive: the start may take ``more_us`` from now. Sent again and again, it outlasts ``TimeoutStartSec=`` (sd_notify(3))."""
        return self.notify(f"EXTEND_TIMEOUT_USEC={more_us}", _status(text))

    def reloading(self) -> bool:
        """A reload has begun; ``ready`` must follow. The stamp is what ``Type=notify-reload`` (systemd 253) asks for; older ones ignore it."""
        return self.notify("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self, status: str) -> bool:
        """The daemon is on its way out."""
        return self.notify("STOPPING=1", _status(status))

    def watchdog(self) -> bool:
        """Still alive: to be called when the sending loop has made progress, every ``watchdog_interval_s()``, and never before ``ready``: it arms the watchdog."""
        return self.notify("WATCHDOG=1")


def watchdog_interval_s(environment: Mapping[str, str] = os.environ) -> float | None:
    """How often to call ``ServiceManager.watchdog``: half of what ``WatchdogSec=`` allows; None when no watchdog was asked of this process.

    ``WATCHDOG_PID`` names the process that is watched: a child that inherits the environment must stay silent (sd_watchdog_enabled(3)).
    """
    limit_us = environment.get("WATCHDOG_USEC", "")
    watched = environment.get("WATCHDOG_PID", str(os.getpid()))
    if not limit_us.isdecimal() or int(limit_us) == 0 or watched != str(os.getpid()):
        return None
    return int(limit_us) / 2e6


def _status(text: str) -> str:
    return "STATUS=" + " ".join(text.split())
