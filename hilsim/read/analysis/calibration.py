"""What a family gives for calibrations: module ``calibration`` of its folder, with a ``PART``."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class CalibrationPart:
    """Calibration of one's own sensor of one family.

    Attributes:
        read: Function of the datagrams of a capture, its name in errors, and the sensor's address (or ""), which gives a recording. Raises CaptureError.
        model: Function of a recording, which gives the name of the sensor's model.
        calibrate: Function of recordings and the specification of the model, which gives a calibration. Raises CaptureError.
        lines: Lines of a calibration, each with whether its figure was learned.
        to_json: A calibration as plain values.
        unit_toml: File of the unit, by a calibration and hilsim's version.
        reads_text: Whether ``read`` gets the lines of a text in place of datagrams.
    """

    read: Callable[[Iterable[Any], str, str], Any]
    model: Callable[[Any], str]
    calibrate: Callable[[Sequence[Any], Any], Any]
    lines: Callable[[Any], list[tuple[str, bool]]]
    to_json: Callable[[Any], dict[str, Any]]
    unit_toml: Callable[[Any, str], str]
    reads_text: bool = False
