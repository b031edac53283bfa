"""From datagrams on a queue to whole Ethernet frames, with the headers that a real sensor writes; without the GIL."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.protocols.ethernet import HEADER_SIZE, Framing, write_headers
from hilsim.transmit.packet_queue import PacketQueue, release, waiting


class Links(NamedTuple):
    """How L flows' datagrams become frames, by flow number; as ``Framing``, where a header of 0 bytes means that the queue holds whole frames.

    Attributes:
        header_size: ``int64[L]``.
        template: ``uint8[L, 42]``.
        counting_identification: ``bool[L]``.
        udp_checksum: ``bool[L]``.
        framed: ``int64[L]``: frames made so far, counted here.
    """

    header_size: npt.NDArray[np.int64]
    template: npt.NDArray[np.uint8]
    counting_identification: npt.NDArray[np.bool_]
    udp_checksum: npt.NDArray[np.bool_]
    framed: npt.NDArray[np.int64]


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
    """Take up to n of the oldest datagrams off a queue as Ethernet frames; returns how many.

    Args:
        queue: This is its only consumer.
        links: For every flow number on the queue.
        sent_ns: ``int64[n]``, written: when each was sent, CLOCK_MONOTONIC.
        deadline_ns: ``int64[n]``, written: when each was to be sent.
        flow: ``int64[n]``, written: each one's flow number.
        frames: ``uint8[n, 42 + the queue's capacity]``, written.
        size: ``int32[n]``, written: bytes of each frame.
    """
    count = min(waiting(queue), sent_ns.size)
    slots = queue.time_ns.size
    for row in range(count):
        slot = (queue.head[0] + row) % slots
        number = queue.flow[slot]
        header_size = links.header_size[number]
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
    release(queue, count)
    return count


def allocate_links(framings: dict[int, Framing], former: Links | None) -> Links:
    """Tables with a row for every number up to the highest; what ``former`` counted is kept."""
    count = max(framings, default=-1) + 1
    links = Links(
        header_size=np.zeros(count, np.int64),
        template=np.zeros((count, HEADER_SIZE), np.uint8),
        counting_identification=np.zeros(count, np.bool_),
        udp_checksum=np.zeros(count, np.bool_),
        framed=np.zeros(count, np.int64),
    )
    for number, framing in framings.items():
        links.header_size[number] = framing.header_size
        links.template[number] = framing.template
        links.counting_identification[number] = framing.counting_identification
        links.udp_checksum[number] = framing.udp_checksum
    if former is not None:
        links.framed[: former.framed.size] = former.framed[:count]
    return links
