"""Image points of a Cepton capture of the older generation, as the vendor's first SDK decodes them; a process of its own, because the library is not ours to trust.

python bench/cepton_image_points.py CAPTURE OUT.npz    (arrays by source address; 32 bytes a point, see POINT_DTYPE)

The library comes with the wheel ``cepton-sdk2`` (1.18.2 in its 2.1.4), which loads it for captures of that generation. Structures: public header ``cepton_sdk.h``,
version 19. Information packets are given to it first, because it drops points of sensors that it does not know yet.
"""

import ctypes
import importlib.util
import os
import sys
from ipaddress import IPv4Address
from pathlib import Path

import numpy as np

from hilsim.capture.pcap import CaptureFile

API_VERSION = 19
DISABLE_NETWORK = 2
POINT_DTYPE = np.dtype(
    [
        ("stamp_us", "<i8"),
        ("image_x", "<f4"),
        ("distance", "<f4"),
        ("image_z", "<f4"),
        ("intensity", "<f4"),
        ("return_type", "u1"),
        ("flags", "u1"),
        ("segment", "u1"),
        ("reserved", "u1", (5,)),
    ]
)
ON_POINTS = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p)
ON_ERROR = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


class FrameOptions(ctypes.Structure):
    """``CeptonSDKFrameOptions``."""

    _fields_ = (("signature", ctypes.c_size_t), ("mode", ctypes.c_uint32), ("length", ctypes.c_float))


class Options(ctypes.Structure):
    """``CeptonSDKOptions``."""

    _fields_ = (("signature", ctypes.c_size_t), ("control_flags", ctypes.c_uint32), ("frame", FrameOptions), ("port", ctypes.c_uint16))


def library():
    """The first SDK's library, beside the second's Python files (which are not imported)."""
    folder = Path(importlib.util.find_spec("cepton_sdk2").origin).parent
    found = ctypes.CDLL(str(folder / "lib" / "linux-x64" / "libcepton_sdk.so"))
    found.cepton_sdk_create_options.restype = Options
    found.cepton_sdk_mock_network_receive.argtypes = [ctypes.c_uint64, ctypes.c_int64, ctypes.c_char_p, ctypes.c_size_t]
    return found


def decode(path):
    """Points by source address, in the order of their measurement."""
    sdk, found = library(), {}

    def keep(handle, points, data, _user):
        address = str(IPv4Address(handle & 0xFFFFFFFF))
        found.setdefault(address, []).append(np.frombuffer(ctypes.string_at(data, points * POINT_DTYPE.itemsize), POINT_DTYPE))

    on_points, on_error = ON_POINTS(keep), ON_ERROR(lambda *_: None)
    options = sdk.cepton_sdk_create_options()
    options.control_flags = DISABLE_NETWORK
    if sdk.cepton_sdk_initialize(API_VERSION, ctypes.byref(options), on_error, None) != 0 or sdk.cepton_sdk_listen_image_frames(on_points, None) != 0:
        raise SystemExit("the vendor's library cannot be initialised")
    datagrams = list(CaptureFile(path).datagrams())
    for datagram in sorted(datagrams, key=lambda datagram: not datagram.payload.startswith(b"INFO")):
        stamp_us = datagram.host_stamp_ns // 1000
        sdk.cepton_sdk_mock_network_receive(int(IPv4Address(datagram.source)), stamp_us, datagram.payload, len(datagram.payload))
    return {address: np.concatenate(pieces) for address, pieces in found.items()}


if __name__ == "__main__":
    np.savez(sys.argv[2], **decode(Path(sys.argv[1])))
    os._exit(0)  # the library aborts when a process ends in order
