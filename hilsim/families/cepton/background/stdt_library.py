"""Decoding of Cepton's older packets (STDT) with the vendor's library, in a separate process, because the library is not trusted: STDT packets in, STDV packets out.

python -m hilsim.families.cepton.background.stdt_library CAPTURE OUT.pcap SENSOR    (OUT.pcap: the sensor's points as STDV packets; OUT.notes: notes about the capture)

The packets' layout is not public and not known here. The library is part of the wheel ``cepton-sdk2`` (1.18.2 in its 2.1.4), whose own library loads it for captures of that
generation. Structures: public header ``cepton_sdk.h``, version 19. Information packets are passed to it first, because it drops points of sensors unknown to it.
"""

import ctypes
import importlib.util
import os
import sys
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.capture.pcap import CaptureFile, PcapWriter
from hilsim.errors import CaptureError, HilsimError
from hilsim.families.cepton.protocol.stdv import COUNT_MAX, POINT_DTYPE, POINT_UNIT_M, POINTS_MAX, STDV_PORT, PointFlag, encode_stdv_packet
from hilsim.families.cepton.recognition import CEPTON_STYLE
from hilsim.protocols.ethernet import BROADCAST_MAC, HEADER_SIZE, header_template, write_headers
from hilsim.protocols.flow_key import FlowKey
from hilsim.sensor.response import linear_reflectivity

API_VERSION = 19
DISABLE_NETWORK = 2
INFO_SIGNATURE, STDT_SIGNATURE = b"INFO", b"STDT"
IS_VALID, IS_SATURATED = 1, 2
"""Flags of an image point."""
FAULT = 3
"""Exit status after an error that was reported in one line on standard error."""
PROGRESS = "hilsim decoded bytes:"
"""Prefix of lines on standard output with the progress in the capture."""
_DATAGRAMS_A_STEP = 500
IMAGE_POINT_DTYPE = np.dtype(
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
_WHEEL = "cepton_sdk2"
_LIBRARY = Path("lib") / "linux-x64" / "libcepton_sdk.so"
_LONGEST_STEP_US = 255
_Y_MAX = 65_535
_SENSOR_MAC = "18:12:12:00:00:00"
_ON_POINTS = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p)
_ON_ERROR = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


class _FrameOptions(ctypes.Structure):
    """Structure ``CeptonSDKFrameOptions``."""

    _fields_ = (("signature", ctypes.c_size_t), ("mode", ctypes.c_uint32), ("length", ctypes.c_float))


class _Options(ctypes.Structure):
    """Structure ``CeptonSDKOptions``."""

    _fields_ = (("signature", ctypes.c_size_t), ("control_flags", ctypes.c_uint32), ("frame", _FrameOptions), ("port", ctypes.c_uint16))


def library_path() -> Path | None:
    """Path of the first SDK's library, beside the second's Python files (which are not imported); None if it is not installed."""
    wheel = importlib.util.find_spec(_WHEEL)
    if wheel is None or wheel.origin is None:
        return None
    path = Path(wheel.origin).parent / _LIBRARY
    return path if path.is_file() else None


def _opened(on_points: Any, on_error: Any) -> Any:
    """Load and initialise the library."""
    path = library_path()
    if path is None:
        raise CaptureError(f"{_WHEEL}/{_LIBRARY}: must be installed")
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise CaptureError(f"{path}: the vendor's library must load, got: {error}") from error
    library.cepton_sdk_create_options.restype = _Options
    library.cepton_sdk_mock_network_receive.argtypes = [ctypes.c_uint64, ctypes.c_int64, ctypes.c_char_p, ctypes.c_size_t]
    options = library.cepton_sdk_create_options()
    options.control_flags = DISABLE_NETWORK
    code = library.cepton_sdk_initialize(API_VERSION, ctypes.byref(options), on_error, None)
    code = code or library.cepton_sdk_listen_image_frames(on_points, None)
    if code != 0:
        raise CaptureError(f"{path}: the vendor's library must start, got error {code}")
    return library


