"""Names of the sensors of one stream of datagrams: the one place where streams are told apart."""

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
import numpy.typing as npt

from hilsim.capture.batches import DatagramArrays, sender_of
from hilsim.capture.datagram import CapturedDatagram
from hilsim.protocols.flow_key import FlowKey
from hilsim.protocols.recognise import PacketKind, recognise

_MAX_NAMES = 4096
_AHEAD = 256
_Flow = tuple[str, int]
"""Source address and destination port. Source ports tell nothing: they change with each start of a program that sends from any."""


class SensorNames:
    """Names of the sensors of one stream. A sensor is a source address with the destination port of its packets of points.

    The first sensor of an address has the address as its name, each further one the address and its port, ``192.168.1.201:2369``. Packets of position, IMU
    and information belong to the sensor whose port of points is at the usual distance from theirs, else to the first one without such packets.
    """

    def __init__(self, chosen: str = "") -> None:
        """Know no sensor yet.

        Args:
            chosen: Name of a sensor that a user has chosen, which may be ``ADDRESS:PORT`` also of an address's first sensor.
        """
        self._chosen = chosen
        self._names: dict[_Flow, str] = {}
        self._of_source: dict[str, dict[int, str]] = {}
        """Names of an address's sensors by their ports of points."""
        self._claimed: set[tuple[PacketKind, str]] = set()

    def ahead(self, datagrams: Iterable[CapturedDatagram]) -> Iterator[CapturedDatagram]:
        """Yield a stream whose sensors at its beginning are known before its first datagram is: other packets of a sensor may come before its points."""
        rest = iter(datagrams)
        first = list(islice(rest, _AHEAD))
        for datagram in first:
            if recognise(datagram.payload).facts.has_points:
                self.of(datagram)
        yield from first
        yield from rest

    def of(self, datagram: CapturedDatagram) -> str:
        """Name of the sensor of the next datagram."""
        flow = datagram.source, datagram.destination_port
        return self._names.get(flow) or self._find(flow, recognise(datagram.payload))

    def of_flow(self, recorded: FlowKey, kind: PacketKind) -> str:
        """Name of the sensor of packets of one kind of a flow."""
        flow = recorded.source, recorded.destination_port
        return self._names.get(flow) or self._find(flow, kind)

    def rows(self, batch: DatagramArrays, among: npt.NDArray[np.intp] | None = None) -> Iterator[tuple[str, npt.NDArray[np.intp]]]:
        """Names and rows of the flows of a batch, or of some rows of it, in the order of their first datagrams."""
        rows = np.arange(batch.size.size) if among is None else among
        senders, first = np.unique(batch.sender[rows], return_index=True)
        for place in np.argsort(first).tolist():
            own = rows[batch.sender[rows] == senders[place]]
            flow, start, size = sender_of(int(senders[place])), int(batch.start[own[0]]), int(batch.size[own[0]])
            yield self._names.get(flow) or self._find(flow, recognise(batch.data[start : start + size].tobytes())), own

    def _find(self, flow: _Flow, kind: PacketKind) -> str:
        source, port = flow
        known = self._of_source.get(source, {})
        if kind.facts.has_points and len(self._names) < _MAX_NAMES:
            with_port = f"[{source}]:{port}" if ":" in source else f"{source}:{port}"
            name = with_port if known or with_port == self._chosen else source
            self._names[flow] = self._of_source.setdefault(source, known)[port] = name
            return name
        step = kind.facts.port_step
        if step is None or len(known) < 2:
            return next(iter(known.values()), source)
        free = (each for each in known.values() if (kind, each) not in self._claimed)
        name = self._names[flow] = known.get(port - step) or next(free, next(iter(known.values())))
        self._claimed.add((kind, name))
        return name
