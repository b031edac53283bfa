"""Convert datagrams on a queue to whole Ethernet frames with the headers of a real sensor, without the GIL."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.protocols.ethernet import HEADER_SIZE, Framing, write_headers
from hilsim.transmit.packet_queue import PacketQueue, release, waiting


class Links(NamedTuple):
    """Framing of L flows by flow number, as in ``Framing``; a header of 0 bytes means that the queue contains whole frames, -1 that no flow has the number.

    Attributes:
        header_size: ``int64[L]``, bytes of the headers.
        template: ``uint8[L, 42]``, template of the headers.
        counting_identification: ``bool[L]``, whether the IP identification increments.
        udp_checksum: ``bool[L]``, whether the UDP checksum is valid.
        framed: ``int64[L]``, number of frames made so far.
        unknown: ``int64[1]``, number of datagrams of flows that were not added, of which no frames are made.
    """

    header_size: npt.NDArray[np.int64]
    template: npt.NDArray[np.uint8]
    counting_identification: npt.NDArray[np.bool_]
    udp_checksum: npt.NDArray[np.bool_]
    framed: npt.NDArray[np.int64]
    unknown: npt.NDArray[np.int64]


@kernel
def frame_waiting(
    queue: PacketQueue,
    links: Links,
    sent_ns: npt.NDArray[np.int64],
    deadline_ns: npt.NDArray[np.int64],
    flow: npt.NDArray[np.int64],
    frames: npt.NDArray[np.uint8],
    size: npt.NDArray[np.int32],
) -> int:
    """Take up to n of the oldest datagrams from a queue as Ethernet frames; returns the number of frames.

    Args:
        queue: Packet queue, of which this function is the only consumer.
        links: Framing of every flow number on the queue; ``framed`` and ``unknown`` are written.
        sent_ns: ``int64[n]``, output: CLOCK_MONOTONIC times of sending.
        deadline_ns: ``int64[n]``, output: deadlines.
        flow: ``int64[n]``, output: flow numbers.
        frames: ``uint8[n, 42 + the queue's capacity]``, output: frames.
        size: ``int32[n]``, output: bytes of each frame.
    """
    count = min(waiting(queue), sent_ns.size)
    slots = queue.time_ns.size
    row = 0
    for place in range(count):
        slot = (queue.head[0] + place) % slots
        number = queue.flow[slot]
        header_size = links.header_size[number] if 0 <= number < links.header_size.size else -1
        if header_size < 0:
            links.unknown[0] += 1
            continue
        used = queue.size[slot]
        for at in range(used):
            frames[row, header_size + at] = queue.payload[slot, at]
        if header_size != 0:
            links.framed[number] += 1
            identification = links.framed[number] if links.counting_identification[number] else 0
            write_headers(links.template[number], identification, links.udp_checksum[number], frames[row], used)
        sent_ns[row] = queue.time_ns[slot]
        deadline_ns[row] = queue.stamp_ns[slot]
        flow[row] = number
        size[row] = header_size + used
        row += 1
    release(queue, count)
    return row


def allocate_links(framings: dict[int, Framing], former: Links | None) -> Links:
    """Make tables with a row for every number up to the highest, with the counts of ``former``."""
    count = max(framings, default=-1) + 1
    links = Links(
        header_size=np.full(count, -1, np.int64),
        template=np.zeros((count, HEADER_SIZE), np.uint8),
        counting_identification=np.zeros(count, np.bool_),
        udp_checksum=np.zeros(count, np.bool_),
        framed=np.zeros(count, np.int64),
        unknown=np.zeros(1, np.int64) if former is None else former.unknown,
    )
    for number, framing in framings.items():
        links.header_size[number] = framing.header_size
        links.template[number] = framing.template
        links.counting_identification[number] = framing.counting_identification
        links.udp_checksum[number] = framing.udp_checksum
    if former is not None:
        links.framed[: former.framed.size] = former.framed[:count]
    return links
