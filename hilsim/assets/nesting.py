"""How deep a JSON text is nested, found before a reader of JSON, which calls itself for each level, is let loose on it."""

import re

import numpy as np

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)  # the last quote may be missing, so that each byte is looked at once


def nesting(text: bytes) -> int:
    """Levels of arrays and objects in a JSON text, which need not be sound."""
    bare = np.frombuffer(_STRING.sub(b"", text), dtype=np.uint8)
    step = np.isin(bare, np.frombuffer(b"[{", dtype=np.uint8)).astype(np.int8) - np.isin(bare, np.frombuffer(b"]}", dtype=np.uint8))
    steps = step[step != 0]
    return int(np.cumsum(steps, dtype=np.int64).max(initial=0))
