"""Pseudo-terminals in place of cables; loopback sockets."""

import contextlib
import fcntl
import os
import socket
import termios
import time
import tty

import pytest


def await_bytes(descriptor, size, timeout_s=30.0):
    """Wait until a descriptor holds that many bytes: the kernel carries them from one end of a pseudo-terminal or a loopback to the other when it has the time."""
    deadline = time.monotonic() + timeout_s
    while (there := int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), "little")) < size:
        assert time.monotonic() < deadline, f"{there} of {size} bytes came"
        time.sleep(0.0005)


class Cable:
    """A flight controller's end (the master) and the name of the port it appears as."""

    def __init__(self, link=None):
        self.master, self._slave = os.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self.master, False)
        self.device = os.ttyname(self._slave)
        os.close(self._slave)
        if link is not None:
            link.unlink(missing_ok=True)
            link.symlink_to(self.device)

    def read(self):
        with contextlib.suppress(BlockingIOError):
            return os.read(self.master, 1 << 16)
        return b""

    def read_whole(self, size):
        """Exactly so many bytes, once they have come."""
        came = b""
        while len(came) < size:
            await_bytes(self.master, 1)
            came += os.read(self.master, size - len(came))
        return came

    def write(self, data, *, to=None):
        """Write; where the other end's descriptor is given, return when it holds what was written."""
        assert os.write(self.master, data) == len(data)
        if to is not None:
            await_bytes(to, len(data))

    def pull(self):
        if self.master is not None:
            os.close(self.master)
            self.master = None


@pytest.fixture
def cable():
    made = []

    def plug(link=None):
        made.append(Cable(link))
        return made[-1]

    yield plug
    for each in made:
        each.pull()


@pytest.fixture
def udp_socket():
    made = []

    def make():
        made.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        made[-1].bind(("127.0.0.1", 0))
        made[-1].settimeout(10)
        return made[-1]

    yield make
    for each in made:
        each.close()
