"""Receives replayed packets on ports 2368 and 8308 and notes when the kernel took each; a process of its own, so that it disturbs the sender little.

Prints a line when it is ready; ends when its standard input closes, having saved ``int64[n, 4]`` (stamp in CLOCK_MONOTONIC ns, source address,
destination port, digest of the payload) to the file it was given, rows of one port in the order of arrival.

Over a pair of virtual interfaces the kernel's stamp is made inside the sender's own send call: it is the true time of departure, whatever this
process is doing. So it runs below normal priority and looks seldom: its buffer holds a whole run. A real-time receiver would only take time from the sender.
"""

import contextlib
import os
import socket
import struct
import sys
import threading
import time
from ipaddress import IPv4Address

import numpy as np
from replay_captures import digest
from timing_receiver import NICENESS, SO_RCVBUFFORCE, SO_TIMESTAMPNS, clock_offset_ns

from hilsim.families.velodyne.protocol.data import DATA_PORT
from hilsim.families.velodyne.protocol.position import POSITION_PORT

BUFFER_BYTES = 256 << 20
DRAIN_INTERVAL_S = 0.02


def make_socket(port):
    """A bound socket with a large buffer and kernel stamps."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    receiver.bind(("0.0.0.0", port))  # noqa: S104 - in a namespace of its own
    receiver.settimeout(0.0)
    return receiver


def drain(receiver, port, rows):
    """Append everything that waits now."""
    with contextlib.suppress(BlockingIOError):
        while True:
            payload, ancillary, _, (source, _) = receiver.recvmsg(2048, 64)
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
            rows.append((seconds * 1_000_000_000 + nanoseconds, source, port, digest(payload)))


def main():
    """Receive until standard input closes, then save."""
    ended = threading.Event()
    receivers = {port: make_socket(port) for port in (DATA_PORT, POSITION_PORT)}
    os.nice(NICENESS)
    print("ready", flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    offset_ns = clock_offset_ns()
    rows = []
    while True:
        is_last = ended.is_set()
        for port, receiver in receivers.items():
            drain(receiver, port, rows)
        if is_last:
            break
        time.sleep(DRAIN_INTERVAL_S)
    address = {source: int(IPv4Address(source)) for source in {row[1] for row in rows}}
    table = np.array([(stamp, address[source], port, payload) for stamp, source, port, payload in rows], dtype=np.int64).reshape(-1, 4)
    table[:, 0] -= (offset_ns + clock_offset_ns()) // 2
    np.save(sys.argv[1], table)


if __name__ == "__main__":
    main()
