"""Messages of the browser that the gate passes on to viser."""

from dataclasses import MISSING, fields
from enum import Enum
from functools import cache
from typing import Any, get_type_hints

import msgspec

_PERMITTED = frozenset(
    {
        "CommandTriggerMessage",
        "FileTransferPartAck",
        "GetRenderResponseMessage",
        "GuiButtonHoldMessage",
        "GuiFormDirtyMessage",
        "GuiFormSubmitMessage",
        "GuiUpdateMessage",
        "LocalStorageGetItemResponseMessage",
        "SceneNodeClickMessage",
        "SceneNodeDragMessage",
        "ScenePointerMessage",
        "TransformControlsDragEndMessage",
        "TransformControlsDragStartMessage",
        "TransformControlsUpdateMessage",
        "ViewerCameraMessage",
    }
)
"""Types of messages that the page needs. Not among them: ``ShareUrlRequest``, which makes viser open a tunnel to a public server."""
_UPDATABLE = frozenset({"value"})
"""Properties of a control that a browser may change: viser's server sets any attribute that a message names."""


class Verdict(Enum):
    """Result for a message; its value is the reason of a refusal."""

    PASSED = "passed"
    NOT_PERMITTED = "not_permitted"
    MALFORMED = "malformed"
    TOO_MANY = "too_many_messages"


class _Head(msgspec.Struct):
    """Part of a message that is checked."""

    type: str
    updates: dict[str, msgspec.Raw] | None = None


_DECODER = msgspec.msgpack.Decoder(_Head)


def judged(message: bytes) -> Verdict:
    """Check a message of a browser (MessagePack, a map with its type)."""
    try:
        head = _DECODER.decode(message)
    except (msgspec.MsgspecError, RecursionError):
        return Verdict.MALFORMED
    if head.type not in _PERMITTED or not (head.updates or {}).keys() <= _UPDATABLE:
        return Verdict.NOT_PERMITTED
    try:
        _decoder(head.type).decode(message)
    except (msgspec.MsgspecError, RecursionError):
        return Verdict.MALFORMED
    return Verdict.PASSED


@cache
def _decoder(kind: str) -> msgspec.msgpack.Decoder[Any]:
    """Decoder of a type of message by viser's own definition, which raises a ``KeyError`` or a ``TypeError`` where a key is missing or too many."""
    from viser import _messages  # noqa: PLC0415 - slow to import

    message = getattr(_messages, kind)
    hints = get_type_hints(message)
    keys: list[Any] = [("type", str)]
    for field in fields(message):
        hint = float if hints[field.name] is int else hints[field.name]  # a browser's numbers are float64
        keys.append((field.name, hint) if field.default is MISSING else (field.name, hint, field.default))
    return msgspec.msgpack.Decoder(msgspec.defstruct(kind, keys, kw_only=True, forbid_unknown_fields=True))
