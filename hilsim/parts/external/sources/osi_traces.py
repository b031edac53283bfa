"""OSI trace files: ``.osi`` (each message behind its length) and ``.mcap`` (channels of an MCAP file)."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from hilsim.capture.mcap import mcap_reader
from hilsim.errors import CaptureError, ConfigError
from hilsim.parts.external.limits import OSI_MESSAGE_BYTES
from hilsim.protocols.osi import MessageType

_LENGTH_BYTES = 4
_SEPARATOR, _TEXT_BYTES, _LOOKED_AT_BYTES = b"$$__$$", 200, 1 << 20
_KINDS: dict[str, MessageType] = {"gt": "GroundTruth", "sv": "SensorView"}
_SCHEMAS: dict[str, MessageType] = {"osi3.GroundTruth": "GroundTruth", "osi3.SensorView": "SensorView"}


class OsiMessage(NamedTuple):
    """A message of a stream.

    Attributes:
        content: Bytes of the message.
        kind: Type of the message.
        where: Name of the stream and number of the message, from 0.
        fault: Reason that there is no whole message; empty for a whole one.
    """

    content: bytes
    kind: MessageType
    where: str
    fault: str = ""


def trace_kind(path: Path) -> MessageType | None:
    """Type of a trace's messages by its name (``…_gt_….osi``, ``…_sv_….osi``, as OSI names traces); None: the name has none."""
    named = [part for part in re.split(r"[_.]", path.stem.lower()) if part in _KINDS]
    return _KINDS[named[0]] if named else None


def read_trace(
    path: Path, kind: MessageType | None = None, channel: str | None = None, note: Callable[[str], object] = lambda _: None
) -> Iterator[OsiMessage]:
    """Yield the messages of a trace file in their order.

    Args:
        path: File that ends in ``.osi`` or ``.mcap``.
        kind: Type of the messages; None: by the file's name (``.osi``) or schemas (``.mcap``).
        channel: Topic of an MCAP file; None: its only one with the type.
        note: Called with a sentence on an MCAP file that was cut.

    Raises:
        CaptureError: the file cannot be read, or ends within a message.
        ConfigError: the type or channel must be named, or the package ``mcap`` is missing.
    """
    if path.suffix == ".mcap":
        yield from _read_mcap(path, kind, channel, note)
        return
    known = kind or trace_kind(path)
    if known is None:
        raise ConfigError(f'{path}: type of the messages must be given ("GroundTruth" or "SensorView"), the file\'s name has neither _gt_ nor _sv_')
    try:
        with path.open("rb") as file:
            number = 0
            while length := file.read(_LENGTH_BYTES):
                where = f"{path}: message {number}"
                if len(length) < _LENGTH_BYTES:
                    raise CaptureError(f"{where}: length must have {_LENGTH_BYTES} bytes, got {len(length)} before the end of the file")
                size = int.from_bytes(length, "little")
                if number == 0 and size > path.stat().st_size:
                    _refuse_other_forms(path)
                OSI_MESSAGE_BYTES.enforce(size, where, CaptureError)
                content = file.read(size)
                if len(content) < size:
                    raise CaptureError(f"{where}: must have {size} bytes, got {len(content)} before the end of the file")
                yield OsiMessage(content, known, where)
                number += 1
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read: {error.strerror}") from error


def _refuse_other_forms(path: Path) -> None:
    """Refuse a file of another form that OSI traces have had, whose first bytes are no length.

    Raises:
        CaptureError: it is one.
    """
    with path.open("rb") as file:
        content = file.read(_LOOKED_AT_BYTES)
    if _SEPARATOR in content:
        raise CaptureError(
            f"{path}: messages must be behind their lengths, got ones with {_SEPARATOR.decode()} between them, as traces before OSI 3.2 have"
        )
    if content[:_TEXT_BYTES].isascii() and b"{" in content[:_TEXT_BYTES]:
        raise CaptureError(f"{path}: must be a binary trace (.osi), got text: the tools of OSI convert it")


def _read_mcap(path: Path, kind: MessageType | None, channel: str | None, note: Callable[[str], object]) -> Iterator[OsiMessage]:
    with mcap_reader(path, "osi", note) as reader:
        summary = reader.get_summary()
        if summary is None:
            raise CaptureError(f"{path}: must have a summary, as OSI's multi-channel traces have, got a file without one")
        topics = {
            each.topic: _SCHEMAS[summary.schemas[each.schema_id].name]
            for each in summary.channels.values()
            if each.schema_id in summary.schemas and summary.schemas[each.schema_id].name in _SCHEMAS
        }
        chosen = [topic for topic, known in topics.items() if channel in {None, topic} and kind in {None, known}]
        if len(chosen) != 1:
            listed = ", ".join(f"{topic} ({known})" for topic, known in topics.items()) or "no channel of GroundTruth or SensorView"
            raise ConfigError(f"{path}: channel must name one of the file's, got {channel!r} of: {listed}")
        for number, (_, _, each) in enumerate(reader.iter_messages(topics=chosen)):
            where = f"{path}: {chosen[0]}: message {number}"
            OSI_MESSAGE_BYTES.enforce(len(each.data), where, CaptureError)
            yield OsiMessage(each.data, topics[chosen[0]], where)
