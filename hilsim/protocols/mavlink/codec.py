"""Whole MAVLink 2 frames from messages, and messages from frames: one kernel each, for every layout."""

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import kernel
from hilsim.protocols.mavlink.frames import CRC_SIZE, HEADER_1_SIZE, HEADER_2_SIZE, MAVLINK_2, Frame, crc_of, crc_with
from hilsim.protocols.mavlink.messages import Message, Origin


@kernel
def write_frame(message: Message, payload: npt.NDArray[np.uint8], sender: Origin, frame: npt.NDArray[np.uint8]) -> int:
    """Write the frame of a message and count the sender's sequence up.

    Trailing zero bytes of the payload are cut off, but for the first byte. Byte-identical to what pymavlink packs, which a test proves.

    Args:
        message: Definition of the message.
        payload: ``uint8[>= message.size]``, a draft's.
        sender: Ids and sequence.
        frame: ``uint8[>= message.size + 12]``, written.

    Returns:
        Bytes of the frame.
    """
    size = message.size
    while size > 1 and payload[size - 1] == 0:
        size -= 1
    frame[0] = MAVLINK_2
    frame[1] = size
    frame[2] = 0
    frame[3] = 0
    frame[4] = sender.sequence[0] & 0xFF
    frame[5] = sender.system
    frame[6] = sender.component
    for byte in range(3):
        frame[7 + byte] = (message.id >> (8 * byte)) & 0xFF
    for at in range(size):
        frame[HEADER_2_SIZE + at] = payload[at]
    crc = crc_with(crc_of(frame, 1, HEADER_2_SIZE + size), message.crc_extra)
    frame[HEADER_2_SIZE + size] = crc & 0xFF
    frame[HEADER_2_SIZE + size + 1] = crc >> 8
    sender.sequence[0] += 1
    return HEADER_2_SIZE + size + CRC_SIZE


@kernel
def read_payload(data: npt.NDArray[np.uint8], frame: Frame, payload: npt.NDArray[np.uint8]) -> None:
    """Copy a frame's payload into a draft, zeros behind it; bytes that the layout does not have are left out.

    Args:
        data: ``uint8[…]``, the buffer the frame was found in.
        frame: A checked frame of the draft's message; what an unchecked one holds is not known.
        payload: ``uint8[n]``, the draft's; written.
    """
    header_size = HEADER_2_SIZE if data[frame.start] == MAVLINK_2 else HEADER_1_SIZE
    size = min(payload.size, int(data[frame.start + 1]))
    for at in range(size):
        payload[at] = data[frame.start + header_size + at]
    payload[size:] = 0
