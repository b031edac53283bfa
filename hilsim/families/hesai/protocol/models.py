"""Models: what their packets hold, where their lasers look and when they fire.

Sources: [SDK] HesaiLidar_SDK_2.0, correction and firing time files · [NEB] nebula, hesai decoders · [CAP] public recordings of one unit of each model.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class TailPlaces(NamedTuple):
    """Places of fields from the begin of the tail of a packet; what is in none of them is 0.

    Attributes:
        status: Bytes of the status, with which the tail begins.
        shutdown: Bit 0: about to shut down because of heat.
        mode: Return mode.
        speed: Speed, 2 bytes, rpm.
        utc: Year, month, day, hour, minute, second.
        us: Microseconds within the second, 4 bytes.
        factory: 0x42.
        sequence: Number of the packet, 4 bytes, or the end of packets without one.
    """

    status: int
    shutdown: int
    mode: int
    speed: int
    utc: int
    us: int
    factory: int
    sequence: int


XT_TAIL, PANDAR_TAIL, QT_TAIL = (
    TailPlaces(9, 9, 10, 11, 13, 19, 23, 24),
    TailPlaces(5, 5, 14, 8, 16, 10, 15, 22),
    TailPlaces(5, 6, 16, 10, 18, 12, 17, 24),
)


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
        firing_ns: Time of each laser's firing after the begin of its round.
        header: Bytes before the blocks, in a dual mode.
        marks_blocks: Whether each block begins with FF EE.
        fill: Last byte of four of a channel; None: a channel has three.
        tail: Places of the fields behind the blocks.
        status: Status of the tail: byte strings that take turns.
        status_rounds: Rounds in which each has its turn; 0: there is one alone.
        years_from: Year from which the date counts.
        unset_utc_s: Time since 1970 at which a clock that nothing sets begins [CAP].
        is_clocked: Whether a clock makes the lasers fire, so that azimuths jitter and times are even; otherwise the encoder does, and azimuths are exact.
        azimuth_ns: Time after the begin of a round that its block's azimuth is of.
        stamp_ns: Time after the begin of the packet's last round that its stamp is of.
        stamps_first: Whether it is after the first round's begin instead.
        speed_parts: Parts of a turn of which the speed is the last whole one's.
        pairs: Names of pairs of returns that it can send, the usual one first.
        singles: Return modes that it has otherwise.
    """

    name: str
    channels: int
    blocks: int
    round_ns: int
    elevation_deg: tuple[float, ...]
    azimuth_deg: tuple[float, ...]
    firing_ns: tuple[int, ...]
    header: bytes
    marks_blocks: bool = False
    fill: int | None = 0xFF
    tail: TailPlaces = XT_TAIL
    status: tuple[bytes, ...]
    status_rounds: int = 0
    years_from: int = 1900
    unset_utc_s: int = 1_564_012_800  # 2019-07-25
    is_clocked: bool = False
    azimuth_ns: int = 0
    stamp_ns: int = 0
    stamps_first: bool = False
    speed_parts: int = 6
    pairs: tuple[str, ...] = ("last_strongest", "last_first", "first_strongest")
    singles: tuple[str, ...] = ("strongest", "last", "first")

    def rounds(self, returns: int) -> int:
        """Firings of all lasers in a packet with as many returns of each."""
        return self.blocks // returns

    def block_ns(self, returns: int) -> npt.NDArray[np.int64]:
        """``int64[blocks]``, begin of the round of each block after the packet's stamp."""
        rounds = np.arange(self.blocks) // returns
        return np.asarray((rounds - (0 if self.stamps_first else rounds[-1])) * self.round_ns - self.stamp_ns, np.int64)

    def dtype(self, *, is_counted: bool) -> np.dtype[Any]:
        """Record of a whole packet, with or without its number."""
        unit = [("distance", "<u2"), ("reflectivity", "u1"), *([] if self.fill is None else [("confidence", "u1")])]
        block = np.dtype([*([("flag", "<u2")] if self.marks_blocks else []), ("azimuth", "<u2"), ("units", np.dtype(unit), (self.channels,))])
        kinds = {"status": f"({self.tail.status},)u1", "utc": "(6,)u1", "speed": "<u2", "us": "<u4", "sequence": "<u4"}
        names = [name for name in TailPlaces._fields if is_counted or name != "sequence"]
        tail = np.dtype(
            {
                "names": ["speed_rpm" if name == "speed" else name for name in names],
                "formats": [kinds.get(name, "u1") for name in names],
                "offsets": [0 if name == "status" else getattr(self.tail, name) for name in names],
                "itemsize": self.tail.sequence + 4 * is_counted,
            }
        )
        return np.dtype([("header", "u1", (len(self.header),)), ("blocks", block, (self.blocks,)), ("tail", tail)])


def _even(first: float, step: float, count: int) -> tuple[float, ...]:
    return tuple(first + step * number for number in range(count))


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split()))


