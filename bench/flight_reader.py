"""A flight controller's end of a pty that only notes: when each HIL_SENSOR came, and answers it with motor commands at once. A process of its own.

    flight_reader.py LINK FILE

Makes a pty, LINK leads to the end that hilsim opens. Ends when its standard input closes, having saved ``int64[n, 2]`` (CLOCK_MONOTONIC ns when the frame had been
read, HIL_SENSOR.time_usec) to FILE. Runs under SCHED_FIFO, above hilsim's threads, where that is permitted: what it sees is then hilsim's lateness and not its own.
It prints ``fifo`` or ``plain``.

    flight_reader.py --witness CPU FILE

Does nothing but wake every millisecond on one CPU, above every other thread; saves ``int64[n, 2]`` (when it was due, ns late) of the times that it was more than ``LATE_NS`` late: then the machine
stood still, and no process on that CPU could have been on time.
"""

import os
import select
import sys
import time
import tty
from pathlib import Path

import numpy as np
from pymavlink.dialects.v20 import common

PRIORITY, WITNESS_PRIORITY = 60, 80
SENSOR_ID = b"\x6b\x00\x00"
MARK = 0xFD
OVERHEAD = 12
HEARTBEAT_NS = 1_000_000_000
LATE_NS = 2_000_000
TICK_NS = 1_000_000


def frames(buffer):
    """Whole MAVLink 2 frames at the beginning of a buffer, which loses them."""
    start = 0
    while len(buffer) - start >= OVERHEAD:
        if buffer[start] != MARK:
            raise SystemExit(f"hilsim must write whole frames, got {buffer[start : start + 16].hex()}")
        end = start + buffer[start + 1] + OVERHEAD
        if end > len(buffer):
            break
        yield buffer[start:end]
        start = end
    del buffer[:start]


def read(master, noted):
    """Until standard input closes."""
    mav = common.MAVLink(None, srcSystem=1, srcComponent=1)
    heartbeat = common.MAVLink_heartbeat_message(2, common.MAV_AUTOPILOT_PX4, 0x20, 0, 4, 3)
    poller = select.poll()
    poller.register(master, select.POLLIN)
    poller.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
    buffer, due_ns = bytearray(), 0
    while True:
        ready = dict(poller.poll(100))
        if sys.stdin.fileno() in ready:
            return
        if ready.get(master, 0) & select.POLLIN:
            buffer += os.read(master, 65536)
            now_ns = time.monotonic_ns()
            for frame in list(frames(buffer)):
                if frame[7:10] == SENSOR_ID:
                    noted.append((now_ns, int.from_bytes(frame[10:18], "little")))
                    os.write(master, common.MAVLink_hil_actuator_controls_message(now_ns // 1000, [0.0] * 16, 0x20, 0).pack(mav))
        elif master in ready:
            time.sleep(0.001)  # the other end is not open yet
        if time.monotonic_ns() >= due_ns:
            due_ns = time.monotonic_ns() + HEARTBEAT_NS
            os.write(master, heartbeat.pack(mav))


def real_time(priority):
    """Be SCHED_FIFO where permitted; says whether."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except PermissionError:
        return "plain"
    return "fifo"


def witness(cpu, path):
    """Until standard input closes."""
    os.sched_setaffinity(0, {cpu})
    print(real_time(WITNESS_PRIORITY), flush=True)
    poller = select.poll()
    poller.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
    noted, due_ns, ticks = [], time.monotonic_ns(), 0
    while ticks % 100 or not poller.poll(0):
        due_ns += TICK_NS
        ticks += 1
        time.sleep(max(due_ns - time.monotonic_ns(), 0) * 1e-9)
        late_ns = time.monotonic_ns() - due_ns
        if late_ns > LATE_NS:
            noted.append((due_ns, late_ns))
            due_ns += late_ns
    np.save(path, np.array(noted, dtype=np.int64).reshape(-1, 2))


def main():
    """Read and save."""
    if sys.argv[1] == "--witness":
        witness(int(sys.argv[2]), Path(sys.argv[3]))
        return
    link, path = map(Path, sys.argv[1:3])
    mode = real_time(PRIORITY)
    master, far = os.openpty()
    tty.setraw(far)
    os.set_blocking(master, False)
    link.symlink_to(os.ttyname(far))
    print(mode, flush=True)
    noted = []
    read(master, noted)
    np.save(path, np.array(noted, dtype=np.int64).reshape(-1, 2))


if __name__ == "__main__":
    main()
