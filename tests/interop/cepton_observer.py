"""Writes down everything one of the vendor's SDKs says; a process of its own, because an SDK is one per process and not ours to trust.

python cepton_observer.py sdk2|sdk3 live PORT OUT.npz | file CAPTURE OUT.npz

Live it prints "listening", and ends when standard input does: it then sends itself a point from an address that no test uses and waits until the SDK has reported it,
so that everything sent before has been reported too. Structures: public headers ``cepton_sdk2.h`` and ``cepton_sdk3.h``.
"""

import ctypes
import importlib
import os
import re
import socket
import struct
import sys
import time
from ipaddress import IPv4Address

import numpy as np

SENTINEL = "127.255.255.254"
CANNOT_LISTEN = 7
GIVE_UP_S, QUIET_S = 20.0, 0.2
LOAD_PAUSED, NATURAL_FRAMES, AS_FAST_AS_POSSIBLE = 4, 0, 0
POINT_DTYPES = {
    "sdk2": np.dtype([("x", "<i2"), ("y", "<u2"), ("z", "<i2"), ("reflectivity", "u1"), ("step_us", "u1"), ("channel", "u1"), ("flags", "u1")]),
    "sdk3": np.dtype([("x", "<i4"), ("y", "<i4"), ("z", "<i4"), ("reflectivity", "<u2"), ("step_us", "<u2"), ("flags", "<u2"), ("channel", "<u2")]),
}
INFO_DTYPE = np.dtype(
    [
        ("info_size", "<u4"),
        ("serial", "<u4"),
        ("source", "<u8"),
        ("model_name", "S28"),
        ("model", "<u2"),
        ("reserved_0", "<u2"),
        ("part_number", "<u4"),
        ("firmware", "u1", (4,)),
        ("power_up_us", "<i8"),
        ("sync_offset_us", "<i8"),
        ("sync_drift", "<i8"),
        ("returns", "u1"),
        ("channels", "u1"),
        ("reserved_1", "u1", (2,)),
        ("status_flags", "<u4"),
    ]
)
BATCH_DTYPE = np.dtype([("source", "<u4"), ("start_us", "<i8"), ("points", "<i8")])
EX_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_int64, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p)


class Observer:
    """Callbacks of one SDK, and what they were called with."""

    def __init__(self, sdk):
        self.c = importlib.import_module(f"cepton_{sdk}.c")
        self.point_size = POINT_DTYPES[sdk].itemsize
        self.points, self.frames, self.infos = [], [], []
        self.last_s = time.monotonic()
        self.sentinel_seen = False
        lib, self.kept = self.c.lib, []
        on_error = self.c.SensorErrorCallback(lambda *_: None)
        on_info = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)(self.keep_info)
        assert lib.CeptonInitialize(self.c.CEPTON_API_VERSION, on_error) >= 0
        if sdk == "sdk2":
            on_points = self.c.PointsCallback(lambda *given: self.keep(self.points, given))
            on_frame = self.c.PointsCallback(lambda *given: self.keep(self.frames, given))
            lib.CeptonListenSensorInfo.argtypes = [type(on_info), ctypes.c_void_p]
            listening = (lib.CeptonListenPoints(on_points, None), lib.CeptonListenFrames(NATURAL_FRAMES, on_frame, None))
        else:
            on_points, on_frame = (
                EX_CALLBACK(lambda h, s, n, data, _, into=into: self.keep(into, (h, s, n, self.point_size, data)))
                for into in (self.points, self.frames)
            )
            listening = (lib.CeptonListenPointsEx(on_points, None), lib.CeptonListenFramesEx(NATURAL_FRAMES, on_frame, None))
        assert min(*listening, lib.CeptonListenSensorInfo(on_info, None)) >= 0
        self.kept += [on_error, on_points, on_frame, on_info]  # the SDK holds no reference

    def keep(self, into, given):
        handle, start_us, points, stride, data = given[:5]
        self.last_s = time.monotonic()
        source = handle & 0xFFFFFFFF
        if source == int(IPv4Address(SENTINEL)):
            self.sentinel_seen = True
        elif stride != self.point_size:
            os.write(2, f"stride must be {self.point_size}, got {stride}\n".encode())
            os._exit(1)
        else:
            into.append((source, start_us, points, ctypes.string_at(data, points * stride)))

    def keep_info(self, _handle, data, _user):
        self.last_s = time.monotonic()
        self.infos.append(ctypes.string_at(data, INFO_DTYPE.itemsize))

    def write(self, path, point_dtype):
        arrays = {"infos": np.frombuffer(b"".join(self.infos), INFO_DTYPE)}
        for name, batches in (("points", self.points), ("frames", self.frames)):
            arrays[name] = np.frombuffer(b"".join(batch[3] for batch in batches), point_dtype)
            arrays[f"{name}_batches"] = np.array([batch[:3] for batch in batches], BATCH_DTYPE)
        with open(path, "wb") as file:  # noqa: PTH123 - no need of paths here
            np.savez(file, **arrays)


def observe_live(observer, port):
    """Until standard input ends and everything sent before has come out."""
    if observer.c.lib.CeptonStartNetworkingOnPort(ctypes.c_uint16(port)) < 0:
        os._exit(CANNOT_LISTEN)
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    sys.stdin.read()
    packet = struct.pack("<4sBBHqBBHI", b"STDV", 2, 24, 0, 0, 0, 10, 1, 0) + bytes(10)
    deadline_s = time.monotonic() + GIVE_UP_S
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        ours.bind((SENTINEL, 0))
        while not observer.sentinel_seen and time.monotonic() < deadline_s:
            ours.sendto(packet, ("127.0.0.1", port))
            time.sleep(0.05)
    while time.monotonic() - observer.last_s < QUIET_S:
        time.sleep(0.02)


def observe_file(observer, path):
    lib, handle = observer.c.lib, ctypes.c_void_p()
    loaded = lib.CeptonReplayLoadPcap(path.encode(), LOAD_PAUSED, ctypes.byref(handle))
    if loaded < 0:
        # SDK 3's text has no end of its own: what follows it in the library comes along.
        raise SystemExit(re.match("[A-Z_]*", observer.c.GetErrorCodeName(loaded).decode())[0])
    deadline_s = time.monotonic() + GIVE_UP_S
    while lib.CeptonReplaySetSpeed(handle, AS_FAST_AS_POSSIBLE) < 0:  # refused now and then while the SDK's own thread is still loading
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    assert lib.CeptonReplayPlayToFinish(handle) >= 0
    while time.monotonic() - observer.last_s < QUIET_S:
        time.sleep(0.02)


def main():
    sdk, kind, argument, out = sys.argv[1:]
    observer = Observer(sdk)
    if kind == "live":
        observe_live(observer, int(argument))
    else:
        observe_file(observer, argument)
    observer.write(out, POINT_DTYPES[sdk])
    sys.stdout.flush()
    os._exit(0)  # the libraries abort when a process ends in order


if __name__ == "__main__":
    main()