def _turns(values: str, reserved: str) -> tuple[bytes, ...]:
    """Status of numbers with identities that count from 0, before two bytes that are constant."""
    return tuple(int(value).to_bytes(2, "little") + bytes([number]) + bytes.fromhex(reserved) for number, value in enumerate(values.split()))


XT32 = Model(
    name="XT32",
    channels=32,
    blocks=8,
    round_ns=50_000,
    elevation_deg=_even(15.0, -1.0, 32),  # [SDK]
    azimuth_deg=(0.0,) * 32,
    firing_ns=tuple(6000 + 1512 * channel for channel in range(32)),  # [SDK]; [NEB] has equal sums, 5632 for the block and 368 for channel 1
    header=bytes.fromhex("eeff0601 0000 2008 01040201"),
    status=(bytes.fromhex("000086f10783010001"),),
)
XT16 = replace(
    XT32,
    name="XT16",
    channels=16,
    elevation_deg=_even(15.0, -2.0, 16),  # [SDK]
    azimuth_deg=(0.0,) * 16,
    firing_ns=tuple(6000 + 3024 * channel for channel in range(16)),  # [SDK]
    header=bytes.fromhex("eeff0601 0000 1008 01040201"),
    status=(bytes.fromhex("000086ec0783830001"),),
)
XT32M = replace(  # azimuths of a unit are in its calibration file, 0.13 to 0.18
    XT32,
    name="XT32M",
    blocks=6,
    elevation_deg=_even(19.434, -40.181 / 31.0, 32),  # [SDK] 19.434 to -20.747 in nearly even steps
    firing_ns=tuple(6000 + 2888 * (channel % 16) for channel in range(32)),  # [SDK] two lasers at once
    header=bytes.fromhex("eeff0601 0000 2006 01040201"),
    status=(bytes.fromhex("000086e70783020001"),),
)
_PANDAR_ROUND_NS = 55_560
_40P_FIRINGS_NS = (  # [SDK] and [NEB], before the end of the round
    "42220 28470 16040 3620 45490 31740 47460 54670 20620 33710 40910 8190 20620 27160 50730 8190 14740 36980 45490 52700 23890 31740 38950 11470 18650 25190 "
    "48760 6230 12770 35010 21920 9500 43520 29770 17350 4920 42220 28470 16040 3620"
)
PANDAR40P = Model(
    name="Pandar40P",
    channels=40,
    blocks=10,
    round_ns=_PANDAR_ROUND_NS,
    elevation_deg=_numbers(  # [NEB]; those of [SDK] are 0.416 higher
        "14.794 10.944 7.971 4.969 2.952 1.94 1.6 1.263 0.925 0.587 0.249 -0.088 -0.425 -0.763 -1.101 -1.439 -1.776 -2.116 -2.453 -2.788 -3.128 -3.463 -3.8 "
        "-4.138 -4.473 -4.808 -5.145 -5.479 -5.814 -6.149 -7.151 -8.147 -9.148 -10.133 -11.12 -12.094 -13.062 -14.018 -18.977 -24.985"
    ),
    azimuth_deg=(-1.042,) * 6 + (3.125, -5.208, -1.042) * 8 + (-1.042,) * 10,
    firing_ns=tuple(_PANDAR_ROUND_NS - int(before) for before in _40P_FIRINGS_NS.split()),
    header=b"",
    marks_blocks=True,
    fill=None,
    tail=PANDAR_TAIL,
    status=_turns(  # [CAP] medians: 0 to 7 vary by some counts
        "1949 1920 2083 2088 1956 1823 1673 1740 11828 11827 12340 8289 25392 12339 24882 26210 13411 13109 14134 12390 18244 18244 18244", "7271"
    ),
    status_rounds=7,
    years_from=2000,
    unset_utc_s=1_504_656_000,  # 2017-09-06
    is_clocked=True,
    azimuth_ns=_PANDAR_ROUND_NS,  # [SDK] turns azimuths back by its negative firing times
    stamp_ns=_PANDAR_ROUND_NS + 28_580,
    speed_parts=3,
    pairs=("last_strongest",),
    singles=("strongest", "last"),
)
_64_FIRINGS_NS = (  # [SDK] and [NEB]
    "23180 21876 20572 19268 17964 16660 11444 46796 7532 36956 50732 54668 40892 44828 31052 34988 48764 52700 38924 42860 29084 33020 46796 25148 36956 50732 "
    "27116 40892 44828 31052 34988 48764 25148 38924 42860 29084 33020 52700 6228 54668 15356 27116 10140 23180 4924 21876 14052 17964 8836 19268 3620 20572 "
    "12748 16660 7532 11444 6228 15356 10140 4924 3620 14052 8836 12748"
)
PANDAR64 = replace(
    PANDAR40P,
    name="Pandar64",
    channels=64,
    blocks=6,
    elevation_deg=_numbers(  # [NEB]
        "14.9 11.05 8.077 5.075 3.058 2.046 1.878 1.706 1.54 1.369 1.202 1.031 0.864 0.693 0.526 0.355 0.187 0.018 -0.151 -0.319 -0.49 -0.657 -0.827 -0.995 "
        "-1.166 -1.333 -1.504 -1.67 -1.842 -2.01 -2.18 -2.347 -2.518 -2.682 -2.855 -3.022 -3.192 -3.357 -3.53 -3.694 -3.866 -4.032 -4.203 -4.367 -4.54 -4.702 "
        "-4.874 -5.039 -5.211 -5.373 -5.547 -5.708 -5.88 -6.043 -7.045 -8.041 -9.042 -10.027 -11.014 -11.988 -12.956 -13.912 -18.871 -24.879"
    ),
    azimuth_deg=(-1.042,) * 6 + (1.042, 3.125, 5.208, -5.208, -3.125, -1.042) * 8 + (-1.042,) * 10,
    firing_ns=tuple(_PANDAR_ROUND_NS - int(before) for before in _64_FIRINGS_NS.split()),
    header=bytes.fromhex("eeff4006 00040000"),
    marks_blocks=False,
    status=_turns(  # [CAP]
        "1861 1837 2433 2456 1879 1739 1564 1640 13430 13102 13358 27952 25392 12339 24882 26210 12595 25648 25189 12852 18244 18244 18244", "6e6e"
    ),
    years_from=1900,
    unset_utc_s=1_593_043_200,  # 2020-06-25
    stamp_ns=_PANDAR_ROUND_NS + 42_580,
)
_QT_FIRINGS_US = (  # [SDK]; [NEB] has 10 us more for all but channel 56, which lacks a digit
    "2.31 4.37 6.43 8.49 10.54 12.6 14.66 16.71 19.16 21.22 23.28 25.34 27.39 29.45 31.5 33.56 36.61 38.67 40.73 42.78 44.84 46.9 48.95 51.01 53.45 55.52 57.58 "
    "59.63 61.69 63.74 65.8 67.86 70.9 72.97 75.02 77.08 79.14 81.19 83.25 85.3 87.75 89.82 91.87 93.93 95.98 98.04 100.1 102.15 105.2 107.26 109.32 111.38 "
    "113.43 115.49 117.54 119.6 122.05 124.11 126.17 128.22 130.28 132.34 134.39 136.45"
)
QT64 = Model(
    name="QT64",
    channels=64,
    blocks=4,
    round_ns=166_667,
    elevation_deg=_numbers(  # [SDK] and [NEB]
        "-52.121 -49.785 -47.577 -45.477 -43.465 -41.528 -39.653 -37.831 -36.055 -34.32 -32.619 -30.95 -29.308 -27.69 -26.094 -24.517 -22.964 -21.42 -19.889 "
        "-18.372 -16.865 -15.368 -13.88 -12.399 -10.925 -9.457 -7.994 -6.535 -5.079 -3.626 -2.175 -0.725 0.725 2.175 3.626 5.079 6.534 7.993 9.456 10.923 12.397 "
        "13.877 15.365 16.861 18.368 19.885 21.415 22.959 24.524 26.101 27.697 29.315 30.957 32.627 34.328 36.064 37.84 39.662 41.537 43.475 45.487 47.587 49.795 "
        "52.133"
    ),
    azimuth_deg=_numbers(
        "8.736 8.314 7.964 7.669 7.417 7.198 7.007 6.838 6.688 6.554 6.434 6.326 6.228 6.14 6.059 5.987 -5.27 -5.216 -5.167 -5.123 -5.083 -5.047 -5.016 -4.988 "
        "-4.963 -4.942 -4.924 -4.91 -4.898 -4.889 -4.884 -4.881 5.493 5.496 5.502 5.512 5.525 5.541 5.561 5.584 5.611 5.642 5.676 5.716 5.759 5.808 5.862 5.921 "
        "-5.33 -5.396 -5.469 -5.55 -5.64 -5.74 -5.85 -5.974 -6.113 -6.269 -6.447 -6.651 -6.887 -7.163 -7.493 -7.892"
    ),
    firing_ns=tuple(round(1000 * float(after)) for after in _QT_FIRINGS_US.split()),
    header=bytes.fromhex("eeff0301 0000 4004 01040201"),
    fill=0,
    tail=QT_TAIL,
    status=_turns("1319 1384 1386 1299 1340 1356 1405 1508 901 1272 1254 251 461 2 0 0 33836 10 0", "0000"),  # [CAP]
    status_rounds=2,
    unset_utc_s=1_504_656_000,
    stamp_ns=-25_710,
    stamps_first=True,
    speed_parts=1,
    pairs=("last_first",),
    singles=("last", "first"),  # [NEB]
)
BY_NAME = {model.name: model for model in (XT32, XT16, XT32M, PANDAR40P, PANDAR64, QT64)}
if not all({model.channels} == {len(each) for each in (model.elevation_deg, model.azimuth_deg, model.firing_ns)} for model in BY_NAME.values()):
    raise AssertionError("each model must have an elevation, an azimuth and a firing time for each of its lasers")
