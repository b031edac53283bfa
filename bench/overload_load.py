"""What the overload bench runs beside hilsim, a process each: ``busy`` does ordinary work, ``witness`` holds a core at the highest real-time priority.

    python bench/overload_load.py busy SECONDS
    python bench/overload_load.py standstill SECONDS CPU SEED

Both print one JSON line at their end.
"""

import json
import os
import random
import sys
import time


def busy(seconds):
    """Work; print the share of a core that was had, and the longest stretch without any."""
    begun_s = last_s = time.monotonic()
    longest_s = 0.0
    while last_s - begun_s < seconds:
        now_s = time.monotonic()
        longest_s = max(longest_s, now_s - last_s)
        last_s = now_s
    print(json.dumps({"share": time.process_time() / seconds, "longest_ms": longest_s * 1e3}))


def standstill(seconds, cpu, seed):
    """Stand in for a host that does not run its virtual machine: hold the core for 1 to 12 ms, five times a second. Every core uses the same seed."""
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
    draw = random.Random(seed)
    held_ms = []
    begun_s = time.monotonic()
    at_s = float(int(begun_s) + 1)
    while at_s - begun_s < seconds:
        time.sleep(max(at_s - time.monotonic(), 0.0))
        length_s = draw.uniform(0.001, 0.012)
        while time.monotonic() < at_s + length_s:
            pass
        held_ms.append(length_s * 1e3)
        at_s += draw.uniform(0.1, 0.3)
    print(json.dumps({"standstills": len(held_ms), "longest_ms": max(held_ms, default=0.0)}))


if __name__ == "__main__":
    if sys.argv[1] == "busy":
        busy(float(sys.argv[2]))
    else:
        standstill(float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
