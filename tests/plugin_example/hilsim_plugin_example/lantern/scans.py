"""A Lantern's packets to scans, which are turns of its head."""

from typing import Any

import numpy as np

from hilsim.plugins import DECODED_DTYPE, HeadTurns, ScansPart, SensorStream, TurnStarts, payload_of
from hilsim_plugin_example.lantern.points import decode
from hilsim_plugin_example.lantern.protocol import COLUMN_NS, COLUMNS, stacked
from hilsim_plugin_example.lantern.recognition import recognise


class LanternDecoder:
    """Decoder of one sensor."""

    dtype, is_sure, new_turns = DECODED_DTYPE, True, HeadTurns

    def takes(self, _payload: bytes) -> bool:
        """Each packet is decoded."""
        return True

    def points(self, payloads: Any) -> Any:
        """Points of consecutive packets."""
        return decode(payloads)

    def stamps(self, payloads: Any) -> Any:
        """Stamps, and first azimuths."""
        packets = stacked(payloads)
        return packets["number"].astype(np.int64) * COLUMN_NS, packets["columns"]["azimuth_cdeg"][:, 0].astype(np.int64)


def _serials(batch: Any, rows: Any, _metadata: None) -> Any:
    """Its packets have no serial number: 0."""
    return np.array([0 if recognise(payload_of(batch, row)) else -1 for row in rows.tolist()], np.int64)


def _columns(_lidar: Any, first_packet: int, payloads: Any) -> Any:
    """Azimuths of rendered columns, and their device times."""
    azimuth = stacked(payloads)["columns"]["azimuth_cdeg"].astype(np.int64).reshape(-1)
    return azimuth, (first_packet * COLUMNS + np.arange(azimuth.size)) * COLUMN_NS


PART = ScansPart(
    serials=_serials,
    serial=lambda _payload, _metadata: "",
    begin=lambda sensor, _first, publish, pose, _metadata: SensorStream(sensor, LanternDecoder(), publish, pose),
    decoder=lambda _first, _where, _model, _metadata: LanternDecoder(),
    starts=lambda lidar: TurnStarts(lidar, _columns),
    returns=lambda _payload: ("strongest",),
)
