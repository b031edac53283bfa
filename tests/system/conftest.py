"""The real daemon as a process, and receivers for its packets."""

import contextlib
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from hilsim.testing.forks import Fork
from tests import commands
from tests.support import ROOM, udp_socket_line, write_rig
from tests.system.flying import Programs
from tests.system.reception import LidarStream, receiving_socket
from tests.system.wheels import install_wheel

START_TIMEOUT_S = 300  # a cold kernel cache on a busy machine; a warm start takes about a second


@pytest.fixture(scope="session")
def installed_wheel(tmp_path_factory):
    """An environment with hilsim's wheel."""
    return install_wheel(tmp_path_factory.mktemp("wheel"))


@dataclass
class Receiver:
    """A bound UDP socket."""

    sock: socket.socket

    @property
    def port(self):
        return self.sock.getsockname()[1]

    @property
    def dropped(self):
        """Datagrams that the kernel dropped, because this process did not fetch them in time."""
        return int(udp_socket_line(self.port)[-1])

    def take(self, count, timeout_s=20.0):
        """``count`` payloads with their source addresses."""
        self.sock.settimeout(timeout_s)
        return [self.sock.recvfrom(65_535) for _ in range(count)]

    def drain(self):
        """Everything that waits now."""
        self.sock.settimeout(0.0)
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                found.append(self.sock.recvfrom(65_535))
        return found


@dataclass
class Daemon:
    """A ``hilsim run`` process whose log is read line by line."""

    process: subprocess.Popen | Fork
    log: Path

    def text(self):
        return self.log.read_text()

    def await_log(self, pattern, timeout_s=START_TIMEOUT_S, after=0):
        """The match of ``pattern`` in the log beyond character ``after``; fails when the process ends or time is up."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            found = re.search(pattern, self.text()[after:])
            if found:
                return found
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        pytest.fail(f"no {pattern!r} in the daemon's log (exit {self.process.poll()}):\n{self.text()[-4000:]}")

    def stop(self, number=signal.SIGTERM, timeout_s=60.0):
        """Signal and wait; returns the exit code and the processor time (s) that stopping took: wall time says more of the machine than of the daemon."""
        others_s, before_s = _ended_children_s(), _processor_s(self.process.pid)
        self.process.send_signal(number)
        code = self.process.wait(timeout_s)
        return code, _ended_children_s() - others_s - before_s


def _ended_children_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime + commands.used_s()


def _processor_s(pid):
    """Processor time of a process with its ended children (proc(5): stat, fields 14 to 17)."""
    ticks = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[11:15]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def receiver():
    made = []

    def make(host="127.0.0.1"):
        sock = receiving_socket(host)
        made.append(sock)
        return Receiver(sock)

    yield make
    for sock in made:
        sock.close()


def sensor_table(name, data_port, position_port, extra="", network=""):
    return f"""
[[sensor]]
name = "{name}"
unit = "ideal"
sub_rays = 1
gps = {{ latitude_deg = 36.8, longitude_deg = -2.4 }}
{extra}
[sensor.network]
source = "127.0.1.201"
source_ports = "any"
data_port = {data_port}
position_port = {position_port}
{network}
"""


SCENE = ROOM.split("[[sensor]]")[0] + "\n[metrics]\nport = 0\n"


@pytest.fixture
def rig(tmp_path):
    """Write a rig with the room and the given sensor tables; returns its path."""

    def make(*sensors, scene=SCENE, name="rig.toml"):
        return write_rig(tmp_path, scene + "".join(sensors), name)

    return make


@pytest.fixture
def daemon(tmp_path, request):
    """Start ``hilsim run``, or what ``program`` makes of the rig's path; every process is ended at the end of the test."""
    running, is_cold = [], request.node.get_closest_marker("cold") is not None

    def start(path, *arguments, environment=None, wait=True, program=None):
        log = tmp_path / f"daemon-{len(running)}.log"
        with log.open("w") as output:
            if program:
                process = subprocess.Popen(
                    [sys.executable, "-c", program(path)], stdout=output, stderr=subprocess.STDOUT, env=os.environ | (environment or {})
                )
            else:
                process = commands.start("run", path, *arguments, stdout=output, stderr=output, environment=environment, is_cold=is_cold)
        started = Daemon(process, log)
        running.append(started)
        if wait:
            started.await_log(r'"event": "daemon\.started"')
        return started

    yield start
    for started in running:
        if started.process.poll() is None:
            started.process.kill()
            started.process.wait()


@pytest.fixture
def programs(tmp_path):
    """Scripted controllers and ground stations; what still runs at the end is ended."""
    made = Programs(tmp_path)
    yield made
    made.close()


@pytest.fixture
def lidar():
    """A receiver of a sensor's data packets, already running."""
    made = LidarStream()
    made.start()
    yield made
    made.end()


@pytest.fixture
def free_port():
    """Numbers of TCP ports of the loopback interface that are free."""

    def find():
        with socket.create_server(("127.0.0.1", 0)) as found:
            return found.getsockname()[1]

    return find
