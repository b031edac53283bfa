"""Scheduling of a thread of the packet path: SCHED_FIFO where permitted, else a short slice, else the default.

A slice of 100 us (``sched_setattr`` with ``sched_runtime``, Linux 6.12 and later, no privilege needed) makes the ordinary scheduler run the
thread soon after it wakes, even when all CPUs are busy.
"""

import ctypes
import errno
import os
import platform
import signal
import struct
import threading
from dataclasses import dataclass
from enum import StrEnum

from hilsim.errors import TransmitError, require, within
from hilsim.transmit.specs import CHOOSE_SPIN, LONGEST_SPIN_US, SchedulingChoice

PACKET_COST_US = 3.5
"""CPU time per packet sent, measured at saturation: 290,000 packets/s on one core."""

SPIN_BUDGET_RATIO = 0.1
"""Share of a core that spinning by default may take: two VLP-16s."""

FIFO_BUDGET_RATIO = 0.8
"""Share of a core that a SCHED_FIFO thread may plan for: at 95 % the kernel throttles real-time threads, for 50 ms of each second."""

_PR_SET_TIMERSLACK = 29
_SCHEDULING_CALLS = {"x86_64": (314, 315), "aarch64": (274, 275)}  # system call numbers of sched_setattr, sched_getattr
_ATTRIBUTES = struct.Struct("=IIQiIQQQII")  # struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period, util_min, util_max
_FLAG_RESET_ON_FORK = 1  # always set: a thread that has it needs a privilege to clear it, even on the way from SCHED_FIFO to SCHED_OTHER


class SchedulingMode(StrEnum):
    """Scheduling that a thread obtained."""

    FIFO = "fifo"
    SLICE = "slice"
    PLAIN = "plain"


@dataclass(frozen=True, kw_only=True)
class ThreadSettings:
    """Scheduling that a thread requests.

    Attributes:
        scheduling: ``TransmitSpec.scheduling``.
        priority: Priority under SCHED_FIFO, 1 to 99.
        cpu: CPU that the thread runs on; -1: any.
        slice_us: Slice for ``slice``: the longest time the thread runs uninterrupted; beyond it, it is interrupted at the next timer tick.
        nice: Nice value for ``slice`` and ``plain``, 0 to 19. Lowering it again may not be permitted; the thread then
            keeps its value.
    """

    scheduling: SchedulingChoice = "auto"
    priority: int = 20
    cpu: int = -1
    slice_us: float = 100.0
    nice: int = 0

    def __post_init__(self) -> None:
        require(
            *within(self, priority=(1, 99), slice_us=(100, 100_000), nice=(0, 19)),
            (-1 <= self.cpu <= 1023, f"cpu must be -1 (any) or 0 to 1023, got {self.cpu}"),
        )


@dataclass(frozen=True, kw_only=True)
class ObtainedScheduling:
    """Scheduling that a thread obtained, and why.

    Attributes:
        mode: Scheduling in force.
        reason: Reason that nothing better is in force; empty when the first choice is.
    """

    mode: SchedulingMode
    reason: str


