"""Settings of a Hesai that other sensors have not."""

from dataclasses import dataclass
from typing import Literal

from hilsim.families.hesai.protocol.points import ReturnMode
from hilsim.sensor.echoes import EchoChoice

PairName = Literal["last_strongest", "last_first", "first_strongest"]
PAIRS = {
    "last_strongest": (ReturnMode.LAST_STRONGEST, (EchoChoice.LAST, EchoChoice.STRONGEST_BESIDE_LAST)),
    "last_first": (ReturnMode.LAST_FIRST, (EchoChoice.LAST, EchoChoice.FIRST)),
    "first_strongest": (ReturnMode.FIRST_STRONGEST, (EchoChoice.FIRST, EchoChoice.STRONGEST_BESIDE_FIRST)),
}
"""Mode and returns of each pair, in the order of the manual's blocks (PandarXT-16 page 44)."""


@dataclass(frozen=True, kw_only=True)
class HesaiSetting:
    """Settings of a Hesai that other sensors have not.

    Attributes:
        pair: Returns with ``return_mode = "dual"``: the last with the strongest, or the second strongest where that is the last; the last with the first; or the
            first with the strongest, or the second strongest where that is the first. A single echo is reported twice. None: the model's own, ``last_strongest``, of a QT64 ``last_first``.
        first_return: Whether the one return of other modes is the nearest, in place of ``return_mode``. A QT64 has no mode of the strongest: it then sends the last.
        clock_source: Which source its clock follows with ``clock.sync = "auto"``: a receiver (``gps``), or a master of PTP, of which the rig has none.
    """

    pair: PairName | None = None
    first_return: bool = False
    clock_source: Literal["gps", "ptp"] = "gps"


SETTING = HesaiSetting
CHANGES_LIVE = True
