"""Pseudo-terminals in place of cables; loopback sockets."""

import contextlib
import os
import socket
import tty

import pytest


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

    def write(self, data):
        assert os.write(self.master, data) == len(data)

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
