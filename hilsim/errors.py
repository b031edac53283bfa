"""The faults an operator can mend, and how a specification states its rules.

A message reads: subject "must be" rule, "got" value, where. ``HilsimError`` is caught in two places only: the command line and the daemon's top.
``ValueError`` and ``TypeError`` from the core mean a fault in the caller's code, except inside ``config``, which turns them into ``ConfigError``.
"""

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

_DAMAGE: tuple[type[Exception], ...] = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)
"""Errors that parsers raise at bytes they did not expect."""


class HilsimError(Exception):
    """Something an operator can mend; its text is shown as it is, without a traceback."""


class ConfigError(HilsimError):
    """A rig or profile that cannot be used; the text names every fault with file and key."""


class AssetError(HilsimError):
    """A mesh, terrain, trajectory or background file that is missing or broken, or a background file that cannot be written."""


class PacketError(HilsimError):
    """Bytes that are not the packet they should be; the text names field and byte."""


class CaptureError(HilsimError):
    """A capture file that cannot be read or written."""


class TransmitError(HilsimError):
    """A socket, permission or schedule that the transmitter cannot have."""


class DeviceError(HilsimError):
    """A GPU that is not there, or that fails while it renders; the message names the case."""


class LinkError(HilsimError):
    """A link to a flight controller or a ground station that cannot be had; the text names the port and what to do."""


class CommandFaultError(HilsimError):
    """A command that ran to its end and found a fault: exit code 1 without a further message."""


def require(*rules: tuple[bool, str]) -> None:
    """Raise one ``ValueError`` naming every rule that does not hold.

    Each rule is ``(holds, message)``; messages read ``"rate_hz must be 5 to 20, got 30"``. All faults are reported at once,
    because a person mending a rig wants to mend it in one go.

    Raises:
        ValueError: at least one rule does not hold; messages are joined by ``"; "``.
    """
    faults = [message for holds, message in rules if not holds]
    if faults:
        raise ValueError("; ".join(faults))


def within(spec: object, **limits: tuple[float, float]) -> Iterator[tuple[bool, str]]:
    """Yield for each named attribute of a specification the rule that it is None or lies between two limits, both included."""
    for name, (least, most) in limits.items():
        value = getattr(spec, name)
        yield value is None or least <= value <= most, f"{name} must be {least} to {most}, got {value}"


@contextmanager
def library_reads(fault: str, kind: type[HilsimError], *own: type[Exception]) -> Iterator[None]:
    """Report what a library raises at a damaged file as a fault of the file.

    Args:
        fault: Start of the message, with the file and the place.
        kind: Type of the error.
        own: Exceptions of the library that derive from ``Exception`` alone.

    Raises:
        HilsimError: of that kind; the library raised one of its own exceptions or one that parsers raise at bytes they did not expect.
    """
    try:
        yield
    except MemoryError as error:
        raise kind(f"{fault}: must fit into the memory of this machine") from error
    except (*_DAMAGE, *own) as error:
        text = next(iter(str(error).strip().splitlines()), "")
        is_sentence = text and isinstance(error, (OSError, ValueError, RuntimeError, *own))
        raise kind(f"{fault}: {text if is_sentence else f'{type(error).__name__}: {text}'.removesuffix(': ')}") from error
