"""Capability of this machine for real-time sending and rendering, with advice; every finding is a measured fact."""

import os
import platform
import resource
import socket
import time
from pathlib import Path

import numba
import numpy as np

from hilsim.assembly.build import build_scenery
from hilsim.cli.diagnosis.addresses import examine_addresses
from hilsim.compilation.cache import built_directory, cache_directory, refusals, stored_bytes
from hilsim.compilation.internals import TRIED_SERIES, unknown_internals
from hilsim.config.rig import Rig
from hilsim.daemon.precompile import is_compiled
from hilsim.daemon.streaming.capacity import Capacity, carried, carried_sentence, measure_capacity, with_one_ray
from hilsim.daemon.streaming.pacing import SensorLoad
from hilsim.telemetry.findings import Finding, Verdict, bad, fair, good
from hilsim.version import __version__, foreign_distribution

_CAP_NET_RAW = 13
_CAP_SYS_NICE = 23
_PORTS = (2368, 8308)
_HELD_PACKET_SIZE = 2304  # kernel memory of a datagram of 1206 bytes (skb truesize), which limits the queue
_FEW_HELD = 4


RENDERED_S = 3.0
"""Duration of each sensor's stream to measure its cost: long enough to include near and far surroundings."""


def examine(rig: Rig) -> tuple[Finding, ...]:
    """Examine everything; takes about half a second, plus the time to build the rig's scene and to render three seconds of each sensor.

    Args:
        rig: Rig to render.
    """
    return (
        _version(),
        _numba(),
        _distribution(),
        _processor(),
        *_rendering(rig),
        _real_time(),
        _memory_lock(),
        _wake_up(),
        _raw_frames(),
        _kernel_cache(),
        _cuda(),
        *(_port(port) for port in _PORTS),
        *examine_addresses(rig),
        _reverse_path_filter(),
        _neighbour_queue(),
    )


def _version() -> Finding:
    fact = f"hilsim {__version__}, Python {platform.python_version()}, numba {numba.__version__}, numpy {np.__version__}, {platform.platform()}"
    return good("versions", fact)


def _numba() -> Finding:
    if reason := unknown_internals():
        series, release = TRIED_SERIES[-1].split(".")
        above = f"{series}.{int(release) + 1}"
        return fair("Numba", reason, f"pip install 'numba>={TRIED_SERIES[0]},<{above}' for fast starts")
    return good("Numba", f"{numba.__version__} is one of the versions that hilsim was tried with")


def _distribution() -> Finding:
    foreign = foreign_distribution()
    if foreign is None:
        return good("distribution", "hilsim-lidar is the only package named hilsim")
    return bad(
        "distribution",
        f"the unrelated package hilsim {foreign} is installed beside hilsim-lidar; they share the import name",
        "pip uninstall hilsim, then install hilsim-lidar again",
    )


def _processor() -> Finding:
    cores = usable_cores()
    enough = cores >= 2
    return Finding(
        subject="processor",
        verdict="good" if enough else "fair",
        fact=f"{processor_text()}, {cores} core(s) for this process",
        advice="" if enough else "two cores keep rendering and sending apart",
    )


def _rendering(rig: Rig) -> tuple[Finding, ...]:
    """Cost of rendering the rig, if its kernels are compiled, and the number of its sensors that the machine supports."""
    subject = f"rendering {rig.spec.name}"
    if not rig.lidars:
        return (good(subject, "no sensor is rendered"),)
    if not is_compiled(rig):
        return (
            fair(subject, "not measured: its kernels are not compiled yet", f"hilsim doctor {rig.path}, or hilsim warm {rig.path}, compiles them"),
        )
    scenery = build_scenery(rig)
    capacity = measure_capacity(rig, scenery, seconds=RENDERED_S)
    verdict: Verdict = "good" if capacity.is_civil else "fair" if capacity.fits else "bad"
    whole = Finding(
        subject=subject,
        verdict=verdict,
        fact=f"{capacity.sentence}, over {RENDERED_S:g} s",
        advice="" if capacity.fits else "fewer sensors, fewer rays a beam (sub_rays), a smaller scene, or more cores",
    )
    lighter = with_one_ray(rig)
    lighter_loads = measure_capacity(lighter, scenery, seconds=RENDERED_S).loads if lighter != rig and is_compiled(lighter) else capacity.loads
    sensors = zip(rig.lidars, capacity.loads, lighter_loads, strict=True)
    return (whole, *(_carried(lidar.spec.model, load, one_ray, capacity) for lidar, load, one_ray in sensors))


def _carried(model: str, load: SensorLoad, one_ray: SensorLoad, capacity: Capacity) -> Finding:
    """Number of sensors of one kind that the machine supports, as configured in the rig and with a single ray per beam."""
    cores, share = capacity.cores, capacity.real_time_share
    lighter = "" if one_ray.rays == load.rays else f", {carried_sentence(one_ray, cores, share)}"
    return Finding(
        subject=f"sensors like {load.name}",
        verdict="good" if carried(load, cores, share=share) else "fair" if carried(load, cores) else "bad",
        fact=f"of {cores} core(s) a {model} takes {carried_sentence(load, cores, share)}{lighter}",
    )


