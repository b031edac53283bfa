"""Lines of a controller: its own pty, an existing device, a TCP connection, datagrams. No call blocks; frames without a reader are lost one by one."""

import errno
import os
import socket
import termios
import tty
from pathlib import Path

from hilsim.errors import LinkError

_CHUNK = 65_536
_MAX_WAITING = 16_384


def raw(fd: int) -> None:
    """Set raw mode: no echo, no line ends; the speed is unchanged."""
    tty.setraw(fd, termios.TCSANOW)


class Line:
    """A line, open or not; ``open`` may fail quietly and is retried. ``name`` is the address that the other end opens or connects to."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.fd: int | None = None
        self.waiting = bytearray()
        self.lost_bytes = 0
        self.ended = False

    def open(self) -> bool:
        """Try to open the line; returns whether it is open.

        Raises:
            LinkError: the line cannot be opened.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Close the line, if open, as when the cable is disconnected."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        self.waiting.clear()

    def read(self) -> bytes:
        """Read available bytes."""
        if self.fd is None:
            return b""
        try:
            return self._got(os.read(self.fd, _CHUNK))
        except BlockingIOError:
            return b""
        except OSError as error:
            return self._failed(error)

    def write(self, data: bytes) -> None:
        """Write whole frames: all of them or none."""
        if self.fd is None:
            return
        if len(self.waiting) + len(data) > _MAX_WAITING:
            self.lost_bytes += len(data)
        else:
            self.waiting += data
        try:
            if self.waiting:
                del self.waiting[: os.write(self.fd, self.waiting)]
        except BlockingIOError:
            return
        except OSError as error:
            self._failed(error)

    def _got(self, data: bytes) -> bytes:
        return data

    def _failed(self, error: OSError) -> bytes:
        """Handle an error; for a pty without a process at its other end there is none: its master returns EIO until a process opens it."""
        if error.errno not in {errno.EIO, errno.ENXIO, errno.EPIPE, errno.ECONNRESET}:
            raise error
        return b""


class Board(Line):
    """A pty of its own, as a USB board provides its own device; ``name`` is a link to the end that a simulator opens."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.far: int | None = None

    def open(self) -> bool:
        """Make the pty and the link."""
        self.fd, self.far = os.openpty()
        raw(self.far)
        os.set_blocking(self.fd, False)
        try:
            Path(self.name).symlink_to(os.ttyname(self.far))
        except OSError as error:
            message = f"{self.name}: the link to the pty must be possible to make, got {error.strerror}"
            raise LinkError(message) from error
        return True

    def close(self) -> None:
        """Remove the device."""
        if self.far is not None:
            Path(self.name).unlink(missing_ok=True)
            os.close(self.far)
            self.far = None
        super().close()


class Port(Line):
    """An existing device, such as one end of a pair of ptys."""

    def open(self) -> bool:
        """Open the device, if it exists."""
        try:
            self.fd = os.open(self.name, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        except OSError as error:
            message = f"{self.name}: the port must open, got {error.strerror}"
            raise LinkError(message) from error
        raw(self.fd)
        return True


class Tcp(Line):
    """PX4's simulator link: the controller is the client. It ends when the simulator closes it."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"{host}:{port}")
        self.address = host, port

    def open(self) -> bool:
        """Connect, if a process listens."""
        try:
            connection = socket.create_connection(self.address, timeout=1.0)
        except (ConnectionRefusedError, TimeoutError):
            return False
        except OSError as error:
            message = f"{self.name}: the simulator must be reachable, got {error.strerror}"
            raise LinkError(message) from error
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(0.0)
        self.fd = connection.detach()
        return True

    def _got(self, data: bytes) -> bytes:
        self.ended |= not data
        return data

    def _failed(self, error: OSError) -> bytes:
        self.ended = True
        return super()._failed(error)


class Udp(Line):
    """A controller on a network: it has a port, and sends to the latest peer. Port 0: any free port, which ``name`` contains once it is open."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"{host}:{port}")
        self.address = host, port

    def open(self) -> bool:
        """Bind the port."""
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            opened.bind(self.address)
        except OSError as error:
            opened.close()
            message = f"{self.name}: the UDP port must be free, got {error.strerror}"
            raise LinkError(message) from error
        opened.settimeout(0.0)
        self.address = self.address[0], opened.getsockname()[1]
        self.name = "{}:{}".format(*self.address)
        self.fd = opened.detach()
        return True

    def read(self) -> bytes:
        """Read all available datagrams."""
        data = b""
        if self.fd is None:
            return data
        with socket.socket(fileno=os.dup(self.fd)) as opened:
            try:
                while len(data) < _CHUNK:
                    datagram, peer = opened.recvfrom(_CHUNK)
                    data += datagram
                    opened.connect(peer)
            except (BlockingIOError, ConnectionRefusedError):
                pass
        return data

    def _failed(self, error: OSError) -> bytes:
        """Handle an error: there is no peer yet, or no longer."""
        if error.errno not in {errno.EDESTADDRREQ, errno.ECONNREFUSED}:
            raise error
        self.waiting.clear()
        return b""
