"""Receives on loopback and notes when the kernel took each datagram; a process of its own, so that it disturbs the sender little.

Prints its port; ends when its standard input closes, having saved ``int64[n, 4]`` (flow, number, deadline, stamp; both times CLOCK_MONOTONIC ns)
to the file it was given. On loopback the kernel's stamp is made inside the sender's own send call: it is the true time of departure.
"""

import contextlib
import os
import socket
import struct
import sys
import threading
import time

import numpy as np

SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35
DRAIN_INTERVAL_S = 0.002
NICENESS = 5


def clock_offset_ns():
    """CLOCK_REALTIME minus CLOCK_MONOTONIC, of the closest of many readings."""
    best = (1 << 62, 0)
    for _ in range(200):
        before = time.monotonic_ns()
        real = time.clock_gettime_ns(time.CLOCK_REALTIME)
        after = time.monotonic_ns()
        best = min(best, (after - before, real - (before + after) // 2))
    return best[1]


def make_socket():
    """A bound socket with a large buffer and kernel stamps."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 256 << 20)
    except PermissionError:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 256 << 20)
    receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    receiver.bind(("127.0.0.1", 0))
    receiver.settimeout(0.0)
    return receiver


def main():
    """Receive until standard input closes, then save."""
    ended = threading.Event()
    receiver = make_socket()
    os.nice(NICENESS)
    print(receiver.getsockname()[1], flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    offset_ns = clock_offset_ns()
    rows = []
    while True:
        is_last = ended.is_set()
        with contextlib.suppress(BlockingIOError):
            while True:
                payload, ancillary, _, _ = receiver.recvmsg(24, 64)
                rows.append((*struct.unpack("qqq", payload), *struct.unpack("qq", ancillary[0][2])))
        if is_last:
            break
        time.sleep(DRAIN_INTERVAL_S)
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    stamps = table[:, 3] * 1_000_000_000 + table[:, 4] - (offset_ns + clock_offset_ns()) // 2
    np.save(sys.argv[1], np.column_stack((table[:, :3], stamps)))


if __name__ == "__main__":
    main()