def capabilities() -> int:
    """Effective capability bits of this process."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").split("\n"):
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def _real_time() -> Finding:
    soft, _ = resource.getrlimit(resource.RLIMIT_RTPRIO)
    if capabilities() >> _CAP_SYS_NICE & 1 or soft > 0:
        return good("real-time scheduling", "SCHED_FIFO is permitted")
    release = tuple(int(part) for part in platform.release().split(".")[:2] if part.isdigit())
    slices = release >= (6, 12)
    fact = "SCHED_FIFO is not permitted; " + (
        "short EEVDF slices are used instead" if slices else "this kernel (before 6.12) has no short slices either"
    )
    return fair(
        "real-time scheduling",
        fact,
        "grant CAP_SYS_NICE (the systemd unit does) or add '@realtime - rtprio 50' to /etc/security/limits.d/ for your group",
    )


def _memory_lock() -> Finding:
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    unlimited = soft == resource.RLIM_INFINITY
    shown = "unlimited" if unlimited else f"{soft // 1024} KiB"
    if unlimited or capabilities() >> 14 & 1:
        return good("memory locking", f"permitted (limit {shown})")
    return fair(
        "memory locking",
        f"limited to {shown}: pages of the packet path may be swapped out",
        "LimitMEMLOCK=infinity (the systemd unit has it) or CAP_IPC_LOCK",
    )


def _wake_up() -> Finding:
    """Lateness of a plain sleep's wake-up: a lower bound for an unprivileged sender."""
    lateness_us = []
    for _ in range(200):
        deadline_ns = time.monotonic_ns() + 1_000_000
        time.sleep(0.001)
        lateness_us.append((time.monotonic_ns() - deadline_ns) / 1000)
    p50, p99 = (float(np.percentile(lateness_us, q)) for q in (50, 99))
    verdict: Verdict = "good" if p99 < 300 else "fair"
    return Finding(
        subject="timer wake-up",
        verdict=verdict,
        fact=f"a plain 1 ms sleep wakes {p50:.0f} us late (median), {p99:.0f} us (p99)",
        advice="" if verdict == "good" else "this machine is busy or virtual; prefer real-time scheduling, set the CPU governor to performance",
    )


def _raw_frames() -> Finding:
    if capabilities() >> _CAP_NET_RAW & 1:
        return good("raw Ethernet frames", 'CAP_NET_RAW is held: network mode "ethernet" is possible')
    return fair(
        "raw Ethernet frames",
        'CAP_NET_RAW is not held: only network mode "udp" is possible',
        "grant CAP_NET_RAW (the systemd unit does) to send the sensor's own link and IP headers",
    )


def _kernel_cache() -> Finding:
    place = cache_directory()
    if place is None:
        return fair(
            "compiled-kernel cache",
            "; ".join(("kernels are compiled at each start (a minute or more)", *refusals)),
            "set NUMBA_CACHE_DIR to a directory that only you can write, below directories that only you and root can write",
        )
    built = built_directory()
    of_package = f"; beside those of the package for {built.name}" if built is not None else ""
    return good("compiled-kernel cache", f"{place}, {stored_bytes(place) / 1e6:.1f} MB{of_package}")


def _cuda() -> Finding:
    from numba import cuda  # noqa: PLC0415 - slow to import and only needed here

    from hilsim.world.render.cuda import device_name  # noqa: PLC0415 - likewise

    if cuda.is_available():
        return good("CUDA", f'{device_name()}: renders what the cores cannot, or all of it where [render] backend = "cuda"')
    return fair("CUDA", "no usable CUDA device; rendering runs on the CPU")


def _port(port: int) -> Finding:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return good(f"port {port}", "another program listens here: a receiver is ready")
    return good(f"port {port}", "free")


def _reverse_path_filter() -> Finding:
    path = Path("/proc/sys/net/ipv4/conf/all/rp_filter")
    value = path.read_text(encoding="utf-8").strip() if path.exists() else "0"
    if value == "0":
        return good("reverse path filter", "off: broadcast packets of a sensor in another subnet are received")
    return fair(
        "reverse path filter",
        f"on (rp_filter = {value}): a receiver on this host does not see broadcasts of a sensor in another subnet",
        "give the interface an address in the sensor's subnet, or sysctl net.ipv4.conf.all.rp_filter=0",
    )


def _neighbour_queue() -> Finding:
    """Packets that wait in the kernel for the receiver's hardware address are sent at once when it answers: the only burst that the daemon cannot prevent."""
    limits = Path("/proc/sys/net/ipv4/neigh").glob("*/unres_qlen_bytes")
    held = max((int(path.read_text(encoding="utf-8")) // _HELD_PACKET_SIZE for path in limits if path.parent.name != "lo"), default=0)
    fact = f"up to {max(held, 1)} packets for a receiver whose hardware address is not known yet are queued by the kernel"
    if held <= _FEW_HELD:
        return good("neighbour queue", fact)
    return fair(
        "neighbour queue",
        f"{fact}, and leave in one burst when a link comes up",
        "ip neighbour replace RECEIVER lladdr MAC dev INTERFACE nud permanent, or sysctl net.ipv4.neigh.INTERFACE.unres_qlen_bytes=2304",
    )


def usable_cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def processor_text() -> str:
    """Name of the processor and its vector extension, where Linux reports them: ``AMD EPYC, AVX-512``."""
    path = Path("/proc/cpuinfo")
    info = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    lines = dict(line.split(":", 1) for line in info.split("\n") if ":" in line)
    fields = {key.strip(): value.strip() for key, value in lines.items()}
    flags = fields.get("flags", "").split()
    vector = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "SSE only" if "sse2" in flags else ""
    return ", ".join(filter(None, (fields.get("model name", platform.machine()), vector)))
