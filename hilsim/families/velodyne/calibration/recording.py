"""One capture of one Velodyne, as arrays."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.sensor_names import SensorNames
from hilsim.errors import CaptureError
from hilsim.families.velodyne.protocol.data import RECORDS_PER_BLOCK, ReturnMode
from hilsim.families.velodyne.protocol.firing import build_record_firings
from hilsim.families.velodyne.protocol.models import Model
from hilsim.families.velodyne.protocol.position import POSITION_PACKET_DTYPE
from hilsim.families.velodyne.protocol.steps import GAP_CDEG, wrapped_cdeg, wrapped_us
from hilsim.families.velodyne.recognition import VelodyneKind
from hilsim.families.velodyne.stream import measured_model, packet_run, stacked_packets, whole_cycles
from hilsim.protocols.recognise import recognise
from hilsim.units import TURN_CDEG

MAX_PACKETS = 60_000
"""Data packets of a capture that are used: the first 80 s of a VLP-16 with one return."""
MIN_PACKETS = 100
MIN_TURNS = 2.0
_PULSE_SHARE = 0.2
"""Largest jump of a stamp, in cycles, that a pulse makes: the sum of a second's drift."""
Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Recording:
    """Packets of one sensor in one capture."""

    name: Annotated[str, "Name of the capture."]
    model: Annotated[Model, "Model of the sensor."]
    mode: Annotated[ReturnMode, "Return mode."]
    packets: Annotated[npt.NDArray[Any], "``DATA_PACKET_DTYPE[n]``, data packets."]
    host_ns: Annotated[Ints, "``int64[n]``, capture times."]
    cycle: Annotated[Ints, "``int64[n]``, number of whole cycles since the first packet, by the stamps."]
    elapsed_us: Annotated[Ints, "``int64[n]``, stamps since the first packet's."]
    stretch: Annotated[Ints, "``int64[n]``, number of the unbroken stretch of stamps that a packet belongs to."]
    position_us: Annotated[Ints, "``int64[m]``, stamps of position packets since the first packet's stamp."]
    is_locked: Annotated[bool, "Whether a position packet reports a locked pulse."]
    mac: Annotated[str, "Source MAC address of data packets; empty: the capture has none."]
    is_whole: Annotated[bool, "Whether all packets of the capture are used."]

    @property
    def cycle_us(self) -> float:
        """Time between packets of the model."""
        return self.model.cycle_us(is_dual=self.mode.is_dual)

    @property
    def group_blocks(self) -> int:
        """Blocks of one azimuth: one for each return, and each bank of lasers of a VLS-128."""
        return self.model.group_blocks(is_dual=self.mode.is_dual)

    @property
    def duration_s(self) -> float:
        """Time from the first to the last packet."""
        return float(self.elapsed_us[-1]) / 1e6

    @property
    def azimuth(self) -> Ints:
        """``int64[n, g]``, azimuth of each group of blocks."""
        return np.asarray(self.packets["blocks"]["azimuth"][:, :: self.group_blocks].astype(np.int64))

    @property
    def group_us(self) -> float:
        """Time from one azimuth to the next."""
        return max(RECORDS_PER_BLOCK // self.model.channels, 1) * self.model.sequence_ns / 1000.0


_SPAN, _ALL_SPANS = 0.04, 278
"""Logarithmic span of ranges, and number of all."""


class Firings:
    """Firings of a recording, by firing sequence and laser.

    Attributes:
        distance: ``uint16[s, c]``, raw distance; 0 for no return.
        reflectivity: ``uint8[s, c]``, byte of the record.
        is_single: ``bool[s, c]``, whether the firing has one return or none: false where the blocks of a dual packet differ.
        azimuth_cdeg: ``float64[s, c]``, azimuth at which each laser fired, 0 to 36000.
    """

    def __init__(self, recording: Recording) -> None:
        model, blocks = recording.model, recording.packets["blocks"]
        returns, lasers = recording.mode.returns, model.channels
        records = blocks["channels"].reshape(len(blocks), -1, returns, RECORDS_PER_BLOCK)
        distance, reflectivity = records["distance"], records["reflectivity"]
        self.distance = distance[:, :, -1].reshape(-1, lasers)
        self.reflectivity = reflectivity[:, :, -1].reshape(-1, lasers)
        same = (distance == distance[:, :, -1:]).all(axis=2) & (reflectivity == reflectivity[:, :, -1:]).all(axis=2)
        self.is_single = same.reshape(-1, lasers)
        self.azimuth_cdeg = _fired_cdeg(recording).reshape(-1, lasers)

    def byte_counts(self, chosen: npt.NDArray[np.bool_]) -> Ints:
        """Number of the chosen firings with one return or none by laser and byte, ``int64[c, 256]``."""
        lasers = chosen.shape[1]
        keyed = self.reflectivity + 256 * np.arange(lasers)
        return np.bincount(keyed[chosen & self.is_single], minlength=256 * lasers).reshape(lasers, 256)

    def byte_counts_by_range(self) -> Ints:
        """Number of single returns by span of ranges, laser and byte, ``int64[r, c, 256]``."""
        lasers = self.distance.shape[1]
        chosen = self.is_single & (self.distance > 0)
        span = (np.log(np.maximum(self.distance, 1)) / _SPAN).astype(np.int64)
        keyed = (span * lasers + np.arange(lasers)) * 256 + self.reflectivity
        return np.bincount(keyed[chosen], minlength=_ALL_SPANS * lasers * 256).reshape(_ALL_SPANS, lasers, 256)


def _fired_cdeg(recording: Recording) -> Doubles:
    """Azimuth of each record, ``float64[n, g, r]``; r is 32, or 128 of a VLS-128."""
    azimuth, firings = recording.azimuth, build_record_firings(recording.model.geometry)
    flat = azimuth.ravel()
    step = wrapped_cdeg(np.diff(flat, append=flat[-1])).astype(np.float64)
    usual = float(np.median(step[(step > 0) & (step <= GAP_CDEG)]))
    step[(step <= 0) | (step > 1.5 * usual + 20)] = usual
    fired = flat[:, None] + step[:, None] * firings.share + firings.offset_cdeg
    return np.asarray(fired % TURN_CDEG)


def read_recording(datagrams: Iterable[CapturedDatagram], *, name: str, sensor: str = "") -> Recording:
    """Read the data and position packets of one sensor.

    Args:
        datagrams: Datagrams in the order of their arrival.
        name: Name of the capture in errors.
        sensor: Address of the sensor; optional for a single sensor.

    Raises:
        CaptureError: the packets are of several sensors, models or modes, of a model that cannot be calibrated, or too few.
    """
    data: list[CapturedDatagram] = []
    position: list[CapturedDatagram] = []
    senders: Counter[str] = Counter()
    is_whole = True
    names = SensorNames(sensor)
    for datagram in datagrams:
        kind, source = recognise(datagram.payload), names.of(datagram)
        if kind is VelodyneKind.DATA:
            senders[source] += 1
            chosen = sensor or next(iter(senders))
            if source == chosen and len(data) < MAX_PACKETS:
                data.append(datagram)
            elif source == chosen:
                is_whole = False
        elif kind is VelodyneKind.POSITION and is_whole:
            position.append(datagram)
    _check_senders(senders, sensor, name)
    if len(data) < MIN_PACKETS:
        raise CaptureError(f"{name}: must hold at least {MIN_PACKETS} Velodyne data packets of one sensor, got {len(data)}")
    packets = stacked_packets(datagram.payload for datagram in data)
    model, mode = _identified(packets, name)
    run = packet_run(packets, None)
    cycles, off_us = whole_cycles(run.step_us, model.cycle_us(is_dual=mode.is_dual))
    is_broken = (cycles < 1) | (off_us > _PULSE_SHARE * model.cycle_us(is_dual=mode.is_dual))
    is_broken[0] = False
    stamps = [datagram for datagram in position if names.of(datagram) == names.of(data[0])]
    positions = np.frombuffer(b"".join(datagram.payload for datagram in stamps), POSITION_PACKET_DTYPE)
    return Recording(
        name=name,
        model=model,
        mode=mode,
        packets=packets,
        host_ns=np.array([datagram.host_stamp_ns for datagram in data], np.int64),
        cycle=np.cumsum(np.where(is_broken, 0, cycles)),
        elapsed_us=np.cumsum(run.step_us),
        stretch=np.cumsum(is_broken),
        position_us=wrapped_us(positions["timestamp"].astype(np.int64) - run.stamp_us[0]),
        is_locked=bool((positions["pps"] == 2).any()),
        mac=_mac(data),
        is_whole=is_whole,
    )


def _check_senders(senders: Counter[str], sensor: str, name: str) -> None:
    listed = ", ".join(f"{address} ({count:,} packets)" for address, count in senders.items())
    if sensor and sensor not in senders:
        raise CaptureError(f"{name}: the sensor must be one of {listed or 'none'}, got {sensor}")
    if not sensor and len(senders) > 1:
        raise CaptureError(f"{name}: one sensor must be chosen with --sensor, got {listed}")


def _identified(packets: npt.NDArray[Any], name: str) -> tuple[Model, ReturnMode]:
    """Model and mode, which must be the same in all packets."""
    kinds = np.unique(packets["return_mode"].astype(np.int64) * 256 + packets["product"])
    if kinds.size > 1:
        shown = ", ".join(f"0x{kind >> 8:02x} 0x{kind & 255:02x}" for kind in kinds)
        raise CaptureError(f"{name}: return mode and product byte must be the same in all packets, got {shown}")
    byte, product = divmod(int(kinds[0]), 256)
    return measured_model(byte, product, float(np.median(np.diff(packets["timestamp"].astype(np.int64)))), name)


def _mac(datagrams: list[CapturedDatagram]) -> str:
    """Most frequent source MAC address; empty where the capture has none."""
    found = Counter(datagram.link[6:12] for datagram in datagrams if datagram.is_ethernet and datagram.link)
    address = found.most_common(1)[0][0] if found else b""
    return address.hex(":") if any(address) else ""
