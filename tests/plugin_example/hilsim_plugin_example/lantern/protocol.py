"""Packets of a Lantern.

A packet is ``LNTN``, the number of its first column (uint32), then 50 columns of an azimuth (uint16, hundredths of a degree) and eight times a distance (uint16, cm)
and a reflectivity (uint8); all little-endian.
"""

from typing import Any

import numpy as np

from hilsim.plugins import kernel

MARK, PORT = b"LNTN", 4500
BEAMS, COLUMNS = 8, 50
COLUMN_NS, RATE_HZ = 100_000, 10
BEAM = np.dtype([("distance_cm", "<u2"), ("reflectivity", "u1")])
PACKET = np.dtype([("mark", "S4"), ("number", "<u4"), ("columns", [("azimuth_cdeg", "<u2"), ("beams", BEAM, BEAMS)], COLUMNS)])


@kernel
def _put(value: int, size: int, payload: Any, at: int) -> None:
    """Write a number, the lowest byte first."""
    for byte in range(size):
        payload[at + byte] = (value >> (8 * byte)) & 0xFF


@kernel
def encode(own: Any, plan: Any, packet: int, returns: Any, counts: Any, offset: int, payload: Any) -> None:  # noqa: ARG001 - as of any family
    """Write data packet ``packet`` to ``payload[offset:]``."""
    for place in range(4):
        payload[offset + place] = own.mark[place]
    _put(packet * COLUMNS, 4, payload, offset + 4)
    at = offset + 8
    for column in range(COLUMNS):
        _put(returns.azimuth_cdeg[column], 2, payload, at)
        at += 2
        for beam in range(BEAMS):
            _put(returns.distance[0, column, beam], 2, payload, at)
            payload[at + 2] = returns.reflectivity[0, column, beam]
            at += 3


def stacked(payloads: Any) -> Any:
    """Packets ``PACKET[n]`` of payloads, or of ``uint8[n, size]``."""
    return np.frombuffer(b"".join(bytes(payload) for payload in payloads), PACKET)
