"""Scans of a feed that are stored."""

from collections.abc import Mapping, Sequence

from hilsim.scans.losses import Losses
from hilsim.scans.scan import Scan
from hilsim.scans.streams import SensorStreams
from hilsim.view.feed.store import ScanStore


class StoredFeed:
    """Scans of the streams of a feed, as far as they are stored; the part that is the same for every source."""

    _store: ScanStore
    _streams: SensorStreams

    def sensors(self) -> tuple[str, ...]:
        """Sensors that have sent packets: their names in a daemon's rig, else their source addresses."""
        return self._store.sensors()

    def scans_since(self, sensor: str, number: int) -> Sequence[Scan]:
        """Stored scans from ``number`` on, oldest first."""
        return self._store.since(sensor, number)

    def losses(self) -> Mapping[str, Losses]:
        """Counts of missing packets by sensor; what a daemon did not give a feed is in ``packet_streams`` of its status too."""
        return self._streams.losses()