def enter(settings: ThreadSettings) -> ObtainedScheduling:
    """Prepare the calling thread for the packet path: block all signals, wake without slack, apply the CPU and scheduling requested.

    Raises:
        TransmitError: ``fifo`` or ``slice`` was requested and is not permitted, or the CPU does not exist.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(1))
    if settings.cpu >= 0:
        try:
            os.sched_setaffinity(0, {settings.cpu})
        except OSError as error:
            allowed = ", ".join(map(str, sorted(os.sched_getaffinity(0))))
            raise TransmitError(f"cpu must be one this process may use ({allowed}), got {settings.cpu}") from error
    return apply(settings, threading.get_native_id())


def apply(settings: ThreadSettings, thread_id: int) -> ObtainedScheduling:
    """Set the scheduling of any thread of this process by its native id.

    Raises:
        TransmitError: ``fifo`` or ``slice`` was requested and is not permitted.
    """
    refusal = ""
    if settings.scheduling in ("auto", "fifo"):
        refusal = _set_fifo(thread_id, settings.priority)
        if not refusal:
            return ObtainedScheduling(mode=SchedulingMode.FIFO, reason="")
        if settings.scheduling == "fifo":
            raise TransmitError(refusal)
    if settings.scheduling in ("auto", "slice"):
        no_slice = _set_slice(thread_id, round(settings.slice_us * 1000), settings.nice)
        if not no_slice:
            return ObtainedScheduling(mode=SchedulingMode.SLICE, reason=refusal)
        if settings.scheduling == "slice":
            raise TransmitError(no_slice)
        refusal = f"{refusal}; {no_slice}"
    else:
        os.sched_setscheduler(thread_id, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))
        if settings.nice > os.getpriority(os.PRIO_PROCESS, thread_id):
            os.setpriority(os.PRIO_PROCESS, thread_id, settings.nice)
    return ObtainedScheduling(mode=SchedulingMode.PLAIN, reason=refusal)


def chosen_spin_us(spin_us: float, packet_rate_hz: float, *, real_time: bool) -> float:
    """Spin time in force for ``TransmitSpec.spin_us``."""
    if spin_us != CHOOSE_SPIN:
        return spin_us
    return LONGEST_SPIN_US if real_time and packet_rate_hz * LONGEST_SPIN_US / 1e6 <= SPIN_BUDGET_RATIO else 0.0


def fifo_refusal(packet_rate_hz: float, spin_us: float) -> str:
    """Reason that a sending thread with this load must not run under SCHED_FIFO; empty if it may."""
    load_ratio = packet_rate_hz * (PACKET_COST_US + spin_us) / 1e6
    if load_ratio <= FIFO_BUDGET_RATIO:
        return ""
    return (
        f"the load of a SCHED_FIFO thread must be at most {FIFO_BUDGET_RATIO:.0%} of a core, got {load_ratio:.0%} "
        f"from {packet_rate_hz:.0f} packets/s with spin_us = {spin_us:g}: the kernel would throttle it"
    )


def _set_fifo(thread_id: int, priority: int) -> str:
    try:
        os.sched_setscheduler(thread_id, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
    except PermissionError:
        return f"SCHED_FIFO with priority {priority} is not permitted: grant CAP_SYS_NICE (systemd: AmbientCapabilities=CAP_SYS_NICE) or LimitRTPRIO={priority}"
    return ""


def _set_slice(thread_id: int, slice_ns: int, nice: int) -> str:
    """Request a slice and read it back: kernels before 6.12 accept the call and ignore the value."""
    calls = _SCHEDULING_CALLS.get(platform.machine())
    if calls is None:
        return f"a slice can be set on {' and '.join(_SCHEDULING_CALLS)} only, got {platform.machine()}"
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = _slice_attributes(slice_ns, nice)
    refused = libc.syscall(calls[0], thread_id, attributes, 0) != 0
    if refused and ctypes.get_errno() in (errno.EPERM, errno.EACCES):
        attributes = _slice_attributes(slice_ns, os.getpriority(os.PRIO_PROCESS, thread_id))
        refused = libc.syscall(calls[0], thread_id, attributes, 0) != 0
    if refused:
        return f"a slice of {slice_ns // 1000} us is not available: {os.strerror(ctypes.get_errno())}"
    libc.syscall(calls[1], thread_id, attributes, _ATTRIBUTES.size, 0)
    if _ATTRIBUTES.unpack(attributes.raw)[5] != slice_ns:
        return f"a slice needs Linux 6.12 or later, got {platform.release()}"
    return ""


def _slice_attributes(slice_ns: int, nice: int) -> "ctypes.Array[ctypes.c_char]":
    packed = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, _FLAG_RESET_ON_FORK, nice, 0, slice_ns, 0, 0, 0, 0)
    return ctypes.create_string_buffer(packed, _ATTRIBUTES.size)
