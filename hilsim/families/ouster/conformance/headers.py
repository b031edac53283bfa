"""Rules for packet headers, column headers and footers: identity, reserved bits, states, and the last eight bytes."""

import numpy as np
import numpy.typing as npt

from hilsim.families.ouster.protocol.bits import read_bits
from hilsim.families.ouster.protocol.firmware import FOOTER_SIZE, Footer
from hilsim.families.ouster.protocol.headers import COLUMNS, HEADERS, LIDAR_PACKET, PACKET_HEADER_SIZE, ColumnField, HeaderField
from hilsim.families.ouster.protocol.lidar import footers_of
from hilsim.families.ouster.protocol.profiles import HeaderKind
from hilsim.families.ouster.stream import LidarBlock
from hilsim.protocols.crc64 import CRC_SIZE
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity

TYPE = Rule(id="ouster.type", severity=Severity.ERROR)
SERIAL = Rule(id="ouster.serial", severity=Severity.ERROR)
INIT_ID = Rule(id="ouster.init_id", severity=Severity.ERROR)
RESERVED = Rule(id="ouster.reserved", severity=Severity.ERROR)
STATUS = Rule(id="ouster.status", severity=Severity.ERROR)
STATES = Rule(id="ouster.states", severity=Severity.ERROR)
FOOTER = Rule(id="ouster.footer", severity=Severity.ERROR)

_H = HeaderField
_LONGEST_COUNTDOWN_S, _MAX_SHUTDOWN, _MAX_LIMITING = 30, 1, 9


def _reserved(kind: HeaderKind) -> npt.NDArray[np.uint8]:
    """``uint8[32]``: bits of a packet header that no field has."""
    mask = np.full(PACKET_HEADER_SIZE, 0xFF, np.uint8)
    for place in HEADERS[kind].values():
        for bit in range(8 * place.offset, 8 * place.offset + place.bits):
            mask[bit // 8] &= ~np.uint8(1 << bit % 8)
    return mask


_RESERVED: dict[HeaderKind, npt.NDArray[np.uint8]] = {kind: _reserved(kind) for kind in HeaderKind if kind is not HeaderKind.NONE}


def look_at_headers(block: LidarBlock, log: FindingLog) -> None:
    """Judge the packet headers, the columns' status and the footers of a block."""
    _look_at_status(block, log)
    if block.kind is HeaderKind.NONE:
        return
    _look_at_identity(block, log)
    _look_at_reserved(block, log)
    _look_at_states(block, log)
    _look_at_footers(block, log)


def _report_field(block: LidarBlock, log: FindingLog, rule: Rule, field: HeaderField, wrong: npt.NDArray[np.bool_], text: str) -> None:
    """Report wrong values of a field of the packet headers."""
    values = block.heads.headers[field.name.lower()]
    log.report_each(rule, wrong, lambda row: f"{text}, got {values[row]}", block.place, HEADERS[block.kind][field].offset)


def _look_at_identity(block: LidarBlock, log: FindingLog) -> None:
    headers = block.heads.headers
    expected = [(TYPE, _H.PACKET_TYPE, LIDAR_PACKET, f"packet type must be {LIDAR_PACKET}")]
    if block.metadata is not None:
        serial, init_id = int(block.metadata.serial), block.metadata.initialization_id
        expected.append((SERIAL, _H.SERIAL, serial, f"serial number must be {serial} as in the metadata"))
        expected.append((INIT_ID, _H.INIT_ID, init_id, f"initialisation id must be {init_id} as in the metadata"))
    for rule, field, value, text in expected:
        _report_field(block, log, rule, field, headers[field.name.lower()] != value, text)


def _look_at_reserved(block: LidarBlock, log: FindingLog) -> None:
    set_bits = block.payloads[:, :PACKET_HEADER_SIZE] & _RESERVED[block.kind]

    def message(row: int, byte: int) -> str:
        return f"bits of the packet header without a field must be 0, got 0x{set_bits[row, byte]:02x} in byte {byte}"

    log.report_each(RESERVED, set_bits != 0, message, block.place, lambda byte: byte)
    start = block.payloads.shape[1] - FOOTER_SIZE
    padding = block.payloads[:, start:-CRC_SIZE]

    def padding_message(row: int, _byte: int) -> str:
        return f"the footer must begin with 24 zero bytes, got 0x{padding[row].max():02x} among them"

    log.report_each(RESERVED, padding != 0, padding_message, block.place, lambda byte: start + byte)


def _look_at_states(block: LidarBlock, log: FindingLog) -> None:
    headers = block.heads.headers
    for name, most in (
        ("shutdown_countdown_s", _LONGEST_COUNTDOWN_S),
        ("limiting_countdown_s", _LONGEST_COUNTDOWN_S),
        ("thermal_shutdown", _MAX_SHUTDOWN),
        ("shot_limiting", _MAX_LIMITING),
    ):
        _report_field(block, log, STATES, HeaderField[name.upper()], headers[name] > most, f"{name} must be 0 to {most}")


def _look_at_status(block: LidarBlock, log: FindingLog) -> None:
    layout = COLUMNS[block.kind]
    status = block.heads.columns["status"]
    wrong = (status != 0) & (status != layout.valid_status)
    offset = layout.fields[ColumnField.STATUS].offset % block.form.column_size

    def message(row: int, column: int) -> str:
        return f"a column's status must be 0x{layout.valid_status:x} or 0, got 0x{status[row, column]:x} in column {column}"

    log.report_each(STATUS, wrong, message, block.place, lambda column: block.column_byte(column, offset))


def _look_at_footers(block: LidarBlock, log: FindingLog) -> None:
    """Judge the last eight bytes by the firmware."""
    if block.metadata is None:
        return
    footer = block.metadata.footer
    expected, found = footers_of(block.payloads, footer), read_bits(block.payloads[:, -CRC_SIZE:], 0, 64)
    name = {Footer.CRC: "the CRC-64 of the packet", Footer.CONSTANT: "the constant of firmware 2.3 and 2.4", Footer.ZERO: "zero"}[footer]

    def message(row: int) -> str:
        return f"the last eight bytes must be {name}, 0x{expected[row]:016x}, got 0x{found[row]:016x}"

    log.report_each(FOOTER, expected != found, message, block.place, block.payloads.shape[1] - CRC_SIZE)


def report_lidar_type(log: FindingLog, payload: bytes, place: Place) -> None:
    """Report a packet of a lidar packet's size and flow that is none."""
    log.report(TYPE, f"packet type must be {LIDAR_PACKET}, got {payload[0] | payload[1] << 8}", place.at(0))