def decode_image_points(
    capture: CaptureFile, take: Callable[[str, npt.NDArray[Any]], object], sensor: str = "", progress: Callable[[int], object] = lambda _: None
) -> None:
    """Decode a capture's STDT packets; the process must then end by ``os._exit``, because the library aborts a normal exit.

    Args:
        capture: Capture, read twice.
        take: Called with the sensor's address and records of ``IMAGE_POINT_DTYPE``, in the order of measurement, packet by packet. Points' times are those of
            their packet's capture and later.
        sensor: Address of the only sensor to decode; empty for all.
        progress: Called from time to time with the number of bytes of the capture decoded so far.

    Raises:
        CaptureError: the library cannot be used, or the capture cannot be read.
    """
    faults: list[HilsimError] = []  # an exception raised in a callback is lost

    def pass_on(handle: int, points: int, data: int, _user: int) -> None:
        try:
            take(str(IPv4Address(handle & 0xFFFFFFFF)), np.frombuffer(ctypes.string_at(data, points * IMAGE_POINT_DTYPE.itemsize), IMAGE_POINT_DTYPE))
        except HilsimError as error:
            faults.append(error)

    on_points, on_error = _ON_POINTS(pass_on), _ON_ERROR(lambda *_: None)
    library = _opened(on_points, on_error)
    host, _, port = sensor.partition(":")
    for signature in (INFO_SIGNATURE, STDT_SIGNATURE):
        for number, datagram in enumerate(capture.datagrams()):
            if signature == STDT_SIGNATURE and number % _DATAGRAMS_A_STEP == 0:
                progress(capture.read_bytes)
            if datagram.payload.startswith(signature) and host in {"", datagram.source}:
                if signature == STDT_SIGNATURE and port not in {"", str(datagram.destination_port)}:
                    continue
                handle = int(IPv4Address(datagram.source))
                library.cepton_sdk_mock_network_receive(handle, datagram.host_stamp_ns // 1000, datagram.payload, len(datagram.payload))
                if faults:
                    raise faults[0]


def stdv_points(points: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert image points to STDV points (``POINT_DTYPE``) without their steps: to 5 mm in x, y and z; a no-return for a missing return or one beyond 16 bits.

    The library's image is inverted in both directions: x = -image_x * y, z = -image_z * y (public header ``cepton_sdk_util.hpp``).
    """
    image_x, image_z = points["image_x"].astype(np.float64), points["image_z"].astype(np.float64)
    forward = points["distance"] / np.sqrt(image_x**2 + image_z**2 + 1.0) / POINT_UNIT_M
    x, y, z = (np.rint(axis) for axis in (-image_x * forward, forward, -image_z * forward))
    is_representable = (points["flags"] & IS_VALID != 0) & (abs(x) <= COUNT_MAX) & (abs(z) <= COUNT_MAX) & (y > 0) & (y <= _Y_MAX)
    found = np.zeros(points.size, POINT_DTYPE)
    for name, axis in (("x", x), ("y", y), ("z", z)):
        found[name] = np.where(is_representable, axis, 0.0).astype(POINT_DTYPE[name])
    found["reflectivity"] = [linear_reflectivity(ratio) for ratio in np.where(is_representable, points["intensity"], 0.0).tolist()]
    found["channel"] = points["segment"]
    is_saturated = points["flags"] & IS_SATURATED != 0
    found["flags"] = np.where(is_representable, np.where(is_saturated, PointFlag.SATURATED, 0), PointFlag.NO_RETURN)
    return found


def stdv_packets(points: npt.NDArray[Any]) -> list[tuple[int, bytes]]:
    """Convert image points to STDV packets, each with the time (us) of its last point, which a capture would have as its stamp."""
    stamps, converted = points["stamp_us"], stdv_points(points)
    packets, first = [], 0
    while first < points.size:
        steps = np.diff(stamps[first : first + POINTS_MAX])
        breaks = np.flatnonzero((steps < 0) | (steps > _LONGEST_STEP_US))
        count = int(breaks[0]) + 1 if breaks.size else steps.size + 1
        packet = converted[first : first + count]
        packet["step_us"][1:] = steps[: count - 1]
        packets.append((int(stamps[first + count - 1]), encode_stdv_packet(packet, stamp_us=int(stamps[first]))))
        first += count
    return packets


def convert(path: Path, out: Path, sensor: str) -> None:
    """Write a sensor's points as a capture of STDV packets.

    Raises:
        CaptureError: the library cannot be used; the capture cannot be read, or lacks data required by the library.
    """
    host, _, port = sensor.partition(":")
    flow = FlowKey(host, STDV_PORT, "255.255.255.255", int(port or STDV_PORT))
    template = header_template(CEPTON_STYLE, flow, source_mac=_SENSOR_MAC, destination_mac=BROADCAST_MAC)
    capture, points_seen = CaptureFile(path), 0
    with PcapWriter(out) as writer:

        def keep(_address: str, points: npt.NDArray[Any]) -> None:
            nonlocal points_seen
            points_seen += points.size
            for stamp_us, payload in stdv_packets(points):
                frame = np.frombuffer(bytes(HEADER_SIZE) + payload, np.uint8).copy()
                write_headers(template, 0, True, frame, len(payload))  # noqa: FBT003 - a kernel's positional scalar
                writer.write(stamp_us * 1000, frame.tobytes())

        decode_image_points(capture, keep, sensor, _tell)
    if not points_seen:
        raise CaptureError(
            f"{path}: must hold an information packet (INFO, once a second) of {sensor}, without which the vendor's library decodes no point, got no points"
        )
    out.with_suffix(".notes").write_text("".join(f"{line}\n" for line in capture.notes.lines()), encoding="utf-8")


def _tell(done_bytes: int) -> None:
    sys.stdout.write(f"{PROGRESS} {done_bytes}\n")
    sys.stdout.flush()


def main() -> None:
    """Convert, and exit at once: the library aborts a normal exit."""
    path, out, sensor = sys.argv[1:]
    try:
        convert(Path(path), Path(out), sensor)
    except HilsimError as error:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
        os._exit(FAULT)
    os._exit(0)


if __name__ == "__main__":
    main()
