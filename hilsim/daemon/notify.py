"""Report the daemon's state to systemd: ready, reloading, alive, stopping. Outside systemd every call does nothing.

The protocol is one datagram of ``KEY=value`` lines to the AF_UNIX socket named by ``NOTIFY_SOCKET`` (sd_notify(3)). A leading ``@`` means
the zero byte of an abstract address. No package is used for that: the usual ones have no wheels or take longer than these 3 us.
"""

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass

_SEND_TIMEOUT_S = 1.0  # a service manager that does not read must not block the daemon


@dataclass(frozen=True, kw_only=True)
class ServiceManager:
    """Receiver of notifications.

    Attributes:
        address: Value of ``NOTIFY_SOCKET``: an absolute path or ``@name``; None without a service manager.
    """

    address: str | None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "ServiceManager":
        """Service manager that started this process, if any. Addresses other than AF_UNIX ones (``vsock:``) are ignored."""
        address = environment.get("NOTIFY_SOCKET", "")
        return cls(address=address if address.startswith(("/", "@")) else None)

    def notify(self, *assignments: str) -> bool:
        """Send ``KEY=value`` lines in one datagram; returns whether it was sent. A missing manager is no fault of the daemon."""
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
        """Report that the start or reload is complete and packets flow."""
        return self.notify("READY=1", _status(status))

    def status(self, text: str) -> bool:
        """Send one line for ``systemctl status``."""
        return self.notify(_status(text))

    def starting(self, text: str, more_us: int) -> bool:
        """Report a start that may take another ``more_us``. Repeated calls extend it beyond ``TimeoutStartSec=`` (sd_notify(3))."""
        return self.notify(f"EXTEND_TIMEOUT_USEC={more_us}", _status(text))

    def reloading(self) -> bool:
        """Report that a reload has begun; ``ready`` must follow. ``Type=notify-reload`` (systemd 253) requires the stamp; older versions ignore it."""
        return self.notify("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self, status: str) -> bool:
        """Report that the daemon is stopping."""
        return self.notify("STOPPING=1", _status(status))

    def watchdog(self) -> bool:
        """Report progress of the sending loop every ``watchdog_interval_s()``, and never before ``ready``, because the first call arms the watchdog."""
        return self.notify("WATCHDOG=1")


def watchdog_interval_s(environment: Mapping[str, str] = os.environ) -> float | None:
    """Interval of calls of ``ServiceManager.watchdog``: half of ``WatchdogSec=``; None if this process has no watchdog.

    ``WATCHDOG_PID`` is the watched process: a child that inherits the environment must not call it (sd_watchdog_enabled(3)).
    """
    limit_us = environment.get("WATCHDOG_USEC", "")
    watched = environment.get("WATCHDOG_PID", str(os.getpid()))
    if not limit_us.isdecimal() or int(limit_us) == 0 or watched != str(os.getpid()):
        return None
    return int(limit_us) / 2e6


def _status(text: str) -> str:
    return "STATUS=" + " ".join(text.split())
