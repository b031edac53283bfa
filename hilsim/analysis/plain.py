"""Reports as plain values for JSON."""

import math
from typing import Any


def plain(value: Any) -> Any:
    """Values of dictionaries, lists and tuples with None for NaN, and lists for tuples."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return None if isinstance(value, float) and math.isnan(value) else value
