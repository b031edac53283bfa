"""What a controller's bytes go through: a pty of its own, a device that is there, a TCP connection, datagrams. Nothing blocks; what nobody takes is lost, frame by frame."""

import errno
import os
import socket
import termios
import tty
from pathlib import Path

_CHUNK = 65_536
_MOST_WAITING = 16_384


def raw(fd):
    """Bytes as they are: no echo, no line ends; the speed is left as it is."""
    tty.setraw(fd, termios.TCSANOW)


class Line:
    """Open or not; ``open`` may fail quietly and is tried again."""

    def __init__(self):
        self.fd = None
        self.waiting = bytearray()
        self.lost_bytes = 0
        self.ended = False

    def close(self):
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        self.waiting.clear()

    def read(self):
        try:
            return self.got(os.read(self.fd, _CHUNK))
        except BlockingIOError:
            return b""
        except OSError as error:
            return self.failed(error)

    def write(self, data):
        """``data`` are whole frames: all of them or none."""
        if len(self.waiting) + len(data) > _MOST_WAITING:
            self.lost_bytes += len(data)
        else:
            self.waiting += data
        try:
            if self.waiting:
                del self.waiting[: os.write(self.fd, self.waiting)]
        except BlockingIOError:
            return
        except OSError as error:
            self.failed(error)

    def got(self, data):
        return data

    def failed(self, error):
        """Nobody at the other end of a pty is no fault: its master says EIO until somebody opens it."""
        if error.errno not in {errno.EIO, errno.ENXIO, errno.EPIPE, errno.ECONNRESET}:
            raise error
        return b""


class Board(Line):
    """Its own pty, as a USB board brings its own device; ``path`` is a link to the end that a simulator opens."""

    def __init__(self, path):
        super().__init__()
        self.path = Path(path)
        self.far = None

    def open(self):
        self.fd, self.far = os.openpty()
        raw(self.far)
        os.set_blocking(self.fd, False)
        self.path.symlink_to(os.ttyname(self.far))
        return True

    def close(self):
        if self.far is not None:
            self.path.unlink(missing_ok=True)
            os.close(self.far)
            self.far = None
        super().close()


class Port(Line):
    """A device that is there, such as one end of a pair of ptys."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def open(self):
        try:
            self.fd = os.open(self.path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        raw(self.fd)
        return True


class Tcp(Line):
    """PX4's simulator link: the controller is the client. A simulator that closes ends it."""

    def __init__(self, host, port):
        super().__init__()
        self.address = host, port

    def open(self):
        try:
            connection = socket.create_connection(self.address, timeout=1.0)
        except (ConnectionRefusedError, TimeoutError):
            return False
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(0.0)
        self.fd = connection.detach()
        return True

    def got(self, data):
        self.ended |= not data
        return data

    def failed(self, error):
        self.ended = True
        return super().failed(error)


class Udp(Line):
    """A controller on a network: it has a port, and answers whoever spoke to it first."""

    def __init__(self, port):
        super().__init__()
        self.port = port

    def open(self):
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        opened.bind(("127.0.0.1", self.port))
        opened.settimeout(0.0)
        self.fd = opened.detach()
        return True

    def read(self):
        """Every datagram that waits."""
        data = b""
        with socket.socket(fileno=os.dup(self.fd)) as opened:
            try:
                while len(data) < _CHUNK:
                    datagram, peer = opened.recvfrom(_CHUNK)
                    data += datagram
                    opened.connect(peer)
            except (BlockingIOError, ConnectionRefusedError):
                pass
        return data

    def failed(self, error):
        """Nobody has spoken yet, or is there any more."""
        if error.errno not in {errno.EDESTADDRREQ, errno.ECONNREFUSED}:
            raise error
        self.waiting.clear()
        return b""
