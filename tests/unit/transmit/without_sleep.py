"""A sending loop in a process where clock_nanosleep fails at once; says what became of its thread.

``abs`` stands in for it: it takes the clock's number, 1, and returns it, which as an errno is EPERM.
"""

import ctypes
import json
import os
import sys
import threading
import time

import llvmlite.binding as llvm
import numpy as np

from hilsim.transmit.brake import Brake, brake_reason
from hilsim.transmit.faults.arrays import allocate_network_faults
from hilsim.transmit.flow_table import allocate_flow_table
from hilsim.transmit.loop import LatePolicy, LoopSettings, allocate_following, send_loop
from hilsim.transmit.ring import allocate_rings
from hilsim.transmit.scheduling import ThreadSettings, enter
from hilsim.transmit.statistics import allocate_statistics

GROSS_LIMIT_S = 30.0

llvm.add_symbol("clock_nanosleep", ctypes.cast(ctypes.CDLL(None).abs, ctypes.c_void_p).value)  # before any kernel is loaded

statistics, stop = allocate_statistics(1), np.zeros(8, np.int64)
following = allocate_following(0, 1, 1, 64)
settings = LoopSettings(0, 10**9, int(LatePolicy.SEND))
arguments = allocate_rings(1, 4, 64), allocate_flow_table(1), statistics, following, allocate_network_faults(1, 64, 0), stop, settings
stop[0] = 1
send_loop(*arguments)  # compiled before anything is real-time
stop[0] = 0
said = {}


def work():
    """Begin under SCHED_FIFO, where that is permitted."""
    said["before"] = enter(ThreadSettings()).mode.value
    send_loop(*arguments)


thread = threading.Thread(target=work)
thread.start()
deadline_s = time.monotonic() + GROSS_LIMIT_S
while not statistics.brake[Brake.APPLIED] and time.monotonic() < deadline_s:
    time.sleep(0.001)
passes = int(statistics.passes[0])
while statistics.passes[0] < passes + 10 and time.monotonic() < deadline_s:
    time.sleep(0.001)
said["policy"] = os.sched_getscheduler(thread.native_id) & ~os.SCHED_RESET_ON_FORK
said["still_turns"] = bool(statistics.passes[0] >= passes + 10)
stop[0] = 1
thread.join()
sys.stdout.write(json.dumps(said | {"applied": int(statistics.brake[Brake.APPLIED]), "reason": brake_reason(statistics.brake)}))
