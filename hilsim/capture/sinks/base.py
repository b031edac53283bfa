"""Interface of a sink, which receives every sent datagram, in the order of sending, as whole Ethernet frames.

A sink knows no thread and no queue. In the daemon each has its own of both (``daemon.sinks.follower``), so that it may wait, hold the GIL and fail: the
stream and the other sinks do not notice. ``hilsim record`` hands the same batches on without either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hilsim.protocols.ethernet import HEADER_SIZE

PAYLOAD_OFFSET = HEADER_SIZE
"""Offset of a datagram in its frame."""


@dataclass(frozen=True, kw_only=True)
class SinkFlow:
    """A flow as a sink sees it.

    Attributes:
        number: Its value in ``SentBatch.flow``. A flow that ends gives it up, and a later one may have it.
        name: ``"<sensor>/<flow>"``, such as ``"roof/data"``.
        stack: Name of the sensor whose network stack sends the flow (``capture.sinks.network_stack``); empty where frames are on the wire as they are here.
    """

    number: int
    name: str
    stack: str = ""


class SentBatch(NamedTuple):
    """Datagrams that were sent, in that order.

    Attributes:
        stamp_ns: ``int64[n]``, UTC: when the kernel had taken each; offline its deadline.
        deadline_ns: ``int64[n]``, UTC: when each was to be sent.
        flow: ``int64[n]``, keys of ``flows``.
        frames: ``uint8[n, capacity]``: whole Ethernet frames, valid until ``write`` returns.
        size: ``int32[n]``, bytes of each frame.
        flows: Every flow of the batch, by number.
    """

    stamp_ns: npt.NDArray[np.int64]
    deadline_ns: npt.NDArray[np.int64]
    flow: npt.NDArray[np.int64]
    frames: npt.NDArray[np.uint8]
    size: npt.NDArray[np.int32]
    flows: Mapping[int, SinkFlow]

    def datagram(self, row: int) -> npt.NDArray[np.uint8]:
        """``uint8[size]``: the UDP payload of one frame, a view."""
        return self.frames[row, PAYLOAD_OFFSET : self.size[row]]


class Sink(Protocol):
    """Somewhere that what was sent is put. One thread at a time calls it."""

    @property
    def target(self) -> str:
        """Place of writing as text, such as a path."""
        ...

    @property
    def written(self) -> int:
        """Frames stored; read by any thread."""
        ...

    def check(self) -> None:
        """Check that the sink can be opened, before anything slow.

        Raises:
            HilsimError: it cannot.
        """
        ...

    def open(self, flows: Sequence[SinkFlow]) -> None:
        """Begin; nothing has been sent. ``flows`` are those known so far: others may come with a batch.

        Raises:
            HilsimError: it cannot be created.
        """
        ...

    def write(self, batch: SentBatch) -> None:
        """Put datagrams there.

        Raises:
            HilsimError: it accepts no more; ``written`` counts the stored ones, and nothing is written after that.
            OSError: the same.
        """
        ...

    def close(self) -> None:
        """End; closing again, or what was never opened, does nothing.

        Raises:
            HilsimError: what was written may not be whole.
        """
        ...
