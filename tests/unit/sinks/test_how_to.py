"""The sink on the page docs/how-to/add-an-output.md is a sink."""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from hilsim.capture.sinks.base import SentBatch, SinkFlow
from hilsim.errors import CaptureError

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "add-an-output.md"


@pytest.fixture
def shown(monkeypatch):
    """The page's first block of code as a module."""
    module = types.ModuleType("shown")
    monkeypatch.setitem(sys.modules, "shown", module)
    exec(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0], module.__dict__)  # noqa: S102 - our own page
    return module


def test_the_sink_of_the_page_counts_bytes_by_flow(shown, tmp_path):
    sink = shown.BytesLogSink(tmp_path / "bytes.txt")
    sink.check()
    flows = {number: SinkFlow(number=number, name=name) for number, name in enumerate(("roof/data", "roof/position"))}
    sink.open(tuple(flows.values()))
    stamp_ns = np.arange(3)
    sink.write(SentBatch(stamp_ns, stamp_ns, np.array([0, 1, 0]), np.zeros((3, 1300), np.uint8), np.array([1248, 554, 1248], np.int32), flows))
    sink.close()
    sink.close()
    assert (sink.written, (tmp_path / "bytes.txt").read_text()) == (3, "roof/data 2496\nroof/position 554\n")


def test_the_sink_of_the_page_names_a_directory_that_is_not_there(shown, tmp_path):
    with pytest.raises(CaptureError, match="the directory of a bytes log must exist"):
        shown.BytesLogSink(tmp_path / "nowhere" / "bytes.txt").check()
