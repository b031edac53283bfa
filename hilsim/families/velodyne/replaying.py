"""Replays of a Velodyne: its stamps, which begin again at the hour, and where its recordings can be cut."""

from hilsim.emulator.replaying import CutPlace, ReplayingPart
from hilsim.emulator.retime import Retiming
from hilsim.families.velodyne.protocol.models import MODELS
from hilsim.families.velodyne.protocol.position import NMEA_OFFSET, NMEA_SIZE
from hilsim.families.velodyne.recognition import VelodyneKind
from hilsim.units import HOUR_NS

_DATA = Retiming(stamp_at=1200, stamps=1, width=4, unit_ns=1000, wrap_ns=HOUR_NS)
_POSITION = _DATA._replace(stamp_at=198, sentence_at=NMEA_OFFSET, sentence_end=NMEA_OFFSET + NMEA_SIZE)


def nominal_cycle_ns(measured_ns: float) -> float:
    """Cycle of the model that sends at this rate; the measured cycle if no model does."""
    cycles = [1000.0 * model.cycle_us(is_dual=is_dual) for model in MODELS for is_dual in (False, True)]
    nearest = min(cycles, key=lambda cycle: abs(cycle - measured_ns))
    return nearest if abs(nearest - measured_ns) < 0.01 * nearest else measured_ns


PART = ReplayingPart(
    retimings={VelodyneKind.DATA: lambda _payload: _DATA, VelodyneKind.POSITION: lambda _payload: _POSITION},
    cut_places=lambda: lambda payload: (CutPlace(int.from_bytes(payload[2:4], "little"), 0),),
    leap=lambda leap_cdeg: f"{leap_cdeg / 100:.2f} degrees",
    cycle_ns=nominal_cycle_ns,
)
