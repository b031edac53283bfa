"""Models of the XT series: what their packets hold, where their lasers look and when they fire.

Sources: [SDK] HesaiLidar_SDK_2.0, correction and firing time files · [NEB] nebula, hesai decoders · [CAP] public recordings of one unit of each model.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model.

    Attributes:
        name: Its name, as in a profile's ``model``.
        channels: Lasers, channel 1 first.
        blocks: Blocks of a packet, each a firing of all lasers with one return.
        round_ns: Time from firing of all lasers to firing of all lasers.
        elevation_deg: Nominal angle of each laser above the horizontal plane.
        azimuth_deg: Nominal azimuth of each laser beside the block's, clockwise.
        firing_ns: Time of each laser's firing after that of its block, which is that of the packet's stamp for the last block.
        status: Nine bytes of the tail that do not change: three numbers of two bytes, each with its identity [CAP].
    """

    name: str
    channels: int
    blocks: int
    round_ns: int
    elevation_deg: tuple[float, ...]
    azimuth_deg: tuple[float, ...]
    firing_ns: tuple[int, ...]
    status: bytes

    def rounds(self, returns: int) -> int:
        """Firings of all lasers in a packet with as many returns of each."""
        return self.blocks // returns

    def block_ns(self, returns: int) -> npt.NDArray[np.int64]:
        """``int64[blocks]``, time of each block after the packet's stamp: blocks count backwards from the last one."""
        rounds = np.arange(self.blocks) // returns
        return np.asarray((rounds - rounds[-1]) * self.round_ns, np.int64)


def _even(first: float, step: float, count: int) -> tuple[float, ...]:
    return tuple(first + step * number for number in range(count))


XT32 = Model(
    name="XT32",
    channels=32,
    blocks=8,
    round_ns=50_000,
    elevation_deg=_even(15.0, -1.0, 32),  # [SDK]
    azimuth_deg=(0.0,) * 32,
    firing_ns=tuple(6000 + 1512 * channel for channel in range(32)),  # [SDK]; [NEB] has equal sums, 5632 for the block and 368 for channel 1
    status=bytes.fromhex("000086f10783010001"),
)
XT16 = Model(
    name="XT16",
    channels=16,
    blocks=8,
    round_ns=50_000,
    elevation_deg=_even(15.0, -2.0, 16),  # [SDK]
    azimuth_deg=(0.0,) * 16,
    firing_ns=tuple(6000 + 3024 * channel for channel in range(16)),  # [SDK]
    status=bytes.fromhex("000086ec0783830001"),
)
XT32M = Model(
    name="XT32M",
    channels=32,
    blocks=6,
    round_ns=50_000,
    elevation_deg=_even(19.434, -40.181 / 31.0, 32),  # [SDK] 19.434 to -20.747 in nearly even steps
    azimuth_deg=(0.0,) * 32,  # those of a unit are in its calibration file, 0.13 to 0.18
    firing_ns=tuple(6000 + 2888 * (channel % 16) for channel in range(32)),  # [SDK] two lasers at once
    status=bytes.fromhex("000086e70783020001"),
)
BY_NAME = {model.name: model for model in (XT32, XT16, XT32M)}
if not all(model.channels == len(model.elevation_deg) == len(model.firing_ns) for model in BY_NAME.values()):
    raise AssertionError("each model must have an elevation and a firing time for each of its lasers")
if not all(above > below for model in BY_NAME.values() for above, below in pairwise(model.elevation_deg)):
    raise AssertionError("channel 1 must be the highest one")
