"""Hesai packets to points, and to scans, which are turns of its head."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.schedule import first_sequence_of
from hilsim.families.hesai.points import decode_hesai
from hilsim.families.hesai.protocol.points import ReturnMode, read_packet, utc_ns
from hilsim.families.hesai.recognition import HesaiKind, recognise
from hilsim.read.analysis.decode import batch_of
from hilsim.read.scans.part import ScansPart, payload_of
from hilsim.read.scans.points import DECODED_DTYPE
from hilsim.read.scans.stream import SensorStream
from hilsim.read.scans.turns import HeadTurns, TurnStarts

_NAMES = {
    ReturnMode.FIRST: ("first",),
    ReturnMode.STRONGEST: ("strongest",),
    ReturnMode.LAST: ("last",),
    ReturnMode.LAST_STRONGEST: ("last", "second"),
    ReturnMode.LAST_FIRST: ("last", "first"),
    ReturnMode.FIRST_STRONGEST: ("first", "second"),
}


class HesaiDecoder:
    """Decoder of one sensor; see ``hilsim.read.scans.stream.StreamDecoder``."""

    dtype = DECODED_DTYPE
    is_sure = True

    def takes(self, _payload: bytes) -> bool:
        """Each packet is decoded."""
        return True

    def points(self, payloads: Sequence[bytes]) -> npt.NDArray[Any]:
        """Points of consecutive packets."""
        return decode_hesai(batch_of(payloads))

    def new_turns(self) -> HeadTurns:
        """Turns of the head."""
        return HeadTurns()

    def stamps(self, payloads: Sequence[bytes]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Stamps and first azimuths."""
        packets = [read_packet(payload) for payload in payloads]
        return (
            utc_ns(np.array([packet["tail"] for packet in packets])),
            np.array([packet["blocks"]["azimuth"][0] for packet in packets], np.int64),
        )


def _serials(batch: DatagramArrays, rows: npt.NDArray[np.intp], _metadata: None) -> npt.NDArray[np.int64]:
    return np.array([0 if recognise(payload_of(batch, row)) is HesaiKind.POINTS else -1 for row in rows.tolist()], np.int64)


def _rounds(lidar: LidarEmulator, first_packet: int, payloads: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Azimuths of blocks, without the second ones of pairs, and their device times."""
    azimuths, times_ns = [], []
    for row, payload in enumerate(payloads):
        plan = lidar.at_packet(first_packet + row).plan
        blocks = read_packet(payload[: plan.data_size].tobytes())["blocks"]["azimuth"]
        azimuths.append(blocks[:: blocks.size // plan.sequences_per_packet].astype(np.int64))
        first = int(first_sequence_of(plan, first_packet + row))
        times_ns.append(np.arange(first, first + plan.sequences_per_packet) * plan.sequence_ns)
    return np.concatenate(azimuths), np.concatenate(times_ns)


PART = ScansPart(
    serials=_serials,
    serial=lambda _payload, _metadata: "",
    begin=lambda sensor, _first, publish, pose, _metadata: SensorStream(sensor, HesaiDecoder(), publish, pose),
    decoder=lambda _first, _where, _model, _metadata: HesaiDecoder(),
    starts=lambda lidar: TurnStarts(lidar, _rounds),
    returns=lambda payload: _NAMES[ReturnMode(int(read_packet(payload)["tail"]["mode"]))],
)
