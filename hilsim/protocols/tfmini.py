"""The Benewake TFmini's serial frame: 9 bytes, 115200 8N1, sent unasked.

======  ====  ==================================================================================================================
offset  size  field
======  ====  ==================================================================================================================
0       2     header, bytes 59 59
2       2     distance, cm, little-endian
4       2     strength, little-endian
6       2     ``tfmini``: distance mode (2 short, 7 long) and a spare byte 0; ``tfmini_plus``, ``tfmini_s``: (chip temperature + 256) * 8
8       1     low 8 bits of the sum of bytes 0 to 7
======  ====  ==================================================================================================================

Sources: SJ-PM-TFmini-T-01 A03 pages 12 and 16, SJ-PM-TFmini-S A00 page 12, SJ-PM-TFmini Plus-T-01 A04 pages 12 and 13; ArduPilot
``AP_RangeFinder_Benewake.cpp``; PX4 ``tfmini_parser.cpp``.
"""

import numpy as np
import numpy.typing as npt

TFMINI_FRAME_SIZE = 9
TFMINI_HEADER = 0x5959
TFMINI_FRAME_DTYPE = np.dtype([("header", "<u2"), ("distance", "<u2"), ("strength", "<u2"), ("mode_or_temperature", "<u2"), ("checksum", "u1")])
if TFMINI_FRAME_DTYPE.itemsize != TFMINI_FRAME_SIZE:
    raise AssertionError(f"a TFmini frame must be {TFMINI_FRAME_SIZE} bytes, got {TFMINI_FRAME_DTYPE.itemsize}")


def encode_tfmini(
    distance_cm: npt.NDArray[np.int64], strength: npt.NDArray[np.int64], mode_or_temperature: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint8]:
    """``uint8[n, 9]``: frames of ``int64[n]`` fields, each 0 to 65535."""
    frames = np.zeros(distance_cm.size, TFMINI_FRAME_DTYPE)
    frames["header"] = TFMINI_HEADER
    frames["distance"] = distance_cm
    frames["strength"] = strength
    frames["mode_or_temperature"] = mode_or_temperature
    payload = frames.view(np.uint8).reshape(-1, TFMINI_FRAME_SIZE)
    payload[:, 8] = payload[:, :8].sum(axis=1, dtype=np.uint64) & 0xFF
    return payload
