"""Reports as plain values for JSON."""

import math
from enum import Enum
from typing import Any


def plain(value: Any) -> Any:
    """Values of dictionaries, lists and tuples with None for NaN, lists for tuples, and words for members of enumerations."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, Enum) and not isinstance(value, int | str):
        return str(value)
    return None if isinstance(value, float) and math.isnan(value) else value
