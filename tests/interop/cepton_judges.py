"""The vendor's SDKs as judges of Cepton-style packets: what they make of payloads sent live, or of a capture.

``judge_live("sdk3", payloads, source="127.0.32.87")`` and ``judge_capture("sdk2", path)`` return a ``Judged``. Each runs the SDK in a process of its own
(``cepton_observer.py``) on a port of its own, and skips the test where the SDK's library, a closed binary, cannot be loaded.

What to know of the judges: SDK 2 reads past the end of a packet whose count is too large, so never give it one; it answers "understood" to anything. SDK 3 drops what is
wrong. Neither reads nanosecond captures, which is why ``judge_capture`` gives them a copy with microseconds.
"""

import functools
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

import numpy as np
import pytest

from tests.support import udp_socket_line

OBSERVER = Path(__file__).parent / "cepton_observer.py"
SDKS = ("sdk2", "sdk3")
CANNOT_LISTEN = 7
"""Exit code of the observer where the SDK could not bind its port."""
PORTS_TRIED = 5
TIMEOUT_S = 60
QUEUE_LIMIT_BYTES = 60_000
"""Of SDK 2's receive buffer of 208 KiB, of which the kernel counts more for each packet than its bytes."""
LOOK_EVERY = 16
MICROSECOND_MAGIC, NANOSECOND_MAGIC = 0xA1B2C3D4, 0xA1B23C4D


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Points that came together: of a packet, or of a frame.

    Attributes:
        source: Address of the sensor.
        start_us: The stamp that the SDK gives with them.
        points: Records, fields ``x y z reflectivity step_us channel flags`` raw as the SDK gives them (SDK 2: as sent, 5 mm; SDK 3: 1/65536 m, percent).
    """

    source: str
    start_us: int
    points: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Results of an SDK.

    Attributes:
        packets: One a points callback, in order of arrival.
        frames: One a frame callback ("natural" frames: by the frame parity).
        infos: Records of ``INFO_DTYPE`` of ``cepton_observer``, one an information callback; ``source`` is a number.
        dropped: Datagrams that the kernel dropped, because the SDK did not fetch them in time (live only).
    """

    packets: list[Batch]
    frames: list[Batch]
    infos: np.ndarray
    dropped: int = 0

    def points(self, source=None):
        """All points of one sensor (or of all), in order of arrival."""
        chosen = [batch.points for batch in self.packets if source in {None, batch.source}]
        return np.concatenate(chosen) if chosen else np.zeros(0)


@functools.cache
def _fault_of(sdk):
    probe = subprocess.run([sys.executable, "-c", f"import cepton_{sdk}.c"], check=False, capture_output=True, text=True)
    return None if probe.returncode == 0 else (probe.stderr.strip().splitlines() or ["it ends the process"])[-1]


def require_sdk(sdk):
    """Skip the test where the SDK's library cannot be loaded."""
    fault = _fault_of(sdk)
    if fault is not None:
        pytest.skip(f"the vendor's {sdk} library does not load here: {fault}")


