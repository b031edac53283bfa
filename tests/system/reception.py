"""What the tests' own sockets receive of a lidar's stream, and how many of its packets the daemon says it never sent."""

import contextlib
import re
import socket
import threading
import time
from itertools import pairwise

import numpy as np

SO_RCVBUFFORCE = 33  # asm-generic/socket.h
_BUFFER_BYTES = 8 << 20
_PACKET_US = 1327.104
_HOUR_US = 3_600_000_000


def receiving_socket(host="127.0.0.1", port=0):
    """A UDP socket (on a free port unless one is named) that holds what comes for some seconds: a test may read late."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
    with contextlib.suppress(PermissionError):  # beyond the host's limit, where that is permitted
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, _BUFFER_BYTES)
    sock.bind((host, port))
    return sock


def unsent(samples, sensor, flow="data"):
    """Packets of a flow that the daemon says it left out: dropped as late, refused by the kernel, or never rendered.

    Args:
        samples: Every sample of /metrics by its name and labels, read after the packets.
    """
    refused = re.compile(rf'hilsim_send_errors_total{{.*flow="{flow}",sensor="{sensor}"')
    dropped = samples[f'hilsim_dropped_packets_total{{flow="{flow}",sensor="{sensor}"}}']
    skipped = samples[f'hilsim_render_skipped_packets_total{{sensor="{sensor}"}}']
    return int(dropped + skipped + sum(value for name, value in samples.items() if refused.match(name)))


def missing_packets(stamps_us):
    """Data packets of a VLP-16 that are not there between the first and the last, by their time stamps (us)."""
    steps = np.diff(np.asarray(stamps_us, dtype=np.int64)) % _HOUR_US
    return int(np.round(steps / _PACKET_US).sum() - len(steps))


class LidarStream(threading.Thread):
    """Takes a VLP-16's data packets as they come; keeps their stamps and when they came."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = receiving_socket()
        self.socket.settimeout(0.5)
        self.port = self.socket.getsockname()[1]
        self.stamps_us, self.came_s, self.ended = [], [], False

    def run(self):
        while not self.ended:
            with contextlib.suppress(TimeoutError):
                payload = self.socket.recv(2000)
                self.stamps_us.append(int.from_bytes(payload[1200:1204], "little"))
                self.came_s.append(time.monotonic())
        self.socket.close()

    def end(self):
        self.ended = True
        self.join()

    @property
    def missing(self):
        """Packets that never came between the first and the last."""
        return missing_packets(self.stamps_us)

    def longest_gap_s(self, wall_time):
        """Of all gaps above 0.1 s between two packets the longest, without the machine's standstills."""
        return max((wall_time.awake_s(began_s, ended_s) for began_s, ended_s in pairwise(self.came_s) if ended_s - began_s > 0.1), default=0.0)
