"""Nesting depth of a JSON text, determined before the recursive JSON parser reads it."""

import re

import numpy as np

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)  # the last quote may be missing, so that each byte is scanned once


def nesting(text: bytes) -> int:
    """Depth of arrays and objects in a JSON text, which need not be valid."""
    bare = np.frombuffer(_STRING.sub(b"", text), dtype=np.uint8)
    step = np.isin(bare, np.frombuffer(b"[{", dtype=np.uint8)).astype(np.int8) - np.isin(bare, np.frombuffer(b"]}", dtype=np.uint8))
    steps = step[step != 0]
    return int(np.cumsum(steps, dtype=np.int64).max(initial=0))
