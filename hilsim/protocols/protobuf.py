"""Protobuf's wire format, as far as the messages here need it: what is zero or empty is left out (protobuf.dev, "Encoding")."""

import struct
from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10


def varint(number: int, value: int) -> bytes:
    """A field with a whole number."""
    return _key(number, _VARINT) + base128(value) if value else b""


def double(number: int, value: float) -> bytes:
    """A field with a float64."""
    packed = struct.pack("<d", value)
    return _key(number, _FIXED64) + packed if packed != bytes(8) else b""  # -0.0 is not left out


def message(number: int, content: bytes) -> bytes:
    """A field with a message within, which is there also when it is empty."""
    return _key(number, _BYTES) + base128(len(content)) + content


def data(number: int, content: bytes) -> bytes:
    """A field with bytes, or packed numbers."""
    return message(number, content) if content else b""


def string(number: int, text: str) -> bytes:
    """A field with text."""
    return data(number, text.encode())


def base128(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values of a message's fields, in their order; of fixed-size fields their bytes.

    Raises:
        ValueError: it is no message.
    """
    at = 0
    while at < len(content):
        key, at = _read_base128(content, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _read_base128(content, at)
            yield number, value
            continue
        if kind == _BYTES:
            size, at = _read_base128(content, at)
        elif kind in {_FIXED64, _FIXED32}:
            size = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"a field's type must be 0, 1, 2 or 5, got {kind}")
        if at + size > len(content):
            raise ValueError(f"a field must end within its message of {len(content)} bytes, got {at + size}")
        yield number, content[at : at + size]
        at += size


def _key(number: int, kind: int) -> bytes:
    return base128(number << 3 | kind)


def _read_base128(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(content[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError("a number must end within its message and ten bytes, got one that does not")
