"""A wire of our own: two network namespaces joined by a pair of virtual interfaces, removed again whatever happens."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from replay_captures import FIRST_SOURCE

HERE = Path(__file__).resolve().parent
SENDING, RECEIVING = "send0", "receive0"
DESTINATION = "192.168.1.77"
DESTINATION_MAC = "02:00:00:00:00:4d"


class NoWireError(Exception):
    """Namespaces cannot be made here; the text says why."""


@dataclass(frozen=True)
class Wire:
    """Names of the two namespaces."""

    sender: str
    receiver: str

    def send_by(self, command):
        """A command line that runs ``command`` where ``send0`` is; it becomes that command, so that its process is the command's."""
        return ["ip", "netns", "exec", self.sender, *command]

    @contextlib.contextmanager
    def receive(self, path):
        """A receiving process; on leaving, ``path`` holds what came."""
        command = ["ip", "netns", "exec", self.receiver, sys.executable, HERE / "replay_receiver.py", path]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            if process.stdout.readline() != "ready\n":
                raise NoWireError("the receiver did not start")
            yield
            time.sleep(0.05)
            process.stdin.close()
            process.wait(60)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stdin.close()


def ip(*words):
    """Run ``ip``.

    Raises:
        NoWireError: it failed; says how.
    """
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoWireError(f"`ip {' '.join(words)}` failed: {done.stderr.strip()}")


@contextlib.contextmanager
def wire(sensors):
    """Two namespaces; the sending one has the addresses of all sensors and knows the receiver's MAC address, so that no ARP delays a packet.

    Raises:
        NoWireError: they cannot be made.
    """
    if os.geteuid() != 0:
        raise NoWireError("network namespaces need root")
    if shutil.which("ip") is None:
        raise NoWireError("network namespaces need iproute2's `ip`")
    names = Wire(f"hilsim-bench-{os.getpid()}-send", f"hilsim-bench-{os.getpid()}-receive")
    with contextlib.ExitStack() as made:
        for name in (names.sender, names.receiver):
            ip("netns", "add", name)
            made.callback(ip, "netns", "delete", name)
        ip("-n", names.sender, "link", "add", SENDING, "type", "veth", "peer", "name", RECEIVING, "netns", names.receiver)
        ip("-n", names.receiver, "link", "set", RECEIVING, "address", DESTINATION_MAC)
        ip("-n", names.receiver, "address", "add", f"{DESTINATION}/24", "dev", RECEIVING)
        for number in range(sensors):
            ip("-n", names.sender, "address", "add", f"{FIRST_SOURCE + number}/24", "dev", SENDING)
        for name, interface in ((names.sender, SENDING), (names.receiver, RECEIVING)):
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", interface, "up")
        ip("-n", names.sender, "neighbour", "replace", DESTINATION, "lladdr", DESTINATION_MAC, "dev", SENDING, "nud", "permanent")
        time.sleep(1.0)  # a virtual interface drops what is sent before its peer is up
        yield names