def free_port():
    """A free UDP port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        ours.bind(("0.0.0.0", 0))  # noqa: S104 - the SDKs bind all addresses
        return ours.getsockname()[1]


def queued_bytes(port):
    """What waits in the socket bound to a port; a sender that heeds it loses nothing, however slow the machine."""
    return int(udp_socket_line(port)[4].partition(":")[2], 16)


def dropped_datagrams(port):
    """How many datagrams the kernel dropped at the socket bound to a port."""
    return int(udp_socket_line(port)[-1])


@dataclass(kw_only=True)
class Listening:
    """An SDK that listens; ``judged`` once the block has ended."""

    port: int
    judged: Judged | None = None


@contextmanager
def listening(sdk):
    """An SDK listening on ``.port`` of every address while the block runs; afterwards ``.judged`` says what it heard. Send from addresses of 127.0.0.0/8."""
    require_sdk(sdk)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "observed.npz"
        process, port = _start_listening(sdk, out)
        heard = Listening(port=port)
        try:
            deadline_s = time.monotonic() + TIMEOUT_S
            while udp_socket_line(heard.port) is None:
                assert time.monotonic() < deadline_s
                time.sleep(0.01)
            yield heard
            dropped = dropped_datagrams(heard.port)
            _, fault = process.communicate(timeout=TIMEOUT_S)
            assert process.returncode == 0, fault
            heard.judged = _read(out, dropped)
        finally:
            _end(process)


def judge_live(sdk, payloads, *, source="127.0.32.87", period_us=None):
    """What an SDK makes of UDP payloads sent to it over loopback.

    Args:
        sdk: ``"sdk2"`` or ``"sdk3"``.
        payloads: Payloads in order, all from ``source``; or a mapping of source addresses to payloads, sent in turns.
        source: Address that they are sent from: the SDKs tell sensors apart by it.
        period_us: Send one each so many microseconds, and lose what the SDK does not fetch in time (see ``Judged.dropped``); None: as fast as it fetches them, without loss.
    """
    turns = _turns(payloads if isinstance(payloads, Mapping) else {source: payloads})
    with listening(sdk) as heard:
        sockets = {}
        try:
            for address in {address for address, _ in turns}:
                sockets[address] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                sockets[address].bind((address, 0))
            begin_ns = time.monotonic_ns()
            for number, (address, payload) in enumerate(turns):
                if period_us is None:
                    if number % LOOK_EVERY == 0:
                        _await_room(heard.port)
                else:
                    _await_ns(begin_ns + 1000 * period_us * number)
                sockets[address].sendto(payload, ("127.0.0.1", heard.port))
        finally:
            for each in sockets.values():
                each.close()
    return heard.judged


def judge_capture(sdk, path):
    """What an SDK makes of a classic PCAP file (Ethernet; microseconds or nanoseconds), as fast as it plays.

    A file that the SDK refuses fails the test with the SDK's error name.
    """
    require_sdk(sdk)
    with tempfile.TemporaryDirectory() as folder:
        copy, out = Path(folder) / "microseconds.pcap", Path(folder) / "observed.npz"
        copy.write_bytes(in_microseconds(Path(path).read_bytes()))
        process = _start(sdk, "file", copy, out)
        try:
            _, fault = process.communicate(timeout=TIMEOUT_S)
            assert process.returncode == 0, fault
            return _read(out, 0)
        finally:
            _end(process)


def in_microseconds(capture):
    """The bytes of a classic little-endian PCAP file with microseconds instead of nanoseconds (cut, not rounded); one that has them already as it is."""
    (magic,) = struct.unpack_from("<I", capture)
    if magic == MICROSECOND_MAGIC:
        return capture
    assert magic == NANOSECOND_MAGIC, f"a little-endian classic capture must begin with {NANOSECOND_MAGIC:08x}, got {magic:08x}"
    changed, at = bytearray(capture), 24
    struct.pack_into("<I", changed, 0, MICROSECOND_MAGIC)
    while at < len(changed):
        fraction_ns, size = struct.unpack_from("<II", changed, at + 4)
        struct.pack_into("<I", changed, at + 4, fraction_ns // 1000)
        at += 16 + size
    return bytes(changed)


def _start(*arguments):
    command = [sys.executable, str(OBSERVER), *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _start_listening(sdk, out):
    """The process and its port. A port that was free can be another process's by the time the SDK binds it: then another is tried."""
    for _ in range(PORTS_TRIED):
        port = free_port()
        process = _start(sdk, "live", port, out)
        said = process.stdout.readline()
        while said not in {"listening\n", ""}:
            said = process.stdout.readline()
        if said:
            return process, port
        code, fault = process.wait(), process.stderr.read()
        _end(process)
        assert code == CANNOT_LISTEN, fault
    pytest.fail(f"{sdk} could listen on none of {PORTS_TRIED} free ports")


def _end(process):
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


def _read(path, dropped):
    with np.load(path) as arrays:
        packets, frames = (_batches(arrays[name], arrays[f"{name}_batches"]) for name in ("points", "frames"))
        return Judged(packets=packets, frames=frames, infos=arrays["infos"], dropped=dropped)


def _batches(points, batches):
    pieces = np.split(points, np.cumsum(batches["points"])[:-1]) if batches.size else []
    return [
        Batch(source=str(IPv4Address(int(b["source"]))), start_us=int(b["start_us"]), points=piece) for b, piece in zip(batches, pieces, strict=True)
    ]


def _turns(payloads: Mapping[str, Iterable[bytes]]):
    rows = {address: list(each) for address, each in payloads.items()}
    longest = max(len(row) for row in rows.values())
    return [(address, row[number]) for number in range(longest) for address, row in rows.items() if number < len(row)]


def _await_room(port):
    deadline_s = time.monotonic() + TIMEOUT_S
    while queued_bytes(port) > QUEUE_LIMIT_BYTES:
        assert time.monotonic() < deadline_s
        time.sleep(0.001)


def _await_ns(due_ns):
    while (rest_ns := due_ns - time.monotonic_ns()) > 0:
        time.sleep(rest_ns * 1e-9)
