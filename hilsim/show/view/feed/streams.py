"""Scans of a feed that are stored."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from hilsim.api.packet import Packet
from hilsim.capture.batches import DatagramArrays
from hilsim.read.scans.losses import Losses
from hilsim.read.scans.scan import Scan
from hilsim.read.scans.streams import SensorStreams
from hilsim.show.view.feed.packets import LatestPackets
from hilsim.show.view.feed.store import ScanStore


class StoredFeed:
    """Scans of the streams of a feed, as far as they are stored; the part that is the same for every source."""

    shown_scans: int = 0
    """Scans that were stored, where lost ones are counted, too."""
    lost_scans: int = 0
    """Scans that were not stored, because this process took packets too slowly."""
    _store: ScanStore
    _streams: SensorStreams
    _packets: LatestPackets | None

    @property
    def dropped_packets(self) -> int:
        """Packets that were gone before ``packets`` was called."""
        return 0 if self._packets is None else self._packets.dropped

    def packets(self) -> Sequence[Packet]:
        """Packets since the last call, in the order of their stamps; none of a feed that was made without packets."""
        return () if self._packets is None else self._packets.take()

    def _add(self, sensor: str, batch: DatagramArrays, rows: npt.NDArray[np.intp]) -> None:
        """Take the next datagrams of a sensor."""
        if self._packets is not None:
            self._packets.add_rows(sensor, batch, rows)
        self._streams.add(sensor, batch, rows)

    def sensors(self) -> tuple[str, ...]:
        """Sensors that have sent packets: their names in a daemon's rig, else their source addresses."""
        return self._store.sensors()

    def scans_since(self, sensor: str, number: int) -> Sequence[Scan]:
        """Stored scans from ``number`` on, oldest first."""
        return self._store.since(sensor, number)

    def losses(self) -> Mapping[str, Losses]:
        """Counts of missing packets by sensor; what a daemon did not give a feed is in ``packet_streams`` of its status too."""
        return self._streams.losses()
