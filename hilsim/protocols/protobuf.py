"""Protobuf's wire format, as far as the messages here need it: what is zero or empty is left out (protobuf.dev, "Encoding")."""

import math
import struct
from collections.abc import Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple

_THREE = struct.Struct("<xdxdxd")
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types of fields."""
_THREE_KEYS = bytes(number << 3 | FIXED64 for number in (1, 2, 3))
_LONGEST_VARINT = 10


class Kind(Enum):
    """Type of a field's values."""

    DOUBLE = FIXED64
    WHOLE = VARINT
    MESSAGE = BYTES
    TEXT = -BYTES


class Field(NamedTuple):
    """A field that ``read_message`` looks for.

    Attributes:
        name: Name of the field.
        kind: Type of its values.
        of: Fields of a message within, by their numbers.
        is_repeated: Whether the field is a list.
    """

    name: str
    kind: Kind = Kind.DOUBLE
    of: "Mapping[int, Field]" = MappingProxyType({})
    is_repeated: bool = False


def read_message(content: bytes, schema: Mapping[int, Field], path: str = "") -> dict[str, Any]:
    """Read the fields of a message that a schema lists; others are passed over.

    A message within is a ``dict`` of its own, a repeated field a list; a field that is not there has no key, and one that is there twice counts as
    protobuf has it: the last number, both messages merged.

    Args:
        content: Bytes of the message.
        schema: Fields by their numbers.
        path: Path of the message within the outermost one, for errors.

    Raises:
        ValueError: it is no message, or a field has another type; the text begins with the field's path.
    """
    three = _three(content, schema)
    if three is not None:
        return three
    found: dict[str, Any] = {}
    within: dict[str, tuple[bytes, Field]] = {}
    try:
        for number, kind, value in typed_fields(content):
            field = schema.get(number)
            if field is not None:
                _note(found, within, field, kind, value, path)
    except _FieldError:
        raise
    except ValueError as error:
        raise _FieldError(f"{path or '.'}: {error}") from error
    for name, (joined, field) in within.items():
        found[name] = read_message(joined, field.of, f"{path}.{name}")
    return found


def _three(content: bytes, schema: Mapping[int, Field]) -> dict[str, Any] | None:
    """A message of three float64 in the order of their numbers, as most positions, angles and sizes are; None: another one."""
    if (
        len(content) != _THREE.size
        or content[::9] != _THREE_KEYS
        or any(schema.get(number, _NO_FIELD).kind is not Kind.DOUBLE for number in (1, 2, 3))
    ):
        return None
    numbers = _THREE.unpack(content)
    return {schema[number].name: value for number, value in enumerate(numbers, start=1)} if all(map(math.isfinite, numbers)) else None


def _note(found: dict[str, Any], within: dict[str, tuple[bytes, Field]], field: Field, kind: int, value: int | bytes, path: str) -> None:
    """Add a field to what a message has; messages within that are not repeated are joined in ``within`` first."""
    if kind != abs(field.kind.value):
        raise _FieldError(f"{path}.{field.name}: wire type must be {abs(field.kind.value)}, got {kind}")
    if field.is_repeated:
        row = found.setdefault(field.name, [])
        row.append(_value(value, field, f"{path}.{field.name}[{len(row)}]"))
    elif field.kind is Kind.MESSAGE and isinstance(value, bytes):
        before, _ = within.get(field.name, (b"", field))
        within[field.name] = before + value, field
    else:
        found[field.name] = _value(value, field, f"{path}.{field.name}")


_NO_FIELD = Field("", Kind.TEXT)


class _FieldError(ValueError):
    """A fault whose text begins with a field's path."""


def _value(value: int | bytes, field: Field, path: str) -> Any:
    if isinstance(value, int):
        return value
    if field.kind is Kind.DOUBLE:
        (number,) = struct.unpack("<d", value)
        if not math.isfinite(number):
            raise _FieldError(f"{path}: must be finite, got {number}")
        return number
    if field.kind is Kind.TEXT:
        return value.decode(errors="replace")
    return read_message(value, field.of, path)


def varint(number: int, value: int) -> bytes:
    """A field with a whole number."""
    return _key(number, VARINT) + base128(value) if value else b""


def double(number: int, value: float) -> bytes:
    """A field with a float64."""
    packed = struct.pack("<d", value)
    return _key(number, FIXED64) + packed if packed != bytes(8) else b""  # -0.0 is not left out


def message(number: int, content: bytes) -> bytes:
    """A field with a message within, which is there also when it is empty."""
    return _key(number, BYTES) + base128(len(content)) + content


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
    for number, _, value in typed_fields(content):
        yield number, value


def typed_fields(content: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Numbers, wire types and values of a message's fields, in their order; of fixed-size fields their bytes.

    Raises:
        ValueError: it is no message.
    """
    at = 0
    while at < len(content):
        key, at = _read_base128(content, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = _read_base128(content, at)
            yield number, kind, value
            continue
        if kind == BYTES:
            size, at = _read_base128(content, at)
        elif kind in {FIXED64, FIXED32}:
            size = 8 if kind == FIXED64 else 4
        else:
            raise ValueError(f"a field's type must be 0, 1, 2 or 5, got {kind}")
        if at + size > len(content):
            raise ValueError(f"a field must end within its message of {len(content)} bytes, got {at + size}")
        yield number, kind, content[at : at + size]
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
