"""Two network namespaces joined by a veth pair.

A namespace belongs to a thread here: sockets that the thread opens are in it, wherever they are used afterwards. It ends with the thread.
"""

import ctypes
import json
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

CLONE_NEWNET = 0x40000000
SENSOR, HOST = "192.168.1.201", "192.168.1.77"


class Namespace:
    """A thread in a network namespace of its own."""

    def __init__(self):
        self._pool = ThreadPoolExecutor(1)
        if self.run(lambda: ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET)) != 0:
            self._pool.shutdown()
            pytest.skip("network namespaces need CAP_SYS_ADMIN")
        self.thread_id = self.run(threading.get_native_id)

    def run(self, function, *arguments):
        return self._pool.submit(function, *arguments).result(60)

    def ip(self, *arguments):
        self.run(lambda: subprocess.run(["ip", *map(str, arguments)], check=True, capture_output=True))

    def await_up(self, name):
        """Wait for an interface: until the kernel has found both ends of a cable up, it drops what is sent."""
        for _ in range(1000):
            shown = self.run(lambda: subprocess.run(["ip", "-j", "link", "show", "dev", name], check=True, capture_output=True)).stdout
            if json.loads(shown)[0]["operstate"] == "UP":
                return
            time.sleep(0.01)
        raise TimeoutError(f"{name} must be up within 10 s")

    def close(self):
        self._pool.shutdown()


@pytest.fixture
def link():
    """A sensor's and a host's namespace with a cable between them."""
    sensor, host = Namespace(), Namespace()
    try:
        sensor.ip("link", "add", "lidar0", "type", "veth", "peer", "name", "host0")
        sensor.ip("link", "set", "host0", "netns", host.thread_id)
        for namespace, name, address in ((sensor, "lidar0", SENSOR), (host, "host0", HOST)):
            namespace.ip("address", "add", f"{address}/24", "broadcast", "192.168.1.255", "dev", name)
            namespace.ip("link", "set", "lo", "up")
            namespace.ip("link", "set", name, "up")
        sensor.await_up("lidar0")
        host.await_up("host0")
        yield sensor, host
    finally:
        sensor.close()
        host.close()
