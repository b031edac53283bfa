"""Messages of the browser that the gate passes on to viser."""

from enum import Enum

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
    return Verdict.PASSED
