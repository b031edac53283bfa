"""The scripted ground station as a program: ``python -m tests.controllers.ground --port 14550 --script fly --report FILE.json``.

It listens, learns a peer's address from the first datagram that it gets, and answers there; ``--to HOST:PORT`` makes it speak first; ``--tcp HOST:PORT`` connects instead.
It prints the port that it has.
It ends when its script is done, after ``--for`` seconds, at SIGTERM or SIGINT; the report is written in each case. Its exit status is 0 if its script was done, else 1.
"""

import argparse
import json
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

from hilsim_flight_controller.wire import Splitter
from tests.controllers.station import Station

_WAKE_S = 0.005
_CHUNK = 65_536


class Ground:
    """A station at a UDP socket of the loopback interface."""

    def __init__(self, station, *, port=14550, to=None):
        self.station, self.peer = station, to
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", port))
        self.udp.settimeout(0.0)
        self.begun_ns = time.monotonic_ns()

    @property
    def port(self):
        return self.udp.getsockname()[1]

    def turn(self):
        """What came, and what is due."""
        now_us = (time.monotonic_ns() - self.begun_ns) // 1000
        with suppress(BlockingIOError):
            while True:
                datagram, self.peer = self.udp.recvfrom(_CHUNK)
                self.station.receive(now_us, datagram)
        if self.peer is not None:
            for datagram in self.station.advance(now_us):
                self.udp.sendto(datagram, self.peer)
        return now_us

    def run(self, stopped, most_s):
        now_us = 0
        while not (stopped or self.station.done or now_us >= most_s * 1e6):
            select.select([self.udp], [], [], _WAKE_S)
            now_us = self.turn()
        self.udp.close()


class TcpGround:
    """A station that connects to a TCP port; its end is that of the other side."""

    def __init__(self, station, *, to):
        self.station = station
        self.tcp = socket.create_connection(to, timeout=10.0)
        self.tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.splitter = Splitter()
        self.begun_ns = time.monotonic_ns()

    @property
    def port(self):
        return self.tcp.getsockname()[1]

    def run(self, stopped, most_s):
        now_us = 0
        while not (stopped or self.station.done or now_us >= most_s * 1e6):
            now_us = (time.monotonic_ns() - self.begun_ns) // 1000
            if select.select([self.tcp], [], [], _WAKE_S)[0]:
                data = self.tcp.recv(_CHUNK)
                if not data:
                    break
                for frame in self.splitter.feed(data):
                    self.station.receive(now_us, frame.raw)
            for frame in self.station.advance(now_us):
                self.tcp.sendall(frame)
        self.station.garbage += len(self.splitter.garbage) + sum(map(len, self.splitter.corrupt))
        self.tcp.close()


def _host_and_port(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.controllers.ground", description="A scripted ground station that keeps every byte.")
    parser.add_argument("--port", type=int, default=14550, help="0: any that is free")
    parser.add_argument("--to", metavar="HOST:PORT", type=_host_and_port)
    parser.add_argument("--tcp", metavar="HOST:PORT", type=_host_and_port)
    parser.add_argument("--script", choices=["listen", "fly", "odd", "chatter"], default="listen")
    parser.add_argument("--system", metavar="ID", type=int, default=255)
    parser.add_argument("--height", metavar="M", dest="height_m", type=float, default=2.5)
    parser.add_argument("--hover", metavar="S", dest="hover_s", type=float, default=2.0)
    parser.add_argument("--for", metavar="S", dest="most_s", type=float, default=120.0)
    parser.add_argument("--report", metavar="FILE", type=Path, required=True)
    options = parser.parse_args()
    station = Station(options.script, system=options.system, height_m=options.height_m, hover_s=options.hover_s)
    ground = TcpGround(station, to=options.tcp) if options.tcp else Ground(station, port=options.port, to=options.to)
    stopped = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.append(1))
    sys.stdout.write(f"{ground.port}\n")
    sys.stdout.flush()
    ground.run(stopped, options.most_s)
    options.report.write_text(json.dumps(station.as_dict(), indent=1))
    return 0 if station.done else 1


if __name__ == "__main__":
    sys.exit(main())
