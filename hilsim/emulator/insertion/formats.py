"""Packets that objects are inserted into, by their format: which echoes a firing reports, and where its bytes are. ``firings`` reads them."""

import math

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, inlined_kernel, kernel, signed
from hilsim.emulator.insertion.firings import RecordedFirings
from hilsim.emulator.insertion.unit import PacketFormat, RecordedUnit
from hilsim.families.cepton.packets import fits_point
from hilsim.families.cepton.protocol.stdv import POINT_UNIT_M, PointFlag
from hilsim.families.velodyne.protocol.data import ReturnMode
from hilsim.sensor.echoes import EchoChoice

_POINTS = constant(PacketFormat.CEPTON)
_LAST_MODE, _DUAL_MODE, _CONFIDENCE_MODE = constant(ReturnMode.LAST), constant(ReturnMode.DUAL), constant(ReturnMode.DUAL_CONFIDENCE)
_STRONGEST, _LAST = constant(EchoChoice.STRONGEST), constant(EchoChoice.LAST)
_STRONGEST_BESIDE_LAST, _LAST_BESIDE_STRONGEST = constant(EchoChoice.STRONGEST_BESIDE_LAST), constant(EchoChoice.LAST_BESIDE_STRONGEST)
_NO_RETURN = constant(PointFlag.NO_RETURN)
_OF_ECHO = constant(PointFlag.SATURATED | PointFlag.NOISE)
_UNIT_M = POINT_UNIT_M


@kernel
def choose_returns(unit: RecordedUnit, payload: npt.NDArray[np.uint8], choice: npt.NDArray[np.int64]) -> None:
    """Write how the returns of the packet's firings are chosen among their echoes."""
    if unit.packet_format == _POINTS:
        choice[0], choice[1] = _STRONGEST, _LAST_BESIDE_STRONGEST
        return
    mode = signed(payload[1204])
    is_dual = mode in (_DUAL_MODE, _CONFIDENCE_MODE)
    choice[0] = _LAST if is_dual or mode == _LAST_MODE else _STRONGEST
    choice[1] = _STRONGEST_BESIDE_LAST


@inlined_kernel
def is_retro(unit: RecordedUnit, byte: int) -> bool:
    """Whether a reflectivity byte is a retro-reflector's: a Velodyne's bytes above 100."""
    return unit.packet_format != _POINTS and byte > 100


@inlined_kernel
def byte_offset(unit: RecordedUnit) -> int:
    """Byte of a return, from its first one, that is its reflectivity."""
    return 6 if unit.packet_format == _POINTS else 2


@kernel
def _write_velodyne(payload: npt.NDArray[np.uint8], place: int, code: int, byte: int) -> None:
    payload[place], payload[place + 1], payload[place + 2] = code & 0xFF, code >> 8, byte


@kernel
def _write_point(
    unit: RecordedUnit, recorded: RecordedFirings, firing: int, code: int, byte: int, marked: int, payload: npt.NDArray[np.uint8], place: int
) -> None:
    """Write a Cepton's point; one that the packet cannot represent becomes a point without a return."""
    counts = code * unit.response.unit_m / _UNIT_M
    x = math.floor(counts * recorded.direction[firing, 0] + 0.5)
    y = math.floor(counts * recorded.direction[firing, 1] + 0.5)
    z = math.floor(counts * recorded.direction[firing, 2] + 0.5)
    is_return = code > 0 and fits_point(x, y, z)
    flags = signed(payload[place + 9]) & ~(_OF_ECHO | _NO_RETURN)
    if not is_return:
        x, y, z, byte, marked = 0, 0, 0, 0, _NO_RETURN
    payload[place], payload[place + 1] = x & 0xFF, (x >> 8) & 0xFF
    payload[place + 2], payload[place + 3] = y & 0xFF, (y >> 8) & 0xFF
    payload[place + 4], payload[place + 5] = z & 0xFF, (z >> 8) & 0xFF
    payload[place + 6], payload[place + 9] = byte, flags | marked


@kernel
def write_return(
    unit: RecordedUnit, recorded: RecordedFirings, firing: int, code: int, byte: int, marked: int, payload: npt.NDArray[np.uint8], place: int
) -> None:
    """Write a return over the bytes from ``place`` on."""
    if unit.packet_format == _POINTS:
        _write_point(unit, recorded, firing, code, byte, marked, payload, place)
    else:
        _write_velodyne(payload, place, code, byte)


@kernel
def write_nothing(unit: RecordedUnit, recorded: RecordedFirings, firing: int, payload: npt.NDArray[np.uint8], place: int) -> None:
    """Write that there is no return over the bytes from ``place`` on."""
    if unit.packet_format == _POINTS:
        _write_point(unit, recorded, firing, 0, 0, 0, payload, place)
    else:
        _write_velodyne(payload, place, 0, int(unit.no_return[recorded.channel[firing]]))
